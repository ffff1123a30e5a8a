/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SFBPF_WORKER_JAIL_FILES_H
#define SFBPF_WORKER_JAIL_FILES_H

/*
 * Lets this thread, and those that it starts, open only files below dir, and only for reading
 * (Landlock). Needs no_new_privs (worker/privs.h). 0; -ENOSYS, -EOPNOTSUPP: the kernel has no
 * Landlock.
 */
int jail_files(int dir);

#endif
