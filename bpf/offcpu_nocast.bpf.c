// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/* offcpu.bpf.c for kernels before 6.2: see nocast.bpf.c. */
#define SF_NO_CAST 1
#include "offcpu.bpf.c"
