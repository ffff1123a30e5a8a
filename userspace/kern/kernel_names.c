/* SPDX-License-Identifier: BSD-2-Clause */
#include "kern/kernel_names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/idmap.h"
#include "base/kernel_word.h"
#include "base/num.h"
#include "base/strpool.h"
#include "base/vec.h"

/* Code that is gone for this long is in no sample that may still arrive. */
#define FORGET_NS  (30 * NUM_S)
#define PIECES_MAX 16384
#define ASKED_MAX  32768
#define NO_NAME	   0u
#define REPLACED   1u /* the number of "[replaced code]" */
/* asked[]: code of the kernel itself; to be asked again */
#define FIXED	   UINT32_MAX
#define AGAIN	   (UINT32_MAX - 1)
/* A sample may be taken this long before its record is in the ring. */
#define LATE_NS	   (1 * NUM_MS)

/* The kernel's own code ends below this address; on other machines that is not known. */
#ifdef __x86_64__
#define CHANGES_FROM 0xffffffffa0000000ull
#else
#define CHANGES_FROM 0ull
#endif

struct piece {
	uint64_t start, end;
	uint64_t from, to; /* CLOCK_MONOTONIC; from 0: before the run; to UINT64_MAX: still there */
	uint32_t number;
};

struct event {
	uint64_t time, start, len;
	uint32_t number, gone;
};

struct kernel_names {
	kernel_ask_fn ask;
	void *ctx;
	const char *modules_path;
	struct ksymbols changes;
	struct strpool *names; /* ids are numbers */
	struct piece *pieces;
	size_t n, cap;
	struct event *events; /* the events of one round of reading */
	size_t nevents, events_cap;
	uint64_t changed_ns; /* the time of the last change */
	/* What was found at an address since the last change there */
	struct idmap asked;
	uint32_t *asked_numbers;
	size_t asked_cap;
	uint64_t since; /* when all earlier samples had been taken from the ring */
	/* Modules: the list is to be read; an address may be in one; when it was read; its hash */
	bool modules_due, has_modules;
	uint64_t modules_ns, modules_hash;
};

/* 0: there are too many names. */
static uint32_t number_of(struct kernel_names *kn, const char *name)
{
	uint32_t id;

	if (strpool_count(kn->names) >= KERNEL_NUMBERS - 1 ||
	    strpool_intern(kn->names, name, strlen(name), &id))
		return NO_NAME;
	return id;
}

/* The kernel reports no changes of modules. Their sizes and addresses tell of them. */
static uint64_t hash_modules(const char *path)
{
	char line[512], name[64], size[32], addr[32];
	FILE *f = fopen(path, "re");
	uint64_t hash = 1;

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%63s %31s %*s %*s %*s %31s", name, size, addr) != 3)
			continue;
		hash = hash_mix(hash, hash_bytes(name, strlen(name)));
		hash = hash_mix(hash, hash_bytes(size, strlen(size)));
		hash = hash_mix(hash, hash_bytes(addr, strlen(addr)));
	}
	if (f)
		fclose(f);
	return hash;
}

struct kernel_names *kernel_names_new(kernel_ask_fn ask, void *ctx, const char *modules)
{
	struct kernel_names *kn = calloc(1, sizeof(*kn));

	if (!kn)
		return NULL;
	kn->ask = ask;
	kn->ctx = ctx;
	kn->modules_path = modules;
	kn->names = strpool_new();
	if (kn->names && number_of(kn, "") == NO_NAME &&
	    number_of(kn, "[replaced code]") == REPLACED) {
		kn->modules_hash = hash_modules(modules);
		return kn;
	}
	kernel_names_free(kn);
	return NULL;
}

void kernel_names_free(struct kernel_names *kn)
{
	if (!kn)
		return;
	ksymbols_close(&kn->changes);
	strpool_free(kn->names);
	idmap_free(&kn->asked);
	free(kn->asked_numbers);
	free(kn->pieces);
	free(kn->events);
	free(kn);
}

int kernel_names_follow(struct kernel_names *kn, int ncpus)
{
	return ksymbols_open(&kn->changes, ncpus);
}

/* ---- What comes and goes ---- */

static void forget_asked(struct kernel_names *kn, uint64_t start, uint64_t end)
{
	for (size_t i = 0; i < kn->asked.n; i++)
		if (kn->asked.keys[i].a >= start && kn->asked.keys[i].a < end &&
		    kn->asked_numbers[i] != FIXED)
			kn->asked_numbers[i] = AGAIN;
}

static void drop_old(struct kernel_names *kn)
{
	size_t n = 0;

	for (size_t i = 0; i < kn->n; i++)
		if (kn->pieces[i].to == UINT64_MAX || kn->pieces[i].to + FORGET_NS > kn->since)
			kn->pieces[n++] = kn->pieces[i];
	kn->n = n < PIECES_MAX ? n : 0;
}

/* Adds a piece. What is there is asked for when memory runs out. */
static void add_piece(struct kernel_names *kn, const struct piece *p)
{
	if (kn->n >= kn->cap && kn->n)
		drop_old(kn);
	if (!vec_reserve(&kn->pieces, &kn->cap, kn->n + 1, sizeof(*kn->pieces)))
		kn->pieces[kn->n++] = *p;
	forget_asked(kn, p->start, p->end);
}

void kernel_names_see(void *ctx, const struct ksymbol *s)
{
	struct kernel_names *kn = ctx;

	if (s->start + s->len < s->start ||
	    vec_reserve(&kn->events, &kn->events_cap, kn->nevents + 1, sizeof(*kn->events)))
		return;
	kn->events[kn->nevents++] = (struct event){ s->time_ns, s->start, s->len,
						    number_of(kn, s->name), s->gone };
}

static int by_time(const void *a, const void *b)
{
	const struct event *x = a, *y = b;

	return x->time < y->time ? -1 : x->time > y->time;
}

static void apply(struct kernel_names *kn, const struct event *e)
{
	struct piece fresh = { e->start, e->start + e->len, 0, e->time, e->number };

	kn->changed_ns = e->time;
	if (!e->gone) {
		fresh.from = e->time;
		fresh.to = UINT64_MAX;
	}
	for (size_t i = 0; i < kn->n; i++) {
		struct piece *p = &kn->pieces[i];

		if (p->to != UINT64_MAX || p->start >= fresh.end || p->end <= fresh.start)
			continue;
		p->to = e->time;
		if (e->gone && p->start == e->start) {
			forget_asked(kn, p->start, p->end);
			return;
		}
	}
	add_piece(kn, &fresh);
}

/* The rings of the CPUs are read one after the other. */
static void read_changes(struct kernel_names *kn, uint64_t now_ns)
{
	const struct piece lost = { 0, UINT64_MAX, kn->since, now_ns, REPLACED };
	bool all;

	if (!ksymbols_pending(&kn->changes) && !kn->nevents)
		return;
	all = ksymbols_read(&kn->changes, kernel_names_see, kn);
	qsort(kn->events, kn->nevents, sizeof(*kn->events), by_time);
	for (size_t i = 0; i < kn->nevents; i++)
		apply(kn, &kn->events[i]);
	kn->nevents = 0;
	if (!all) {
		kn->n = 0;
		add_piece(kn, &lost);
		kn->changed_ns = now_ns;
	}
}

static void look_at_modules(struct kernel_names *kn, uint64_t now_ns)
{
	const struct piece gap = { 0, UINT64_MAX, kn->modules_ns, now_ns, REPLACED };
	uint64_t hash = hash_modules(kn->modules_path);

	if (hash != kn->modules_hash) {
		add_piece(kn, &gap);
		kn->changed_ns = now_ns;
	}
	kn->modules_hash = hash;
	kn->modules_ns = now_ns;
	kn->modules_due = false;
}

void kernel_names_round(struct kernel_names *kn, uint64_t now_ns)
{
	kn->since = now_ns - LATE_NS;
	kn->modules_due = kn->has_modules;
}

/* ---- What a sample was in ---- */

/* Whether something else may be at the address later. The kernel's own functions stay. */
static bool may_change(const char *name)
{
	static const char *const prefixes[] = { "bpf_", "ftrace_trampoline", "kprobe_" };

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
			return true;
	return strchr(name, '[') != NULL;
}

/* What is there now: a number, or FIXED. */
static uint32_t ask_now(struct kernel_names *kn, uint64_t addr)
{
	char name[256];
	uint32_t number = NO_NAME, at;

	if (idmap_find(&kn->asked, addr, 0, &at) && kn->asked_numbers[at] != AGAIN)
		return kn->asked_numbers[at];
	*name = 0;
	if (kn->ask(kn->ctx, addr, name, sizeof(name)))
		number = may_change(name) ? number_of(kn, name) : FIXED;
	kn->has_modules |= !*name || strchr(name, '[');
	if (kn->asked.n >= ASKED_MAX)
		idmap_reset(&kn->asked);
	if (!vec_reserve(&kn->asked_numbers, &kn->asked_cap, kn->asked.n + 1,
			 sizeof(*kn->asked_numbers)) &&
	    !idmap_get(&kn->asked, addr, 0, &at))
		kn->asked_numbers[at] = number;
	return number;
}

/* What was at the address between two times. false: not known. */
static bool find(const struct kernel_names *kn, uint64_t addr, uint64_t from, uint64_t to,
		 uint32_t *ret)
{
	bool found = false;

	for (size_t i = 0; i < kn->n; i++) {
		const struct piece *p = &kn->pieces[i];

		if (addr < p->start || addr >= p->end || p->from > to || p->to < from)
			continue;
		*ret = found && *ret != p->number ? REPLACED : p->number;
		found = true;
	}
	return found;
}

uint64_t kernel_names_word(struct kernel_names *kn, uint64_t addr, uint64_t time_ns,
			   uint64_t now_ns)
{
	uint64_t from = time_ns ? time_ns : kn->since, to = time_ns ? time_ns : now_ns;
	uint32_t number, then, at;

	if (addr < CHANGES_FROM || kernel_word_numbered(addr) ||
	    (idmap_find(&kn->asked, addr, 0, &at) && kn->asked_numbers[at] == FIXED))
		return addr;
	if (kn->modules_due)
		look_at_modules(kn, now_ns);
	read_changes(kn, now_ns);
	number = ask_now(kn, addr);
	if (number == FIXED)
		return addr;
	if (ksymbols_pending(&kn->changes)) { /* changes, perhaps before the answer */
		read_changes(kn, now_ns);
		to = time_ns ? time_ns : UINT64_MAX;
	}
	if ((kn->changed_ns >= from || number == NO_NAME) && find(kn, addr, from, to, &then))
		number = then;
	return KERNEL_WORD(number, addr);
}

bool kernel_names_get(const struct kernel_names *kn, uint64_t word, char *ret, size_t cap)
{
	uint32_t number = kernel_word_number(word);

	if (number == NO_NAME || number >= strpool_count(kn->names))
		return false;
	snprintf(ret, cap, "%s", strpool_str(kn->names, number));
	return true;
}
