/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libFuzzer target: the kubelet's list of pods. Built by scripts/fuzz.sh.
 *
 * Promises: all names are clean and end within their room; each container that is found has a pod.
 */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/* It is part of the agent, which targets are built without. */
#include "agent/pods.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const char *text, size_t cap)
{
	char again[POD_NAME];
	size_t len = strnlen(text, cap);

	if (len >= cap)
		abort();
	text_clean(again, cap, text, len, 0);
	if (strcmp(again, text))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct agent_pair keys[] = { { "k8s.pod.label.a", "a" },
					    { "k8s.pod.label.b", "b" } };
	static char service[] = "app";
	const struct agent_config cfg = { .service_label = service, .pod_keys = { keys, 2, 2 } };
	struct pod_names n;
	struct pods *p;

	if (pods_parse((const char *)data, size, &cfg, &p))
		return 0;
	for (size_t i = 0; i < p->ncontainers; i++) {
		if (pods_find(p, p->containers[i].id, "", &n) != PODS_CONTAINER || !*n.pod)
			abort();
		check(n.pod, sizeof(n.pod));
		check(n.node, sizeof(n.node));
		check(n.space, sizeof(n.space));
		check(n.container, sizeof(n.container));
		check(n.service, sizeof(n.service));
		check(n.labels[0], sizeof(n.labels[0]));
	}
	for (size_t i = 0; i < p->n; i++)
		check(p->list[i].uid, sizeof(p->list[i].uid));
	pods_free(p);
	return 0;
}
