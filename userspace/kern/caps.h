/* SPDX-License-Identifier: BSD-2-Clause */
/* Capabilities of this process, and what to say when one is missing. */
#ifndef SFBPF_KERN_CAPS_H
#define SFBPF_KERN_CAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cap_need {
	const char *name;	/* "CAP_BPF" */
	int number;		/* linux/capability.h */
	const char *why;
};

const struct cap_need *caps_needed(unsigned int i);	/* NULL behind the last one */
bool caps_have(int number);				/* in the effective set */
/* One line: what was refused, which capabilities are missing, the two ways to get them. */
void caps_explain(char *text, size_t cap, const char *refused);
/* Those that everything which is still to come takes (PRIVS_CAP): perf events, tables, mapped files, names. */
uint64_t caps_needed_mask(void);
/* Above 2, kernel.perf_event_paranoid has no meaning of the kernel's own: patched ones, such as Debian's, then want CAP_SYS_ADMIN for an event. */
bool caps_events_restricted(void);
/* The same while events are still to be opened. */
uint64_t caps_opening_mask(void);
/*
 * Gives up all others but `more` (PRIVS_CAP), for good, in this thread and in those that it starts from now on. 0 or -errno.
 */
int caps_keep_needed(uint64_t more);

#endif
