/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A recording: all that a report has, so that `report` can write each format later, with the
 * writers of the formats themselves. recording_fields.h has the layout, recording.h the reader.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/gzip.h"
#include "base/idmap.h"
#include "base/pb.h"
#include "base/strpool.h"
#include "base/vec.h"
#include "out/out.h"
#include "out/out_blocks.h"
#include "out/recording_fields.h"
#include "prof/slices.h"
#include "prof/timeline.h"

_Static_assert(SF_FRAME_KIND_SHIFT == 61 && SF_FRAME_MODULE_SHIFT == 34 &&
		       SF_FRAME_EPOCH_SHIFT == 47 && SF_FRAME_BY_FP == 1ull << 60,
	       "words have another layout: RECORDING_MAGIC must change");

struct writer {
	const struct out_report *r;
	struct pb pb;
	struct strpool *strings;
	struct idmap frames; /* word, symbol */
	struct idmap modules, processes, tasks;
	uint64_t *numbers; /* scratch */
	size_t n, cap;
	int err;
};

static void add(struct writer *w, uint64_t number)
{
	if (vec_reserve(&w->numbers, &w->cap, w->n + 1, sizeof(*w->numbers)))
		w->err = -ENOMEM;
	else
		w->numbers[w->n++] = number;
}

static void put_numbers(struct writer *w, uint32_t field)
{
	pb_packed(&w->pb, field, w->numbers, w->n);
	w->n = 0;
}

static uint64_t string_of(struct writer *w, const char *s)
{
	uint32_t id;

	if (!s || !*s)
		return 0;
	if (strpool_intern(w->strings, s, strlen(s), &id)) {
		w->err = -ENOMEM;
		return 0;
	}
	return id + 1ul;
}

static void put_string(struct writer *w, uint32_t field, const char *s)
{
	pb_u64(&w->pb, field, string_of(w, s));
}

static uint64_t bits_of(double d)
{
	uint64_t bits;

	memcpy(&bits, &d, sizeof(bits));
	return bits;
}

static uint64_t zigzag(uint64_t to, uint64_t from)
{
	int64_t d = (int64_t)(to - from);

	return (uint64_t)d << 1 ^ (uint64_t)(d >> 63);
}

/* ---- Meta ---- */

static void put_meta(struct writer *w)
{
	const struct out_report *r = w->r;
	const struct out_meta *m = r->meta;
	size_t at = pb_begin(&w->pb, REC_META);

	put_string(w, META_EVENT, m->event);
	pb_fixed64(&w->pb, META_HZ, bits_of(m->hz));
	put_string(w, META_HOST, m->host);
	put_string(w, META_COMMAND, m->command);
	put_string(w, META_COMMAND_LINE, m->command_line);
	put_string(w, META_KERNEL, m->kernel);
	put_string(w, META_TOOL, "sfbpf " SFBPF_VERSION);
	pb_u64(&w->pb, META_START, m->start_unix_ns);
	pb_u64(&w->pb, META_FLAGS,
	       (r->opts.user_only ? RECORDING_USER_ONLY : 0u) |
		       (r->opts.kernel_only ? RECORDING_KERNEL_ONLY : 0u) |
		       (r->opts.usec ? RECORDING_USEC : 0u) | (r->apart ? RECORDING_APART : 0u) |
		       (r->wakers ? RECORDING_WAKERS : 0u));
	pb_u64(&w->pb, META_BY, r->opts.by);
	pb_u64(&w->pb, META_WALL, r->opts.wall);
	put_string(w, META_UNIT, r->opts.unit);
	for (size_t i = 0; i < r->opts.ngroups; i++)
		put_string(w, META_GROUPS, r->opts.groups[i]);
	pb_end(&w->pb, at);
}

static void put_stats(struct writer *w)
{
	const struct run_stats *st = w->r->stats;
	size_t at = pb_begin(&w->pb, REC_STATS);

	pb_fixed64(&w->pb, STATS_DURATION, bits_of(st->duration_s));
	pb_u64(&w->pb, STATS_SAMPLES, st->samples);
	pb_u64(&w->pb, STATS_USER_TOTAL, st->account.user_total);
	pb_packed(&w->pb, STATS_STOPS, st->account.stops, SF_STOP_MAX);
	pb_packed(&w->pb, STATS_LOST, st->lost, SF_LOST_MAX);
	pb_u64(&w->pb, STATS_OFFCPU, st->offcpu);
	pb_packed(&w->pb, STATS_OFF_NS, st->off_ns, SF_OFF_STATES);
	pb_u64(&w->pb, STATS_OFF_SAMPLED, st->off_sampled_ns);
	pb_u64(&w->pb, STATS_OFF_LOST, st->off_lost_ns);
	pb_u64(&w->pb, STATS_WITHOUT_USER, st->account.samples_without_user);
	pb_end(&w->pb, at);
}

/* ---- Modules, symbols and frames ---- */

static void put_module(struct writer *w, struct module *m)
{
	size_t at;
	uint32_t n;
	const struct module_code *code = symbolizer_code(w->r->symbols, m, &n);

	at = pb_begin(&w->pb, REC_MODULE);
	pb_u64(&w->pb, MODULE_ID, m->id);
	put_string(w, MODULE_PATH, m->path);
	pb_u64(&w->pb, MODULE_SIZE, m->size);
	pb_bytes(&w->pb, MODULE_BUILD_ID, m->build_id, m->build_id_len);
	for (uint32_t i = 0; i < n; i++) {
		add(w, code[i].off);
		add(w, code[i].vaddr);
		add(w, code[i].size);
	}
	put_numbers(w, MODULE_CODE);
	pb_end(&w->pb, at);
}

static bool is_in_file(uint64_t word)
{
	return SF_FRAME_KIND(word) == SF_FRAME_ROW || SF_FRAME_KIND(word) == SF_FRAME_NOROW;
}

static void find_module(struct writer *w, uint64_t word)
{
	size_t before = w->modules.n;
	struct module *m;
	uint32_t id;

	if (idmap_get(&w->modules, SF_FRAME_MODULE(word), 0, &id))
		w->err = -ENOMEM;
	if (w->modules.n == before)
		return;
	m = modules_find(w->r->modules, SF_FRAME_MODULE(word));
	if (m && m->known != KNOWN_ID)
		put_module(w, m);
}

/* Numbers the frames of all stacks. */
static void find_frames(struct writer *w, struct profile *p)
{
	struct profile_stack s;
	uint32_t id;

	w->err = profile_settle(p, w->r->symbols);
	for (size_t i = 0; i < profile_count(p) && !w->err; i++) {
		const uint32_t *ids = profile_symbols(p, i, w->r->symbols);

		profile_stack(p, i, &s);
		for (size_t k = 0; k < (size_t)s.n_user + s.n_kernel && !w->err; k++) {
			if (idmap_get(&w->frames, s.frames[k], ids[k], &id))
				w->err = -ENOMEM;
			else if (k < s.n_user && is_in_file(s.frames[k]))
				find_module(w, s.frames[k]);
		}
	}
}

static void put_symbols(struct writer *w)
{
	const struct symbolizer *sz = w->r->symbols;
	const char *file;

	for (uint32_t id = 0; id < symbolizer_count(sz); id++) {
		uint32_t line = symbolizer_line(sz, id, &file);

		add(w, string_of(w, symbolizer_name(sz, id)));
		add(w, string_of(w, symbolizer_module(sz, id)));
		add(w, string_of(w, symbolizer_function(sz, id)));
		add(w, string_of(w, file));
		add(w, line);
		add(w, symbolizer_start_line(sz, id));
	}
	put_numbers(w, REC_SYMBOLS);
}

static void put_frames(struct writer *w)
{
	const uint32_t *inlined;

	for (size_t i = 0; i < w->frames.n; i++) {
		add(w, w->frames.keys[i].a);
		add(w, w->frames.keys[i].b);
	}
	put_numbers(w, REC_FRAMES);
	for (size_t i = 0; i < w->frames.n; i++) {
		size_t n = symbolizer_inlined(w->r->symbols, w->frames.keys[i].a, &inlined);

		if (!n)
			continue;
		add(w, i);
		add(w, n);
		for (size_t k = 0; k < n; k++)
			add(w, inlined[k]);
	}
	put_numbers(w, REC_INLINED);
}

/* ---- Stacks ---- */

static void put_process(struct writer *w, const struct profile *p, const struct profile_stack *s)
{
	const char *name = profile_process_name(p, s->pid);
	size_t before = w->processes.n, at;
	uint32_t id;

	if (!name)
		return;
	if (idmap_get(&w->processes, s->pid, 0, &id))
		w->err = -ENOMEM;
	if (w->processes.n == before)
		return;
	at = pb_begin(&w->pb, REC_PROCESS);
	pb_u64(&w->pb, PROCESS_PID, s->pid);
	put_string(w, PROCESS_NAME, name);
	pb_end(&w->pb, at);
}

static void put_container(struct writer *w, struct out_containers *oc,
			  const struct profile_stack *s)
{
	const struct out_container *c;
	size_t before = w->tasks.n, at;
	uint32_t id;

	if (idmap_get(&w->tasks, s->pid, s->cgroup_id, &id))
		w->err = -ENOMEM;
	if (w->tasks.n == before)
		return;
	c = out_container(oc, s);
	at = pb_begin(&w->pb, REC_CONTAINER);
	pb_u64(&w->pb, CONTAINER_PID, s->pid);
	pb_u64(&w->pb, CONTAINER_CGROUP, s->cgroup_id);
	put_string(w, CONTAINER_ID, c->id);
	put_string(w, CONTAINER_NAMED, c->name);
	pb_u64(&w->pb, CONTAINER_IS_GONE, c->gone);
	pb_end(&w->pb, at);
}

static void put_stack(struct writer *w, struct profile *p, size_t i, uint32_t field)
{
	const uint32_t *ids = profile_symbols(p, i, w->r->symbols);
	struct profile_stack s;
	uint32_t id = 0;
	size_t at;

	profile_stack(p, i, &s);
	at = pb_begin(&w->pb, field);
	for (size_t k = 0; k < (size_t)s.n_user + s.n_kernel && !w->err; k++) {
		if (idmap_find(&w->frames, s.frames[k], ids[k], &id))
			add(w, id);
	}
	put_numbers(w, STACK_FRAMES);
	pb_u64(&w->pb, STACK_N_USER, s.n_user);
	put_string(w, STACK_COMM, s.comm);
	pb_u64(&w->pb, STACK_PID, s.pid);
	pb_u64(&w->pb, STACK_TID, s.tid);
	pb_u64(&w->pb, STACK_CGROUP, s.cgroup_id);
	pb_u64(&w->pb, STACK_COUNT, s.count);
	pb_u64(&w->pb, STACK_WEIGHT, s.weight);
	pb_u64(&w->pb, STACK_STOP, s.stop);
	pb_u64(&w->pb, STACK_FLAGS, s.flags);
	pb_u64(&w->pb, STACK_STATE, s.state);
	pb_u64(&w->pb, STACK_GROUP, s.group);
	pb_u64(&w->pb, STACK_LANG_STOP, s.lang_stop);
	pb_u64(&w->pb, STACK_WAKER_AT, s.waker);
	pb_end(&w->pb, at);
}

static void put_stacks(struct writer *w, struct out_containers *oc)
{
	struct profile *p = w->r->profile;
	struct profile_stack s;

	for (size_t i = 0; w->r->wakers && i < profile_count(w->r->wakers) && !w->err; i++)
		put_stack(w, w->r->wakers, i, REC_WAKER);
	for (size_t i = 0; i < profile_count(p) && !w->err; i++) {
		put_stack(w, p, i, REC_STACK);
		profile_stack(p, i, &s);
		put_process(w, p, &s);
		put_container(w, oc, &s);
	}
}

/* ---- Times ---- */

static void put_timeline(struct writer *w, const struct timeline *t)
{
	size_t at = pb_begin(&w->pb, REC_TIMELINE), part;
	uint64_t last = t->start_ns;

	pb_u64(&w->pb, TIMES_START, t->start_ns);
	pb_u64(&w->pb, TIMES_SUSPENDED, t->suspended_ns);
	pb_u64(&w->pb, TIMES_DROPPED, t->dropped);
	pb_u64(&w->pb, TIMES_MISSING, t->missing);
	pb_u64(&w->pb, TIMES_MIN_BLOCK, t->min_block_ns);
	pb_u64(&w->pb, TIMES_HAS_BLOCKS, t->has_blocks);
	part = pb_begin(&w->pb, TIMES_SAMPLES);
	for (size_t i = 0; i < t->n; last = t->list[i++].time_ns) {
		pb_varint(&w->pb, zigzag(t->list[i].time_ns, last));
		pb_varint(&w->pb, t->list[i].stack);
		pb_varint(&w->pb, t->list[i].cpu);
	}
	pb_end(&w->pb, part);
	part = pb_begin(&w->pb, TIMES_BLOCKS);
	last = t->start_ns;
	for (size_t i = 0; i < t->nblocks; last = t->blocks[i++].start_ns) {
		const struct timeline_block *b = &t->blocks[i];

		pb_varint(&w->pb, zigzag(b->start_ns, last));
		pb_varint(&w->pb, b->woken_ns - b->start_ns);
		pb_varint(&w->pb, b->end_ns - b->woken_ns);
		pb_varint(&w->pb, b->stack);
		pb_varint(&w->pb, b->waker);
		pb_varint(&w->pb, b->tid);
		pb_varint(&w->pb, b->waker_tid);
	}
	pb_end(&w->pb, part);
	pb_end(&w->pb, at);
}

static void put_slices(struct writer *w, const struct slices *s)
{
	size_t at;

	if (s->failed || !s->cells.n)
		return;
	at = pb_begin(&w->pb, REC_SLICES);
	pb_u64(&w->pb, SLICES_WIDTH, s->width_ns);
	pb_u64(&w->pb, SLICES_N, s->n);
	for (size_t i = 0; i < s->cells.n; i++) {
		add(w, s->cells.keys[i].a);
		add(w, s->cells.keys[i].b);
		add(w, s->counts[i]);
	}
	put_numbers(w, SLICES_CELLS);
	pb_end(&w->pb, at);
}

/* ---- Blocked time ---- */

static void put_thread(struct writer *w, const struct out_blocked_thread *t)
{
	size_t at = pb_begin(&w->pb, BLOCKS_THREAD);
	char comm[SF_COMM + 1];

	snprintf(comm, sizeof(comm), "%.*s", SF_COMM, t->t.comm);
	for (size_t i = 0; i < SF_OFF_STATES; i++)
		add(w, t->t.ns[i]);
	put_numbers(w, THREAD_NS);
	pb_u64(&w->pb, THREAD_COUNT, t->t.count);
	pb_u64(&w->pb, THREAD_MAX, t->t.max_ns);
	pb_u64(&w->pb, THREAD_PID, t->t.pid);
	pb_u64(&w->pb, THREAD_TID, t->tid);
	put_string(w, THREAD_COMM, comm);
	pb_end(&w->pb, at);
}

static void put_blocks(struct writer *w, const struct out_blocks *b)
{
	size_t at = pb_begin(&w->pb, REC_BLOCKS);

	for (size_t i = 0; i < b->n; i++)
		add(w, b->list[i].max_ns);
	put_numbers(w, BLOCKS_LONGEST);
	for (size_t i = 0; i < b->n && b->hist; i++)
		for (size_t k = 0; k < SF_OFF_HIST; k++)
			add(w, b->list[i].hist.slot[k]);
	put_numbers(w, BLOCKS_HIST);
	pb_u64(&w->pb, BLOCKS_HAS_THREADS, b->has_threads);
	for (size_t i = 0; i < b->nthreads; i++)
		put_thread(w, &b->threads[i]);
	pb_end(&w->pb, at);
}

/* ---- The file ---- */

static void put_body(struct writer *w, struct out_containers *oc)
{
	put_meta(w);
	put_stats(w);
	if (w->r->wakers)
		find_frames(w, w->r->wakers);
	if (!w->err)
		find_frames(w, w->r->profile);
	put_symbols(w);
	put_frames(w);
	put_stacks(w, oc);
	if (w->r->timeline)
		put_timeline(w, w->r->timeline);
	if (w->r->blocks)
		put_blocks(w, w->r->blocks);
	if (w->r->slices)
		put_slices(w, w->r->slices);
}

/* Strings come first. */
static int write_packed(const struct writer *w, FILE *f)
{
	struct pb strings = { 0 };
	FILE *packed;
	int err = 0;

	for (uint32_t id = 0; id < strpool_count(w->strings); id++)
		pb_str(&strings, REC_STRING, strpool_str(w->strings, id));
	fwrite(RECORDING_MAGIC, 1, RECORDING_MAGIC_LEN, f);
	packed = strings.err ? NULL : gzip_stream(f, 6);
	if (!packed)
		err = -ENOMEM;
	if (packed) {
		fwrite(strings.buf, 1, strings.len, packed);
		fwrite(w->pb.buf, 1, w->pb.len, packed);
		if (fclose(packed))
			err = errno ? -errno : -EIO;
	}
	pb_free(&strings);
	return err ? err : out_finish(f);
}

int out_recording(const struct out_report *r, FILE *f)
{
	struct out_containers *oc = out_containers_of(r);
	struct writer w = { .r = r, .strings = strpool_new() };
	int err = -ENOMEM;

	if (oc && w.strings) {
		put_body(&w, oc);
		err = w.err ? w.err : w.pb.err ? w.pb.err : write_packed(&w, f);
	}
	pb_free(&w.pb);
	strpool_free(w.strings);
	idmap_free(&w.frames);
	idmap_free(&w.modules);
	idmap_free(&w.processes);
	idmap_free(&w.tasks);
	free(w.numbers);
	out_containers_done(r, oc);
	return err;
}
