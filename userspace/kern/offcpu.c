/* SPDX-License-Identifier: BSD-2-Clause */
#include "kern/offcpu.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <linux/membarrier.h>
#include <linux/types.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/vec.h"
#include "remote.skel.h"
#include "sfbpf.skel.h"

#define BATCH 4096

#define CALIBRATIONS 8

enum { PASS_STACKS, PASS_CLOSE, PASS_REST, PASS_AGAIN, PASS_CUT };	/* OFF_PASS_* of bpf/offcpu.bpf.h */

/* u64 -> u64, open addressing, at most half full; key 0 is a free slot. */
struct table {
	uint64_t *slots;	/* pairs */
	size_t nslots, used;
};

struct count {
	uint64_t count, ns;	/* handed out so far */
};

struct kept {			/* the record follows */
	uint32_t generation;	/* the last one in which it was sent, or held by a thread at the end of */
	uint32_t zero;
};

/*
 * The last stack of a thread whose stacks the kernel has no room for, until its block is over. Threads that share a place
 * may lose it to one another.
 */
#define UNKEPT 8192u
struct unkept {
	struct sf_sample *rec;	/* NULL or malloc'ed */
	size_t cap;
};

struct offcpu {
	struct sfbpf_bpf *skel;
	struct remote_bpf *remote;	/* NULL: the kernel refuses it */
	struct offcpu_opts opts;
	bool at_leave;
	struct table stacks;	/* hash -> struct kept *, malloc'ed */
	struct unkept *unkept;	/* UNKEPT of them, by thread id; NULL: none yet */
	struct table seen;	/* key -> index into counts, of this generation */
	struct count *counts;
	size_t ncounts, counts_cap;
	uint32_t generation;
	bool closing;		/* the one before it has not been taken out */
	bool no_generations;	/* this kernel cannot tell when programs are through */
	uint32_t deleted;	/* entries of off_counts taken out */
	size_t held;		/* stacks that stayed at the end of the last generation */
	uint64_t taken_out;	/* entries that were in earlier generations */
};

/* ---- Tables ---- */

static uint64_t *table_slot(const struct table *t, uint64_t key)
{
	size_t at = hash_u64(key) & (t->nslots - 1);

	while (t->slots[2 * at] && t->slots[2 * at] != key)
		at = (at + 1) & (t->nslots - 1);
	return &t->slots[2 * at];
}

static int table_grow(struct table *t)
{
	struct table bigger = { .nslots = t->nslots ? t->nslots * 2 : 1024, .used = t->used };

	bigger.slots = calloc(bigger.nslots, 2 * sizeof(*bigger.slots));
	if (!bigger.slots)
		return -ENOMEM;
	for (size_t i = 0; i < t->nslots; i++)
		if (t->slots[2 * i])
			memcpy(table_slot(&bigger, t->slots[2 * i]), &t->slots[2 * i], 2 * sizeof(*t->slots));
	free(t->slots);
	*t = bigger;
	return 0;
}

/* The value's place; a new one holds 0. NULL: out of memory. */
static uint64_t *table_at(struct table *t, uint64_t key)
{
	uint64_t *slot;

	if (!key)
		key = 1;
	if (t->used * 2 >= t->nslots && table_grow(t))
		return NULL;
	slot = table_slot(t, key);
	if (!slot[0]) {
		slot[0] = key;
		t->used++;
	}
	return &slot[1];
}

static struct kept *kept_at(const struct table *t, size_t slot)
{
	return (struct kept *)(uintptr_t)t->slots[2 * slot + 1];
}

/* ---- Before loading ---- */

bool offcpu_kernel_can_back(void)
{
	struct btf *btf = btf__load_vmlinux_btf();
	bool has = btf && btf__find_by_name_kind(btf, "btf_trace_sched_exit_tp", BTF_KIND_TYPEDEF) > 0;

	btf__free(btf);
	return has;
}

static void size_maps(struct sfbpf_bpf *skel, const struct offcpu_opts *o, uint32_t ncpus, bool at_leave)
{
	bpf_map__set_max_entries(skel->maps.scratch, 4 * ncpus + 1);
	bpf_map__set_max_entries(skel->maps.cache, 4 * ncpus + 1);
	bpf_map__set_max_entries(skel->maps.off_counts, o->max_stacks);
	bpf_map__set_max_entries(skel->maps.off_stacks, o->max_stacks);
	if (!at_leave) {
		bpf_map__set_max_entries(skel->maps.off_kernels, ncpus * SF_AGAIN_SETS);
		bpf_map__set_max_entries(skel->maps.off_copies, ncpus);
	}
	if (o->hist)
		bpf_map__set_max_entries(skel->maps.off_hists, o->max_stacks);
	if (o->threads)
		bpf_map__set_max_entries(skel->maps.off_threads, o->max_stacks);
}

static void choose_programs(struct sfbpf_bpf *skel, const struct offcpu_opts *o, bool at_leave, bool sums)
{
	bpf_program__set_autoload(skel->progs.on_cpu, false);
	bpf_program__set_autoload(skel->progs.off_switch, true);
	bpf_program__set_autoload(skel->progs.off_back, !at_leave);
	bpf_program__set_autoload(skel->progs.off_waking, o->wakers || (o->states & 1u << SF_OFF_R));
	bpf_program__set_autoload(skel->progs.off_fork, true);
	bpf_program__set_autoload(skel->progs.off_first, true);
	bpf_program__set_autoload(skel->progs.off_last_blind, true);
	bpf_program__set_autoload(skel->progs.off_held, true);
	bpf_program__set_autoload(skel->progs.off_exit, sums);
	bpf_program__set_autoload(skel->progs.off_hand_in, sums);
}

struct ksyms {			/* 0: not there */
	uint64_t irq_start, irq_end, softirq_start, softirq_end;
};

static void see_symbol(struct ksyms *k, uint64_t addr, const char *name)
{
	if ((!strcmp(name, "asm_common_interrupt") || !strncmp(name, "asm_sysvec_", 11)) && (!k->irq_start || addr < k->irq_start))
		k->irq_start = addr;
	else if (!strcmp(name, "__irqentry_text_end"))
		k->irq_end = addr;
	else if (!strcmp(name, "handle_softirqs") || (!strcmp(name, "__do_softirq") && !k->softirq_start))
		k->softirq_start = addr, k->softirq_end = UINT64_MAX;	/* 6.9 and later; before */
	if (k->softirq_start && addr > k->softirq_start && addr < k->softirq_end)
		k->softirq_end = addr;
}

/*
 * x86: the entries of interrupts lie side by side in .irqentry.text, behind those of exceptions, which are the
 * task's own doing. Without kernel addresses (kptr_restrict) a waker that an interrupt has interrupted is taken for its cause.
 * Two passes: the end of a function is the next symbol, and they need not be in order.
 */
static void find_irq_code(struct sfbpf_bpf *skel)
{
	struct ksyms k = { 0 };
	unsigned long long addr;
	char line[512], name[256];
	FILE *f = fopen("/proc/kallsyms", "re");

	for (int pass = 0; f && pass < 2; pass++) {
		while (fgets(line, sizeof(line), f) && sscanf(line, "%llx %*c %255s", &addr, name) == 2)
			if (addr && !strchr(line, '['))
				see_symbol(&k, addr, name);
		rewind(f);
	}
	if (f)
		fclose(f);
	if (!k.irq_start || k.irq_start >= k.irq_end)
		return;
	skel->rodata->cfg_irq_start = k.irq_start;
	skel->rodata->cfg_irq_len = k.irq_end - k.irq_start;
	skel->rodata->cfg_softirq_start = k.softirq_start;
	skel->rodata->cfg_softirq_len = k.softirq_start ? k.softirq_end - k.softirq_start : 0;
}

void offcpu_configure(struct sfbpf_bpf *skel, const struct offcpu_opts *o, const struct num_cpus *cpus, int ncpus, bool at_leave)
{
	struct sfbpf_bpf__rodata *ro = skel->rodata;
	bool sums = !at_leave && !o->wakers && !o->hist && !o->threads;	/* else blocks have more to say than their sum */

	ro->cfg_want_cost = o->want_cost || (o->want_cost_back && !at_leave);
	ro->cfg_trail = false;	/* stacks of one CPU are different threads' */
	ro->cfg_off_at_leave = at_leave;
	ro->cfg_note_words = !at_leave;
	ro->cfg_off_sums = sums;
	ro->cfg_off_split = (o->states & 1u << SF_OFF_R) != 0;
	ro->cfg_off_wakers = o->wakers;
	ro->cfg_off_chains = o->chains;
	ro->cfg_off_hist = o->hist;
	ro->cfg_off_threads = o->threads;
	ro->cfg_off_kthreads = o->kernel_threads;
	ro->cfg_off_users = o->user_threads;
	ro->cfg_off_states = o->states;
	ro->cfg_off_min = o->min_ns;
	ro->cfg_off_max = o->max_ns;
	ro->cfg_off_period = o->period_ns;
	ro->cfg_by_cpu = cpus != NULL;
	if (cpus)
		memcpy((void *)ro->cfg_cpu_mask, cpus->bits, sizeof(ro->cfg_cpu_mask));
	if (o->wakers)
		find_irq_code(skel);
	size_maps(skel, o, (uint32_t)ncpus, at_leave);
	choose_programs(skel, o, at_leave, sums);
}

/* ---- The run ---- */

_Static_assert(sizeof(struct sfbpf_bpf__rodata) == sizeof(struct remote_bpf__rodata) &&
	       sizeof(struct sfbpf_bpf__bss) == sizeof(struct remote_bpf__bss), "both objects have the same globals");

/* The map that the other object's map stands for; globals are named after their object. */
static struct bpf_map *same_map(const struct sfbpf_bpf *skel, const struct bpf_map *map)
{
	const char *dot = strchr(bpf_map__name(map), '.');
	struct bpf_map *m;

	bpf_object__for_each_map(m, skel->obj) {
		const char *its_dot = strchr(bpf_map__name(m), '.');

		if (dot && its_dot ? !strcmp(dot, its_dot) : !strcmp(bpf_map__name(map), bpf_map__name(m)))
			return m;
	}
	return NULL;
}

/* Kernels that refuse it (before 6.2) show the stacks of sleeping threads less well: no error. */
static struct remote_bpf *load_remote(const struct sfbpf_bpf *skel)
{
	struct remote_bpf *remote = remote_bpf__open();
	struct bpf_program *prog;
	struct bpf_map *map, *first;
	int err = 0;

	if (!remote)
		return NULL;
	memcpy(remote->rodata, skel->rodata, sizeof(*skel->rodata));
	bpf_object__for_each_map(map, remote->obj) {
		if (strstr(bpf_map__name(map), ".rodata"))
			continue;
		first = same_map(skel, map);
		if (!err)
			err = first ? bpf_map__reuse_fd(map, bpf_map__fd(first)) : -ENOENT;
	}
	bpf_object__for_each_program(prog, remote->obj)
		bpf_program__set_autoload(prog, prog == remote->progs.off_last);
	if (!err)
		err = remote_bpf__load(remote);
	if (!err)
		return remote;
	remote_bpf__destroy(remote);
	return NULL;
}

struct offcpu *offcpu_new(struct sfbpf_bpf *skel, const struct offcpu_opts *o, bool at_leave)
{
	struct offcpu *off = calloc(1, sizeof(*off));

	if (!off)
		return NULL;
	off->skel = skel;
	off->remote = load_remote(skel);
	off->opts = *o;
	off->at_leave = at_leave;
	return off;
}

void offcpu_free(struct offcpu *off)
{
	if (!off)
		return;
	for (size_t i = 0; i < off->stacks.nslots; i++)
		free(kept_at(&off->stacks, i));
	for (size_t i = 0; off->unkept && i < UNKEPT; i++)
		free(off->unkept[i].rec);
	free(off->unkept);
	free(off->stacks.slots);
	free(off->seen.slots);
	free(off->counts);
	if (off->remote)
		remote_bpf__destroy(off->remote);
	free(off);
}

/* take: what the program writes; may be NULL. */
static int run_iterator(struct bpf_program *prog, void (*take)(struct offcpu *off, const uint64_t *words, size_t n), struct offcpu *off)
{
	struct bpf_link *link = bpf_program__attach_iter(prog, NULL);
	uint64_t words[512];
	ssize_t got;
	int fd, err = 0;

	if (!link)
		return -errno;
	fd = bpf_iter_create(bpf_link__fd(link));
	if (fd < 0)
		err = fd;
	while (fd >= 0 && ((got = read(fd, words, sizeof(words))) > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR))))
		if (take && got > 0)
			take(off, words, (size_t)got / sizeof(words[0]));
	if (fd >= 0)
		close(fd);
	bpf_link__destroy(link);
	return err;
}

/*
 * How far CLOCK_MONOTONIC is from the run queues' clock. We go to sleep a few times; each switch shows the distance plus
 * the time since the run queue's was read, so the least of them is the best. The two drift apart by some ppm.
 */
static void calibrate(struct sfbpf_bpf__bss *bss)
{
	struct timespec pause = { .tv_nsec = 20000 };

	bss->off_lag_least = INT64_MAX;
	__atomic_store_n(&bss->off_lag_wanted, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < CALIBRATIONS; i++)
		nanosleep(&pause, NULL);
	__atomic_store_n(&bss->off_lag_wanted, 0, __ATOMIC_RELEASE);
	if (bss->off_lag_least != INT64_MAX)
		__atomic_store_n(&bss->off_lag, bss->off_lag_least, __ATOMIC_RELAXED);
}

int offcpu_attach(struct offcpu *off)
{
	struct sfbpf_bpf *skel = off->skel;
	int err;

	skel->links.off_fork = bpf_program__attach(skel->progs.off_fork);
	if (!skel->links.off_fork)
		return -errno;
	if (bpf_program__autoload(skel->progs.off_waking)) {
		skel->links.off_waking = bpf_program__attach(skel->progs.off_waking);
		if (!skel->links.off_waking)
			return -errno;
	}
	if (bpf_program__autoload(skel->progs.off_exit)) {
		skel->links.off_exit = bpf_program__attach(skel->progs.off_exit);
		if (!skel->links.off_exit)
			return -errno;
	}
	if (!off->at_leave) {
		skel->links.off_back = bpf_program__attach(skel->progs.off_back);
		if (!skel->links.off_back)
			return -errno;
	}
	skel->links.off_switch = bpf_program__attach(skel->progs.off_switch);
	if (!skel->links.off_switch)
		return -errno;
	calibrate(skel->bss);
	/* From here on every thread's comings and goings are known; what went before is found by looking. */
	err = run_iterator(skel->progs.off_first, NULL, off);
	skel->bss->off_pass = PASS_AGAIN;
	if (!err)
		err = run_iterator(skel->progs.off_first, NULL, off);
	skel->bss->off_pass = PASS_STACKS;
	if (err)
		return err;
	if (off->at_leave && off->remote)
		run_iterator(off->remote->progs.off_last, NULL, off);
	__atomic_store_n(&skel->bss->off_begin, clock_ns(CLOCK_MONOTONIC), __ATOMIC_RELEASE);
	return 0;
}

void offcpu_finish(struct offcpu *off, void (*drain)(void *ctx), void *ctx)
{
	struct sfbpf_bpf__bss *bss = off->skel->bss;
	struct bpf_program *last = off->remote ? off->remote->progs.off_last : off->skel->progs.off_last_blind;

	if (!bss->off_begin || bss->off_finish)
		return;
	__atomic_store_n(&bss->off_finish, clock_ns(CLOCK_MONOTONIC), __ATOMIC_RELEASE);
	for (bss->off_pass = PASS_CLOSE; bss->off_pass <= PASS_REST; bss->off_pass++) {
		run_iterator(last, NULL, off);
		drain(ctx);
	}
}

int offcpu_cut(struct offcpu *off)
{
	struct sfbpf_bpf__bss *bss = off->skel->bss;
	int err;

	if (!bss->off_begin || bss->off_finish)
		return 0;
	bss->off_cut = clock_ns(CLOCK_MONOTONIC);
	bss->off_pass = PASS_CUT;
	err = run_iterator(off->remote ? off->remote->progs.off_last : off->skel->progs.off_last_blind, NULL, off);
	bss->off_pass = PASS_STACKS;
	return err;
}

void offcpu_thin(struct offcpu *off, uint64_t ns)
{
	__atomic_store_n(&off->skel->bss->off_thin, off->at_leave ? 0 : ns, __ATOMIC_RELAXED);
	__atomic_store_n(&off->skel->bss->off_one_in, off->at_leave ? (uint32_t)(ns / OFFCPU_THIN_MIN) : 0, __ATOMIC_RELAXED);
}

uint64_t offcpu_thinner(uint64_t ns)
{
	uint64_t next = ns ? ns * 4 : OFFCPU_THIN_MIN * 4;

	return next > OFFCPU_THIN_MAX ? OFFCPU_THIN_MAX : next;
}

uint64_t offcpu_denser(uint64_t ns)
{
	return ns / 2 < OFFCPU_THIN_MIN ? 0 : ns / 2;
}

/* ---- Stacks and counts ---- */

static size_t record_size(const struct sf_sample *rec)
{
	return sizeof(*rec) + 8ul * ((size_t)rec->n_user + rec->n_kernel);
}

static void keep_for_now(struct offcpu *off, const struct sf_sample *rec)
{
	size_t len = record_size(rec);
	struct unkept *u;

	if (!off->unkept)
		off->unkept = calloc(UNKEPT, sizeof(*off->unkept));
	if (!off->unkept)
		return;
	u = &off->unkept[rec->tid % UNKEPT];
	if (len > u->cap) {
		free(u->rec);
		u->rec = malloc(len);
		u->cap = u->rec ? len : 0;
	}
	if (!u->rec)
		return;
	memcpy(u->rec, rec, len);
	u->rec->flags &= (uint8_t)~SF_SAMPLE_UNKEPT;
}

void offcpu_keep(struct offcpu *off, const struct sf_sample *rec)
{
	size_t len = record_size(rec);
	uint64_t *at;
	struct kept *k;

	if (rec->flags & SF_SAMPLE_UNKEPT) {
		keep_for_now(off, rec);
		return;
	}
	at = table_at(&off->stacks, rec->time_ns);
	if (!at)
		return;
	if (!*at && (k = malloc(sizeof(*k) + len))) {
		memcpy(k + 1, rec, len);
		*at = (uintptr_t)k;
	}
	if (*at)
		((struct kept *)(uintptr_t)*at)->generation = off->generation;
}

static struct kept *find_kept(const struct offcpu *off, uint64_t hash)
{
	uint64_t *slot = off->stacks.nslots ? table_slot(&off->stacks, hash) : NULL;

	return slot && slot[0] ? (struct kept *)(uintptr_t)slot[1] : NULL;
}

const struct sf_sample *offcpu_stack(const struct offcpu *off, uint64_t hash)
{
	struct kept *k = hash ? find_kept(off, hash) : NULL;

	return k ? (const struct sf_sample *)(k + 1) : NULL;
}

void offcpu_see(const struct offcpu *off, const struct modules *ms)
{
	for (size_t i = 0; i < off->stacks.nslots; i++) {
		struct kept *k = kept_at(&off->stacks, i);
		const struct sf_sample *rec = (const struct sf_sample *)(k + 1);

		for (size_t n = 0; k && n < rec->n_user; n++)
			modules_see(ms, rec->frames[n]);
	}
}

/* Its frames have not arrived, or nobody took them. */
static const struct sf_sample *missing_stack(struct sf_sample *rec, uint64_t hash, uint32_t pid, const char *comm)
{
	*rec = (struct sf_sample){ .type = SF_REC_STACK, .pid = pid, .tid = pid,
				   .flags = SF_SAMPLE_USER | SF_SAMPLE_IN_KERNEL,
				   .stop = hash == SF_STACK_UNKNOWN ? SF_STOP_ASLEEP : SF_STOP_RING_FULL };
	memcpy(rec->comm, comm, sizeof(rec->comm));
	return rec;
}

const struct sf_sample *offcpu_stack_of(const struct offcpu *off, const struct sf_sample *rec, struct sf_sample *none)
{
	const struct sf_sample *stack;
	uint64_t hash = rec->time_ns;

	if (!(rec->flags & SF_SAMPLE_BY_HASH))
		return rec;
	stack = offcpu_stack(off, hash);
	if (!stack && off->unkept)
		stack = off->unkept[rec->tid % UNKEPT].rec;
	return stack && stack->time_ns == hash ? stack : missing_stack(none, hash, rec->pid, rec->comm);
}

/* The entry of what was handed out of this key. NULL: out of memory. */
static struct count *handed_out(struct offcpu *off, uint64_t key)
{
	uint64_t *at = table_at(&off->seen, key);

	if (!at)
		return NULL;
	if (!*at) {
		if (vec_reserve(&off->counts, &off->counts_cap, off->ncounts + 1, sizeof(*off->counts)))
			return NULL;
		off->counts[off->ncounts++] = (struct count){ 0 };
		*at = off->ncounts;
	}
	return &off->counts[*at - 1];
}

/* last: nothing will be added to it any more, and what was sent of its stack is here. */
static int merge_one(struct offcpu *off, uint64_t key, const struct sf_off_count *c, bool last, offcpu_block_fn fn, void *ctx)
{
	struct offcpu_block b = { .state = (uint8_t)c->state, .max_ns = c->max_ns };
	struct count *done = handed_out(off, key);
	struct sf_off_hist hist;
	struct sf_sample none;

	if (!done)
		return -ENOMEM;
	b.count = c->count - done->count;
	b.ns = c->sum_ns - done->ns;
	b.stack = offcpu_stack(off, c->stack);
	if ((!b.count && !b.ns) || (!b.stack && !last && c->stack != SF_STACK_UNKNOWN))
		return 0;
	if (!b.stack)
		b.stack = missing_stack(&none, c->stack, c->pid, c->comm);
	b.waker = offcpu_stack(off, c->wakers[0]);
	for (int i = 1; i < SF_OFF_CHAIN; i++)
		b.before[i - 1] = offcpu_stack(off, c->wakers[i]);
	if (last && off->opts.hist && !bpf_map_lookup_elem(bpf_map__fd(off->skel->maps.off_hists), &key, &hist))
		b.hist = &hist;
	done->count += b.count;
	done->ns += b.ns;
	fn(ctx, &b);
	return 0;
}

/* A map's entries, in batches. take() gets n of them at a time. */
struct reader {
	void *keys, *values;
	int (*take)(struct reader *r, uint32_t n);
	struct offcpu *off;
	uint32_t generation;	/* counts: of this one only */
	bool last;
	offcpu_block_fn block_fn;
	offcpu_thread_fn thread_fn;
	void *ctx;
};

static void take_out(struct offcpu *off, uint64_t key)
{
	if (!bpf_map_delete_elem(bpf_map__fd(off->skel->maps.off_counts), &key))
		off->deleted++;
	if (off->opts.hist)
		bpf_map_delete_elem(bpf_map__fd(off->skel->maps.off_hists), &key);
}

static int take_counts(struct reader *r, uint32_t n)
{
	const struct sf_off_count *counts = r->values;
	const uint64_t *keys = r->keys;
	int err = 0;

	for (uint32_t i = 0; i < n && !err; i++) {
		if (counts[i].generation != r->generation)
			continue;
		err = merge_one(r->off, keys[i], &counts[i], r->last, r->block_fn, r->ctx);
		if (!err && r->generation != r->off->generation)
			take_out(r->off, keys[i]);
	}
	return err;
}

static int take_threads(struct reader *r, uint32_t n)
{
	const struct sf_off_thread *threads = r->values;
	const uint32_t *tids = r->keys;

	for (uint32_t i = 0; i < n; i++)
		r->thread_fn(r->ctx, tids[i], &threads[i]);
	return 0;
}

static int read_map(struct reader *r, const struct bpf_map *map)
{
	uint64_t position = 0;
	bool more = true, first = true;
	uint32_t n;
	int err = 0;

	r->keys = malloc(BATCH * bpf_map__key_size(map));
	r->values = malloc((size_t)BATCH * bpf_map__value_size(map));
	if (!r->keys || !r->values)
		err = -ENOMEM;
	while (!err && more) {
		n = BATCH;
		err = bpf_map_lookup_batch(bpf_map__fd(map), first ? NULL : &position, &position, r->keys, r->values, &n, NULL);
		more = !err;
		if (err == -ENOENT)
			err = 0;	/* these were the last ones */
		if (!err)
			err = r->take(r, n);
		first = false;
	}
	free(r->keys);
	free(r->values);
	return err;
}

/* ---- Generations ---- */

bool offcpu_wants_merge(const struct offcpu *off)
{
	uint32_t max = off->opts.max_stacks, room = max - max / 8;
	size_t most = off->held + max / 2 < room ? off->held + max / 2 : room;

	if (off->no_generations || off->skel->bss->off_finish)
		return false;
	return off->closing || off->skel->bss->off_used - off->deleted > max / 2 || off->stacks.used > most;
}

/* The programs that run now may still count for the old one: they are through when this returns. */
static void begin_generation(struct offcpu *off)
{
	__atomic_store_n(&off->skel->bss->off_generation, off->generation + 1, __ATOMIC_RELEASE);
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0)) {	/* waits for RCU readers; not with nohz_full */
		off->no_generations = true;
		__atomic_store_n(&off->skel->bss->off_generation, off->generation, __ATOMIC_RELEASE);
		return;
	}
	off->generation++;
	off->closing = true;
}

static void see_held(struct offcpu *off, const uint64_t *hashes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct kept *k = hashes[i] && off->stacks.nslots ? find_kept(off, hashes[i]) : NULL;

		if (k)
			k->generation = off->generation;
	}
}

/*
 * Drops the stacks that no count refers to. One that was sent in the generation that ended, and that no thread holds any
 * more, may have been counted since then: it stays for one more.
 */
static int drop_stacks(struct offcpu *off)
{
	int fd = bpf_map__fd(off->skel->maps.off_stacks), err;
	struct table left = { 0 };
	size_t held = 0;

	err = run_iterator(off->skel->progs.off_held, see_held, off);
	for (size_t i = 0; i < off->stacks.nslots && !err; i++) {
		uint64_t key = off->stacks.slots[2 * i], *to;
		struct kept *k = kept_at(&off->stacks, i);

		if (!k || k->generation + 1 < off->generation)
			continue;
		to = table_at(&left, key);
		if (!to)
			err = -ENOMEM;
		else
			*to = (uintptr_t)k;
		held++;
	}
	if (err) {		/* all stay */
		free(left.slots);
		return err;
	}
	for (size_t i = 0; i < off->stacks.nslots; i++) {
		struct kept *k = kept_at(&off->stacks, i);

		if (!k || k->generation + 1 >= off->generation)
			continue;
		bpf_map_delete_elem(fd, &off->stacks.slots[2 * i]);
		free(k);
	}
	free(off->stacks.slots);
	off->stacks = left;
	off->held = held;
	return 0;
}

static int close_generation(struct offcpu *off, struct reader *r)
{
	int err;

	r->generation = off->generation - 1;
	r->last = true;
	err = read_map(r, off->skel->maps.off_counts);
	off->closing = false;
	off->taken_out += off->ncounts;
	off->ncounts = 0;
	free(off->seen.slots);
	off->seen = (struct table){ 0 };
	return err ? err : drop_stacks(off);
}

int offcpu_merge(struct offcpu *off, offcpu_block_fn fn, void *ctx)
{
	struct reader r = { .take = take_counts, .off = off, .block_fn = fn, .ctx = ctx };
	bool over = off->skel->bss->off_finish != 0;
	int err = 0;

	if (!over)
		calibrate(off->skel->bss);
	if (bpf_program__autoload(off->skel->progs.off_hand_in))
		err = run_iterator(off->skel->progs.off_hand_in, NULL, off);
	if (!err && off->closing)
		err = close_generation(off, &r);
	r.generation = off->generation;
	r.last = over;
	if (!err)
		err = read_map(&r, off->skel->maps.off_counts);
	if (!err && offcpu_wants_merge(off))
		begin_generation(off);
	return err;
}

int offcpu_threads(struct offcpu *off, offcpu_thread_fn fn, void *ctx)
{
	struct reader r = { .take = take_threads, .off = off, .thread_fn = fn, .ctx = ctx };

	return off->opts.threads ? read_map(&r, off->skel->maps.off_threads) : 0;
}

void offcpu_totals(const struct offcpu *off, struct offcpu_totals *ret)
{
	*ret = (struct offcpu_totals){
		.sampled_ns = off->skel->bss->off_sampled_ns, .lost_ns = off->skel->bss->off_lost_ns,
		.stacks = off->taken_out + off->ncounts, .full_at = off->opts.max_stacks,
		.generations = off->generation, .threads_full = off->skel->bss->off_threads_full,
		.at_leave = off->at_leave, .remote = off->remote != NULL,
	};
}
