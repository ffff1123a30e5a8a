/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel's functions from /proc/kallsyms: vmlinux, modules, BPF programs. */
#ifndef SFBPF_SYM_SYM_KERNEL_H
#define SFBPF_SYM_SYM_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SYM_KERNEL_PATH "/proc/kallsyms"

struct sym_kernel;

/* 0 with an empty table if all addresses read as 0 (kptr_restrict); -errno of the open, -ENOMEM, -EIO. */
int sym_kernel_load(const char *path, struct sym_kernel **ret);
void sym_kernel_free(struct sym_kernel *k);
/* The function's name or NULL. *ret_module: "[kernel]", "[ext4]", "[bpf]". Both live as long as k. */
const char *sym_kernel_find(const struct sym_kernel *k, uint64_t addr, const char **ret_module);
uint32_t sym_kernel_count(const struct sym_kernel *k);
size_t sym_kernel_bytes(const struct sym_kernel *k);

#endif
