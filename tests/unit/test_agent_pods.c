/* SPDX-License-Identifier: BSD-2-Clause */
/* The kubelet's list of pods, hostile ones too, and what becomes of targets and labels. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/body.h"
#include "agent/pods.h"
#include "agent/target.h"
#include "agent/window.h"
#include "base/clock.h"
#include "base/num.h"
#include "test.h"

#define ID_A "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define ID_B "1123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define ID_C "2123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static const char two_pods[] =
	"{\"kind\":\"PodList\",\"metadata\":{},\"items\":[{"
	"\"status\":{\"phase\":\"Running\",\"containerStatuses\":["
	"{\"name\":\"app\",\"state\":{\"running\":{}},\"lastState\":{\"terminated\":{"
	"\"containerID\":\"containerd://" ID_C "\"}},\"containerID\":\"containerd://" ID_A "\"},"
	"{\"name\":\"waiting\"}],"
	"\"initContainerStatuses\":[{\"containerID\":\"cri-o://" ID_B "\",\"name\":\"init\"}]},"
	"\"metadata\":{\"name\":\"cart-5d9c-x2\",\"namespace\":\"shop\",\"uid\":\"0a1b-2c3d\","
	"\"labels\":{\"app.kubernetes.io/name\":\"cart\",\"team\":\"\\u00e4\","
	"\"other\":\"x\"},\"annotations\":{\"a\":\"{\\\"b\\\":1}\"}},"
	"\"spec\":{\"nodeName\":\"node-1\",\"containers\":[{\"name\":\"app\"}]}},"
	"{\"metadata\":{\"name\":\"plain\",\"namespace\":\"default\",\"uid\":\"uid-2\"},"
	"\"status\":{\"containerStatuses\":[{\"name\":\"main\",\"containerID\":\"docker://" ID_C
	"\"}]}}]}\n";

static struct agent_config *config(void)
{
	struct agent_config *c = agent_config_new();
	struct agent_config_error err = { 0 };
	static const char *const set[][2] = { { "kubelet", "http://127.0.0.1:10255" },
					      { "pod-labels", "team, tier" } };

	for (size_t i = 0; i < 2; i++)
		for (size_t k = 0; agent_key_at(k); k++)
			if (!strcmp(agent_key_at(k)->name, set[i][0]))
				EXPECT_EQ(agent_config_set(c, k, set[i][1], &err), 0);
	EXPECT_EQ(agent_config_check(c, &err), 0);
	EXPECT_STR(err.text, "");
	return c;
}

TEST(a_list_of_pods)
{
	struct agent_config *c = config();
	struct pod_names n;
	struct pods *p;

	EXPECT_EQ(pods_parse(two_pods, strlen(two_pods), c, &p), 0);
	EXPECT_EQ(pods_count(p), 2);
	EXPECT_EQ(pods_containers(p), 3);
	EXPECT_EQ(pods_find(p, ID_A, "", &n), PODS_CONTAINER);
	EXPECT_STR(n.pod, "cart-5d9c-x2");
	EXPECT_STR(n.space, "shop");
	EXPECT_STR(n.container, "app");
	EXPECT_STR(n.node, "node-1");
	EXPECT_STR(n.service, "cart");
	EXPECT_STR(n.labels[0], "\xc3\xa4");
	EXPECT_STR(n.labels[1], "");
	EXPECT_EQ(pods_find(p, ID_B, "", &n), PODS_CONTAINER);
	EXPECT_STR(n.container, "init");
	EXPECT_EQ(pods_find(p, ID_C, "", &n), PODS_CONTAINER);
	EXPECT_STR(n.pod, "plain");
	EXPECT_STR(n.service, "");
	EXPECT_EQ(pods_find(p, "ffff", "0a1b-2c3d", &n), PODS_POD);
	EXPECT_STR(n.pod, "cart-5d9c-x2");
	EXPECT_STR(n.container, "");
	EXPECT_EQ(pods_find(p, "ffff", "0a1b", &n), PODS_NONE);
	EXPECT_EQ(pods_find(p, "", "", &n), PODS_NONE);
	EXPECT_EQ(pods_find(NULL, ID_A, "uid-2", &n), PODS_NONE);
	pods_free(p);
	agent_config_free(c);
}

TEST(no_part_of_a_list_is_used)
{
	struct agent_config *c = config();
	static const char *const bad[] = { "",
					   "Unauthorized",
					   "[]",
					   "{}",
					   "null",
					   "{\"items\":",
					   "{\"items\":[{\"metadata\":{\"name\":\"a\"",
					   "{\"kind\":\"Status\",\"code\":401}",
					   "{\"items\":[}" };
	struct pods *p;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		EXPECT_EQ(pods_parse(bad[i], strlen(bad[i]), c, &p), -EINVAL);
		EXPECT(!p);
	}
	/* The list ends two bytes before the text does: '}' and a line feed. */
	for (size_t len = 0; len < strlen(two_pods) - 1; len++) {
		char *cut = malloc(len + 1); /* for the address sanitizer: nothing follows */

		memcpy(cut, two_pods, len);
		EXPECT_EQ(pods_parse(cut, len, c, &p), -EINVAL);
		free(cut);
	}
	EXPECT_EQ(pods_parse("{\"items\":null}", 14, c, &p), 0);
	EXPECT_EQ(pods_count(p), 0);
	pods_free(p);
	agent_config_free(c);
}

/* Repeats `unit` after `head` until there are `total` bytes, and ends with `tail`. */
static char *repeated(const char *head, const char *unit, const char *tail, size_t total)
{
	size_t len = strlen(head), n = strlen(unit);
	char *text = malloc(total + n + strlen(tail) + 1);

	strcpy(text, head);
	for (; len < total; len += n)
		memcpy(text + len, unit, n + 1);
	strcpy(text + len, tail);
	return text;
}

static double parse_seconds(const char *text, int want)
{
	struct agent_config *c = config();
	uint64_t start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	struct pods *p;

	EXPECT_EQ(pods_parse(text, strlen(text), c, &p), want);
	EXPECT(pods_count(p) <= 4096);
	EXPECT(pods_containers(p) <= 16384);
	pods_free(p);
	agent_config_free(c);
	return (double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - start) / 1e9;
}

TEST(hostile_lists_take_time_in_proportion)
{
	static const char container[] = "{\"name\":\"c\",\"containerID\":\"x://" ID_A "\"},";
	static const struct {
		const char *head, *unit, *tail;
		int want;
	} cases[] = {
		{ "{\"items\":[{}", ",{}", "]}", 0 },
		{ "{\"items\":[{\"metadata\":{}}", ",{\"metadata\":{\"name\":\"a\",\"uid\":\"b\"}}",
		  "]}", 0 },
		{ "{\"items\":[{\"metadata\":{\"name\":\"a\",\"uid\":\"b\"},\"status\":"
		  "{\"containerStatuses\":[",
		  container, "{}]}}]}", 0 },
		{ "{\"items\":[{\"metadata\":{\"name\":\"", "\\u0001\\n", "\",\"uid\":\"u\"}}]}",
		  0 },
		{ "{\"items\":[{\"metadata\":{\"labels\":{\"a\":1", ",\"team\":\"x\"", "}}}]}", 0 },
		{ "{\"items\":", "[", "", -EINVAL },
		{ "{\"x\":", "{\"x\":", "", -EINVAL },
		{ "{\"items\":[]", ",\"items\":[{}]", "}", 0 },
		{ "{\"items\":[],\"x\":\"", "\\ud800", "\"}", 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *text = repeated(cases[i].head, cases[i].unit, cases[i].tail, 16u << 20);
		double took = parse_seconds(text, cases[i].want);

		/* A twentieth of it is usual; sanitizers and old machines are slower. */
		if (took > 8)
			EXPECT_EQ(i, took);
		free(text);
	}
}

TEST(names_are_clean_and_fit)
{
	struct agent_config *c = config();
	char *name = repeated("", "n", "", 300), text[1024];
	struct pod_names n, again;
	struct pods *p;

	snprintf(text, sizeof(text),
		 "{\"items\":[{\"metadata\":{\"name\":\"%s\",\"name\":\"a\\u001b[31m\\u202e\","
		 "\"namespace\":\"%s\",\"uid\":\"u\",\"labels\":{\"team\":[1],\"tier\":\"\\u0000\"}"
		 "}}]}",
		 name, name);
	EXPECT_EQ(pods_parse(text, strlen(text), c, &p), 0);
	EXPECT_EQ(pods_find(p, "", "u", &n), PODS_POD);
	EXPECT_STR(n.pod, "a.[31m\xef\xbf\xbd");
	EXPECT_EQ(strlen(n.space), POD_LABEL - 1);
	EXPECT_STR(n.labels[0], "");
	EXPECT_STR(n.labels[1], "\xef\xbf\xbd");
	/* Of the first name nothing is left: equal names are equal bytes. */
	memset(&again, 0, sizeof(again));
	strcpy(again.pod, n.pod);
	EXPECT(!memcmp(again.pod, n.pod, sizeof(n.pod)));
	pods_free(p);
	free(name);
	agent_config_free(c);
}

/* ---- Targets and labels ---- */

struct seen {
	char text[1024];
};

static void on_label(void *ctx, const char *name, const char *value)
{
	struct seen *s = ctx;
	size_t len = strlen(s->text);

	snprintf(s->text + len, sizeof(s->text) - len, "%s=%s ", name, value);
}

TEST(labels_of_a_target_in_a_pod)
{
	struct agent_config *c = config();
	struct targets *t = targets_new("host", NULL);
	struct window w = { .targets = t };
	struct encode_input in = { .cfg = c, .host = "h", .window = &w };
	struct target context = { .service = "own" };
	struct pod_names n;
	struct seen s = { 0 };
	struct pods *p;
	uint32_t named;

	EXPECT_EQ(pods_parse(two_pods, strlen(two_pods), c, &p), 0);
	EXPECT_EQ(pods_find(p, ID_A, "", &n), PODS_CONTAINER);
	named = targets_in_pod(t, 0, &n);
	EXPECT(named != 0);
	EXPECT_EQ(targets_in_pod(t, 0, &n), named);
	body_labels(&in, targets_at(t, named), on_label, &s);
	EXPECT_STR(s.text, "service.name=cart host.name=h k8s.pod.name=cart-5d9c-x2 "
			   "k8s.namespace.name=shop k8s.container.name=app k8s.node.name=node-1 "
			   "k8s.pod.label.team=\xc3\xa4 ");
	/* The process's own name has precedence; without a label it is the container's. */
	EXPECT_STR(targets_at(t, targets_with(t, named, &context))->service, "own");
	EXPECT(targets_names(t, targets_at(t, targets_with(t, named, &context))) != NULL);
	EXPECT_EQ(pods_find(p, ID_C, "", &n), PODS_CONTAINER);
	EXPECT_STR(targets_at(t, targets_in_pod(t, 0, &n))->service, "main");
	/* Of the pod alone: the label, or what it was. */
	EXPECT_EQ(pods_find(p, "", "0a1b-2c3d", &n), PODS_POD);
	EXPECT_STR(targets_at(t, targets_in_pod(t, 0, &n))->service, "cart");
	EXPECT_EQ(pods_find(p, "", "uid-2", &n), PODS_POD);
	EXPECT_STR(targets_at(t, targets_in_pod(t, 0, &n))->service, "host");
	EXPECT(!targets_names(t, targets_at(t, 0)));
	pods_free(p);
	targets_free(t);
	agent_config_free(c);
}

TEST(more_targets_than_there_is_room_for)
{
	struct targets *t = targets_new("host", NULL);
	struct pod_names n = { 0 };
	uint32_t last = 1;

	for (int i = 0; i < 3000; i++) {
		snprintf(n.pod, sizeof(n.pod), "pod-%04d", i);
		last = targets_in_pod(t, 0, &n);
	}
	EXPECT_EQ(last, 0);
	targets_trim(t);
	EXPECT(targets_in_pod(t, 0, &n) != 0);
	targets_free(t);
}
