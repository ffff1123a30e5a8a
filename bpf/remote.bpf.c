// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/*
 * offcpu.bpf.c, but reading the user memory of a sleeping task, with helpers that may sleep. Only
 * off_last is loaded from this object, on the maps of the off-CPU object. Both objects have the
 * same globals at the same offsets.
 */
#define SF_REMOTE 1
#include "offcpu.bpf.c"
