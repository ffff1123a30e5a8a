/* SPDX-License-Identifier: BSD-2-Clause */
#include "readers/code_rows.h"
#include "readers/code_starts.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "elf/elf_dynamic.h"

static int push(struct code_ranges *r, uint64_t start, uint64_t end)
{
	int err;

	if (start >= end)
		return 0;
	if (r->n && start <= r->v[r->n - 1].end) {
		if (end > r->v[r->n - 1].end)
			r->v[r->n - 1].end = end;
		return 0;
	}
	err = vec_reserve(&r->v, &r->cap, r->n + 1, sizeof(*r->v));
	if (!err)
		r->v[r->n++] = (struct code_range){ start, end };
	return err;
}

int code_described(const struct unwind_file *file, struct code_ranges *ret)
{
	/* Go's own table is preferred to the .debug_frame that its linker makes. */
	const bool eh = file->has_eh && !(file->has_go && file->debug_frame);
	const struct fntab none = { 0 }, *b = eh ? &file->eh.fns : &none,
			   *a = file->has_go	   ? &file->go.fns
				: file->has_sframe ? &file->sframe.fns
						   : &none;
	size_t i = 0, k = 0;
	int err = 0;

	while (!err && (i < a->n || k < b->n)) {
		const struct fn *fn = k == b->n || (i < a->n && a->fns[i].start <= b->fns[k].start)
					      ? &a->fns[i++]
					      : &b->fns[k++];

		err = push(ret, fn->start, fn->end);
	}
	return err;
}

#define SECTIONS_MAX 64

/* Sections of code; none in a file without sections, or with more than real files have. */
static size_t code_sections(const struct elf_image *img, const struct elf_shdr **ret)
{
	size_t n = 0;

	for (uint32_t i = 0; i < img->nshdrs; i++) {
		const struct elf_shdr *s = &img->shdrs[i];

		if (s->type != SHT_PROGBITS || !(s->flags & SHF_EXECINSTR) ||
		    s->size > UINT64_MAX - s->addr || !strcmp(s->name, ".init") ||
		    !strcmp(s->name, ".fini"))
			continue;
		if (n == SECTIONS_MAX)
			return 0;
		ret[n++] = s;
	}
	return n;
}

/*
 * Most bytes of the functions of GCC's crtbegin.o, and of the gap in front of what tells the first
 * of them
 */
#define STARTUP_MAX   192
#define STARTUP_FIRST 64
#define STARTUP_ALIGN 16

/*
 * GCC's deregister_tm_clones and its like, if the gap begins with them, or with a short cold part
 * and them; else nothing. They are in every x86-64 file, have no tables, and run once at start and
 * once at exit. Files with no other gap cost nothing. The last one, frame_dummy, is a jump to the
 * one before it.
 */
static struct code_range startup_of(const struct elf_image *img, uint64_t start, uint64_t end)
{
	static const uint8_t pie[] = { 0x48, 0x39, 0xf8, 0x74, 0x15, 0x48, 0x8b, 0x05 },
			     fixed[] = { 0x74, 0x13, 0xb8, 0, 0, 0, 0, 0x48, 0x85, 0xc0, 0x74 },
			     endbr[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	const uint64_t most = STARTUP_FIRST + STARTUP_MAX,
		       size = end - start < most ? end - start : most;
	struct code_range ret = { start, start };
	struct elf_blob code = { 0 };
	uint64_t offset, found;
	struct bytes b;

	if (img->machine != EM_X86_64 || (img->entry >= start && img->entry < start + size) ||
	    !elf_image_vaddr_to_offset(img, start, &offset) ||
	    elf_image_read(img, offset, size, &code))
		return ret;
	b = code.view;
	if ((bytes_find(&b, pie, sizeof(pie)) ||
	     (bytes_seek(&b, 0), bytes_find(&b, fixed, sizeof(fixed)))) &&
	    b.pos <= STARTUP_FIRST) {
		const uint64_t limit = b.pos + STARTUP_MAX;

		ret.start = (start + b.pos) & -(uint64_t)STARTUP_ALIGN;
		ret.start = ret.start > start ? ret.start : start;
		found = limit;
		while (bytes_find(&b, endbr, sizeof(endbr)) && b.pos < limit) {
			uint8_t jump;

			bytes_skip(&b, sizeof(endbr));
			jump = bytes_u8(&b);
			if (jump == 0xe9 || jump == 0xeb)
				found = b.pos + (jump == 0xe9 ? 4 : 1);
		}
		ret.end = start + (found < size ? found : size);
	}
	elf_blob_free(&code);
	return ret;
}

/* Adds the part of [start, end) that is code: some linkers put data into the same segment. */
static int push_code(const struct elf_image *img, const struct elf_shdr **sections, size_t n,
		     struct code_ranges *r, uint64_t start, uint64_t end)
{
	struct code_range startup;
	int err = 0;

	for (size_t i = 0; i < (n ? n : 1) && !err; i++) {
		uint64_t from = n ? sections[i]->addr : start,
			 to = n ? from + sections[i]->size : end;

		from = from > start ? from : start;
		to = to < end ? to : end;
		if (from >= to || to - from < CODE_PADDING || (r->n && from < r->v[r->n - 1].end))
			continue;
		startup = startup_of(img, from, to);
		if (startup.start - from >= CODE_PADDING)
			err = push(r, from, startup.start);
		if (!err && to - startup.end >= CODE_PADDING)
			err = push(r, startup.end, to);
	}
	return err;
}

int code_gaps(const struct unwind_file *file, const struct code_ranges *described,
	      struct code_ranges *ret)
{
	const struct elf_shdr *sections[SECTIONS_MAX];
	size_t nsections = code_sections(&file->img, sections), k = 0;
	struct elf_phdr segs[EXEC_SEGMENTS_MAX];
	size_t n = exec_segments(&file->img, segs, EXEC_SEGMENTS_MAX);
	int err = 0;

	for (size_t i = 0; i < n && !err; i++) {
		uint64_t at = segs[i].vaddr, end = at + segs[i].filesz;

		while (!err && at < end) {
			uint64_t stop = end, next = end;

			while (k < described->n && described->v[k].end <= at)
				k++;
			if (k < described->n && described->v[k].start < end) {
				stop = described->v[k].start;
				next = described->v[k].end;
			}
			if (stop > at && stop - at >= CODE_PADDING)
				err = push_code(&file->img, sections, nsections, ret, at, stop);
			at = next > at ? next : end;
		}
	}
	return err;
}

const struct code_range *code_range_from(const struct code_ranges *r, uint64_t addr)
{
	size_t lo = 0, hi = r->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (addr >= r->v[mid].end)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < r->n ? &r->v[lo] : NULL;
}

const struct code_range *code_range_of(const struct code_ranges *r, uint64_t addr)
{
	const struct code_range *found = code_range_from(r, addr);

	return found && addr >= found->start ? found : NULL;
}

/* GCC's name.cold and name.cold.12: the rest of a function, which is entered by jumps. */
static bool is_cold(struct bytes *names, uint32_t name)
{
	const char *s, *cold;

	names->err = false;
	bytes_seek(names, name);
	s = bytes_str(names);
	cold = s ? strstr(s, ".cold") : NULL;
	return cold && (!cold[5] || cold[5] == '.');
}

static int table(const struct elf_image *img, uint32_t type, struct fntab *ret)
{
	const struct elf_shdr *s = elf_image_section_of_type(img, type);
	struct elf_blob syms = { 0 }, names = { 0 };
	struct bytes str = { 0 };
	int err = 0;

	if (!s || elf_image_section_bytes(img, s, &syms))
		return 0;
	if (s->link < img->nshdrs && !elf_image_section_bytes(img, &img->shdrs[s->link], &names))
		str = names.view;
	while (!err && bytes_left(&syms.view) >= sizeof(Elf64_Sym)) {
		uint32_t name = bytes_u32(&syms.view);
		uint8_t type_of = ELF64_ST_TYPE(bytes_u8(&syms.view));
		uint16_t shndx;
		uint64_t value, size;

		bytes_skip(&syms.view, 1);
		shndx = bytes_u16(&syms.view);
		value = bytes_u64(&syms.view);
		size = bytes_u64(&syms.view);
		if ((type_of == STT_FUNC || type_of == STT_GNU_IFUNC) && shndx && size &&
		    size <= UINT64_MAX - value && !is_cold(&str, name))
			err = fntab_push(ret, value, value + size, 0);
	}
	elf_blob_free(&syms);
	elf_blob_free(&names);
	return err;
}

int code_symbols(const struct elf_image *img, struct fntab *ret)
{
	int err = table(img, SHT_DYNSYM, ret);

	if (!err)
		err = table(img, SHT_SYMTAB, ret);
	return err ? err : fntab_arrange(ret, img);
}

/*
 * Whether processes start at the file's entry. Old linkers set that of libraries to the start of
 * their code. Libraries that can be run, such as libcap, have a name, and their tables describe the
 * entry like any function.
 */
static bool is_program(const struct elf_image *img)
{
	struct elf_dynamic dyn;

	elf_dynamic_read(img, &dyn);
	return img->type == ET_EXEC || dyn.pie || (!dyn.named && elf_image_segment(img, PT_INTERP));
}

bool code_entry(const struct elf_image *img, uint64_t *ret)
{
	*ret = img->entry;
	return img->entry && is_program(img);
}

int code_has_symbol(const struct unwind_file *file, uint64_t addr)
{
	struct fntab symbols = { 0 };
	int err = code_symbols(&file->img, &symbols);

	if (!err)
		err = fntab_find(&symbols, addr) != NULL;
	fntab_free(&symbols);
	return err;
}

int code_undescribed(const struct unwind_file *file, struct fntab *ret)
{
	struct code_ranges described = { 0 }, gaps = { 0 };
	struct fntab symbols = { 0 };
	size_t k = 0;
	int err = code_described(file, &described);

	if (!err)
		err = code_gaps(file, &described, &gaps);
	if (!err)
		err = code_symbols(&file->img, &symbols);
	for (size_t i = 0; i < gaps.n && !err; i++) {
		uint64_t at = gaps.v[i].start;

		while (k < symbols.n && symbols.fns[k].start < at)
			k++;
		for (; k < symbols.n && symbols.fns[k].start < gaps.v[i].end && !err; k++) {
			const struct fn *fn = &symbols.fns[k];

			if (fn->start - at >= CODE_PADDING)
				err = fntab_push(ret, at, fn->start, 0);
			if (!err)
				err = fntab_push(ret, fn->start, fn->end, 0);
			at = fn->end;
		}
		if (!err && at < gaps.v[i].end && gaps.v[i].end - at >= CODE_PADDING)
			err = fntab_push(ret, at, gaps.v[i].end, 0);
	}
	free(described.v);
	free(gaps.v);
	fntab_free(&symbols);
	return err;
}
