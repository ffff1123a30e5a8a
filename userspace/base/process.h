/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SFBPF_BASE_PROCESS_H
#define SFBPF_BASE_PROCESS_H

#include <stdint.h>

#define PROCESS_NO_USER UINT32_MAX

/*
 * When a process was started, in the kernel's ticks: tells it from a later one with the same pid.
 * 0: it is gone.
 */
uint64_t process_started(uint32_t pid);
/* Where its first thread's stack began, which differs from image to image. 0: not known. */
uint64_t process_start_stack(uint32_t pid);
/* Its real user. PROCESS_NO_USER: it is gone. */
uint32_t process_user(uint32_t pid);

#endif
