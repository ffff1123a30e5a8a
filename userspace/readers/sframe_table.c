/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds the tables of a .sframe section.
 *
 * A table is one header with its two sub-sections. GNU ld merges those of all objects into one.
 * Other linkers, and GNU ld when it meets an input that it cannot merge, put them one after
 * another, each at the next multiple of 8. The bytes between or after them may be zeros (padding,
 * space that a merge left over) or the remains of inputs.
 */
#include "readers/sframe_table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/vec.h"
#include "readers/sframe_fde.h"

#define SFRAME_MAGIC	   0xdee2
#define SFRAME_HEADER_SIZE 28 /* size without the auxiliary header; same in all versions */
/* sh_addralign of every producer; the next table starts at a multiple of it */
#define SFRAME_ALIGN	   8

/* abi_arch (spec, "SFrame ABI/arch Identifier"). */
enum { SFRAME_ABI_AARCH64_BE = 1, SFRAME_ABI_AARCH64_LE, SFRAME_ABI_AMD64_LE, SFRAME_ABI_S390X_BE };

struct header {
	bool be;
	uint8_t version, flags, abi;
	int8_t fixed_fp, fixed_ra;
	uint8_t aux_len;
	uint32_t nfdes, nfres, fre_len;
	uint32_t fde_off, fre_off; /* offsets from the header's end */
};

struct abi {
	enum row_arch arch;
	bool be;
	uint8_t since;	 /* first version that defines it */
	int8_t fixed_ra; /* bytes from the CFA; 0: given by rows */
	const char *name;
};

static const struct abi abis[] = {
	[SFRAME_ABI_AARCH64_BE] = { ROW_ARCH_AARCH64, true, 1, 0, "big-endian AArch64" },
	[SFRAME_ABI_AARCH64_LE] = { ROW_ARCH_AARCH64, false, 1, 0, "little-endian AArch64" },
	[SFRAME_ABI_AMD64_LE] = { ROW_ARCH_X86_64, false, 1, -8, "x86-64" },
	[SFRAME_ABI_S390X_BE] = { ROW_ARCH_S390X, true, 2, 0, "s390x" },
};

static const struct abi *abi_of(uint8_t number)
{
	return number && number < sizeof(abis) / sizeof(abis[0]) ? &abis[number] : NULL;
}

static uint8_t known_flags(uint8_t version)
{
	switch (version) {
	case 1:
		return SFRAME_F_SORTED | SFRAME_F_FRAME_POINTER;
	case 2:
		return SFRAME_F_SORTED | SFRAME_F_FRAME_POINTER | SFRAME_F_PCREL;
	default:
		return SFRAME_F_SORTED | SFRAME_F_PCREL;
	}
}

/*
 * Reads the fixed part of a header (spec, "SFrame Header"); the magic gives the byte order. False:
 * there is no header here.
 */
static bool header_read(struct bytes sec, uint64_t off, struct header *ret)
{
	struct bytes b = bytes_sub(&sec, off, SFRAME_HEADER_SIZE);
	uint16_t magic;

	b.be = false;
	magic = bytes_u16(&b);
	if (b.err || (magic != SFRAME_MAGIC && magic != __builtin_bswap16(SFRAME_MAGIC)))
		return false;
	b.be = ret->be = magic != SFRAME_MAGIC;
	ret->version = bytes_u8(&b);
	ret->flags = bytes_u8(&b);
	ret->abi = bytes_u8(&b);
	ret->fixed_fp = bytes_s8(&b);
	ret->fixed_ra = bytes_s8(&b);
	ret->aux_len = bytes_u8(&b);
	ret->nfdes = bytes_u32(&b);
	ret->nfres = bytes_u32(&b);
	ret->fre_len = bytes_u32(&b);
	ret->fde_off = bytes_u32(&b);
	ret->fre_off = bytes_u32(&b);
	return true;
}

/* Whether bytes that need not be a header look like one. */
static bool header_plausible(const struct header *h)
{
	return h->version >= 1 && h->version <= 3 && !(h->flags & ~known_flags(h->version)) &&
	       abi_of(h->abi) && abi_of(h->abi)->be == h->be && !h->aux_len;
}

#define REFUSE(...) (snprintf(why, DIAG_TEXT, __VA_ARGS__), false)

/* False: unsupported or impossible; `why` says what. */
static bool header_check(const struct header *h, enum row_arch arch, char *why)
{
	const struct abi *abi = abi_of(h->abi);

	if (h->version < 1 || h->version > 3)
		return REFUSE("version %u is not known (1 to 3 are), table refused", h->version);
	if (h->flags & ~known_flags(h->version))
		return REFUSE("flags 0x%02x are not known in version %u, table refused",
			      h->flags & ~known_flags(h->version), h->version);
	if (!abi || h->version < abi->since)
		return REFUSE("ABI %u is not known in version %u, table refused", h->abi,
			      h->version);
	if (abi->be != h->be)
		return REFUSE("the table is %s-endian, its ABI is %s, table refused",
			      h->be ? "big" : "little", abi->name);
	if (abi->arch != arch)
		return REFUSE("the table's ABI, %s, is not the file's, table refused", abi->name);
	if (h->aux_len)
		return REFUSE("an auxiliary header of %u bytes: none is defined, table refused",
			      h->aux_len);
	if (h->fixed_ra != abi->fixed_ra)
		return REFUSE("fixed RA offset %d where %s has %d, table refused", h->fixed_ra,
			      abi->name, abi->fixed_ra);
	if (h->fixed_fp)
		return REFUSE("fixed FP offset %d where %s has none, table refused", h->fixed_fp,
			      abi->name);
	return true;
}

static void table_place(const struct header *h, uint64_t off, struct sframe_table *ret)
{
	uint64_t base = off + SFRAME_HEADER_SIZE + h->aux_len;

	*ret = (struct sframe_table){
		.offset = off,
		.version = h->version,
		.flags = h->flags,
		.abi = h->abi,
		.be = h->be,
		.fixed_fp = h->fixed_fp,
		.fixed_ra = h->fixed_ra,
		.nfdes = h->nfdes,
		.nfres = h->nfres,
		.fde_off = base + h->fde_off,
		.fre_off = base + h->fre_off,
		.fre_len = h->fre_len,
	};
}

static uint64_t fdes_end(const struct sframe_table *t)
{
	return t->fde_off + (uint64_t)t->nfdes * sframe_fde_size(t->version);
}

static uint64_t table_end(const struct sframe_table *t)
{
	uint64_t fdes = fdes_end(t), fres = t->fre_off + t->fre_len;

	return fdes > fres ? fdes : fres;
}

static uint64_t align_up(uint64_t off)
{
	return (off + SFRAME_ALIGN - 1) & ~(uint64_t)(SFRAME_ALIGN - 1);
}

/*
 * The offset of the next plausible header after a table of unknown extent, or the section's length.
 */
static uint64_t rescue_table(struct bytes sec, uint64_t from)
{
	uint64_t off;
	struct header h;

	for (off = align_up(from); off < sec.len; off += SFRAME_ALIGN)
		if (header_read(sec, off, &h) && header_plausible(&h))
			return off;
	return sec.len;
}

/*
 * Fits the sub-sections into the section. Without a complete function index the table is lost. Rows
 * that were cut off, or whose length is wrong, cost only the functions that own them; the rows then
 * end before the next table, so that tables never share bytes.
 */
static bool table_fit(struct bytes sec, struct sframe_table *t, struct diag *diag)
{
	uint64_t end = t->fre_off + t->fre_len;

	if (fdes_end(t) > sec.len) {
		diag_add(diag, DIAG_MALFORMED, SFRAME_SECTION, t->offset,
			 "the index of %u functions ends %" PRIu64
			 " bytes past the section, table lost",
			 t->nfdes, fdes_end(t) - sec.len);
		return false;
	}
	if (end <= sec.len)
		return true;
	diag_add(diag, DIAG_MALFORMED, SFRAME_SECTION, t->offset,
		 "the rows end %" PRIu64 " bytes past the section", end - sec.len);
	end = rescue_table(sec, fdes_end(t));
	if (t->fre_off > end)
		t->fre_off = end;
	t->fre_len = end - t->fre_off;
	return true;
}

static bool all_zero(struct bytes sec, uint64_t from, uint64_t to)
{
	struct bytes b = bytes_sub(&sec, from, to - from);
	uint8_t any = 0;

	while (bytes_left(&b))
		any |= bytes_u8(&b);
	return !any;
}

/*
 * The next table's offset, or the section's length. `end` is where the last table ended. At the
 * next multiple of 8 the magic is enough for a header; farther away it must be plausible as a
 * whole.
 */
static uint64_t next_table(struct bytes sec, uint64_t end, struct diag *diag)
{
	uint64_t first = align_up(end), off;
	struct header h;

	for (off = first; off < sec.len; off += SFRAME_ALIGN)
		if (header_read(sec, off, &h) && (off == first || header_plausible(&h)))
			break;
	if (off > sec.len)
		off = sec.len;
	if (!all_zero(sec, end, off))
		diag_add(diag, DIAG_MALFORMED, SFRAME_SECTION, end,
			 "%" PRIu64 " bytes that are no SFrame table, ignored", off - end);
	else if (off - end >= SFRAME_ALIGN)
		diag_add(diag, DIAG_REPAIRED, SFRAME_SECTION, end,
			 "%" PRIu64 " zero bytes after a table", off - end);
	return off;
}

static int table_add(struct sframe *s, size_t *cap, const struct sframe_table *t)
{
	int err = vec_reserve(&s->tables, cap, (size_t)s->ntables + 1, sizeof(*s->tables));

	if (!err)
		s->tables[s->ntables++] = *t;
	return err;
}

static void note_no_header(struct bytes sec, struct diag *diag)
{
	uint16_t magic = bytes_u16(&sec);

	if (sec.err || sec.len < SFRAME_HEADER_SIZE)
		diag_add(diag, DIAG_MALFORMED, SFRAME_SECTION, 0,
			 "%zu bytes are too few for a header", sec.len);
	else
		diag_add(diag, DIAG_MALFORMED, SFRAME_SECTION, 0,
			 "bad magic 0x%04x (0x%04x is SFrame)", magic, SFRAME_MAGIC);
}

int sframe_tables_load(struct sframe *s, struct diag *diag)
{
	char why[DIAG_TEXT];
	struct sframe_table t;
	struct header h;
	uint64_t off = 0;
	size_t cap = 0;
	int err;

	if (s->sec.len && !header_read(s->sec, 0, &h)) {
		note_no_header(s->sec, diag);
		off = rescue_table(s->sec, SFRAME_ALIGN);
	}
	while (off < s->sec.len && header_read(s->sec, off, &h)) {
		if (!header_check(&h, s->arch, why)) {
			diag_add(diag, DIAG_MALFORMED, SFRAME_SECTION, off, "%s", why);
			off = rescue_table(s->sec, off + 1);
			continue;
		}
		table_place(&h, off, &t);
		if (!table_fit(s->sec, &t, diag)) {
			off = rescue_table(s->sec, off + 1);
			continue;
		}
		if (s->ntables == SFRAME_MAX_TABLES) {
			diag_add(diag, DIAG_MALFORMED, SFRAME_SECTION, off,
				 "more than %u tables, the rest is lost", SFRAME_MAX_TABLES);
			break;
		}
		err = table_add(s, &cap, &t);
		if (err)
			return err;
		off = next_table(s->sec, table_end(&t), diag);
	}
	if (s->ntables > 1)
		diag_add(diag, DIAG_REPAIRED, SFRAME_SECTION, s->tables[1].offset,
			 "%u tables one after another where one is expected", s->ntables);
	return 0;
}

uint64_t sframe_tables_extent(struct bytes sec)
{
	struct sframe_table t;
	uint64_t end = 0;
	struct header h;

	while (header_read(sec, align_up(end), &h) && header_plausible(&h)) {
		table_place(&h, align_up(end), &t);
		if (table_end(&t) > sec.len)
			return sec.len;
		end = table_end(&t);
	}
	return end;
}
