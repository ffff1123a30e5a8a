/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * BOLT's profile without branches (bolt/Profile/DataReader.h), as `perf2bolt -nl` writes it: after
 * a first line, "1 FUNCTION OFFSET SAMPLES" for each place, with the offset in hexadecimal. Names
 * are the linker's; that of a local function has "/" and its number among those of its name.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/complain.h"
#include "base/exitcode.h"
#include "base/vec.h"
#include "report/pgo.h"

struct parts {
	struct pgo_part *list; /* ascending */
	size_t n, cap;
};

/* The functions that have samples. */
static int find_parts(struct pgo *p, struct parts *ret)
{
	struct symtab *t = NULL;
	struct pgo_part part;
	int err, tries = 0;

	do
		err = elf_reader_symbols(&p->reader, p->fd, -1, &t);
	while (pgo_again(err, &tries));
	for (size_t i = 0; i < p->nleaves && !err; i += part.n) {
		if (!pgo_part_from(p, t, i, &part)) {
			p->dropped[PGO_NO_FUNCTION] += part.samples;
			continue;
		}
		err = vec_reserve(&ret->list, &ret->cap, ret->n + 1, sizeof(*ret->list));
		if (!err)
			ret->list[ret->n++] = part;
	}
	symtab_free(t);
	return err;
}

/* The format has no escapes for these. */
static bool is_plain(const char *name)
{
	for (; *name; name++)
		if ((unsigned char)*name <= ' ' || *name == 0x7f || *name == '\\')
			return false;
	return true;
}

/* name NULL: there is none. */
static void put_part(struct pgo *p, FILE *f, const struct pgo_part *part, const char *name,
		     uint32_t number)
{
	char suffix[16] = "";

	if (!name || !is_plain(name)) {
		p->dropped[PGO_NO_FUNCTION] += part->samples;
		return;
	}
	if (number)
		snprintf(suffix, sizeof(suffix), "/%u", number);
	for (size_t i = 0; i < part->n; i++)
		fprintf(f, "1 %s%s %" PRIx64 " %" PRIu64 "\n", name, suffix,
			part->places[i].offset - part->hit.start, part->places[i].count);
	p->used += part->samples;
}

/* Writes n functions, at most GO_PLACES_ASKED. */
static int put_parts(struct pgo *p, FILE *f, const struct pgo_part *parts, size_t n)
{
	uint64_t starts[GO_PLACES_ASKED];
	struct go_places got;
	uint32_t at = 0;
	int err, tries = 0;

	for (size_t i = 0; i < n; i++)
		starts[i] = parts[i].hit.start;
	do
		err = elf_reader_linked(&p->reader, p->fd, starts, n, &got);
	while (pgo_again(err, &tries));
	if (err)
		return err;
	for (size_t i = 0; i < n; i++) {
		const struct go_place *v = at < got.n && got.v[at].at == i ? &got.v[at++] : NULL;

		put_part(p, f, &parts[i], v ? got.text + v->name : NULL, v ? v->line : 0);
		while (at < got.n && got.v[at].at == i)
			at++;
	}
	go_places_free(&got);
	return 0;
}

int pgo_write_bolt(struct pgo *p, FILE *f)
{
	struct parts parts = { 0 };
	int err = find_parts(p, &parts);

	fprintf(f, "no_lbr samples\n");
	for (size_t i = 0, n; i < parts.n && !err; i += n) {
		n = parts.n - i < GO_PLACES_ASKED ? parts.n - i : GO_PLACES_ASKED;
		err = put_parts(p, f, parts.list + i, n);
	}
	free(parts.list);
	if (err == -ENOENT)
		return complain(EXIT_FAILED, "%s has no symbol table: BOLT needs one", p->path);
	if (err && err != -ENOMEM)
		return complain(EXIT_FAILED, "the symbols of %s cannot be read: %s", p->path,
				strerror(-err));
	return err ? err : ferror(f) ? -EIO : 0;
}
