/* SPDX-License-Identifier: BSD-2-Clause */
/* The spelling of events, filters of tracepoints, operands of USDT probes, places in ELF files. */
#include "kern/events.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "elf/elf_image.h"
#include "kern/event_regs.h"
#include "kern/tracepoint.h"
#include "symtab/elf_probes.h"
#include "test.h"

static struct events all;
static char why[512];

static int add(const char *spelling)
{
	events_free(&all);
	return events_add(&all, spelling, why, sizeof(why));
}

TEST(events_perf)
{
	static const struct {
		const char *spelling;
		uint32_t type;
		uint64_t config;
		bool no_user, no_kernel;
	} known[] = {
		{ "cpu-clock", 1, 0, false, false },
		{ "cpu-clock:u", 1, 0, false, true },
		{ "faults:k", 1, 2, true, false },
		{ "cs:uk", 1, 3, false, false },
		{ "cycles:ppp", 0, 0, false, false },
		{ "r00c0", 4, 0xc0, false, false },
		{ "r1a8:u", 4, 0x1a8, false, true },
		{ "L1-dcache-loads", 3, 0, false, false },
		{ "LLC-store-misses", 3, 0x10102, false, false },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		EXPECT_EQ(add(known[i].spelling), 0);
		EXPECT_EQ(all.n, 1);
		EXPECT_EQ(all.v[0].from, EVENT_PERF);
		EXPECT_EQ(all.v[0].perf.type, known[i].type);
		EXPECT_EQ(all.v[0].perf.config, known[i].config);
		EXPECT_EQ(all.v[0].perf.no_user, known[i].no_user);
		EXPECT_EQ(all.v[0].perf.no_kernel, known[i].no_kernel);
	}
	EXPECT_EQ(add("cs,faults:u,sched:sched_switch"), 0);
	EXPECT_EQ(all.n, 3);
	EXPECT_STR(all.text, "cs, faults:u, sched:sched_switch");
	EXPECT_EQ(all.v[2].from, EVENT_TRACEPOINT);
	events_free(&all);
}

TEST(events_probes)
{
	EXPECT_EQ(add("uprobe:/bin/a:ns::f<int, char>(x)"), 0);
	EXPECT_STR(all.v[0].path, "/bin/a");
	EXPECT_STR(all.v[0].what, "ns::f<int, char>(x)");
	EXPECT(!all.v[0].arg && !events_weighted(&all));
	EXPECT_EQ(add("uprobe:a.out:operator=="), 0);
	EXPECT_STR(all.v[0].what, "operator==");
	EXPECT_EQ(add("uprobe:libc.so.6:malloc=arg1:bytes"), 0);
	EXPECT_STR(all.v[0].arg, "arg1");
	EXPECT_STR(events_unit(&all), "bytes");
	EXPECT_EQ(add("uretprobe:libc.so.6:read=ret:s32:bytes"), 0);
	EXPECT(all.v[0].at_return && all.v[0].bytes && all.v[0].arg_signed);
	EXPECT_EQ(all.v[0].arg_size, 4);
	EXPECT_EQ(add("usdt:/bin/a:p:n=arg2"), 0);
	EXPECT(all.v[0].usdt);
	EXPECT_STR(all.v[0].what, "p:n");
	EXPECT_STR(events_unit(&all), "count");
	events_free(&all);
}

TEST(events_wrong)
{
	static const char *const wrong[] = { "",
					     ",",
					     "cs,",
					     ",cs",
					     "nothing",
					     "cs:x:y:",
					     ":x",
					     "uprobe:",
					     "uprobe:a",
					     "uprobe:a:",
					     "uprobe::f",
					     "usdt:a",
					     "uprobe:a:f=arg1:qword",
					     "rxyz" };

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		int err = add(wrong[i]);

		/* A name with a colon may be that of a tracepoint. */
		if (strcmp(wrong[i], "cs:x:y:"))
			EXPECT(err == -EINVAL && *why);
	}
	EXPECT_EQ(add("cs,uprobe:libc:malloc=arg1"), -EINVAL); /* units differ */
	events_free(&all);
	for (int i = 0; i < SF_EVENTS; i++)
		EXPECT_EQ(events_add(&all, "cs", why, sizeof(why)), 0);
	EXPECT_EQ(events_add(&all, "cs", why, sizeof(why)), -EINVAL);
	EXPECT_EQ(events_filter(&all, "a == 1", why, sizeof(why)), -EINVAL);
	events_free(&all);
}

/* ---- Filters ---- */

static const char format[] =
	"name: made\nID: 7\nformat:\n"
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n"
	"\tfield:int number;\toffset:8;\tsize:4;\tsigned:1;\n"
	"\tfield:unsigned char flags;\toffset:12;\tsize:1;\tsigned:0;\n"
	"\tfield:char comm[16];\toffset:16;\tsize:16;\tsigned:0;\n"
	"\tfield:__data_loc char[] path;\toffset:32;\tsize:4;\tsigned:0;\n"
	"\tfield:u64 big;\toffset:40;\tsize:8;\tsigned:0;\n"
	"\tfield:const char * pointer;\toffset:48;\tsize:8;\tsigned:0;\n"
	"\nprint fmt: \"%d\", REC->number\n";

static struct record {
	uint64_t common;
	int32_t number;
	uint8_t flags, pad[3];
	char comm[16];
	uint32_t path, pad2;
	uint64_t big, pointer;
	char text[32];
} made = { .number = -7,
	   .flags = 6,
	   .comm = "kworker/1:2",
	   .path = 15u << 16 | offsetof(struct record, text),
	   .big = 1ull << 63,
	   .text = "/usr/bin/sleep" };

static struct tracepoint tp;

/* What bpf/core/event.bpf.h does */
static bool holds(const struct sf_event_test *t)
{
	size_t at = t->at;
	uint64_t v = 0;
	uint32_t place;

	if (t->flags & SF_TEST_DYNAMIC) {
		memcpy(&place, (char *)&made + at, sizeof(place));
		at = (place & 0xffff) + t->skip;
	}
	memcpy(&v, (char *)&made + at, t->size);
	if (t->flags & SF_TEST_SIGNED && t->size < 8)
		v = (uint64_t)((int64_t)(v << (64 - 8 * t->size)) >> (64 - 8 * t->size));
	switch (t->op) {
	case SF_TEST_EQ:
		return v == t->value;
	case SF_TEST_AND:
		return v & t->value;
	case SF_TEST_LESS:
		return t->flags & SF_TEST_SIGNED ? (int64_t)v < (int64_t)t->value : v < t->value;
	default:
		return t->flags & SF_TEST_SIGNED ? (int64_t)v > (int64_t)t->value : v > t->value;
	}
}

/* 1, 0, or -EINVAL */
static int passes(const char *text)
{
	struct sf_event_filter f;
	uint32_t next = 0;
	int err;

	if (!tp.nfields)
		tracepoint_parse(format, &tp);
	err = event_filter_compile(&tp, text, &f, why, sizeof(why));
	while (!err && next < SF_EVENT_TESTS) {
		uint32_t after = holds(&f.tests[next]) ? f.tests[next].yes : f.tests[next].no;

		EXPECT(after > next);
		next = after > next ? after : SF_TEST_FAIL;
	}
	return err ? err : next == SF_TEST_PASS;
}

TEST(events_fields)
{
	passes("big == 0");
	EXPECT_EQ(tp.nfields, 6);
	EXPECT_STR(tp.fields[2].name, "comm");
	EXPECT(tp.fields[2].text && !tp.fields[2].dynamic);
	EXPECT_STR(tp.fields[3].name, "path");
	EXPECT(tp.fields[3].text && tp.fields[3].dynamic);
	EXPECT_STR(tp.fields[5].name, "pointer");
	EXPECT(!tp.fields[5].text);
}

TEST(events_filters)
{
	static const struct {
		const char *text;
		int result;
	} cases[] = {
		{ "number == -7", 1 },
		{ "number<0", 1 },
		{ "number > -7", 0 },
		{ "number >= -7", 1 },
		{ "number <= -8", 0 },
		{ "number != -7", 0 },
		{ "big > 5", 1 },
		{ "big == 0x8000000000000000", 1 },
		{ "flags & 2", 1 },
		{ "flags & 1", 0 },
		{ "!(flags & 1)", 1 },
		{ "!!flags == 6", 1 },
		{ "flags == 6 && number == 1", 0 },
		{ "flags == 6 || number == 1", 1 },
		{ "flags == 1 || flags == 2 || flags == 6", 1 },
		{ "flags == 1 && flags == 2 || flags == 6", 1 },
		{ "flags == 6 || flags == 1 && flags == 2", 1 },
		{ "(flags == 6 || flags == 1) && flags == 2", 0 },
		{ "!(flags == 1 || (number == -7 && big == 0))", 1 },
		{ "comm == \"kworker/1:2\"", 1 },
		{ "comm == kworker/1:2", 1 },
		{ "comm == \"kworker/1:\"", 0 },
		{ "comm == \"kworker\"", 0 },
		{ "comm != \"kworker/1:3\"", 1 },
		{ "comm ~ \"kworker/*\"", 1 },
		{ "comm ~ \"kw*\" && number == -7", 1 },
		{ "comm ~ \"kx*\"", 0 },
		{ "comm ~ \"*\"", -EINVAL },
		{ "path == '/usr/bin/sleep'", 1 },
		{ "path == '/usr/bin/slee'", 0 },
		{ "path == '/usr/bin/sleepy'", 0 },
		{ "path ~ '/usr/bin/*' && !(path ~ '/usr/sbin*')", 1 },
		{ "nothing == 1", -EINVAL },
		{ "number", -EINVAL },
		{ "number == ", -EINVAL },
		{ "number == 1 &&", -EINVAL },
		{ "(number == 1", -EINVAL },
		{ "number == 1)", -EINVAL },
		{ "comm > 3", -EINVAL },
		{ "comm == \"unclosed", -EINVAL },
		{ "comm ~ \"*x\"", -EINVAL },
		{ "comm == \"a text of more than sixteen bytes\"", -EINVAL },
		{ "", -EINVAL },
		{ "common_type == 1", -EINVAL },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int got = passes(cases[i].text);

		if (got != cases[i].result)
			printf("  %s\n", cases[i].text);
		EXPECT_EQ(got, cases[i].result);
	}
}

TEST(events_filter_limits)
{
	char text[4096] = "flags == 0";

	for (int i = 1; i < SF_EVENT_TESTS; i++)
		strcat(text, " || flags == 0");
	EXPECT_EQ(passes(text), 0);
	strcat(text, " || flags == 6");
	EXPECT_EQ(passes(text), -EINVAL);
	memset(text, '(', 3000);
	text[3000] = 0;
	EXPECT_EQ(passes(text), -EINVAL);
	memset(text, '!', 3000);
	EXPECT_EQ(passes(text), -EINVAL);
}

/* ---- Operands ---- */

#ifdef __x86_64__
TEST(events_operands)
{
	struct sf_event_site s = { .value = SF_VALUE_ONE };

	EXPECT_EQ(event_usdt_argument("8@%rdi -4@$-5 2@-12(%rbp) -1@4(%rax,%rcx,8)", 1, &s), 0);
	EXPECT(s.value == SF_VALUE_HERE && s.size == 8 && !s.is_signed);
	EXPECT_EQ(s.at, event_argument(1, false));
	EXPECT_EQ(event_usdt_argument("8@%rdi -4@$-5", 2, &s), 0);
	EXPECT(s.value == SF_VALUE_CONST && s.size == 4 && s.is_signed);
	EXPECT_EQ(s.add, -5);
	EXPECT_EQ(event_usdt_argument("2@-12(%rbp)", 1, &s), 0);
	EXPECT(s.value == SF_VALUE_MEMORY && s.size == 2 && !s.scale);
	EXPECT_EQ(s.add, -12);
	s = (struct sf_event_site){ .value = SF_VALUE_ONE };
	EXPECT_EQ(event_usdt_argument("-1@(%rax,%rcx,8)", 1, &s), 0);
	EXPECT_EQ(s.at, event_result());
	EXPECT_EQ(s.index, event_argument(4, false));
	EXPECT_EQ(s.scale, 8);
	EXPECT_EQ(event_usdt_argument("4@%edx", 1, &s), 0);
	EXPECT_EQ(s.at, event_argument(3, false));
	EXPECT_EQ(event_usdt_argument("8@%rdi", 2, &s), -ENOENT);
	EXPECT_EQ(event_usdt_argument("", 1, &s), -ENOENT);
	for (const char *const *p =
		     (const char *const[]){ "8@%xmm0", "8f@%rdi", "3@%rdi", "8@name",
					    "8@name(%rip)", "8@(%rax", "8@(%rax,", "8@(%rax,%rcx,",
					    "8", "@%rdi", "8@", "8@-", NULL };
	     *p; p++)
		EXPECT_EQ(event_usdt_argument(*p, 1, &s), -EINVAL);
	EXPECT_EQ(event_argument(7, false), -1);
	EXPECT_EQ(event_argument(0, true), -1);
	EXPECT_EQ(event_argument(1, true), event_result());
}
#endif

/* ---- Places ---- */

int events_probed_function(int x);

__attribute__((noinline)) int events_probed_function(int x)
{
	__asm__ volatile("" : "+r"(x));
	return x;
}

static int read_own(const char *pattern, enum elf_probes_of what, struct elf_probes *ret)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), err;
	struct elf_image img;

	err = elf_image_open_fd(&img, fd, NULL);
	if (!err) {
		err = elf_probes_read(&img, what, pattern, ret);
		elf_image_close(&img);
	}
	close(fd);
	return err;
}

int events_two_exits(volatile int *x);
int events_ends_elsewhere(volatile int *x);

/* Two exits, and none that is a jump to another function. */
__attribute__((noinline)) int events_two_exits(volatile int *x)
{
	if (*x > 3) {
		*x = 1;
		return 7;
	}
	*x += 2;
	return 9;
}

/* What it calls last returns in its stead. */
__attribute__((noinline, optimize("O2"))) int events_ends_elsewhere(volatile int *x)
{
	*x = 3;
	return events_two_exits(x);
}

TEST(events_exits_of_functions)
{
	volatile int x = 3;
	unsigned int exits = 0;
	struct elf_probes p;

	EXPECT_EQ(events_ends_elsewhere(&x), 9);
	EXPECT_EQ(read_own("events_two_exits", ELF_PROBES_CALLS, &p), 0);
	for (uint32_t i = 0; i < p.n; i++)
		exits += p.v[i].kind == PROBE_EXIT;
	EXPECT(p.exits_known);
	EXPECT(exits >= 1);
	EXPECT_EQ(p.n, exits + 1);
	elf_probes_free(&p);
#if defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
	EXPECT_EQ(read_own("events_ends_elsewhere", ELF_PROBES_CALLS, &p), 0);
	EXPECT(!p.exits_known);
	elf_probes_free(&p);
#endif
	EXPECT_EQ(read_own("events_probed_function", ELF_PROBES_FUNCTIONS, &p), 0);
	EXPECT(!p.exits_known);
	elf_probes_free(&p);
}

TEST(events_of_calls)
{
	events_free(&all);
	EXPECT_EQ(events_add_calls(&all, "uprobe:a:f", NULL, false, why, sizeof(why)), 0);
	EXPECT_EQ(all.n, 1);
	EXPECT_EQ(all.v[0].call, SF_CALL_ENTRY);
	events_free(&all);
	EXPECT_EQ(events_add_calls(&all, "usdt:a:b:c", "usdt:a:b:d", true, why, sizeof(why)), 0);
	EXPECT_EQ(all.n, 2);
	EXPECT_EQ(all.v[0].call, SF_CALL_PAIR_ENTRY);
	EXPECT_EQ(all.v[1].call, SF_CALL_PAIR_EXIT);
	events_free(&all);
	EXPECT_EQ(events_add_calls(&all, "uprobe:a:f=arg1", NULL, false, why, sizeof(why)),
		  -EINVAL);
	events_free(&all);
	EXPECT_EQ(events_add_calls(&all, "cpu-clock", NULL, false, why, sizeof(why)), -EINVAL);
	events_free(&all);
}

TEST(events_functions_of_a_file)
{
	struct elf_probes p;

	EXPECT_EQ(events_probed_function(3), 3);
	EXPECT_EQ(read_own("events_probed_function", ELF_PROBES_FUNCTIONS, &p), 0);
	EXPECT_EQ(p.n, 1);
	EXPECT_STR(p.n ? p.text + p.v[0].name : "", "events_probed_function");
	elf_probes_free(&p);
	EXPECT_EQ(read_own("events_probed_f*n", ELF_PROBES_FUNCTIONS, &p), 0);
	EXPECT_EQ(p.n, 1);
	elf_probes_free(&p);
	EXPECT_EQ(read_own("events_probed_funktion", ELF_PROBES_FUNCTIONS, &p), 0);
	EXPECT_EQ(p.n, 0);
	EXPECT_STR(p.text, "events_probed_function");
	elf_probes_free(&p);
	EXPECT_EQ(read_own("no:such", ELF_PROBES_USDT, &p), 0);
	EXPECT_EQ(p.n, 0);
	elf_probes_free(&p);
}

TEST(events_places_are_checked)
{
	struct elf_probe v = { .off = 1, .name = 1, .args = 0 };
	char text[] = "\0name";
	struct elf_probes made_places = { .v = &v, .text = text, .n = 1, .text_len = 6 }, taken;
	char path[] = "/tmp/sfbpf-events-XXXXXX";
	int fd = mkstemp(path);

	unlink(path);
	EXPECT_EQ(elf_probes_write(&made_places, fd), 0);
	EXPECT_EQ(elf_probes_take(fd, 1, 6, &taken), 0);
	EXPECT_STR(taken.text + taken.v[0].name, "name");
	elf_probes_free(&taken);
	EXPECT_EQ(elf_probes_take(fd, 1, 5, &taken), -EBADMSG); /* no NUL at the end */
	EXPECT_EQ(elf_probes_take(fd, 1, 0, &taken), -EBADMSG);
	EXPECT_EQ(elf_probes_take(fd, 1, 7, &taken), -EBADMSG);
	EXPECT_EQ(elf_probes_take(fd, ELF_PROBES_MOST + 1, 6, &taken), -EBADMSG);
	v.name = 6;
	EXPECT_EQ(pwrite(fd, &v, sizeof(v), 0), (ssize_t)sizeof(v));
	EXPECT_EQ(elf_probes_take(fd, 1, 6, &taken), -EBADMSG);
	close(fd);
}
