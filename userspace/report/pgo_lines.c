/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/pgo_lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/complain.h"
#include "base/exitcode.h"
#include "base/radix.h"
#include "base/vec.h"
#include "debuginfo/debug_file.h"
#include "debuginfo/dwarf_worker.h"
#include "paths/path_opener.h"
#include "report/pgo_code.h"

/* The program is the caller's own choice, and may be a large one. */
#define LIMITS ((struct dwarf_limits){ .bytes = 4ull << 30, .seconds = 120 })

struct address {
	uint64_t addr, step; /* index of the step */
};

struct reader {
	struct pgo *p;
	struct pgo_code *code;
	const struct address *addrs; /* ascending */
	pgo_discriminator_fn *discriminator;
	struct pgo_lines *ret;
};

/* ---- Nodes and lines ---- */

static int node_of(struct pgo_lines *l, uint32_t parent, uint32_t site, const char *name,
		   uint32_t *ret)
{
	size_t before = l->node_ids.n;
	uint32_t id;

	if (strpool_intern(l->names, name, strlen(name), &id) ||
	    idmap_get(&l->node_ids, (uint64_t)parent << 32 | site, id, ret) ||
	    vec_reserve(&l->nodes, &l->nodes_cap, l->node_ids.n, sizeof(*l->nodes)))
		return -ENOMEM;
	if (*ret == before)
		l->nodes[*ret] = (struct pgo_node){ .parent = parent, .site = site, .name = id };
	return 0;
}

static int add_line(struct pgo_lines *l, uint32_t node, uint32_t site, uint64_t count)
{
	size_t before = l->line_ids.n;
	uint32_t id;

	if (idmap_get(&l->line_ids, node, site, &id) ||
	    vec_reserve(&l->lines, &l->lines_cap, l->line_ids.n, sizeof(*l->lines)))
		return -ENOMEM;
	if (id == before)
		l->lines[id] = (struct pgo_line){ .node = node, .site = site };
	if (count > l->lines[id].count)
		l->lines[id].count = count;
	return 0;
}

static uint32_t site_of(const struct reader *r, const struct dwarf_frame *f, uint32_t *ret_copies)
{
	uint32_t discriminator;

	r->discriminator(f->discriminator, &discriminator, ret_copies);
	return PGO_SITE((f->line - f->start_line) & 0xffff, discriminator);
}

/* Names become text between spaces and colons, in lines that may be comments. */
static bool is_plain(const char *name)
{
	if (!name || strchr("#!0123456789", *name)) /* also "" */
		return false;
	for (; *name; name++)
		if ((unsigned char)*name <= ' ' || *name == 0x7f)
			return false;
	return true;
}

/* Code that compilers add has line 0. The samples of its block count for the other lines there. */
static bool is_known(const struct dwarf_frame *frames, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!is_plain(frames[i].name) || !frames[i].line || !frames[i].start_line)
			return false;
	return true;
}

/* A dwarf_emit_fn: the code at an instruction. */
static int take_frames(void *ctx, size_t i, const struct dwarf_frame *frames, size_t n)
{
	struct reader *r = ctx;
	struct pgo_lines *l = r->ret;
	const struct pgo_step *step = &r->code->steps[r->addrs[i].step];
	uint32_t node, root, copies, site;
	int err;

	if (!is_known(frames, n))
		return 0;
	err = node_of(l, PGO_NO_NODE, 0, frames[n - 1].name, &node);
	root = node;
	for (size_t k = n - 1; k > 0 && !err; k--) {
		site = site_of(r, &frames[k], &copies);
		err = node_of(l, node, site, frames[k - 1].name, &node);
	}
	if (err)
		return err;
	site = site_of(r, &frames[0], &copies);
	if (step->begins_function && step->count > l->nodes[root].head)
		l->nodes[root].head = step->count;
	r->code->steps[step->block].has_line = true;
	return step->known ? add_line(l, node, site, step->count * copies) : 0;
}

/* ---- Debug information ---- */

static int work(struct reader *r, int fd, int alt_fd)
{
	size_t n = r->code->n;
	struct address *list = malloc((n + 1) * sizeof(*list));
	uint64_t *addrs = malloc((n + 1) * sizeof(*addrs));
	struct dwarf_job job = { .fd = fd,
				 .alt_fd = alt_fd,
				 .inlined = true,
				 .lines = true,
				 .addrs = addrs,
				 .n = n,
				 .root_fd = -1 };
	int err = list && addrs ? 0 : -ENOMEM;

	for (size_t i = 0; i < n && !err; i++)
		list[i] = (struct address){ r->code->steps[i].addr, i };
	if (!err)
		err = radix_sort(list, n, sizeof(*list));
	for (size_t i = 0; i < n && !err; i++)
		addrs[i] = list[i].addr;
	r->addrs = list;
	if (!err)
		err = dwarf_work(&job, &LIMITS, take_frames, r);
	free(list);
	free(addrs);
	return err;
}

/* Finds the debug information: in the program, or in its debug file. */
static int read_from(struct reader *r, struct path_opener *paths)
{
	struct pgo *p = r->p;
	char *path = realpath(p->path, NULL); /* a debug file may be beside it */
	struct debug_query q = { .reader = &p->reader,
				 .paths = paths,
				 .facts = &p->facts,
				 .path = path,
				 .owner = allowance_owner(p->fd) };
	struct debug_file debug = { .fd = -1 }, alt = { .fd = -1 };
	int err = p->facts.dwarf ? 0 : debug_file_find_dwarf(&q, &debug);

	if (!err && !p->facts.dwarf) {
		q.facts = &debug.facts;
		q.path = debug.path;
	}
	if (!err) {
		debug_file_find_alt(&q, &alt);
		err = work(r, p->facts.dwarf ? p->fd : debug.fd, alt.fd);
	}
	debug_file_close(&alt);
	debug_file_close(&debug);
	free(path);
	return err;
}

static int read_debug(struct reader *r)
{
	struct fork_server *server = fork_server_start(0);
	struct path_opener *paths = calloc(1, sizeof(*paths));
	int err = server && paths ? 0 : -ENOMEM;

	if (!err) {
		path_opener_init(paths, server, path_worker_main, &r->p->allowance);
		err = read_from(r, paths);
		path_opener_end(paths);
	}
	free(paths);
	fork_server_stop(server);
	if (err == -ENOENT)
		return complain(EXIT_FAILED,
				"%s has no debug information, and there is no debug file of it: "
				"build it with -g",
				r->p->path);
	if (err && err != -ENOMEM)
		return complain(EXIT_FAILED, "the debug information of %s cannot be read: %s",
				r->p->path,
				err == -ENOTSUP	    ? "built without libdw"
				: err == -ETIMEDOUT ? "it takes too long"
				: err == -EFBIG	    ? "it is too large"
						    : "it is damaged");
	return err;
}

/* ---- Order ---- */

static int by_place(const void *a, const void *b)
{
	const struct pgo_item *x = a, *y = b;

	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	if (x->site != y->site)
		return x->site < y->site ? -1 : 1;
	if (x->inlined != y->inlined)
		return x->inlined < y->inlined ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

static int make_items(struct pgo_lines *l)
{
	size_t nodes = l->node_ids.n, lines = l->line_ids.n, n = 0;

	l->items = malloc((nodes + lines + 1) * sizeof(*l->items));
	l->first = calloc(nodes + 1, sizeof(*l->first));
	if (!l->items || !l->first)
		return -ENOMEM;
	for (uint32_t i = 0; i < lines; i++)
		l->items[n++] = (struct pgo_item){ l->lines[i].node, l->lines[i].site, 0, i };
	for (uint32_t i = 0; i < nodes; i++)
		if (l->nodes[i].parent != PGO_NO_NODE)
			l->items[n++] = (struct pgo_item){ l->nodes[i].parent, l->nodes[i].site, 1,
							   i };
	if (n)
		qsort(l->items, n, sizeof(*l->items), by_place);
	for (size_t i = 0; i < n; i++)
		l->first[l->items[i].node + 1]++;
	for (size_t i = 0; i < nodes; i++)
		l->first[i + 1] += l->first[i];
	return 0;
}

static int by_total(const void *a, const void *b, void *ctx)
{
	const struct pgo_lines *l = ctx;
	const struct pgo_node *x = &l->nodes[*(const uint32_t *)a],
			      *y = &l->nodes[*(const uint32_t *)b];

	if (x->total != y->total)
		return x->total > y->total ? -1 : 1;
	return strcmp(strpool_str(l->names, x->name), strpool_str(l->names, y->name));
}

static int add_up(struct pgo_lines *l)
{
	for (size_t i = 0; i < l->line_ids.n; i++)
		l->nodes[l->lines[i].node].total += l->lines[i].count;
	for (size_t i = l->node_ids.n; i-- > 0;)
		if (l->nodes[i].parent != PGO_NO_NODE)
			l->nodes[l->nodes[i].parent].total += l->nodes[i].total;
	l->functions = malloc((l->node_ids.n + 1) * sizeof(*l->functions));
	if (!l->functions)
		return -ENOMEM;
	for (uint32_t i = 0; i < l->node_ids.n; i++)
		if (l->nodes[i].parent == PGO_NO_NODE && l->nodes[i].total)
			l->functions[l->nfunctions++] = i;
	if (l->nfunctions)
		qsort_r(l->functions, l->nfunctions, sizeof(*l->functions), by_total, l);
	return make_items(l);
}

int pgo_lines_read(struct pgo *p, pgo_discriminator_fn *discriminator, struct pgo_lines *ret)
{
	struct pgo_code code = { 0 };
	struct reader r = { .p = p, .code = &code, .discriminator = discriminator, .ret = ret };
	int err = pgo_code_read(p, &code);

	*ret = (struct pgo_lines){ .names = strpool_new() };
	if (!err && !ret->names)
		err = -ENOMEM;
	if (!err)
		err = read_debug(&r);
	for (size_t i = 0; i < code.n && !err; i++)
		*(code.steps[code.steps[i].block].has_line ? &p->used : &p->dropped[PGO_NO_LINE]) +=
			code.steps[i].samples;
	if (!err)
		err = add_up(ret);
	pgo_code_free(&code);
	return err;
}

void pgo_lines_free(struct pgo_lines *l)
{
	strpool_free(l->names);
	idmap_free(&l->node_ids);
	idmap_free(&l->line_ids);
	free(l->nodes);
	free(l->lines);
	free(l->items);
	free(l->first);
	free(l->functions);
	*l = (struct pgo_lines){ 0 };
}
