/* SPDX-License-Identifier: BSD-2-Clause */
/* A row's rule in 16 bits, for each architecture; the layouts are in sfbpf_shared.h. */
#ifndef SFBPF_ROWS_PACK_RULE_H
#define SFBPF_ROWS_PACK_RULE_H

#include <stdbool.h>
#include <stdint.h>

#include "border/sfbpf_shared.h"
#include "rows/row.h"

/* SF_RULE_INDEXED: it does not fit. tracks_bx (x86-64): rows of this file say where rbx is. */
uint16_t pack_rule(enum row_arch arch, const struct row *r, bool tracks_bx);

#endif
