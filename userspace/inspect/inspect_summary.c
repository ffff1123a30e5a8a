/* SPDX-License-Identifier: BSD-2-Clause */
/* inspect's default output and --json. Facts are gathered once, then written in either form. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "base/vec.h"
#include "inspect/inspect.h"
#include "readers/code_rows.h"
#include "rows/fntab.h"
#include "symtab/elf_symtab.h"
#include "tables/pack.h"

struct span { /* code, virtual addresses, half-open */
	uint64_t start, end;
};

struct coverage {
	struct span *spans; /* ascending, disjoint */
	size_t n, cap;
	uint64_t rows, unknown; /* unknown: rows whose CFA or RA cannot be expressed */
	uint64_t bytes;
};

#define LARGEST 8

/* A function that no table describes; of which `rows` bytes have rows from machine code. */
struct undescribed {
	uint64_t start, size, rows;
	char name[256];
};

struct cost {
	uint64_t rows, rules, pages, bytes, lost_rows;
	bool none; /* the file has no rows to make tables from */
};

struct facts {
	const struct inspected *in;
	uint64_t exec_bytes, both_bytes;
	struct coverage src[2]; /* index: enum row_source */
	/* The code that no table describes */
	uint64_t code_rows, code_bytes;
	struct undescribed largest[LARGEST];
	size_t nlargest;
	struct cost cost;
	uint8_t build_id[64];
	size_t build_id_len;
};

/* ---- Gathering ---- */

static int cover(struct coverage *c, uint64_t start, uint64_t end)
{
	struct span *last = c->n ? &c->spans[c->n - 1] : NULL;

	if (last && start <= last->end) {
		if (end > last->end) {
			c->bytes += end - last->end;
			last->end = end;
		}
		return 0;
	}
	if (vec_reserve(&c->spans, &c->cap, c->n + 1, sizeof(*c->spans)))
		return -ENOMEM;
	c->spans[c->n++] = (struct span){ start, end };
	c->bytes += end - start;
	return 0;
}

static int gather_source(struct inspected *in, unsigned int which, struct coverage *c)
{
	struct row_stream stream;
	struct row row;
	int err;

	row_stream_open(&stream, &in->file, which, &in->diag);
	while ((err = row_stream_next(&stream, &row)) > 0) {
		c->rows++;
		c->unknown += row.ra.kind != RULE_UNDEF &&
			      (row.cfa.kind == RULE_NONE || row.ra.kind == RULE_NONE);
		err = cover(c, row.start, row.end);
		if (err)
			break;
	}
	row_stream_close(&stream);
	return err;
}

static uint64_t common_bytes(const struct coverage *a, const struct coverage *b)
{
	uint64_t sum = 0;

	for (size_t i = 0, j = 0; i < a->n && j < b->n;) {
		uint64_t lo = a->spans[i].start > b->spans[j].start ? a->spans[i].start
								    : b->spans[j].start;
		uint64_t hi = a->spans[i].end < b->spans[j].end ? a->spans[i].end : b->spans[j].end;

		sum += lo < hi ? hi - lo : 0;
		if (a->spans[i].end < b->spans[j].end)
			i++;
		else
			j++;
	}
	return sum;
}

/* Space for pack_file when only the size matters: every piece goes to the same place. */
struct scratch {
	uint8_t *mem;
	uint64_t bytes;
	uint32_t pieces;
};

static void *scratch_alloc(void *ctx, uint32_t size, uint32_t *ret_loc)
{
	struct scratch *s = ctx;

	if (size > SF_CHUNK - 16)
		return NULL;
	s->bytes += (size + 15) & ~15u;
	*ret_loc = ++s->pieces;
	return s->mem;
}

static int gather_cost(struct inspected *in, struct cost *c)
{
	struct scratch scratch = { .mem = malloc(SF_CHUNK) };
	struct pack_space space = { scratch_alloc, &scratch };
	struct pack_result packed;
	int err;

	if (!scratch.mem)
		return -ENOMEM;
	err = pack_file(&in->file, &space, &packed, NULL); /* NULL: problems are noted already */
	free(scratch.mem);
	if (err == -ENODATA || err == -ENOSPC || err == -E2BIG) {
		c->none = true;
		return 0;
	}
	if (err)
		return err;
	free(packed.ranges);
	c->rows = packed.rows;
	c->rules = packed.rules;
	c->lost_rows = packed.lost_rows;
	c->bytes = scratch.bytes;
	/* The rest are directory and rules */
	c->pages = scratch.pieces - 1 - (packed.rules != 0);
	return 0;
}

static void keep_largest(struct facts *f, const struct undescribed *u)
{
	size_t at = f->nlargest;

	while (at && f->largest[at - 1].size < u->size)
		at--;
	if (at == LARGEST)
		return;
	if (f->nlargest < LARGEST)
		f->nlargest++;
	memmove(&f->largest[at + 1], &f->largest[at], (f->nlargest - 1 - at) * sizeof(*u));
	f->largest[at] = *u;
}

/* Bytes of [start, end) with rows from machine code. */
static uint64_t code_in(const struct rowbuf *code, uint64_t start, uint64_t end)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < code->n && code->rows[i].start < end; i++)
		if (code->rows[i].end > start)
			sum += (code->rows[i].end < end ? code->rows[i].end : end) -
			       (code->rows[i].start > start ? code->rows[i].start : start);
	return sum;
}

static void name_function(struct symtab *symbols, const struct elf_image *img,
			  struct undescribed *u)
{
	char raw[SYMTAB_NAME_MAX];
	struct symtab_hit hit;
	uint64_t offset;

	snprintf(u->name, sizeof(u->name), "?");
	if (symbols && elf_image_vaddr_to_offset(img, u->start, &offset) &&
	    symtab_find(symbols, offset, &hit) && symtab_name(symbols, &hit, raw, sizeof(raw)) >= 0)
		text_clean(u->name, sizeof(u->name), raw, strlen(raw), 0);
}

/* What machine code yields where no table describes it, and the largest functions there. */
static int gather_code(struct inspected *in, struct facts *f)
{
	const struct code_rows_opts opts = { .whole = false };
	struct fntab fns = { 0 };
	struct symtab *symbols = NULL;
	int err = code_rows(&in->file, &opts);

	if (!err)
		err = code_undescribed(&in->file, &fns);
	for (size_t i = 0; i < in->file.code.n; i++)
		f->code_bytes += in->file.code.rows[i].end - in->file.code.rows[i].start;
	f->code_rows = in->file.code.n;
	for (size_t i = 0; i < fns.n && !err; i++)
		keep_largest(f, &(struct undescribed){ .start = fns.fns[i].start,
						       .size = fns.fns[i].end - fns.fns[i].start });
	fntab_free(&fns);
	if (err || !f->nlargest || symtab_build(&in->file.img, NULL, UINT32_MAX, &symbols))
		return err;
	for (size_t i = 0; i < f->nlargest; i++) {
		struct undescribed *u = &f->largest[i];

		u->rows = code_in(&in->file.code, u->start, u->start + u->size);
		name_function(symbols, &in->file.img, u);
	}
	symtab_free(symbols);
	return 0;
}

static int gather(struct inspected *in, struct facts *f)
{
	struct elf_phdr segs[EXEC_SEGMENTS_MAX];
	size_t nsegs = exec_segments(&in->file.img, segs, EXEC_SEGMENTS_MAX);
	int err;

	memset(f, 0, sizeof(*f));
	f->in = in;
	for (size_t i = 0; i < nsegs; i++)
		f->exec_bytes += segs[i].filesz;
	f->build_id_len = elf_image_build_id(&in->file.img, f->build_id, sizeof(f->build_id));
	err = gather_source(in, ROWS_SFRAME, &f->src[ROW_SFRAME]);
	if (!err)
		err = gather_source(in, ROWS_EH_FRAME, &f->src[ROW_EH_FRAME]);
	if (!err)
		err = gather_code(in, f);
	if (!err)
		err = gather_cost(in, &f->cost);
	f->both_bytes = common_bytes(&f->src[0], &f->src[1]);
	return err;
}

static void facts_free(struct facts *f)
{
	free(f->src[0].spans);
	free(f->src[1].spans);
}

static uint64_t neither_bytes(const struct facts *f)
{
	uint64_t known = f->src[0].bytes + f->src[1].bytes - f->both_bytes;

	/* Overlapping segments can make the difference negative. */
	return f->exec_bytes > known ? f->exec_bytes - known : 0;
}

/* ---- Names ---- */

static const char *arch_name(enum row_arch arch)
{
	return arch == ROW_ARCH_X86_64 ? "x86-64" : arch == ROW_ARCH_AARCH64 ? "AArch64" : "s390x";
}

static const char *type_name(uint16_t type)
{
	return type == ET_EXEC	 ? "executable"
	       : type == ET_DYN	 ? "shared object or PIE"
	       : type == ET_CORE ? "core dump"
				 : "other";
}

static const char *abi_name(uint8_t abi)
{
	static const char *const names[] = { "?", "AArch64 big-endian", "AArch64", "x86-64",
					     "s390x" };

	return abi < sizeof(names) / sizeof(names[0]) ? names[abi] : "?";
}

/* Flags of an SFrame header (libsframe/doc/sframe-spec.texi). */
static const struct {
	uint8_t bit;
	const char *name;
} flag_names[] = {
	{ 1, "SORTED" },
	{ 2, "FRAME_POINTER" },
	{ 4, "PCREL" },
};

#define NFLAGS (sizeof(flag_names) / sizeof(flag_names[0]))

static void flags_text(uint8_t flags, char *buf, size_t cap)
{
	size_t n = 0;

	snprintf(buf, cap, "none");
	for (size_t i = 0; i < NFLAGS && n < cap; i++)
		if (flags & flag_names[i].bit)
			n += (size_t)snprintf(buf + n, cap - n, "%s%s", n ? "," : "",
					      flag_names[i].name);
}

static void hex(const uint8_t *bytes, size_t n, char *buf)
{
	buf[0] = 0;
	for (size_t i = 0; i < n; i++)
		sprintf(buf + 2 * i, "%02x", bytes[i]);
}

/* ---- Text ---- */

#define TABLES_SHOWN 8 /* a linker that only concatenates sections leaves thousands */

static void print_sframe(const struct facts *f)
{
	const struct unwind_file *file = &f->in->file;
	const struct sframe *s = &file->sframe;

	if (!file->has_sframe) {
		printf("  .sframe     none\n");
		return;
	}
	printf("  .sframe     at 0x%" PRIx64 ", %zu bytes, %u table%s: %" PRIu64
	       " functions, %" PRIu64 " rows\n",
	       s->addr, s->sec.len, s->ntables, s->ntables == 1 ? "" : "s", file->fns_sframe,
	       f->src[ROW_SFRAME].rows);
	for (uint32_t i = 0; i < s->ntables && i < TABLES_SHOWN; i++) {
		const struct sframe_table *t = &s->tables[i];
		char flags[64];

		flags_text(t->flags, flags, sizeof(flags));
		printf("              +0x%" PRIx64 ": V%u, flags %s, ABI %s, %u FDEs, %u FREs\n",
		       t->offset, t->version, flags, abi_name(t->abi), t->nfdes, t->nfres);
	}
	if (s->ntables > TABLES_SHOWN)
		printf("              ... and %u more tables\n", s->ntables - TABLES_SHOWN);
}

static void print_eh_frame(const struct facts *f)
{
	const struct unwind_file *file = &f->in->file;

	if (!file->has_eh) {
		printf("  .eh_frame   none\n");
		return;
	}
	printf("  %-11s at 0x%" PRIx64 ", %zu bytes, %zu CIEs: %" PRIu64 " functions, %" PRIu64
	       " rows\n",
	       file->eh.name, file->eh.addr, file->eh.sec.len, file->eh.ncies, file->fns_eh,
	       f->src[ROW_EH_FRAME].rows);
}

static void print_share(const char *what, uint64_t bytes, const struct facts *f)
{
	printf("              %-10s %12" PRIu64 "  %6.2f %%\n", what, bytes,
	       f->exec_bytes ? 100.0 * (double)bytes / (double)f->exec_bytes : 0.0);
}

/* The code without rows, and what its instructions tell. */
static void print_undescribed(const struct facts *f)
{
	if (f->code_bytes)
		print_share("by code", f->code_bytes, f);
	for (size_t i = 0; i < f->nlargest; i++)
		printf("              0x%" PRIx64 "  %" PRIu64 " bytes, %" PRIu64 " by code: %s\n",
		       f->largest[i].start, f->largest[i].size, f->largest[i].rows,
		       f->largest[i].name);
}

static void print_coverage(const struct facts *f)
{
	uint64_t unknown = f->src[0].unknown + f->src[1].unknown;

	printf("  code        %" PRIu64 " bytes in executable segments, described by\n",
	       f->exec_bytes);
	print_share(".sframe", f->src[ROW_SFRAME].bytes, f);
	print_share(f->in->file.has_eh ? f->in->file.eh.name : ".eh_frame",
		    f->src[ROW_EH_FRAME].bytes, f);
	print_share("neither", neither_bytes(f), f);
	print_undescribed(f);
	if (unknown)
		printf("              %" PRIu64 " rows have a CFA or RA that cannot be expressed\n",
		       unknown);
}

static void print_cost(const struct facts *f)
{
	const struct cost *c = &f->cost;
	const char *only = f->in->file.arch == row_arch_native() ? ""
								 : " (on a machine of that kind)";

	if (c->none)
		printf("  BPF tables  none\n");
	else
		printf("  BPF tables  %" PRIu64 " rows, %" PRIu64 " rules, %" PRIu64
		       " pages, %" PRIu64 " bytes (%.1f a row)%s\n",
		       c->rows, c->rules, c->pages, c->bytes,
		       c->rows ? (double)c->bytes / (double)c->rows : 0.0, only);
	if (c->lost_rows)
		printf("              %" PRIu64 " rows do not fit and would be lost\n",
		       c->lost_rows);
}

static void print_problems(const struct facts *f)
{
	const struct diag *d = &f->in->diag;
	uint64_t all = d->malformed + d->repaired;

	if (!all) {
		printf("  problems    none\n");
		return;
	}
	printf("  problems    %" PRIu64 " malformed, %" PRIu64 " repaired\n", d->malformed,
	       d->repaired);
	for (unsigned int i = 0; i < d->kept; i++)
		printf("              %-9s %s+0x%" PRIx64 ": %s\n",
		       d->notes[i].kind == DIAG_MALFORMED ? "malformed" : "repaired",
		       d->notes[i].section, d->notes[i].offset, d->notes[i].text);
	if (all > d->kept)
		printf("              ... and %" PRIu64 " more\n", all - d->kept);
}

int inspect_summary(struct inspected *in)
{
	const struct elf_image *img = &in->file.img;
	struct facts f;
	char id[129];
	int err = gather(in, &f);

	if (!err) {
		hex(f.build_id, f.build_id_len, id);
		printf("%s: ELF64 %s%s, %s\n", in->name, arch_name(in->file.arch),
		       img->be && in->file.arch == ROW_ARCH_AARCH64 ? " big-endian" : "",
		       type_name(img->type));
		printf("  build-id    %s\n", f.build_id_len ? id : "none");
		print_sframe(&f);
		print_eh_frame(&f);
		print_coverage(&f);
		print_cost(&f);
		print_problems(&f);
	}
	facts_free(&f);
	return err;
}

/* ---- JSON ---- */

#define TABLES_JSON 4096

static void json_table(struct json *j, const struct sframe_table *t)
{
	json_object(j, NULL);
	json_u64(j, "offset", t->offset);
	json_u64(j, "version", t->version);
	json_u64(j, "flags", t->flags);
	json_array(j, "flag_names");
	for (size_t i = 0; i < NFLAGS; i++)
		if (t->flags & flag_names[i].bit)
			json_str(j, NULL, flag_names[i].name);
	json_array_end(j);
	json_u64(j, "abi", t->abi);
	json_str(j, "abi_name", abi_name(t->abi));
	json_i64(j, "fixed_fp", t->fixed_fp);
	json_i64(j, "fixed_ra", t->fixed_ra);
	json_u64(j, "fdes", t->nfdes);
	json_u64(j, "fres", t->nfres);
	json_str(j, "starts_from", t->section_relative ? "section" : "field");
	json_object_end(j);
}

static void json_sframe(struct json *j, const struct facts *f)
{
	const struct unwind_file *file = &f->in->file;
	const struct sframe *s = &file->sframe;

	if (!file->has_sframe) {
		json_str(j, "sframe", NULL);
		return;
	}
	json_object(j, "sframe");
	json_u64(j, "addr", s->addr);
	json_u64(j, "size", s->sec.len);
	json_u64(j, "functions", file->fns_sframe);
	json_u64(j, "rows", f->src[ROW_SFRAME].rows);
	json_u64(j, "rows_unknown", f->src[ROW_SFRAME].unknown);
	json_u64(j, "table_count", s->ntables);
	json_array(j, "tables");
	for (uint32_t i = 0; i < s->ntables && i < TABLES_JSON; i++)
		json_table(j, &s->tables[i]);
	json_array_end(j);
	json_object_end(j);
}

static void json_eh_frame(struct json *j, const struct facts *f)
{
	const struct unwind_file *file = &f->in->file;

	if (!file->has_eh) {
		json_str(j, "eh_frame", NULL);
		return;
	}
	json_object(j, "eh_frame");
	json_str(j, "section", file->eh.name);
	json_u64(j, "addr", file->eh.addr);
	json_u64(j, "size", file->eh.sec.len);
	json_u64(j, "cies", file->eh.ncies);
	json_u64(j, "functions", file->fns_eh);
	json_u64(j, "rows", f->src[ROW_EH_FRAME].rows);
	json_u64(j, "rows_unknown", f->src[ROW_EH_FRAME].unknown);
	json_object_end(j);
}

static void json_numbers(struct json *j, const struct facts *f)
{
	const struct cost *c = &f->cost;

	json_object(j, "coverage");
	json_u64(j, "exec_bytes", f->exec_bytes);
	json_u64(j, "sframe_bytes", f->src[ROW_SFRAME].bytes);
	json_u64(j, "eh_frame_bytes", f->src[ROW_EH_FRAME].bytes);
	json_u64(j, "both_bytes", f->both_bytes);
	json_u64(j, "neither_bytes", neither_bytes(f));
	json_u64(j, "code_bytes", f->code_bytes);
	json_u64(j, "code_rows", f->code_rows);
	json_object_end(j);
	json_array(j, "undescribed");
	for (size_t i = 0; i < f->nlargest; i++) {
		json_object(j, NULL);
		json_u64(j, "start", f->largest[i].start);
		json_u64(j, "size", f->largest[i].size);
		json_u64(j, "code_bytes", f->largest[i].rows);
		json_str(j, "name", f->largest[i].name);
		json_object_end(j);
	}
	json_array_end(j);
	json_object(j, "bpf_tables");
	json_bool(j, "in_use", f->in->file.arch == ROW_ARCH_X86_64 && !c->none);
	json_u64(j, "rows", c->rows);
	json_u64(j, "rules", c->rules);
	json_u64(j, "pages", c->pages);
	json_u64(j, "bytes", c->bytes);
	json_u64(j, "lost_rows", c->lost_rows);
	json_object_end(j);
}

static void json_problems(struct json *j, const struct diag *d)
{
	json_u64(j, "malformed", d->malformed);
	json_u64(j, "repaired", d->repaired);
	json_array(j, "problems");
	for (unsigned int i = 0; i < d->kept; i++) {
		json_object(j, NULL);
		json_str(j, "kind", d->notes[i].kind == DIAG_MALFORMED ? "malformed" : "repaired");
		json_str(j, "section", d->notes[i].section);
		json_u64(j, "offset", d->notes[i].offset);
		json_str(j, "text", d->notes[i].text);
		json_object_end(j);
	}
	json_array_end(j);
}

int inspect_json(struct inspected *in)
{
	struct json j = json_on(stdout);
	struct facts f;
	char id[129];
	int err = gather(in, &f);

	if (!err) {
		hex(f.build_id, f.build_id_len, id);
		json_object(&j, NULL);
		json_u64(&j, "schema", 1);
		json_str(&j, "file", in->path);
		json_str(&j, "machine", arch_name(in->file.arch));
		json_str(&j, "byte_order", in->file.img.be ? "big" : "little");
		json_str(&j, "type", type_name(in->file.img.type));
		json_str(&j, "build_id", f.build_id_len ? id : NULL);
		json_sframe(&j, &f);
		json_eh_frame(&j, &f);
		json_numbers(&j, &f);
		json_problems(&j, &in->diag);
		json_object_end(&j);
		putchar('\n');
	}
	facts_free(&f);
	return err;
}

void inspect_json_refused(const char *path, const char *why)
{
	struct json j = json_on(stdout);

	json_object(&j, NULL);
	json_u64(&j, "schema", 1);
	json_str(&j, "file", path);
	json_str(&j, "error", why);
	json_object_end(&j);
	putchar('\n');
}
