/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A flame graph as a picture: SVG without scripts. Each box has a title with the full name, module
 * and value, which viewers show under the mouse. Thread names are at the bottom, wider boxes are
 * left of narrower ones; boxes below MIN_WIDTH are left out. Colours say the kind of the code, as
 * in the HTML page; in a comparison red is more than before, blue less, and widths are those after.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"
#include "out/out.h"
#include "out/out_html.h"

#define WIDTH	  1200
#define MARGIN	  8
#define HEAD	  44
#define FOOT	  30
#define ROW	  18
#define CHAR	  7.25 /* of the monospaced font at 12 px */
#define MIN_WIDTH 0.3
#define MIN_TEXT  24.0

struct box {
	double x, w;
	uint32_t depth;
};

struct svg {
	const struct stackset *ss;
	const struct html_meta *meta;
	FILE *f;
	/* The drawn tree: parent, and frame or GROUP | string of a thread name; 0 is "all" */
	struct idmap nodes;
	uint64_t (*total)[STACK_SIDES]; /* by node */
	struct box *boxes;
	uint32_t *order; /* nodes by parent, the widest first */
	uint32_t depth;	 /* of the highest box */
};

#define GROUP (UINT64_C(1) << 32)

/* ---- The tree ---- */

/* Adds the path of a leaf, below its thread name. */
static int add_leaf(struct svg *w, size_t leaf, uint32_t *path, uint32_t *ret)
{
	uint32_t node = (uint32_t)w->ss->leaves.keys[leaf].a, n = 0;
	uint64_t group = w->ss->leaves.keys[leaf].b;
	int err = idmap_get(&w->nodes, 0, GROUP | w->ss->groups.keys[group].a, ret);

	for (; node != STACK_ROOT; node = (uint32_t)w->ss->nodes.keys[node].a)
		path[n++] = (uint32_t)w->ss->nodes.keys[node].b;
	while (n-- && !err)
		err = idmap_get(&w->nodes, *ret, path[n], ret);
	return err;
}

/* The root has a key that no other node has. */
static int add_tree(struct svg *w, uint32_t *at)
{
	uint32_t *path = calloc(w->ss->nodes.n + 1, sizeof(*path)), root;
	int err = path ? idmap_get(&w->nodes, UINT64_MAX, 0, &root) : -ENOMEM;

	for (size_t i = 0; i < w->ss->leaves.n && !err; i++)
		err = add_leaf(w, i, path, &at[i]);
	free(path);
	if (err)
		return err;
	w->total = calloc(w->nodes.n, sizeof(*w->total));
	w->boxes = calloc(w->nodes.n, sizeof(*w->boxes));
	w->order = calloc(w->nodes.n, sizeof(*w->order));
	return w->total && w->boxes && w->order ? 0 : -ENOMEM;
}

static int wider_first(const void *a, const void *b, void *ctx)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	const struct svg *w = ctx;

	if (w->nodes.keys[x].a != w->nodes.keys[y].a)
		return w->nodes.keys[x].a < w->nodes.keys[y].a ? -1 : 1;
	if (w->total[x][STACK_AFTER] != w->total[y][STACK_AFTER])
		return w->total[x][STACK_AFTER] > w->total[y][STACK_AFTER] ? -1 : 1;
	return x < y ? -1 : x > y;
}

/* Parents come before their children, in the numbers of nodes and so in the order. */
static void lay_out(struct svg *w)
{
	double unit = 0, next = 0;
	uint32_t last = UINT32_MAX;

	w->boxes[0] = (struct box){ .x = MARGIN, .w = WIDTH - 2 * MARGIN };
	if (w->total[0][STACK_AFTER])
		unit = w->boxes[0].w / (double)w->total[0][STACK_AFTER];
	for (uint32_t i = 0; i + 1 < w->nodes.n; i++) {
		uint32_t node = w->order[i], parent = (uint32_t)w->nodes.keys[node].a;
		struct box *b = &w->boxes[node];

		if (parent != last)
			next = w->boxes[parent].x;
		last = parent;
		b->x = next;
		b->w = unit * (double)w->total[node][STACK_AFTER];
		b->depth = w->boxes[parent].depth + 1;
		next += b->w;
		if (b->w >= MIN_WIDTH && b->depth > w->depth)
			w->depth = b->depth;
	}
}

static int build(struct svg *w)
{
	uint32_t *at = calloc(w->ss->leaves.n + 1, sizeof(*at));
	int err = at ? add_tree(w, at) : -ENOMEM;

	for (size_t i = 0; i < w->ss->leaves.n && !err; i++)
		for (int side = 0; side < STACK_SIDES; side++)
			w->total[at[i]][side] += w->ss->values[i][side];
	free(at);
	if (err)
		return err;
	for (size_t i = w->nodes.n - 1; i > 0; i--) {
		for (int side = 0; side < STACK_SIDES; side++)
			w->total[w->nodes.keys[i].a][side] += w->total[i][side];
		w->order[i - 1] = (uint32_t)i;
	}
	if (w->nodes.n > 1)
		qsort_r(w->order, w->nodes.n - 1, sizeof(*w->order), wider_first, w);
	lay_out(w);
	return 0;
}

/* ---- Text ---- */

/* s is clean (base/text.h). XML has no U+FFFE and U+FFFF. */
static void put_text(struct svg *w, const char *s)
{
	for (; *s; s++) {
		if (*s == '&')
			fputs("&amp;", w->f);
		else if (*s == '<')
			fputs("&lt;", w->f);
		else if (*s == '>')
			fputs("&gt;", w->f);
		else if (!strncmp(s, "\xef\xbf\xbe", 3) || !strncmp(s, "\xef\xbf\xbf", 3))
			fputs("\xef\xbf\xbd", w->f), s += 2;
		else
			putc(*s, w->f);
	}
}

/* v is at least 0. A point in every locale. */
static void put_fixed(struct svg *w, double v)
{
	uint64_t hundredths = (uint64_t)(v * 100 + 0.5);

	fprintf(w->f, "%" PRIu64 ".%02u", hundredths / 100, (unsigned int)(hundredths % 100));
}

static void put_percent(struct svg *w, uint64_t part, uint64_t all)
{
	put_fixed(w, all ? 100 * (double)part / (double)all : 0);
	fputs(" %", w->f);
}

static void put_amount(struct svg *w, uint64_t v)
{
	const char *unit = w->meta->unit ? w->meta->unit : "samples";
	bool ns = !strcmp(unit, "nanoseconds");

	if (ns || !strcmp(unit, "microseconds")) {
		put_fixed(w, (double)v / (ns ? 1e6 : 1e3));
		fputs(" ms", w->f);
	} else {
		fprintf(w->f, "%" PRIu64 " %.*s", v, (int)strlen(unit) - (v == 1), unit);
	}
}

static const char *name_of(const struct svg *w, uint32_t node)
{
	uint64_t id = w->nodes.keys[node].b;

	if (!node)
		return "all";
	return id & GROUP ? strpool_str(w->ss->strings, (uint32_t)id)
			  : stackset_frame_name(w->ss, (uint32_t)id);
}

static const char *module_of(const struct svg *w, uint32_t node)
{
	uint64_t id = w->nodes.keys[node].b;

	return !node || id & GROUP ? "" : stackset_frame_module(w->ss, (uint32_t)id);
}

/* ---- Colours ---- */

static double least(double a, double b)
{
	return a < b ? a : b;
}

/* hue: 0 to 360; the others: 0 to 1. */
static void put_rgb(struct svg *w, double hue, double saturation, double light)
{
	static const double offsets[3] = { 0, 8, 4 };
	double a = saturation * least(light, 1 - light), k;

	putc('#', w->f);
	for (int i = 0; i < 3; i++) {
		k = offsets[i] + hue / 30;
		k = k < 12 ? k : k - 12;
		k = least(least(k - 3, 9 - k), 1);
		k = light - a * (k > -1 ? k : -1);
		fprintf(w->f, "%02x", (unsigned int)(255 * k + 0.5));
	}
}

/* 0 to 1, the same for equal text. */
static double shade(const char *s)
{
	return (double)(hash_stable(s, strlen(s)) & 1023) / 1023;
}

/* Hue by kind and module, lightness by name. */
static void put_kind_colour(struct svg *w, uint32_t node)
{
	static const struct {
		double hue, span, saturation, light;
	} kinds[STACK_KINDS] = {
		[STACK_USER] = { 18, 30, .88, .69 },	 [STACK_KERNEL] = { 208, 16, .62, .75 },
		[STACK_INLINED] = { 168, 14, .46, .70 }, [STACK_JIT] = { 92, 24, .50, .69 },
		[STACK_NOTE] = { 345, 0, .52, .83 },
	};
	uint64_t id = w->nodes.keys[node].b;
	enum stack_kind kind;

	if (!node || id & GROUP) {
		put_rgb(w, 40, .06, .86);
		return;
	}
	kind = stackset_frame_kind(w->ss, (uint32_t)id);
	put_rgb(w, kinds[kind].hue + kinds[kind].span * shade(module_of(w, node)),
		kinds[kind].saturation, kinds[kind].light + (shade(name_of(w, node)) - .5) * .08);
}

/* About the logarithm to base 2; v is at least 1. */
static double log_of(double v)
{
	double whole = 0;

	for (; v >= 2; v /= 2)
		whole++;
	return whole + v - 1;
}

/* The change of the share of all, on a logarithmic scale that shows a tenth of a percent. */
static void put_change_colour(struct svg *w, uint32_t node)
{
	double shares[STACK_SIDES] = { 0 }, change, much;

	for (int side = 0; side < STACK_SIDES; side++)
		if (w->total[0][side])
			shares[side] = (double)w->total[node][side] / (double)w->total[0][side];
	change = shares[STACK_AFTER] - shares[STACK_BEFORE];
	much = least(1, log_of(1 + 400 * (change > 0 ? change : -change)) / log_of(41));
	if (much < .02)
		put_rgb(w, 40, .1, .9);
	else
		put_rgb(w, change > 0 ? 6 : 214, .6 + .25 * much, .9 - .25 * much);
}

/* ---- The picture ---- */

static void put_title(struct svg *w, uint32_t node)
{
	const char *module = module_of(w, node);

	fputs("<title>", w->f);
	put_text(w, name_of(w, node));
	if (*module) {
		fputs(" (", w->f);
		put_text(w, module);
		putc(')', w->f);
	}
	putc('\n', w->f);
	put_amount(w, w->total[node][STACK_AFTER]);
	fputs(", ", w->f);
	put_percent(w, w->total[node][STACK_AFTER], w->total[0][STACK_AFTER]);
	if (w->meta->before) {
		fputs("\nbefore: ", w->f);
		put_amount(w, w->total[node][STACK_BEFORE]);
		fputs(", ", w->f);
		put_percent(w, w->total[node][STACK_BEFORE], w->total[0][STACK_BEFORE]);
	}
	fputs("</title>", w->f);
}

static void put_box(struct svg *w, uint32_t node)
{
	const struct box *b = &w->boxes[node];
	uint32_t y = HEAD + (w->depth - b->depth) * ROW;
	char text[512];

	fputs("<g>", w->f);
	put_title(w, node);
	fputs("<rect x=\"", w->f);
	put_fixed(w, b->x);
	fprintf(w->f, "\" y=\"%u\" width=\"", y);
	put_fixed(w, b->w > 3 ? b->w - 1 : b->w);
	fprintf(w->f, "\" height=\"%u\" rx=\"1\" fill=\"", ROW - 1);
	if (w->meta->before)
		put_change_colour(w, node);
	else
		put_kind_colour(w, node);
	fputs("\"/>", w->f);
	if (b->w >= MIN_TEXT) {
		fputs("<text x=\"", w->f);
		put_fixed(w, b->x + 3);
		fprintf(w->f, "\" y=\"%u\">", y + 13);
		text_fit(text, sizeof(text), name_of(w, node), (int)((b->w - 7) / CHAR), true);
		put_text(w, text);
		fputs("</text>", w->f);
	}
	fputs("</g>\n", w->f);
}

static void put_clean(struct svg *w, const char *before, const char *s)
{
	char clean[256];

	if (!s || !*s)
		return;
	text_clean(clean, sizeof(clean), s, strlen(s), 0);
	fputs(before, w->f);
	put_text(w, clean);
}

static void put_head(struct svg *w)
{
	const struct html_meta *m = w->meta;
	uint32_t height = HEAD + (w->depth + 1) * ROW + FOOT;

	fprintf(w->f,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%u\" "
		"viewBox=\"0 0 %d %u\">\n",
		WIDTH, height, WIDTH, height);
	fputs("<style>svg{background:#fbfaf8}text{font:12px \"DejaVu Sans Mono\",monospace;"
	      "fill:#1f1a14}.head{font:600 15px system-ui,sans-serif}.soft{font:12px system-ui,"
	      "sans-serif;fill:#6f6a62}rect:hover{stroke:#1f1a14}</style>\n"
	      "<rect width=\"100%\" height=\"100%\" fill=\"#fbfaf8\"/>\n"
	      "<text class=\"head\" x=\"8\" y=\"20\">",
	      w->f);
	put_clean(w, "", m->before ? "sfbpf diff" : "sfbpf");
	put_clean(w, " \xc2\xb7 ", m->before);
	put_clean(w, m->before ? " \xe2\x86\x92 " : " \xc2\xb7 ", m->title);
	put_clean(w, " \xc2\xb7 ", m->event);
	put_clean(w, " \xc2\xb7 ", m->host);
	fputs("</text>\n<text class=\"soft\" x=\"8\" y=\"36\">", w->f);
	put_amount(w, w->total[0][STACK_AFTER]);
	if (m->duration_s > 0) {
		fputs(" in ", w->f);
		put_fixed(w, m->duration_s);
		fputs(" s", w->f);
	}
	if (m->lost)
		fprintf(w->f, ", %" PRIu64 " lost", m->lost);
	if (m->user_stacks) {
		fputs(", ", w->f);
		put_percent(w, m->complete, m->user_stacks);
		fputs(" of user stacks complete", w->f);
	}
	fputs("</text>\n", w->f);
}

static void put_legend(struct svg *w)
{
	static const char *const kinds[][2] = { { "#f6b48a", "user" },
						{ "#a0c8e8", "kernel" },
						{ "#8fd6c9", "inlined" },
						{ "#b0d88a", "JIT" },
						{ "#eac4cd", "incomplete, state" } };
	static const char *const changes[][2] = { { "#ee9d93", "more than before" },
						  { "#93b9ee", "less" },
						  { "#e9e7e2", "the same" } };
	const char *const(*list)[2] = w->meta->before ? changes : kinds;
	size_t n = w->meta->before ? 3 : 5;
	uint32_t y = HEAD + (w->depth + 1) * ROW + 10, x = MARGIN;

	for (size_t i = 0; i < n; i++) {
		fprintf(w->f,
			"<rect x=\"%u\" y=\"%u\" width=\"10\" height=\"10\" fill=\"%s\"/>"
			"<text class=\"soft\" x=\"%u\" y=\"%u\">%s</text>\n",
			x, y, list[i][0], x + 15, y + 9, list[i][1]);
		x += 35 + 7 * (uint32_t)strlen(list[i][1]);
	}
	fputs("</svg>\n", w->f);
}

int svg_write(const struct stackset *ss, const struct html_meta *meta, FILE *f)
{
	struct svg w = { .ss = ss, .meta = meta, .f = f };
	int err = build(&w);

	if (!err)
		put_head(&w);
	for (uint32_t i = 0; i < w.nodes.n && !err && !ferror(f); i++)
		if (w.boxes[i].w >= MIN_WIDTH)
			put_box(&w, i);
	if (!err)
		put_legend(&w);
	idmap_free(&w.nodes);
	free(w.total);
	free(w.boxes);
	free(w.order);
	return err ? err : out_finish(f);
}

int out_svg(const struct out_report *r, FILE *f)
{
	return out_flame(r, svg_write, f);
}
