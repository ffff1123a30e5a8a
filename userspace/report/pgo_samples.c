/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/complain.h"
#include "base/exitcode.h"
#include "base/vec.h"
#include "report/pgo.h"

#define TRIES	  300
#define WAIT_USEC 100000

bool pgo_again(int err, int *tries)
{
	if (err != -EAGAIN || ++*tries == TRIES)
		return false;
	usleep(WAIT_USEC);
	return true;
}

/* ---- The program ---- */

int pgo_open(struct pgo *p)
{
	struct stat st;
	int err, tries = 0;

	p->fd = open(p->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (p->fd < 0 || fstat(p->fd, &st))
		return complain(EXIT_FAILED, "cannot read '%s': %s", p->path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return complain(EXIT_FAILED, "%s: not a regular file", p->path);
	p->server = fork_server_start(0);
	if (!p->server)
		return complain(EXIT_FAILED, "cannot start a process: %s", strerror(errno));
	allowance_init(&p->allowance);
	p->allowance.caller = getuid();
	elf_reader_init(&p->reader, p->server, elf_worker_main, &p->allowance);
	do
		err = elf_reader_facts(&p->reader, p->fd, &p->facts);
	while (pgo_again(err, &tries));
	if (err)
		return complain(EXIT_FAILED, "%s: %s", p->path,
				err == -ENOEXEC ? "not an ELF file of 64 bits" : strerror(-err));
	if (!p->facts.id_len)
		return complain(EXIT_FAILED,
				"%s has no build-id, so no recording can be its own: link with "
				"--build-id (Go: -ldflags=-B=gobuildid)",
				p->path);
	p->file.name = path_name(p->path);
	for (uint32_t i = 0; i < p->facts.id_len && 2 * i + 3 < sizeof(p->file.build_id); i++)
		snprintf(p->file.build_id + 2 * (size_t)i, 3, "%02x", p->facts.id[i]);
	return 0;
}

void pgo_close(struct pgo *p)
{
	free(p->leaves);
	if (p->server) {
		worker_end(&p->reader.worker);
		fork_server_stop(p->server);
	}
	if (p->fd >= 0)
		close(p->fd);
}

/* ---- Samples ---- */

static bool is_module(const struct stackset *ss, uint32_t frame, const char *module)
{
	return !strcmp(stackset_frame_module(ss, frame), module);
}

/* What one stack is: the place where it ends, or why it is left out. */
struct end {
	bool any;    /* one of its frames is the program's */
	bool leaf;   /* the last one is */
	uint64_t at; /* leaf: its place */
	enum pgo_drop why;
	const char *other; /* the build-id of another build; NULL: none */
};

static struct end end_of(const struct stackset *ss, uint64_t node)
{
	struct end e = { .why = PGO_OTHER_PROGRAM };
	bool first = true;
	uint64_t at;

	for (; node != STACK_ROOT; node = ss->nodes.keys[node].a) {
		uint32_t frame = (uint32_t)ss->nodes.keys[node].b;
		enum stack_kind kind = stackset_frame_kind(ss, frame);

		if (kind == STACK_NOTE)
			continue;
		if (stackset_is_place(ss, frame, &at)) {
			e.any = true;
			if (first)
				e.at = at;
			e.leaf |= first;
		} else if (is_module(ss, frame, STACK_OTHER_BUILD)) {
			e.other = stackset_frame_name(ss, frame);
			e.why = PGO_OTHER_BUILD;
		} else if (is_module(ss, frame, STACK_NO_ADDRESS)) {
			e.why = PGO_NO_ADDRESS;
		} else if (first) {
			e.why = kind == STACK_KERNEL ? PGO_KERNEL : PGO_OTHER_FILE;
		}
		first = false;
	}
	if (!e.any && e.why < PGO_OTHER_BUILD)
		e.why = PGO_OTHER_PROGRAM;
	return e;
}

static int by_offset(const void *a, const void *b)
{
	const struct pgo_place *x = a, *y = b;

	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* Sorts the places and adds up equal ones. */
static void sum_places(struct pgo *p)
{
	size_t kept = 0;

	if (p->nleaves)
		qsort(p->leaves, p->nleaves, sizeof(*p->leaves), by_offset);
	for (size_t i = 0; i < p->nleaves; i++) {
		if (kept && p->leaves[kept - 1].offset == p->leaves[i].offset)
			p->leaves[kept - 1].count += p->leaves[i].count;
		else
			p->leaves[kept++] = p->leaves[i];
	}
	p->nleaves = kept;
}

int pgo_tally(struct pgo *p, bool callers, const char **ret_other)
{
	const struct stackset *ss = p->stacks;
	size_t cap = 0;

	*ret_other = NULL;
	for (size_t i = 0; i < ss->leaves.n; i++) {
		uint64_t count = ss->values[i][STACK_AFTER];
		struct end e = end_of(ss, ss->leaves.keys[i].a);

		if (e.other)
			*ret_other = e.other;
		if (callers ? e.any : e.leaf)
			p->own += count;
		else
			p->dropped[e.why] += count;
		if (!e.leaf)
			continue;
		if (vec_reserve(&p->leaves, &cap, p->nleaves + 1, sizeof(*p->leaves)))
			return complain(EXIT_FAILED, "out of memory");
		p->leaves[p->nleaves++] = (struct pgo_place){ e.at, count };
	}
	sum_places(p);
	return 0;
}

bool pgo_part_from(const struct pgo *p, const struct symtab *t, size_t from, struct pgo_part *ret)
{
	const struct module_code *code;

	*ret = (struct pgo_part){ .places = p->leaves + from, .n = 1 };
	ret->samples = p->leaves[from].count;
	if (!symtab_find(t, p->leaves[from].offset, &ret->hit))
		return false;
	code = module_code_at(p->facts.code, p->facts.ncode, ret->hit.start);
	ret->addr = code ? code->vaddr + (ret->hit.start - code->off) : 0;
	while (from + ret->n < p->nleaves &&
	       p->leaves[from + ret->n].offset - ret->hit.start < ret->hit.size)
		ret->samples += p->leaves[from + ret->n++].count;
	return true;
}
