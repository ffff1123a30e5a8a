/* SPDX-License-Identifier: BSD-2-Clause */
/* What include and exclude leave of the agent's windows. */
#include "agent/rules.h"

#include <errno.h>

#include "base/process.h"
#include "samples.h"
#include "test.h"

/* "include unit=a*" sets a key; the configuration is checked. */
static struct agent_config *config(const char *const *pairs)
{
	struct agent_config *c = agent_config_new();
	struct agent_config_error err;
	const struct agent_key *k;

	for (; *pairs; pairs++)
		for (size_t i = 0; (k = agent_key_at(i)); i++)
			if (!strncmp(*pairs, k->name, 7) && (*pairs)[7] == ' ' && !k->name[7])
				EXPECT_EQ(agent_config_set(c, i, *pairs + 8, &err), 0);
	return c;
}

static struct rules *rules_of(const char *const *pairs)
{
	struct agent_config *c = config(pairs);
	struct agent_config_error err;
	struct rules *r;

	EXPECT_EQ(rules_check(c, &err), 0);
	r = rules_new(c);
	agent_config_free(c);
	return r;
}

#define RULES(...) rules_of((const char *const[]){ __VA_ARGS__, NULL })

static const struct target nginx = { .service = "nginx", .unit = "nginx.service" };
static const struct target web = { .container = "0123456789abcdef",
				   .container_name = "web",
				   .pod = "11111111-2222" };
static const struct pod_names names = { .pod = "web-1", .space = "prod", .container = "web" };

static const struct rules_task in_unit = { &nginx, NULL, "/system.slice/nginx.service", "nginx",
					   33 };
static const struct rules_task in_pod = { &web, &names, "/kubepods/pod1/0123", "sh",
					  PROCESS_NO_USER };

static void expect(struct rules *r, const struct rules_task *t, bool want, bool never)
{
	EXPECT_EQ(rules_want(r, t), want);
	EXPECT_EQ(rules_never(r, t), never);
	rules_free(r);
}

TEST(rules_match)
{
	static const char *const all[] = { "exclude pod=web-*",		"exclude pod=11111111-*",
					   "exclude namespace=prod",	"exclude container=web",
					   "exclude container=0123*",	"exclude cgroup=/kubepods",
					   "exclude cgroup=/kube*/pod1" };

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		expect(RULES(all[i]), &in_pod, false, true);
		expect(RULES(all[i]), &in_unit, true, false);
	}
	expect(RULES("exclude unit=nginx"), &in_unit, false, true);
	expect(RULES("exclude unit=redis, ngin?.service"), &in_unit, false, true);
	expect(RULES("exclude unit=nginx"), &in_pod, true, false);
	expect(RULES("exclude cgroup=/kube"), &in_pod, true, false);
	expect(RULES("exclude comm=ng*"), &in_unit, false, false);
	expect(RULES("exclude user=33"), &in_unit, false, false);
	expect(RULES("exclude user=33"), &in_pod, true, false);
}

TEST(rules_include)
{
	expect(RULES("include unit=nginx"), &in_unit, true, false);
	expect(RULES("include unit=nginx"), &in_pod, false, true);
	/* A thread of that name may be in any cgroup. */
	expect(RULES("include unit=nginx", "include comm=sh"), &in_pod, true, false);
	expect(RULES("include unit=x", "include comm=y"), &in_pod, false, false);
	expect(RULES("include namespace=prod", "exclude container=web"), &in_pod, false, true);
	EXPECT(!rules_of((const char *const[]){ NULL }));
}

TEST(rules_wrong)
{
	static const char *const wrong[] = { "exclude colour=red", "include user=no-such-user",
					     "exclude unit=", "exclude unit= , " };
	struct agent_config_error err;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct agent_config *c = config((const char *const[]){ wrong[i], NULL });

		EXPECT_EQ(rules_check(c, &err), -EINVAL);
		EXPECT(*err.text);
		agent_config_free(c);
	}
}

static uint64_t left(const struct window *w, const char *comm)
{
	struct profile_stack s;
	uint64_t sum = 0;

	for (size_t g = 0; g < w->ngroups; g++) {
		for (size_t i = 0; i < profile_count(w->groups[g].profile); i++) {
			profile_stack(w->groups[g].profile, i, &s);
			sum += strcmp(s.comm, comm) ? 0 : s.count;
		}
	}
	return sum;
}

static void add(struct window *w, const char *comm, int times)
{
	struct sf_sample *rec = calloc(1, sizeof(*rec) + 8);

	*rec = (struct sf_sample){ .type = SF_REC_SAMPLE,
				   .pid = 7,
				   .tid = 7,
				   .weight = 1,
				   .n_user = 1,
				   .flags = SF_SAMPLE_USER };
	strcpy(rec->comm, comm);
	rec->frames[0] = ROW(1, 0x10);
	while (times-- > 0)
		window_add(w, rec);
	free(rec);
}

static void count(void *ctx, uint64_t cgroup_id)
{
	(void)cgroup_id;
	++*(int *)ctx;
}

/* The rest is kept, to the last sample. Cgroups without an id are not reported. */
TEST(rules_window)
{
	struct targets *targets = targets_new("host", NULL);
	struct rules *r = RULES("exclude comm=bad*, worse");
	struct window w = { 0 };
	int never = 0;

	window_open(&w, targets, 0, 19);
	add(&w, "good", 3);
	add(&w, "bad-1", 4);
	add(&w, "worse", 5);
	add(&w, "good", 2);
	EXPECT_EQ(rules_apply(r, &w, count, &never), 0);
	EXPECT_EQ(w.samples, 5);
	EXPECT_EQ(w.excluded, 9);
	EXPECT_EQ(left(&w, "good"), 5);
	EXPECT_EQ(left(&w, "bad-1") + left(&w, "worse"), 0);
	EXPECT_EQ(never, 0);
	window_free(&w);
	rules_free(r);
	r = RULES("include unit=nginx");
	window_open(&w, targets, 0, 19);
	add(&w, "good", 3);
	EXPECT_EQ(rules_apply(r, &w, count, &never), 0);
	EXPECT_EQ(w.samples + w.ngroups, 0);
	window_free(&w);
	rules_free(r);
	targets_free(targets);
}
