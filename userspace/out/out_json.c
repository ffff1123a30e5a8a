/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A profile as one JSON object, schema 1:
 *
 *   meta     schema, tool, host, event, hz (null: no frequency), start_unix_ns (null: unknown),
 *            duration_s, unit ("samples" or "microseconds"), samples, lost
 *   modules  the files that frames lie in: id, name, path, build_id (hex; null if it has none)
 *   stacks   comm, pid, cgroup_id, container (its id, if the process is in one), container_name
 *            (if known), count (in `unit`), samples, stop (the stop reason; null for kernel
 *            threads and with -K), frames: root first, user part before kernel part
 *            the agent's windows: labels of the stack's service, an object, in place of cgroup_id
 *            and the container's
 *            off-CPU also: state (ps's letter), waker (null, or an object with comm, pid, stop,
 *            frames, waker)
 *   frame    name (without line) and module as in folded output; shown: the name with its line, if
 *            it has one; kind "user", "inlined", "kernel",
 *            "jit" (code without a file), "bridge" (frames of such code, of unknown number),
 *            "unknown" (no code at that address) or "exec" (inside execve(), between two images)
 *            user, inlined: module_id and offset (bytes into the file), file and line of the source
 *            if requested and known
 *            jit, unknown: address (a hex string, because JSON numbers are doubles)
 *            An inlined frame follows the function that contains it and has the same offset. Frames
 *            above the leaf have the address of the call, which is the return address minus 1.
 *
 * New keys may be added without changing the schema number. Stacks are in the order in which they
 * were first seen.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/idmap.h"
#include "base/json.h"
#include "base/text.h"
#include "languages/lang.h"
#include "out/out.h"
#include "out/out_blocks.h"
#include "out/out_calls.h"
#include "out/out_locks.h"
#include "symtab/sym_names.h"

#define SCHEMA 1

static void put_clean(struct json *j, const char *key, const char *s)
{
	char buf[4096];

	text_clean(buf, sizeof(buf), s, strlen(s), 0);
	json_str(j, key, buf);
}

static void put_meta(struct json *j, const struct out_report *r)
{
	json_object(j, "meta");
	json_u64(j, "schema", SCHEMA);
	json_str(j, "tool", "sfbpf " SFBPF_VERSION);
	put_clean(j, "host", r->meta->host ? r->meta->host : "");
	json_str(j, "event", r->meta->event);
	if (r->meta->hz > 0)
		json_double(j, "hz", r->meta->hz, 3);
	else
		json_str(j, "hz", NULL);
	if (r->meta->start_unix_ns)
		json_u64(j, "start_unix_ns", r->meta->start_unix_ns);
	else
		json_str(j, "start_unix_ns", NULL);
	json_double(j, "duration_s", r->stats->duration_s, 3);
	json_str(j, "unit",
		 r->opts.unit	? r->opts.unit
		 : r->opts.usec ? "microseconds"
				: "samples");
	if (r->meta->command)
		put_clean(j, "command", r->meta->command);
	if (r->meta->command_line)
		put_clean(j, "command_line", r->meta->command_line);
	if (r->meta->kernel)
		put_clean(j, "kernel", r->meta->kernel);
	json_u64(j, "samples", r->stats->samples);
	json_u64(j, "lost", run_lost(r->stats));
	json_object_end(j);
	json_newline(j);
}

static void put_build_id(struct json *j, const struct module *m)
{
	char hex[2 * sizeof(m->build_id) + 1] = "";

	for (uint32_t i = 0; i < m->build_id_len && i < sizeof(m->build_id); i++)
		snprintf(hex + 2 * i, 3, "%02x", m->build_id[i]);
	json_str(j, "build_id", *hex ? hex : NULL);
}

static bool is_in_file(uint64_t frame)
{
	return SF_FRAME_KIND(frame) == SF_FRAME_ROW || SF_FRAME_KIND(frame) == SF_FRAME_NOROW;
}

static int mark_modules(const struct profile *p, struct idmap *used)
{
	uint32_t n;
	int err = 0;

	for (size_t i = 0; i < profile_count(p); i++) {
		struct profile_stack s;

		profile_stack(p, i, &s);
		for (size_t k = 0; k < s.n_user && !err; k++)
			if (is_in_file(s.frames[k]))
				err = idmap_get(used, SF_FRAME_MODULE(s.frames[k]), 0, &n);
	}
	return err;
}

static int by_id(const void *a, const void *b)
{
	const struct idmap_key *x = a, *y = b;

	return x->a < y->a ? -1 : x->a > y->a;
}

static void put_module(struct json *j, const struct module *m)
{
	json_newline(j);
	json_object(j, NULL);
	json_u64(j, "id", m->id);
	put_clean(j, "name", m->name ? m->name : "");
	put_clean(j, "path", m->path ? m->path : "");
	put_build_id(j, m);
	json_object_end(j);
}

static int put_modules(struct json *j, const struct out_report *r)
{
	struct idmap used = { 0 };
	int err = 0;

	if (!r->opts.kernel_only)
		err = mark_modules(r->profile, &used);
	if (!err && !r->opts.kernel_only && r->wakers)
		err = mark_modules(r->wakers, &used);
	if (used.n)
		qsort(used.keys, used.n, sizeof(*used.keys), by_id);
	json_array(j, "modules");
	for (size_t i = 0; i < used.n; i++) {
		const struct module *m = modules_find(r->modules, (uint32_t)used.keys[i].a);

		if (m && m->known != KNOWN_ID)
			put_module(j, m);
	}
	json_array_end(j);
	json_newline(j);
	idmap_free(&used);
	return err;
}

static void put_name(struct json *j, const struct out_report *r, const struct profile_frame *f)
{
	char name[SYM_NAME_MAX + 8];

	snprintf(name, sizeof(name), "%s%s", symbolizer_function(r->symbols, f->symbol),
		 f->inlined ? "_[i]" : "");
	json_str(j, "name", name);
	if (strcmp(name, symbolizer_name(r->symbols, f->symbol)) != 0)
		json_str(j, "shown", symbolizer_name(r->symbols, f->symbol));
	json_str(j, "module", symbolizer_module(r->symbols, f->symbol));
}

static void put_frame(struct json *j, const struct out_report *r, const struct profile_frame *f)
{
	const char *file;
	uint32_t line = symbolizer_line(r->symbols, f->symbol, &file);
	char hex[24];

	json_object(j, NULL);
	put_name(j, r, f);
	if (f->kernel) {
		json_str(j, "kind", "kernel");
	} else if (is_in_file(f->word)) {
		json_str(j, "kind", f->inlined ? "inlined" : "user");
		json_u64(j, "module_id", SF_FRAME_MODULE(f->word));
		json_u64(j, "offset", SF_FRAME_OFFSET(f->word));
		if (line) {
			json_str(j, "file", file);
			json_u64(j, "line", line);
		}
	} else if (f->word == SF_FRAME_EXEC) {
		json_str(j, "kind", "exec");
	} else if (f->word == SF_FRAME_BRIDGE) {
		json_str(j, "kind", "bridge");
	} else if (SF_FRAME_KIND(f->word) == SF_FRAME_LANG) {
		json_str(j, "kind", lang_name(SF_FRAME_LANGUAGE(f->word)));
		if (*file)
			json_str(j, "file", file);
		if (line)
			json_u64(j, "line", line);
	} else {
		bool jit = SF_FRAME_KIND(f->word) == SF_FRAME_JIT;

		json_str(j, "kind", jit ? "jit" : "unknown");
		snprintf(hex, sizeof(hex), "0x%" PRIx64,
			 (uint64_t)(jit ? SF_FRAME_JIT_ADDR(f->word) : SF_FRAME_ADDR(f->word)));
		json_str(j, "address", hex);
	}
	json_object_end(j);
}

/* Writes stop and frames of stack i of p. */
static int put_frames(struct json *j, const struct out_report *r, struct profile *p, size_t i)
{
	struct profile_frames f = { 0 };
	struct profile_stack s;
	int err = profile_frames(p, i, r->symbols, !r->opts.kernel_only, !r->opts.user_only, &f);
	bool has_user;

	profile_stack(p, i, &s);
	has_user = (s.flags & SF_SAMPLE_USER) && !r->opts.kernel_only;
	json_str(j, "stop", has_user ? profile_stop_name(s.stop) : NULL);
	json_array(j, "frames");
	for (size_t k = f.n; k-- > 0 && !err;)
		put_frame(j, r, &f.list[k]);
	json_array_end(j);
	free(f.list);
	return err;
}

static int put_waker(struct json *j, const struct out_report *r, uint32_t waker)
{
	struct profile_stack s;
	int err;

	if (!waker) {
		json_str(j, "waker", NULL);
		return 0;
	}
	profile_stack(r->wakers, waker - 1, &s);
	json_object(j, "waker");
	put_clean(j, "comm", s.comm);
	json_u64(j, "pid", s.pid);
	err = put_frames(j, r, r->wakers, waker - 1);
	if (!err)
		err = put_waker(j, r, s.waker);
	json_object_end(j);
	return err;
}

static void put_labels(struct json *j, const struct out_report *r, uint64_t cgroup_id)
{
	const struct out_label *list;
	size_t n = r->labels->of(r->labels->ctx, cgroup_id, &list);

	json_object(j, "labels");
	for (size_t i = 0; i < n; i++)
		put_clean(j, list[i].name, list[i].value);
	json_object_end(j);
}

static int put_stack(struct json *j, const struct out_report *r, struct out_containers *oc,
		     size_t i)
{
	static const char letters[] = SF_OFF_LETTERS;
	struct profile_stack s;
	const struct out_container *container;
	int err;

	profile_stack(r->profile, i, &s);
	json_newline(j);
	json_object(j, NULL);
	put_clean(j, "comm", s.comm);
	put_clean(j, "process", s.process);
	json_u64(j, "pid", s.pid);
	if (s.tid)
		json_u64(j, "tid", s.tid);
	if (r->labels) {
		put_labels(j, r, s.cgroup_id);
	} else {
		json_u64(j, "cgroup_id", s.cgroup_id);
		container = out_container(oc, &s);
		if (*container->id)
			json_str(j, "container", container->id);
		if (*container->name)
			json_str(j, "container_name", container->name);
	}
	json_u64(j, "count", out_shown(r, out_value(r, &s)));
	json_u64(j, "samples", s.count);
	if (r->stats->offcpu && s.state < SF_OFF_STATES)
		json_str(j, "state", (char[2]){ letters[s.state] });
	if (r->opts.groups)
		json_str(j, "event", out_group_frame(r, s.group));
	if (r->opts.wall)
		json_str(j, "wall", out_state_frame(r, i));
	err = put_frames(j, r, r->profile, i);
	if (!err && r->wakers)
		err = put_waker(j, r, s.waker);
	json_object_end(j);
	return err;
}

int out_json(const struct out_report *r, FILE *f)
{
	struct out_containers *oc;
	struct json j = json_on(f);
	int err;

	if (r->calls || (r->blocks && r->blocks->locks)) {
		err = r->calls ? out_calls_json(r, f) : out_locks_json(r, f);
		return err ? err : out_finish(f);
	}
	oc = out_containers_of(r);
	if (!oc)
		return -ENOMEM;
	json_object(&j, NULL);
	put_meta(&j, r);
	err = put_modules(&j, r);
	json_array(&j, "stacks");
	for (size_t i = 0; i < profile_count(r->profile) && !err && !ferror(f); i++)
		err = put_stack(&j, r, oc, i);
	json_array_end(&j);
	json_object_end(&j);
	json_newline(&j);
	out_containers_done(r, oc);
	return err ? err : out_finish(f);
}
