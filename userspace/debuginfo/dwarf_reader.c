/* SPDX-License-Identifier: BSD-2-Clause */
#include "debuginfo/dwarf_reader.h"

#include <errno.h>

#ifdef HAVE_LIBDW
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "base/u64s.h"
#include "base/vec.h"
#include "debuginfo/dwarf_lines.h"
#include "debuginfo/dwarf_sections.h"

#define MAX_DEPTH	 256	     /* nested entries; compilers stay below 60 */
#define MAX_ENTRIES	 (64u << 20) /* entries of one unit */
#define MAX_HOPS	 16 /* references followed from an entry to the one with its name */
#define KEPT_MAX	 (48u << 20) /* bytes that libdw may keep of finished units */
#define NONE		 UINT32_MAX
#define AT_DISCRIMINATOR 0x2136		  /* DW_AT_GNU_discriminator */
#define DROPPED		 (UINT32_MAX - 1) /* no node: a function that the linker dropped */

struct node { /* a function, or one inlined instance of it */
	Dwarf_Die die;
	uint32_t caller; /* node; NONE: not inlined */
};

struct best { /* the function with the smallest range around one address */
	uint64_t len;
	uint32_t node;	 /* NONE: none yet */
	bool done, here; /* done: emitted; here: in the current unit */
	bool has_row;	 /* file, line: of the current unit's line program */
	uint32_t file, line, discriminator;
};

struct reader {
	const struct dwarf_job *job;
	const struct dwarf_open *main;
	dwarf_emit_fn emit;
	void *ctx;
	struct best *best;  /* one for each address */
	struct node *nodes; /* nodes of the current unit */
	size_t nnodes, nodes_cap;
	uint64_t entries;
	bool everywhere;		 /* also walk functions that hold none of the addresses */
	size_t next;			 /* the address after those of the last row */
	Dwarf_Files *files, *line_files; /* files of calls, and of the line program */
	int err;
};

/* ---- Entries with code ---- */

/*
 * Visits the addresses in die's ranges. With a node, records it for each address that has no
 * smaller range yet. Returns the number of addresses in the ranges. *ret_dropped: it has ranges,
 * but no code.
 */
static size_t take_ranges(struct reader *r, Dwarf_Die *die, uint32_t node, bool *ret_dropped)
{
	Dwarf_Addr base, start, end;
	bool some = false, code = false;
	ptrdiff_t at = 0;
	size_t n = 0;

	while ((at = dwarf_ranges(die, at, &base, &start, &end)) > 0) {
		some = true;
		if (!dwarf_is_code(r->main, start))
			continue;
		code = true;
		for (size_t i = u64_first_from(r->job->addrs, r->job->n, start);
		     i < r->job->n && r->job->addrs[i] < end; i++) {
			struct best *b = &r->best[i];

			if (b->done)
				continue;
			n++;
			if (node == NONE)
				b->here = true;
			else if (b->node == NONE || end - start <= b->len)
				*b = (struct best){ .len = end - start,
						    .node = node,
						    .here = b->here };
		}
	}
	*ret_dropped = some && !code;
	return n;
}

static uint32_t add_node(struct reader *r, const Dwarf_Die *die, uint32_t caller)
{
	if (vec_reserve(&r->nodes, &r->nodes_cap, r->nnodes + 1, sizeof(*r->nodes))) {
		r->err = -ENOMEM;
		return NONE;
	}
	r->nodes[r->nnodes] = (struct node){ *die, caller };
	return (uint32_t)r->nnodes++;
}

static void walk(struct reader *r, Dwarf_Die *parent, uint32_t function, unsigned int depth);

static void visit(struct reader *r, Dwarf_Die *die, uint32_t function, unsigned int depth)
{
	bool inlined = dwarf_tag(die) == DW_TAG_inlined_subroutine, dropped;
	uint32_t node;

	switch (dwarf_tag(die)) {
	case DW_TAG_subprogram:
	case DW_TAG_inlined_subroutine:
		/* What is inlined into a dropped function may have ranges that look like code. */
		if (inlined && function == DROPPED)
			return;
		node = add_node(r, die, inlined ? function : NONE);
		if (node == NONE)
			return;
		if (take_ranges(r, die, node, &dropped) || inlined || r->everywhere)
			walk(r, die, dropped ? DROPPED : node, depth + 1);
		else
			r->nnodes--;
		return;
	case DW_TAG_lexical_block:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_enumeration_type: /* Rust enums have methods */
		walk(r, die, function, depth + 1);
		return;
	default:
		return;
	}
}

static void walk(struct reader *r, Dwarf_Die *parent, uint32_t function, unsigned int depth)
{
	Dwarf_Die die;

	if (depth >= MAX_DEPTH || dwarf_child(parent, &die))
		return;
	do {
		if (r->err || ++r->entries > MAX_ENTRIES)
			return;
		visit(r, &die, function, depth);
	} while (dwarf_siblingof(&die, &die) == 0);
}

/* ---- Output for one address ---- */

static const char *string_of(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attr;

	return dwarf_attr(die, name, &attr) ? dwarf_formstring(&attr) : NULL;
}

/*
 * The linkage name is preferred to the source name, wherever it stands on the way to the
 * declaration.
 */
static const char *name_of(Dwarf_Die *die)
{
	const char *plain = NULL, *linked;
	Dwarf_Die at = *die;
	Dwarf_Attribute attr;

	for (int i = 0; i < MAX_HOPS; i++) {
		linked = string_of(&at, DW_AT_linkage_name);
		if (!linked)
			linked = string_of(&at, DW_AT_MIPS_linkage_name);
		if (linked)
			return linked;
		if (!plain)
			plain = string_of(&at, DW_AT_name);
		if ((!dwarf_attr(&at, DW_AT_abstract_origin, &attr) &&
		     !dwarf_attr(&at, DW_AT_specification, &attr)) ||
		    !dwarf_formref_die(&attr, &at))
			break;
	}
	return plain;
}

/* A dwarf_row_fn. Rows of a sequence ascend, so the next address is mostly known. */
static void take_row(void *ctx, const struct dwarf_row *row)
{
	struct reader *r = ctx;
	const uint64_t *addrs = r->job->addrs;
	size_t n = r->job->n, i = r->next;

	if ((i < n && addrs[i] < row->start) || (i && addrs[i - 1] >= row->start))
		i = u64_first_from(addrs, n, row->start);
	r->next = i;
	if (i == n || addrs[i] >= row->end || !dwarf_is_code(r->main, row->sequence))
		return;
	for (; i < n && addrs[i] < row->end; i++) {
		if (r->best[i].has_row)
			continue;
		r->best[i].has_row = true;
		r->best[i].file = row->file;
		r->best[i].line = row->line;
		r->best[i].discriminator = row->discriminator;
	}
	r->next = i;
}

static void find_lines(struct reader *r, Dwarf_Die *unit, Dwarf_Die *top)
{
	Dwarf_Attribute attr;
	Dwarf_Word off;
	size_t n;

	r->next = 0;
	if (dwarf_getsrcfiles(top, &r->files, &n))
		r->files = NULL;
	if (dwarf_getsrcfiles(unit, &r->line_files, &n))
		r->line_files = NULL;
	if (r->line_files && dwarf_attr(unit, DW_AT_stmt_list, &attr) &&
	    !dwarf_formudata(&attr, &off))
		dwarf_lines_read(&r->main->lines, off, take_row, r);
}

static uint64_t number_of(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attr;
	Dwarf_Word value;

	return dwarf_attr(die, name, &attr) && !dwarf_formudata(&attr, &value) ? value : 0;
}

/* The line of its name where it is declared. */
static uint32_t start_of(Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	Dwarf_Word line;

	return dwarf_attr_integrate(die, DW_AT_decl_line, &attr) &&
			       !dwarf_formudata(&attr, &line) && line <= INT32_MAX
		       ? (uint32_t)line
		       : 0;
}

/* The call site of an inlined function is the line of its caller. */
static void find_call(const struct reader *r, Dwarf_Die *inlined, struct dwarf_frame *ret)
{
	uint64_t line = number_of(inlined, DW_AT_call_line),
		 file = number_of(inlined, DW_AT_call_file);

	ret->line = line > INT32_MAX ? 0 : (uint32_t)line;
	ret->discriminator = (uint32_t)number_of(inlined, AT_DISCRIMINATOR);
	ret->file = r->files ? dwarf_filesrc(r->files, file, NULL, NULL) : NULL;
}

static void tell(struct reader *r, size_t i)
{
	struct dwarf_frame frames[DWARF_MAX_CHAIN] = { 0 };
	struct best *b = &r->best[i];
	size_t n = 0;

	if (b->has_row) {
		frames[0].file = dwarf_filesrc(r->line_files, b->file, NULL, NULL);
		frames[0].line = b->line > INT32_MAX ? 0 : b->line;
		frames[0].discriminator = b->discriminator;
	}
	for (uint32_t at = b->node; at != NONE && n < DWARF_MAX_CHAIN; at = r->nodes[at].caller) {
		Dwarf_Die *die = &r->nodes[at].die;

		frames[n].start_line = start_of(die);
		frames[n++].name = name_of(die);
		if (r->job->lines && n < DWARF_MAX_CHAIN && r->nodes[at].caller != NONE)
			find_call(r, die, &frames[n]);
	}
	if (!n && !frames[0].line)
		return; /* another unit may have it */
	b->done = true;
	r->err = r->emit(r->ctx, i, frames, n ? n : 1);
}

/* ---- Units ---- */

/*
 * Functions that hold none of the addresses are skipped, which halves the time. Such a function may
 * still contain one that does (lambdas in g++, nested functions in GNU C and Fortran). These are
 * searched only if an address is left without a function.
 */
static void find_functions(struct reader *r, Dwarf_Die *top)
{
	bool missing = false;

	r->nnodes = 0;
	r->entries = 0;
	r->everywhere = false;
	walk(r, top, NONE, 0);
	for (size_t i = 0; i < r->job->n && !missing; i++)
		missing = r->best[i].here && !r->best[i].done && r->best[i].node == NONE;
	r->everywhere = true;
	if (missing)
		walk(r, top, NONE, 0);
}

/* False: the unit holds none of the addresses. */
static bool read_unit(struct reader *r, Dwarf_Die *unit, Dwarf_Die *split)
{
	Dwarf_Die *top = dwarf_tag(split) == DW_TAG_invalid ? unit : split;
	bool dropped;

	if (dwarf_tag(unit) == DW_TAG_type_unit || !take_ranges(r, unit, NONE, &dropped))
		return false;
	if (r->job->inlined)
		find_functions(r, top);
	if (r->job->lines)
		find_lines(r, unit, top);
	for (size_t i = 0; i < r->job->n && !r->err; i++) {
		struct best *b = &r->best[i];

		if (!b->done && (b->here || b->node != NONE))
			tell(r, i);
		b->node = NONE; /* nodes belong to this unit */
		b->here = b->has_row = false;
	}
	return true;
}

/*
 * libdw keeps everything that it has read of a unit. Reopening the file frees it. The next unit is
 * then found by its offset.
 */
static bool start_afresh(struct dwarf_open *main, Dwarf *alt, Dwarf_CU **cu, Dwarf_Off unit)
{
	Dwarf_Die die;

	dwarf_end(main->dw);
	main->dw = dwarf_begin_elf(main->elf, DWARF_C_READ, NULL);
	if (!main->dw)
		return false;
	if (alt)
		dwarf_setalt(main->dw, alt);
	if (!dwarf_offdie(main->dw, unit, &die))
		return false;
	*cu = die.cu;
	return true;
}

static void read_units(struct reader *r, struct dwarf_open *main, Dwarf *alt)
{
	size_t start = mallinfo2().uordblks;
	Dwarf_Die unit, split;
	Dwarf_CU *cu = NULL;

	while (!r->err) {
		memset(&split, 0, sizeof(split));
		if (dwarf_get_units(main->dw, cu, &cu, NULL, NULL, &unit, &split))
			break;
		if (read_unit(r, &unit, &split) && mallinfo2().uordblks - start > KEPT_MAX &&
		    !start_afresh(main, alt, &cu, dwarf_dieoffset(&unit)))
			break;
	}
}

bool dwarf_supported(void)
{
	return true;
}

int dwarf_read(const struct dwarf_job *job, dwarf_emit_fn emit, void *ctx)
{
	struct dwarf_open main = { .fd = job->fd }, alt = { .fd = job->alt_fd };
	struct reader r = { .job = job, .main = &main, .emit = emit, .ctx = ctx };
	int err = dwarf_open(&main);

	if (err)
		return err;
	if (job->alt_fd >= 0 && !dwarf_open(&alt))
		dwarf_setalt(main.dw, alt.dw);
	r.best = calloc(job->n ? job->n : 1, sizeof(*r.best));
	for (size_t i = 0; r.best && i < job->n; i++)
		r.best[i].node = NONE;
	if (r.best)
		read_units(&r, &main, alt.dw);
	else
		r.err = -ENOMEM;
	free(r.best);
	free(r.nodes);
	dwarf_close(&main);
	dwarf_close(&alt);
	return r.err;
}
#else
bool dwarf_supported(void)
{
	return false;
}

int dwarf_read(const struct dwarf_job *job, dwarf_emit_fn emit, void *ctx)
{
	(void)job, (void)emit, (void)ctx;
	return -ENOTSUP;
}
#endif
