/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/report_code.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/complain.h"
#include "base/exitcode.h"
#include "base/in_root.h"
#include "base/text.h"
#include "prof/read_code.h"
#include "report/recorded.h"
#include "symtab/elf_reader.h"

struct listing {
	const char *function;
	struct code_places places;
	struct stacks_meta meta;
	const struct code_file *file;
	char shown[PATH_MAX]; /* its path, clean */
	struct elf_code what; /* the function in its file */
	bool cut;
	struct elf_instruction *code;
	uint32_t n;
	uint64_t *self; /* counts of the instructions */
	uint64_t own;	/* their sum */
};

static int read_profile(struct listing *l, const char *path)
{
	bool is_stdin = !strcmp(path, "-");
	FILE *f = is_stdin ? stdin : fopen(path, "re");
	struct read_error why;
	FILE *from;
	int err;

	if (!f)
		return complain(EXIT_FAILED, "cannot read '%s': %s", path, strerror(errno));
	from = recorded_as_json(f, &why, &err);
	if (from)
		err = read_code(from, l->function, &l->places, &l->meta, &why);
	if (from && from != f)
		fclose(from);
	if (!is_stdin)
		fclose(f);
	if (err == -EINVAL)
		return complain(EXIT_FAILED, "%s: %s", path, why.text);
	return err ? complain(EXIT_FAILED, "cannot read '%s': %s", path, strerror(-err)) : 0;
}

static int by_module(const void *a, const void *b)
{
	const struct code_place *x = a, *y = b;

	return x->module < y->module ? -1 : x->module > y->module;
}

/* Files may have functions of the same name: the id of the one with most samples. */
static uint64_t hottest_module(struct code_places *p)
{
	uint64_t best = 0, most = 0, sum = 0;

	if (p->n)
		qsort(p->list, p->n, sizeof(*p->list), by_module);
	for (size_t i = 0; i < p->n; i++) {
		sum = i && p->list[i].module == p->list[i - 1].module ? sum : 0;
		sum += p->list[i].count;
		if (sum <= most)
			continue;
		most = sum;
		best = p->list[i].module;
	}
	return best;
}

static int choose_file(struct listing *l, const char *path)
{
	struct code_places *p = &l->places;
	uint64_t module = hottest_module(p);

	for (size_t i = 0; i < p->nfiles && p->n && !l->file; i++)
		if (p->files[i].id == module && p->files[i].path)
			l->file = &p->files[i];
	if (!l->file)
		return complain(EXIT_FAILED, "%s: no stack ends in user code of a function '%s'",
				path, l->function);
	text_clean(l->shown, sizeof(l->shown), l->file->path, strlen(l->file->path), 0);
	return 0;
}

static bool same_build(const struct elf_facts *facts, const char *build_id)
{
	char hex[2 * FACTS_ID_MAX + 1] = "";

	for (uint32_t i = 0; i < facts->id_len && i < FACTS_ID_MAX; i++)
		snprintf(hex + 2 * (size_t)i, 3, "%02x", facts->id[i]);
	return !strcmp(hex, build_id);
}

/* The function that contains the first place; it contains the others, too. */
static int find_function(struct listing *l, struct elf_reader *r, int fd)
{
	const struct code_place *p = l->places.list;
	const struct module_code *segment;
	struct symtab *t = NULL;
	struct elf_facts facts;
	struct symtab_hit hit;
	int err = elf_reader_facts(r, fd, &facts);

	if (err)
		return err;
	if (!same_build(&facts, l->file->build_id))
		return -ESTALE;
	while (p->module != l->file->id)
		p++;
	err = elf_reader_symbols(r, fd, -1, &t);
	if (err)
		return err;
	if (!symtab_find(t, p->offset, &hit) || !hit.size) {
		err = -ENOENT;
	} else {
		segment = module_code_at(facts.code, facts.ncode, hit.start);
		l->cut = hit.size > ELF_CODE_MOST;
		l->what.off = hit.start;
		l->what.size = l->cut ? ELF_CODE_MOST : (uint32_t)hit.size;
		l->what.addr = segment ? segment->vaddr + (hit.start - segment->off) : hit.start;
	}
	symtab_free(t);
	return err;
}

static const char *why_not(int err)
{
	switch (err) {
	case -ESTALE:
		return "the file has another build-id than the recorded one";
	case -ENOTSUP:
		return "there is a disassembler for x86-64 code only";
	case -EAGAIN:
	case -ETIMEDOUT:
		return "reading it takes too long";
	case -ENOENT:
		return "there is no such file, or no such function in it";
	default:
		return strerror(-err);
	}
}

/* A worker reads the file, as it may be of another user. */
static int read_instructions(struct listing *l, int fd)
{
	struct fork_server *server = fork_server_start(0);
	struct allowance allowance;
	struct elf_reader reader;
	int err;

	if (!server)
		return -errno;
	allowance_init(&allowance);
	allowance.caller = getuid();
	elf_reader_init(&reader, server, elf_worker_main, &allowance);
	err = find_function(l, &reader, fd);
	if (!err)
		err = elf_reader_code(&reader, fd, &l->what, &l->code, &l->n);
	worker_end(&reader.worker);
	fork_server_stop(server);
	return err;
}

static int open_code(struct listing *l)
{
	struct stat st;
	int fd = open_regular(l->file->path, &st), err;

	if (fd < 0)
		return fd;
	err = read_instructions(l, fd);
	close(fd);
	return err;
}

static int count(struct listing *l)
{
	const struct code_places *p = &l->places;

	l->self = calloc(l->n + 1, sizeof(*l->self));
	if (!l->self)
		return -ENOMEM;
	for (size_t i = 0; i < p->n; i++) {
		uint64_t at = p->list[i].offset - l->what.off;
		uint32_t lo = 0, hi = l->n;

		if (p->list[i].module != l->file->id || at >= l->what.size)
			continue;
		while (hi - lo > 1) {
			uint32_t mid = lo + (hi - lo) / 2;

			if (l->code[mid].at <= at)
				lo = mid;
			else
				hi = mid;
		}
		l->self[lo] += p->list[i].count;
		l->own += p->list[i].count;
	}
	return 0;
}

static int print(const struct listing *l)
{
	char share[16];

	printf("%s  %s%s\n", l->function, l->shown, l->cut ? "  (only its first 64 KiB)" : "");
	printf("%" PRIu64 " %s in it, %.1f%% of all\n", l->own, l->meta.unit,
	       l->places.all ? 100.0 * (double)l->own / (double)l->places.all : 0);
	printf("  SELF%%     ADDRESS  INSTRUCTION\n");
	for (uint32_t i = 0; i < l->n; i++) {
		share[0] = 0;
		if (l->self[i])
			snprintf(share, sizeof(share), "%.1f",
				 100.0 * (double)l->self[i] / (double)l->own);
		printf("%7s%12" PRIx64 "  %s\n", share, l->what.addr + l->code[i].at,
		       l->code[i].text);
	}
	if (fflush(stdout) || ferror(stdout))
		return complain(EXIT_FAILED, "writing the output: %s", strerror(errno));
	return 0;
}

int report_code(const char *function, const char *path)
{
	struct listing l = { .function = function };
	int err, rc = read_profile(&l, path);

	if (!rc)
		rc = choose_file(&l, path);
	if (!rc) {
		err = open_code(&l);
		if (!err)
			err = count(&l);
		rc = err ? complain(EXIT_FAILED, "no instructions of '%s' from '%s': %s", function,
				    l.shown, why_not(err))
			 : print(&l);
	}
	code_places_free(&l.places);
	free(l.code);
	free(l.self);
	return rc;
}
