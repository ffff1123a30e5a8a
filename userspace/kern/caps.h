/* SPDX-License-Identifier: BSD-2-Clause */
/* The capabilities of this process, and the error message when one is missing. */
#ifndef SFBPF_KERN_CAPS_H
#define SFBPF_KERN_CAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cap_need {
	const char *name; /* "CAP_BPF" */
	int number;	  /* linux/capability.h */
	const char *why;
};

const struct cap_need *caps_needed(unsigned int i); /* NULL after the last one */
/* Capabilities in another user namespace than the host's do not count for BPF and perf events. */
bool caps_in_user_namespace(void);
bool caps_have(int number); /* whether it is in the effective set, and counts */
/* One line: the refused operation, the missing capabilities, and the two ways to get them. */
void caps_explain(char *text, size_t cap, const char *refused);
/*
 * The capabilities (PRIVS_CAP) that the rest of the run needs: for perf events, tables, mapped
 * files and names.
 */
uint64_t caps_needed_mask(void);
/*
 * Whether kernel.perf_event_paranoid is above 2. Such values are not defined upstream; patched
 * kernels, such as Debian's, then require CAP_SYS_ADMIN to open an event.
 */
bool caps_events_restricted(void);
/* caps_needed_mask(), and the capabilities to open events. */
uint64_t caps_opening_mask(void);
/*
 * Permanently drops all capabilities except caps_needed_mask() and `more` (PRIVS_CAP), in this
 * thread and in the threads that it starts from now on. 0 or -errno.
 */
int caps_keep_needed(uint64_t more);

#endif
