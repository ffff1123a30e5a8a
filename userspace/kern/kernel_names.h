/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of kernel addresses whose code comes and goes: BPF programs, trampolines and modules. The
 * kernel gives their memory to others, so a name belongs to an address at a time. A sample's
 * address is replaced by a word (base/kernel_word.h) when the sample arrives: with the name of what
 * was there between the previous round of samples and now. If two things were, the word has the
 * name "[replaced code]". Addresses of the kernel itself stay as they are.
 */
#ifndef SFBPF_KERN_KERNEL_NAMES_H
#define SFBPF_KERN_KERNEL_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kern/ksymbols.h"

/* Writes "name" or "name [module]" of what is at addr now. false: nothing is known there. */
typedef bool (*kernel_ask_fn)(void *ctx, uint64_t addr, char *ret, size_t cap);

struct kernel_names;

/* modules: /proc/modules. NULL: out of memory. */
struct kernel_names *kernel_names_new(kernel_ask_fn ask, void *ctx, const char *modules);
void kernel_names_free(struct kernel_names *kn);
/* Has the kernel report changes, also on CPUs that are new. 0 or -errno: it does not. */
int kernel_names_follow(struct kernel_names *kn, int ncpus);
/* Call before each round of samples. */
void kernel_names_round(struct kernel_names *kn, uint64_t now_ns);
/* time_ns: of the sample; 0: not known. now_ns: CLOCK_MONOTONIC. */
uint64_t kernel_names_word(struct kernel_names *kn, uint64_t addr, uint64_t time_ns,
			   uint64_t now_ns);
/* The name of a word with a number. false: it has none. */
bool kernel_names_get(const struct kernel_names *kn, uint64_t word, char *ret, size_t cap);
/* What ksymbols_read reports; for tests. */
void kernel_names_see(void *kn, const struct ksymbol *s);

#endif
