/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The places of tracepoints and probes (kern/events.h), opened and attached. The kernel runs the
 * programs of such a place on all CPUs, so one perf event is opened for each place, not for each
 * CPU. Opening may need capabilities that are given up before attaching.
 */
#ifndef SFBPF_KERN_EVENT_LINKS_H
#define SFBPF_KERN_EVENT_LINKS_H

#include <bpf/libbpf.h>

#include "kern/events.h"

struct event_link {
	const struct event *event;
	const struct event_place *place;
	int fd;		       /* -1: not open */
	struct bpf_link *link; /* owns fd; NULL: not attached */
};

struct event_links { /* zeroed: empty */
	struct event_link *v;
	size_t n;
};

/*
 * pid: the only process whose hits are wanted, so that no other one meets the probes; 0: there may
 * be several. 0 or -errno; *ret_failed: the event that cannot be opened.
 */
int event_links_open(struct event_links *l, const struct events *e, uint32_t pid,
		     const struct event **ret_failed);
/*
 * programs: indexed by enum event_from. The cookies are the numbers of the places in event_sites,
 * from `first` on. 0 or -errno.
 */
int event_links_attach(struct event_links *l, const struct bpf_program *const *programs,
		       size_t first);
void event_links_close(struct event_links *l);

#endif
