/* SPDX-License-Identifier: BSD-2-Clause */
#include "elf/go_lines.h"

#include <errno.h>

#define PCDATA_INLINED	 2
#define FUNCDATA_INLINED 3
#define CALL_BYTES	 16 /* bytes of an inlined call */
#define NONE		 UINT32_MAX

#define DATA_MAX (64u << 20) /* bytes of a section that is searched for the module */

/* Words of runtime.moduledata */
#define MODULE_NAMES  1
#define MODULE_TYPES  37
#define MODULE_GOFUNC 40 /* since Go 1.20; 1.26: see find_gofunc() */
#define MODULE_WORDS  52

/* ---- runtime.moduledata ---- */

struct moduledata {
	const struct elf_image *img;
	const struct go_table *table;
	uint64_t addr;	/* its virtual address; 0: not found */
	uint64_t begin; /* the last word that has the address of the table */
	uint64_t words[MODULE_WORDS];
};

static bool is_relative(const struct elf_image *img, const Elf64_Rela *r)
{
	return ELF64_R_TYPE(r->r_info) ==
	       (img->machine == EM_AARCH64 ? R_AARCH64_RELATIVE : R_X86_64_RELATIVE);
}

/*
 * Takes a relocation. Sets m->addr where two of them are the first words of moduledata: the
 * addresses of the table and of the names.
 */
static int search_rela(void *ctx, const Elf64_Rela *r)
{
	struct moduledata *m = ctx;
	uint64_t addend = (uint64_t)r->r_addend;

	if (!is_relative(m->img, r))
		return 0;
	if (addend == m->table->addr)
		m->begin = r->r_offset;
	else if (m->begin && r->r_offset == m->begin + 8 * MODULE_NAMES &&
		 addend == m->table->addr + m->table->names)
		m->addr = m->begin;
	return m->addr != 0;
}

static void search_section(struct moduledata *m, const char *name)
{
	const struct elf_shdr *s = elf_image_section(m->img, name);
	uint64_t names = m->table->addr + m->table->names;
	struct elf_blob blob = { 0 };

	if (!s || s->size > DATA_MAX || s->flags & SHF_COMPRESSED ||
	    elf_image_section_bytes(m->img, s, &blob))
		return;
	while (!m->addr && bytes_left(&blob.view) >= 16) {
		uint64_t at = s->addr + blob.view.pos;
		struct bytes next;

		if (bytes_u64(&blob.view) != m->table->addr)
			continue;
		next = blob.view;
		if (bytes_u64(&next) == names)
			m->addr = at;
	}
	elf_blob_free(&blob);
}

/*
 * Takes a relocation into m->words. Linkers other than Go's write 0 into such words of
 * position-independent programs.
 */
static int take_rela(void *ctx, const Elf64_Rela *r)
{
	struct moduledata *m = ctx;
	uint64_t i = (r->r_offset - m->addr) / 8;

	if (is_relative(m->img, r) && r->r_offset >= m->addr && i < MODULE_WORDS &&
	    r->r_offset % 8 == m->addr % 8)
		m->words[i] = (uint64_t)r->r_addend;
	return 0;
}

static bool read_words(struct moduledata *m)
{
	struct elf_blob blob = { 0 };
	uint64_t at;

	if (!elf_image_vaddr_to_offset(m->img, m->addr, &at) ||
	    elf_image_read(m->img, at, sizeof(m->words), &blob))
		return false;
	for (int i = 0; i < MODULE_WORDS; i++)
		m->words[i] = bytes_u64(&blob.view);
	elf_blob_free(&blob);
	if (!m->words[0])
		elf_image_each_rela(m->img, take_rela, m);
	return m->words[0] == m->table->addr;
}

/*
 * Finds gofunc: the word MODULE_GOFUNC, or, since Go 1.26, the word before the end of the table,
 * wherever that is. 0: not found.
 */
static uint64_t find_gofunc(const struct elf_image *img, const struct go_table *t)
{
	const struct elf_shdr *own = elf_image_section(img, ".go.module");
	struct moduledata m = { .img = img, .table = t, .addr = own ? own->addr : 0 };
	uint64_t end = t->addr + t->size;

	if (!own)
		search_section(&m, ".noptrdata");
	if (!m.addr)
		search_section(&m, ".data");
	if (!m.addr)
		elf_image_each_rela(img, search_rela, &m);
	if (!m.addr || !read_words(&m))
		return 0;
	for (int i = MODULE_TYPES; i + 1 < MODULE_WORDS; i++)
		if (m.words[i + 1] == end && m.words[i] >= t->addr && m.words[i] < end)
			return m.words[i];
	return m.words[MODULE_GOFUNC];
}

int go_lines_open(const struct elf_image *img, const struct go_table *table, struct go_lines *ret)
{
	*ret = (struct go_lines){ .img = img, .table = table };
	if (!table->start_line)
		return -ENOENT;
	ret->gofunc = find_gofunc(img, table);
	return 0;
}

/* ---- One address ---- */

struct function {
	const struct go_table *table;
	struct go_func f;
	uint32_t pcfile, pcln, unit, start_line;
	uint32_t inlined; /* offset of the pc values of inlined calls; 0: none */
	uint32_t calls;	  /* the inlined calls, from gofunc; NONE: none */
};

/* The last function that begins at or before the address; the first if there is none. */
static uint64_t function_index(const struct go_table *t, uint64_t addr)
{
	uint64_t low = 0, high = t->count;
	struct go_func f;

	while (high - low > 1) {
		uint64_t mid = low + (high - low) / 2;

		/* The start is right also if the record is damaged. */
		go_table_func(t, mid, &f);
		if (f.start <= addr)
			low = mid;
		else
			high = mid;
	}
	return low;
}

static bool read_function(const struct go_table *t, uint64_t addr, struct function *ret)
{
	uint64_t i = function_index(t, addr);
	struct bytes b, data;
	uint32_t npcdata;
	uint8_t nfuncdata;

	*ret = (struct function){ .table = t, .calls = NONE };
	if (!t->count || !go_table_func(t, i, &ret->f) || addr < ret->f.start || addr >= ret->f.end)
		return false;
	b = go_table_record(t, i);
	bytes_skip(&b, 4 * 4);
	ret->pcfile = bytes_u32(&b);
	ret->pcln = bytes_u32(&b);
	npcdata = bytes_u32(&b);
	ret->unit = bytes_u32(&b);
	ret->start_line = bytes_u32(&b);
	bytes_skip(&b, 3);
	nfuncdata = bytes_u8(&b);
	if (b.err)
		return false;
	data = b;
	if (npcdata > PCDATA_INLINED) {
		bytes_skip(&data, 4ul * PCDATA_INLINED);
		ret->inlined = bytes_u32(&data);
	}
	data = b;
	if (nfuncdata > FUNCDATA_INLINED) {
		bytes_skip(&data, 4ul * npcdata + 4ul * FUNCDATA_INLINED);
		ret->calls = data.err ? NONE : bytes_u32(&data);
	}
	return true;
}

/* The number at an address in a table of pc values; -1: none. */
static int32_t value_at(const struct function *fn, uint32_t offset, uint64_t addr)
{
	struct go_values v = go_values_at(fn->table, fn->f.start, offset);
	uint64_t start;

	while (go_values_next(fn->table, &v, &start))
		if (addr < v.pc)
			return v.value;
	return -1;
}

static uint32_t line_number(int32_t line)
{
	return line > 0 ? (uint32_t)line : 0;
}

static void find_line(const struct function *fn, uint64_t addr, struct go_frame *ret)
{
	const struct go_table *t = fn->table;
	int32_t file = value_at(fn, fn->pcfile, addr);
	struct bytes units = t->blob.view;
	uint32_t at;

	ret->line = line_number(value_at(fn, fn->pcln, addr));
	bytes_seek(&units, t->units + 4 * ((uint64_t)fn->unit + (uint32_t)file));
	at = bytes_u32(&units);
	ret->file = file < 0 || units.err || at == NONE ? NULL : go_table_string(t, t->files + at);
}

/*
 * Reads an inlined call: name and start line, and an address that has the line of the call. False:
 * it is not known.
 */
static bool read_call(const struct go_lines *g, const struct function *fn, int32_t index,
		      struct go_frame *ret, uint64_t *ret_addr)
{
	struct elf_blob blob = { 0 };
	uint64_t at;
	uint32_t name, back;
	bool known;

	if (!g->gofunc || fn->calls == NONE ||
	    !elf_image_vaddr_to_offset(
		    g->img, g->gofunc + fn->calls + (uint64_t)(uint32_t)index * CALL_BYTES, &at) ||
	    elf_image_read(g->img, at, CALL_BYTES, &blob))
		return false;
	bytes_skip(&blob.view, 4);
	name = bytes_u32(&blob.view);
	back = bytes_u32(&blob.view);
	ret->start_line = line_number(bytes_s32(&blob.view));
	elf_blob_free(&blob);
	ret->name = go_table_string(g->table, g->table->names + name);
	known = ret->name && *ret->name && back < fn->f.end - fn->f.start;
	*ret_addr = fn->f.start + back;
	return known;
}

size_t go_lines_at(const struct go_lines *g, uint64_t addr, struct go_frame ret[GO_FRAMES_MAX])
{
	struct function fn;
	size_t n = 0;
	int32_t call;

	if (!read_function(g->table, addr, &fn))
		return 0;
	while ((call = value_at(&fn, fn.inlined, addr)) >= 0) {
		uint64_t caller;

		/* A line without the function that it is in would be taken for the outer one's. */
		if (n + 1 == GO_FRAMES_MAX || !read_call(g, &fn, call, &ret[n], &caller))
			return 0;
		find_line(&fn, addr, &ret[n++]);
		addr = caller;
	}
	find_line(&fn, addr, &ret[n]);
	ret[n].name = go_table_name(g->table, &fn.f);
	ret[n].start_line = line_number((int32_t)fn.start_line);
	return n || ret[n].line ? n + 1 : 0;
}
