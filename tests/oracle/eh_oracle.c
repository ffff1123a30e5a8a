/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Compares the .eh_frame (or .debug_frame) rows of real files with those of another evaluator,
 * elfutils' libdw.
 *
 * 	eh_oracle [-v] FILE...
 *
 * Each function is walked from start to end; at every place where either side begins a row the
 * rules for CFA, RA, FP and on x86-64 rbx are written as text from both and must be equal. A
 * difference is printed and makes the exit status 1. "?" stands for what a row cannot express; -v
 * prints libdw's operations for each of those once per file.
 *
 * libdw finds the FDE of an address in its own way, so functions that overlap are compared with
 * whichever it picks; where that is another one (its rows begin before ours do) the place is
 * counted apart. So are places where libdw refuses to name a CFA: it does so after
 * DW_CFA_def_cfa_register on top of an expression, which libgcrypt's assembly has (eh_cfa.c says
 * how it is read).
 */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "readers/eh_frame.h"

#define TEXT	  96
#define MAX_SHOWN 6 /* differences of one file */

struct rules {
	char cfa[TEXT], ra[TEXT], fp[TEXT], bx[TEXT];
};

struct oracle {
	const struct row_regs *regs;
	enum row_arch arch;
	Dwarf_CFI *cfi;
	bool verbose;
	uint64_t rows, places, unknown, other_fde, refused, differ;
};

static void reg_off(char *out, const struct row_regs *regs, uint64_t reg, int64_t off)
{
	if (reg >= regs->nnames || off != (int32_t)off)
		strcpy(out, "?");
	else
		snprintf(out, TEXT, "%s%+" PRId64, regs->names[reg], off);
}

/* ---- ours ---- */

static void our_rule(char *out, const struct oracle *o, const struct rule *r)
{
	char at[TEXT];

	switch (r->kind) {
	case RULE_SAME:
		strcpy(out, "same");
		return;
	case RULE_UNDEF:
		strcpy(out, "undef");
		return;
	case RULE_CFA:
		snprintf(out, TEXT, "cfa%+d", r->off);
		return;
	case RULE_CFA_MEM:
		snprintf(out, TEXT, "*(cfa%+d)", r->off);
		return;
	case RULE_REG:
		reg_off(out, o->regs, r->reg, r->off);
		return;
	case RULE_REG_MEM:
		reg_off(at, o->regs, r->reg, r->off);
		snprintf(out, TEXT, "*(%.90s)", at);
		return;
	case RULE_INDEX_MEM:
		reg_off(at, o->regs, o->regs->sp, r->off);
		snprintf(out, TEXT, "*(%.40s+%s*8)", at, o->regs->names[r->reg]);
		return;
	default:
		strcpy(out, "?");
		return;
	}
}

/* rows[0..n) hold at the place: one, or a PLT's. */
static void our_rules(struct rules *out, const struct oracle *o, const struct row *rows, size_t n)
{
	our_rule(out->cfa, o, &rows->cfa);
	if (rows->cfa_off2)
		snprintf(out->cfa + strlen(out->cfa), 48, "%+d", rows->cfa_off2);
	our_rule(out->ra, o, &rows->ra);
	our_rule(out->fp, o, &rows->fp);
	our_rule(out->bx, o, &rows->bx);
	if (rows->flags & ROW_SIGNAL)
		strcat(out->ra, " signal");
	if (n == 2 && rows->plt_rep)
		snprintf(out->cfa + strlen(out->cfa), 48, "%+d@%u/%u",
			 rows[1].cfa.off - rows[0].cfa.off, rows[1].plt_at, rows->plt_rep);
	else if (n != 1)
		strcpy(out->cfa, "several rows at one place");
}

/* ---- libdw's ---- */

static bool is_breg(const Dwarf_Op *op, uint64_t *reg, int64_t *off)
{
	if (op->atom == DW_OP_bregx) {
		*reg = op->number;
		*off = (int64_t)op->number2;
		return true;
	}
	*reg = op->atom - DW_OP_breg0;
	*off = (int64_t)op->number;
	return op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31;
}

static bool is_lit(const Dwarf_Op *op, uint64_t *n)
{
	*n = op->atom - DW_OP_lit0;
	return op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31;
}

/* The linker's: reg+off, rip, 15, and, K, ge, 3, shl, plus */
static bool plt_text(char *out, const struct oracle *o, const Dwarf_Op *ops, size_t n)
{
	uint64_t reg, pc, mask, at, shift;
	int64_t off, pc_off;
	char base[TEXT];

	if (n != 9 || !is_breg(&ops[0], &reg, &off) || !is_breg(&ops[1], &pc, &pc_off) ||
	    pc != 16 || pc_off || !is_lit(&ops[2], &mask) || ops[3].atom != DW_OP_and ||
	    !is_lit(&ops[4], &at) || ops[5].atom != DW_OP_ge || !is_lit(&ops[6], &shift) ||
	    ops[7].atom != DW_OP_shl || ops[8].atom != DW_OP_plus)
		return false;
	reg_off(base, o->regs, reg, off);
	snprintf(out, TEXT, "%.40s%+d@%" PRIu64 "/%" PRIu64, base, 1 << shift, at, mask + 1);
	return true;
}

/* OpenSSL's: sp+off, reg, 8, mul, plus, deref, add */
static bool index_text(char *out, const struct oracle *o, const Dwarf_Op *ops, size_t n)
{
	uint64_t sp, reg, words;
	int64_t off, reg_add;
	char at[TEXT];

	if (n != 7 || !is_breg(&ops[0], &sp, &off) || sp != o->regs->sp ||
	    !is_breg(&ops[1], &reg, &reg_add) || reg_add || reg >= o->regs->nnames ||
	    !is_lit(&ops[2], &words) || words != 8 || ops[3].atom != DW_OP_mul ||
	    ops[4].atom != DW_OP_plus || ops[5].atom != DW_OP_deref ||
	    ops[6].atom != DW_OP_plus_uconst)
		return false;
	reg_off(at, o->regs, sp, off);
	snprintf(out, TEXT, "*(%.40s+%s*8)%+d", at, o->regs->names[reg], (int)ops[6].number);
	return true;
}

static void show_ops(const char *what, const Dwarf_Op *ops, size_t n)
{
	printf("  ? %s:", what);
	for (size_t i = 0; i < n; i++)
		printf(" %02x(%" PRId64 ",%" PRId64 ")", ops[i].atom, (int64_t)ops[i].number,
		       (int64_t)ops[i].number2);
	printf("\n");
}

static void cfa_text(char *out, struct oracle *o, const Dwarf_Op *ops, size_t n)
{
	uint64_t reg;
	int64_t off;
	char at[TEXT];

	strcpy(out, "?");
	if (plt_text(out, o, ops, n) || index_text(out, o, ops, n))
		return;
	if (n && is_breg(&ops[0], &reg, &off)) {
		reg_off(at, o->regs, reg, off);
		if (n == 1) {
			strcpy(out, at);
			return;
		}
		if (n == 2 && ops[1].atom == DW_OP_deref) {
			snprintf(out, TEXT, "*(%.60s)", at);
			return;
		}
		if (n == 3 && ops[1].atom == DW_OP_deref && ops[2].atom == DW_OP_plus_uconst) {
			snprintf(out, TEXT, ops[2].number ? "*(%.60s)%+d" : "*(%.60s)", at,
				 (int)ops[2].number);
			return;
		}
	}
	if (o->verbose && n)
		show_ops("cfa", ops, n);
}

static void register_text(char *out, struct oracle *o, Dwarf_Frame *frame, int column)
{
	Dwarf_Op mem[3], *ops;
	uint64_t reg;
	int64_t off = 0;
	size_t n, left;
	bool value;
	char at[TEXT];

	if (dwarf_frame_register(frame, column, mem, &ops, &n)) {
		strcpy(out, dwarf_errmsg(-1));
		return;
	}
	if (n == 0) {
		strcpy(out, ops ? "undef" : "same");
		return;
	}
	left = n;
	value = ops[n - 1].atom == DW_OP_stack_value;
	left -= value;
	strcpy(out, "?");
	if (left == 1 && ops[0].atom == DW_OP_regx) {
		reg_off(out, o->regs, ops[0].number, 0);
	} else if (left == 1 && ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg31) {
		reg_off(out, o->regs, ops[0].atom - DW_OP_reg0, 0);
	} else if (ops[0].atom == DW_OP_call_frame_cfa &&
		   (left == 1 || (left == 2 && ops[1].atom == DW_OP_plus_uconst))) {
		if (left == 2)
			off = (int64_t)ops[1].number;
		snprintf(out, TEXT, value ? "cfa%+" PRId64 : "*(cfa%+" PRId64 ")", off);
	} else if (left && ops[0].atom == DW_OP_call_frame_cfa &&
		   is_breg(&ops[left - 1], &reg, &off) && left == 2) {
		reg_off(at, o->regs, reg, off);
		snprintf(out, TEXT, value ? "%.60s" : "*(%.60s)", at);
	} else if (o->verbose) {
		show_ops("register", ops, n);
	}
}

/* Whether the table says that the caller's sp is not the CFA, which is what a row has for it. */
static bool jumps_to_a_frame(const struct oracle *o, Dwarf_Frame *frame)
{
	Dwarf_Op mem[3], *ops;
	size_t n;

	return !dwarf_frame_register(frame, o->regs->sp, mem, &ops, &n) && n > 0 &&
	       (n != 2 || ops[0].atom != DW_OP_call_frame_cfa ||
		ops[1].atom != DW_OP_stack_value) &&
	       o->arch == ROW_ARCH_X86_64;
}

/* 0; 1: libdw has no row at pc; 2: it has one without a CFA, or with another sp. */
static int their_rules(struct rules *out, struct oracle *o, uint64_t pc, uint64_t *ret_start,
		       uint64_t *ret_end)
{
	Dwarf_Frame *frame;
	Dwarf_Addr start, end;
	Dwarf_Op *ops;
	size_t n;
	bool signal;
	int ra;

	if (dwarf_cfi_addrframe(o->cfi, pc, &frame))
		return 1;
	ra = dwarf_frame_info(frame, &start, &end, &signal);
	if (dwarf_frame_cfa(frame, &ops, &n) || n == 0 || jumps_to_a_frame(o, frame)) {
		free(frame);
		*ret_start = start;
		*ret_end = end;
		return 2;
	}
	cfa_text(out->cfa, o, ops, n);
	register_text(out->ra, o, frame, ra);
	register_text(out->fp, o, frame, o->regs->fp);
	strcpy(out->bx, "same");
	if (o->arch == ROW_ARCH_X86_64)
		register_text(out->bx, o, frame, 3);
	/* The link register's default: libdw calls it "same", a row says where it is. */
	if (o->arch != ROW_ARCH_X86_64 && (strcmp(out->ra, "same") == 0))
		reg_off(out->ra, o->regs, (uint64_t)ra, 0);
	if (signal)
		strcat(out->ra, " signal");
	*ret_start = start;
	*ret_end = end;
	free(frame);
	return 0;
}

/* ---- both ---- */

/*
 * Without a rule, libdw answers from its own table of the ABI's defaults, and says "undefined" for
 * a register that is missing there, as rbx (elfutils 0.188). A row says that there is no rule.
 */
static bool same_or_default(const char *ours, const char *theirs)
{
	return strcmp(ours, theirs) == 0 ||
	       (strcmp(ours, "same") == 0 && strcmp(theirs, "undef") == 0);
}

static void compare_at(struct oracle *o, const struct fn *fn, const struct rowbuf *b, size_t i,
		       size_t n, uint64_t pc, uint64_t *ret_next)
{
	struct rules ours, theirs;
	uint64_t start = pc, end = pc + 1;
	int none;

	memset(&theirs, 0, sizeof(theirs));
	none = their_rules(&theirs, o, pc, &start, &end);
	*ret_next = b->rows[i].end < end || none == 1 ? b->rows[i].end : end;
	if (none == 1)
		snprintf(theirs.cfa, TEXT, "no row: %.60s", dwarf_errmsg(-1));
	our_rules(&ours, o, &b->rows[i], n);
	o->places++;
	if (!none && start < fn->start) {
		o->other_fde++;
		return;
	}
	if (none == 2) {
		o->refused++;
		return;
	}
	o->unknown += strcmp(ours.cfa, "?") == 0;
	if (!none && strcmp(ours.cfa, theirs.cfa) == 0 && strcmp(ours.ra, theirs.ra) == 0 &&
	    strcmp(ours.fp, theirs.fp) == 0 && same_or_default(ours.bx, theirs.bx))
		return;
	if (o->differ++ < MAX_SHOWN)
		printf("  %016" PRIx64 " in [%" PRIx64 ",%" PRIx64
		       ")\n    ours   cfa=%s ra=%s fp=%s bx=%s\n"
		       "    libdw  cfa=%s ra=%s fp=%s bx=%s\n",
		       pc, fn->start, fn->end, ours.cfa, ours.ra, ours.fp, ours.bx, theirs.cfa,
		       theirs.ra, theirs.fp, theirs.bx);
}

static void compare_fn(struct oracle *o, const struct fn *fn, const struct rowbuf *b)
{
	uint64_t pc = fn->start;
	size_t i = 0, n;

	o->rows += b->n;
	for (; i < b->n; i += n) {
		for (n = 1; i + n < b->n && b->rows[i + n].start == b->rows[i].start; n++)
			;
		if (b->rows[i].start != pc) {
			printf("  [%" PRIx64 ",%" PRIx64 "): no row at %" PRIx64 "\n", fn->start,
			       fn->end, pc);
			o->differ++;
		}
		for (pc = b->rows[i].start; pc < b->rows[i].end;)
			compare_at(o, fn, b, i, n, pc, &pc);
	}
	if (pc != fn->end) {
		printf("  [%" PRIx64 ",%" PRIx64 "): rows end at %" PRIx64 "\n", fn->start, fn->end,
		       pc);
		o->differ++;
	}
}

static int compare_all(struct oracle *o, const struct eh_frame *e, struct diag *diag)
{
	struct rowbuf rows = { 0 };
	int err = 0;

	for (size_t i = 0; i < e->fns.n && !err; i++) {
		rows.n = 0;
		err = eh_frame_rows(e, &e->fns.fns[i], &rows, diag);
		/* Of two functions with one start libdw sees one. */
		if (!err && (i == 0 || e->fns.fns[i].start != e->fns.fns[i - 1].start))
			compare_fn(o, &e->fns.fns[i], &rows);
	}
	rowbuf_free(&rows);
	return err;
}

static int check(const char *path, bool verbose)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), rc = 1;
	struct elf_blob blob = { 0 };
	struct eh_frame e = { 0 };
	struct elf_image img;
	struct diag diag = { 0 };
	struct oracle o = { .verbose = verbose };
	bool debug_frame;
	Elf *elf;

	if (fd < 0 || elf_image_open_fd(&img, fd, &diag)) {
		printf("%s: cannot be read\n", path);
		if (fd >= 0)
			close(fd);
		return 1;
	}
	o.arch = row_arch_of_machine(img.machine);
	o.regs = row_arch_regs(o.arch);
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	if (!eh_frame_find(&img, &blob, &debug_frame, &diag) &&
	    !eh_frame_open(&e, blob.view, blob.addr, debug_frame, o.arch, &img, &diag)) {
		Dwarf *dwarf = debug_frame ? dwarf_begin_elf(elf, DWARF_C_READ, NULL) : NULL;

		o.cfi = debug_frame ? dwarf_getcfi(dwarf) : dwarf_getcfi_elf(elf);
		rc = o.cfi && !compare_all(&o, &e, &diag) && !o.differ ? 0 : 1;
		printf("%s%s: %zu functions, %" PRIu64 " rows, %" PRIu64
		       " places compared, %" PRIu64 " differ, %" PRIu64 " not expressible, %" PRIu64
		       " of another FDE, %" PRIu64 " refused by libdw, %" PRIu64 " notes\n",
		       path, debug_frame ? " (.debug_frame)" : "", e.fns.n, o.rows, o.places,
		       o.differ, o.unknown, o.other_fde, o.refused, diag.malformed + diag.repaired);
		if (!debug_frame)
			dwarf_cfi_end(o.cfi);
		dwarf_end(dwarf);
	} else {
		printf("%s: no call frame information\n", path);
	}
	eh_frame_close(&e);
	elf_blob_free(&blob);
	elf_image_close(&img);
	elf_end(elf);
	close(fd);
	return rc;
}

int main(int argc, char **argv)
{
	bool verbose = false;
	int rc = 0;

	elf_version(EV_CURRENT);
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "-v") == 0)
			verbose = true;
		else
			rc |= check(argv[i], verbose);
	}
	return rc;
}
