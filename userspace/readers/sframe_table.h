/* SPDX-License-Identifier: BSD-2-Clause */
/* Headers of a .sframe section, and the bytes between and after its tables. */
#ifndef SFBPF_READERS_SFRAME_TABLE_H
#define SFBPF_READERS_SFRAME_TABLE_H

#include "readers/sframe.h"

#define SFRAME_SECTION ".sframe" /* the section's name in notes */

/* Header flags (spec, "SFrame Flags"). */
#define SFRAME_F_SORTED	       0x1
#define SFRAME_F_FRAME_POINTER 0x2 /* removed in version 3; a reader does not need it */
#define SFRAME_F_PCREL	       0x4 /* exists since erratum 1 of version 2 */

/* Splits the section into s->tables. 0 or -ENOMEM. */
int sframe_tables_load(struct sframe *s, struct diag *diag);
/*
 * Bytes from the section's start to the end of the last of the tables that follow each other; 0 if
 * there is none.
 */
uint64_t sframe_tables_extent(struct bytes sec);

#endif
