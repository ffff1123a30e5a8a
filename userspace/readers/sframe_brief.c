/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A row's rules are its info byte and words, and few different ones occur. sframe_rows.c decodes
 * each once, and they are numbered. After that a row costs reading its start and one comparison
 * with known bytes.
 */
#include "readers/sframe_brief.h"

#include <errno.h>

#include "base/hash.h"
#include "base/slots.h"
#include "readers/sframe_internal.h"

#define RULES_MAX  (1u << 16)
#define KNOWN_BITS 10

/*
 * Decoded rules: info byte and words as stored, in the most significant bytes of `bytes`, of
 * functions with that kind_of().
 */
struct known {
	uint64_t bytes;
	uint32_t kind; /* 0: free */
	uint32_t rule;
};

struct sframe_brief {
	const struct sframe *s;
	struct row *rules; /* start and end are 0 */
	size_t n, cap, unusable;
	struct slots slots;
	/*
	 * Bits of a 64-bit word that an info byte and its words leave over; 0: none, or they are
	 * longer
	 */
	uint8_t rest[256];
	struct known known[1 << KNOWN_BITS];
};

struct sframe_brief *sframe_brief_new(const struct sframe *s)
{
	struct sframe_brief *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->s = s;
	for (unsigned int info = 0; info < 256; info++) {
		unsigned int len = sframe_row_rules_len((uint8_t)info);

		m->rest[info] = (uint8_t)(len < 8 ? 64 - 8 * len : 0);
	}
	return m;
}

void sframe_brief_free(struct sframe_brief *m)
{
	if (!m)
		return;
	free(m->rules);
	slots_free(&m->slots);
	free(m);
}

void sframe_brief_rule(const struct sframe_brief *m, uint32_t rule, struct row *ret)
{
	*ret = m->rules[rule];
}

static uint64_t hash_rule(const void *ctx, size_t i)
{
	const struct row *r = &((const struct row *)ctx)[i];

	return hash_mix(hash_mix(rule_packed(&r->cfa), rule_packed(&r->ra)),
			hash_mix(rule_packed(&r->fp), r->flags));
}

/* 1 and the rules' number; 0: there are too many; -ENOMEM. */
static int number(struct sframe_brief *m, const struct row *rules, uint32_t *ret)
{
	size_t at;
	int err = slots_reserve(&m->slots, m->n, hash_rule, m->rules);

	if (!err)
		err = vec_reserve(&m->rules, &m->cap, m->n + 1, sizeof(*m->rules));
	if (err)
		return err;
	slots_each(&m->slots, hash_rule(rules, 0), at) {
		*ret = m->slots.ids[at] - 1;
		if (row_same_rules(&m->rules[*ret], rules))
			return 1;
	}
	if (m->n == RULES_MAX)
		return 0;
	m->rules[m->n] = *rules;
	m->unusable += !row_usable(rules);
	*ret = (uint32_t)m->n;
	m->slots.ids[at] = (uint32_t)++m->n;
	return 1;
}

static inline struct known *known_of(struct sframe_brief *m, uint64_t bytes)
{
	return &m->known[bytes * 0x9e3779b97f4a7c15 >> (64 - KNOWN_BITS)];
}

/* The properties of a function that determine the meaning of its rows' bytes. */
static uint32_t kind_of(const struct sframe_table *t, const struct sframe_fde *fde)
{
	return 1u << 31 | (uint32_t)t->version << 16 | (uint32_t)(uint8_t)t->fixed_ra << 8 |
	       (uint32_t)fde->flex << 1 | fde->signal;
}

/* State of reading one function. */
struct flow {
	struct sframe_brief *m;
	const struct sframe_table *t;
	const struct sframe_fde *fde;
	struct bytes b;
	/* Start of the function, and the bytes from there that rows may cover */
	uint64_t start, keep;
	struct brief_row *row; /* the last one written */
	uint32_t left;	       /* rows */
	uint64_t next;	       /* the next row starts here or later */
};

/*
 * Decodes the row at f->b, whose info byte follows a start of `width` bytes. Adds its rules to
 * known if they are short enough, else consumes the row. 1; 0, -ENOMEM as sframe_brief_rows.
 */
static __attribute__((noinline)) int learn(struct flow *f, unsigned int width)
{
	struct sframe_brief *m = f->m;
	struct bytes b = f->b;
	struct row rules;
	uint64_t start = bytes_peek64le(&b) & (((uint64_t)1 << 8 * width) - 1), v;
	uint8_t rest;
	uint32_t rule;
	int got;

	bytes_skip(&b, width);
	v = bytes_peek64le(&b);
	rest = m->rest[(uint8_t)v];
	if (start < f->next || start >= f->keep ||
	    !sframe_row_rules(m->s, f->t, f->fde, &b, &rules))
		return 0;
	got = number(m, &rules, &rule);
	if (got <= 0)
		return got;
	/* read_known() looks at 8 bytes: start, info byte and words must fit */
	if (rest >= 8 * width && bytes_left(&f->b) >= 8) {
		v <<= rest;
		*known_of(m, v) = (struct known){ v, kind_of(f->t, f->fde), rule };
		return 1;
	}
	f->b = b;
	f->next = start + 1;
	f->row->end = f->start + start;
	*++f->row = (struct brief_row){ .rule = rule };
	f->left--;
	return 1;
}

/*
 * Reads rows up to the first that is not known, is wrong, or is not to be kept. That one is not
 * consumed.
 */
static inline __attribute__((always_inline)) void read_known(struct flow *f, unsigned int width)
{
	const uint64_t begin = f->start, keep = f->keep;
	const uint32_t kind = kind_of(f->t, f->fde);
	struct sframe_brief *m = f->m;
	struct brief_row *row = f->row;
	uint64_t next = f->next;
	uint32_t left = f->left;
	struct bytes b = f->b;

	for (; left && bytes_left(&b) >= 8; left--) {
		uint64_t v = bytes_peek64le(&b), start = v & (((uint64_t)1 << 8 * width) - 1);
		uint8_t rest = m->rest[(uint8_t)(v >> 8 * width)];
		unsigned int len = width + 8 - rest / 8;
		const struct known *k;

		v = v >> 8 * width << rest;
		k = known_of(m, v);
		if (k->bytes != v || k->kind != kind || len > 8 || start < next || start >= keep)
			break;
		bytes_skip(&b, len);
		next = start + 1;
		row->end = begin + start;
		(++row)->rule = k->rule;
	}
	f->left = left;
	f->next = next;
	f->row = row;
	f->b = b;
}

static bool all_usable(const struct sframe_brief *m, const struct brief *b)
{
	for (size_t i = 1; m->unusable && i <= b->n; i++)
		if (!row_usable(&m->rules[b->rows[i].rule]))
			return false;
	return true;
}

int sframe_brief_rows(struct sframe_brief *m, const struct fn *fn, struct brief *out)
{
	const struct sframe_table *t = &m->s->tables[fn->ref >> 32];
	struct sframe_fde fde;
	struct flow f;
	int got = 1;

	if (t->be || sframe_fde_load(m->s, t, (uint32_t)fn->ref, &fde) || fde.rep_size ||
	    !fde.nrows || fde.nrows > BRIEF_MAX_ROWS || fn->end <= fn->start)
		return 0;
	if (vec_reserve(&out->rows, &out->cap, fde.nrows + 1ul, sizeof(*out->rows)))
		return -ENOMEM;
	f = (struct flow){ .m = m,
			   .t = t,
			   .fde = &fde,
			   .start = fn->start,
			   .keep = fn->end - fn->start,
			   .row = out->rows,
			   .left = fde.nrows };
	f.keep = f.keep < fde.size ? f.keep : fde.size;
	f.b = bytes_sub(&m->s->sec, fde.rows_off, t->fre_off + t->fre_len - fde.rows_off);
	f.b.be = t->be; /* the table's byte order, not the file's */
	while (got > 0 && f.left) {
		if (fde.row_type == 0)
			read_known(&f, 1);
		else if (fde.row_type == 1)
			read_known(&f, 2);
		else
			read_known(&f, 4);
		if (f.left)
			got = learn(&f, 1u << fde.row_type);
	}
	f.row->end = fn->end;
	out->n = (size_t)(f.row - out->rows);
	out->rules = (uint32_t)m->n;
	out->usable = got > 0 && all_usable(m, out);
	return got;
}
