/* SPDX-License-Identifier: BSD-2-Clause */
/* Recorded files read back: what comes out is what went in, and damage is said where it is. */
#include "out/out_stacks.h"

#include <errno.h>
#include <stdlib.h>

#include "base/json_read.h"
#include "out/out_html.h"
#include "prof/read_stacks.h"
#include "test.h"
#include "world.h"

static int read_text(const char *text, size_t len, struct stackset *ss, enum stack_side side,
		     struct stacks_meta *meta, struct read_error *why)
{
	FILE *f = fmemopen((void *)text, len ? len : 1, "r");
	int err;

	if (!len)
		getc(f);
	err = read_stacks(f, ss, side, meta, why);
	fclose(f);
	return err;
}

/* JSON's numbers, strings and nesting, and what is none of it. */
TEST(json_read)
{
	static const char text[] =
		" {\"a\" : -1.5e1, \"b\":[1,[2,{}],\"x\\u00e4\\ud83d\\ude00\\n\\/\"], "
		"\"n\":null,\"u\":18446744073709551615 } ";
	static const char *const bad[] = {
		"",	      "{",	 "{\"a\"", "{\"a\":}",	    "[1,]", "[1 2]",
		"{\"a\":1,}", "\"\\x\"", "\"\n\"", "[\"\\u12g4\"]", "x",    "{1:2}"
	};
	struct json_reader j;
	const char *key;

	json_reader_init(&j, text, sizeof(text) - 1);
	EXPECT(json_enter(&j, '{'));
	EXPECT_STR(json_key(&j), "a");
	EXPECT(json_number(&j) == -15);
	EXPECT_STR(json_key(&j), "b");
	EXPECT(json_enter(&j, '['));
	EXPECT(json_element(&j));
	EXPECT_EQ(json_unsigned(&j), 1);
	EXPECT(json_element(&j));
	json_skip(&j);
	EXPECT(json_element(&j));
	EXPECT_STR(json_string(&j), "x\xc3\xa4\xf0\x9f\x98\x80\n/");
	EXPECT(!json_element(&j));
	EXPECT_STR(json_key(&j), "n");
	EXPECT_STR(json_string(&j), "");
	EXPECT_STR(json_key(&j), "u");
	EXPECT(json_unsigned(&j) == UINT64_MAX);
	EXPECT(!json_key(&j));
	EXPECT(!j.bytes.err);
	json_reader_free(&j);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		json_reader_init(&j, bad[i], strlen(bad[i]));
		json_skip(&j);
		if (!j.bytes.err)
			printf("  accepted: %s\n", bad[i]);
		EXPECT(j.bytes.err);
		json_reader_free(&j);
	}
	{
		char deep[300];

		memset(deep, '[', sizeof(deep));
		json_reader_init(&j, deep, sizeof(deep));
		json_skip(&j);
		EXPECT(j.bytes.err);
		key = json_key(&j);
		EXPECT(!key);
		json_reader_free(&j);
	}
}

TEST(read_folded_back)
{
	static const char text[] = "a b;main;f_[k] 3\n"
				   "a b;main;f_[k] 4\n" /* adds up */
				   "\n"
				   "x;[incomplete:jit];g_[j];h_[i] 1\n"
				   "y 2\n"
				   "e\x1b;bad\xff;\xe2\x80\xae 5"; /* no newline at the end */
	struct stackset ss;
	struct stacks_meta meta;
	struct read_error why;
	char *out;

	EXPECT_EQ(stackset_init(&ss), 0);
	EXPECT_EQ(read_text(text, sizeof(text) - 1, &ss, STACK_AFTER, &meta, &why), 0);
	EXPECT_EQ(ss.totals[STACK_AFTER], 15);
	EXPECT_STR(meta.unit, "samples");
	out = folded_of(&ss, false);
	EXPECT_STR(out, "a b;main;f_[k] 7\ne.;bad\xef\xbf\xbd;\xef\xbf\xbd 5\n"
			"x;[incomplete:jit];g_[j];h_[i] 1\ny 2\n");
	free(out);
	EXPECT_EQ(read_text("a b;main;f_[k] 1\nnew 9\n", 23, &ss, STACK_BEFORE, &meta, &why), 0);
	out = folded_of(&ss, true);
	EXPECT(strstr(out, "a b;main;f_[k] 1 7\n") && strstr(out, "\nnew 9 0\n") &&
	       strstr(out, "\ny 0 2\n"));
	free(out);
	stackset_free(&ss);
}

TEST(read_folded_damage)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{ "a;b 1\nnonsense\n", "line 2: no count at its end" },
		{ "a;b x1\n", "line 1: no count at its end" },
		{ "a;b -1\n", "line 1: no count at its end" },
		{ "a;b 99999999999999999999\n", "line 1: no count at its end" },
		{ "a;b \n", "line 1: no count at its end" },
		{ " 1\n", "line 1: no stack" },
		{ "\x1f\x8b\x08", "damaged gzip data" },
		{ "<!DOCTYPE html>",
		  "neither folded lines nor JSON nor pprof written by sfbpf record" },
		{ "{\"meta\":{\"schema\":2},\"stacks\":[]}",
		  "JSON, but not a profile of schema 1" },
		{ "{\"meta\":{\"schema\":1}, oops", "byte 22: damaged JSON" },
	};
	struct stackset ss;
	struct stacks_meta meta;
	struct read_error why;
	char deep[20000] = "a";

	EXPECT_EQ(stackset_init(&ss), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		EXPECT_EQ(read_text(cases[i].text, strlen(cases[i].text), &ss, STACK_AFTER, &meta,
				    &why),
			  -EINVAL);
		EXPECT_STR(why.text, cases[i].want);
	}
	for (int i = 0; i < 5000; i++)
		strcat(deep + i, ";x");
	strcat(deep, " 1");
	EXPECT_EQ(read_text(deep, strlen(deep), &ss, STACK_AFTER, &meta, &why), -EINVAL);
	EXPECT_STR(why.text, "line 1: too many frames");
	EXPECT_EQ(read_text("", 0, &ss, STACK_AFTER, &meta, &why), 0);
	stackset_free(&ss);
}

TEST(read_json_back)
{
	struct stackset ss;
	struct stacks_meta meta;
	struct read_error why;
	struct world w;
	char *json, *folded, *out;
	size_t len;

	make_world(&w);
	fill(&w);
	w.meta.start_unix_ns = 1700000000123456789;
	json = written_bytes(out_json, &w.r, &len);
	folded = written(out_folded, &w.r);
	EXPECT_EQ(stackset_init(&ss), 0);
	EXPECT_EQ(read_text(json, len, &ss, STACK_AFTER, &meta, &why), 0);
	out = folded_of(&ss, false);
	EXPECT_STR(out, folded);
	EXPECT_EQ(ss.totals[STACK_AFTER], 21);
	EXPECT_STR(meta.event, "cpu-clock");
	EXPECT_STR(meta.host, "host.");
	EXPECT(meta.hz == 99 && meta.duration_s == 10.5);
	EXPECT(meta.start_unix_ns == 1700000000123456789);
	EXPECT_EQ(meta.lost, 4);
	EXPECT_EQ(meta.user_stacks, 17);
	EXPECT_EQ(meta.complete, 9);
	EXPECT_EQ(ss.groups.keys[0].b, 7);
	free(out);
	stackset_free(&ss);
	for (size_t n = 0; n + 3 < len; n += 7) { /* cut anywhere: an error, never a crash */
		EXPECT_EQ(stackset_init(&ss), 0);
		if (n > 8)
			EXPECT_EQ(read_text(json, n, &ss, STACK_AFTER, &meta, &why), -EINVAL);
		stackset_free(&ss);
	}
	free(json);
	free(folded);
	free_world(&w);
}

static void add_block(struct profile *p, const char *comm, uint32_t pid, uint8_t stop,
		      uint64_t frame, const struct profile_times *t)
{
	struct sf_sample *rec = calloc(1, sizeof(*rec) + 8);

	rec->pid = pid;
	rec->stop = stop;
	rec->flags = SF_SAMPLE_USER;
	rec->n_user = 1;
	rec->frames[0] = frame;
	strcpy(rec->comm, comm);
	EXPECT_EQ(profile_add_times(p, rec, t, NULL), 0);
	free(rec);
}

/*
 * Blocked time with states and wakers: JSON and what the page shows say the same as folded lines;
 * pprof does without the wakers' stacks.
 */
TEST(read_off_cpu_back)
{
	static const char want[] = "io;[app+0x20];--;irq;[incomplete:read_fault];[app+0x30] 7\n"
				   "io;[app+0x20];[runnable] 5\n"
				   "io;[incomplete:no_regs];[app+0x20] 2\n";
	static const char without_wakers[] = "io;[app+0x20] 7\n"
					     "io;[app+0x20];[runnable] 5\n"
					     "io;[incomplete:no_regs];[app+0x20] 2\n";
	int (*const writers[])(const struct out_report *r, FILE *f) = { out_folded, out_json,
									out_pprof };
	struct stackset ss;
	struct stacks_meta meta;
	struct read_error why;
	struct world w;
	char *file, *out;
	size_t len;

	make_world(&w);
	w.r.wakers = profile_new();
	w.r.opts.usec = w.st.offcpu = true;
	add_block(w.r.wakers, "irq", 1, SF_STOP_READ_FAULT, ROW(1, 0x30),
		  &(struct profile_times){ .count = 1, .weight = 1 });
	add_block(w.p, "io", 5, SF_STOP_COMPLETE, ROW(1, 0x20),
		  &(struct profile_times){ .count = 1, .weight = 7000, .waker = 1 });
	add_block(w.p, "io", 5, SF_STOP_COMPLETE, ROW(1, 0x20),
		  &(struct profile_times){ .count = 1, .weight = 5000, .state = SF_OFF_R });
	add_block(w.p, "io", 5, SF_STOP_NO_REGS, ROW(1, 0x20),
		  &(struct profile_times){ .count = 1, .weight = 2000 });
	for (int i = 0; i < 3; i++) {
		file = written_bytes(writers[i], &w.r, &len);
		EXPECT_EQ(stackset_init(&ss), 0);
		EXPECT_EQ(read_text(file, len, &ss, STACK_AFTER, &meta, &why), 0);
		out = folded_of(&ss, false);
		EXPECT_STR(out, writers[i] == out_pprof ? without_wakers : want);
		free(out);
		free(file);
		stackset_free(&ss);
	}
	EXPECT_EQ(stackset_init(&ss), 0);
	EXPECT_EQ(out_stackset(&w.r, &ss, STACK_AFTER, NULL), 0);
	EXPECT_EQ(ss.totals[STACK_AFTER], 14000); /* nanoseconds */
	/* Two of code, two markers, [runnable], --, irq */
	EXPECT_EQ(ss.frames.n, 7);
	stackset_free(&ss);
	profile_free(w.r.wakers);
	free_world(&w);
}

/* The text that is written of the stacks; to be freed. */
static char *text_of(struct stackset *ss, const struct stacks_text *opts)
{
	char *out = NULL;
	size_t len;
	FILE *f = open_memstream(&out, &len);

	EXPECT_EQ(stacks_write_text(ss, opts, f), 0);
	fclose(f);
	return out;
}

/* With --by, each name has a tree of its own, and functions of other stacks are not listed. */
TEST(stacks_text_by_name)
{
	static const char text[] = "one;main;a 6\ntwo;main;b 2\n";
	const struct html_meta about = { .event = "cpu-clock",
					 .host = "h",
					 .hz = 99,
					 .duration_s = 2.5,
					 .user_stacks = 8,
					 .complete = 4,
					 .lost = 1 };
	struct stacks_text opts = {
		.unit = "samples", .rows = 10, .tree_min = 1, .by = "thread", .meta = &about
	};
	struct stackset ss;
	struct stacks_meta meta;
	struct read_error why;
	char *out;

	EXPECT_EQ(stackset_init(&ss), 0);
	EXPECT_EQ(read_text(text, strlen(text), &ss, STACK_AFTER, &meta, &why), 0);
	out = text_of(&ss, &opts);
	EXPECT(strstr(out, "  SHARE%       samples  thread\n"
			   "   75.00             6  one\n"
			   "   25.00             2  two\n"));
	EXPECT(strstr(out, "  75.00  one:\n  75.00  main\n  75.00  a\n"
			   "  25.00  two:\n  25.00  main\n  25.00  b\n"));
	EXPECT(strstr(out, "\n8 samples of cpu-clock at 99 Hz in 2.5 s on h, 1 lost, "
			   "50.0 % of 8 user stacks complete\n"));
	free(out);
	ss.choice.comm = "none";
	EXPECT_EQ(read_text("one;main;c 1\n", 13, &ss, STACK_AFTER, &meta, &why), 0);
	out = text_of(&ss, &opts);
	EXPECT(!strstr(out, "  c\n"));
	free(out);
	stackset_free(&ss);
}

TEST(stacks_text)
{
	static const char text[] = "t;main;a;b;a 6\nt;main;a 2\nt;main;c_[k] 2\n";
	struct stacks_text opts = { .unit = "samples", .rows = 10, .tree_min = 1 };
	struct stackset ss;
	struct stacks_meta meta;
	struct read_error why;
	char *out;

	EXPECT_EQ(stackset_init(&ss), 0);
	EXPECT_EQ(read_text(text, strlen(text), &ss, STACK_AFTER, &meta, &why), 0);
	out = text_of(&ss, &opts);
	EXPECT_STR(out, "  SELF%  TOTAL%       SELF  MODULE                FUNCTION\n"
			"  80.00   80.00          8  -                     a\n"
			"  20.00   20.00          2  -                     c_[k]\n"
			"   0.00  100.00          0  -                     main\n"
			"   0.00   60.00          0  -                     b\n"
			"\n"
			" TOTAL%  CALL TREE, branches of 1 % and more\n"
			" 100.00  main\n"
			"  80.00  |- a\n"
			"  60.00  |  b\n"
			"  60.00  |  a\n"
			"  20.00  `- c_[k]\n"
			"\n"
			"10 samples\n");
	free(out);
	EXPECT_EQ(read_text("t;main;std::vector<std::basic_string<char>>::emplace_back 1\n", 60,
			    &ss, STACK_AFTER, &meta, &why),
		  0);
	opts.columns = 80;
	out = text_of(&ss, &opts);
	EXPECT(strstr(out, "   9.09    9.09          1  -                     "
			   "std::vector<std::basic_strin~\n"));
	EXPECT(strstr(out, "   9.09  `- std::vector<std::basic_string<char>>::emplace_back\n"));
	for (const char *line = out; *line; line = strchr(line, '\n') + 1)
		EXPECT(strcspn(line, "\n") <= 80);
	free(out);
	stackset_free(&ss);
}
