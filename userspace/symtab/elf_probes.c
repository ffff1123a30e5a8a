/* SPDX-License-Identifier: BSD-2-Clause */
#include "symtab/elf_probes.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/full_io.h"
#include "base/text.h"
#include "base/vec.h"
#include "elf/elf_symbol.h"
#include "elf/go_table.h"
#include "symtab/elf_exits.h"
#include "symtab/packed_symbols.h"
#include "symtab/sym_names.h"

#define NAME_MOST 4096 /* bytes of a symbol's name that are read */
#define WORD_MOST 256  /* bytes of the pattern's literal part that are looked for */
#define NOTE_USDT 3
#define USDT_NOTE "stapsdt"

struct search {
	const struct elf_image *img; /* the file that has the code */
	struct elf_probes *to;
	size_t cap, text_cap;
	const char *pattern;
	bool wild;
	/* The longest run of letters and digits in the pattern: each name that matches has it. */
	char word[WORD_MOST];
	enum elf_probes_of what;
	struct elf_exits exits; /* ELF_PROBES_CALLS */
	struct text_near near;
	char nearest[NAME_MOST];
	int err;
};

static bool is_word(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       c == '_';
}

static void find_word(struct search *s)
{
	size_t best = 0;

	for (const char *p = s->pattern; *p;) {
		size_t n = 0;

		while (is_word(p[n]))
			n++;
		if (n > best && n < sizeof(s->word) && !(p > s->pattern && p[-1] == '[')) {
			best = n;
			memcpy(s->word, p, n);
			s->word[n] = 0;
		}
		p += n ? n : 1;
	}
}

static bool matches(const struct search *s, const char *name)
{
	return !strcmp(name, s->pattern) || (s->wild && !fnmatch(s->pattern, name, 0));
}

static void try_near(struct search *s, const char *name)
{
	const char *before = s->near.best;

	text_near_try(&s->near, name);
	if (s->near.best != before) {
		snprintf(s->nearest, sizeof(s->nearest), "%s", name);
		s->near.best = s->nearest;
	}
}

static uint32_t put_text(struct search *s, const char *text)
{
	size_t len = strlen(text) + 1, at = s->to->text_len;

	if (at + len > ELF_PROBES_TEXT)
		s->err = -E2BIG;
	else if (vec_reserve(&s->to->text, &s->text_cap, at + len, 1))
		s->err = -ENOMEM;
	if (s->err)
		return 0;
	memcpy(s->to->text + at, text, len);
	s->to->text_len += (uint32_t)len;
	return (uint32_t)at;
}

static void add_place(struct search *s, const struct elf_probe *p)
{
	if (s->to->n >= ELF_PROBES_MOST)
		s->err = -E2BIG;
	else if (vec_reserve(&s->to->v, &s->cap, s->to->n + 1u, sizeof(*s->to->v)))
		s->err = -ENOMEM;
	if (!s->err)
		s->to->v[s->to->n++] = *p;
}

static void add(struct search *s, const char *name, const char *args, uint64_t vaddr,
		uint64_t semaphore)
{
	struct elf_probe p = { .kind = PROBE_ENTRY };

	if (!elf_image_vaddr_to_offset(s->img, vaddr, &p.off) ||
	    (semaphore && !elf_image_vaddr_to_offset(s->img, semaphore, &p.semaphore)))
		return;
	p.name = put_text(s, name);
	p.args = *args ? put_text(s, args) : 0;
	if (!s->err)
		add_place(s, &p);
}

/* ---- Functions ---- */

static void found(struct search *s, const char *name, uint64_t vaddr, uint64_t size, bool part)
{
	if (!part)
		add(s, name, "", vaddr, 0);
	if (s->what == ELF_PROBES_CALLS && !s->err)
		s->err = elf_exits_part(&s->exits, vaddr, size, !part);
}

/*
 * Compilers move code that seldom runs out of a function: it has the function's name with ".cold".
 * Cuts that off. Whether it was there.
 */
static bool cut_cold(char *raw)
{
	char *dot = strstr(raw, ".cold");

	if (!dot || dot == raw || (dot[5] && dot[5] != '.'))
		return false;
	*dot = 0;
	return true;
}

static void try_function(struct search *s, char *raw, uint64_t vaddr, uint64_t size)
{
	bool part = s->what == ELF_PROBES_CALLS && cut_cold(raw);
	char shown[SYM_NAME_MAX];

	if (matches(s, raw)) {
		found(s, raw, vaddr, size, part);
		return;
	}
	if (*s->word && !strstr(raw, s->word)) {
		try_near(s, raw);
		return;
	}
	if (!sym_is_mangled(raw) || !sym_demangle(raw, shown, sizeof(shown))) {
		try_near(s, raw);
		return;
	}
	if (matches(s, shown))
		found(s, shown, vaddr, size, part);
	else
		try_near(s, shown);
}

/* Whether the symbol is a language's function that finds the handler of an exception. */
static bool handles_exceptions(const char *raw)
{
	static const char *const names[] = { "__gxx_personality_v0", "rust_eh_personality",
					     "__gnat_personality_v0", "__gdc_personality_v0" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strncmp(raw, names[i], strlen(names[i])))
			return true;
	return false;
}

/* The code of an indirect function only chooses the function, so it is not the function. */
static void each_function(struct search *s, const struct elf_image *syms, uint32_t type)
{
	const struct elf_shdr *sec = elf_image_section_of_type(syms, type);
	struct elf_blob table = { 0 }, strings = { 0 };
	struct elf_symbol sym;
	char raw[NAME_MOST];

	if (!sec || sec->link >= syms->nshdrs || elf_image_section_bytes(syms, sec, &table) ||
	    elf_image_section_bytes(syms, &syms->shdrs[sec->link], &strings)) {
		elf_blob_free(&table);
		return;
	}
	while (!s->err && elf_symbol_next(&table.view, &sym)) {
		const char *name = elf_symbol_name(strings.view, sym.name, sizeof(raw));
		uint8_t kind = ELF64_ST_TYPE(sym.info);

		if (!name)
			continue;
		memcpy(raw, name, strlen(name) + 1);
		if (s->what == ELF_PROBES_CALLS)
			s->to->throws |= handles_exceptions(raw);
		if ((kind == STT_FUNC || kind == STT_NOTYPE) && sym.section != SHN_UNDEF &&
		    sym.section < SHN_LORESERVE)
			try_function(s, raw, sym.addr, sym.size);
	}
	elf_blob_free(&table);
	elf_blob_free(&strings);
}

static void functions(struct search *s)
{
	struct packed_symbols packed = { .mem = NULL };

	each_function(s, s->img, SHT_SYMTAB);
	each_function(s, s->img, SHT_DYNSYM);
	if (elf_image_section_of_type(s->img, SHT_SYMTAB) || packed_symbols_open(s->img, &packed))
		return;
	each_function(s, &packed.img, SHT_SYMTAB);
	packed_symbols_close(&packed);
}

/* ---- USDT ---- */

/* Takes a string with its NUL; "": there is none. */
static const char *take_string(struct bytes *b)
{
	size_t len = strnlen((const char *)b->base + b->pos, bytes_left(b));
	const uint8_t *at = len < bytes_left(b) ? bytes_take(b, len + 1) : NULL;

	return at ? (const char *)at : "";
}

/* Notes have addresses of before prelinking; .stapsdt.base has moved as far as the code. */
static void try_usdt(struct search *s, struct bytes desc)
{
	const struct elf_shdr *base = elf_image_section(s->img, ".stapsdt.base");
	uint64_t pc = bytes_u64(&desc), was = bytes_u64(&desc), semaphore = bytes_u64(&desc);
	uint64_t moved = base && was ? base->addr - was : 0;
	const char *provider = take_string(&desc), *name = take_string(&desc),
		   *args = take_string(&desc);
	char full[NAME_MOST];

	if (desc.err || !*provider || !*name ||
	    snprintf(full, sizeof(full), "%s:%s", provider, name) >= (int)sizeof(full))
		return;
	if (matches(s, full))
		add(s, full, args, pc + moved, semaphore ? semaphore + moved : 0);
	else
		try_near(s, full);
}

static void usdts(struct search *s)
{
	struct elf_blob notes = { 0 };

	if (elf_image_section_bytes(s->img, elf_image_section(s->img, ".note.stapsdt"), &notes))
		return;
	while (!s->err && bytes_left(&notes.view) >= sizeof(Elf64_Nhdr)) {
		uint32_t name_len = bytes_u32(&notes.view), len = bytes_u32(&notes.view),
			 type = bytes_u32(&notes.view);
		const uint8_t *name = bytes_take(&notes.view, (name_len + 3ull) & ~3ull);
		const uint8_t *desc = bytes_take(&notes.view, (len + 3ull) & ~3ull);

		if (name && desc && type == NOTE_USDT && name_len == sizeof(USDT_NOTE) &&
		    !memcmp(name, USDT_NOTE, sizeof(USDT_NOTE)))
			try_usdt(s, bytes_of(desc, len, notes.view.be));
	}
	elf_blob_free(&notes);
}

/* ---- All ---- */

static int by_offset(const void *a, const void *b)
{
	const struct elf_probe *x = a, *y = b;

	if (x->off != y->off)
		return x->off < y->off ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return x->name < y->name ? -1 : x->name > y->name;
}

/* A function that has several names, or stands in both tables, is one place. */
static void drop_doubles(struct elf_probes *p)
{
	uint32_t kept = 0;

	qsort(p->v, p->n, sizeof(*p->v), by_offset);
	for (uint32_t i = 0; i < p->n; i++)
		if (!kept || p->v[i].off != p->v[kept - 1].off ||
		    p->v[i].kind != p->v[kept - 1].kind)
			p->v[kept++] = p->v[i];
	p->n = kept;
}

static void add_exit(void *ctx, uint64_t vaddr)
{
	struct search *s = ctx;
	struct elf_probe p = { .name = s->to->v[0].name, .kind = PROBE_EXIT };

	if (!s->err && elf_image_vaddr_to_offset(s->img, vaddr, &p.off))
		add_place(s, &p);
}

/* Moves the entries to where each call comes by once. */
static void move_entries(struct search *s)
{
	for (size_t i = 0; i < s->exits.n; i++) {
		const struct elf_exits_part *p = &s->exits.v[i];
		uint64_t from, to;

		if (p->once == p->start || !elf_image_vaddr_to_offset(s->img, p->start, &from) ||
		    !elf_image_vaddr_to_offset(s->img, p->once, &to))
			continue;
		for (uint32_t k = 0; k < s->to->n; k++)
			if (s->to->v[k].kind == PROBE_ENTRY && s->to->v[k].off == from)
				s->to->v[k].off = to;
	}
}

int elf_probes_read(const struct elf_image *img, enum elf_probes_of what, const char *pattern,
		    struct elf_probes *ret)
{
	struct search *s = calloc(1, sizeof(*s));
	int err;

	*ret = (struct elf_probes){ .go = go_table_section(img) != NULL };
	if (!s)
		return -ENOMEM;
	s->img = img;
	s->to = ret;
	s->what = what;
	s->pattern = pattern;
	s->wild = strpbrk(pattern, "*?[") != NULL;
	s->near = (struct text_near){ .word = pattern, .len = strlen(pattern) };
	find_word(s);
	put_text(s, "");
	if (what == ELF_PROBES_USDT)
		usdts(s);
	else
		functions(s);
	if (!s->err && ret->n && what == ELF_PROBES_CALLS)
		s->err = elf_exits_find(&s->exits, img, ret->go, add_exit, s, &ret->exits_known);
	move_entries(s);
	if (!s->err && !ret->n) {
		ret->text_len = 0;
		put_text(s, s->nearest);
	}
	if (!s->err && ret->n)
		drop_doubles(ret);
	err = s->err;
	elf_exits_free(&s->exits);
	free(s);
	if (err)
		elf_probes_free(ret);
	return err;
}

uint32_t elf_probes_flags(const struct elf_probes *p)
{
	return (uint32_t)p->go | (uint32_t)p->exits_known << 1 | (uint32_t)p->throws << 2;
}

void elf_probes_set_flags(struct elf_probes *p, uint32_t flags)
{
	p->go = flags & 1;
	p->exits_known = flags & 2;
	p->throws = flags & 4;
}

int elf_probes_write(const struct elf_probes *p, int fd)
{
	int err = p->n ? write_full(fd, p->v, p->n * sizeof(*p->v)) : 0;

	return err ? err : write_full(fd, p->text, p->text_len);
}

int elf_probes_take(int fd, uint32_t n, uint32_t text_len, struct elf_probes *ret)
{
	bool sound = n <= ELF_PROBES_MOST && text_len && text_len <= ELF_PROBES_TEXT;

	*ret = (struct elf_probes){ .n = n, .text_len = text_len };
	if (!sound)
		return -EBADMSG;
	ret->v = malloc((n + 1) * sizeof(*ret->v));
	ret->text = malloc(text_len);
	if (!ret->v || !ret->text) {
		elf_probes_free(ret);
		return -ENOMEM;
	}
	sound = !pread_full(fd, ret->v, n * sizeof(*ret->v), 0) &&
		!pread_full(fd, ret->text, text_len, n * sizeof(*ret->v)) &&
		!ret->text[text_len - 1];
	for (uint32_t i = 0; i < n && sound; i++)
		sound = ret->v[i].name < text_len && ret->v[i].args < text_len;
	if (!sound)
		elf_probes_free(ret);
	return sound ? 0 : -EBADMSG;
}

void elf_probes_free(struct elf_probes *p)
{
	free(p->v);
	free(p->text);
	*p = (struct elf_probes){ .v = NULL };
}
