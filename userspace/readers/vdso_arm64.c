/* SPDX-License-Identifier: BSD-2-Clause */
#include "readers/vdso_arm64.h"

#include <elf.h>
#include <stdlib.h>

#include "rows/fntab.h"

#define FP 29
#define LR 30
#define SP 31

#define VDSO_MAX (64u << 10)

/* Instructions, with their operands masked out. rn = sp in all of them. */
#define STP_PRE(i)	 (((i)&0xffc003e0) == 0xa98003e0) /* stp x, x, [sp, #n]! */
#define LDP_POST(i)	 (((i)&0xffc003e0) == 0xa8c003e0) /* ldp x, x, [sp], #n */
#define STP(i)		 (((i)&0xffc003e0) == 0xa90003e0) /* stp x, x, [sp, #n] */
#define LDP(i)		 (((i)&0xffc003e0) == 0xa94003e0)
#define PAIR_OFF(i)	 (((int32_t)((i) << 10) >> 25) * 8)
#define IS_RECORD(i)	 (((i)&0x7c1f) == (LR << 10 | FP)) /* the pair is x29, x30 */
#define SUB_SP(i)	 (((i)&0xffc003ff) == 0xd10003ff)  /* sub sp, sp, #n */
#define ADD_SP(i)	 (((i)&0xffc003ff) == 0x910003ff)
#define ADD_FP(i)	 (((i)&0xffc003ff) == 0x910003fd) /* add x29, sp, #n; with 0: mov x29, sp */
#define IMM12(i)	 ((int32_t)((i) >> 10 & 0xfff))
#define RET(i)		 ((i) == 0xd65f03c0)
#define BRANCH(i)	 (((i)&0xfc000000) == 0x14000000)
#define MOV_X8_SIGRETURN 0xd2801168u
#define SVC_0		 0xd4000001u

struct frame {
	int32_t depth;	  /* CFA - sp */
	int32_t record;	  /* CFA - address of the saved x29 and x30; 0: not saved */
	int32_t fp_depth; /* CFA - x29, if record and by_fp */
	bool by_fp;
};

struct scan {
	struct rowbuf *out;
	/* body: the frame after the prologue, which holds again after an early return */
	struct frame now, body;
	uint64_t from; /* where `now` begins */
};

/*
 * struct rt_sigframe at sp: siginfo (128), ucontext up to its sigcontext (176), fault address,
 * x0..x30, sp, pc.
 */
const struct row a64_restorer_row = {
	.cfa = { .kind = RULE_REG_MEM, .reg = SP, .off = 560 },
	.ra = { .kind = RULE_REG_MEM, .reg = SP, .off = 568 },
	.fp = { .kind = RULE_REG_MEM, .reg = SP, .off = 544 },
	.source = ROW_EH_FRAME,
	.flags = ROW_SIGNAL,
};

static int add_row(struct scan *s, uint64_t start, uint64_t end, struct row row)
{
	row.start = start;
	row.end = end;
	return start < end ? rowbuf_push(s->out, &row) : 0;
}

/* Ends the range of the current frame. */
static int flush(struct scan *s, uint64_t end)
{
	const struct frame *f = &s->now;
	struct row row = {
		.cfa = { .kind = RULE_REG,
			 .reg = f->by_fp ? FP : SP,
			 .off = f->by_fp ? f->fp_depth : f->depth },
		.ra = { .kind = RULE_REG, .reg = LR },
		.fp = { .kind = RULE_SAME },
		.source = ROW_EH_FRAME,
	};
	int err;

	if (f->record) {
		row.ra = (struct rule){ .kind = RULE_CFA_MEM, .off = 8 - f->record };
		row.fp = (struct rule){ .kind = RULE_CFA_MEM, .off = -f->record };
	}
	err = add_row(s, s->from, end, row);
	s->from = end;
	return err;
}

static bool same(const struct frame *a, const struct frame *b)
{
	return a->depth == b->depth && a->record == b->record && a->by_fp == b->by_fp &&
	       a->fp_depth == b->fp_depth;
}

/* The frame after the instruction. */
static struct frame after(struct scan *s, uint32_t insn)
{
	struct frame f = s->now;

	if (STP_PRE(insn)) {
		f.depth -= PAIR_OFF(insn);
		if (IS_RECORD(insn))
			f.record = f.depth;
	} else if (STP(insn) && IS_RECORD(insn)) {
		f.record = f.depth - PAIR_OFF(insn);
	} else if (SUB_SP(insn)) {
		f.depth += IMM12(insn);
	} else if (ADD_FP(insn)) {
		f.by_fp = true;
		f.fp_depth = f.depth - IMM12(insn);
	} else if (LDP_POST(insn) || LDP(insn)) {
		if (IS_RECORD(insn)) {
			f.record = 0;
			f.by_fp = false;
		}
		f.depth -= LDP_POST(insn) ? PAIR_OFF(insn) : 0;
		return f;
	} else if (ADD_SP(insn)) {
		f.depth -= IMM12(insn);
		return f;
	} else {
		return RET(insn) || (BRANCH(insn) && !f.depth && !f.record) ? s->body : f;
	}
	s->body = f;
	return f;
}

static int scan_function(struct scan *s, struct bytes code, uint64_t vaddr)
{
	uint32_t last = 0;
	int err = 0;

	s->now = s->body = (struct frame){ 0 };
	s->from = vaddr;
	while (!err && bytes_left(&code) >= 4) {
		uint64_t at = vaddr + code.pos;
		uint32_t insn = bytes_u32(&code);
		struct frame next = after(s, insn);

		if (!same(&next, &s->now))
			err = flush(s, at + 4);
		s->now = next;
		if (!err && last == MOV_X8_SIGRETURN && insn == SVC_0 && at >= s->from + 8) {
			/*
			 * The restorer is entered by a return to its first byte, and the unwinder
			 * looks up the byte before a return address.
			 */
			err = flush(s, at - 8);
			if (!err)
				err = add_row(s, at - 8, at + 4, a64_restorer_row);
			s->from = at + 4;
		}
		last = insn;
	}
	return err ? err : flush(s, vaddr + code.pos);
}

static int functions(const struct elf_image *img, const struct elf_phdr *seg, struct fntab *fns)
{
	const struct elf_shdr *s = elf_image_section_of_type(img, SHT_DYNSYM);
	struct elf_blob syms = { 0 };
	int err = 0;

	if (!s || s->size > VDSO_MAX || elf_image_section_bytes(img, s, &syms))
		return 0;
	while (!err && bytes_left(&syms.view) >= sizeof(Elf64_Sym)) {
		uint8_t info;
		uint16_t shndx;
		uint64_t value, size;

		bytes_skip(&syms.view, 4);
		info = bytes_u8(&syms.view);
		bytes_skip(&syms.view, 1);
		shndx = bytes_u16(&syms.view);
		value = bytes_u64(&syms.view);
		size = bytes_u64(&syms.view);
		if (ELF64_ST_TYPE(info) == STT_FUNC && shndx && size >= 4 && size <= seg->filesz &&
		    !(value & 3) && !(size & 3) && value >= seg->vaddr &&
		    value - seg->vaddr <= seg->filesz - size)
			err = fntab_push(fns, value, value + size, 0);
	}
	elf_blob_free(&syms);
	return err;
}

static int by_start(const void *a, const void *b)
{
	const struct fn *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

int vdso_arm64_rows(const struct elf_image *img, struct rowbuf *out)
{
	struct elf_phdr segs[EXEC_SEGMENTS_MAX];
	struct scan s = { .out = out };
	struct elf_blob code = { 0 };
	struct fntab fns = { 0 };
	uint64_t at = 0, start;
	int err;

	if (exec_segments(img, segs, EXEC_SEGMENTS_MAX) != 1 || segs[0].filesz > VDSO_MAX ||
	    elf_image_read(img, segs[0].offset, segs[0].filesz & ~3ull, &code))
		return 0;
	err = functions(img, &segs[0], &fns);
	if (fns.n)
		qsort(fns.fns, fns.n, sizeof(*fns.fns), by_start);
	for (size_t i = 0; i < fns.n && !err; i++) {
		start = fns.fns[i].start - segs[0].vaddr;
		if (start < at)
			continue;
		err = scan_function(&s, bytes_sub(&code.view, at, start - at), segs[0].vaddr + at);
		at = fns.fns[i].end - segs[0].vaddr;
		if (!err)
			err = scan_function(&s, bytes_sub(&code.view, start, at - start),
					    segs[0].vaddr + start);
	}
	if (!err)
		err = scan_function(&s, bytes_sub(&code.view, at, code.view.len - at),
				    segs[0].vaddr + at);
	elf_blob_free(&code);
	fntab_free(&fns);
	return err;
}
