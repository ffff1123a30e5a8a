/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The programs that walk stacks, in the version for the languages that were met: without languages
 * the verifier takes two fifths of the time. What is attached (on_cpu_jump, off_back_jump
 * and the like) jumps to the program in a program array.
 *
 *   OFF --collector_walks_load--> READY --a runtime of another language--> LOADING
 *                                   ^-------- the next version is loaded --------'
 *   READY, LOADING --collector_walks_end--> OFF
 *
 * A thread loads the next version. It takes the place of the one before at once, so no sample is
 * lost, or taken twice. Until then frames of the new language are native ones.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/complain.h"
#include "kern/collector_internal.h"
#include "kern/libbpf_log.h"
#include "kern/offcpu_internal.h"
#include "kern/reuse_maps.h"

#define ALL_LANGUAGES ((2u << (SF_LANG_MAX - 1)) - 2)

/* Linux 6.8 and later: the verifier skips functions that no code reaches. */
static bool verifier_skips(void)
{
	struct utsname u;
	unsigned int major = 0, minor = 0;

	return !uname(&u) && sscanf(u.release, "%u.%u", &major, &minor) == 2 &&
	       (major > 6 || (major == 6 && minor >= 8));
}

uint32_t collector_languages(const struct collector *c)
{
	return c->opts.all_languages || !c->loader || !verifier_skips()
		       ? ALL_LANGUAGES
		       : loader_languages(c->loader) & ALL_LANGUAGES;
}

void collector_want_languages(struct collector *c)
{
	c->opts.all_languages = true;
}

/* "python, perl" */
static const char *names_of(uint32_t languages, char *buf, size_t cap)
{
	size_t n = 0;

	*buf = 0;
	for (uint32_t i = 1; i < SF_LANG_MAX && n < cap; i++)
		if (languages & 1u << i)
			n += (size_t)snprintf(buf + n, cap - n, "%s%s", n ? ", " : "",
					      lang_name(i));
	return n ? buf : "no languages";
}

static void version_free(struct walk_version *v)
{
	for (size_t i = 0; i < WALKS; i++)
		if (v->fds[i])
			close(v->fds[i]);
	if (v->remote)
		remote_bpf__destroy(v->remote);
	*v = (struct walk_version){ 0 };
}

/* An object that is being loaded for the sake of some of its programs. */
struct loading {
	struct bpf_object *obj;
	char (*said)[VERIFIER_LOG]; /* NULL unless statistics are wanted */
};

static void begin(const struct collector *c, struct loading *l, struct bpf_object *obj)
{
	struct bpf_program *prog;

	*l = (struct loading){ .obj = obj };
	if (c->opts.count_run_time && c->opts.verbose <= 1)
		collector_log_verifier(obj, &l->said);
	bpf_object__for_each_program(prog, obj) bpf_program__set_autoload(prog, false);
}

/* Keeps a program if it was loaded. 0 or -errno. */
static int keep(struct walk_version *v, enum walk walk, const struct loading *l,
		const struct bpf_program *wanted)
{
	struct bpf_program *prog;
	size_t i = 0;

	if (bpf_program__fd(wanted) < 0)
		return 0;
	v->fds[walk] = fcntl(bpf_program__fd(wanted), F_DUPFD_CLOEXEC, 3);
	if (v->fds[walk] < 0) {
		v->fds[walk] = 0;
		return -errno;
	}
	bpf_object__for_each_program(prog, l->obj)
	{
		if (l->said && prog == wanted)
			v->states[walk] = collector_verifier_states(l->said[i]);
		i++;
	}
	return 0;
}

/* The program that takes the samples of events of that kind */
static struct bpf_program *sampler(const struct sfbpf_bpf *skel, enum event_from from)
{
	return from == EVENT_PERF	  ? skel->progs.on_cpu
	       : from == EVENT_TRACEPOINT ? skel->progs.on_tracepoint
					  : skel->progs.on_probe;
}

static int load_samplers(const struct collector *c, struct walk_version *v)
{
	struct sfbpf_bpf *skel = collector_open_object(c->rdonly_cast);
	struct loading l;
	int err;

	if (!skel)
		return -errno;
	memcpy(skel->rodata_knobs, c->skel->rodata_knobs, sizeof(*skel->rodata_knobs));
	skel->rodata_knobs->cfg_languages = v->languages;
	begin(c, &l, skel->obj);
	for (enum event_from i = 0; i < EVENT_FROMS; i++)
		bpf_program__set_autoload(sampler(skel, i), collector_takes(c, i));
	err = reuse_maps(skel->obj, c->skel->obj);
	if (!err)
		err = sfbpf_bpf__load(skel);
	if (err)
		collector_read_verifier(&v->refused, skel->obj, l.said);
	for (enum event_from i = 0; i < EVENT_FROMS && !err; i++)
		err = keep(v, (enum walk)i, &l, sampler(skel, i));
	sfbpf_bpf__destroy(skel);
	free(l.said);
	return err;
}

/* The programs of the off-CPU object; the first version is a part of the object itself. */
static int load_off_cpu(const struct collector *c, struct walk_version *v)
{
	const struct offcpu_bpf *first = c->off_skel;
	struct offcpu_bpf *skel = offcpu_open(c->rdonly_cast);
	struct loading l;
	int err;

	if (!skel)
		return -errno;
	memcpy(skel->rodata, first->rodata, sizeof(*skel->rodata));
	memcpy(skel->rodata_knobs, first->rodata_knobs, sizeof(*skel->rodata_knobs));
	skel->rodata_knobs->cfg_languages = v->languages;
	begin(c, &l, skel->obj);
	bpf_program__set_autoload(skel->progs.off_back, true);
	bpf_program__set_autoload(skel->progs.off_waking,
				  bpf_program__autoload(first->progs.off_waking));
	err = reuse_maps(skel->obj, first->obj);
	if (!err)
		err = offcpu_bpf__load(skel);
	if (err)
		collector_read_verifier(&v->refused, skel->obj, l.said);
	else
		err = keep(v, WALK_OFF_BACK, &l, skel->progs.off_back);
	if (!err)
		err = keep(v, WALK_OFF_WAKING, &l, skel->progs.off_waking);
	offcpu_bpf__destroy(skel);
	free(l.said);
	if (!err && c->offcpu->remote)
		v->remote = offcpu_load_remote(first, v->languages);
	return err;
}

/* Whether the off-CPU programs have versions: if stacks are taken on leaving, off_switch walks. */
static bool has_off_walks(const struct collector *c)
{
	return c->off_skel && !c->off_skel->rodata->cfg_off_at_leave;
}

/* Loads the programs of *v for v->languages. 0 or -errno. */
static int version_load(const struct collector *c, struct walk_version *v)
{
	uint64_t began = clock_ns(CLOCK_MONOTONIC);

	libbpf_log_into(&v->refused);
	v->err = collector_samples(c) ? load_samplers(c, v) : 0;
	if (!v->err && has_off_walks(c))
		v->err = load_off_cpu(c, v);
	libbpf_log_into(NULL);
	v->took_ns = clock_ns(CLOCK_MONOTONIC) - began;
	return v->err;
}

int collector_put_walk(const struct bpf_map *array, int fd)
{
	uint32_t zero = 0;

	return fd <= 0 ? 0 : bpf_map_update_elem(bpf_map__fd(array), &zero, &fd, BPF_ANY);
}

/* Puts *v, which is loaded, in the place of the version in use. 0 or -errno. */
static int version_use(struct collector *c, struct walk_version *v)
{
	char names[128];
	const struct bpf_map *const arrays[] = { c->skel->maps.on_cpu_walks,
						 c->skel->maps.on_tracepoint_walks,
						 c->skel->maps.on_probe_walks };
	int err = 0;

	for (size_t i = 0; i < EVENT_FROMS && !err; i++)
		err = collector_put_walk(arrays[i], v->fds[i]);
	if (!err && has_off_walks(c))
		err = collector_put_walk(c->off_skel->maps.off_back_walks, v->fds[WALK_OFF_BACK]);
	if (!err && has_off_walks(c))
		err = collector_put_walk(c->off_skel->maps.off_waking_walks,
					 v->fds[WALK_OFF_WAKING]);
	if (err)
		return err;
	if (v->remote)
		offcpu_use_remote(c->offcpu, v->remote);
	v->remote = NULL;
	/* What programs cached of a mapping or a stack is that of the version before. */
	__atomic_fetch_add(&c->skel->data_tables->tables_epoch, 1, __ATOMIC_SEQ_CST);
	if (c->opts.verbose)
		complain(0, "programs that walk stacks, with %s: loaded in %.0f ms",
			 names_of(v->languages, names, sizeof(names)), (double)v->took_ns / 1e6);
	version_free(&c->walks);
	c->walks = *v;
	*v = (struct walk_version){ 0 };
	return 0;
}

int collector_walks_load(struct collector *c) /* the off-CPU object is not loaded yet */
{
	struct walk_version v = { .languages = collector_languages(c) };
	int err = version_load(c, &v);

	if (err && c->rdonly_cast && collector_refused(c, &v.refused, err, "use bpf_rdonly_cast")) {
		version_free(&v);
		v.languages = collector_languages(c);
		c->rdonly_cast = false;
		err = version_load(c, &v);
	}
	c->refused = v.refused;
	if (!err)
		err = version_use(c, &v);
	if (!err)
		c->walks_state = WALKS_READY;
	version_free(&v);
	return err;
}

uint64_t collector_late_languages(const struct collector *c, char *buf, size_t cap)
{
	names_of(c->late_languages, buf, cap);
	return c->late_ns;
}

static void *load_next(void *ctx)
{
	struct collector *c = ctx;
	sigset_t all;

	/* A signal would interrupt the verifier, and libbpf begins anew then. */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	version_load(c, &c->next_walks);
	__atomic_store_n(&c->walks_loaded, true, __ATOMIC_RELEASE);
	return NULL;
}

void collector_walks_wait(struct collector *c)
{
	struct walk_version *next = &c->next_walks;
	char names[128];
	uint32_t fresh = next->languages & ~c->walks.languages;
	uint64_t took_ns;

	if (c->walks_state != WALKS_LOADING)
		return;
	pthread_join(c->walks_thread, NULL);
	c->walks_state = WALKS_READY;
	took_ns = next->took_ns;
	if (next->err || (next->err = version_use(c, next))) {
		c->walks_failed |= fresh;
		complain(0, "frames of %s are shown as native ones: the kernel refuses %s (%s)",
			 names_of(fresh, names, sizeof(names)),
			 next->refused.program[0] ? next->refused.program : "the BPF programs",
			 strerror(-next->err));
	} else {
		c->late_languages |= fresh;
		if (took_ns > c->late_ns)
			c->late_ns = took_ns;
	}
	version_free(next);
}

void collector_walks_follow(struct collector *c)
{
	uint32_t wanted = collector_languages(c) & ~c->walks_failed;

	if (c->walks_state == WALKS_LOADING && __atomic_load_n(&c->walks_loaded, __ATOMIC_ACQUIRE))
		collector_walks_wait(c);
	if (c->walks_state != WALKS_READY || !(wanted & ~c->walks.languages))
		return;
	c->next_walks = (struct walk_version){ .languages = wanted | c->walks.languages };
	c->walks_loaded = false;
	if (!pthread_create(&c->walks_thread, NULL, load_next, c))
		c->walks_state = WALKS_LOADING;
}

void collector_walks_end(struct collector *c)
{
	collector_walks_wait(c);
	c->walks_state = WALKS_OFF;
}

void collector_walks_drop_off(struct collector *c)
{
	collector_walks_wait(c);
	for (enum walk i = WALK_OFF_BACK; i <= WALK_OFF_WAKING; i++) {
		if (c->walks.fds[i])
			close(c->walks.fds[i]);
		c->walks.fds[i] = 0;
	}
}

void collector_walks_free(struct collector *c)
{
	collector_walks_end(c);
	version_free(&c->walks);
}
