/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* The user registers of a task, by architecture. */
#ifndef SFBPF_REGS_BPF_H
#define SFBPF_REGS_BPF_H

#if defined(__TARGET_ARCH_x86)
#include "core/regs_x86.bpf.h"
#elif defined(__TARGET_ARCH_arm64)
#include "core/regs_arm64.bpf.h"
#else
#error "no regs_ARCH.bpf.h for this architecture"
#endif

#endif
