/* SPDX-License-Identifier: BSD-2-Clause */
/* Constants that the code of a file stores to fixed addresses, as static initialisers do. */
#include <string.h>

#include "base/arm64.h"
#include "languages/lang.h"

#define PIECE (1u << 20) /* bytes of code that are looked at at once */
#define OVER  (1u << 16) /* and more, for a function that begins before the end */

struct stores {
	void (*fn)(void *ctx, uint64_t addr, uint64_t value);
	void *ctx;
};

/* ---- x86-64: movq $imm32, disp32(%rip) ---- */

static void take_x86(const struct stores *s, struct bytes insn, uint64_t addr)
{
	uint64_t to, value;

	bytes_skip(&insn, 3);
	to = addr + 11 + (uint64_t)(int64_t)bytes_s32(&insn);
	value = (uint64_t)(int64_t)bytes_s32(&insn);
	if (!insn.err)
		s->fn(s->ctx, to, value);
}

static void scan_x86(const struct stores *s, struct bytes code, uint64_t addr)
{
	static const uint8_t mov[] = { 0x48, 0xc7, 0x05 };

	while (bytes_left(&code)) {
		const uint8_t *at = bytes_here(&code), *hit = memchr(at, mov[1], bytes_left(&code));

		if (!hit)
			return;
		bytes_skip(&code, (size_t)(hit - at));
		if (code.pos && bytes_are(&code, code.pos - 1, mov, sizeof(mov))) {
			struct bytes insn = code;

			bytes_seek(&insn, code.pos - 1);
			take_x86(s, insn, addr + code.pos - 1);
		}
		bytes_skip(&code, 1);
	}
}

/* ---- AArch64: adrp, add and mov make constants in registers, str and stp store them ---- */

#define REG_ZERO 31

struct constants {
	uint64_t value[REG_ZERO + 1];
	uint32_t known; /* bit n: xn */
};

static void set(struct constants *c, uint32_t reg, bool known, uint64_t value)
{
	c->value[reg] = value;
	c->known = known ? c->known | 1u << reg : c->known & ~(1u << reg);
	c->value[REG_ZERO] = 0;
	c->known |= 1u << REG_ZERO;
}

static bool knows(const struct constants *c, uint32_t reg)
{
	return c->known >> reg & 1;
}

/* A store of xT to [xN + off] */
static void take_arm64(const struct constants *c, uint32_t t, uint32_t n, int64_t off,
		       const struct stores *s)
{
	if (n != REG_ZERO && knows(c, n) && knows(c, t))
		s->fn(s->ctx, c->value[n] + (uint64_t)off, c->value[t]);
}

/* str xT, [xN, #imm] and stp xT, xU, [xN, #imm]. False: another instruction. */
static bool store(const struct constants *c, uint32_t insn, const struct stores *s)
{
	uint32_t t = insn & 31, n = insn >> 5 & 31, u = insn >> 10 & 31;
	int64_t pair = ((int32_t)(insn << 10) >> 25) * 8ll;

	if ((insn & 0xffc00000) == 0xf9000000) {
		take_arm64(c, t, n, (insn >> 10 & 0xfff) * 8, s);
	} else if ((insn & 0xffc00000) == 0xa9000000) {
		take_arm64(c, t, n, pair, s);
		take_arm64(c, u, n, pair + 8, s);
	} else {
		return false;
	}
	return true;
}

static void step(struct constants *c, uint32_t insn, uint64_t pc)
{
	uint32_t d = insn & 31, n = insn >> 5 & 31, m = insn >> 16 & 31;
	uint32_t shift = (insn >> 21 & 3) * 16;
	uint64_t imm12 = insn >> 10 & 0xfff, imm16 = (uint64_t)(insn >> 5 & 0xffff) << shift;

	if (arm64_is_jump(insn))
		c->known = 1u << REG_ZERO;
	else if (arm64_is_adr(insn))
		set(c, d, true, arm64_adr_target(insn, pc));
	else if ((insn & 0xff800000) == 0x91000000) /* add xD, xN, #imm */
		set(c, d, n != REG_ZERO && knows(c, n),
		    c->value[n] + (insn & 1u << 22 ? imm12 << 12 : imm12));
	else if ((insn & 0xff800000) == 0xd2800000) /* mov xD, #imm */
		set(c, d, true, imm16);
	else if ((insn & 0xff800000) == 0x92800000) /* mov xD, #~imm */
		set(c, d, true, ~imm16);
	else if ((insn & 0xff800000) == 0xf2800000) /* movk */
		set(c, d, knows(c, d), (c->value[d] & ~(0xffffull << shift)) | imm16);
	else if ((insn & 0xffe0ffe0) == 0xaa0003e0) /* mov xD, xM */
		set(c, d, knows(c, m), c->value[m]);
	else
		set(c, d, false, 0);
}

static void scan_arm64(const struct stores *s, struct bytes code, uint64_t addr)
{
	struct constants c = { .known = 1u << REG_ZERO };

	while (bytes_left(&code) >= 4) {
		uint64_t pc = addr + code.pos;
		uint32_t insn = bytes_u32(&code);

		if (!store(&c, insn, s))
			step(&c, insn, pc);
	}
}

void lang_each_store(const struct lang_file *f,
		     void (*fn)(void *ctx, uint64_t addr, uint64_t value), void *ctx)
{
	const struct elf_image *img = f->img;
	struct stores s = { fn, ctx };

	for (uint32_t i = 0; i < img->nphdrs; i++) {
		const struct elf_phdr *p = &img->phdrs[i];

		if (p->type != PT_LOAD || !(p->flags & PF_X))
			continue;
		for (uint64_t at = 0; at < p->filesz; at += PIECE) {
			uint64_t len = p->filesz - at < PIECE + OVER ? p->filesz - at
								     : PIECE + OVER;
			struct elf_blob b = { 0 };

			if (!elf_image_read(img, p->offset + at, len, &b)) {
				if (img->machine == EM_AARCH64)
					scan_arm64(&s, b.view, p->vaddr + at);
				else
					scan_x86(&s, b.view, p->vaddr + at);
			}
			elf_blob_free(&b);
		}
	}
}
