/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asks the kubelet of this node for its pods, in a thread of its own without capabilities: when a
 * container is seen that is not known, and not more often than every kubelet-interval. A kubelet
 * that does not answer delays nothing; it is asked again after twice the time, up to 30 intervals.
 */
#ifndef SFBPF_AGENT_KUBELET_H
#define SFBPF_AGENT_KUBELET_H

#include "agent/pods.h"

struct kubelet;

struct kubelet_totals {
	bool on;		   /* configured */
	bool answers;		   /* the last request had an answer that was used */
	uint64_t answered, failed; /* requests */
	uint64_t pods, containers; /* counts in the last answer */
};

/*
 * Starts, stops or restarts *k as cfg says; what is known stays if cfg says the same as before. 0,
 * or -EAGAIN: out of memory, or no thread can be started.
 */
int kubelet_follow(struct kubelet **k, const struct agent_config *cfg, void (*on_thread)(void));
void kubelet_stop(struct kubelet *k); /* ends a request that is under way */
/*
 * What is known of a container. If it is not known as one, the kubelet will be asked, less and less
 * often for the same container.
 */
enum pods_found kubelet_find(struct kubelet *k, const char *container, const char *uid,
			     struct pod_names *ret);
struct kubelet_totals kubelet_totals(struct kubelet *k); /* k may be NULL */

#endif
