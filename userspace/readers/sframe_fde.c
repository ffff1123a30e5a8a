/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Function descriptors of the three versions (spec, "SFrame Function Descriptor Entries").
 *
 *   V1  17 bytes	s32 start; u32 size, rows_at, nrows; u8 info
 *   V2  20 bytes	s32 start; u32 size, rows_at, nrows; u8 info, rep_size; u16 padding
 *   V3  16 bytes	s64 start; u32 size, attr_at
 *      + 5 bytes	u16 nrows; u8 info, info2, rep_size
 *			(these are among the rows, right before the function's rows)
 *
 * rows_at and attr_at count from the start of the FRE sub-section. Any field may be misaligned.
 */
#include "readers/sframe_fde.h"

#define INFO_ROW_TYPE  0x0f
#define INFO_PCMASK    0x10
/* AArch64: the key that signed the RA. Not needed by a reader that only strips the code. */
#define INFO_PAC_KEY_B 0x20
#define INFO_SIGNAL    0x80 /* version 3 */
#define INFO2_FDE_TYPE 0x1f /* 0 DEFAULT, 1 FLEX */

/* Version 1 has no such field; it was used for x86-64 PLTs only */
#define V1_REP_SIZE  16
#define V1_SIZE	     17
#define V2_SIZE	     20
#define V3_SIZE	     16
#define V3_ATTR_SIZE 5

unsigned int sframe_fde_size(uint8_t version)
{
	return version == 1 ? V1_SIZE : version == 2 ? V2_SIZE : V3_SIZE;
}

/*
 * Reads the start and size of entry i. False: it lies outside the section, which table_fit() has
 * excluded. The check is here because it lets the compiler drop the check of each read, in copies
 * with a constant size.
 */
static inline __attribute__((always_inline)) bool entry_at(const struct sframe *s,
							   const struct sframe_table *t, uint32_t i,
							   unsigned int size, struct bytes *b,
							   struct sframe_fde *ret)
{
	uint64_t at = t->fde_off + (uint64_t)i * size;

	*b = bytes_sub(&s->sec, at, size);
	b->be = t->be;
	*ret = (struct sframe_fde){ .start_off = at };
	if (b->err)
		return false;
	ret->start = size == V3_SIZE ? bytes_s64(b) : bytes_s32(b);
	ret->size = bytes_u32(b);
	return true;
}

void sframe_fde_span(const struct sframe *s, const struct sframe_table *t, uint32_t i,
		     struct sframe_fde *ret)
{
	struct bytes b;

	if (t->version == 1)
		entry_at(s, t, i, V1_SIZE, &b, ret);
	else if (t->version == 2)
		entry_at(s, t, i, V2_SIZE, &b, ret);
	else
		entry_at(s, t, i, V3_SIZE, &b, ret);
}

static const char *info_damage(uint8_t known, uint8_t info, uint8_t info2)
{
	if ((info & INFO_ROW_TYPE) > 2)
		return "unknown row type";
	if (info & ~known)
		return "unknown bits in its info byte";
	if (info2 & ~INFO2_FDE_TYPE)
		return "unknown bits in its second info byte";
	if (info2 > 1)
		return "unknown FDE type";
	return "PCMASK with a repetition size of 0";
}

static inline const char *take_info(struct sframe_fde *fde, uint8_t version, uint8_t info,
				    uint8_t info2, uint8_t rep_size)
{
	uint8_t known = INFO_ROW_TYPE | INFO_PCMASK | INFO_PAC_KEY_B |
			(version >= 3 ? INFO_SIGNAL : 0);

	if ((info & INFO_ROW_TYPE) > 2 || (info & ~known) || info2 > 1 ||
	    ((info & INFO_PCMASK) && !rep_size))
		return info_damage(known, info, info2);
	fde->row_type = info & INFO_ROW_TYPE;
	/*
	 * GNU ld 2.41 to 2.44 also writes a repetition size for the PLT's first entry, which does
	 * not repeat.
	 */
	fde->rep_size = (info & INFO_PCMASK) ? rep_size : 0;
	fde->flex = info2 == 1;
	fde->signal = (info & INFO_SIGNAL) != 0;
	return NULL;
}

/* Fields that the versions keep in different places. */
struct fde_rest {
	uint64_t at; /* the rows, bytes from the start of the sub-section */
	uint8_t info, info2, rep_size;
};

static inline __attribute__((always_inline)) bool load_v1_v2(const struct sframe *s,
							     const struct sframe_table *t,
							     uint32_t i, unsigned int size,
							     struct sframe_fde *ret,
							     struct fde_rest *rest)
{
	struct bytes b;

	if (!entry_at(s, t, i, size, &b, ret))
		return false;
	rest->at = bytes_u32(&b);
	ret->nrows = bytes_u32(&b);
	rest->info = bytes_u8(&b);
	rest->info2 = 0;
	rest->rep_size = size == V2_SIZE ? bytes_u8(&b) : V1_REP_SIZE;
	return true;
}

static bool load_v3(const struct sframe *s, const struct sframe_table *t, uint32_t i,
		    struct sframe_fde *ret, struct fde_rest *rest)
{
	struct bytes b, attr;
	uint64_t at;

	if (!entry_at(s, t, i, V3_SIZE, &b, ret))
		return false;
	at = bytes_u32(&b);
	if (at > t->fre_len || t->fre_len - at < V3_ATTR_SIZE)
		return false;
	attr = bytes_sub(&s->sec, t->fre_off + at, V3_ATTR_SIZE);
	attr.be = t->be;
	if (attr.err)
		return false;
	ret->nrows = bytes_u16(&attr);
	rest->info = bytes_u8(&attr);
	rest->info2 = bytes_u8(&attr);
	rest->rep_size = bytes_u8(&attr);
	rest->at = at + V3_ATTR_SIZE;
	return true;
}

const char *sframe_fde_load(const struct sframe *s, const struct sframe_table *t, uint32_t i,
			    struct sframe_fde *ret)
{
	struct fde_rest rest;
	const char *why;
	bool there;

	if (t->version == 1)
		there = load_v1_v2(s, t, i, V1_SIZE, ret, &rest);
	else if (t->version == 2)
		there = load_v1_v2(s, t, i, V2_SIZE, ret, &rest);
	else
		there = load_v3(s, t, i, ret, &rest);
	if (!there)
		return "its attributes lie outside the rows";
	why = take_info(ret, t->version, rest.info, rest.info2, rest.rep_size);
	if (why)
		return why;
	if (rest.at > t->fre_len)
		return "its rows start outside the table";
	if ((uint64_t)ret->nrows * sframe_row_min(ret->row_type) > t->fre_len - rest.at)
		return "it has more rows than the table has room for";
	ret->rows_off = t->fre_off + rest.at;
	return NULL;
}
