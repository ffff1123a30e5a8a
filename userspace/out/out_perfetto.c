/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The samples with their times, for Perfetto: a trace of packets, all of one sequence.
 *
 *   clock_snapshot  the clocks at the start; times in the trace are of CLOCK_BOOTTIME
 *   process_tree    processes and threads by name
 *   perf_sample     a sample: CPU, thread, mode and the id of a callstack. The packet also has the
 *                   interned data that no earlier packet had: callstack, frames, function names,
 *                   mappings.
 *   track_event     the begin or the end of a wait, a slice on its thread's track, with the
 *                   callstack; or an instant on the waker's track. A flow connects the two.
 *
 * A mapping is a file, with its build-id. rel_pc is a virtual address of the ELF file, which
 * symbolizers expect. The kernel is "/kernel", the name that Perfetto knows it by; code without a
 * file lies in "[jit]" and frames that are no code in "[unknown]".
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/idmap.h"
#include "base/pb.h"
#include "base/strpool.h"
#include "base/text.h"
#include "base/vec.h"
#include "out/out.h"
#include "out/out_html.h"
#include "prof/stackset.h"
#include "prof/timeline.h"
#include "prof/wait_notes.h"

/* Field numbers of Perfetto's messages. */
enum {
	TRACE_PACKET = 1,
	PACKET_PROCESS_TREE = 2,
	PACKET_CLOCK_SNAPSHOT = 6,
	PACKET_TIMESTAMP = 8,
	PACKET_SEQUENCE_ID = 10,
	PACKET_TRACK_EVENT = 11,
	PACKET_INTERNED = 12,
	PACKET_SEQUENCE_FLAGS = 13,
	PACKET_DEFAULTS = 59,
	PACKET_TRACK_DESCRIPTOR = 60,
	PACKET_PERF_SAMPLE = 66,
	PACKET_FIRST_ON_SEQUENCE = 87,
	DEFAULTS_PERF_SAMPLE = 12,
	PERF_DEFAULTS_TIMEBASE = 1,
	TIMEBASE_FREQUENCY = 2,
	TIMEBASE_NAME = 10,
	TIMEBASE_CLOCK = 11,
	SNAPSHOT_CLOCKS = 1,
	SNAPSHOT_PRIMARY = 2,
	CLOCK_ID = 1,
	CLOCK_TIMESTAMP = 2,
	TREE_PROCESSES = 1,
	TREE_THREADS = 2,
	PROCESS_PID = 1,
	PROCESS_CMDLINE = 3,
	THREAD_TID = 1,
	THREAD_NAME = 2,
	THREAD_TGID = 3,
	INTERNED_FUNCTION_NAMES = 5,
	INTERNED_FRAMES = 6,
	INTERNED_CALLSTACKS = 7,
	INTERNED_BUILD_IDS = 16,
	INTERNED_MAPPING_PATHS = 17,
	INTERNED_MAPPINGS = 19,
	STRING_IID = 1,
	STRING_STR = 2,
	MAPPING_IID = 1,
	MAPPING_BUILD_ID = 2,
	MAPPING_LOAD_BIAS = 6,
	MAPPING_PATH = 7,
	FRAME_IID = 1,
	FRAME_FUNCTION = 2,
	FRAME_MAPPING = 3,
	FRAME_REL_PC = 4,
	FRAME_KIND = 7,
	CALLSTACK_IID = 1,
	CALLSTACK_FRAMES = 2,
	DESCRIPTOR_UUID = 1,
	DESCRIPTOR_THREAD = 4,
	DESCRIPTOR_PID = 1,
	DESCRIPTOR_TID = 2,
	DESCRIPTOR_THREAD_NAME = 5,
	EVENT_ANNOTATIONS = 4,
	EVENT_TYPE = 9,
	EVENT_TRACK_UUID = 11,
	EVENT_CATEGORIES = 22,
	EVENT_NAME = 23,
	EVENT_FLOW_IDS = 47,
	EVENT_TERMINATING_FLOW_IDS = 48,
	EVENT_CALLSTACK = 56,
	ANNOTATION_STRING = 6,
	ANNOTATION_NAME = 10,
	SAMPLE_CPU = 1,
	SAMPLE_PID = 2,
	SAMPLE_TID = 3,
	SAMPLE_CALLSTACK = 4,
	SAMPLE_CPU_MODE = 5,
	SAMPLE_UNWIND_ERROR = 16,
	SAMPLE_RECORDS_LOST = 17,
};

enum { BUILTIN_REALTIME = 1, BUILTIN_MONOTONIC = 3, BUILTIN_BOOTTIME = 6 };
enum { PERF_CLOCK_MONOTONIC = 2 };
enum { TYPE_SLICE_BEGIN = 1, TYPE_SLICE_END = 2, TYPE_INSTANT = 3 };
enum { FLAG_STATE_CLEARED = 1, FLAG_NEEDS_STATE = 2 };
enum { MODE_KERNEL = 1, MODE_USER = 2 };
enum { UNWIND_ERROR_UNWIND_INFO = 3 };
enum { FRAME_NATIVE = 1, FRAME_KERNEL = 2, FRAME_JIT_CODE = 4 };

#define SEQUENCE    1
#define FLUSH_BYTES (1u << 20)
#define NO_FILE	    (UINT64_C(1) << 32) /* mappings that are no module, by kind */
#define CLEAN_MAX   4096

/* A packet with a track_event. At the same time, they are in the order of their types. */
struct event {
	uint64_t time_ns;
	const struct timeline_mark *mark;
	enum { ENDS, HAPPENS, BEGINS } type;
};

/* All ids in the trace are ids of these maps, plus 1. */
struct perfetto {
	const struct out_report *r;
	FILE *f;
	struct pb pb;	       /* packets that are not written yet */
	struct pb interned;    /* content of interned_data of the next packet */
	struct strpool *names; /* names of functions */
	struct idmap mappings; /* module id, or NO_FILE + kind */
	struct idmap frames;   /* mapping << 32 | name, rel_pc */
	struct idmap nodes;    /* node + 1 of the caller, frame */
	struct idmap stacks;   /* node */
	/* Callstacks of the profile's stacks, and of the stacks of wakers; 0: not yet interned */
	uint32_t *callstacks, *waker_callstacks;
	struct timeline_tracks tracks;
	struct event *events; /* sorted by time */
	size_t nevents;
	uint64_t *ids; /* scratch: the frames of a callstack */
	size_t ids_cap;
	struct profile_frames shown; /* scratch */
	int err;		     /* first failure */
};

static uint64_t in_trace(const struct perfetto *w, uint64_t time_ns)
{
	return time_ns + w->r->timeline->suspended_ns;
}

static size_t packet_begin(struct perfetto *w, uint64_t time_ns, uint32_t flags)
{
	size_t at = pb_begin(&w->pb, TRACE_PACKET);

	pb_u64(&w->pb, PACKET_TIMESTAMP, in_trace(w, time_ns));
	pb_u64(&w->pb, PACKET_SEQUENCE_ID, SEQUENCE);
	pb_u64(&w->pb, PACKET_SEQUENCE_FLAGS, flags);
	return at;
}

static void flush(struct perfetto *w)
{
	if (w->pb.err && !w->err)
		w->err = w->pb.err;
	if (fwrite(w->pb.buf, 1, w->pb.len, w->f) != w->pb.len && !w->err)
		w->err = errno ? -errno : -EIO;
	w->pb.len = 0;
}

/* ---- Head ---- */

static void put_clock(struct perfetto *w, uint32_t clock, uint64_t time_ns)
{
	size_t at = pb_begin(&w->pb, SNAPSHOT_CLOCKS);

	pb_u64(&w->pb, CLOCK_ID, clock);
	pb_u64(&w->pb, CLOCK_TIMESTAMP, time_ns);
	pb_end(&w->pb, at);
}

static void put_head(struct perfetto *w)
{
	const struct out_meta *meta = w->r->meta;
	uint64_t start = w->r->timeline->start_ns;
	size_t packet = packet_begin(w, timeline_begin(w->r->timeline), FLAG_STATE_CLEARED);
	size_t snapshot = pb_begin(&w->pb, PACKET_CLOCK_SNAPSHOT), defaults, perf, timebase;

	put_clock(w, BUILTIN_BOOTTIME, in_trace(w, start));
	put_clock(w, BUILTIN_MONOTONIC, start);
	if (meta->start_unix_ns)
		put_clock(w, BUILTIN_REALTIME, meta->start_unix_ns);
	pb_u64(&w->pb, SNAPSHOT_PRIMARY, BUILTIN_BOOTTIME);
	pb_end(&w->pb, snapshot);
	defaults = pb_begin(&w->pb, PACKET_DEFAULTS);
	perf = pb_begin(&w->pb, DEFAULTS_PERF_SAMPLE);
	timebase = pb_begin(&w->pb, PERF_DEFAULTS_TIMEBASE);
	pb_u64(&w->pb, TIMEBASE_FREQUENCY, (uint64_t)meta->hz);
	pb_str(&w->pb, TIMEBASE_NAME, meta->event ? meta->event : "");
	pb_u64(&w->pb, TIMEBASE_CLOCK, PERF_CLOCK_MONOTONIC);
	pb_end(&w->pb, timebase);
	pb_end(&w->pb, perf);
	pb_end(&w->pb, defaults);
	pb_u64(&w->pb, PACKET_FIRST_ON_SEQUENCE, 1);
	pb_end(&w->pb, packet);
}

static void put_clean(struct perfetto *w, uint32_t field, const char *comm)
{
	char clean[64];

	comm = *comm ? comm : "[unknown]";
	text_clean(clean, sizeof(clean), comm, strlen(comm), 0);
	pb_str(&w->pb, field, clean);
}

static void put_track(struct perfetto *w, const struct timeline_track *k, bool new_process)
{
	size_t at;

	if (new_process) {
		at = pb_begin(&w->pb, TREE_PROCESSES);
		pb_u64(&w->pb, PROCESS_PID, k->pid);
		put_clean(w, PROCESS_CMDLINE, k->process);
		pb_end(&w->pb, at);
	}
	at = pb_begin(&w->pb, TREE_THREADS);
	pb_u64(&w->pb, THREAD_TID, k->tid);
	put_clean(w, THREAD_NAME, k->comm);
	pb_u64(&w->pb, THREAD_TGID, k->pid);
	pb_end(&w->pb, at);
}

/* The track of a thread's slices. No id is 0. */
static uint64_t uuid_of(uint64_t thread)
{
	return thread + 1;
}

static void put_descriptor(struct perfetto *w, const struct timeline_track *k)
{
	size_t packet = packet_begin(w, timeline_begin(w->r->timeline), FLAG_NEEDS_STATE);
	size_t at = pb_begin(&w->pb, PACKET_TRACK_DESCRIPTOR), thread;

	pb_u64(&w->pb, DESCRIPTOR_UUID, uuid_of(w->tracks.marks[k->first_mark].thread));
	thread = pb_begin(&w->pb, DESCRIPTOR_THREAD);
	pb_u64(&w->pb, DESCRIPTOR_PID, k->pid);
	pb_u64(&w->pb, DESCRIPTOR_TID, k->tid);
	put_clean(w, DESCRIPTOR_THREAD_NAME, k->comm);
	pb_end(&w->pb, thread);
	pb_end(&w->pb, at);
	pb_end(&w->pb, packet);
}

static void put_tree(struct perfetto *w)
{
	struct timeline_tracks *t = &w->tracks;
	size_t packet, tree;

	w->err = timeline_by_thread(w->r->timeline, w->r->profile, w->r->wakers, t);
	packet = packet_begin(w, timeline_begin(w->r->timeline), FLAG_NEEDS_STATE);
	tree = pb_begin(&w->pb, PACKET_PROCESS_TREE);
	for (size_t i = 0; i < t->n && !w->err; i++)
		put_track(w, &t->list[i], !i || t->list[i].pid != t->list[i - 1].pid);
	pb_end(&w->pb, tree);
	pb_end(&w->pb, packet);
	for (size_t i = 0; i < t->n && !w->err; i++)
		if (t->list[i].nmarks)
			put_descriptor(w, &t->list[i]);
}

/* ---- Interned data ---- */

static void put_string(struct perfetto *w, uint32_t field, uint64_t iid, const void *data,
		       size_t len)
{
	size_t at = pb_begin(&w->interned, field);

	pb_u64(&w->interned, STRING_IID, iid);
	pb_bytes(&w->interned, STRING_STR, data, len);
	pb_end(&w->interned, at);
}

static uint32_t id_of(struct perfetto *w, struct idmap *map, uint64_t a, uint64_t b, bool *ret_new)
{
	size_t before = map->n;
	uint32_t id = 0;

	if (idmap_get(map, a, b, &id))
		w->err = -ENOMEM;
	*ret_new = id == before;
	return id;
}

/* The id of a mapping; m: its file, or NULL with a name. */
static uint64_t mapping_id(struct perfetto *w, struct module *m, enum stack_kind kind)
{
	static const char *const paths[STACK_KINDS] = {
		[STACK_KERNEL] = "kernel", [STACK_JIT] = "[jit]"
	};
	const char *path = m ? m->path : paths[kind] ? paths[kind] : "[unknown]";
	const struct module_code *code;
	char clean[CLEAN_MAX];
	uint32_t ncode, id;
	size_t at;
	bool is_new;

	id = id_of(w, &w->mappings, m ? m->id : NO_FILE + (paths[kind] ? kind : STACK_NOTE), 0,
		   &is_new);
	if (!is_new)
		return (uint64_t)id + 1;
	path += *path == '/'; /* Perfetto writes a slash before each component */
	put_string(w, INTERNED_MAPPING_PATHS, (uint64_t)id + 1, clean,
		   text_clean(clean, sizeof(clean), path, strlen(path), 0));
	if (m && m->build_id_len)
		put_string(w, INTERNED_BUILD_IDS, (uint64_t)id + 1, m->build_id, m->build_id_len);
	at = pb_begin(&w->interned, INTERNED_MAPPINGS);
	pb_u64(&w->interned, MAPPING_IID, (uint64_t)id + 1);
	if (m && m->build_id_len)
		pb_u64(&w->interned, MAPPING_BUILD_ID, (uint64_t)id + 1);
	code = m ? symbolizer_code(w->r->symbols, m, &ncode) : NULL;
	if (code && ncode)
		pb_u64(&w->interned, MAPPING_LOAD_BIAS, code->vaddr - code->off);
	pb_u64(&w->interned, MAPPING_PATH, (uint64_t)id + 1);
	pb_end(&w->interned, at);
	return (uint64_t)id + 1;
}

/* The file of a frame (NULL: none) and the address that the trace gives for it. */
static struct module *place(struct perfetto *w, const struct profile_frame *f, uint64_t *ret_pc)
{
	uint32_t kind = SF_FRAME_KIND(f->word), ncode;
	const struct module_code *code;
	struct module *m;

	*ret_pc = f->word;
	if (f->kernel)
		return NULL;
	*ret_pc = kind == SF_FRAME_JIT ? SF_FRAME_JIT_ADDR(f->word) : SF_FRAME_ADDR(f->word);
	if (kind != SF_FRAME_ROW && kind != SF_FRAME_NOROW)
		return NULL;
	*ret_pc = SF_FRAME_OFFSET(f->word);
	m = modules_find(w->r->modules, SF_FRAME_MODULE(f->word));
	if (!m || m->known == KNOWN_ID || !m->path)
		return NULL;
	code = symbolizer_code(w->r->symbols, m, &ncode);
	code = module_code_at(code, ncode, *ret_pc);
	if (code)
		*ret_pc += code->vaddr - code->off;
	return m;
}

static uint64_t name_id(struct perfetto *w, const char *name, size_t len)
{
	uint32_t before = strpool_count(w->names), id = 0;

	if (strpool_intern(w->names, name, len, &id))
		w->err = -ENOMEM;
	if (id == before)
		put_string(w, INTERNED_FUNCTION_NAMES, (uint64_t)id + 1, name, len);
	return (uint64_t)id + 1;
}

static uint32_t add_frame(struct perfetto *w, uint64_t name, uint64_t mapping, uint64_t pc,
			  uint64_t kind)
{
	bool is_new;
	uint32_t id = id_of(w, &w->frames, mapping << 32 | name, pc, &is_new);
	size_t at;

	if (!is_new)
		return id;
	at = pb_begin(&w->interned, INTERNED_FRAMES);
	pb_u64(&w->interned, FRAME_IID, (uint64_t)id + 1);
	pb_u64(&w->interned, FRAME_FUNCTION, name);
	pb_u64(&w->interned, FRAME_MAPPING, mapping);
	pb_u64(&w->interned, FRAME_REL_PC, pc);
	pb_u64(&w->interned, FRAME_KIND, kind);
	pb_end(&w->interned, at);
	return id;
}

static uint32_t frame_id(struct perfetto *w, const struct profile_frame *f)
{
	static const uint8_t kinds[STACK_KINDS] = { [STACK_USER] = FRAME_NATIVE,
						    [STACK_INLINED] = FRAME_NATIVE,
						    [STACK_KERNEL] = FRAME_KERNEL,
						    [STACK_JIT] = FRAME_JIT_CODE };
	enum stack_kind kind;
	const char *name;
	size_t len = out_frame_name(w->r, f, &name, &kind);
	struct module *m;
	uint64_t pc;

	m = place(w, f, &pc);
	return add_frame(w, name_id(w, name, len), mapping_id(w, m, kind), pc, kinds[kind]);
}

static uint32_t note_id(struct perfetto *w, const char *text)
{
	return add_frame(w, name_id(w, text, strlen(text)), mapping_id(w, NULL, STACK_NOTE), 0, 0);
}

/* Fills w->ids with the frames of a stack, root first; at least one. Returns their number. */
static size_t stack_frames(struct perfetto *w, struct profile *p, size_t stack,
			   const struct profile_stack *s)
{
	const struct out_report *r = w->r;
	char marker[64];
	size_t n = 0;

	if (profile_frames(p, stack, r->symbols, !r->opts.kernel_only, !r->opts.user_only,
			   &w->shown) ||
	    vec_reserve(&w->ids, &w->ids_cap, w->shown.n + 2, sizeof(*w->ids))) {
		w->err = -ENOMEM;
		return 0;
	}
	if (out_incomplete(r, s)) {
		snprintf(marker, sizeof(marker), "[incomplete:%s]", profile_stop_name(s->stop));
		w->ids[n++] = note_id(w, marker);
	} else if (!w->shown.n) {
		w->ids[n++] = note_id(w, "[no stack]");
	}
	for (size_t k = w->shown.n; k-- > 0;)
		w->ids[n++] = frame_id(w, &w->shown.list[k]);
	return n;
}

/* The callstack of stack i of p; done: by stack of p. */
static uint64_t callstack_id(struct perfetto *w, struct profile *p, uint32_t *done, size_t stack)
{
	struct profile_stack s;
	size_t n, at;
	uint32_t node = 0, id;
	bool is_new;

	if (done[stack])
		return done[stack];
	profile_stack(p, stack, &s);
	n = stack_frames(w, p, stack, &s);
	for (size_t i = 0; i < n; i++)
		node = id_of(w, &w->nodes, i ? (uint64_t)node + 1 : 0, w->ids[i], &is_new);
	id = id_of(w, &w->stacks, node, 0, &is_new);
	done[stack] = id + 1;
	if (!is_new)
		return done[stack];
	at = pb_begin(&w->interned, INTERNED_CALLSTACKS);
	pb_u64(&w->interned, CALLSTACK_IID, (uint64_t)id + 1);
	for (size_t i = 0; i < n; i++)
		pb_u64(&w->interned, CALLSTACK_FRAMES, w->ids[i] + 1);
	pb_end(&w->interned, at);
	return done[stack];
}

/* Puts into a packet what was interned since the last one. */
static void put_interned(struct perfetto *w)
{
	if (w->interned.len)
		pb_bytes(&w->pb, PACKET_INTERNED, w->interned.buf, w->interned.len);
	if (w->interned.err && !w->err)
		w->err = w->interned.err;
	w->interned.len = 0;
}

/* ---- Samples ---- */

static void put_sample(struct perfetto *w, const struct timeline_sample *sample)
{
	struct profile_stack s;
	uint64_t callstack;
	size_t packet, at;

	profile_stack(w->r->profile, sample->stack, &s);
	callstack = callstack_id(w, w->r->profile, w->callstacks, sample->stack);
	packet = packet_begin(w, sample->time_ns, FLAG_NEEDS_STATE);
	put_interned(w);
	at = pb_begin(&w->pb, PACKET_PERF_SAMPLE);
	pb_u64(&w->pb, SAMPLE_CPU, sample->cpu);
	pb_u64(&w->pb, SAMPLE_PID, s.pid);
	pb_u64(&w->pb, SAMPLE_TID, s.tid);
	pb_u64(&w->pb, SAMPLE_CALLSTACK, callstack);
	pb_u64(&w->pb, SAMPLE_CPU_MODE, s.flags & SF_SAMPLE_IN_KERNEL ? MODE_KERNEL : MODE_USER);
	pb_u64(&w->pb, SAMPLE_UNWIND_ERROR,
	       out_incomplete(w->r, &s) ? UNWIND_ERROR_UNWIND_INFO : 0);
	pb_end(&w->pb, at);
	pb_end(&w->pb, packet);
}

/* ---- Waits ---- */

static int by_time(const void *a, const void *b)
{
	const struct event *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return (int)x->type - (int)y->type;
}

static void make_events(struct perfetto *w)
{
	const struct timeline_tracks *t = &w->tracks;
	struct event *e = malloc((2 * t->nmarks + 1) * sizeof(*e));

	w->events = e;
	if (!e) {
		w->err = -ENOMEM;
		return;
	}
	for (const struct timeline_mark *m = t->marks; m < t->marks + t->nmarks; m++) {
		if (m->kind == TIMELINE_WAKES) {
			*e++ = (struct event){ m->start_ns, m, HAPPENS };
			continue;
		}
		*e++ = (struct event){ m->start_ns, m, BEGINS };
		*e++ = (struct event){ m->end_ns, m, ENDS };
	}
	w->nevents = (size_t)(e - w->events);
	qsort(w->events, w->nevents, sizeof(*e), by_time);
}

/* What a slice or an instant shows. */
static void put_details(struct perfetto *w, const struct timeline_mark *m, uint64_t callstack)
{
	const struct timeline_block *b = &w->r->timeline->blocks[m->block];
	bool wakes = m->kind == TIMELINE_WAKES;
	char thread[OUT_THREAD_TEXT], name[OUT_THREAD_TEXT + 8] = STACK_RUNNABLE;
	struct profile_stack s;
	size_t at;
	int note;

	pb_str(&w->pb, EVENT_CATEGORIES, wakes ? "wake" : "wait");
	if (wakes) {
		profile_stack(w->r->profile, b->stack, &s);
		out_thread_text(thread, s.comm, b->tid);
		snprintf(name, sizeof(name), "wakes %s", thread);
	} else if (m->kind == TIMELINE_BLOCKED) {
		note = out_wait_note(w->r, b->stack);
		if (note < 0)
			w->err = note;
		else
			snprintf(name, sizeof(name), "%s", wait_note_text((enum wait_note)note));
	}
	pb_str(&w->pb, EVENT_NAME, name);
	pb_u64(&w->pb, EVENT_CALLSTACK, callstack);
	/* The flow goes from the instant to the slice that begins with it. */
	if (wakes && b->end_ns > b->woken_ns)
		pb_fixed64(&w->pb, EVENT_FLOW_IDS, (uint64_t)m->block + 1);
	if (m->kind == TIMELINE_RUNNABLE && b->waker && b->waker_tid)
		pb_fixed64(&w->pb, EVENT_TERMINATING_FLOW_IDS, (uint64_t)m->block + 1);
	if (wakes || !b->waker)
		return;
	profile_stack(w->r->wakers, b->waker - 1, &s);
	out_thread_text(thread, s.comm, b->waker_tid);
	at = pb_begin(&w->pb, EVENT_ANNOTATIONS);
	pb_str(&w->pb, ANNOTATION_NAME, "woken by");
	pb_str(&w->pb, ANNOTATION_STRING, thread);
	pb_end(&w->pb, at);
}

static void put_event(struct perfetto *w, const struct event *e)
{
	static const uint8_t types[] = {
		[ENDS] = TYPE_SLICE_END, [HAPPENS] = TYPE_INSTANT, [BEGINS] = TYPE_SLICE_BEGIN
	};
	const struct timeline_block *b = &w->r->timeline->blocks[e->mark->block];
	uint64_t callstack = 0;
	size_t packet, at;

	if (e->type == HAPPENS)
		callstack = callstack_id(w, w->r->wakers, w->waker_callstacks, b->waker - 1);
	else if (e->type == BEGINS)
		callstack = callstack_id(w, w->r->profile, w->callstacks, b->stack);
	packet = packet_begin(w, e->time_ns, FLAG_NEEDS_STATE);
	put_interned(w);
	at = pb_begin(&w->pb, PACKET_TRACK_EVENT);
	pb_u64(&w->pb, EVENT_TYPE, types[e->type]);
	pb_u64(&w->pb, EVENT_TRACK_UUID, uuid_of(e->mark->thread));
	if (e->type != ENDS)
		put_details(w, e->mark, callstack);
	pb_end(&w->pb, at);
	pb_end(&w->pb, packet);
}

/* Samples and waits, in the order of time. */
static void put_times(struct perfetto *w)
{
	const struct timeline *t = w->r->timeline;
	size_t i = 0, k = 0;

	while ((i < t->n || k < w->nevents) && !w->err) {
		if (k == w->nevents || (i < t->n && t->list[i].time_ns < w->events[k].time_ns))
			put_sample(w, &t->list[i++]);
		else
			put_event(w, &w->events[k++]);
		if (w->pb.len >= FLUSH_BYTES)
			flush(w);
	}
}

/* Which CPU lost them is not known: they are those of CPU 0, at the end. */
static void put_lost(struct perfetto *w)
{
	uint64_t lost = run_lost(w->r->stats) + w->r->timeline->dropped;
	uint64_t end = w->r->timeline->start_ns + (uint64_t)(w->r->stats->duration_s * 1e9);
	size_t packet, at;

	if (!lost)
		return;
	packet = packet_begin(w, end, FLAG_NEEDS_STATE);
	at = pb_begin(&w->pb, PACKET_PERF_SAMPLE);
	pb_u64(&w->pb, SAMPLE_RECORDS_LOST, lost);
	pb_end(&w->pb, at);
	pb_end(&w->pb, packet);
}

int out_perfetto(const struct out_report *r, FILE *f)
{
	struct perfetto w = { .r = r, .f = f, .names = strpool_new() };

	w.callstacks = calloc(profile_count(r->profile) + 1, sizeof(*w.callstacks));
	w.waker_callstacks = calloc((r->wakers ? profile_count(r->wakers) : 0) + 1,
				    sizeof(*w.waker_callstacks));
	if (!w.names || !w.callstacks || !w.waker_callstacks)
		w.err = -ENOMEM;
	if (!w.err) {
		put_head(&w);
		put_tree(&w);
		timeline_by_time(r->timeline);
	}
	if (!w.err)
		make_events(&w);
	if (!w.err) {
		put_times(&w);
		put_lost(&w);
		flush(&w);
	}
	pb_free(&w.pb);
	pb_free(&w.interned);
	strpool_free(w.names);
	idmap_free(&w.mappings);
	idmap_free(&w.frames);
	idmap_free(&w.nodes);
	idmap_free(&w.stacks);
	free(w.callstacks);
	free(w.waker_callstacks);
	free(w.events);
	timeline_tracks_free(&w.tracks);
	free(w.ids);
	free(w.shown.list);
	return w.err ? w.err : out_finish(f);
}
