// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/*
 * The same programs once more, for kernels before 6.2, without bpf_rdonly_cast. It is no matter of a knob: where libbpf (1.1) does not find a
 * function in the kernel's BTF, it looks into that of all modules, which only CAP_SYS_ADMIN can.
 */
#define SF_NO_CAST 1
#include "sfbpf.bpf.c"
