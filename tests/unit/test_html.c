/* SPDX-License-Identifier: BSD-2-Clause */
/* The page's data, decoded as the page decodes it, says what folded output says. */
#include "out/out_html.h"

#include <stdlib.h>

#include "base/json_read.h"
#include "test.h"
#include "world.h"

#define MAX_STRINGS 64

struct data {
	char *strings[MAX_STRINGS];
	uint32_t nstrings;
	uint64_t groups[64], nodes, leaves;
	size_t ngroups;
	char frames[4096], tree[8192], cells[1024];
	uint64_t slices; /* 0: no times */
};

/* A view of the data element; the page's own text around it is not looked at. */
static struct bytes find_data(const char *html)
{
	static const char mark[] = "<script type=\"application/json\" id=\"data\">";
	const char *from = strstr(html, mark), *to;

	EXPECT(from);
	if (!from)
		return bytes_of(NULL, 0, false);
	from += strlen(mark);
	to = strchr(from, '<'); /* none inside, whatever names say */
	EXPECT(to && strncmp(to, "</script>", 9) == 0);
	return bytes_of(from, to ? (size_t)(to - from) : 0, false);
}

static void read_times(struct json_reader *j, struct data *d)
{
	const char *key;

	if (!json_enter(j, '{'))
		return;
	while ((key = json_key(j))) {
		if (!strcmp(key, "slices"))
			d->slices = json_unsigned(j);
		else if (!strcmp(key, "cells"))
			snprintf(d->cells, sizeof(d->cells), "%s", json_string(j));
		else
			json_skip(j);
	}
}

static void read_data(struct bytes text, struct data *d)
{
	struct json_reader j;
	const char *key;

	*d = (struct data){ 0 };
	json_reader_init(&j, text.base, text.len);
	EXPECT(json_enter(&j, '{'));
	while ((key = json_key(&j))) {
		if (!strcmp(key, "strings") && json_enter(&j, '[')) {
			while (json_element(&j) && d->nstrings < MAX_STRINGS)
				d->strings[d->nstrings++] = strdup(json_string(&j));
		} else if (!strcmp(key, "groups") && json_enter(&j, '[')) {
			while (json_element(&j) && d->ngroups < 64)
				d->groups[d->ngroups++] = json_unsigned(&j);
		} else if (!strcmp(key, "frames")) {
			snprintf(d->frames, sizeof(d->frames), "%s", json_string(&j));
		} else if (!strcmp(key, "tree")) {
			snprintf(d->tree, sizeof(d->tree), "%s", json_string(&j));
		} else if (!strcmp(key, "nodes")) {
			d->nodes = json_unsigned(&j);
		} else if (!strcmp(key, "leaves")) {
			d->leaves = json_unsigned(&j);
		} else if (!strcmp(key, "times")) {
			read_times(&j, d);
		} else {
			json_skip(&j);
		}
	}
	EXPECT(!j.bytes.err);
	json_reader_free(&j);
}

static void free_data(struct data *d)
{
	for (uint32_t i = 0; i < d->nstrings; i++)
		free(d->strings[i]);
}

static uint64_t digits(const char **s)
{
	static const char alphabet[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
	uint64_t v = 0;
	unsigned int shift = 0, d;

	do {
		const char *at = **s ? strchr(alphabet, *(*s)++) : NULL;

		EXPECT(at);
		if (!at)
			return 0;
		d = (unsigned int)(at - alphabet);
		v |= (uint64_t)(d & 31) << shift;
		shift += 5;
	} while (d & 32);
	return v;
}

/* "comm;frame@module_[k] COUNT\n" of all leaves, in the order of the tree. */
static void describe(const struct data *d, bool two_sides, char *out, size_t cap)
{
	static const char *const kinds[] = { "", "_[k]", "_[i]", "_[j]", "!" };
	const char *f = d->frames, *t = d->tree;
	uint64_t nframes = digits(&f), frames[64][3], path[64], depth = 0, nodes = 1, leaves = 0;
	size_t len = 0;

	for (uint64_t i = 0; i < nframes && i < 64; i++)
		for (int k = 0; k < 3; k++)
			frames[i][k] = digits(&f);
	EXPECT_EQ(*f, 0);
	while (*t) {
		depth -= digits(&t);
		for (uint64_t down = digits(&t); down && depth < 64; down--, nodes++)
			path[depth++] = digits(&t);
		for (uint64_t n = digits(&t); n; n--, leaves++) {
			len += (size_t)snprintf(out + len, cap - len, "%s/%d",
						d->strings[d->groups[2 * digits(&t)]], (int)depth);
			for (uint64_t i = 0; i < depth; i++)
				len += (size_t)snprintf(out + len, cap - len, ";%s@%s%s",
							d->strings[frames[path[i]][0]],
							d->strings[frames[path[i]][1]],
							kinds[frames[path[i]][2]]);
			len += (size_t)snprintf(out + len, cap - len, " %" PRIu64, digits(&t));
			if (two_sides)
				len += (size_t)snprintf(out + len, cap - len, " %" PRIu64,
							digits(&t));
			len += (size_t)snprintf(out + len, cap - len, "\n");
		}
	}
	EXPECT_EQ(nodes, d->nodes);
	EXPECT_EQ(leaves, d->leaves);
}

TEST(html_data)
{
	struct data d;
	struct world w;
	char *out, text[4096] = "";

	make_world(&w);
	fill(&w);
	out = written(out_html, &w.r);
	read_data(find_data(out), &d);
	describe(&d, false, text, sizeof(text));
	EXPECT_STR(text, "app/3;[app+0x10]@app;[app+0x20]@app;vfs_read@[kernel]_[k] 1\n"
			 "app/3;[app+0x10]@app;[app+0x20]@app;vfs_read@[kernel]_[k] 2\n"
			 "a;b .\xef\xbf\xbd/3;[incomplete:read_fault]@!;[li;b.+0x30]@li;b.;"
			 "[unknown]@[jit]_[j] 3\n"
			 "kworker/0:1/1;vfs_read@[kernel]_[k] 4\n"
			 "app/1;[incomplete:no_regs]@! 5\n"
			 "[unknown]/1;[unknown]@[unknown] 6\n");
	EXPECT_EQ(d.groups[1], 7);
	EXPECT_EQ(d.groups[3], 8);
	EXPECT(!strstr(out, "@NONCE@") && !strstr(out, "@DATA@") && !strstr(out, "@CSS@") &&
	       !strstr(out, "@VIEW@") && !strstr(out, "@STRIP@"));
	EXPECT(!d.slices);
	EXPECT(!strstr(out, "http://") && !strstr(out, "https://") && !strstr(out, "src="));
	free_data(&d);
	free(out);
	free_world(&w);
}

TEST(html_kernel_only)
{
	struct data d;
	struct world w;
	char *out, text[4096] = "";

	make_world(&w);
	fill(&w);
	w.r.opts = (struct out_opts){ .kernel_only = true };
	out = written(out_html, &w.r);
	read_data(find_data(out), &d);
	describe(&d, false, text, sizeof(text));
	EXPECT_STR(text, /* stacks that are empty now are at the root */
		   "a;b .\xef\xbf\xbd/0 3\n"
		   "app/0 5\n"
		   "[unknown]/0 6\n"
		   "app/1;vfs_read@[kernel]_[k] 1\n"
		   "app/1;vfs_read@[kernel]_[k] 2\n"
		   "kworker/0:1/1;vfs_read@[kernel]_[k] 4\n");
	free_data(&d);
	free(out);
	free_world(&w);
}

/* "SLICE*COUNT SLICE*COUNT\n" of leaves with these values, in the order of the tree. */
static void describe_cells(const struct data *d, const uint64_t *values, size_t n, char *out,
			   size_t cap)
{
	const char *t = d->cells;
	size_t len = 0;

	for (size_t l = 0; l < n; l++) {
		uint64_t rest = values[l], at = 0, count;

		while (rest && *t) {
			at += digits(&t);
			count = rest > 1 ? digits(&t) : 1;
			EXPECT(count && count <= rest);
			if (!count || count > rest)
				return;
			rest -= count;
			len += (size_t)snprintf(out + len, cap - len, "%" PRIu64 "*%" PRIu64 "%s",
						at, count, rest ? " " : "\n");
		}
	}
	EXPECT_EQ(*t, 0);
}

#define MS 1000000u

TEST(html_times)
{
	static const uint64_t values[] = { 1, 2, 3, 4, 5, 6 };
	struct slices slices = { 0 };
	struct data d;
	struct world w;
	char *out, text[1024] = "";

	make_world(&w);
	fill(&w);
	w.st.duration_s = 0.1;
	for (size_t i = 0; i < 6; i++)
		for (size_t k = 0; k <= i; k++)
			slices_add(&slices, (10 * i + k / 2) * MS, i);
	w.r.slices = &slices;
	out = written(out_html, &w.r);
	read_data(find_data(out), &d);
	EXPECT_EQ(d.slices, 101);
	describe_cells(&d, values, 6, text, sizeof(text));
	EXPECT_STR(text, "0*1\n10*2\n20*2 21*1\n30*2 31*2\n40*2 41*2 42*1\n50*2 51*2 52*2\n");
	free_data(&d);
	free(out);
	slices_add(&slices, 0, 0); /* a stack has fewer samples than its slices */
	out = written(out_html, &w.r);
	read_data(find_data(out), &d);
	EXPECT(!d.slices);
	free_data(&d);
	free(out);
	slices_free(&slices);
	free_world(&w);
}

/* A longer recording has wider slices, as many, with the same samples. */
TEST(html_slices_widen)
{
	struct slices s = { 0 };
	uint64_t sum[2] = { 0 };

	for (uint64_t i = 0; i < 10000; i++)
		slices_add(&s, i * 10 * MS, i % 2);
	EXPECT_EQ(s.width_ns, 1024 * MS);
	EXPECT_EQ(s.n, 98);
	EXPECT_EQ(s.cells.n, 2 * 98);
	for (size_t i = 0; i < s.cells.n; i++) {
		sum[s.cells.keys[i].a] += s.counts[i];
		EXPECT(s.cells.keys[i].b < s.n && s.counts[i] <= 52);
	}
	EXPECT(sum[0] == 5000 && sum[1] == 5000);
	slices_cover(&s, 1000000 * (uint64_t)MS); /* idle from here on */
	EXPECT_EQ(s.width_ns, 16384 * (uint64_t)MS);
	EXPECT_EQ(s.n, 7);
	slices_cover(&s, UINT64_MAX);
	EXPECT_EQ(s.cells.n, 2);
	slices_free(&s);
}

/* Names that would end the element, start a comment, end the string or the line. */
TEST(html_hostile_names)
{
	static const char *const names[] = {
		"</script><script>alert(1)</script>",
		"<!--<script>",
		"\"];alert(1)//",
		"\\\"",
		"\\u003c/script>",
		"]]>",
		"&lt;",
		"${x}`",
	};
	struct html_meta meta = { .title = "<b>\"", .unit = "samples" };
	struct stackset ss;
	struct data d;
	char *out = NULL, text[8192] = "", want[8192] = "";
	size_t len = 0;
	uint32_t frame;
	FILE *f = open_memstream(&out, &len);

	EXPECT_EQ(stackset_init(&ss), 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		EXPECT_EQ(stackset_frame(&ss, names[i], strlen(names[i]), names[i], STACK_USER,
					 &frame),
			  0);
		EXPECT_EQ(stackset_add(&ss, names[i], 1, &frame, 1, STACK_AFTER, 100000 + i), 0);
		EXPECT_EQ(stackset_add(&ss, names[i], 1, &frame, 1, STACK_BEFORE, i), 0);
		snprintf(want + strlen(want), sizeof(want) - strlen(want), "%s/1;%s@%s %zu %zu\n",
			 names[i], names[i], names[i], 100000 + i, i);
	}
	meta.before = "old";
	EXPECT_EQ(html_write(&ss, &meta, f), 0);
	fclose(f);
	read_data(find_data(out), &d);
	describe(&d, true, text, sizeof(text));
	EXPECT_STR(text, want);
	free_data(&d);
	free(out);
	stackset_free(&ss);
}
