/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The samples with their times, for the Firefox Profiler: version 60 of its processed profile
 * format, compressed with gzip. Later versions of the viewer convert it.
 *
 *   shared   the tables that all threads refer to: strings, functions (name and module), frames
 *            (function and category), stacks (a trie of frames)
 *   threads  one for each thread: samples with time and stack, the main thread of a process first;
 *            then one for each CPU, whose stacks have the process as their root
 *
 * Names are those of folded lines without the suffixes; the category says what the suffix says. A
 * stack that did not reach its outermost frame has "[incomplete:REASON]" as its root.
 *
 * threadCPUDelta is the CPU time since the previous sample of the thread. It is one period for
 * clock events: the viewer then draws a thread with rare samples as mostly idle.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/gzip.h"
#include "base/idmap.h"
#include "base/json.h"
#include "base/text.h"
#include "out/out.h"
#include "out/out_firefox.h"
#include "out/out_html.h"

#define VERSION	   60 /* version of the processed format */
#define GECKO	   27 /* version of the browsers' format, which the viewer wants to know */
#define GZIP_LEVEL 6
#define LIBRARY	   1 /* type of a resource */

static const struct {
	const char *name, *color;
} categories[FIREFOX_CATEGORIES] = {
	[FIREFOX_OTHER] = { "Other", "grey" },	      [FIREFOX_USER] = { "User", "yellow" },
	[FIREFOX_KERNEL] = { "Kernel", "orange" },    [FIREFOX_JIT] = { "JIT", "green" },
	[FIREFOX_BLOCKED] = { "Blocked", "red" },     [FIREFOX_IDLE] = { "Idle", "lightblue" },
	[FIREFOX_RUNNABLE] = { "Runnable", "purple" }
};

static const uint8_t category_of[STACK_KINDS] = { [STACK_USER] = FIREFOX_USER,
						  [STACK_INLINED] = FIREFOX_USER,
						  [STACK_KERNEL] = FIREFOX_KERNEL,
						  [STACK_JIT] = FIREFOX_JIT };

/* ---- Tables ---- */

void firefox_column(struct firefox *w, const char *key, size_t n,
		    void (*put)(struct firefox *w, size_t i))
{
	json_array(&w->j, key);
	for (size_t i = 0; i < n && !ferror(w->j.f); i++)
		put(w, i);
	json_array_end(&w->j);
}

static void put_null(struct firefox *w, size_t i)
{
	(void)i;
	json_str(&w->j, NULL, NULL);
}

static void put_false(struct firefox *w, size_t i)
{
	(void)i;
	json_bool(&w->j, NULL, false);
}

static void put_zero(struct firefox *w, size_t i)
{
	(void)i;
	json_u64(&w->j, NULL, 0);
}

static void put_no_address(struct firefox *w, size_t i)
{
	(void)i;
	json_i64(&w->j, NULL, -1);
}

static void put_stack_frame(struct firefox *w, size_t i)
{
	json_u64(&w->j, NULL, w->ss.nodes.keys[i + 1].b);
}

/* Node 0 is the root, which is no stack. */
static void put_stack_prefix(struct firefox *w, size_t i)
{
	uint64_t parent = w->ss.nodes.keys[i + 1].a;

	if (parent == STACK_ROOT)
		put_null(w, i);
	else
		json_u64(&w->j, NULL, parent - 1);
}

static void put_frame_category(struct firefox *w, size_t i)
{
	json_u64(&w->j, NULL, category_of[stackset_frame_kind(&w->ss, (uint32_t)i)]);
}

static void put_frame_function(struct firefox *w, size_t i)
{
	json_u64(&w->j, NULL, w->function[i]);
}

static void put_function_name(struct firefox *w, size_t i)
{
	json_u64(&w->j, NULL, w->functions.keys[i].a);
}

static void put_function_resource(struct firefox *w, size_t i)
{
	uint32_t module;

	if (idmap_find(&w->modules, w->functions.keys[i].b, 0, &module))
		json_u64(&w->j, NULL, module);
	else
		put_no_address(w, i);
}

static void put_module_number(struct firefox *w, size_t i)
{
	json_u64(&w->j, NULL, i);
}

static void put_module_name(struct firefox *w, size_t i)
{
	json_u64(&w->j, NULL, w->modules.keys[i].a);
}

static void put_library(struct firefox *w, size_t i)
{
	(void)i;
	json_u64(&w->j, NULL, LIBRARY);
}

static void put_string(struct firefox *w, size_t i)
{
	json_str(&w->j, NULL, strpool_str(w->ss.strings, (uint32_t)i));
}

void firefox_table(struct firefox *w, const char *key, size_t n)
{
	json_newline(&w->j);
	json_object(&w->j, key);
	json_u64(&w->j, "length", n);
}

static void put_stacks(struct firefox *w)
{
	size_t n = w->ss.nodes.n - 1;

	firefox_table(w, "stackTable", n);
	firefox_column(w, "frame", n, put_stack_frame);
	firefox_column(w, "prefix", n, put_stack_prefix);
	json_object_end(&w->j);
}

static void put_frames(struct firefox *w)
{
	size_t n = w->ss.frames.n;

	firefox_table(w, "frameTable", n);
	firefox_column(w, "address", n, put_no_address);
	firefox_column(w, "inlineDepth", n, put_zero);
	firefox_column(w, "category", n, put_frame_category);
	firefox_column(w, "subcategory", n, put_zero);
	firefox_column(w, "func", n, put_frame_function);
	firefox_column(w, "nativeSymbol", n, put_null);
	firefox_column(w, "innerWindowID", n, put_zero);
	firefox_column(w, "line", n, put_null);
	firefox_column(w, "column", n, put_null);
	json_object_end(&w->j);
}

static void put_functions(struct firefox *w)
{
	size_t n = w->functions.n;

	firefox_table(w, "funcTable", n);
	firefox_column(w, "name", n, put_function_name);
	firefox_column(w, "isJS", n, put_false);
	firefox_column(w, "relevantForJS", n, put_false);
	firefox_column(w, "resource", n, put_function_resource);
	firefox_column(w, "source", n, put_null);
	firefox_column(w, "lineNumber", n, put_null);
	firefox_column(w, "columnNumber", n, put_null);
	json_object_end(&w->j);
}

static void put_resources(struct firefox *w)
{
	static const char *const symbols[] = { "libIndex", "address", "name", "functionSize" };
	size_t n = w->modules.n;

	firefox_table(w, "resourceTable", n);
	firefox_column(w, "lib", n, put_module_number);
	firefox_column(w, "name", n, put_module_name);
	firefox_column(w, "host", n, put_null);
	firefox_column(w, "type", n, put_library);
	json_object_end(&w->j);
	firefox_table(w, "nativeSymbols", 0);
	for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++)
		firefox_column(w, symbols[i], 0, put_null);
	json_object_end(&w->j);
}

static void put_shared(struct firefox *w)
{
	json_newline(&w->j);
	json_object(&w->j, "shared");
	firefox_column(w, "stringArray", strpool_count(w->ss.strings), put_string);
	firefox_table(w, "sources", 0);
	firefox_column(w, "uuid", 0, put_null);
	firefox_column(w, "filename", 0, put_null);
	json_object_end(&w->j);
	put_stacks(w);
	put_frames(w);
	put_functions(w);
	put_resources(w);
	json_object_end(&w->j);
}

static void put_library_entry(struct firefox *w, size_t i)
{
	const char *name = strpool_str(w->ss.strings, (uint32_t)w->modules.keys[i].a);

	json_object(&w->j, NULL);
	json_str(&w->j, "name", name);
	json_str(&w->j, "path", name);
	json_str(&w->j, "debugName", name);
	json_str(&w->j, "debugPath", name);
	json_str(&w->j, "breakpadId", "");
	json_str(&w->j, "codeId", NULL);
	json_str(&w->j, "arch", "");
	json_object_end(&w->j);
}

/* ---- Head ---- */

static void put_category(struct firefox *w, size_t i)
{
	json_object(&w->j, NULL);
	json_str(&w->j, "name", categories[i].name);
	json_str(&w->j, "color", categories[i].color);
	json_array(&w->j, "subcategories");
	json_str(&w->j, NULL, "Other");
	json_array_end(&w->j);
	json_object_end(&w->j);
}

static void put_count(struct firefox *w, const char *label, uint64_t value)
{
	json_object(&w->j, NULL);
	json_str(&w->j, "label", label);
	json_str(&w->j, "format", "integer");
	json_u64(&w->j, "value", value);
	json_object_end(&w->j);
}

static void put_extra(struct firefox *w)
{
	json_array(&w->j, "extra");
	json_object(&w->j, NULL);
	json_str(&w->j, "label", "Samples");
	json_array(&w->j, "entries");
	put_count(w, "Taken", w->r->stats->samples);
	put_count(w, "Lost", run_lost(w->r->stats));
	put_count(w, "Not on the timeline", w->r->timeline->dropped);
	if (w->r->timeline->has_blocks) {
		put_count(w, "Waits", w->r->timeline->nblocks);
		put_count(w, "Waits that are not on the timeline", w->r->timeline->missing);
	}
	json_array_end(&w->j);
	json_object_end(&w->j);
	json_array_end(&w->j);
}

static void put_meta(struct firefox *w)
{
	const struct out_meta *meta = w->r->meta;
	double duration = w->r->stats->duration_s * 1e3;
	/* start_unix_ns belongs to start_ns, which may be after the first sample. */
	double start =
		((double)meta->start_unix_ns - (double)(w->r->timeline->start_ns - w->begin_ns)) /
		1e6;
	char host[300], product[400];

	text_clean(host, sizeof(host), meta->host ? meta->host : "",
		   strlen(meta->host ? meta->host : ""), 0);
	snprintf(product, sizeof(product), "%s%s%s", meta->event ? meta->event : "samples",
		 *host ? " on " : "", host);
	json_object(&w->j, "meta");
	json_u64(&w->j, "version", GECKO);
	json_u64(&w->j, "preprocessedProfileVersion", VERSION);
	json_double(&w->j, "interval", meta->hz > 0 ? 1e3 / meta->hz : 1, 6);
	json_double(&w->j, "startTime", start, 3);
	json_double(&w->j, "profilingStartTime", 0, 3);
	json_double(&w->j, "profilingEndTime", duration, 3);
	json_u64(&w->j, "processType", 0);
	json_str(&w->j, "product", product);
	json_str(&w->j, "importedFrom", "sfbpf " SFBPF_VERSION);
	json_u64(&w->j, "stackwalk", 1);
	json_bool(&w->j, "debug", false);
	json_bool(&w->j, "symbolicated", true);
	json_bool(&w->j, "symbolicationNotSupported", true);
	json_bool(&w->j, "usesOnlyOneStackType", true);
	json_bool(&w->j, "sourceCodeIsNotOnSearchfox", true);
	json_object(&w->j, "sampleUnits");
	json_str(&w->j, "time", "ms");
	json_str(&w->j, "eventDelay", "ms");
	json_str(&w->j, "threadCPUDelta", "ns");
	json_object_end(&w->j);
	firefox_column(w, "categories", sizeof(categories) / sizeof(categories[0]), put_category);
	firefox_marker_schema(w);
	put_extra(w);
	json_object_end(&w->j);
}

/* ---- Threads ---- */

static void put_samples(struct firefox *w, const struct timeline_track *k, const uint32_t *nodes)
{
	const struct timeline_sample *s = w->r->timeline->list + k->first;

	firefox_table(w, "samples", k->n);
	json_str(&w->j, "weightType", "samples");
	json_str(&w->j, "weight", NULL);
	json_array(&w->j, "time");
	for (size_t i = 0; i < k->n && !ferror(w->j.f); i++)
		json_double(&w->j, NULL, (double)(s[i].time_ns - w->begin_ns) / 1e6, 6);
	json_array_end(&w->j);
	json_array(&w->j, "stack");
	for (size_t i = 0; i < k->n && !ferror(w->j.f); i++) {
		if (nodes[s[i].stack] == STACK_ROOT)
			put_null(w, i);
		else
			json_u64(&w->j, NULL, nodes[s[i].stack] - 1);
	}
	json_array_end(&w->j);
	if (w->period_ns) {
		json_array(&w->j, "threadCPUDelta");
		for (size_t i = 0; i < k->n && !ferror(w->j.f); i++)
			json_u64(&w->j, NULL, w->period_ns);
		json_array_end(&w->j);
	}
	json_object_end(&w->j);
}

static void put_clean(struct json *j, const char *key, const char *s)
{
	char buf[256];

	text_clean(buf, sizeof(buf), *s ? s : "[unknown]", strlen(*s ? s : "[unknown]"), 0);
	json_str(j, key, buf);
}

/* The parts of a thread that say whose it is are written by the caller, between the two. */
static void thread_begin(struct firefox *w)
{
	json_newline(&w->j);
	json_object(&w->j, NULL);
	json_str(&w->j, "processType", "default");
	json_u64(&w->j, "processStartupTime", 0);
	json_str(&w->j, "processShutdownTime", NULL);
	json_u64(&w->j, "registerTime", 0);
	json_str(&w->j, "unregisterTime", NULL);
	firefox_column(w, "pausedRanges", 0, put_null);
}

static void thread_end(struct firefox *w, const struct timeline_track *k, const uint32_t *nodes,
		       const struct timeline_mark *marks, size_t nmarks)
{
	put_samples(w, k, nodes);
	firefox_markers(w, marks, nmarks);
	json_object_end(&w->j);
}

static void put_thread(struct firefox *w, const struct timeline_track *k)
{
	char pid[16];

	snprintf(pid, sizeof(pid), "%u", k->pid);
	thread_begin(w);
	put_clean(&w->j, "name", k->comm);
	put_clean(&w->j, "processName", k->process);
	json_bool(&w->j, "isMainThread", k->pid == k->tid);
	json_str(&w->j, "pid", pid);
	json_u64(&w->j, "tid", k->tid);
	thread_end(w, k, w->nodes, w->marks + k->first_mark, k->nmarks);
}

static void put_cpu(struct firefox *w, const struct timeline_track *k)
{
	char name[32];

	snprintf(name, sizeof(name), "CPU %u", k->tid);
	thread_begin(w);
	json_str(&w->j, "name", name);
	json_str(&w->j, "processName", "CPUs");
	json_bool(&w->j, "isMainThread", false);
	json_str(&w->j, "pid", "CPUs");
	json_str(&w->j, "tid", name);
	thread_end(w, k, w->cpu_nodes, NULL, 0);
}

/* ---- The profile ---- */

static int add_functions(struct firefox *w)
{
	w->function = calloc(w->ss.frames.n + 1, sizeof(*w->function));
	if (!w->function)
		return -ENOMEM;
	for (uint32_t i = 0; i < w->ss.frames.n; i++) {
		uint64_t names = w->ss.frames.keys[i].a;
		uint32_t ignored;

		if (idmap_get(&w->functions, names >> 32, names & UINT32_MAX, &w->function[i]) ||
		    (*stackset_frame_module(&w->ss, i) &&
		     idmap_get(&w->modules, names & UINT32_MAX, 0, &ignored)))
			return -ENOMEM;
	}
	return 0;
}

/* The frame of a process: the root of its stacks on the tracks of CPUs. */
static int process_frame(struct firefox *w, const struct timeline_track *k, uint32_t *ret)
{
	char clean[64], name[96];

	text_clean(clean, sizeof(clean), k->process, strlen(k->process), 0);
	snprintf(name, sizeof(name), "%s (%u)", *clean ? clean : "[unknown]", k->pid);
	return stackset_frame(&w->ss, name, strlen(name), "", STACK_NOTE, ret);
}

static int add_stack(struct firefox *w, const struct timeline_track *k, size_t stack)
{
	struct out_path p = { .ss = &w->ss, .r = w->r };
	uint32_t process, *with_process;
	int err;

	if (w->cpu_nodes[stack])
		return 0;
	err = out_path_of(&p, stack);
	if (!err)
		err = stackset_path(&w->ss, p.frames, p.n, &w->nodes[stack]);
	if (!err)
		err = process_frame(w, k, &process);
	with_process = err ? NULL : malloc((p.n + 1) * sizeof(*with_process));
	if (with_process) {
		with_process[0] = process;
		if (p.n)
			memcpy(with_process + 1, p.frames, p.n * sizeof(*p.frames));
		err = stackset_path(&w->ss, with_process, p.n + 1, &w->cpu_nodes[stack]);
		free(with_process);
	} else if (!err) {
		err = -ENOMEM;
	}
	free(p.frames);
	return err;
}

static int add_stacks(struct firefox *w, const struct timeline_tracks *threads)
{
	size_t n = profile_count(w->r->profile) + 1;
	int err = 0;

	w->nodes = calloc(n, sizeof(*w->nodes));
	w->cpu_nodes = calloc(n, sizeof(*w->cpu_nodes));
	if (!w->nodes || !w->cpu_nodes)
		return -ENOMEM;
	for (size_t i = 0; i < threads->n && !err; i++) {
		const struct timeline_track *k = &threads->list[i];

		for (size_t s = k->first; s < k->first + k->n && !err; s++)
			err = add_stack(w, k, w->r->timeline->list[s].stack);
	}
	if (!err)
		err = firefox_add_marks(w);
	return err ? err : add_functions(w);
}

static int put_all(struct firefox *w)
{
	struct timeline_tracks tracks;
	int err = timeline_by_thread(w->r->timeline, w->r->profile, w->r->wakers, &tracks);

	w->marks = tracks.marks;
	if (!err)
		err = add_stacks(w, &tracks);
	if (!err) {
		json_object(&w->j, NULL);
		put_meta(w);
		firefox_column(w, "libs", w->modules.n, put_library_entry);
		put_shared(w);
		json_array(&w->j, "threads");
		for (size_t i = 0; i < tracks.n; i++)
			put_thread(w, &tracks.list[i]);
	}
	timeline_tracks_free(&tracks);
	if (err)
		return err;
	err = timeline_by_cpu(w->r->timeline, &tracks);
	for (size_t i = 0; i < tracks.n && !err; i++)
		put_cpu(w, &tracks.list[i]);
	timeline_tracks_free(&tracks);
	json_array_end(&w->j);
	json_object_end(&w->j);
	json_newline(&w->j);
	return err;
}

int out_firefox(const struct out_report *r, FILE *f)
{
	struct firefox w = { .r = r, .begin_ns = timeline_begin(r->timeline) };
	FILE *gz = gzip_stream(f, r->opts.gzip_level ? r->opts.gzip_level : GZIP_LEVEL);
	int err = gz ? stackset_init(&w.ss) : -ENOMEM;

	if (out_is_clock(r->meta))
		w.period_ns = (uint64_t)(1e9 / r->meta->hz + 0.5);
	w.j = json_on(gz);
	if (!err)
		err = put_all(&w);
	if (!err && ferror(gz))
		err = errno ? -errno : -EIO;
	if (gz && fclose(gz) && !err)
		err = errno ? -errno : -EIO;
	stackset_free(&w.ss);
	idmap_free(&w.functions);
	idmap_free(&w.modules);
	free(w.function);
	free(w.nodes);
	free(w.cpu_nodes);
	free(w.waker_nodes);
	free(w.notes);
	return err ? err : out_finish(f);
}
