/* SPDX-License-Identifier: BSD-2-Clause */
#include "out/out.h"

#include <errno.h>

#include "test.h"
#include "world.h"

TEST(out_folded)
{
	struct world w;
	char *out;

	make_world(&w);
	fill(&w);
	out = written(out_folded, &w.r);
	EXPECT_STR(out, "[unknown];[unknown] 6\n"
			"a:b .\xef\xbf\xbd;[incomplete:read_fault];[li:b.+0x30];[unknown]_[j] 3\n"
			"app;[app+0x10];[app+0x20];vfs_read_[k] 3\n"
			"app;[incomplete:no_regs] 5\n"
			"kworker/0:1;vfs_read_[k] 4\n");
	free(out);
	w.r.opts.user_only = true;
	out = written(out_folded, &w.r);
	EXPECT_STR(out, "[unknown];[unknown] 6\n"
			"a:b .\xef\xbf\xbd;[incomplete:read_fault];[li:b.+0x30];[unknown]_[j] 3\n"
			"app;[app+0x10];[app+0x20] 3\n"
			"app;[incomplete:no_regs] 5\n"
			"kworker/0:1 4\n");
	free(out);
	w.r.opts = (struct out_opts){ .kernel_only = true };
	out = written(out_folded, &w.r);
	EXPECT_STR(out, "[unknown] 6\n"
			"a:b .\xef\xbf\xbd 3\n"
			"app 5\n"
			"app;vfs_read_[k] 3\n"
			"kworker/0:1;vfs_read_[k] 4\n");
	free(out);
	w.r.opts = (struct out_opts){ .usec = true };
	out = written(out_folded, &w.r);
	EXPECT_STR(out, "[unknown];[unknown] 12\n"
			"a:b .\xef\xbf\xbd;[incomplete:read_fault];[li:b.+0x30];[unknown]_[j] 3\n"
			"app;[app+0x10];[app+0x20];vfs_read_[k] 4\n"
			"kworker/0:1;vfs_read_[k] 4\n");
	free(out);
	free_world(&w);
}

TEST(out_folded_empty)
{
	struct world w;
	char *out;

	make_world(&w);
	out = written(out_folded, &w.r);
	EXPECT_STR(out, "");
	free(out);
	free_world(&w);
}

TEST(out_wakers)
{
	struct world w;
	struct profile *wakers;
	char *out;

	make_world(&w);
	wakers = fill_wakers(&w);
	out = written(out_folded, &w.r);
	EXPECT_STR(out, "app;[app+0x40];--;b;[app+0x30];--;[hardirq];vfs_read_[k] 5\n");
	free(out);
	out = written(out_json, &w.r);
	EXPECT(strstr(out, "\"waker\":{\"comm\":\"b\"") != NULL);
	EXPECT(strstr(out, "\"waker\":{\"comm\":\"[hardirq]\"") != NULL);
	EXPECT(strstr(out, "\"waker\":null") != NULL);
	free(out);
	out = written(out_html, &w.r);
	EXPECT(strstr(out, "[hardirq]") != NULL);
	free(out);
	profile_free(wakers);
	free_world(&w);
}

TEST(out_full_disk)
{
	static int (*const writers[])(const struct out_report *r,
				      FILE *f) = { out_folded, out_json,  out_svg,
						   out_text,   out_pprof, out_html };
	struct world w;
	FILE *f;

	make_world(&w);
	fill(&w);
	for (uint64_t i = 0; i < 2000; i++) /* more than a buffer */
		add_fake(w.p, &(struct fake){ "x", 1, 0, USER, 1, 1, 0, { ROW(1, i) } }, 1);
	for (size_t i = 0; i < sizeof(writers) / sizeof(writers[0]); i++) {
		f = fopen("/dev/full", "w");
		if (!f)
			break;
		EXPECT_EQ(writers[i](&w.r, f), -ENOSPC);
		fclose(f);
	}
	f = fopen("/dev/full", "w");
	if (f) {
		EXPECT_EQ(out_stats(&w.st, f), -ENOSPC);
		fclose(f);
	}
	free_world(&w);
}

TEST(out_stats)
{
	static const struct run_program programs[] = { { "sf_sample", 12, 3456, 2500, 90, 800 },
						       { "sf_switch", 0, 0, 0, 0, 0 } };
	struct world w;
	char *out = NULL;
	size_t len;
	FILE *f;

	make_world(&w);
	fill(&w);
	w.st.tables.modules = 3;
	w.st.tables.build_ms = 1.25;
	w.st.parsers.died = 4;
	w.st.parsers.late = 5;
	w.st.parsers.deferred = 7;
	w.st.parsers.cut = 8;
	w.st.parsers.mangled = 9;
	w.st.parsers.changed = 10;
	w.st.parsers.failed = 6;
	w.st.programs = programs;
	w.st.nprograms = 2;
	w.st.self.cpu_ms = 20.5;
	w.st.self.rss_peak_kb = 4096;
	f = open_memstream(&out, &len);
	EXPECT_EQ(out_stats(&w.st, f), 0);
	fclose(f);
	EXPECT_STR(
		out,
		"{\"schema\":1,\"duration_s\":10.500,\"samples\":25,\"samples_without_user\":4,"
		"\"user_stacks\":{\"total\":17,\"complete\":9,\"bridged\":0,\"incomplete\":{"
		"\"no_module\":0,\"not_loaded\":0,\"no_table\":0,\"no_row\":0,\"read_fault\":3,"
		"\"depth\":0,\"bad_cfa\":0,\"reg_unknown\":0,\"no_rule\":0,\"jit\":0,\"compat\":0,"
		"\"no_regs\":5,\"modules_full\":0,\"tables_full\":0,\"ring_full\":0,\"asleep\":0,"
		"\"refused\":0,\"zero_ra\":0,"
		"\"lang_state\":0,\"lang_fault\":0,\"lang_anchor\":0,\"go_stack\":0}},"
		"\"frames\":{\"total\":18,\"sframe\":0,\"eh_frame\":9,\"code\":0,\"fp\":6,"
		"\"jit\":3,"
		"\"python\":0,\"java\":0,\"ruby\":0,\"javascript\":0,\"php\":0,\"perl\":0},"
		"\"languages\":{"
		"\"python\":{\"stacks\":0,\"complete\":0,\"frames\":0,\"unnamed\":0,"
		"\"incomplete\":{}},"
		"\"java\":{\"stacks\":0,\"complete\":0,\"frames\":0,\"unnamed\":0,"
		"\"incomplete\":{}},"
		"\"ruby\":{\"stacks\":0,\"complete\":0,\"frames\":0,\"unnamed\":0,"
		"\"incomplete\":{}},"
		"\"javascript\":{\"stacks\":0,\"complete\":0,\"frames\":0,\"unnamed\":0,"
		"\"incomplete\":{}},"
		"\"php\":{\"stacks\":0,\"complete\":0,\"frames\":0,\"unnamed\":0,"
		"\"incomplete\":{}},"
		"\"perl\":{\"stacks\":0,\"complete\":0,\"frames\":0,\"unnamed\":0,"
		"\"incomplete\":{}}},"
		"\"lost\":{\"ring_full\":4,\"busy\":0,\"bad_record\":0},"
		"\"tables\":{\"modules\":3,\"rows\":0,\"rules\":0,\"bytes\":0,\"build_ms\":1.250,"
		"\"evicted\":0,\"recycled\":0,\"full\":0},"
		"\"needs\":{\"sent\":0,\"dropped\":0,\"refused\":0},"
		"\"parsers\":{\"died\":4,\"late\":5,\"failed\":6,\"deferred\":7,\"cut\":8,"
		"\"mangled\":9,\"changed\":10},"
		"\"bpf\":{\"sf_sample\":{\"run_cnt\":12,\"run_ns\":3456,\"verified_insns\":2500,"
		"\"verifier_states\":90,\"code_bytes\":800},"
		"\"sf_switch\":{\"run_cnt\":0,\"run_ns\":0,\"verified_insns\":0,"
		"\"verifier_states\":0,\"code_bytes\":0}},"
		"\"self\":{\"cpu_ms\":20.500,\"rss_peak_kb\":4096}}\n");
	free(out);
	free_world(&w);
}

TEST(out_text)
{
	struct world w;
	char *out;

	make_world(&w);
	fill(&w);
	out = written(out_text, &w.r);
	EXPECT_STR(out, "  SELF%  TOTAL%       SELF  MODULE                FUNCTION\n"
			"  33.33   33.33          7  [kernel]              vfs_read_[k]\n"
			"  28.57   28.57          6  [unknown]             [unknown]\n"
			"  23.81   23.81          5  [no stack]            [no stack]\n"
			"  14.29   14.29          3  [jit]                 [unknown]_[j]\n"
			"   0.00   14.29          0  app                   [app+0x10]\n"
			"   0.00   14.29          0  app                   [app+0x20]\n"
			"   0.00   14.29          0  li;b.                 [li;b.+0x30]\n"
			"\n"
			"   CPU% KERNEL%      SAMPLES  COMPLETE%       PID  COMM\n"
			"  28.57    0.00            6      100.0         3  \n"
			"  28.57    4.76            6       16.7         7  app\n"
			"  19.05   19.05            4          -         2  kworker/0:1\n"
			"  14.29    0.00            3        0.0         9  a;b .\xef\xbf\xbd\n"
			"   9.52    9.52            2      100.0         8  app\n"
			"\n"
			"25 samples of cpu-clock at 99 Hz in 10.5 s, 4 lost (ring_full 4), "
			"52.9 % of 17 user stacks complete (read_fault 3, no_regs 5)\n");
	free(out);
	w.r.opts.rows = 2;
	out = written(out_text, &w.r);
	EXPECT(strstr(out, "... and 5 more functions\n"));
	EXPECT(strstr(out, "... and 3 more processes\n"));
	free(out);
	free_world(&w);
}

TEST(out_json)
{
	struct world w;
	struct module *m;
	char *out;

	make_world(&w);
	fill(&w);
	m = modules_find(w.ms, 1);
	memcpy(m->build_id, "\x01\xab", 2);
	m->build_id_len = 2;
	out = written(out_json, &w.r);
	EXPECT(strstr(
		out,
		"{\"meta\":{\"schema\":1,\"tool\":\"sfbpf " SFBPF_VERSION
		"\",\"host\":\"host.\",\"event\":\"cpu-clock\",\"hz\":99.000,"
		"\"start_unix_ns\":null,\"duration_s\":10.500,\"unit\":\"samples\",\"samples\":25,"
		"\"lost\":4}"));
	EXPECT(strstr(out, "{\"id\":1,\"name\":\"app\",\"path\":\"app\",\"build_id\":\"01ab\"}"));
	EXPECT(strstr(out, "{\"id\":2,\"name\":\"li;b.\",\"path\":\"li;b.\",\"build_id\":null}"));
	EXPECT(strstr(
		out,
		"{\"comm\":\"app\",\"process\":\"app\",\"pid\":7,\"cgroup_id\":0,\"count\":1,"
		"\"samples\":1,\"stop\":\"complete\",\"frames\":["
		"{\"name\":\"[app+0x10]\",\"module\":\"app\",\"kind\":\"user\",\"module_id\":1,"
		"\"offset\":16},"
		"{\"name\":\"[app+0x20]\",\"module\":\"app\",\"kind\":\"user\",\"module_id\":1,"
		"\"offset\":32},"
		"{\"name\":\"vfs_read_[k]\",\"module\":\"[kernel]\",\"kind\":\"kernel\"}]}"));
	EXPECT(strstr(out, "{\"name\":\"[unknown]_[j]\",\"module\":\"[jit]\",\"kind\":\"jit\","
			   "\"address\":\"0x7000\"}"));
	EXPECT(strstr(out, "\"pid\":2,\"cgroup_id\":0,\"count\":4,\"samples\":4,\"stop\":null,"));
	if (system("python3 -c 1 2>/dev/null") == 0) {
		FILE *p = popen("python3 -c 'import json,sys; d=json.load(sys.stdin); "
				"assert len(d[\"stacks\"])==6'",
				"w");

		EXPECT(p && fputs(out, p) >= 0);
		EXPECT(p && pclose(p) == 0);
	}
	free(out);
	free_world(&w);
}

TEST(out_formats)
{
	const struct out_format *f;

	EXPECT(out_format_named("folded", OUT_SAMPLES) && out_format_named("json", OUT_SAMPLES) &&
	       out_format_named("text", OUT_SAMPLES));
	EXPECT(!out_format_named("xml", OUT_SAMPLES) && !out_format_named("", OUT_SAMPLES));
	f = out_format_choose(NULL, "/tmp/x.folded", "?", OUT_SAMPLES);
	EXPECT(f && strcmp(f->name, "folded") == 0);
	f = out_format_choose(NULL, "x.txt", "?", OUT_SAMPLES);
	EXPECT(f && strcmp(f->name, "folded") == 0);
	f = out_format_choose(NULL, "a.folded.json", "?", OUT_SAMPLES);
	EXPECT(f && strcmp(f->name, "json") == 0);
	f = out_format_choose(NULL, "/tmp/x.pb.gz", "?", OUT_SAMPLES);
	EXPECT(f && strcmp(f->name, "pprof") == 0 && f->binary);
	f = out_format_choose(NULL, "/tmp/x.html", "?", OUT_SAMPLES);
	EXPECT(f && strcmp(f->name, "html") == 0 && !f->binary);
	EXPECT(!out_format_choose(NULL, "json", "?", OUT_SAMPLES) &&
	       !out_format_choose(NULL, ".json", "?", OUT_SAMPLES) &&
	       !out_format_choose(NULL, "x.bin", "?", OUT_SAMPLES) &&
	       !out_format_choose(NULL, "-", "?", OUT_SAMPLES));
}
