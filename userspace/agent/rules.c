/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/rules.h"

#include <errno.h>
#include <fnmatch.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/config_value.h"
#include "base/container.h"
#include "base/idmap.h"
#include "base/num.h"
#include "base/process.h"
#include "base/vec.h"
#include "prof/process_users.h"

enum key { KEY_UNIT, KEY_POD, KEY_SPACE, KEY_CONTAINER, KEY_CGROUP, KEY_USER, KEY_COMM, KEYS };

/* The first keys are of cgroups, the last two of tasks in them. */
#define OF_CGROUPS KEY_USER

static const char *const names[KEYS] = { "unit",   "pod",  "namespace", "container",
					 "cgroup", "user", "comm" };

struct rule {
	enum key key;
	uint32_t user; /* KEY_USER */
	char *pattern;
};

struct rule_list {
	struct rule *v;
	size_t n, cap;
	bool of_tasks; /* some are of users or names of threads */
};

struct rules {
	struct rule_list include, exclude;
	struct process_users *users; /* NULL: no rule needs them */
};

/* ---- The configuration ---- */

/* KEYS: unknown */
static enum key key_named(const char *name)
{
	int k = 0;

	while (k < KEYS && strcmp(names[k], name) != 0)
		k++;
	return (enum key)k;
}

static bool user_named(const char *name, uint32_t *ret)
{
	const struct passwd *pw;
	uint64_t id;

	if (!num_u64(name, 0, UINT32_MAX - 1, &id)) {
		*ret = (uint32_t)id;
		return true;
	}
	pw = getpwnam(name);
	if (pw)
		*ret = pw->pw_uid;
	return pw;
}

/* The next pattern of a list, without the spaces around it. NULL: after the last one */
static char *next_pattern(const char **list)
{
	const char *s = *list + strspn(*list, ", "), *end = s + strcspn(s, ",");

	*list = end;
	while (end > s && end[-1] == ' ')
		end--;
	return end > s ? strndup(s, (size_t)(end - s)) : NULL;
}

static int check_list(const char *section, const struct agent_pairs *p,
		      struct agent_config_error *err)
{
	for (size_t i = 0; i < p->n; i++) {
		const char *list = p->list[i].value;
		enum key key = key_named(p->list[i].name);
		uint32_t user;
		char *pattern;
		int rc = 0;

		if (key == KEYS)
			return config_fail(err,
					   "%s: '%s' is not unit, pod, namespace, container, "
					   "cgroup, user or comm",
					   section, p->list[i].name);
		pattern = next_pattern(&list);
		if (!pattern)
			return config_fail(err, "%s %s: there is no pattern", section, names[key]);
		for (; pattern && !rc; pattern = next_pattern(&list)) {
			if (key == KEY_USER && !user_named(pattern, &user))
				rc = config_fail(err, "%s user: there is no user '%s'", section,
						 pattern);
			free(pattern);
		}
		if (rc)
			return rc;
	}
	return 0;
}

int rules_check(const struct agent_config *c, struct agent_config_error *err)
{
	int rc = check_list("include", &c->include, err);

	return rc ? rc : check_list("exclude", &c->exclude, err);
}

bool rules_any(const struct agent_config *c)
{
	return c->include.n || c->exclude.n;
}

static bool add_list(struct rule_list *l, const struct agent_pairs *p)
{
	for (size_t i = 0; i < p->n; i++) {
		const char *list = p->list[i].value;
		char *pattern;

		while ((pattern = next_pattern(&list))) {
			struct rule rule = { .key = key_named(p->list[i].name),
					     .pattern = pattern };

			if ((rule.key == KEY_USER && !user_named(pattern, &rule.user)) ||
			    vec_reserve(&l->v, &l->cap, l->n + 1, sizeof(*l->v))) {
				free(pattern);
				return false;
			}
			l->of_tasks |= rule.key >= OF_CGROUPS;
			l->v[l->n++] = rule;
		}
	}
	return true;
}

static bool has_users(const struct rule_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->v[i].key == KEY_USER)
			return true;
	return false;
}

struct rules *rules_new(const struct agent_config *c)
{
	struct rules *r = rules_any(c) ? calloc(1, sizeof(*r)) : NULL;
	bool users;

	if (!r)
		return NULL;
	if (add_list(&r->include, &c->include) && add_list(&r->exclude, &c->exclude)) {
		users = has_users(&r->include) || has_users(&r->exclude);
		r->users = users ? process_users_new() : NULL;
		if (r->users || !users)
			return r;
	}
	rules_free(r);
	return NULL;
}

static void free_list(struct rule_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->v[i].pattern);
	free(l->v);
}

void rules_free(struct rules *r)
{
	if (!r)
		return;
	free_list(&r->include);
	free_list(&r->exclude);
	process_users_free(r->users);
	free(r);
}

/* ---- Matching ---- */

static bool is_like(const char *pattern, const char *text)
{
	return *text && !fnmatch(pattern, text, 0);
}

static bool is_unit(const char *pattern, const char *unit)
{
	char bare[TARGET_TEXT];
	size_t n = strlen(unit), cut = strlen(".service");

	if (is_like(pattern, unit))
		return true;
	if (n <= cut || n >= sizeof(bare) || strcmp(unit + n - cut, ".service") != 0)
		return false;
	memcpy(bare, unit, n - cut);
	bare[n - cut] = 0;
	return is_like(pattern, bare);
}

/* The path or one above it; slashes are plain for *, and /a means /a/b, too. */
static bool is_below(const char *pattern, const char *path)
{
	return *path && !fnmatch(pattern, path, FNM_LEADING_DIR);
}

static bool matches(const struct rule *rule, const struct rules_task *t)
{
	const struct pod_names *pod = t->names;

	switch (rule->key) {
	case KEY_UNIT:
		return is_unit(rule->pattern, t->target->unit);
	case KEY_POD:
		return is_like(rule->pattern, t->target->pod) ||
		       (pod && is_like(rule->pattern, pod->pod));
	case KEY_SPACE:
		return pod && is_like(rule->pattern, pod->space);
	case KEY_CONTAINER:
		return is_like(rule->pattern, t->target->container) ||
		       is_like(rule->pattern, t->target->container_name) ||
		       (pod && is_like(rule->pattern, pod->container));
	case KEY_CGROUP:
		return is_below(rule->pattern, t->cgroup);
	case KEY_USER:
		return t->user != PROCESS_NO_USER && t->user == rule->user;
	default:
		return is_like(rule->pattern, t->comm);
	}
}

/* tasks: rules of users and names count, too */
static bool any_matches(const struct rule_list *l, const struct rules_task *t, bool tasks)
{
	for (size_t i = 0; i < l->n; i++)
		if ((tasks || l->v[i].key < OF_CGROUPS) && matches(&l->v[i], t))
			return true;
	return false;
}

bool rules_want(const struct rules *r, const struct rules_task *t)
{
	return (!r->include.n || any_matches(&r->include, t, true)) &&
	       !any_matches(&r->exclude, t, true);
}

bool rules_never(const struct rules *r, const struct rules_task *t)
{
	return any_matches(&r->exclude, t, false) ||
	       (r->include.n && !r->include.of_tasks && !any_matches(&r->include, t, false));
}

/* ---- Windows ---- */

struct applied {
	struct rules *r;
	struct window *w;
	void (*never)(void *ctx, uint64_t cgroup_id);
	void *ctx;
	struct idmap cgroups; /* a cgroup and a target of this window, asked once */
	uint8_t *asked;	      /* what rules_never said of them */
	char (*paths)[512];
	size_t asked_cap, paths_cap;
};

/* Whether its names are known: those of a container may come later than its first samples. */
static bool is_named(const struct rules_task *t)
{
	return t->names || *t->target->container_name ||
	       (!*t->target->container && !*t->target->pod);
}

/* The place of a cgroup of a target; its path is looked up once. 0 or -ENOMEM */
static int place_of(struct applied *a, const struct window_group *g, uint64_t cgroup_id,
		    uint32_t *ret)
{
	size_t before = a->cgroups.n;
	struct rules_task t = { .target = targets_at(a->w->targets, g->target), .comm = "" };
	char path[4096];

	if (vec_reserve(&a->asked, &a->asked_cap, before + 1, sizeof(*a->asked)) ||
	    vec_reserve(&a->paths, &a->paths_cap, before + 1, sizeof(*a->paths)) ||
	    idmap_get(&a->cgroups, cgroup_id, g->target, ret))
		return -ENOMEM;
	if (*ret != before)
		return 0;
	if (!cgroup_path_of_id(cgroup_id, path, sizeof(path)))
		*path = 0;
	snprintf(a->paths[*ret], sizeof(*a->paths), "%.511s", path);
	t.cgroup = a->paths[*ret];
	t.names = targets_names(a->w->targets, t.target);
	a->asked[*ret] = rules_never(a->r, &t);
	if (a->asked[*ret] && cgroup_id && *path && is_named(&t))
		a->never(a->ctx, cgroup_id);
	return 0;
}

/* Whether a stack is wanted; true, too, if memory runs out. */
static bool wants(struct applied *a, const struct window_group *g, const struct profile_stack *s,
		  int *err)
{
	const struct target *target = targets_at(a->w->targets, g->target);
	struct rules_task t = { .target = target, .comm = s->comm, .user = PROCESS_NO_USER };
	uint32_t at;

	if (place_of(a, g, s->cgroup_id, &at)) {
		*err = -ENOMEM;
		return true;
	}
	if (a->asked[at])
		return false;
	if (a->r->users)
		t.user = process_users_get(a->r->users, s->pid, s->comm);
	t.names = targets_names(a->w->targets, target);
	t.cgroup = a->paths[at];
	return rules_want(a->r, &t);
}

static void count_excluded(struct window *w, enum window_kind kind, const struct profile_stack *s)
{
	if (kind == WINDOW_CPU) {
		w->samples -= s->count;
		w->excluded += s->count;
	} else {
		w->blocks -= s->count;
		w->blocked_ns -= s->weight;
	}
}

/* A group without what is not wanted */
static int apply_to_group(struct applied *a, struct window_group *g)
{
	struct profile *kept = profile_new();
	struct profile_stack s;
	int err = kept ? 0 : -ENOMEM;

	for (size_t i = 0; i < profile_count(g->profile) && !err; i++) {
		profile_stack(g->profile, i, &s);
		if (wants(a, g, &s, &err) && !err)
			err = profile_merge_one(kept, g->profile, i);
	}
	for (size_t i = 0; i < profile_count(g->profile) && !err; i++) {
		profile_stack(g->profile, i, &s);
		if (!wants(a, g, &s, &err))
			count_excluded(a->w, g->kind, &s);
	}
	if (err) {
		profile_free(kept);
		return err;
	}
	profile_free(g->profile);
	g->profile = kept;
	return 0;
}

int rules_apply(struct rules *r, struct window *w, void (*never)(void *ctx, uint64_t cgroup_id),
		void *ctx)
{
	struct applied a = { .r = r, .w = w, .never = never, .ctx = ctx };
	size_t n = 0;
	int err = 0;

	for (size_t i = 0; i < w->ngroups && !err; i++)
		err = apply_to_group(&a, &w->groups[i]);
	for (size_t i = 0; i < w->ngroups; i++) {
		if (profile_count(w->groups[i].profile))
			w->groups[n++] = w->groups[i];
		else
			profile_free(w->groups[i].profile);
	}
	w->ngroups = n;
	idmap_free(&a.cgroups);
	free(a.asked);
	free(a.paths);
	return err;
}
