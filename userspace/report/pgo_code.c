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
static int add_block(struct pgo_code *c, const struct pgo_part *part, const uint32_t *v,
		     uint32_t len, uint64_t end, size_t *at)
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

static int add_blocks(struct pgo_code *c, const struct pgo_part *part, const uint32_t *v,
		      uint32_t n)
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
static int add_function(struct pgo *p, struct pgo_code *c, const struct pgo_part *part)
{
	struct elf_code what = { part->hit.start, part->addr, (uint32_t)part->hit.size };
	uint32_t *v = NULL, n;
	int err, tries = 0;

	if (!part->addr || part->hit.size > ELF_STEPS_MOST || !part->hit.size)
		return -ENOENT;
	do
		err = elf_reader_steps(&p->reader, p->fd, &what, &v, &n);
	while (pgo_again(err, &tries));
	if (!err)
		err = add_blocks(c, part, v, n);
	free(v);
	return err;
}

static int read_parts(struct pgo *p, const struct symtab *t, struct pgo_code *ret)
{
	struct pgo_part part;
	int err = 0;

	for (size_t i = 0; i < p->nleaves && !err; i += part.n) {
		err = pgo_part_from(p, t, i, &part) ? add_function(p, ret, &part) : -ENOENT;
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
