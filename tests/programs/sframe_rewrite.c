/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sframe_rewrite VERSION IN OUT: copies an x86-64 or AArch64 program with the rows of its .sframe
 * (of any version: Debian 12's assembler makes 1, Debian 13's 2, later ones 3) in the encoding of
 *   1     version 1; functions that it cannot describe, with rows of version 3, have none
 *   2old  version 2 of binutils 2.41-2.44: starts count from the section, no flag says so
 *   2     version 2 with the PCREL flag (2.45)
 *   3     version 3 (2.46); the function at the entry point becomes the outermost frame (a row
 *         without words)
 * The bigger table goes to the end of the file. Its segment takes the place of PT_NOTE, so that it
 * is mapped; a file without that header keeps the table reachable by its section and PT_GNU_SFRAME
 * only.
 * sframe_rewrite version IN: prints the version of its .sframe.
 */
#include <elf.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define SFRAME_MAGIC	0xdee2
#define SFRAME_HEADER	28
#define V1_FDE		17
#define V2_FDE		20
#define V3_FDE		16
#define V3_ATTR		5
#define FLAG_SORTED	1
#define FLAG_PCREL	4
#define PT_GNU_SFRAME_	0x6474e554
#define SHT_GNU_SFRAME_ 0x6ffffff4
#define PAGE		65536 /* AArch64 kernels may have pages as large */

struct function {
	uint64_t start;
	uint32_t size, nrows;
	uint8_t info, info2; /* info2: of version 3 */
	const uint8_t *rows;
	size_t rows_len;
};

struct program {
	uint8_t *data;
	size_t len;
	Elf64_Ehdr *eh;
	Elf64_Phdr *ph;
	Elf64_Shdr *sframe;
	int8_t fixed_ra;
	uint8_t abi;
	struct function *fns;
	uint32_t nfns;
};

struct out {
	uint8_t *data;
	size_t len, cap;
};

enum format { V1, V2_OLD, V2_PCREL, V3 };

static __attribute__((noreturn)) void die(const char *fmt, ...)
{
	va_list ap;

	fputs("sframe_rewrite: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

static uint64_t get(const uint8_t *p, unsigned int n)
{
	uint64_t v = 0;

	while (n-- > 0)
		v = v << 8 | p[n];
	return v;
}

static void put(struct out *o, uint64_t v, unsigned int n)
{
	if (o->len + n > o->cap) {
		o->cap = (o->cap + n) * 2;
		o->data = realloc(o->data, o->cap);
		if (!o->data)
			die("out of memory");
	}
	for (; n-- > 0; v >>= 8)
		o->data[o->len++] = (uint8_t)v;
}

static void put_bytes(struct out *o, const uint8_t *p, size_t n)
{
	while (n-- > 0)
		put(o, *p++, 1);
}

static void read_file(const char *path, struct program *p)
{
	FILE *f = fopen(path, "rb");
	long n;

	if (!f || fseek(f, 0, SEEK_END) || (n = ftell(f)) <= 0 || fseek(f, 0, SEEK_SET))
		die("%s: cannot be read", path);
	p->len = (size_t)n;
	p->data = malloc(p->len);
	if (!p->data || fread(p->data, 1, p->len, f) != p->len)
		die("%s: cannot be read", path);
	fclose(f);
}

static void find_sections(struct program *p)
{
	Elf64_Shdr *sh;
	const char *names;
	int i;

	p->eh = (Elf64_Ehdr *)p->data;
	if (p->len < sizeof(*p->eh) || memcmp(p->eh->e_ident, ELFMAG, SELFMAG) ||
	    (p->eh->e_machine != EM_X86_64 && p->eh->e_machine != EM_AARCH64))
		die("neither an x86-64 nor an AArch64 ELF file");
	p->ph = (Elf64_Phdr *)(p->data + p->eh->e_phoff);
	sh = (Elf64_Shdr *)(p->data + p->eh->e_shoff);
	names = (const char *)p->data + sh[p->eh->e_shstrndx].sh_offset;
	for (i = 0; i < p->eh->e_shnum; i++)
		if (!strcmp(names + sh[i].sh_name, ".sframe"))
			p->sframe = &sh[i];
	if (!p->sframe)
		die("no .sframe section");
}

/* Bytes of a function's rows. */
static size_t rows_length(const uint8_t *rows, const uint8_t *end, uint8_t info, uint32_t nrows)
{
	unsigned int start_len = 1u << (info & 15), words, word_len;
	const uint8_t *p = rows;

	while (nrows-- > 0) {
		if (p + start_len + 1 > end)
			die("a row lies outside the section");
		words = p[start_len] >> 1 & 15;
		word_len = 1u << (p[start_len] >> 5 & 3);
		p += start_len + 1 + words * word_len;
	}
	if (p > end)
		die("a row lies outside the section");
	return (size_t)(p - rows);
}

static int by_start(const void *a, const void *b)
{
	const struct function *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

/* The function whose descriptor is at `at`; with the rows of the sub-section at `fres`. */
static void read_function(struct program *p, struct function *f, const uint8_t *at,
			  const uint8_t *fres)
{
	const uint8_t *sec = p->data + p->sframe->sh_offset, *end = sec + p->sframe->sh_size;
	uint64_t base = p->sframe->sh_addr + (sec[3] & FLAG_PCREL ? (uint64_t)(at - sec) : 0);

	if (sec[2] == 3) {
		f->start = base + get(at, 8);
		f->size = (uint32_t)get(at + 8, 4);
		f->rows = fres + get(at + 12, 4);
		if (f->rows + V3_ATTR > end)
			die("a function's rows lie outside the section");
		f->nrows = (uint32_t)get(f->rows, 2);
		f->info = f->rows[2];
		f->info2 = f->rows[3];
		f->rows += V3_ATTR;
	} else {
		f->start = base + (uint64_t)(int64_t)(int32_t)get(at, 4);
		f->size = (uint32_t)get(at + 4, 4);
		f->rows = fres + get(at + 8, 4);
		f->nrows = (uint32_t)get(at + 12, 4);
		f->info = at[16];
	}
	f->rows_len = rows_length(f->rows, end, f->info, f->nrows);
}

static const uint8_t *header(const struct program *p)
{
	const uint8_t *sec = p->data + p->sframe->sh_offset;

	if (p->sframe->sh_size < SFRAME_HEADER || get(sec, 2) != SFRAME_MAGIC || sec[2] < 1 ||
	    sec[2] > 3)
		die(".sframe is of no version from 1 to 3");
	return sec;
}

static void read_table(struct program *p)
{
	static const unsigned int sizes[] = { 0, V1_FDE, V2_FDE, V3_FDE };
	const uint8_t *sec = header(p), *fde, *fres;
	uint32_t i;

	if (!(sec[3] & FLAG_SORTED))
		die(".sframe was not sorted by the linker");
	p->abi = sec[4];
	p->fixed_ra = (int8_t)sec[6];
	p->nfns = (uint32_t)get(sec + 8, 4);
	fde = sec + SFRAME_HEADER + sec[7] + get(sec + 20, 4);
	fres = sec + SFRAME_HEADER + sec[7] + get(sec + 24, 4);
	if (fde + (uint64_t)p->nfns * sizes[sec[2]] > sec + p->sframe->sh_size)
		die("the functions lie outside the section");
	p->fns = calloc(p->nfns + 1, sizeof(*p->fns));
	if (!p->fns)
		die("out of memory");
	for (i = 0; i < p->nfns; i++)
		read_function(p, &p->fns[i], fde + i * sizes[sec[2]], fres);
	qsort(p->fns, p->nfns, sizeof(*p->fns), by_start);
}

/* Versions before 3 have neither rows without words nor functions whose rows name registers. */
static void drop_version_3(struct program *p)
{
	uint32_t i, n = 0;

	for (i = 0; i < p->nfns; i++) {
		struct function *f = &p->fns[i];
		const uint8_t *info = f->rows + (1u << (f->info & 15));

		if (f->info2 || (f->nrows && !(*info >> 1 & 15)))
			continue;
		f->info &= 0x3f;
		p->fns[n++] = *f;
	}
	p->nfns = n;
}

/* In version 3 the entry point's function has no caller: one row, at 0, without words. */
static void mark_outermost(struct program *p)
{
	static const uint8_t row[2] = { 0, 0 };
	uint32_t i;

	for (i = 0; i < p->nfns; i++) {
		struct function *f = &p->fns[i];

		if (p->eh->e_entry < f->start || p->eh->e_entry >= f->start + f->size)
			continue;
		f->info = f->info2 = 0;
		f->nrows = 1;
		f->rows = row;
		f->rows_len = sizeof(row);
	}
}

static void write_fdes(struct out *o, const struct program *p, enum format format, uint64_t addr)
{
	uint32_t i, fre_off = 0;

	for (i = 0; i < p->nfns; i++) {
		const struct function *f = &p->fns[i];

		if (format == V3) {
			put(o, f->start - (addr + o->len), 8);
			put(o, f->size, 4);
			put(o, fre_off, 4);
			fre_off += (uint32_t)f->rows_len + V3_ATTR;
			continue;
		}
		put(o, f->start - (format == V2_PCREL ? addr + o->len : addr), 4);
		put(o, f->size, 4);
		put(o, fre_off, 4);
		put(o, f->nrows, 4);
		put(o, f->info, 1);
		if (format != V1) {
			put(o, f->info & 16 ? 16 : 0, 1);
			put(o, 0, 2);
		}
		fre_off += (uint32_t)f->rows_len;
	}
}

static void write_table(struct out *o, const struct program *p, enum format format, uint64_t addr)
{
	static const unsigned int versions[] = { 1, 2, 2, 3 };
	static const unsigned int sizes[] = { V1_FDE, V2_FDE, V2_FDE, V3_FDE };
	uint64_t rows = 0, bytes = 0;
	uint32_t i;

	for (i = 0; i < p->nfns; i++) {
		rows += p->fns[i].nrows;
		bytes += p->fns[i].rows_len + (format == V3 ? V3_ATTR : 0);
	}
	put(o, SFRAME_MAGIC, 2);
	put(o, versions[format], 1);
	put(o, format < V2_PCREL ? FLAG_SORTED : FLAG_SORTED | FLAG_PCREL, 1);
	put(o, p->abi, 1);
	put(o, 0, 1);
	put(o, (uint8_t)p->fixed_ra, 1);
	put(o, 0, 1);
	put(o, p->nfns, 4);
	put(o, rows, 4);
	put(o, bytes, 4);
	put(o, 0, 4);
	put(o, (uint64_t)p->nfns * sizes[format], 4);
	write_fdes(o, p, format, addr);
	for (i = 0; i < p->nfns; i++) {
		const struct function *f = &p->fns[i];

		if (format == V3) {
			put(o, f->nrows, 2);
			put(o, f->info, 1);
			put(o, f->info2, 1);
			put(o, f->info & 16 ? 16 : 0, 1);
		}
		put_bytes(o, f->rows, f->rows_len);
	}
}

/* A free page-aligned address above all segments. */
static uint64_t free_address(const struct program *p)
{
	uint64_t end = 0;
	int i;

	for (i = 0; i < p->eh->e_phnum; i++)
		if (p->ph[i].p_type == PT_LOAD && p->ph[i].p_vaddr + p->ph[i].p_memsz > end)
			end = p->ph[i].p_vaddr + p->ph[i].p_memsz;
	return (end + PAGE - 1) / PAGE * PAGE;
}

static void move_headers(struct program *p, enum format format, uint64_t offset, uint64_t addr,
			 uint64_t size)
{
	int i, note = -1, last = -1;
	Elf64_Phdr load = { 0 };

	p->sframe->sh_offset = offset;
	p->sframe->sh_addr = addr;
	p->sframe->sh_size = size;
	p->sframe->sh_type = format < V2_PCREL ? SHT_PROGBITS : SHT_GNU_SFRAME_;
	for (i = 0; i < p->eh->e_phnum; i++) {
		Elf64_Phdr *ph = &p->ph[i];

		if (ph->p_type == PT_GNU_SFRAME_) {
			ph->p_offset = offset;
			ph->p_vaddr = ph->p_paddr = addr;
			ph->p_filesz = ph->p_memsz = size;
		}
		if (ph->p_type == PT_NOTE)
			note = i;
		if (ph->p_type == PT_LOAD)
			last = i;
	}
	if (note < last)
		return;
	load.p_type = PT_LOAD;
	load.p_flags = PF_R;
	load.p_offset = offset;
	load.p_vaddr = load.p_paddr = addr;
	load.p_filesz = load.p_memsz = size;
	load.p_align = PAGE;
	memmove(&p->ph[last + 2], &p->ph[last + 1], (size_t)(note - last - 1) * sizeof(*p->ph));
	p->ph[last + 1] = load;
}

static void write_file(const char *path, const struct program *p, const struct out *table,
		       size_t offset)
{
	FILE *f = fopen(path, "wb");
	size_t pad;

	if (!f || fwrite(p->data, 1, p->len, f) != p->len)
		die("%s: cannot be written", path);
	for (pad = p->len; pad < offset; pad++)
		fputc(0, f);
	if (fwrite(table->data, 1, table->len, f) != table->len || fclose(f) || chmod(path, 0755))
		die("%s: cannot be written", path);
}

int main(int argc, char **argv)
{
	struct program p = { 0 };
	struct out table = { 0 };
	enum format format;
	uint64_t addr, offset;

	if (argc == 3 && !strcmp(argv[1], "version")) {
		read_file(argv[2], &p);
		find_sections(&p);
		printf("%u\n", header(&p)[2]);
		free(p.data);
		return 0;
	}
	if (argc != 4)
		die("usage: sframe_rewrite 1|2old|2|3 IN OUT | version IN");
	if (!strcmp(argv[1], "1"))
		format = V1;
	else if (!strcmp(argv[1], "2old"))
		format = V2_OLD;
	else if (!strcmp(argv[1], "2"))
		format = V2_PCREL;
	else if (!strcmp(argv[1], "3"))
		format = V3;
	else
		die("unknown version %s", argv[1]);
	read_file(argv[2], &p);
	find_sections(&p);
	read_table(&p);
	if (format == V3)
		mark_outermost(&p);
	else
		drop_version_3(&p);
	addr = free_address(&p);
	offset = (p.len + PAGE - 1) / PAGE * PAGE;
	write_table(&table, &p, format, addr);
	move_headers(&p, format, offset, addr, table.len);
	write_file(argv[3], &p, &table, offset);
	free(table.data);
	free(p.fns);
	free(p.data);
	return 0;
}
