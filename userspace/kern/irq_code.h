/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the kernel's code is that runs for interrupts: there the interrupted task did not wake. */
#ifndef SFBPF_KERN_IRQ_CODE_H
#define SFBPF_KERN_IRQ_CODE_H

#include "sym/symbolizer.h"

struct irq_code { /* 0: not found */
	uint64_t irq_start, irq_end, softirq_start, softirq_end;
};

/* name: of kernel addresses, for kernels that hide those of /proc/kallsyms (kptr_restrict). */
void irq_code_find(symbolizer_kernel_fn name, void *ctx, struct irq_code *ret);
/* As irq_code_find, but by names alone, without kallsyms. Takes some tenths of a second. */
void irq_code_search(symbolizer_kernel_fn name, void *ctx, struct irq_code *ret);

#endif
