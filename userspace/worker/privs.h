/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Drops capabilities(7) permanently, of the calling thread and of the threads and programs that it
 * starts from now on.
 */
#ifndef SFBPF_WORKER_PRIVS_H
#define SFBPF_WORKER_PRIVS_H

#include <stdint.h>

#define PRIVS_CAP(number) (1ull << (number))

#define NOBODY 65534 /* the user and the group without rights, on all distributions */

/*
 * Keeps only the capabilities in `keep` (PRIVS_CAP) permitted and effective, of those that we have.
 * No capability stays inheritable or ambient. All others leave the bounding set, if we may change
 * it. Programs that we start gain no capabilities (no_new_privs). 0 or -errno.
 */
int privs_keep(uint64_t keep);

#endif
