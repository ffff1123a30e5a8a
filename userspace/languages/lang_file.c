/* SPDX-License-Identifier: BSD-2-Clause */
/* What the languages share: reading the runtime's file, and plain records of code. */
#include <string.h>

#include "languages/lang.h"

#define LOOP_MAX  (1u << 20) /* bytes of a loop's code; CPython's has up to 100,000 */
/* Jumps into a part of the loop, and back, at least. Bytes that only look like one are fewer. */
#define JUMPS_MIN 4
#define PARTS_MAX 32

void lang_plain_parts(const struct sf_code *rec, struct lang_parts *ret)
{
	ret->name = (struct lang_text){ rec->name, rec->name_len, rec->name_unit };
	ret->file = (struct lang_text){ rec->file, rec->file_len, rec->file_unit };
	ret->lines = rec->lines;
	ret->lines_len = rec->lines_len;
}

const char *lang_file_base(const struct lang_code *c)
{
	const char *base = strrchr(c->file, '/');

	return base && base[1] ? base + 1 : c->file;
}

uint64_t lang_address(const struct lang_file *f, uint64_t loop, uint64_t addr)
{
	uint64_t off = 0;

	elf_image_vaddr_to_offset(f->img, loop, &off);
	return addr - loop + off;
}

bool lang_bytes(const struct lang_file *f, uint64_t addr, uint64_t size, struct elf_blob *ret)
{
	uint64_t off;

	return elf_image_vaddr_to_offset(f->img, addr, &off) &&
	       !elf_image_read(f->img, off, size, ret);
}

uint8_t lang_tls(const struct lang_file *f, const char *name, uint64_t *ret)
{
	/* mov %fs:disp32, %rax; lea disp32(%rip), %rdi; call __tls_get_addr */
	static const uint8_t mov[] = { 0x64, 0x48, 0x8b, 0x04, 0x25 };
	static const uint8_t lea[] = { 0x66, 0x48, 0x8d, 0x3d };
	struct elf_dynsym_value sym;
	struct elf_blob b = { 0 };
	uint8_t how = SF_TLS_NONE;

	if (!elf_dynsym_find(&f->syms, name, &sym) ||
	    !lang_bytes(f, sym.addr, LANG_FUNCTION_BYTES, &b))
		return SF_TLS_NONE;
	for (; bytes_left(&b.view) && b.view.pos < sym.size && !how; bytes_skip(&b.view, 1)) {
		struct bytes at = b.view;

		if (bytes_are(&at, at.pos, mov, sizeof(mov))) {
			bytes_skip(&at, sizeof(mov));
			how = SF_TLS_EXEC;
			*ret = (uint64_t)(int64_t)bytes_s32(&at);
		} else if (bytes_are(&at, at.pos, lea, sizeof(lea))) {
			bytes_skip(&at, sizeof(lea));
			how = SF_TLS_GOT;
			*ret = (uint64_t)(int64_t)bytes_s32(&at);
			*ret += sym.addr + at.pos;
		}
		if (at.err)
			how = SF_TLS_NONE;
	}
	elf_blob_free(&b);
	return how;
}

/* ---- The parts of a loop ---- */

struct part {
	uint64_t start, end;
	uint32_t jumps;
};

struct parts {
	struct part list[PARTS_MAX];
	uint32_t n;
};

/* The target of the direct jump at the position, relative to the code; false: none is there. */
static bool jump_x86(struct bytes code, int64_t *ret)
{
	uint8_t op = bytes_u8(&code);

	if (op == 0x0f) { /* jcc rel32 */
		if ((bytes_u8(&code) & 0xf0) != 0x80)
			return false;
	} else if (op != 0xe9) { /* jmp rel32 */
		return false;
	}
	*ret = bytes_s32(&code);
	*ret += (int64_t)code.pos;
	return !code.err;
}

static bool jump_arm64(struct bytes code, int64_t *ret)
{
	int64_t at = (int64_t)code.pos;
	uint32_t insn = bytes_u32(&code);

	if (code.err || at & 3)
		return false;
	if (insn >> 26 == 0x05) /* b */
		*ret = at + (int32_t)(insn << 6) / 64 * 4;
	else if (insn >> 24 == 0x54) /* b.cond */
		*ret = at + ((int32_t)(insn << 8) >> 13) * 4;
	else
		return false;
	return true;
}

/* Counts a jump to an address that is inside a function, but is not its start. */
static void count_jump(const struct lang_file *f, struct parts *p, uint64_t to)
{
	struct part part = { .jumps = 1 };
	uint32_t i;

	for (i = 0; i < p->n; i++) {
		if (to >= p->list[i].start && to < p->list[i].end) {
			p->list[i].jumps += to != p->list[i].start;
			return;
		}
	}
	if (p->n < PARTS_MAX && f->functions->at(f->functions->ctx, to, &part.start, &part.end) &&
	    to != part.start)
		p->list[p->n++] = part;
}

/* The functions that the code jumps into. */
static void jumps_out(const struct lang_file *f, uint64_t start, uint64_t end, struct parts *ret)
{
	struct elf_blob code = { 0 };
	int64_t rel;

	ret->n = 0;
	if (end - start > LOOP_MAX || !lang_bytes(f, start, end - start, &code))
		return;
	for (; bytes_left(&code.view); bytes_skip(&code.view, 1)) {
		bool jump = f->img->machine == EM_AARCH64 ? jump_arm64(code.view, &rel)
							  : jump_x86(code.view, &rel);

		if (jump && (rel < 0 || (uint64_t)rel >= end - start))
			count_jump(f, ret, start + (uint64_t)rel);
	}
	elf_blob_free(&code);
}

static bool jumps_back(const struct lang_file *f, const struct part *from, uint64_t to)
{
	struct parts p;

	jumps_out(f, from->start, from->end, &p);
	for (uint32_t i = 0; i < p.n; i++)
		if (to >= p.list[i].start && to < p.list[i].end)
			return p.list[i].jumps >= JUMPS_MIN;
	return false;
}

static bool add_span(const struct lang_file *f, const struct part *p, struct sf_span *ret)
{
	ret->size = p->end - p->start;
	return elf_image_vaddr_to_offset(f->img, p->start, &ret->start);
}

uint32_t lang_loops(const struct lang_file *f, uint64_t addr, struct sf_span ret[SF_LANG_LOOPS])
{
	struct part own = { 0 };
	struct parts p;
	uint32_t n = 0;

	if (!f->functions->at(f->functions->ctx, addr, &own.start, &own.end) ||
	    !add_span(f, &own, &ret[n++]))
		return 0;
	jumps_out(f, own.start, own.end, &p);
	for (uint32_t i = 0; i < p.n && n < SF_LANG_LOOPS; i++)
		if (p.list[i].jumps >= JUMPS_MIN && jumps_back(f, &p.list[i], own.start) &&
		    add_span(f, &p.list[i], &ret[n]))
			n++;
	return n;
}
