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
 * Keeps the capabilities of `keep` (PRIVS_CAP) that the thread has, as permitted and effective.
 * Empties the inheritable and ambient sets. Removes all but `keep` from the bounding set, if the
 * thread has CAP_SETPCAP. Programs that the thread starts gain no capabilities (no_new_privs). 0 or
 * -errno.
 */
int privs_keep(uint64_t keep);

#endif
