/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Function descriptors of the three versions (spec, "SFrame Function Descriptor Entries").
 *
 *   V1  17 bytes	s32 start; u32 size, rows_at, nrows; u8 info
 *   V2  20 bytes	s32 start; u32 size, rows_at, nrows; u8 info, rep_size; u16 padding
 *   V3  16 bytes	s64 start; u32 size, attr_at
 *      + 5 bytes	u16 nrows; u8 info, info2, rep_size	among the rows, right before the function's own
 *
 * rows_at and attr_at count from the start of the FRE sub-section. All of it may be misaligned.
 */
#include "unwind/sframe_internal.h"

#define INFO_ROW_TYPE	0x0f
#define INFO_PCMASK	0x10
#define INFO_PAC_KEY_B	0x20	/* AArch64; which key signed the RA matters to nobody who only strips the code */
#define INFO_SIGNAL	0x80	/* version 3 */
#define INFO2_FDE_TYPE	0x1f	/* 0 DEFAULT, 1 FLEX */

#define V1_REP_SIZE	16	/* version 1 has no such field; only x86-64 PLTs were described so */
#define V3_ATTR_SIZE	5

unsigned int sframe_fde_size(uint8_t version)
{
	return version == 1 ? 17 : version == 2 ? 20 : 16;
}

static struct bytes entry_at(const struct sframe *s, const struct sframe_table *t, uint32_t i)
{
	unsigned int size = sframe_fde_size(t->version);
	struct bytes b = bytes_sub(&s->sec, t->fde_off + (uint64_t)i * size, size);

	b.be = t->be;
	return b;
}

static void read_span(struct bytes *b, const struct sframe_table *t, uint32_t i, struct sframe_fde *ret)
{
	*ret = (struct sframe_fde){ .start_off = t->fde_off + (uint64_t)i * sframe_fde_size(t->version) };
	ret->start = t->version >= 3 ? bytes_s64(b) : bytes_s32(b);
	ret->size = bytes_u32(b);
}

void sframe_fde_span(const struct sframe *s, const struct sframe_table *t, uint32_t i, struct sframe_fde *ret)
{
	struct bytes b = entry_at(s, t, i);

	read_span(&b, t, i, ret);
}

static const char *take_info(struct sframe_fde *fde, uint8_t version, uint8_t info, uint8_t info2, uint8_t rep_size)
{
	uint8_t known = INFO_ROW_TYPE | INFO_PCMASK | INFO_PAC_KEY_B | (version >= 3 ? INFO_SIGNAL : 0);

	fde->row_type = info & INFO_ROW_TYPE;
	if (fde->row_type > 2)
		return "unknown row type";
	if (info & ~known)
		return "unknown bits in its info byte";
	if (info2 & ~INFO2_FDE_TYPE)
		return "unknown bits in its second info byte";
	if (info2 > 1)
		return "unknown FDE type";
	if ((info & INFO_PCMASK) && !rep_size)
		return "PCMASK with a repetition size of 0";
	/* GNU ld 2.41 to 2.44 writes a repetition size for the PLT's first entry too, which does not repeat. */
	fde->rep_size = (info & INFO_PCMASK) ? rep_size : 0;
	fde->flex = info2 == 1;
	fde->signal = (info & INFO_SIGNAL) != 0;
	return NULL;
}

const char *sframe_fde_load(const struct sframe *s, const struct sframe_table *t, uint32_t i, struct sframe_fde *ret)
{
	struct bytes b = entry_at(s, t, i), attr;
	uint8_t info, info2 = 0, rep_size = V1_REP_SIZE;
	const char *why;
	uint64_t at;

	read_span(&b, t, i, ret);
	at = bytes_u32(&b);
	if (t->version < 3) {
		ret->nrows = bytes_u32(&b);
		info = bytes_u8(&b);
		if (t->version == 2)
			rep_size = bytes_u8(&b);
	} else {
		if (at > t->fre_len || t->fre_len - at < V3_ATTR_SIZE)
			return "its attributes lie outside the rows";
		attr = bytes_sub(&s->sec, t->fre_off + at, V3_ATTR_SIZE);
		attr.be = t->be;
		ret->nrows = bytes_u16(&attr);
		info = bytes_u8(&attr);
		info2 = bytes_u8(&attr);
		rep_size = bytes_u8(&attr);
		at += V3_ATTR_SIZE;
	}
	why = take_info(ret, t->version, info, info2, rep_size);
	if (why)
		return why;
	if (at > t->fre_len)
		return "its rows start outside the table";
	if (ret->nrows > (t->fre_len - at) / sframe_row_min(ret->row_type))
		return "it has more rows than the table has room for";
	ret->rows_off = t->fre_off + at;
	return NULL;
}
