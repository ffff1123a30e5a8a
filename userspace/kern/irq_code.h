/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the kernel's code is that runs for interrupts: there the interrupted task did not wake. */
#ifndef SFBPF_KERN_IRQ_CODE_H
#define SFBPF_KERN_IRQ_CODE_H

#include <stdio.h>

#include "sym/symbolizer.h"

/*
 * How interrupts enter the kernel. IRQ_IDT (x86): by code of their own. IRQ_FRED (x86): from kernel
 * mode by the code of exceptions, from user mode by that of system calls. IRQ_ARM64: by code of
 * their own for each mode.
 */
enum irq_entry { IRQ_IDT, IRQ_FRED, IRQ_ARM64 };

/*
 * What bpf/offcpu/off_stack.bpf.h needs to tell an interrupt by its frames. 0: not found.
 *
 *		irq			softirq
 * IRQ_IDT	the entry code		the function that runs softirqs
 * IRQ_FRED	that from kernel mode	the same range as irq, which no other has
 * IRQ_ARM64	that from kernel mode	the entry code from 64-bit user mode
 */
struct irq_code {
	uint64_t irq_start, irq_end, softirq_start, softirq_end;
};

/* name: of kernel addresses, for kernels that hide those of /proc/kallsyms (kptr_restrict). */
void irq_code_find(symbolizer_kernel_fn name, void *ctx, struct irq_code *ret);
/* Reads the text of /proc/kallsyms. */
void irq_code_read(FILE *kallsyms, enum irq_entry entry, struct irq_code *ret);
/* Searches by names alone, without kallsyms. IRQ_IDT only. Takes some tenths of a second. */
void irq_code_search(symbolizer_kernel_fn name, void *ctx, struct irq_code *ret);

#endif
