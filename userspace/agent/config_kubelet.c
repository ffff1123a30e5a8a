/* SPDX-License-Identifier: BSD-2-Clause */
/* The section [kubernetes]: what it must be, and a copy of it for the thread that uses it. */
#include "agent/config_kubelet.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/config_value.h"
#include "agent/pods.h"
#include "base/vec.h"

#define MAX_KEY 317 /* a prefix of 253 bytes, '/', a name of 63 */

static bool is_label_key(const char *key, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)key[i]) && !strchr("-_./", key[i]))
			return false;
	return len && len <= MAX_KEY;
}

/* Splits pod_labels. 0, -EINVAL or -ENOMEM. */
static int split_labels(struct agent_config *c, struct agent_config_error *err)
{
	const char *at = c->pod_labels;
	struct agent_pairs *p = &c->pod_keys;
	size_t len;

	for (; at && *at; at += len) {
		struct agent_pair *pair;

		at += strspn(at, ", ");
		len = strcspn(at, ", ");
		if (!len)
			break;
		if (!is_label_key(at, len))
			return config_fail(err, "pod-labels: '%.*s' is not the key of a label",
					   len > 400 ? 400 : (int)len, at);
		if (p->n == POD_LABELS)
			return config_fail(err, "pod-labels: more than %d", POD_LABELS);
		if (vec_reserve(&p->list, &p->cap, p->n + 1, sizeof(*p->list)))
			return -ENOMEM;
		pair = &p->list[p->n++];
		*pair = (struct agent_pair){ 0 };
		if (asprintf(&pair->name, "k8s.pod.label.%.*s", (int)len, at) < 0)
			pair->name = NULL;
		pair->value = strndup(at, len);
		if (!pair->name || !pair->value)
			return -ENOMEM;
	}
	return 0;
}

/* Keys that would do nothing, or the opposite of one another. */
static int check_others(const struct agent_config *c, struct agent_config_error *err)
{
	static const char *const others[] = { "kubelet-token-file", "kubelet-ca-file",
					      "kubelet-insecure",   "kubelet-interval",
					      "pod-labels",	    "service-label" };
	bool tls = c->kubelet && !strncmp(c->kubelet, "https:", 6);

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		/* kubelet = off says that the others are to do nothing. */
		if (!agent_config_given(c, others[i]) ||
		    (!c->kubelet && agent_config_given(c, "kubelet")))
			continue;
		if (!c->kubelet)
			return config_fail(err, "%s does nothing without kubelet", others[i]);
		if (i < 3 && !tls && (i < 2 || c->kubelet_insecure))
			return config_fail(err, "%s needs a kubelet that begins with https://",
					   others[i]);
	}
	if (c->kubelet_insecure && c->kubelet_ca)
		return config_fail(err, "kubelet-insecure and kubelet-ca-file contradict each "
					"other: without a check, nothing needs the certificate");
	return 0;
}

static int check_kubelet_url(const struct agent_config *c, struct agent_config_error *err)
{
	const char *host = strstr(c->kubelet, "://"), *path;

	if ((strncmp(c->kubelet, "http://", 7) && strncmp(c->kubelet, "https://", 8)) || !host[3])
		return config_fail(err, "kubelet: '%s' is not http[s]://HOST[:PORT]", c->kubelet);
	path = strchr(host + 3, '/');
	if ((path && path[1]) || strpbrk(host + 3, "@?#") || strlen(c->kubelet) > 1000)
		return config_fail(err, "kubelet: '%s' must not have a path, user or query",
				   c->kubelet);
	return config_check_url("kubelet", c->kubelet, err);
}

int config_check_kubelet(struct agent_config *c, struct agent_config_error *err)
{
	int rc;

	if (c->kubelet && !strcmp(c->kubelet, "off")) {
		free(c->kubelet);
		c->kubelet = NULL;
	}
	if (c->kubelet && (rc = check_kubelet_url(c, err)))
		return rc;
	if ((rc = check_others(c, err)) || !c->kubelet)
		return rc;
	if ((rc = config_check_readable("kubelet-token-file", c->kubelet_token, err)) ||
	    (rc = config_check_readable("kubelet-ca-file", c->kubelet_ca, err)))
		return rc;
	if (c->service_label && !is_label_key(c->service_label, strlen(c->service_label)))
		return config_fail(err, "service-label: '%.400s' is not the key of a label",
				   c->service_label);
	if (!c->service_label && config_set_string(&c->service_label, "app.kubernetes.io/name"))
		return -ENOMEM;
	return split_labels(c, err);
}

static bool copied(char **to, const char *from)
{
	return !from || !config_set_string(to, from);
}

struct agent_config *agent_config_kubelet(const struct agent_config *c)
{
	struct agent_config *copy = agent_config_new();
	struct agent_config_error err;

	if (!copy)
		return NULL;
	copy->kubelet_insecure = c->kubelet_insecure;
	copy->kubelet_interval_ns = c->kubelet_interval_ns;
	if (copied(&copy->kubelet, c->kubelet) && copied(&copy->kubelet_token, c->kubelet_token) &&
	    copied(&copy->kubelet_ca, c->kubelet_ca) && copied(&copy->pod_labels, c->pod_labels) &&
	    copied(&copy->service_label, c->service_label) && !split_labels(copy, &err))
		return copy;
	agent_config_free(copy);
	return NULL;
}

static bool same(const char *a, const char *b)
{
	return !strcmp(a ? a : "", b ? b : "");
}

bool agent_config_same_kubelet(const struct agent_config *a, const struct agent_config *b)
{
	return same(a->kubelet, b->kubelet) && same(a->kubelet_token, b->kubelet_token) &&
	       same(a->kubelet_ca, b->kubelet_ca) && same(a->pod_labels, b->pod_labels) &&
	       same(a->service_label, b->service_label) &&
	       a->kubelet_insecure == b->kubelet_insecure &&
	       a->kubelet_interval_ns == b->kubelet_interval_ns;
}
