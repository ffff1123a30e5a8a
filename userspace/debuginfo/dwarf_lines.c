/* SPDX-License-Identifier: BSD-2-Clause */
#include "debuginfo/dwarf_lines.h"

enum standard {
	COPY = 1,
	ADVANCE_PC,
	ADVANCE_LINE,
	SET_FILE,
	SET_COLUMN,
	NEGATE_STMT,
	SET_BASIC_BLOCK,
	CONST_ADD_PC,
	FIXED_ADVANCE_PC,
	SET_PROLOGUE_END,
	SET_EPILOGUE_BEGIN,
	SET_ISA,
};

enum extended { END_SEQUENCE = 1, SET_ADDRESS, SET_DISCRIMINATOR = 4 };

struct program {
	struct bytes code;
	const uint8_t *lengths; /* operands of standard opcodes, from 1 on */
	uint8_t least, range, first_special;
	int8_t line_base;
	dwarf_row_fn fn;
	void *ctx;
	/* The state: the row at hand, and the one before it */
	uint64_t sequence, addr;
	uint32_t file, line, discriminator;
	bool has_last;
	struct dwarf_row last;
};

/* false: not a version that is known, or damaged. */
static bool read_header(struct program *p, const struct bytes *section, uint64_t off)
{
	struct bytes b = bytes_sub(section, off, off < section->len ? section->len - off : 0);
	uint64_t size = bytes_u32(&b), program;
	bool wide = size == UINT32_MAX;
	uint16_t version;

	if (wide)
		size = bytes_u64(&b);
	b = bytes_sub(&b, b.pos, size);
	version = bytes_u16(&b);
	if (version < 2 || version > 5)
		return false;
	if (version >= 5)
		bytes_skip(&b, 2); /* bytes of an address and of a segment */
	program = wide ? bytes_u64(&b) : bytes_u32(&b);
	program = program <= b.len - b.pos ? b.pos + program : b.len;
	p->least = bytes_u8(&b);
	bytes_skip(&b, version >= 4 ? 2 : 1); /* operations, is_stmt */
	p->line_base = bytes_s8(&b);
	p->range = bytes_u8(&b);
	p->first_special = bytes_u8(&b);
	if (!p->range || !p->first_special)
		return false;
	p->lengths = bytes_take(&b, p->first_special - 1u);
	bytes_seek(&b, program);
	p->code = b;
	return !b.err;
}

static void begin_sequence(struct program *p)
{
	p->sequence = p->addr = 0;
	p->file = p->line = 1;
	p->discriminator = 0;
	p->has_last = false;
}

/* A row ends the one before it. Of several rows at one address the last one counts. */
static void put_row(struct program *p)
{
	if (p->has_last && p->last.start < p->addr) {
		p->last.end = p->addr;
		p->fn(p->ctx, &p->last);
	}
	p->last = (struct dwarf_row){
		.sequence = p->sequence,
		.start = p->addr,
		.end = p->addr,
		.file = p->file,
		.line = p->line,
		.discriminator = p->discriminator,
	};
	p->has_last = true;
	p->discriminator = 0;
}

static void run_special(struct program *p, uint8_t op)
{
	unsigned int n = op - (unsigned int)p->first_special;

	p->addr += (uint64_t)p->least * (n / p->range);
	p->line += (uint32_t)(p->line_base + (int)(n % p->range));
	put_row(p);
}

static void run_extended(struct program *p)
{
	uint64_t len = bytes_uleb(&p->code);
	struct bytes b = bytes_sub(&p->code, p->code.pos, len);
	uint8_t op = bytes_u8(&b);

	if (op == END_SEQUENCE) {
		put_row(p);
		begin_sequence(p);
	} else if (op == SET_ADDRESS && len >= 5) {
		p->addr = len >= 9 ? bytes_u64(&b) : bytes_u32(&b);
		p->sequence = p->addr;
	} else if (op == SET_DISCRIMINATOR) {
		p->discriminator = (uint32_t)bytes_uleb(&b);
	}
	bytes_skip(&p->code, len);
}

static void run_standard(struct program *p, uint8_t op)
{
	switch (op) {
	case COPY:
		put_row(p);
		return;
	case ADVANCE_PC:
		p->addr += p->least * bytes_uleb(&p->code);
		return;
	case ADVANCE_LINE:
		p->line += (uint32_t)bytes_sleb(&p->code);
		return;
	case SET_FILE:
		p->file = (uint32_t)bytes_uleb(&p->code);
		return;
	case CONST_ADD_PC:
		p->addr += (uint64_t)p->least * ((255u - p->first_special) / p->range);
		return;
	case FIXED_ADVANCE_PC:
		p->addr += bytes_u16(&p->code);
		return;
	default:
		for (unsigned int i = p->lengths[op - 1]; i; i--)
			bytes_uleb(&p->code);
		return;
	}
}

void dwarf_lines_read(const struct bytes *section, uint64_t off, dwarf_row_fn fn, void *ctx)
{
	struct program p = { .fn = fn, .ctx = ctx };

	if (!read_header(&p, section, off))
		return;
	begin_sequence(&p);
	while (bytes_left(&p.code)) {
		uint8_t op = bytes_u8(&p.code);

		if (op >= p.first_special)
			run_special(&p, op);
		else if (op)
			run_standard(&p, op);
		else
			run_extended(&p);
	}
}
