/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions of Go's runtime that change stacks. Where the other stack is depends on the version of
 * Go and on how the program was linked, so it is read from the functions' own code: a few
 * instructions that have been the same since Go 1.17. What is not recognised gets no row.
 */
#ifndef SFBPF_READERS_GO_SWITCH_H
#define SFBPF_READERS_GO_SWITCH_H

#include "readers/go_rows.h"

/* Fills g->special and g->rules from g->table. 0 or -ENOMEM. */
int go_switch_find(struct go_rows *g, const struct elf_image *img);

#endif
