/* SPDX-License-Identifier: BSD-2-Clause */
/* What keeps this process from seeing the whole host: namespaces of a container, capabilities. */
#ifndef SFBPF_KERN_HOST_GAPS_H
#define SFBPF_KERN_HOST_GAPS_H

#include <stdbool.h>
#include <stddef.h>

struct host_gap {
	const char *id;	  /* "pid_namespace" */
	const char *what; /* what follows from it */
	const char *fix;
};

/* All that are looked for; NULL after the last one. */
const struct host_gap *host_gap_at(size_t i);
/* Whether gap i is there now. */
bool host_gap_open(size_t i);

#define HOST_GAP_PID_NAMESPACE 0

#endif
