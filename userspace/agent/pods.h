/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pods of a node, as the kubelet lists them: v1.PodList in JSON. Ids are those that cgroups
 * have in their paths (agent/target.h).
 */
#ifndef SFBPF_AGENT_PODS_H
#define SFBPF_AGENT_PODS_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/config.h"

/* Sizes with NUL. Kubernetes' limits: names of pods and nodes have 253 bytes, others 63. */
#define POD_NAME   256
#define POD_LABEL  64 /* namespaces, containers and values of labels */
#define POD_LABELS 8

struct pod_names { /* clean text (base/text.h), zeroed after it; "": none */
	char pod[POD_NAME], node[POD_NAME];
	char space[POD_LABEL], container[POD_LABEL];
	char service[POD_LABEL];	    /* the label that names a service */
	char labels[POD_LABELS][POD_LABEL]; /* values, in the order of agent_config.pod_keys */
};

struct pods;

/*
 * Time and memory are limited by len. cfg: which labels. 0; -EINVAL: this is no list of pods, or
 * not all of one; -ENOMEM.
 */
int pods_parse(const char *text, size_t len, const struct agent_config *cfg, struct pods **ret);
void pods_free(struct pods *p);
/*
 * The names of a container. Of an id that is not listed: those of the pod alone, if its uid is.
 * p may be NULL.
 */
enum pods_found { PODS_NONE, PODS_POD, PODS_CONTAINER };
enum pods_found pods_find(const struct pods *p, const char *container, const char *uid,
			  struct pod_names *ret);
size_t pods_count(const struct pods *p);
size_t pods_containers(const struct pods *p);

#endif
