/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * default.pgo: a pprof profile as runtime/pprof writes it, which `go build -pgo` reads. It has the
 * frames of the program alone, with the names, lines and start lines of its own table
 * (elf/go_lines.h). What it called in the kernel and in other files counts for the caller.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/complain.h"
#include "base/exitcode.h"
#include "base/gzip.h"
#include "base/pb.h"
#include "base/strpool.h"
#include "base/text.h"
#include "base/u64s.h"
#include "base/vec.h"
#include "elf/go_lines.h"
#include "prof/pprof_fields.h"
#include "report/pgo.h"

#define GZIP_LEVEL 6
#define ROOT	   0u /* the node without a frame */

struct go {
	struct pgo *p;
	struct pb pb;
	struct strpool *strings;
	struct idmap functions; /* name << 32 | file, start line */
	uint64_t *offsets;	/* places of all frames, ascending */
	uint64_t *locations;	/* parallel: ids; 0: Go's table does not have the place */
	size_t n, cap;
	struct idmap nodes; /* parent, location; a stack is the path to its node */
	uint64_t *counts;   /* samples of each node */
	int err;	    /* first failure; the output is then discarded */
};

static uint64_t string_id(struct go *g, const char *s)
{
	char clean[STACK_TEXT_MAX];
	uint32_t id = 0;

	text_clean(clean, sizeof(clean), s, strlen(s), 0);
	if (strpool_intern(g->strings, clean, strlen(clean), &id))
		g->err = -ENOMEM;
	return id;
}

/* ---- Places ---- */

static int collect_places(struct go *g)
{
	const struct stackset *ss = g->p->stacks;
	uint64_t at;
	int err = 0;

	for (uint32_t i = 0; i < ss->frames.n && !err; i++)
		if (stackset_is_place(ss, i, &at))
			err = u64_push(&g->offsets, &g->n, &g->cap, at);
	g->n = u64_sort_unique(g->offsets, g->n);
	g->locations = calloc(g->n + 1, sizeof(*g->locations));
	return g->locations ? err : -ENOMEM;
}

/* Writes a function when it is first met; no other message may be open. */
static uint64_t function_id(struct go *g, const struct go_places *got, const struct go_place *v)
{
	uint64_t name = string_id(g, got->text + v->name), file = string_id(g, got->text + v->file);
	size_t before = g->functions.n, at;
	uint32_t id;

	if (idmap_get(&g->functions, name << 32 | file, v->start_line, &id)) {
		g->err = -ENOMEM;
		return 0;
	}
	if (id == before) {
		at = pb_begin(&g->pb, PROFILE_FUNCTION);
		pb_u64(&g->pb, ENTRY_ID, (uint64_t)id + 1);
		pb_u64(&g->pb, FUNCTION_NAME, name);
		pb_u64(&g->pb, FUNCTION_SYSTEM_NAME, name);
		pb_u64(&g->pb, FUNCTION_FILE, file);
		pb_u64(&g->pb, FUNCTION_START_LINE, v->start_line);
		pb_end(&g->pb, at);
	}
	return (uint64_t)id + 1;
}

/* v[0] up to v[n - 1]: the frames of the place `index`. */
static void put_location(struct go *g, size_t index, const struct go_places *got,
			 const struct go_place *v, uint32_t n)
{
	uint64_t functions[GO_FRAMES_MAX];
	size_t at, line;

	for (uint32_t i = 0; i < n; i++)
		functions[i] = function_id(g, got, &v[i]);
	g->locations[index] = index + 1;
	at = pb_begin(&g->pb, PROFILE_LOCATION);
	pb_u64(&g->pb, ENTRY_ID, g->locations[index]);
	pb_u64(&g->pb, LOCATION_MAPPING, 1);
	pb_u64(&g->pb, LOCATION_ADDRESS, g->offsets[index]);
	for (uint32_t i = 0; i < n; i++) {
		line = pb_begin(&g->pb, LOCATION_LINE);
		pb_u64(&g->pb, LINE_FUNCTION, functions[i]);
		pb_u64(&g->pb, LINE_LINE, v[i].line);
		pb_end(&g->pb, line);
	}
	pb_end(&g->pb, at);
}

static void put_locations(struct go *g, size_t from, const struct go_places *got)
{
	for (uint32_t at = 0, end; at < got->n; at = end) {
		for (end = at + 1; end < got->n && got->v[end].at == got->v[at].at; end++)
			;
		if (end - at <= GO_FRAMES_MAX)
			put_location(g, from + got->v[at].at, got, &got->v[at], end - at);
	}
}

static int read_places(struct go *g)
{
	struct go_places got;
	size_t n;
	int err = 0, tries = 0;

	for (size_t i = 0; i < g->n && !err; i += n) {
		n = g->n - i < GO_PLACES_ASKED ? g->n - i : GO_PLACES_ASKED;
		do
			err = elf_reader_go(&g->p->reader, g->p->fd, g->offsets + i, n, &got);
		while (pgo_again(err, &tries));
		if (err)
			break;
		put_locations(g, i, &got);
		go_places_free(&got);
	}
	if (err == -ENOENT)
		return complain(EXIT_FAILED, "%s is not a program of Go 1.20 or later", g->p->path);
	if (err && err != -ENOMEM)
		return complain(EXIT_FAILED, "the table of %s cannot be read: %s", g->p->path,
				strerror(-err));
	return err;
}

/* ---- Samples ---- */

static uint64_t location_of(const struct go *g, uint32_t frame)
{
	uint64_t at;

	return stackset_is_place(g->p->stacks, frame, &at)
		       ? g->locations[u64_first_from(g->offsets, g->n, at)]
		       : 0;
}

/* nodes[i]: the node that stands for node i of the stackset. */
static void make_nodes(struct go *g, uint32_t *nodes)
{
	const struct stackset *ss = g->p->stacks;
	uint32_t root;

	if (idmap_get(&g->nodes, UINT64_MAX, UINT64_MAX, &root))
		g->err = -ENOMEM;
	nodes[STACK_ROOT] = ROOT;
	for (size_t i = 1; i < ss->nodes.n && !g->err; i++) { /* parents come first */
		const struct idmap_key *key = &ss->nodes.keys[i];
		uint64_t location = location_of(g, (uint32_t)key->b);

		nodes[i] = nodes[key->a];
		if (location && idmap_get(&g->nodes, nodes[key->a], location, &nodes[i]))
			g->err = -ENOMEM;
	}
}

static bool is_program(const struct stackset *ss, uint64_t node)
{
	uint64_t at;

	for (; node != STACK_ROOT; node = ss->nodes.keys[node].a)
		if (stackset_is_place(ss, (uint32_t)ss->nodes.keys[node].b, &at))
			return true;
	return false;
}

static void count_stacks(struct go *g, const uint32_t *nodes)
{
	const struct stackset *ss = g->p->stacks;

	g->counts = calloc(g->nodes.n + 1, sizeof(*g->counts));
	if (!g->counts)
		g->err = -ENOMEM;
	for (size_t i = 0; i < ss->leaves.n && !g->err; i++) {
		uint64_t count = ss->values[i][STACK_AFTER];
		uint32_t node = nodes[ss->leaves.keys[i].a];

		g->counts[node] += count;
		if (node != ROOT)
			g->p->used += count;
		else if (is_program(ss, ss->leaves.keys[i].a))
			g->p->dropped[PGO_NO_LINE] += count;
	}
}

static void put_samples(struct go *g)
{
	uint64_t *stack = NULL;
	size_t cap = 0, n, at;

	for (uint32_t i = 1; i < g->nodes.n && !g->err; i++) {
		if (!g->counts[i])
			continue;
		n = 0;
		for (uint64_t node = i; node != ROOT && !g->err; node = g->nodes.keys[node].a)
			g->err = u64_push(&stack, &n, &cap, g->nodes.keys[node].b);
		at = pb_begin(&g->pb, PROFILE_SAMPLE);
		pb_packed(&g->pb, SAMPLE_LOCATION, stack, n);
		pb_packed(&g->pb, SAMPLE_VALUE, &g->counts[i], 1);
		pb_end(&g->pb, at);
	}
	free(stack);
}

static void put_stacks(struct go *g)
{
	uint32_t *nodes = calloc(g->p->stacks->nodes.n + 1, sizeof(*nodes));

	if (!nodes) {
		g->err = -ENOMEM;
		return;
	}
	make_nodes(g, nodes);
	count_stacks(g, nodes);
	put_samples(g);
	free(nodes);
}

/* ---- The profile ---- */

static void put_head(struct go *g)
{
	uint64_t samples = string_id(g, "samples"), count = string_id(g, "count"),
		 file = string_id(g, g->p->file.name), id = string_id(g, g->p->file.build_id);
	size_t at;

	at = pb_begin(&g->pb, PROFILE_SAMPLE_TYPE);
	pb_u64(&g->pb, TYPE_TYPE, samples);
	pb_u64(&g->pb, TYPE_UNIT, count);
	pb_end(&g->pb, at);
	at = pb_begin(&g->pb, PROFILE_MAPPING);
	pb_u64(&g->pb, ENTRY_ID, 1);
	pb_u64(&g->pb, MAPPING_LIMIT, g->n ? g->offsets[g->n - 1] + 1 : 1);
	pb_u64(&g->pb, MAPPING_FILE, file);
	pb_u64(&g->pb, MAPPING_BUILD_ID, id);
	pb_u64(&g->pb, MAPPING_HAS_FUNCTIONS, 1);
	pb_end(&g->pb, at);
}

static int write_packed(struct go *g, FILE *f)
{
	uint8_t *packed;
	size_t len;
	int err;

	for (uint32_t id = 0; id < strpool_count(g->strings); id++) {
		const char *s = strpool_str(g->strings, id);

		pb_bytes_always(&g->pb, PROFILE_STRING, s, strlen(s));
	}
	err = g->err ? g->err : g->pb.err;
	if (!err)
		err = gzip_bytes(g->pb.buf, g->pb.len, GZIP_LEVEL, &packed, &len);
	if (err)
		return err;
	fwrite(packed, 1, len, f);
	free(packed);
	return ferror(f) ? -EIO : 0;
}

int pgo_write_go(struct pgo *p, FILE *f)
{
	struct go g = { .p = p, .strings = strpool_new() };
	int err = g.strings ? collect_places(&g) : -ENOMEM;

	if (!err) {
		string_id(&g, ""); /* must have id 0 */
		put_head(&g);
		err = read_places(&g);
	}
	if (!err) {
		put_stacks(&g);
		err = write_packed(&g, f);
	}
	pb_free(&g.pb);
	strpool_free(g.strings);
	idmap_free(&g.functions);
	idmap_free(&g.nodes);
	free(g.offsets);
	free(g.locations);
	free(g.counts);
	return err;
}
