/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An entry, in the machine's own byte order:
 *
 * 	struct entry_head
 * 	u32 dir[npages]		0, or 1 + the index of a page, for each 64 KiB of the file
 * 	u32 sizes[nbodies]	bytes of each page; several directory entries may share one
 * 	struct sf_rule rules[nrules]
 * 	struct module_range ranges[nranges]
 * 	struct sf_lang		with SF_MODULE_LANG in flags
 * 	pages, one after the other, as BPF has them
 *
 * Pages go from the file to where BPF will read them and are checked there; BPF does not find
 * them before the caller publishes them.
 */
#include "tables/table_entry.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/full_io.h"
#include "base/vec.h"
#include "languages/lang.h"

#define MAGIC	   0x3230626174667362ull
#define RANGES_MAX (1u << 20)

struct entry_head {
	uint64_t magic, size; /* size: bytes of the whole entry */
	uint32_t flags, first_page, npages, nbodies, nrules, nranges;
	uint64_t rows, bytes, lost_rows;
};

_Static_assert(sizeof(struct entry_head) == 64, "no padding is written");

/* The part between the head and the pages. */
struct middle {
	void *mem;
	size_t len;
	uint32_t *dir, *sizes;
	struct sf_rule *rules;
	struct module_range *ranges;
	struct sf_lang *lang; /* NULL: the file is no language's runtime */
};

static size_t dir_len(const struct entry_head *h)
{
	return 4ul * ((size_t)h->npages + h->nbodies + ((h->npages + h->nbodies) & 1));
}

static size_t middle_len(const struct entry_head *h)
{
	return dir_len(h) + h->nrules * sizeof(struct sf_rule) +
	       h->nranges * sizeof(struct module_range) +
	       (h->flags & SF_MODULE_LANG ? sizeof(struct sf_lang) : 0);
}

static int middle_alloc(struct middle *m, const struct entry_head *h)
{
	size_t dir = dir_len(h), rules = h->nrules * sizeof(struct sf_rule);

	m->len = middle_len(h);
	m->mem = calloc(1, m->len ? m->len : 1);
	if (!m->mem)
		return -ENOMEM;
	m->dir = m->mem;
	m->sizes = m->dir + h->npages;
	m->rules = (struct sf_rule *)((char *)m->mem + dir);
	m->ranges = (struct module_range *)((char *)m->mem + dir + rules);
	if (h->flags & SF_MODULE_LANG)
		m->lang = (struct sf_lang *)(m->ranges + h->nranges);
	return 0;
}

/* Whether the counts are possible. If so, sizes computed from them do not overflow. */
static bool head_sound(const struct entry_head *h, uint64_t size)
{
	return h->magic == MAGIC && h->size == size && h->bytes <= size && h->npages &&
	       h->npages <= SF_DIR_MAX && h->nbodies && h->nbodies <= h->npages &&
	       h->nrules <= SF_MAX_RULES && h->nranges <= RANGES_MAX;
}

static bool middle_sound(const struct middle *m, const struct entry_head *h)
{
	uint64_t size = sizeof(*h) + m->len, rows = 0;

	for (uint32_t i = 0; i < h->npages; i++)
		if (m->dir[i] > h->nbodies)
			return false;
	for (uint32_t i = 0; i < h->nranges; i++)
		if (m->ranges[i].start >= m->ranges[i].end || m->ranges[i].code > 1 ||
		    (i && m->ranges[i].start < m->ranges[i - 1].end))
			return false;
	for (uint32_t i = 0; i < h->nbodies; i++) {
		if (m->sizes[i] <= SF_PAGE_ROWS ||
		    m->sizes[i] > SF_PAGE_ROWS + 4 * SF_PAGE_MAX_ROWS || m->sizes[i] % 4)
			return false;
		size += m->sizes[i];
		rows += (m->sizes[i] - SF_PAGE_ROWS) / 4;
	}
	return size == h->size && h->rows <= rows && (!m->lang || lang_sound(m->lang));
}

/* Rows checked at a time; a constant, so that the compiler vectorizes the loop */
#define STRIDE 32

/*
 * Whether any row's code is SF_RULE_INDEXED + nrules or above, other than the two codes that are
 * not an index.
 */
static bool unknown_rules(const uint32_t *rows, uint32_t n, uint32_t nrules)
{
	const uint32_t first = SF_RULE_INDEXED + nrules, span = SF_RULE_END - first;
	uint32_t bad = 0;

	for (; n >= STRIDE; n -= STRIDE, rows += STRIDE)
		for (size_t k = 0; k < STRIDE; k++)
			bad |= (rows[k] >> 16) - first < span;
	for (size_t k = 0; k < n; k++)
		bad |= (rows[k] >> 16) - first < span;
	return bad;
}

/*
 * Whether BPF can rely on the page: its index stays inside, its first row starts at byte 0, and
 * every rule exists.
 */
static bool page_sound(const void *mem, uint32_t size, uint32_t nrules)
{
	const uint16_t *index = mem;
	const uint32_t *rows = (const uint32_t *)((const char *)mem + SF_PAGE_ROWS);
	uint32_t n = (size - SF_PAGE_ROWS) / 4, bad = rows[0] & 0xffff;

	bad |= index[SF_PAGE_INDEX - 1] != n || index[0];
	for (uint32_t i = 1; i < SF_PAGE_INDEX; i++)
		bad |= index[i] < index[i - 1];
	return !bad && !unknown_rules(rows, n, nrules);
}

static int load_pages(int fd, const struct entry_head *h, struct middle *m,
		      const struct pack_space *space, uint32_t *locs)
{
	uint64_t off = sizeof(*h) + m->len;

	for (uint32_t i = 0; i < h->nbodies; i++) {
		void *mem = space->alloc(space->ctx, m->sizes[i], &locs[i]);
		int err;

		if (!mem)
			return -ENOSPC;
		err = pread_full(fd, mem, m->sizes[i], off);
		if (err)
			return err;
		if (!page_sound(mem, m->sizes[i], h->nrules))
			return -EBADMSG;
		off += m->sizes[i];
	}
	return 0;
}

/* Copies directory and rules to where BPF reads them, and the ranges to the caller. */
static int load_rest(const struct entry_head *h, struct middle *m, const uint32_t *locs,
		     const struct pack_space *space, struct pack_result *ret)
{
	uint32_t lang = m->lang ? sizeof(*m->lang) : 0;
	uint8_t *mem = space->alloc(space->ctx, lang + 4 * h->npages, &ret->tables.dir);
	uint32_t *dir = (uint32_t *)(mem + lang);
	void *rules;

	if (!mem)
		return -ENOSPC;
	if (lang)
		memcpy(mem, m->lang, lang);
	ret->tables.dir += lang / 16;
	for (uint32_t i = 0; i < h->npages; i++)
		dir[i] = m->dir[i] ? locs[m->dir[i] - 1] : 0;
	if (h->nrules) {
		rules = space->alloc(space->ctx, (uint32_t)(h->nrules * sizeof(*m->rules)),
				     &ret->tables.rules);
		if (!rules)
			return -ENOSPC;
		memcpy(rules, m->rules, h->nrules * sizeof(*m->rules));
	}
	if (h->nranges) {
		ret->ranges = malloc(h->nranges * sizeof(*ret->ranges));
		if (!ret->ranges)
			return -ENOMEM;
		memcpy(ret->ranges, m->ranges, h->nranges * sizeof(*ret->ranges));
		ret->nranges = h->nranges;
	}
	ret->language = m->lang ? m->lang->language : SF_LANG_NONE;
	ret->tables.flags = h->flags;
	ret->tables.first_page = h->first_page;
	ret->tables.npages = h->npages;
	ret->tables.nrules = h->nrules;
	ret->rows = h->rows;
	ret->rules = h->nrules;
	ret->bytes = h->bytes;
	ret->lost_rows = h->lost_rows;
	return 0;
}

int table_entry_read(int fd, uint64_t size, const struct pack_space *space, struct pack_result *ret)
{
	struct middle m = { 0 };
	struct entry_head h;
	uint32_t *locs = NULL;
	int err;

	memset(ret, 0, sizeof(*ret));
	if (pread_full(fd, &h, sizeof(h), 0) || !head_sound(&h, size) ||
	    sizeof(h) + middle_len(&h) > size)
		return -EBADMSG;
	err = middle_alloc(&m, &h);
	if (!err)
		err = pread_full(fd, m.mem, m.len, sizeof(h)) || !middle_sound(&m, &h) ? -EBADMSG
										       : 0;
	if (!err) {
		locs = malloc(h.nbodies * sizeof(*locs));
		err = locs ? load_pages(fd, &h, &m, space, locs) : -ENOMEM;
	}
	if (!err)
		err = load_rest(&h, &m, locs, space, ret);
	free(locs);
	free(m.mem);
	return err == -EIO ? -EBADMSG : err;
}

/* ---- Writing ---- */

static void *pieces_alloc(void *ctx, uint32_t size, uint32_t *ret_loc)
{
	struct table_pieces *p = ctx;
	void *mem = p->inner->alloc(p->inner->ctx, size, ret_loc);

	/* The piece is missing without memory for the record, and table_entry_write fails. */
	if (mem && !vec_reserve(&p->pieces, &p->cap, p->n + 1, sizeof(*p->pieces)))
		p->pieces[p->n++] = (struct table_piece){ mem, size, *ret_loc };
	return mem;
}

struct pack_space table_pieces_space(struct table_pieces *p)
{
	return (struct pack_space){ pieces_alloc, p };
}

void table_pieces_free(struct table_pieces *p)
{
	free(p->pieces);
	*p = (struct table_pieces){ 0 };
}

static int by_loc(const void *a, const void *b)
{
	const struct table_piece *x = a, *y = b;

	return x->loc < y->loc ? -1 : x->loc > y->loc;
}

static const struct table_piece *piece_at(const struct table_pieces *p, uint32_t loc)
{
	const struct table_piece want = { .loc = loc };

	return p->n ? bsearch(&want, p->pieces, p->n, sizeof(want), by_loc) : NULL;
}

/* The entry to be written. */
struct plan {
	struct entry_head head;
	struct middle middle;
	const struct table_piece **pages; /* head.nbodies of them */
	uint32_t *dir;			  /* 0, or 1 + index into pages */
};

static void plan_free(struct plan *p)
{
	free(p->pages);
	free(p->dir);
	free(p->middle.mem);
}

/* Finds the pages that the directory names, each once. -EINVAL: a piece was not recorded. */
static int plan_pages(struct plan *p, const struct table_pieces *pieces, uint32_t dir_loc)
{
	const struct table_piece *dir = piece_at(pieces, dir_loc);
	/* 1 + the index of each piece in p->pages, or 0 */
	uint32_t *number = calloc(pieces->n ? pieces->n : 1, sizeof(*number));
	int err = !number ? -ENOMEM : dir ? 0 : -EINVAL;

	for (uint32_t i = 0; i < p->head.npages && !err; i++) {
		uint32_t loc = ((const uint32_t *)dir->mem)[i];
		const struct table_piece *page = loc ? piece_at(pieces, loc) : NULL;

		if (loc && !page)
			err = -EINVAL;
		if (!page)
			continue;
		if (!number[page - pieces->pieces]) {
			p->pages[p->head.nbodies++] = page;
			number[page - pieces->pieces] = p->head.nbodies;
		}
		p->dir[i] = number[page - pieces->pieces];
	}
	free(number);
	return err;
}

static int plan_middle(struct plan *p, const struct table_pieces *pieces,
		       const struct pack_result *packed)
{
	const struct table_piece *rules = p->head.nrules ? piece_at(pieces, packed->tables.rules)
							 : NULL;
	struct entry_head *h = &p->head;
	struct middle *m = &p->middle;
	int err = h->nrules && !rules ? -EINVAL : middle_alloc(m, h);

	if (err)
		return err;
	h->size = sizeof(*h) + m->len;
	memcpy(m->dir, p->dir, 4ul * h->npages);
	for (uint32_t i = 0; i < h->nbodies; i++) {
		m->sizes[i] = p->pages[i]->size;
		h->size += m->sizes[i];
	}
	if (h->nrules)
		memcpy(m->rules, rules->mem, h->nrules * sizeof(*m->rules));
	if (h->nranges)
		memcpy(m->ranges, packed->ranges, h->nranges * sizeof(*m->ranges));
	if (m->lang)
		*m->lang = packed->lang;
	return 0;
}

static int plan_make(struct plan *p, const struct pack_result *packed,
		     const struct table_pieces *pieces)
{
	int err;

	*p = (struct plan){ .head = { .magic = MAGIC,
				      .flags = packed->tables.flags,
				      .first_page = packed->tables.first_page,
				      .npages = packed->tables.npages,
				      .nrules = packed->tables.nrules,
				      .nranges = packed->nranges,
				      .rows = packed->rows,
				      .bytes = packed->bytes,
				      .lost_rows = packed->lost_rows } };
	p->pages = calloc(p->head.npages, sizeof(*p->pages));
	p->dir = calloc(p->head.npages, sizeof(*p->dir));
	err = p->pages && p->dir ? plan_pages(p, pieces, packed->tables.dir) : -ENOMEM;
	return err ? err : plan_middle(p, pieces, packed);
}

static int write_plan(const struct plan *p, int fd)
{
	int err = write_full(fd, &p->head, sizeof(p->head));

	if (!err)
		err = write_full(fd, p->middle.mem, p->middle.len);
	for (uint32_t i = 0; i < p->head.nbodies && !err; i++)
		err = write_full(fd, p->pages[i]->mem, p->pages[i]->size);
	return err ? -EIO : 0;
}

int table_entry_write(int fd, const struct pack_result *packed, struct table_pieces *pieces,
		      uint64_t *ret_bytes)
{
	struct plan plan;
	int err;

	if (packed->nranges > RANGES_MAX)
		return -E2BIG;
	if (pieces->n)
		qsort(pieces->pieces, pieces->n, sizeof(*pieces->pieces), by_loc);
	err = plan_make(&plan, packed, pieces);
	if (!err)
		err = write_plan(&plan, fd);
	*ret_bytes = plan.head.size;
	plan_free(&plan);
	return err;
}
