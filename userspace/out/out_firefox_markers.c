/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Markers of the Firefox Profiler: the waits of threads, and their wake-ups.
 *
 *   Wait  an interval: the thread is blocked, idle, or waits for a CPU. Its name says which (the
 *         notes of the wall clock, as in folded lines); it has the stack and the waker.
 *   Wake  a moment: the thread ends another thread's wait. It has the stack of the waker.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "out/out_firefox.h"
#include "out/out_html.h"
#include "prof/wait_notes.h"

enum { PHASE_INSTANT, PHASE_INTERVAL };

/* ---- Stacks and names ---- */

static int add_name(struct firefox *w, const char *name, uint32_t *ret)
{
	return strpool_intern(w->ss.strings, name, strlen(name), ret);
}

/* The node of stack i of the report's profile, once. */
static int add_node(struct firefox *w, const struct out_report *r, size_t i, uint32_t *node)
{
	struct out_path p = { .ss = &w->ss, .r = r };
	int err;

	if (*node != STACK_ROOT)
		return 0;
	err = out_path_of(&p, i);
	if (!err)
		err = stackset_path(&w->ss, p.frames, p.n, node);
	free(p.frames);
	return err;
}

static int add_note(struct firefox *w, size_t i, struct firefox_note *ret)
{
	int note = ret->name ? 0 : out_wait_note(w->r, i);
	uint32_t name;

	if (ret->name || note < 0)
		return ret->name ? 0 : note;
	if (add_name(w, wait_note_text((enum wait_note)note), &name))
		return -ENOMEM;
	ret->name = name + 1;
	ret->category = note == WAIT_RUNNABLE			  ? FIREFOX_RUNNABLE
			: wait_note_is_idle((enum wait_note)note) ? FIREFOX_IDLE
								  : FIREFOX_BLOCKED;
	return 0;
}

int firefox_add_marks(struct firefox *w)
{
	const struct timeline *t = w->r->timeline;
	struct out_report of_wakers = *w->r;
	int err = 0;

	if (!t->nblocks)
		return 0;
	of_wakers.profile = w->r->wakers;
	of_wakers.wakers = NULL;
	w->notes = calloc(profile_count(w->r->profile) + 1, sizeof(*w->notes));
	w->waker_nodes = calloc(profile_count(w->r->wakers) + 1, sizeof(*w->waker_nodes));
	if (!w->notes || !w->waker_nodes || add_name(w, STACK_RUNNABLE, &w->runnable) ||
	    add_name(w, "wakes", &w->wakes))
		return -ENOMEM;
	for (size_t i = 0; i < t->nblocks && !err; i++) {
		const struct timeline_block *b = &t->blocks[i];

		err = add_node(w, w->r, b->stack, &w->nodes[b->stack]);
		if (!err)
			err = add_note(w, b->stack, &w->notes[b->stack]);
		if (!err && b->waker)
			err = add_node(w, &of_wakers, b->waker - 1, &w->waker_nodes[b->waker - 1]);
	}
	return err;
}

/* ---- Schema ---- */

static void put_field(struct firefox *w, const char *key, const char *label)
{
	json_object(&w->j, NULL);
	json_str(&w->j, "key", key);
	json_str(&w->j, "label", label);
	json_str(&w->j, "format", "string");
	json_object_end(&w->j);
}

/* A type of markers with one field, which labels have behind the marker's name. */
static void put_schema(struct firefox *w, const char *type, const char *key, const char *label,
		       const char *what)
{
	char text[64];

	snprintf(text, sizeof(text), "{marker.name} {marker.data.%s}", key);
	json_object(&w->j, NULL);
	json_str(&w->j, "name", type);
	json_str(&w->j, "tooltipLabel", "{marker.name}");
	json_str(&w->j, "tableLabel", text);
	json_str(&w->j, "chartLabel", text);
	json_array(&w->j, "display");
	json_str(&w->j, NULL, "marker-chart");
	json_str(&w->j, NULL, "marker-table");
	json_array_end(&w->j);
	json_array(&w->j, "fields");
	put_field(w, key, label);
	json_array_end(&w->j);
	json_str(&w->j, "description", what);
	json_object_end(&w->j);
}

void firefox_marker_schema(struct firefox *w)
{
	json_array(&w->j, "markerSchema");
	if (w->r->timeline->has_blocks) {
		put_schema(w, "Wait", "waker", "Woken by",
			   "The thread does not run: it is blocked, or waits for a CPU.");
		put_schema(w, "Wake", "thread", "Thread",
			   "The thread ends the wait of another thread.");
	}
	json_array_end(&w->j);
}

/* ---- Markers ---- */

static void put_time(struct firefox *w, uint64_t ns)
{
	json_double(&w->j, NULL, ((double)ns - (double)w->begin_ns) / 1e6, 6);
}

static void put_thread_name(struct firefox *w, const char *key, const char *comm, uint32_t tid)
{
	char text[OUT_THREAD_TEXT];

	out_thread_text(text, comm, tid);
	json_str(&w->j, key, text);
}

static void put_data(struct firefox *w, const struct timeline_mark *m)
{
	const struct timeline_block *b = &w->r->timeline->blocks[m->block];
	bool wakes = m->kind == TIMELINE_WAKES;
	uint32_t node = wakes ? w->waker_nodes[b->waker - 1] : w->nodes[b->stack];
	struct profile_stack s;

	json_object(&w->j, NULL);
	json_str(&w->j, "type", wakes ? "Wake" : "Wait");
	if (wakes) {
		profile_stack(w->r->profile, b->stack, &s);
		put_thread_name(w, "thread", s.comm, b->tid);
	} else if (b->waker) {
		profile_stack(w->r->wakers, b->waker - 1, &s);
		put_thread_name(w, "waker", s.comm, b->waker_tid);
	}
	if (node != STACK_ROOT) {
		json_object(&w->j, "cause");
		json_double(&w->j, "time", ((double)m->start_ns - (double)w->begin_ns) / 1e6, 6);
		json_u64(&w->j, "stack", node - 1);
		json_object_end(&w->j);
	}
	json_object_end(&w->j);
}

static const struct firefox_note *note_of(const struct firefox *w, const struct timeline_mark *m)
{
	return &w->notes[w->r->timeline->blocks[m->block].stack];
}

static void put_name(struct firefox *w, const struct timeline_mark *m)
{
	json_u64(&w->j, NULL,
		 m->kind == TIMELINE_WAKES	? w->wakes
		 : m->kind == TIMELINE_RUNNABLE ? w->runnable
						: note_of(w, m)->name - 1);
}

static void put_start(struct firefox *w, const struct timeline_mark *m)
{
	put_time(w, m->start_ns);
}

static void put_end(struct firefox *w, const struct timeline_mark *m)
{
	if (m->kind == TIMELINE_WAKES)
		json_str(&w->j, NULL, NULL);
	else
		put_time(w, m->end_ns);
}

static void put_phase(struct firefox *w, const struct timeline_mark *m)
{
	json_u64(&w->j, NULL, m->kind == TIMELINE_WAKES ? PHASE_INSTANT : PHASE_INTERVAL);
}

static void put_category(struct firefox *w, const struct timeline_mark *m)
{
	json_u64(&w->j, NULL,
		 m->kind == TIMELINE_WAKES	? FIREFOX_OTHER
		 : m->kind == TIMELINE_RUNNABLE ? FIREFOX_RUNNABLE
						: note_of(w, m)->category);
}

void firefox_markers(struct firefox *w, const struct timeline_mark *marks, size_t n)
{
	static const struct {
		const char *key;
		void (*put)(struct firefox *w, const struct timeline_mark *m);
	} columns[] = {
		{ "data", put_data },	{ "name", put_name },	{ "startTime", put_start },
		{ "endTime", put_end }, { "phase", put_phase }, { "category", put_category },
	};

	firefox_table(w, "markers", n);
	for (size_t c = 0; c < sizeof(columns) / sizeof(columns[0]); c++) {
		json_array(&w->j, columns[c].key);
		for (size_t i = 0; i < n && !ferror(w->j.f); i++)
			columns[c].put(w, &marks[i]);
		json_array_end(&w->j);
	}
	json_object_end(&w->j);
}
