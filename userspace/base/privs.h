/* SPDX-License-Identifier: BSD-2-Clause */
/* Giving up rights, for good: capabilities(7) of the calling thread and of the threads and programs that it starts from now on. */
#ifndef SFBPF_BASE_PRIVS_H
#define SFBPF_BASE_PRIVS_H

#include <stdint.h>

#define PRIVS_CAP(number) (1ull << (number))

/*
 * Of those that we have, only the capabilities `keep` (PRIVS_CAP) stay permitted and effective; none is inheritable, ambient or,
 * as far as we may say so, in the bounding set but these. No program that we start gains any (no_new_privs). 0 or -errno.
 */
int privs_keep(uint64_t keep);

#endif
