// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/*
 * The same programs once more, for kernels without BTF: no kernel functions, no typed pointers, no iterators. What is loaded
 * from here is the on-CPU half; both objects have the same programs, maps and globals.
 */
#define SF_PLAIN 1
#define SF_NO_CAST 1
#include "sfbpf.bpf.c"
