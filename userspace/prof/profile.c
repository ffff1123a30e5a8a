/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Samples in, distinct stacks out.
 *
 * A long run has millions of samples and far fewer distinct stacks. Memory must follow the second
 * number, and adding a sample must cost one look into a hash table.
 *
 *   slots[hash] -> stacks[i]: counts, process, flags, `at` --+
 *                                                            v
 *                                     words: | frames of stack 0 | frames of stack 1 | ...
 *                                     ids:   | symbols of stack 0 | ...   (parallel to words)
 *
 * Invariants:
 *
 *   - A stack keeps its index and its words until profile_reset or profile_forget_processes: other
 *     records refer to a stack by index (`waker`, a timeline).
 *   - What makes stacks distinct is in hash_stack and same_stack, and in no other place.
 *   - `ids` are a memo of names. A stack without final names (`named`) is looked up again, because
 *     the file of a frame may be loaded after its first sample.
 *   - A sample that finds no memory (-ENOMEM) leaves the profile as it was.
 */
#include "prof/profile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/idmap.h"
#include "base/kernel_word.h"
#include "base/slots.h"
#include "base/vec.h"

struct stack {
	/* Index of its first word in profile.words and of its first id in profile.ids */
	uint64_t at;
	uint64_t count, weight, cgroup_id;
	uint32_t pid, tid;
	uint32_t frames_hash, hash; /* hash of its words; hash of all that makes it distinct */
	uint16_t n_user, n_kernel;
	uint8_t stop, flags, state, lang_stop, group;
	bool named; /* its symbol ids are final */
	uint32_t waker, cpu1, link;
	char comm[SF_COMM];
};

struct profile {
	uint64_t *words;
	size_t nwords, words_cap;
	uint32_t *ids; /* parallel to words, up to ids_cap */
	size_t ids_cap;
	struct stack *stacks;
	size_t nstacks, stacks_cap;
	struct slots slots; /* index of stacks */
	struct idmap pids;  /* ids of the processes with a name */
	struct process_name {
		char text[SF_COMM];
	} * process_names; /* indexed by id in pids */
	size_t process_names_cap;
	uint64_t samples, weight;
	bool by_thread;
};

struct profile *profile_new(void)
{
	return calloc(1, sizeof(struct profile));
}

void profile_free(struct profile *p)
{
	if (!p)
		return;
	free(p->words);
	free(p->ids);
	free(p->stacks);
	slots_free(&p->slots);
	idmap_free(&p->pids);
	free(p->process_names);
	free(p);
}

void profile_by_thread(struct profile *p)
{
	p->by_thread = true;
}

void profile_reset(struct profile *p)
{
	slots_reset(&p->slots);
	idmap_reset(&p->pids);
	p->nwords = p->nstacks = 0;
	p->samples = p->weight = 0;
}

static uint64_t hash_of(const void *ctx, size_t i)
{
	const struct profile *p = ctx;

	return p->stacks[i].hash;
}

static uint32_t hash_stack(const struct stack *s)
{
	uint64_t h = hash_bytes(s->comm, sizeof(s->comm));

	h = hash_mix(h, s->cgroup_id ^ (uint64_t)s->tid << 32);
	h = hash_mix(h, (uint64_t)s->link << 32 | s->cpu1);
	h = hash_mix(h, s->group);
	h = hash_mix(h, (uint64_t)s->pid << 32 | (uint64_t)s->n_user << 16 | s->n_kernel);
	h = hash_mix(h, (uint64_t)s->waker << 32 | (uint64_t)s->lang_stop << 24 |
				(uint64_t)s->state << 16 | (uint64_t)s->stop << 8 | s->flags);
	h = hash_mix(h, s->frames_hash);
	return (uint32_t)(h ^ h >> 32);
}

static bool same_stack(const struct profile *p, const struct stack *a, const struct stack *b,
		       const uint64_t *b_frames)
{
	size_t n = (size_t)b->n_user + b->n_kernel;

	return a->hash == b->hash && a->pid == b->pid && a->tid == b->tid &&
	       a->cgroup_id == b->cgroup_id && a->n_user == b->n_user &&
	       a->n_kernel == b->n_kernel && a->stop == b->stop && a->flags == b->flags &&
	       a->state == b->state && a->lang_stop == b->lang_stop && a->waker == b->waker &&
	       a->cpu1 == b->cpu1 && a->link == b->link && a->group == b->group &&
	       memcmp(a->comm, b->comm, sizeof(a->comm)) == 0 &&
	       (!n || memcmp(p->words + a->at, b_frames, n * sizeof(*b_frames)) == 0);
}

/* The stack that is equal to key, or NULL; *ret_slot is the slot of it or for it. */
static struct stack *find_stack(const struct profile *p, const struct stack *key,
				const uint64_t *frames, size_t *ret_slot)
{
	size_t at;

	slots_each(&p->slots, key->hash, at) {
		*ret_slot = at;
		if (same_stack(p, &p->stacks[p->slots.ids[at] - 1], key, frames))
			return &p->stacks[p->slots.ids[at] - 1];
	}
	*ret_slot = at;
	return NULL;
}

/*
 * Adds the count and weight of key to the equal stack, which is created if needed. NULL: out of
 * memory.
 */
static struct stack *add_stack(struct profile *p, const struct stack *key, const uint64_t *frames)
{
	size_t n = (size_t)key->n_user + key->n_kernel, at;
	struct stack *s;

	if (slots_reserve(&p->slots, p->nstacks, hash_of, p))
		return NULL;
	s = find_stack(p, key, frames, &at);
	if (s) {
		s->count += key->count;
		s->weight += key->weight;
		goto counted;
	}
	if (p->nstacks >= UINT32_MAX - 1 ||
	    vec_reserve(&p->words, &p->words_cap, p->nwords + n, sizeof(*p->words)) ||
	    vec_reserve(&p->stacks, &p->stacks_cap, p->nstacks + 1, sizeof(*p->stacks)))
		return NULL;
	s = &p->stacks[p->nstacks++];
	*s = *key;
	s->at = p->nwords;
	s->named = false;
	if (n)
		memcpy(p->words + p->nwords, frames, n * sizeof(*frames));
	p->nwords += n;
	p->slots.ids[at] = (uint32_t)p->nstacks;
counted:
	p->samples += key->count;
	p->weight += key->weight;
	return s;
}

/* A stack made from rec, without a position in the profile. */
static struct stack key_of(const struct profile *p, const struct sf_sample *rec,
			   const struct profile_times *t)
{
	struct stack key = {
		.count = t->count,
		.weight = t->weight,
		.cgroup_id = rec->cgroup_id,
		.pid = rec->pid,
		.tid = p->by_thread ? rec->tid : 0,
		.n_user = rec->n_user,
		.n_kernel = rec->n_kernel,
		.stop = rec->stop,
		.flags = rec->flags & (uint8_t)~SF_SAMPLE_LINKED,
		.lang_stop = rec->lang_stop,
		.state = t->state,
		.group = t->group,
		.waker = t->waker,
		.cpu1 = t->cpu1,
		.link = t->link,
	};

	memcpy(key.comm, rec->comm, strnlen(rec->comm, SF_COMM - 1));
	key.frames_hash = (uint32_t)hash_bytes(rec->frames, ((size_t)key.n_user + key.n_kernel) *
								    sizeof(*rec->frames));
	key.hash = hash_stack(&key);
	return key;
}

static bool in_range(const struct sf_sample *rec)
{
	return rec->n_user <= SF_MAX_USER && rec->n_kernel <= SF_MAX_KERNEL &&
	       rec->stop < SF_STOP_MAX && rec->lang_stop < SF_STOP_MAX;
}

bool profile_has(const struct profile *p, const struct sf_sample *rec,
		 const struct profile_times *t, size_t *ret_index)
{
	const struct stack *s;
	struct stack key;
	size_t slot;

	if (!p->slots.n || !in_range(rec))
		return false;
	key = key_of(p, rec, t);
	s = find_stack(p, &key, rec->frames, &slot);
	if (s)
		*ret_index = (size_t)(s - p->stacks);
	return s;
}

int profile_add_times(struct profile *p, const struct sf_sample *rec, const struct profile_times *t,
		      size_t *ret_index)
{
	struct stack key, *s;

	if (!in_range(rec))
		return -EINVAL;
	key = key_of(p, rec, t);
	s = add_stack(p, &key, rec->frames);
	if (s && ret_index)
		*ret_index = (size_t)(s - p->stacks);
	return s ? 0 : -ENOMEM;
}

int profile_add(struct profile *p, const struct sf_sample *rec)
{
	struct profile_times once = { .count = 1, .weight = rec->weight };

	return profile_add_times(p, rec, &once, NULL);
}

/* Makes ids as long as words. After a failure both are still usable. */
static int reserve_ids(struct profile *p)
{
	return vec_reserve(&p->ids, &p->ids_cap, p->words_cap ? p->words_cap : 1, sizeof(*p->ids));
}

/* Names of code without a file depend on the process. */
static bool needs_pid(const struct stack *s, const uint64_t *frames)
{
	for (size_t k = 0; k < s->n_user; k++)
		if (SF_FRAME_KIND(frames[k]) == SF_FRAME_JIT)
			return true;
	return false;
}

static int merge_as(struct profile *dst, const struct profile *src, size_t i,
		    const struct stack *key)
{
	const struct stack *from = &src->stacks[i];
	struct stack *to = add_stack(dst, key, src->words + from->at);
	size_t n = (size_t)from->n_user + from->n_kernel;

	if (!to)
		return -ENOMEM;
	if (!from->named || to->named || reserve_ids(dst))
		return 0; /* names without ids are looked up again later */
	memcpy(dst->ids + to->at, src->ids + from->at, n * sizeof(*dst->ids));
	to->named = true;
	return 0;
}

int profile_name_process(struct profile *p, uint32_t pid, const char *name)
{
	struct process_name *to;
	uint32_t id;

	/* Room first: an id without a name must not remain if memory runs out. */
	if (vec_reserve(&p->process_names, &p->process_names_cap, p->pids.n + 1,
			sizeof(*p->process_names)) ||
	    idmap_get(&p->pids, pid, 0, &id))
		return -ENOMEM;
	to = &p->process_names[id];
	*to = (struct process_name){ 0 };
	memcpy(to->text, name, strnlen(name, sizeof(to->text) - 1));
	return 0;
}

const char *profile_process_name(const struct profile *p, uint32_t pid)
{
	uint32_t id;

	return idmap_find(&p->pids, pid, 0, &id) ? p->process_names[id].text : NULL;
}

void profile_set_weight(struct profile *p, size_t i, uint64_t weight)
{
	p->weight += weight - p->stacks[i].weight;
	p->stacks[i].weight = weight;
}

static int merge_process_names(struct profile *dst, const struct profile *src)
{
	int err = 0;

	for (size_t i = 0; i < src->pids.n && !err; i++)
		err = profile_name_process(dst, (uint32_t)src->pids.keys[i].a,
					   src->process_names[i].text);
	return err;
}

int profile_merge_one(struct profile *dst, const struct profile *src, size_t i)
{
	const char *name = profile_process_name(src, src->stacks[i].pid);
	int err = name ? profile_name_process(dst, src->stacks[i].pid, name) : 0;

	return err ? err : merge_as(dst, src, i, &src->stacks[i]);
}

int profile_merge_part(struct profile *dst, const struct profile *src, size_t i,
		       const struct profile_times *t)
{
	struct stack key = src->stacks[i];
	const char *name = profile_process_name(src, key.pid);
	int err = name ? profile_name_process(dst, key.pid, name) : 0;

	key.count = t->count;
	key.weight = t->weight;
	key.state = t->state;
	key.group = t->group;
	key.tid = 0;
	key.hash = hash_stack(&key);
	return err ? err : merge_as(dst, src, i, &key);
}

int profile_merge(struct profile *dst, const struct profile *src)
{
	int err = merge_process_names(dst, src);

	for (size_t i = 0; i < src->nstacks && !err; i++)
		err = merge_as(dst, src, i, &src->stacks[i]);
	return err;
}

/* Whether the thread has a name of its own. */
static bool is_named(const struct profile *p, const struct stack *s)
{
	const char *process = profile_process_name(p, s->pid);

	return process && strcmp(s->comm, process) != 0;
}

int profile_thread_names(const struct profile *p, struct thread_names *ret)
{
	int err = 0;

	for (size_t i = 0; i < p->nstacks && !err; i++)
		if (is_named(p, &p->stacks[i]))
			err = thread_names_add(ret, p->stacks[i].pid, p->stacks[i].comm);
	return err;
}

void profile_common_names(struct profile *p, const struct thread_names *t)
{
	char common[THREAD_NAME_MAX];

	for (size_t i = 0; i < p->nstacks; i++) {
		struct stack *s = &p->stacks[i];

		if (is_named(p, s) && thread_names_common(t, s->pid, s->comm, common))
			memcpy(s->comm, common, strlen(common) + 1); /* not longer */
	}
}

void profile_mark(const struct profile *p, const struct modules *ms)
{
	for (size_t i = 0; i < p->nstacks; i++)
		for (size_t k = 0; k < p->stacks[i].n_user; k++)
			modules_mark(ms, p->words[p->stacks[i].at + k]);
}

void profile_forget_processes(struct profile *p)
{
	size_t n = p->nstacks, slot;

	slots_reset(&p->slots);
	p->nstacks = 0;
	for (size_t i = 0; i < n; i++) {
		struct stack key = p->stacks[i], *s;
		const uint64_t *frames = p->words + key.at;

		key.cgroup_id = 0;
		key.tid = 0;
		if (!needs_pid(&key, frames))
			key.pid = 0;
		key.hash = hash_stack(&key);
		s = find_stack(p, &key, frames, &slot);
		if (s) {
			key.count += s->count;
			key.weight += s->weight;
			if (s->named) /* the words of both are equal, their ids may not be */
				key.at = s->at;
			key.named |= s->named;
			*s = key;
		} else {
			p->stacks[p->nstacks++] = key;
			p->slots.ids[slot] = (uint32_t)p->nstacks;
		}
	}
}

int profile_merge_cgroup(struct profile *dst, const struct profile *src, uint64_t cgroup_id)
{
	int err = merge_process_names(dst, src);

	for (size_t i = 0; i < src->nstacks && !err; i++) {
		struct stack key = src->stacks[i];

		key.cgroup_id = cgroup_id;
		key.hash = hash_stack(&key);
		err = merge_as(dst, src, i, &key);
	}
	return err;
}

size_t profile_count(const struct profile *p)
{
	return p->nstacks;
}

uint64_t profile_samples(const struct profile *p)
{
	return p->samples;
}

size_t profile_bytes(const struct profile *p)
{
	return sizeof(*p) + p->words_cap * sizeof(*p->words) + p->ids_cap * sizeof(*p->ids) +
	       p->stacks_cap * sizeof(*p->stacks) + slots_bytes(&p->slots) + idmap_bytes(&p->pids) +
	       p->process_names_cap * sizeof(*p->process_names);
}

void profile_stack(const struct profile *p, size_t i, struct profile_stack *ret)
{
	const struct stack *s = &p->stacks[i];
	const char *process = profile_process_name(p, s->pid);

	*ret = (struct profile_stack){
		.frames = p->words + s->at,
		.comm = s->comm,
		.process = process ? process : s->comm,
		.count = s->count,
		.weight = s->weight,
		.cgroup_id = s->cgroup_id,
		.pid = s->pid,
		.tid = s->tid,
		.n_user = s->n_user,
		.n_kernel = s->n_kernel,
		.stop = s->stop,
		.flags = s->flags,
		.state = s->state,
		.group = s->group,
		.lang_stop = s->lang_stop,
		.waker = s->waker,
		.cpu1 = s->cpu1,
		.link = s->link,
	};
}

/*
 * Whether the kernel's frame outside of this one was interrupted there, by the name of the entry
 * code of exceptions and interrupts. Else it called.
 */
static bool was_interrupted(const char *inner)
{
	return !strncmp(inner, "asm_", 4) || !strncmp(inner, "el1h_64_", 8);
}

/*
 * A return address belongs to the call before it, which may be the last instruction of its
 * function. The innermost address is one only in waits, where that call returns.
 */
static void name_kernel(const struct stack *s, const uint64_t *frames, uint32_t *ids,
			struct symbolizer *sz)
{
	for (size_t k = s->n_user; k < (size_t)s->n_user + s->n_kernel; k++) {
		bool exact = k == s->n_user || was_interrupted(symbolizer_name(sz, ids[k - 1]));

		ids[k] = symbolizer_kernel(sz, frames[k] - !exact);
	}
}

const uint32_t *profile_symbols(struct profile *p, size_t i, struct symbolizer *sz)
{
	struct stack *s = &p->stacks[i];
	const uint64_t *frames = p->words + s->at;
	bool all_final = true, is_final;
	uint32_t *ids;

	if (!s->named) {
		if (reserve_ids(p))
			return NULL;
		ids = p->ids + s->at;
		for (size_t k = 0; k < s->n_user; k++) {
			ids[k] = symbolizer_user(sz, frames[k], s->pid, &is_final);
			all_final &= is_final;
		}
		name_kernel(s, frames, ids, sz);
		s->named = all_final;
	}
	return p->ids + s->at;
}

int profile_set_symbols(struct profile *p, size_t i, const uint32_t *ids)
{
	struct stack *s = &p->stacks[i];
	size_t n = (size_t)s->n_user + s->n_kernel;

	if (reserve_ids(p))
		return -ENOMEM;
	if (n)
		memcpy(p->ids + s->at, ids, n * sizeof(*ids));
	s->named = true;
	return 0;
}

int profile_resolve(struct profile *p, struct symbolizer *sz)
{
	for (size_t i = 0; i < p->nstacks; i++)
		if (!profile_symbols(p, i, sz))
			return -ENOMEM;
	return 0;
}

int profile_settle(struct profile *p, struct symbolizer *sz)
{
	int err = profile_resolve(p, sz);

	for (size_t i = 0; i < p->nstacks && !err; i++)
		p->stacks[i].named = true;
	return err;
}

/* ---- Shown frames ---- */

static int add_shown(struct profile_frames *f, uint64_t word, uint32_t symbol, bool kernel,
		     bool inlined)
{
	if (vec_reserve(&f->list, &f->cap, f->n + 1, sizeof(*f->list)))
		return -ENOMEM;
	f->list[f->n++] = (struct profile_frame){
		.word = word, .symbol = symbol, .kernel = kernel, .inlined = inlined
	};
	return 0;
}

int profile_frames(struct profile *p, size_t i, struct symbolizer *sz, bool user, bool kernel,
		   struct profile_frames *ret)
{
	const uint32_t *ids = profile_symbols(p, i, sz), *inlined;
	struct profile_stack s;
	int err = ids ? 0 : -ENOMEM;

	profile_stack(p, i, &s);
	ret->n = 0;
	for (size_t k = s.n_user; k < (size_t)s.n_user + s.n_kernel && kernel && !err; k++)
		err = add_shown(ret, kernel_word_addr(s.frames[k]), ids[k], true, false);
	for (size_t k = 0; k < s.n_user && user && !err; k++) {
		size_t n = symbolizer_inlined(sz, s.frames[k], &inlined);

		for (size_t d = 0; d < n && !err; d++)
			err = add_shown(ret, s.frames[k], inlined[d], false, true);
		if (!err)
			err = add_shown(ret, s.frames[k], ids[k], false, false);
	}
	return err;
}

int profile_want_debug(const struct profile *p, struct symbolizer *sz)
{
	int err = 0;

	for (size_t i = 0; i < p->nstacks; i++) {
		const struct stack *s = &p->stacks[i];

		for (size_t k = 0; k < s->n_user && !err; k++)
			err = symbolizer_want_debug(sz, p->words[s->at + k], s->pid);
	}
	return err;
}

/* ---- The account ---- */

static enum frame_source row_source(const struct module *m, uint64_t offset)
{
	/*
	 * Binary search: ranges before lo end at or below offset, ranges from hi on start above it
	 */
	const struct module_ranges *r = m->ranges;
	uint32_t lo = 0, hi = r ? r->n : 0;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (offset >= r->v[mid].end)
			lo = mid + 1;
		else if (offset < r->v[mid].start)
			hi = mid;
		else
			return r->v[mid].code ? FRAME_CODE : FRAME_SFRAME;
	}
	return FRAME_EH_FRAME;
}

enum frame_source profile_frame_source(const struct modules *ms, uint64_t frame,
				       enum frame_source below)
{
	const struct module *m;

	switch (SF_FRAME_KIND(frame)) {
	case SF_FRAME_ROW:
		m = modules_find(ms, SF_FRAME_MODULE(frame));
		return m && m->known == KNOWN_TABLES ? row_source(m, SF_FRAME_OFFSET(frame))
						     : FRAME_EH_FRAME;
	case SF_FRAME_JIT:
		return FRAME_JIT;
	case SF_FRAME_LANG:
		return FRAME_LANG + (SF_FRAME_LANGUAGE(frame) % SF_LANG_MAX);
	default:
		return frame & SF_FRAME_BY_FP ? FRAME_FP : below;
	}
}

static void account_language(struct profile_account *a, const struct stack *s,
			     const uint64_t *frames)
{
	uint32_t language = SF_SAMPLE_LANG(s->flags);

	if (!language || language >= SF_LANG_MAX)
		return;
	a->languages[language].stacks += s->count;
	a->languages[language].stops[s->lang_stop] += s->count;
	for (size_t k = 0; k < s->n_user; k++)
		if (SF_FRAME_KIND(frames[k]) == SF_FRAME_LANG && !SF_FRAME_CODE(frames[k]))
			a->languages[SF_FRAME_LANGUAGE(frames[k]) % SF_LANG_MAX].unnamed +=
				s->count;
}

void profile_account(const struct profile *p, const struct modules *ms, struct profile_account *ret)
{
	struct profile_account a = { .samples = p->samples };
	uint64_t by_source[FRAME_SOURCES] = { 0 };

	for (size_t i = 0; i < p->nstacks; i++) {
		const struct stack *s = &p->stacks[i];
		enum frame_source source = FRAME_FP; /* the first frame has no frame below */

		if (s->flags & SF_SAMPLE_USER) {
			a.user_total += s->count;
			a.stops[s->stop] += s->count;
		} else {
			a.samples_without_user += s->count;
			continue; /* SF_FRAME_EXEC is no frame */
		}
		a.frames += s->count * s->n_user;
		account_language(&a, s, p->words + s->at);
		for (size_t k = 0; k < s->n_user; k++) {
			source = profile_frame_source(ms, p->words[s->at + k], source);
			by_source[source] += s->count;
		}
	}
	a.sframe = by_source[FRAME_SFRAME];
	a.eh_frame = by_source[FRAME_EH_FRAME];
	a.code = by_source[FRAME_CODE];
	a.fp = by_source[FRAME_FP];
	a.jit = by_source[FRAME_JIT];
	for (size_t i = 0; i < SF_LANG_MAX; i++)
		a.languages[i].frames = by_source[FRAME_LANG + i];
	*ret = a;
}
