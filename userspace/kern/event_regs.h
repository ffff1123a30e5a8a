/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registers and arguments of functions, as probes see them: by their offsets in struct pt_regs.
 * Calling conventions: System V ABI, AMD64; AAPCS64; Go's internal ABI
 * (src/cmd/compile/abi-internal.md, Go 1.17 and later). Operands of USDT probes are those of the
 * assembler: -4@$5, 8@%rdi,
 * 4@-12(%rbp,%rax,4); 8@x0, 4@[sp, 12].
 */
#ifndef SFBPF_KERN_EVENT_REGS_H
#define SFBPF_KERN_EVENT_REGS_H

#include <stdbool.h>

#include "border/sfbpf_shared.h"

/* Argument n, from 1 on, that is passed in a register; -1: there is none. */
int event_argument(unsigned int n, bool go);
int event_result(void); /* where functions return a number */
/* Argument n, from 1 on, of a USDT probe. 0; -ENOENT: it has fewer; -EINVAL: a form not known. */
int event_usdt_argument(const char *args, unsigned int n, struct sf_event_site *ret);

#endif
