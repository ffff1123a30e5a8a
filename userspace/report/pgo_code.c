/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/pgo_code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/complain.h"
#include "base/exitcode.h"
#include "base/vec.h"

/* A function with fewer samples may run code that has none. */
#define SAMPLES_TELL 100

/* A function, and its samples: places[0] up to places[n]. */
struct part {
	struct symtab_hit hit;
	const struct pgo_place *places;
	size_t n;
	uint64_t samples;
	uint64_t addr;
};

static int add_step(struct pgo_code *c, const struct pgo_step *step)
{
	if (vec_reserve(&c->steps, &c->cap, c->n + 1, sizeof(*c->steps)))
		return -ENOMEM;
	c->steps[c->n++] = *step;
	return 0;
}

/* The number of steps of the block that begins with v[0]. */
static uint32_t block_len(const uint32_t *v, uint32_t n)
{
	uint32_t len = 1;

	while (len < n && !ELF_STEP_BEGINS(v[len]))
		len++;
	return len;
}

/* Adds a block of `len` steps; *at: the first place that is not below it. */
static int add_block(struct pgo_code *c, const struct part *part, const uint32_t *v, uint32_t len,
		     uint64_t end, size_t *at)
{
	uint64_t sum = 0, start = part->hit.start;
	size_t first = c->n;
	int err = 0;

	for (uint32_t i = 0; i < len && !err; i++) {
		uint64_t to = i + 1 < len ? start + ELF_STEP_AT(v[i + 1]) : end;
		struct pgo_step step = { .addr = part->addr + ELF_STEP_AT(v[i]),
					 .block = c->n - i,
					 .begins_function = !ELF_STEP_AT(v[i]) };

		for (; *at < part->n && part->places[*at].offset < to; ++*at)
			step.samples += part->places[*at].count;
		sum += step.samples;
		err = add_step(c, &step);
	}
	for (size_t i = first; i < c->n; i++) {
		c->steps[i].count = sum * PGO_SCALE / len;
		c->steps[i].known = sum || part->samples >= SAMPLES_TELL;
	}
	return err;
}

static int add_blocks(struct pgo_code *c, const struct part *part, const uint32_t *v, uint32_t n)
{
	uint64_t end = part->hit.start + part->hit.size;
	size_t at = 0;
	int err = 0;

	for (uint32_t i = 0, len; i < n && !err; i += len) {
		len = block_len(v + i, n - i);
		err = add_block(c, part, v + i, len,
				i + len < n ? part->hit.start + ELF_STEP_AT(v[i + len]) : end, &at);
	}
	return err;
}

/* -ENOENT: no instructions are known of the function. */
static int add_function(struct pgo *p, struct pgo_code *c, struct part *part)
{
	const struct module_code *segment = module_code_at(p->facts.code, p->facts.ncode,
							   part->hit.start);
	struct elf_code what = { .off = part->hit.start, .size = (uint32_t)part->hit.size };
	uint32_t *v = NULL, n;
	int err, tries = 0;

	if (!segment || part->hit.size > ELF_STEPS_MOST || !part->hit.size)
		return -ENOENT;
	what.addr = part->addr = segment->vaddr + (part->hit.start - segment->off);
	do
		err = elf_reader_steps(&p->reader, p->fd, &what, &v, &n);
	while (pgo_again(err, &tries));
	if (!err)
		err = add_blocks(c, part, v, n);
	free(v);
	return err;
}

/* The function of the first place, and how many of the places are in it. */
static bool next_part(const struct pgo *p, const struct symtab *t, size_t from, struct part *ret)
{
	*ret = (struct part){ .places = p->leaves + from, .n = 1 };
	ret->samples = p->leaves[from].count;
	if (!symtab_find(t, p->leaves[from].offset, &ret->hit))
		return false;
	while (from + ret->n < p->nleaves &&
	       p->leaves[from + ret->n].offset - ret->hit.start < ret->hit.size)
		ret->samples += p->leaves[from + ret->n++].count;
	return true;
}

static int read_parts(struct pgo *p, const struct symtab *t, struct pgo_code *ret)
{
	struct part part;
	int err = 0;

	for (size_t i = 0; i < p->nleaves && !err; i += part.n) {
		err = next_part(p, t, i, &part) ? add_function(p, ret, &part) : -ENOENT;
		if (err && err != -ENOMEM && err != -ENOTSUP) {
			p->dropped[PGO_NO_FUNCTION] += part.samples;
			err = 0;
		}
	}
	return err;
}

int pgo_code_read(struct pgo *p, struct pgo_code *ret)
{
	struct symtab *t = NULL;
	int err, tries = 0;

	do
		err = elf_reader_symbols(&p->reader, p->fd, -1, &t);
	while (pgo_again(err, &tries));
	if (!err)
		err = read_parts(p, t, ret);
	symtab_free(t);
	if (err == -ENOTSUP)
		return complain(EXIT_FAILED,
				"%s: there is no decoder here for the code of this machine",
				p->path);
	if (err && err != -ENOMEM)
		return complain(EXIT_FAILED, "the symbols of %s cannot be read: %s", p->path,
				strerror(-err));
	return err;
}

void pgo_code_free(struct pgo_code *c)
{
	free(c->steps);
	*c = (struct pgo_code){ 0 };
}
