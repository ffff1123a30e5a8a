/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "out/out_html.h"
#include "test.h"
#include "world.h"

static char *svg_of(const struct stackset *ss, const struct html_meta *meta)
{
	char *out = NULL;
	size_t len;
	FILE *f = open_memstream(&out, &len);

	EXPECT_EQ(svg_write(ss, meta, f), 0);
	fclose(f);
	return out;
}

static void expect_part(const char *text, const char *part, bool want)
{
	if (!strstr(text, part) == want) {
		printf("  %s: %s\n", want ? "missing" : "present", part);
		test_errors++;
	}
}

TEST(svg_boxes)
{
	struct world w;
	char *out;

	make_world(&w);
	fill(&w);
	out = written(out_svg, &w.r);
	/* 21 samples on 1184 columns; the widest thread name, app, has 8 of them. */
	expect_part(out, "<title>all\n21 samples, 100.00 %</title>", true);
	expect_part(out, "<title>app\n8 samples, 38.10 %</title><rect x=\"8.00\" ", true);
	expect_part(out, "<title>[app+0x20] (app)\n3 samples, 14.29 %</title>", true);
	expect_part(out, "width=\"450.05\" height=\"17\"", true);
	expect_part(out, "<title>[incomplete:read_fault]\n3 samples", true);
	expect_part(out, "</svg>\n", true);
	free(out);
	w.r.opts.usec = true;
	out = written(out_svg, &w.r);
	expect_part(out, " ms, 100.00 %</title>", true);
	free(out);
	free_world(&w);
}

TEST(svg_hostile_names)
{
	static const char name[] = "</title><script>&\"\xef\xbf\xbf\xef\xbf\xbe";
	struct html_meta meta = { .title = "<b>\x1b" };
	struct stackset ss;
	uint32_t frame;
	char *out;

	EXPECT_EQ(stackset_init(&ss), 0);
	EXPECT_EQ(stackset_frame(&ss, name, strlen(name), "", STACK_USER, &frame), 0);
	EXPECT_EQ(stackset_add(&ss, "<c>", 1, &frame, 1, STACK_AFTER, 1), 0);
	out = svg_of(&ss, &meta);
	expect_part(out,
		    "<title>&lt;/title&gt;&lt;script&gt;&amp;\"\xef\xbf\xbd\xef\xbf\xbd\n1 sample,",
		    true);
	expect_part(out, "<script", false);
	expect_part(out, "<b>", false);
	expect_part(out, "<c>", false);
	expect_part(out, "\xef\xbf\xbf", false);
	free(out);
	stackset_free(&ss);
}

/* The colours that flame_model.js gives the same frames by day, and its legend. */
TEST(svg_colours_of_the_page)
{
	static const struct {
		const char *name, *module;
		enum stack_kind kind;
		const char *colour;
	} cases[] = {
		{ "main", "libc.so.6", STACK_USER, "#f7da7a" },
		{ "gr\xc3\xb6\xc3\x9f"
		  "e\xf0\x9f\x98\x80",
		  "", STACK_USER, "#f48c58" },
		{ "schedule", "[kernel]", STACK_KERNEL, "#9db5e8" },
		{ "f (a.py:12)", "", STACK_USER, "#f4e66a" },
		{ "[running]", "", STACK_NOTE, "#94d19c" },
	};
	const struct html_meta meta = { 0 };
	struct stackset ss;
	uint32_t frame;
	char *out, part[128];

	EXPECT_EQ(stackset_init(&ss), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		EXPECT_EQ(stackset_frame(&ss, cases[i].name, strlen(cases[i].name), cases[i].module,
					 cases[i].kind, &frame),
			  0);
		EXPECT_EQ(stackset_add(&ss, "c", 1, &frame, 1, STACK_AFTER, 1), 0);
	}
	out = svg_of(&ss, &meta);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *box = strstr(out, cases[i].name), *end = box ? strstr(box, "/>") : NULL,
			   *fill = box ? strstr(box, cases[i].colour) : NULL;

		if (!fill || fill > end)
			printf("  %s: %.*s\n", cases[i].name, end ? (int)(end - box) : 0, box);
		EXPECT(fill && fill < end);
	}
	expect_part(out, "fill=\"#f6b76a\"/>", true);
	for (const char *const *text =
		     (const char *const[]){ "user", "kernel", "process, thread, state", "Python",
					    NULL };
	     *text; text++) {
		snprintf(part, sizeof(part), "\">%s</text>", *text);
		expect_part(out, part, true);
	}
	expect_part(out, ">JIT</text>", false);
	free(out);
	stackset_free(&ss);
}

TEST(svg_diff)
{
	struct html_meta meta = { .title = "new", .before = "old" };
	struct stackset ss;
	uint32_t frames[2];
	char *out;

	EXPECT_EQ(stackset_init(&ss), 0);
	EXPECT_EQ(stackset_frame(&ss, "less", 4, "", STACK_USER, &frames[0]), 0);
	EXPECT_EQ(stackset_frame(&ss, "more", 4, "", STACK_USER, &frames[1]), 0);
	for (int i = 0; i < 2; i++) {
		EXPECT_EQ(stackset_add(&ss, "c", 1, &frames[i], 1, STACK_BEFORE, i ? 1 : 3), 0);
		EXPECT_EQ(stackset_add(&ss, "c", 1, &frames[i], 1, STACK_AFTER, i ? 3 : 1), 0);
	}
	out = svg_of(&ss, &meta);
	expect_part(out, "old \xe2\x86\x92 new", true);
	/* Blue: less than before; red: more. */
	expect_part(out, "less\n1 sample, 25.00 %\nbefore: 3 samples, 75.00 %</title>", true);
	expect_part(out, "fill=\"#5a9cf2\"", true);
	expect_part(out, "fill=\"#f2695a\"", true);
	free(out);
	stackset_free(&ss);
}

TEST(svg_empty_and_full_disk)
{
	struct html_meta meta = { 0 };
	struct stackset ss;
	char *out;
	FILE *f = fopen("/dev/full", "w");

	EXPECT_EQ(stackset_init(&ss), 0);
	out = svg_of(&ss, &meta);
	expect_part(out, "0 samples", true);
	EXPECT_EQ(svg_write(&ss, &meta, f), -ENOSPC);
	fclose(f);
	free(out);
	stackset_free(&ss);
}
