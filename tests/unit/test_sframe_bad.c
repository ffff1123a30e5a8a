/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The SFrame reader against malformed sections: each refusal, and that none costs
 * more than it must.
 */
#include <time.h>

#include "sframe_case.h"

/*
 * Refusals. Two functions of two rows each; a number is changed in the section, at a fixed offset
 * or in the first function. What is left: nothing, the second function, or both (the damage costs
 * less).
 */
enum { LEFT_NONE = 0, LEFT_SECOND = 2, LEFT_BOTH = 4 }; /* rows */

struct refusal {
	uint8_t version, abi;
	unsigned int off, size;
	uint64_t value;
	unsigned int left;
	const char *note;
};

#define FDE(field)  (28 + (field))
#define ROWS(v)	    (28 + 2 * ((v) == 1 ? 17 : (v) == 2 ? 20 : 16) + ((v) == 3 ? 5 : 0))
#define ATTR(field) (28 + 2 * 16 + (field))

static const struct refusal refusals[] = {
	{ 2, SENC_AMD64, 0, 2, 0xdee3, LEFT_NONE, "bad magic 0xdee3" },
	{ 2, SENC_AMD64, 2, 1, 0, LEFT_NONE, "version 0 is not known" },
	{ 2, SENC_AMD64, 2, 1, 9, LEFT_NONE, "version 9 is not known" },
	{ 1, SENC_AMD64, 3, 1, 0x05, LEFT_NONE, "flags 0x04 are not known in version 1" },
	{ 2, SENC_AMD64, 3, 1, 0x15, LEFT_NONE, "flags 0x10 are not known in version 2" },
	{ 3, SENC_AMD64, 3, 1, 0x07, LEFT_NONE, "flags 0x02 are not known in version 3" },
	{ 2, SENC_AMD64, 4, 1, 0, LEFT_NONE, "ABI 0 is not known" },
	{ 2, SENC_AMD64, 4, 1, 5, LEFT_NONE, "ABI 5 is not known" },
	{ 2, SENC_AMD64, 4, 1, 2, LEFT_NONE, "little-endian AArch64, is not the file's" },
	{ 2, SENC_AMD64, 4, 1, 4, LEFT_NONE, "its ABI is s390x" },
	{ 1, SENC_S390X, 4, 1, 4, LEFT_NONE, "ABI 4 is not known in version 1" },
	{ 2, SENC_AMD64, 5, 1, 8, LEFT_NONE, "fixed FP offset 8" },
	{ 2, SENC_AMD64, 6, 1, 0, LEFT_NONE, "fixed RA offset 0" },
	{ 2, SENC_AARCH64_LE, 6, 1, 0xf8, LEFT_NONE, "fixed RA offset -8" },
	{ 3, SENC_AMD64, 7, 1, 4, LEFT_NONE, "auxiliary header of 4 bytes" },
	{ 3, SENC_AMD64, 8, 4, 0xffffffff, LEFT_NONE, "index of 4294967295 functions" },
	{ 1, SENC_AMD64, 8, 4, 1000, LEFT_NONE, "index of 1000 functions" },
	{ 2, SENC_AMD64, 20, 4, 0xfffffff0, LEFT_NONE, "bytes past the section" },
	{ 2, SENC_AMD64, 24, 4, 0xfffffff0, LEFT_NONE, "the rows end" },
	{ 2, SENC_AMD64, 16, 4, 0xfffffff0, LEFT_BOTH, "the rows end" },
	/* function descriptors */
	{ 1, SENC_AMD64, FDE(16), 1, 0x03, LEFT_SECOND, "unknown row type" },
	{ 2, SENC_AMD64, FDE(16), 1, 0x0f, LEFT_SECOND, "unknown row type" },
	{ 2, SENC_AMD64, FDE(16), 1, 0x40, LEFT_SECOND, "unknown bits in its info byte" },
	{ 2, SENC_AMD64, FDE(16), 1, 0x80, LEFT_SECOND, "unknown bits in its info byte" },
	{ 2, SENC_AMD64, FDE(16), 2, 0x0010, LEFT_SECOND, "repetition size of 0" },
	{ 3, SENC_AMD64, ATTR(2), 1, 0x40, LEFT_SECOND, "unknown bits in its info byte" },
	{ 3, SENC_AMD64, ATTR(2), 1, 0x10, LEFT_SECOND, "repetition size of 0" },
	{ 3, SENC_AMD64, ATTR(3), 1, 0x02, LEFT_SECOND, "unknown FDE type" },
	{ 3, SENC_AMD64, ATTR(3), 1, 0x20, LEFT_SECOND, "unknown bits in its second info byte" },
	{ 3, SENC_AMD64, ATTR(0), 2, 0xffff, LEFT_SECOND, "more rows than the table has room for" },
	{ 3, SENC_AMD64, FDE(12), 4, 0xffffffff, LEFT_SECOND, "attributes lie outside" },
	{ 2, SENC_AMD64, FDE(12), 4, 0xffffffff, LEFT_SECOND,
	  "more rows than the table has room for" },
	{ 2, SENC_AMD64, FDE(8), 4, 0xffffffff, LEFT_SECOND, "rows start outside the table" },
	{ 2, SENC_AMD64, FDE(4), 4, 0x10000, LEFT_BOTH, "past the executable segment" },
	/* rows */
	{ 2, SENC_AMD64, ROWS(2) + 1, 1, 0x63, LEFT_SECOND, "row 0: word size code 3" },
	{ 2, SENC_AMD64, ROWS(2) + 1, 1, 0x0f, LEFT_SECOND, "row 0: more words" },
	{ 2, SENC_AMD64, ROWS(2) + 1, 1, 0x07, LEFT_SECOND, "row 0: more words" },
	{ 2, SENC_AARCH64_BE, ROWS(2) + 1, 1, 0x09, LEFT_SECOND, "row 0: more words" },
	{ 2, SENC_S390X, ROWS(2) + 1, 1, 0x09, LEFT_SECOND, "row 0: more words" },
	{ 2, SENC_AMD64, ROWS(2) + 3, 1, 0, LEFT_SECOND, "row 1: does not start after" },
	{ 2, SENC_AMD64, ROWS(2) + 3, 1, 0x11, LEFT_SECOND, "row 1: starts past" },
	{ 3, SENC_AMD64, ROWS(3) + 3, 1, 0x11, LEFT_SECOND, "row 1: starts past" },
};

TEST(sframe_refusals)
{
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		const struct refusal *c = &refusals[i];
		size_t left = 0;

		start(c->version, c->abi, good_flags(c->version));
		for (unsigned int k = 0; k < 2; k++) {
			senc_fn(&enc, (struct senc_fn){ .addr = CODE + 0x10 * k, .size = 0x10 });
			senc_row(&enc, 0, SENC_SP, 1, "8");
			senc_row(&enc, 4, SENC_SP, 1, "16");
		}
		senc_end(&enc);
		senc_poke(&enc, c->off, c->size, c->value);
		read_back(&bounds);
		for (const char *p = text.buf; (p = strchr(p, '\n')); p++)
			left++;
		if (left != c->left)
			printf("  case %zu (%s):\n", i, c->note);
		EXPECT_EQ(left, c->left);
		EXPECT(diag.malformed > 0);
		expect_note(DIAG_MALFORMED, c->note);
		EXPECT_STR(diag.notes[0].section, ".sframe");
	}
	done();
}

/* Rows that end with the section: a cut costs the functions whose rows are gone. */
TEST(sframe_truncations)
{
	for (uint8_t version = 1; version <= 3; version++) {
		size_t full;

		start(version, SENC_AMD64, good_flags(version));
		plain_fn(CODE, 0x10);
		plain_fn(CODE + 0x10, 0x10);
		senc_end(&enc);
		full = enc.len;
		for (enc.len = 1; enc.len < full; enc.len++) {
			read_back(&bounds);
			EXPECT(diag.malformed > 0);
			/* Of the last row one byte lacks */
			EXPECT(sframe.fns.n <= 1 || enc.len == full - 1);
			EXPECT(!strstr(text.buf, "10-20"));
		}
		enc.len = full - 3;
		EXPECT_STR(read_back(&bounds), "0-10 cfa=rsp+8 ra=*(cfa-8) fp=same\n");
		enc.len = full;
	}
	done();
}

struct flex_refusal {
	unsigned int size;
	const char *words, *note;
};

static const struct flex_refusal flex_refusals[] = {
	{ 1, "0", "no rule for the CFA" },
	{ 1, "0 0x39 8", "no rule for the CFA" },
	{ 1, "0x38 8", "a CFA that is based on itself" },
	{ 1, "0x3a 8", "a CFA that is based on itself" },
	{ 1, "0x3d 8", "unknown bit in a control word" },
	{ 1, "0x39 8 0x04 8", "unknown bit in a control word" },
	{ 1, "0x39", "a control word without its offset" },
	{ 2, "0x39 8 0 0x33", "a control word without its offset" },
	{ 1, "0x39 8 0 0 0x33", "words after the third rule" },
	{ 1, "0x39 8 0x02 -8 0x02 -16 0", "more words" },
};

TEST(sframe_flex_refusals)
{
	for (size_t i = 0; i < sizeof(flex_refusals) / sizeof(flex_refusals[0]); i++) {
		start(3, SENC_AMD64, good_flags(3));
		senc_fn(&enc, (struct senc_fn){ .addr = CODE, .size = 0x10, .flex = true });
		senc_row(&enc, 0, 0, flex_refusals[i].size, flex_refusals[i].words);
		plain_fn(CODE + 0x10, 0x10);
		senc_end(&enc);
		EXPECT_STR(read_back(&bounds), "10-20 cfa=rsp+8 ra=*(cfa-8) fp=same\n");
		EXPECT_EQ(diag.malformed, 1);
		expect_note(DIAG_MALFORMED, flex_refusals[i].note);
	}
	done();
}

TEST(sframe_nowhere)
{
	start(3, SENC_AMD64, good_flags(3));
	plain_fn(0x100000, 0x10);
	plain_fn(0x100010, 0x10);
	senc_end(&enc);
	EXPECT_STR(read_back(&bounds), "");
	expect_note(DIAG_MALFORMED, "none of 2 functions starts in executable code");
	/* around the end of the address space */
	start(3, SENC_AMD64, good_flags(3));
	plain_fn(-(uint64_t)8, 0x10);
	plain_fn(CODE, 0x10);
	senc_end(&enc);
	EXPECT_STR(read_back(NULL), "0-10 cfa=rsp+8 ra=*(cfa-8) fp=same\n");
	expect_note(DIAG_MALFORMED, "wraps around");
	done();
}

/* Functions that all claim the same rows must not cost time or memory of the product. */
TEST(sframe_shared_rows_are_bounded)
{
	struct rowbuf rows = { 0 };

	start(1, SENC_AMD64, SENC_SORTED);
	for (unsigned int i = 0; i < SENC_MAX_FNS; i++) {
		senc_fn(&enc, (struct senc_fn){ .addr = CODE + 0x100 * i, .size = 0x100 });
		for (unsigned int k = 0; k < 100; k++)
			senc_row(&enc, k, SENC_SP, 1, "8");
	}
	for (unsigned int i = 0; i < SENC_MAX_FNS; i++)
		enc.fns[i].extra_rows = 100 * (SENC_MAX_FNS - 1 - (int)i);
	senc_end(&enc);
	read_back(&bounds);
	EXPECT(diag.malformed > 30);
	expect_note(DIAG_MALFORMED, "rows are those of other functions");
	for (size_t i = 0; i < sframe.fns.n; i++)
		sframe_rows(&sframe, &sframe.fns.fns[i], &rows, &diag);
	EXPECT(rows.n <= enc.len / 2);
	rowbuf_free(&rows);
	done();
}

static uint32_t random_next(uint32_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}

static void build_mixed(unsigned int kind)
{
	static const uint8_t abis[] = { SENC_AMD64, SENC_AARCH64_LE, SENC_AARCH64_BE, SENC_S390X };
	uint8_t version = (uint8_t)(kind % 3 + 1), abi = abis[kind / 3 % 4];

	if (abi == SENC_S390X && version == 1)
		version = 2;
	start(version, abi, good_flags(version));
	for (unsigned int i = 0; i < 8; i++) {
		senc_fn(&enc, (struct senc_fn){ .addr = CODE + 0x100 * i,
						.size = 0x100,
						.row_type = (uint8_t)(i % 3),
						.flex = version == 3 && i == 5,
						.pcmask = i == 2,
						.rep_size = 16 });
		if (version == 3 && i == 5) {
			senc_row(&enc, 0, 0, 1, "0x39 8 0 0x33 0");
			continue;
		}
		senc_row(&enc, 0, SENC_SP, 1, "8");
		senc_row(&enc, 1, SENC_SP, 2, "16 -16");
		senc_row(&enc, 12, SENC_FP, 4, "16 -16");
	}
	senc_end(&enc);
	senc_begin(&enc, version, abi, SENC_PCREL * (version > 1), SENC_FROM_FIELD);
	plain_fn(CODE + 0x1000, 0x10);
	senc_end(&enc);
}

/* Whatever the bytes: rows ascend inside their function, functions lie in code. */
static void check_invariants(void)
{
	struct rowbuf rows = { 0 };
	size_t total = 0;

	for (size_t i = 0; i < sframe.fns.n; i++) {
		const struct fn *fn = &sframe.fns.fns[i];

		EXPECT(fn->start >= CODE && fn->start < fn->end && fn->end <= 0x9000);
		rows.n = 0;
		EXPECT_EQ(sframe_rows(&sframe, fn, &rows, &diag), 0);
		total += rows.n;
		for (size_t k = 0; k < rows.n; k++) {
			const struct row *r = &rows.rows[k];

			EXPECT(r->start >= fn->start && r->start < r->end && r->end <= fn->end);
			EXPECT(!k ||
			       (r->plt_rep ? r->plt_at > r[-1].plt_at : r->start == r[-1].end));
			EXPECT(!r->plt_rep || (r->start == fn->start && r->end == fn->end &&
					       r->plt_at < r->plt_rep));
		}
	}
	EXPECT(total <= enc.len / 2);
	rowbuf_free(&rows);
}

TEST(sframe_mutations)
{
	static uint8_t sound[1 << 16];
	uint32_t state = 2463534242;
	clock_t end = clock() + CLOCKS_PER_SEC;

	for (unsigned int round = 0; round < 6000 && clock() < end; round++) {
		if (round % 500 == 0) {
			build_mixed(round / 500);
			memcpy(sound, enc.buf, enc.len);
		}
		memcpy(enc.buf, sound, enc.len);
		for (unsigned int k = random_next(&state) % 8 + 1; k; k--) {
			uint32_t at = random_next(&state) % (round & 1 ? 96 : (uint32_t)enc.len);
			uint32_t how = random_next(&state);

			enc.buf[at] = how & 1	? (uint8_t)(how >> 8)
				      : how & 2 ? 0xff
						: enc.buf[at] ^ (uint8_t)(1 << (how >> 8 & 7));
		}
		read_back(&bounds);
		check_invariants();
		if (test_errors)
			break;
	}
	done();
}
