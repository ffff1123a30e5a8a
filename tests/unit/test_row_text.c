/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows as text, for every architecture and shape of rule. */
#include "rows/row_text.h"
#include "test.h"

#define REG(r, o)                                        \
	{                                                \
		.kind = RULE_REG, .reg = (r), .off = (o) \
	}
#define MEM(r, o)                                            \
	{                                                    \
		.kind = RULE_REG_MEM, .reg = (r), .off = (o) \
	}
#define AT_CFA(o)                                \
	{                                        \
		.kind = RULE_CFA_MEM, .off = (o) \
	}
#define KIND(k)             \
	{                   \
		.kind = (k) \
	}

static char text[ROW_TEXT_MAX];

static const char *rules(enum row_arch arch, struct row row)
{
	size_t n = row_text_rules(text, arch, &row);

	EXPECT_EQ(n, strlen(text));
	return text;
}

TEST(row_text_line)
{
	struct row r = { .start = 0x1040,
			 .end = 0xfedcba9876543210,
			 .source = ROW_EH_FRAME,
			 .cfa = REG(7, 8),
			 .ra = AT_CFA(-8),
			 .fp = KIND(RULE_SAME) };

	EXPECT_EQ(row_text(text, ROW_ARCH_X86_64, &r), strlen(text));
	EXPECT_STR(text,
		   "0000000000001040 fedcba9876543210 eh_frame cfa=rsp+8 ra=*(cfa-8) fp=same");
	r.source = ROW_SFRAME;
	r.start = r.end = 0;
	row_text(text, ROW_ARCH_X86_64, &r);
	EXPECT_STR(text, "0000000000000000 0000000000000000 sframe cfa=rsp+8 ra=*(cfa-8) fp=same");
}

TEST(row_text_x86_64)
{
	const enum row_arch a = ROW_ARCH_X86_64;

	EXPECT_STR(rules(a, (struct row){ .cfa = MEM(6, -40), .ra = AT_CFA(-8), .fp = MEM(6, 0) }),
		   "cfa=*(rbp-40) ra=*(cfa-8) fp=*(rbp+0)");
	EXPECT_STR(rules(a, (struct row){ .cfa = MEM(7, 152),
					  .cfa_off2 = 8,
					  .ra = MEM(7, 168),
					  .fp = AT_CFA(-16),
					  .flags = ROW_SIGNAL }),
		   "cfa=*(rsp+152)+8 ra=*(rsp+168) fp=*(cfa-16) signal");
	EXPECT_STR(rules(a, (struct row){ .cfa = { .kind = RULE_INDEX_MEM, .reg = 9, .off = 8 },
					  .cfa_off2 = 8,
					  .ra = AT_CFA(-8),
					  .fp = AT_CFA(-24) }),
		   "cfa=*(rsp+8+r9*8)+8 ra=*(cfa-8) fp=*(cfa-24)");
	EXPECT_STR(rules(a, (struct row){ .cfa = REG(10, 0),
					  .ra = REG(11, 0),
					  .fp = KIND(RULE_UNDEF) }),
		   "cfa=r10+0 ra=r11+0 fp=?");
	EXPECT_STR(rules(a, (struct row){ .cfa = KIND(RULE_NONE),
					  .ra = KIND(RULE_UNDEF),
					  .fp = KIND(RULE_NONE) }),
		   "cfa=? ra=undef fp=?");
	EXPECT_STR(rules(a, (struct row){ .cfa = REG(7, INT32_MIN),
					  .ra = AT_CFA(INT32_MAX),
					  .fp = { .kind = RULE_CFA, .off = -24 } }),
		   "cfa=rsp-2147483648 ra=*(cfa+2147483647) fp=cfa-24");
	EXPECT_STR(rules(a, (struct row){ .cfa = REG(7, 8),
					  .ra = KIND(RULE_SAME),
					  .fp = KIND(RULE_SAME) }),
		   "cfa=rsp+8 ra=? fp=same");
	EXPECT_STR(rules(a, (struct row){ .cfa = REG(7, 8), .ra = REG(16, 0), .fp = REG(200, 0) }),
		   "cfa=rsp+8 ra=rip+0 fp=reg200+0");
}

TEST(row_text_plt)
{
	const enum row_arch a = ROW_ARCH_X86_64;
	struct row r = { .cfa = REG(7, 8), .ra = AT_CFA(-8), .fp = KIND(RULE_SAME), .plt_rep = 16 };

	EXPECT_STR(rules(a, r), "cfa=rsp+8 ra=*(cfa-8) fp=same plt rep=16");
	r.plt_at = 11;
	EXPECT_STR(rules(a, r), "cfa=rsp+8 ra=*(cfa-8) fp=same plt rep=16 at=11");
}

TEST(row_text_link_register)
{
	EXPECT_STR(rules(ROW_ARCH_AARCH64, (struct row){ .cfa = REG(31, 0),
							 .ra = REG(30, 0),
							 .fp = KIND(RULE_SAME),
							 .flags = ROW_PAC }),
		   "cfa=sp+0 ra=lr fp=same pac");
	EXPECT_STR(rules(ROW_ARCH_AARCH64, (struct row){ .cfa = REG(29, 16),
							 .ra = REG(1, 0),
							 .fp = AT_CFA(-16),
							 .flags = ROW_SIGNAL | ROW_PAC }),
		   "cfa=x29+16 ra=x1+0 fp=*(cfa-16) signal pac");
	EXPECT_STR(rules(ROW_ARCH_S390X,
			 (struct row){ .cfa = REG(15, 160), .ra = REG(14, 0), .fp = REG(16, 0) }),
		   "cfa=r15+160 ra=lr fp=f0+0");
	EXPECT_STR(rules(ROW_ARCH_S390X,
			 (struct row){ .cfa = REG(11, 328), .ra = REG(17, 0), .fp = REG(31, 0) }),
		   "cfa=r11+328 ra=f2+0 fp=f15+0");
}
