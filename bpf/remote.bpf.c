// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/*
 * The same programs once more, but user memory is that of a sleeping task, read by helpers that may sleep. Only
 * off_last is loaded from here, on the maps of the first object; both have the same globals in the same places.
 */
#define SF_REMOTE 1
#include "sfbpf.bpf.c"
