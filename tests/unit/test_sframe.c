/* SPDX-License-Identifier: BSD-2-Clause */
/* The SFrame reader against sections that the encoder writes: each decoding rule, each repair. */
#include "sframe_case.h"

/*
 * Decoding rules. Each is tried with each row type, and with each word size that holds the words.
 */
struct rule_case {
	uint8_t version, abi;
	bool flex, signal;
	uint8_t bits;
	unsigned int min_size; /* of words */
	const char *words, *want;
};

static const struct rule_case rule_cases[] = {
	/* x86-64 */
	{ 1, SENC_AMD64, 0, 0, SENC_SP, 1, "8", "cfa=rsp+8 ra=*(cfa-8) fp=same" },
	{ 1, SENC_AMD64, 0, 0, SENC_SP, 1, "16 -16", "cfa=rsp+16 ra=*(cfa-8) fp=*(cfa-16)" },
	{ 1, SENC_AMD64, 0, 0, SENC_FP, 1, "16 -16", "cfa=rbp+16 ra=*(cfa-8) fp=*(cfa-16)" },
	{ 2, SENC_AMD64, 0, 0, SENC_SP, 1, "-128", "cfa=rsp-128 ra=*(cfa-8) fp=same" },
	{ 2, SENC_AMD64, 0, 0, SENC_SP, 2, "3024 -32768",
	  "cfa=rsp+3024 ra=*(cfa-8) fp=*(cfa-32768)" },
	{ 2, SENC_AMD64, 0, 0, SENC_SP, 4, "0x7fffffff -2147483648",
	  "cfa=rsp+2147483647 ra=*(cfa-8) fp=*(cfa-2147483648)" },
	{ 2, SENC_AMD64, 0, 0, 0, 1, "", "cfa=? ra=undef fp=?" },
	{ 3, SENC_AMD64, 0, 0, 0, 1, "", "cfa=? ra=undef fp=?" },
	{ 3, SENC_AMD64, 0, 0, SENC_SP, 1, "8", "cfa=rsp+8 ra=*(cfa-8) fp=same" },
	{ 3, SENC_AMD64, 0, 1, SENC_SP, 1, "8", "cfa=rsp+8 ra=*(cfa-8) fp=same signal" },
	/* The bit for a signed RA means nothing there. */
	{ 3, SENC_AMD64, 0, 0, SENC_SP | SENC_MANGLED, 1, "8", "cfa=rsp+8 ra=*(cfa-8) fp=same" },
	/* FLEX: control = register << 3 | deref << 1 | register-based */
	{ 3, SENC_AMD64, 1, 0, 0, 1, "0x33 -40 0 0x33 0", "cfa=*(rbp-40) ra=*(cfa-8) fp=*(rbp+0)" },
	{ 3, SENC_AMD64, 1, 0, 0, 1, "0x51 0", "cfa=r10+0 ra=*(cfa-8) fp=same" },
	{ 3, SENC_AMD64, 1, 0, 0, 1, "0x39 0 0x59 0", "cfa=rsp+0 ra=r11+0 fp=same" },
	{ 3, SENC_AMD64, 1, 0, 0, 1, "0x3b 8 0x02 -16 0x00", "cfa=*(rsp+8) ra=*(cfa-16) fp=same" },
	{ 3, SENC_AMD64, 1, 0, 0, 1, "0x39 8 0x3b 120 0x02 -24",
	  "cfa=rsp+8 ra=*(rsp+120) fp=*(cfa-24)" },
	/* The CFA is a buffer, and where sp is is not said. */
	{ 3, SENC_AMD64, 1, 0, 0, 2, "0x09 0 0x02 168", "cfa=rdx+0 ra=*(cfa+168) fp=same lost" },
	{ 3, SENC_AMD64, 1, 0, 0, 1, "0x29 0 0x09 0", "cfa=rdi+0 ra=rdx+0 fp=same lost" },
	/* The model has names for x86-64's registers 0 to 16. */
	{ 3, SENC_AMD64, 1, 0, 0, 1, "0x39 8 0x89 0", "cfa=rsp+8 ra=? fp=same" },
	{ 3, SENC_AMD64, 1, 1, 0, 1, "", "cfa=? ra=undef fp=? signal" },
	/* AArch64, both byte orders */
	{ 1, SENC_AARCH64_LE, 0, 0, SENC_SP, 1, "0", "cfa=sp+0 ra=x30+0 fp=same" },
	{ 1, SENC_AARCH64_LE, 0, 0, SENC_SP | SENC_MANGLED, 1, "0",
	  "cfa=sp+0 ra=x30+0 fp=same pac" },
	{ 1, SENC_AARCH64_BE, 0, 0, SENC_SP, 1, "32 -24", "cfa=sp+32 ra=*(cfa-24) fp=same" },
	{ 2, SENC_AARCH64_LE, 0, 0, SENC_FP | SENC_MANGLED, 1, "32 -24 -32",
	  "cfa=x29+32 ra=*(cfa-24) fp=*(cfa-32) pac" },
	{ 2, SENC_AARCH64_BE, 0, 0, SENC_SP, 2, "5056 -5048 -5056",
	  "cfa=sp+5056 ra=*(cfa-5048) fp=*(cfa-5056)" },
	{ 3, SENC_AARCH64_BE, 0, 1, SENC_SP, 1, "16 -8 -16",
	  "cfa=sp+16 ra=*(cfa-8) fp=*(cfa-16) signal" },
	{ 3, SENC_AARCH64_LE, 0, 0, 0, 1, "", "cfa=? ra=undef fp=?" },
	{ 3, SENC_AARCH64_LE, 1, 0, 0, 2, "0xf9 16 0xf1 0", "cfa=sp+16 ra=x30+0 fp=same" },
	{ 3, SENC_AARCH64_LE, 1, 0, SENC_MANGLED, 2, "0xeb 16 0 0x02 -16",
	  "cfa=*(x29+16) ra=x30+0 fp=*(cfa-16) pac" },
	/* s390x: scaled CFA; RA word 0 is padding; version 2 has registers in odd words */
	{ 2, SENC_S390X, 0, 0, SENC_SP, 1, "0", "cfa=r15+160 ra=r14+0 fp=same" },
	{ 2, SENC_S390X, 0, 0, SENC_FP, 1, "20 -48 -72", "cfa=r11+320 ra=*(cfa-48) fp=*(cfa-72)" },
	{ 2, SENC_S390X, 0, 0, SENC_SP, 1, "21 0 35", "cfa=r15+328 ra=r14+0 fp=f2+0" },
	{ 2, SENC_S390X, 0, 0, SENC_SP, 1, "0 33 63", "cfa=r15+160 ra=f0+0 fp=f15+0" },
	{ 2, SENC_S390X, 0, 0, SENC_SP, 1, "-20 -48", "cfa=r15+0 ra=*(cfa-48) fp=same" },
	{ 3, SENC_S390X, 0, 0, SENC_SP, 1, "0 -47 -71", "cfa=r15+160 ra=*(cfa-47) fp=*(cfa-71)" },
	{ 3, SENC_S390X, 0, 0, SENC_SP, 1, "0 0 -72", "cfa=r15+160 ra=r14+0 fp=*(cfa-72)" },
	{ 3, SENC_S390X, 0, 0, 0, 1, "", "cfa=? ra=undef fp=?" },
	{ 3, SENC_S390X, 0, 0, SENC_SP, 4, "0x7fffffff", "cfa=? ra=r14+0 fp=same" },
	{ 3, SENC_S390X, 1, 0, 0, 2, "0x79 21 0x81 0 0x91 0", "cfa=r15+328 ra=f0+0 fp=f4+0" },
	{ 3, SENC_S390X, 1, 0, 0, 2, "0x59 0 0 0x89 0", "cfa=r11+160 ra=r14+0 fp=f2+0" },
};

TEST(sframe_rules)
{
	char want[160];

	for (size_t i = 0; i < sizeof(rule_cases) / sizeof(rule_cases[0]); i++) {
		const struct rule_case *c = &rule_cases[i];

		for (uint8_t type = 0; type < 3; type++) {
			for (unsigned int size = c->min_size; size <= 4; size *= 2) {
				start(c->version, c->abi, good_flags(c->version));
				senc_fn(&enc, (struct senc_fn){ .addr = CODE,
								.size = 0x40,
								.row_type = type,
								.flex = c->flex,
								.signal = c->signal });
				senc_row(&enc, 0, c->bits, size, c->words);
				senc_end(&enc);
				snprintf(want, sizeof(want), "0-40 %s\n", c->want);
				EXPECT_STR(read_back(&bounds), want);
				expect_clean();
			}
		}
	}
	done();
}

/* A register that no machine has costs its rule, not the function: GNU as 2.46 makes such rows. */
TEST(sframe_registers_above_31)
{
	start(3, SENC_AMD64, good_flags(3));
	senc_fn(&enc, (struct senc_fn){ .addr = CODE, .size = 0x40, .flex = true });
	senc_row(&enc, 0, 0, 4, "0x39 8 0 0xfffffffb 8");
	senc_end(&enc);
	EXPECT_STR(read_back(&bounds), "0-40 cfa=rsp+8 ra=*(cfa-8) fp=undef\n");
	expect_note(DIAG_REPAIRED, "registers above 31");
	EXPECT_EQ(diag.malformed, 0);
	start(2, SENC_S390X, good_flags(2));
	senc_fn(&enc, (struct senc_fn){ .addr = CODE, .size = 0x40 });
	senc_row(&enc, 0, SENC_SP, 1, "0 -1 65");
	senc_end(&enc);
	EXPECT_STR(read_back(&bounds), "0-40 cfa=r15+160 ra=? fp=?\n");
	expect_note(DIAG_REPAIRED, "registers above 31");
	done();
}

/*
 * A row ends where the next begins; nothing holds before the first; a row at the very end holds
 * nowhere.
 */
TEST(sframe_row_extent)
{
	for (uint8_t version = 1; version <= 3; version++) {
		start(version, SENC_AMD64, good_flags(version));
		senc_fn(&enc,
			(struct senc_fn){ .addr = CODE + 0x100, .size = 0x12345, .row_type = 2 });
		senc_row(&enc, 4, SENC_SP, 1, "8");
		senc_row(&enc, 0x10, SENC_SP, 2, "3000");
		senc_row(&enc, 0x11000, SENC_SP, 1, "16 -16");
		senc_row(&enc, 0x12345, SENC_SP, 1, "24");
		senc_end(&enc);
		EXPECT_STR(read_back(NULL), "104-110 cfa=rsp+8 ra=*(cfa-8) fp=same\n"
					    "110-11100 cfa=rsp+3000 ra=*(cfa-8) fp=same\n"
					    "11100-12445 cfa=rsp+16 ra=*(cfa-8) fp=*(cfa-16)\n");
		expect_clean();
	}
	done();
}

/* The caller may ask for less than the function: row_stream clips overlaps. */
TEST(sframe_rows_clipped)
{
	struct rowbuf rows = { 0 };
	struct fn fn;

	start(2, SENC_AMD64, good_flags(2));
	senc_fn(&enc, (struct senc_fn){ .addr = CODE, .size = 0x40 });
	senc_row(&enc, 0, SENC_SP, 1, "8");
	senc_row(&enc, 0x10, SENC_SP, 1, "16");
	senc_row(&enc, 0x20, SENC_SP, 1, "24");
	senc_end(&enc);
	read_back(&bounds);
	EXPECT_EQ(sframe.fns.n, 1);
	fn = sframe.fns.fns[0];
	for (uint32_t len = 0; len <= 0x40; len++) {
		rows.n = 0;
		fn.end = fn.start + len;
		EXPECT_EQ(sframe_rows(&sframe, &fn, &rows, &diag), 0);
		EXPECT_EQ(rows.n, len > 0x20 ? 3 : len > 0x10 ? 2 : len > 0);
		if (rows.n)
			EXPECT_EQ(rows.rows[rows.n - 1].end, fn.end);
	}
	expect_clean();
	rowbuf_free(&rows);
	done();
}

TEST(sframe_pcmask)
{
	for (uint8_t version = 1; version <= 3; version++) {
		start(version, SENC_AMD64, good_flags(version));
		senc_fn(&enc, (struct senc_fn){
				      .addr = CODE, .size = 0x40, .pcmask = true, .rep_size = 16 });
		senc_row(&enc, 0, SENC_SP, 1, "8");
		senc_row(&enc, 11, SENC_SP, 1, "16");
		senc_row(&enc, 16, SENC_SP, 1, "24");
		/*
		 * The PLT's first entry: GNU ld 2.41 to 2.44 gives it a repetition size although it
		 * does not repeat.
		 */
		senc_fn(&enc,
			(struct senc_fn){ .addr = CODE + 0x40, .size = 0x10, .rep_size = 16 });
		senc_row(&enc, 6, SENC_SP, 1, "24");
		/* A block larger than the function. */
		senc_fn(&enc,
			(struct senc_fn){
				.addr = CODE + 0x50, .size = 8, .pcmask = true, .rep_size = 16 });
		senc_row(&enc, 0, SENC_SP, 1, "8");
		senc_row(&enc, 9, SENC_SP, 1, "16");
		senc_end(&enc);
		EXPECT_STR(read_back(&bounds),
			   "0-40 cfa=rsp+8 ra=*(cfa-8) fp=same plt rep=16 at=0\n"
			   "0-40 cfa=rsp+16 ra=*(cfa-8) fp=same plt rep=16 at=11\n"
			   "46-50 cfa=rsp+24 ra=*(cfa-8) fp=same\n"
			   "50-58 cfa=rsp+8 ra=*(cfa-8) fp=same plt rep=16 at=0\n");
		expect_clean();
	}
	done();
}

TEST(sframe_pcmask_s390x)
{
	start(3, SENC_S390X, good_flags(3));
	senc_fn(&enc,
		(struct senc_fn){ .addr = CODE, .size = 0x80, .pcmask = true, .rep_size = 32 });
	senc_row(&enc, 0, SENC_SP, 1, "0");
	senc_end(&enc);
	EXPECT_STR(read_back(&bounds), "0-80 cfa=r15+160 ra=r14+0 fp=same plt rep=32 at=0\n");
	expect_clean();
	done();
}

/* GNU ld says sp+16 for .plt.got; the first row of a .plt stub, or two rows, are no such thing. */
TEST(sframe_plt_got)
{
	for (uint8_t rep = 8; rep <= 16; rep += 8) {
		start(3, SENC_AMD64, good_flags(3));
		senc_fn(&enc,
			(struct senc_fn){
				.addr = CODE, .size = 0x20, .pcmask = true, .rep_size = rep });
		senc_row(&enc, 0, SENC_SP, 1, "16");
		senc_end(&enc);
		read_back(&bounds);
		EXPECT(strstr(text.buf, "0-20 cfa=rsp+8 ra=*(cfa-8) fp=same plt"));
		expect_note(DIAG_REPAIRED, ".plt.got");
		EXPECT_EQ(diag.malformed, 0);
	}
	start(3, SENC_AMD64, good_flags(3));
	senc_fn(&enc,
		(struct senc_fn){ .addr = CODE, .size = 0x40, .pcmask = true, .rep_size = 16 });
	senc_row(&enc, 0, SENC_SP, 1, "16");
	senc_row(&enc, 6, SENC_SP, 1, "24");
	senc_fn(&enc, (struct senc_fn){ .addr = CODE + 0x40, .size = 0x10 });
	senc_row(&enc, 0, SENC_SP, 1, "16");
	senc_fn(&enc, (struct senc_fn){
			      .addr = CODE + 0x50, .size = 0x40, .pcmask = true, .rep_size = 32 });
	senc_row(&enc, 0, SENC_SP, 1, "16");
	senc_end(&enc);
	read_back(&bounds);
	EXPECT(!strstr(text.buf, "rsp+8"));
	expect_clean();
	done();
}

/*
 * A signal frame that the assembler could not express, and a function without rules: there is
 * nothing to say.
 */
TEST(sframe_no_rows)
{
	start(3, SENC_AMD64, good_flags(3));
	senc_fn(&enc, (struct senc_fn){ .addr = CODE, .size = 0x10, .signal = true });
	senc_fn(&enc, (struct senc_fn){ .addr = CODE + 0x10, .size = 0x10 });
	senc_end(&enc);
	EXPECT_STR(read_back(&bounds), "");
	EXPECT_EQ(sframe.fns.n, 2);
	expect_clean();
	done();
}

TEST(sframe_empty_sections)
{
	senc_free(&enc);
	senc_init(&enc, SECTION);
	enc.abi = SENC_AMD64;
	EXPECT_STR(read_back(&bounds), "");
	expect_clean();
	start(3, SENC_AMD64, good_flags(3));
	senc_end(&enc);
	EXPECT_STR(read_back(&bounds), "");
	EXPECT_EQ(sframe.ntables, 1);
	expect_clean();
	done();
}

/*
 * Index and rows have orders of their own: ld sorts the index only. Here the second function's rows
 * come first.
 */
TEST(sframe_row_order_is_free)
{
	start(2, SENC_AMD64, good_flags(2));
	plain_fn(CODE, 0x10);
	senc_fn(&enc, (struct senc_fn){ .addr = CODE + 0x10, .size = 0x10 });
	senc_row(&enc, 0, SENC_SP, 1, "16");
	enc.rows_at[0] = 3;
	enc.rows_at[1] = 0;
	senc_end(&enc);
	EXPECT_STR(read_back(&bounds),
		   "0-10 cfa=rsp+16 ra=*(cfa-8) fp=same\n10-20 cfa=rsp+8 ra=*(cfa-8) fp=same\n");
	expect_clean();
	done();
}

/*
 * Anchors. Functions of 16 bytes, one after another from `first` on, written from the field or from
 * the section, under flags that may lie.
 */
struct anchor_case {
	uint8_t version, flags;
	enum senc_anchor anchor;
	uint64_t first;
	unsigned int n;
	const char *note;
};

static const struct anchor_case anchor_cases[] = {
	/* as GNU ld leaves them */
	{ 1, SENC_SORTED, SENC_FROM_SECTION, 0x2000, 40, NULL },
	{ 2, SENC_SORTED, SENC_FROM_SECTION, 0x2000, 40, NULL },
	{ 2, SENC_SORTED | SENC_PCREL, SENC_FROM_FIELD, 0x2000, 40, NULL },
	{ 3, SENC_SORTED | SENC_PCREL, SENC_FROM_FIELD, 0x2000, 40, NULL },
	{ 3, SENC_PCREL, SENC_FROM_FIELD, 0x2000, 40, NULL },
	/* as a linker that concatenates leaves them */
	{ 1, 0, SENC_FROM_FIELD, 0x2000, 40, "although PCREL is not set" },
	{ 2, 0, SENC_FROM_FIELD, 0x2000, 40, "although PCREL is not set" },
	/*
	 * SORTED and no PCREL, but from the field: told by the first function, at the segment's
	 * start, or by disorder
	 */
	{ 2, SENC_SORTED, SENC_FROM_FIELD, CODE, 40, "although PCREL is not set" },
	{ 2, SENC_SORTED, SENC_FROM_FIELD, 0x4000, 40, "although PCREL is not set" },
	{ 3, SENC_SORTED, SENC_FROM_FIELD, 0x4000, 40, "although PCREL is not set" },
	/*
	 * PCREL, or no SORTED, but from the section: told by the last function, at the segment's
	 * end
	 */
	{ 1, 0, SENC_FROM_SECTION, 0x9000 - 40 * 16, 40, NULL },
	{ 2, SENC_PCREL, SENC_FROM_SECTION, 0x9000 - 40 * 16, 40, "although PCREL is set" },
	{ 3, SENC_SORTED | SENC_PCREL, SENC_FROM_SECTION, 0x9000 - 40 * 16, 40,
	  "although PCREL is set" },
};

TEST(sframe_anchors)
{
	for (size_t i = 0; i < sizeof(anchor_cases) / sizeof(anchor_cases[0]); i++) {
		const struct anchor_case *c = &anchor_cases[i];

		senc_free(&enc);
		senc_init(&enc, SECTION);
		senc_begin(&enc, c->version, SENC_AMD64, c->flags, c->anchor);
		for (unsigned int k = 0; k < c->n; k++)
			plain_fn(c->first + 16 * k, 16);
		senc_end(&enc);
		read_back(&bounds);
		EXPECT_EQ(sframe.fns.n, c->n);
		for (size_t k = 0; k < sframe.fns.n; k++)
			EXPECT_EQ(sframe.fns.fns[k].start, c->first + 16 * k);
		if (c->note)
			expect_note(DIAG_REPAIRED, c->note);
		else
			expect_clean();
		EXPECT_EQ(diag.malformed, 0);
	}
	done();
}

/*
 * Instructions of AArch64 are aligned: in the middle of a large segment that tells the readings of
 * version 1 apart.
 */
TEST(sframe_anchor_by_alignment)
{
	senc_free(&enc);
	senc_init(&enc, SECTION);
	senc_begin(&enc, 1, SENC_AARCH64_LE, 0, SENC_FROM_SECTION);
	for (unsigned int k = 0; k < 6; k++)
		plain_fn(0x4000 + 0x40 * k, 0x40);
	senc_end(&enc);
	read_back(&bounds);
	EXPECT_EQ(sframe.fns.n, 6);
	EXPECT_EQ(sframe.fns.fns[5].start, 0x4140);
	expect_clean();
	done();
}

/*
 * GNU ld 2.40 to 2.43 lets .plt.sec run into the next section; that is no sign of a wrong anchor.
 */
TEST(sframe_overlap_is_kept)
{
	start(1, SENC_AMD64, SENC_SORTED);
	plain_fn(CODE + 0x100, 0x10);
	plain_fn(CODE + 0x110, 0x20);
	plain_fn(CODE + 0x120, 0x20);
	for (unsigned int i = 0; i < 10; i++)
		plain_fn(CODE + 0x140 + 0x10 * i, 0x10);
	senc_end(&enc);
	read_back(&bounds);
	EXPECT_EQ(sframe.fns.n, 13);
	EXPECT_EQ(sframe.fns.fns[1].end, CODE + 0x130);
	EXPECT_EQ(sframe.fns.fns[2].start, CODE + 0x120);
	expect_clean();
	done();
}

TEST(sframe_far_functions)
{
	static const struct elf_phdr far = {
		.type = PT_LOAD,
		.flags = PF_X,
		.vaddr = 0xffff800000001000,
		.filesz = 0x1000,
		.memsz = 0x1000,
	};
	struct sframe_bounds b = { &far, 1 };

	start(3, SENC_AMD64, good_flags(3));
	plain_fn(0xffff800000001000, 0x10);
	senc_end(&enc);
	read_back(&b);
	EXPECT_EQ(sframe.fns.n, 1);
	EXPECT_EQ(sframe.fns.fns[0].start, 0xffff800000001000);
	expect_clean();
	done();
}

/*
 * Executable segments in any order, touching and overlapping; a function may cross where they
 * touch.
 */
TEST(sframe_several_segments)
{
	static const struct elf_phdr several[] = {
		{ .type = PT_LOAD,
		  .flags = PF_X,
		  .vaddr = 0x6000,
		  .filesz = 0x1000,
		  .memsz = 0x1000 },
		{ .type = PT_LOAD,
		  .flags = PF_X,
		  .vaddr = 0x2000,
		  .filesz = 0x1000,
		  .memsz = 0x1000 },
		{ .type = PT_NOTE,
		  .flags = PF_X,
		  .vaddr = 0x4000,
		  .filesz = 0x1000,
		  .memsz = 0x1000 },
		{
			.type = PT_LOAD,
			.flags = PF_X,
			.vaddr = CODE,
			.filesz = 0x1000,
			.memsz = 0x1000,
		},
		{ .type = PT_LOAD,
		  .flags = PF_X,
		  .vaddr = 0x6800,
		  .filesz = 0x1000,
		  .memsz = 0x1000 },
	};
	static const struct sframe_bounds b = { several, 5 };

	start(2, SENC_AMD64, good_flags(2));
	plain_fn(0x800, 0x10);
	plain_fn(CODE, 0x10);
	plain_fn(0x1ff8, 0x10);
	plain_fn(0x2ff8, 0x10);
	plain_fn(0x3000, 0x10);
	plain_fn(0x4000, 0x10);
	plain_fn(0x6ff8, 0x10);
	plain_fn(0x77f0, 0x10);
	plain_fn(0x7800, 0x10);
	senc_end(&enc);
	EXPECT_STR(
		read_back(&b),
		"0-10 cfa=rsp+8 ra=*(cfa-8) fp=same\nff8-1008 cfa=rsp+8 ra=*(cfa-8) fp=same\n"
		"1ff8-2000 cfa=rsp+8 ra=*(cfa-8) fp=same\n5ff8-6008 cfa=rsp+8 ra=*(cfa-8) fp=same\n"
		"67f0-6800 cfa=rsp+8 ra=*(cfa-8) fp=same\n");
	expect_note(DIAG_REPAIRED, "4 functions that start outside");
	expect_note(DIAG_MALFORMED, "8 bytes past the executable segment");
	EXPECT_EQ(diag.malformed, 1);
	done();
}

/* mold resolves dropped functions to address 0; GNU ld leaves 0 in the field. */
TEST(sframe_tombstones)
{
	start(2, SENC_AMD64, SENC_PCREL);
	plain_fn(CODE, 0x10);
	plain_fn(0, 0x10);
	senc_fn(&enc, (struct senc_fn){ .addr = 0, .size = 0x10, .raw_start = true });
	senc_row(&enc, 0, SENC_SP, 1, "8");
	plain_fn(SECTION + 0x1000, 0x10);
	plain_fn(CODE + 0x20, 0);
	plain_fn(CODE + 0x20, 0x10);
	senc_end(&enc);
	EXPECT_STR(read_back(&bounds),
		   "0-10 cfa=rsp+8 ra=*(cfa-8) fp=same\n20-30 cfa=rsp+8 ra=*(cfa-8) fp=same\n");
	expect_note(DIAG_REPAIRED, "2 functions that the linker had dropped");
	expect_note(DIAG_REPAIRED, "1 functions that start outside");
	expect_note(DIAG_REPAIRED, "1 functions of size 0");
	EXPECT_EQ(diag.malformed, 0);
	/* A table of nothing else is no damage. */
	start(2, SENC_AMD64, SENC_PCREL);
	plain_fn(0, 0x10);
	senc_end(&enc);
	EXPECT_STR(read_back(&bounds), "");
	EXPECT_EQ(diag.malformed, 0);
	done();
}

/* In a relocatable object all fields are 0, and no segment says where code is. */
TEST(sframe_relocatable)
{
	start(3, SENC_AMD64, SENC_PCREL);
	senc_fn(&enc, (struct senc_fn){ .addr = 0, .size = 0x10, .raw_start = true });
	senc_row(&enc, 0, SENC_SP, 1, "8");
	senc_end(&enc);
	read_back(NULL);
	EXPECT_EQ(sframe.fns.n, 1);
	expect_clean();
	done();
}

TEST(sframe_unsorted)
{
	start(2, SENC_AMD64, SENC_SORTED | SENC_PCREL);
	plain_fn(CODE + 0x20, 0x10);
	plain_fn(CODE, 0x10);
	senc_end(&enc);
	EXPECT_STR(read_back(&bounds),
		   "20-30 cfa=rsp+8 ra=*(cfa-8) fp=same\n0-10 cfa=rsp+8 ra=*(cfa-8) fp=same\n");
	expect_note(DIAG_REPAIRED, "1 functions out of order in a table that is said to be sorted");
	start(2, SENC_AMD64, SENC_PCREL);
	plain_fn(CODE + 0x20, 0x10);
	plain_fn(CODE, 0x10);
	senc_end(&enc);
	read_back(&bounds);
	expect_note(DIAG_REPAIRED, "1 functions out of order");
	EXPECT_EQ(diag.malformed, 0);
	done();
}

/* Tables one after another, of any version; what is between them. */
TEST(sframe_several_tables)
{
	static const uint8_t junk[24] = { 1, 2, 3 };

	start(1, SENC_AMD64, SENC_SORTED);
	plain_fn(CODE, 0x10);
	senc_end(&enc);
	senc_begin(&enc, 2, SENC_AMD64, SENC_PCREL, SENC_FROM_FIELD);
	plain_fn(CODE + 0x10, 0x10);
	senc_end(&enc);
	senc_begin(&enc, 3, SENC_AMD64, SENC_PCREL, SENC_FROM_FIELD);
	plain_fn(CODE + 0x20, 0x10);
	senc_end(&enc);
	EXPECT_STR(read_back(&bounds),
		   "0-10 cfa=rsp+8 ra=*(cfa-8) fp=same\n10-20 cfa=rsp+8 ra=*(cfa-8) fp=same\n"
		   "20-30 cfa=rsp+8 ra=*(cfa-8) fp=same\n");
	EXPECT_EQ(sframe.ntables, 3);
	EXPECT_EQ(sframe.fns.fns[2].ref, (uint64_t)2 << 32);
	expect_note(DIAG_REPAIRED, "3 tables");
	EXPECT_EQ(diag.malformed, 0);
	/* zeros, then one more table; zeros at the end */
	senc_append(&enc, NULL, 40);
	senc_begin(&enc, 2, SENC_AMD64, SENC_PCREL, SENC_FROM_FIELD);
	plain_fn(CODE + 0x30, 0x10);
	senc_end(&enc);
	senc_append(&enc, NULL, 100);
	read_back(&bounds);
	EXPECT_EQ(sframe.fns.n, 4);
	expect_note(DIAG_REPAIRED, "zero bytes after a table");
	EXPECT_EQ(diag.malformed, 0);
	/* remains of an input */
	senc_append(&enc, junk, sizeof(junk));
	senc_begin(&enc, 2, SENC_AMD64, SENC_PCREL, SENC_FROM_FIELD);
	plain_fn(CODE + 0x40, 0x10);
	senc_end(&enc);
	read_back(&bounds);
	EXPECT_EQ(sframe.fns.n, 5);
	EXPECT_EQ(diag.malformed, 1);
	expect_note(DIAG_MALFORMED, "that are no SFrame table");
	done();
}

/* A table that is refused costs only itself. */
TEST(sframe_refused_table_between_others)
{
	size_t second;

	start(2, SENC_AMD64, good_flags(2));
	plain_fn(CODE, 0x10);
	senc_end(&enc);
	senc_begin(&enc, 2, SENC_AMD64, SENC_PCREL, SENC_FROM_FIELD);
	plain_fn(CODE + 0x10, 0x10);
	second = senc_end(&enc);
	senc_begin(&enc, 2, SENC_AMD64, SENC_PCREL, SENC_FROM_FIELD);
	plain_fn(CODE + 0x20, 0x10);
	senc_end(&enc);
	senc_poke(&enc, second + 2, 1, 4);
	EXPECT_STR(read_back(&bounds),
		   "0-10 cfa=rsp+8 ra=*(cfa-8) fp=same\n20-30 cfa=rsp+8 ra=*(cfa-8) fp=same\n");
	EXPECT_EQ(diag.malformed, 1);
	expect_note(DIAG_MALFORMED, "version 4 is not known");
	EXPECT_EQ(diag.notes[0].offset, second);
	senc_poke(&enc, second + 2, 1, 2);
	/* Length of the rows: the third table is not inside */
	senc_poke(&enc, second + 16, 4, 0x10000);
	EXPECT_STR(read_back(&bounds),
		   "0-10 cfa=rsp+8 ra=*(cfa-8) fp=same\n10-20 cfa=rsp+8 ra=*(cfa-8) fp=same\n"
		   "20-30 cfa=rsp+8 ra=*(cfa-8) fp=same\n");
	EXPECT_EQ(diag.malformed, 1);
	done();
}

TEST(sframe_row_count)
{
	start(2, SENC_AMD64, good_flags(2));
	plain_fn(CODE, 0x10);
	senc_end(&enc);
	senc_poke(&enc, 12, 4, 77);
	EXPECT_STR(read_back(&bounds), "0-10 cfa=rsp+8 ra=*(cfa-8) fp=same\n");
	expect_note(DIAG_REPAIRED, "the header counts 77 rows");
	EXPECT_EQ(diag.malformed, 0);
	done();
}
