// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/*
 * sfbpf.bpf.c for kernels before 6.2, without bpf_rdonly_cast. A knob does not suffice: if libbpf
 * (1.1) does not find a function in the kernel's BTF, it searches the BTF of all modules, which
 * needs CAP_SYS_ADMIN.
 */
#define SF_NO_CAST 1
#include "sfbpf.bpf.c"
