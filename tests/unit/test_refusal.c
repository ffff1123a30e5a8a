/* SPDX-License-Identifier: BSD-2-Clause */
#include "kern/refusal.h"

#include <stdio.h>
#include <string.h>

#include "test.h"

#define WHY "R2 unbounded memory access, make sure to bounds check any such access"

/* What libbpf 1.1 prints of a program that 6.18 refuses. */
static const char refused[] =
	"libbpf: prog 'on_cpu': BPF program load failed: Permission denied\n"
	"libbpf: prog 'on_cpu': -- BEGIN PROG LOAD LOG --\n"
	"func#0 @0\n"
	"0: R1=ctx() R10=fp0\n"
	"; int on_cpu(struct bpf_perf_event_data *ctx) @ sfbpf.bpf.c:20\n"
	"0: (bf) r6 = r1                       ; R1=ctx() R6_w=ctx()\n"
	"from 17 to 20: R0=0 R10=fp0\n"
	"; pc = at < 0 ? 0 : RB_FRAME64(w, at, RB_CFP_PC); @ ruby.bpf.h:357\n"
	"12856: (0f) r2 += r1                  ; R1=scalar(smin=smin32=0)\n"
	"12857: (79) r8 = *(u64 *)(r2 +0)\n" WHY "\n"
	"processed 94015 insns (limit 1000000) max_states_per_insn 32 total_states 4789\n"
	"-- END PROG LOAD LOG --\n"
	"libbpf: prog 'on_cpu': failed to load: -13\n"
	"libbpf: failed to load object 'sfbpf_bpf'\n"
	"libbpf: failed to load BPF skeleton 'sfbpf_bpf': -13\n";

static void take(struct refusal *r, const char *text)
{
	refusal_take(r, text, strlen(text));
}

static void expect_text(const struct refusal *r, const char *want)
{
	char text[REFUSAL_LINE + sizeof(r->program)];

	refusal_text(r, text, sizeof(text));
	EXPECT_STR(text, want);
}

static void expect_on_cpu(const struct refusal *r)
{
	EXPECT_STR(r->program, "on_cpu");
	EXPECT_STR(r->error, "Permission denied");
	EXPECT_STR(r->reason, WHY);
	EXPECT_STR(r->source, "; pc = at < 0 ? 0 : RB_FRAME64(w, at, RB_CFP_PC); @ ruby.bpf.h:357");
	EXPECT_EQ(r->lines, 10);
	EXPECT_STR(refusal_line(r, 0), "func#0 @0");
	EXPECT(!strncmp(refusal_line(r, 9), "processed 94015", 15) && !refusal_line(r, 10));
	expect_text(r, "on_cpu: " WHY);
}

TEST(refusal_of_a_program)
{
	struct refusal whole = { 0 }, pieces = { 0 };

	take(&whole, refused);
	expect_on_cpu(&whole);
	for (size_t i = 0; i < strlen(refused); i++)
		refusal_take(&pieces, refused + i, 1);
	expect_on_cpu(&pieces);
}

TEST(refusal_of_the_last_program)
{
	struct refusal r = { 0 };

	take(&r, refused);
	take(&r, "libbpf: prog 'off_switch': BPF program load failed: -E2BIG\n"
		 "libbpf: prog 'off_switch': -- BEGIN PROG LOAD LOG --\n"
		 "BPF program is too large. Processed 1000001 insn\n"
		 "verification time 2034567 usec\n"
		 "stack depth 496+64\n"
		 "subprog 66 (lang_rest) static insns_self 21116 insns_total 21116 stack 136\n"
		 "processed 1000001 insns (limit 1000000)\n"
		 "-- END PROG LOAD LOG --\n");
	EXPECT_STR(r.error, "-E2BIG");
	EXPECT_STR(r.source, "");
	EXPECT_EQ(r.lines, 5);
	expect_text(&r, "off_switch: BPF program is too large. Processed 1000001 insn");
}

TEST(refusal_keeps_the_end_of_a_long_log)
{
	static char line[5000];
	struct refusal r = { 0 };

	memset(line, 'x', sizeof(line) - 2);
	line[sizeof(line) - 2] = '\n';
	take(&r, "libbpf: prog 'p': BPF program load failed: Invalid argument\n"
		 "libbpf: prog 'p': -- BEGIN PROG LOAD LOG --\n");
	for (int i = 0; i < 1000; i++)
		take(&r, line);
	take(&r, "\n12: (95) exit\nR0 !read_ok\n-- END PROG LOAD LOG --\n");
	EXPECT_EQ(r.lines, 1002);
	EXPECT_EQ(strlen(refusal_line(&r, 0)), REFUSAL_LINE - 1);
	EXPECT_STR(refusal_line(&r, REFUSAL_LINES - 2), "12: (95) exit");
	EXPECT_STR(refusal_line(&r, REFUSAL_LINES - 1), "R0 !read_ok");
	EXPECT(!refusal_line(&r, REFUSAL_LINES));
	expect_text(&r, "p: R0 !read_ok");
}

/* The caller's buffer: libbpf names the program, but prints no log. */
TEST(refusal_with_a_log_of_its_own)
{
	struct refusal r = { 0 };

	take(&r, "libbpf: prog 'on_cpu': BPF program load failed: Permission denied\n"
		 "libbpf: prog 'on_cpu': failed to load: -13\n");
	expect_text(&r, "on_cpu: no reason in libbpf's log");
	refusal_take_log(&r, "R5 !read_ok\nprocessed 1 insns (limit 1000000)");
	EXPECT_EQ(r.lines, 2);
	expect_text(&r, "on_cpu: R5 !read_ok");
	take(&r, "libbpf: failed to load object 'sfbpf_bpf'\n");
	expect_text(&r, "on_cpu: R5 !read_ok");
}

TEST(refusal_without_a_program)
{
	struct refusal r = { 0 };

	expect_text(&r, "no reason in libbpf's log");
	take(&r, "libbpf: Error in bpf_create_map_xattr(ring): -EINVAL. Retrying without BTF.\n"
		 "libbpf: extern (func ksym) 'bpf_rdonly_cast': not found in kernel BTF\n"
		 "libbpf: failed to load object 'sfbpf_bpf'\n"
		 "libbpf: failed to load BPF skeleton 'sfbpf_bpf': -3\n");
	EXPECT_STR(r.program, "");
	EXPECT(!refusal_line(&r, 0));
	expect_text(&r, "extern (func ksym) 'bpf_rdonly_cast': not found in kernel BTF");
}

TEST(refusal_of_odd_text)
{
	struct refusal r = { 0 };
	char name[512] = "libbpf: prog '", want[128];

	take(&r, "libbpf: prog 'no end\nlibbpf: \n\n-- END PROG LOAD LOG --\nlast");
	EXPECT_STR(r.program, "");
	memset(name + strlen(name), 'n', 100);
	strcat(name, "': BPF program load failed: E\033[31m\n");
	refusal_take(&r, "\n", 1);
	take(&r, name);
	EXPECT_EQ(strlen(r.program), sizeof(r.program) - 1);
	EXPECT_STR(r.error, "E.[31m");
	refusal_take_log(&r, "a\033]0;b\007\xff\n");
	snprintf(want, sizeof(want), "%s: a.]0;b.\xef\xbf\xbd", r.program);
	expect_text(&r, want);
}
