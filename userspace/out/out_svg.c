/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A flame graph as a picture: SVG without scripts. Each box has a title with the full name, module
 * and value, which viewers show under the mouse. Thread names are at the bottom, wider boxes are
 * left of narrower ones; boxes below MIN_WIDTH are left out. Colours say the kind of the code, as
 * in the HTML page; in a comparison red is more than before, blue less, grey what may be chance,
 * and widths are those after.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "out/changes.h"
#include "out/out.h"
#include "out/out_html.h"

#define WIDTH	  1200
#define MARGIN	  8
#define HEAD	  44
#define FOOT	  30
#define ROW	  18
#define CHAR	  7.25 /* width of a character of the monospaced font at 12 px */
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
	uint64_t (*total)[STACK_SIDES]; /* the totals of each node */
	struct box *boxes;
	uint32_t *order; /* nodes by parent, the widest first */
	uint32_t depth;	 /* depth of the highest box */
	uint8_t *real;	 /* whether the change of a frame is; NULL: unknown */
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
	} else if (!strcmp(unit, "count")) {
		fprintf(w->f, "%" PRIu64, v);
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

/* The kinds of the page (flame_model.js), in the same order; then the languages */
enum kind {
	KIND_USER,
	KIND_KERNEL,
	KIND_INLINED,
	KIND_JIT,
	KIND_NOTE,
	KIND_NONAME,
	KIND_GROUP,
	KIND_LANGUAGES,
};

static const struct {
	const char *name;
	/* Percent but for hue and its span by module; span: of the lightness, by name */
	double hue, hue_span, saturation, light, span;
} kinds[] = {
	[KIND_USER] = { "user", 18, 30, 88, 69, 8 },
	[KIND_KERNEL] = { "kernel", 208, 16, 62, 75, 7 },
	[KIND_INLINED] = { "inlined", 168, 14, 46, 70, 7 },
	[KIND_JIT] = { "JIT", 92, 24, 50, 69, 7 },
	[KIND_NOTE] = { "incomplete", 345, 0, 52, 83, 2 },
	[KIND_NONAME] = { "no symbol", 40, 0, 24, 79, 6 },
	[KIND_GROUP] = { "process, thread, state", 40, 0, 6, 86, 3 },
};

static const struct {
	const char *name, *module, *suffixes[4];
	double hue, saturation;
} languages[] = {
	{ "Python", "[python]", { ".py" }, 48, 86 },
	{ "Java", "[java]", { ".java" }, 245, 60 },
	{ "Ruby", "[ruby]", { ".rb" }, 352, 64 },
	{ "JavaScript", "[javascript]", { ".js", ".cjs", ".mjs" }, 64, 70 },
	{ "PHP", "[php]", { ".php", ".inc", ".phtml" }, 286, 58 },
	{ "Perl", "[perl]", { ".pl", ".pm", ".t" }, 172, 58 },
};

#define LANGUAGES     (sizeof(languages) / sizeof(languages[0]))
#define LANGUAGE_JAVA 1

/* What a thread of the wall clock did */
static const struct {
	const char *start;
	double hue, saturation, light;
} states[] = {
	{ "[running]", 128, 40, 70 },
	{ "[runnable]", 44, 85, 66 },
	{ "[blocked: ", 280, 36, 79 },
};

static bool begins(const char *s, const char *start)
{
	return strncmp(s, start, strlen(start)) == 0;
}

/* Whether the name ends in the language's file, "f (a.py:12)"; Java's always has a line. */
static bool in_file_of(const char *name, size_t language)
{
	size_t len = strlen(name), digits = 0;

	if (!len || name[len - 1] != ')')
		return false;
	for (len--; len && name[len - 1] >= '0' && name[len - 1] <= '9'; len--)
		digits++;
	if (digits && len && name[len - 1] == ':')
		len--;
	else if (digits || language == LANGUAGE_JAVA)
		return false;
	for (size_t i = 0; i < 4 && languages[language].suffixes[i]; i++) {
		const char *suffix = languages[language].suffixes[i];
		size_t n = strlen(suffix);

		if (len >= n && strncmp(name + len - n, suffix, n) == 0)
			return true;
	}
	return false;
}

static unsigned int kind_of_frame(const struct stackset *ss, uint32_t frame)
{
	const char *name = stackset_frame_name(ss, frame),
		   *module = stackset_frame_module(ss, frame);
	enum stack_kind kind = stackset_frame_kind(ss, frame);

	if (kind == STACK_NOTE)
		return begins(name, "[incomplete:") ? KIND_NOTE : KIND_GROUP;
	if (kind != STACK_USER)
		return kind == STACK_KERNEL    ? KIND_KERNEL
		       : kind == STACK_INLINED ? KIND_INLINED
					       : KIND_JIT;
	for (size_t i = 0; i < LANGUAGES; i++)
		if (!strcmp(module, languages[i].module) || in_file_of(name, i))
			return KIND_LANGUAGES + (unsigned int)i;
	return name[0] == '[' && strcmp(name, "[vdso]") != 0 ? KIND_NONAME : KIND_USER;
}

/* textHash of the page: FNV-1a of UTF-16, 0 to 1 */
static double shade(const char *s)
{
	uint32_t h = 2166136261u, c;

	for (size_t len = strlen(s), n; len; s += n, len -= n) {
		n = text_decode(s, len, &c);
		if (c > 0xffff && c != UINT32_MAX)
			h = (h ^ (0xd7c0 + (c >> 10))) * 16777619u;
		h = (h ^ (c > 0xffff ? 0xdc00 + (c & 0x3ff) : c)) * 16777619u;
	}
	return (h ^ h >> 15) / 4294967296.0;
}

static double rounded(double v, int parts)
{
	return (double)(uint64_t)(v * parts + .5) / parts;
}

/* Hue and saturation show the kind. The hue varies by module, the lightness by name. */
static void put_kind(struct svg *w, unsigned int kind, double by_module, double by_name)
{
	size_t language = kind - KIND_LANGUAGES;

	if (kind >= KIND_LANGUAGES)
		put_rgb(w, rounded(languages[language].hue + by_name * 8, 1),
			languages[language].saturation / 100,
			rounded(66 + (by_name - .5) * 8, 10) / 100);
	else
		put_rgb(w, rounded(kinds[kind].hue + by_module * kinds[kind].hue_span, 1),
			kinds[kind].saturation / 100,
			rounded(kinds[kind].light + (by_name - .5) * kinds[kind].span, 10) / 100);
}

static void put_kind_colour(struct svg *w, uint32_t node)
{
	uint64_t id = w->nodes.keys[node].b;
	bool frame = node && !(id & GROUP);
	unsigned int kind = frame ? kind_of_frame(w->ss, (uint32_t)id) : KIND_GROUP;
	const char *name = name_of(w, node), *module = module_of(w, node);
	double by_name = shade(name), by_module = by_name * 7;

	for (size_t i = 0; kind == KIND_GROUP && i < sizeof(states) / sizeof(states[0]); i++) {
		if (begins(name, states[i].start)) {
			put_rgb(w, states[i].hue, states[i].saturation / 100,
				states[i].light / 100);
			return;
		}
	}
	by_module = *module ? shade(module) : by_module - (double)(int)by_module;
	put_kind(w, kind, by_module, by_name);
}

/* The logarithm to base 2; v is at least 1. */
static double log_of(double v)
{
	double ret = 0;

	for (; v >= 2; v /= 2)
		ret++;
	for (double part = .5; part > 1e-6; part /= 2) {
		v *= v;
		if (v >= 2) {
			v /= 2;
			ret += part;
		}
	}
	return ret;
}

/* A change as a part of all before, on a logarithmic scale that shows a tenth of a percent. */
static void put_change(struct svg *w, double change)
{
	double much = least(1, log_of(1 + 400 * (change > 0 ? change : -change)) / log_of(41));

	if (much < .02)
		fputs("#e9e7e2", w->f);
	else
		put_rgb(w, change > 0 ? 6 : 214, .6 + .25 * much, .9 - .25 * much);
}

static void put_change_colour(struct svg *w, uint32_t node)
{
	double shares[STACK_SIDES] = { 0 };

	uint64_t id = w->nodes.keys[node].b;
	bool chance = node && !(id & GROUP) && w->real && !w->real[id];

	for (int side = 0; side < STACK_SIDES; side++)
		if (w->total[0][side])
			shares[side] = (double)w->total[node][side] / (double)w->total[0][side];
	put_change(w, chance ? 0
			     : shares[STACK_AFTER] * changes_ratio(w->meta->changes) -
				       shares[STACK_BEFORE]);
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
	put_clean(w, " \xc2\xb7 ", m->verdict);
	fputs("</text>\n", w->f);
}

/* Begins an item of the legend, up to the value of its colour; end_item() ends it. */
static void begin_item(struct svg *w, uint32_t x)
{
	fprintf(w->f, "<rect x=\"%u\" y=\"%u\" width=\"10\" height=\"10\" fill=\"", x,
		HEAD + (w->depth + 1) * ROW + 10);
}

/* Returns the place of the next one. */
static uint32_t end_item(struct svg *w, uint32_t x, const char *text)
{
	fprintf(w->f, "\"/><text class=\"soft\" x=\"%u\" y=\"%u\">%s</text>\n", x + 15,
		HEAD + (w->depth + 1) * ROW + 19, text);
	return x + 35 + 7 * (uint32_t)strlen(text);
}

/* The kinds that occur, or the meaning of red and blue */
static void put_legend(struct svg *w)
{
	static const struct {
		double change;
		const char *text;
	} changes[] = { { .05, "more than before" }, { -.05, "less" }, { 0, "the same" } };
	bool seen[KIND_LANGUAGES + LANGUAGES] = { false };
	uint32_t x = MARGIN;

	for (size_t i = 0; w->meta->before && i < sizeof(changes) / sizeof(changes[0]); i++) {
		begin_item(w, x);
		put_change(w, changes[i].change);
		x = end_item(w, x, changes[i].text);
	}
	for (uint32_t i = 0; !w->meta->before && i < w->ss->frames.n; i++)
		seen[kind_of_frame(w->ss, i)] = true;
	for (unsigned int kind = 0; kind < sizeof(seen); kind++) {
		if (!seen[kind])
			continue;
		begin_item(w, x);
		put_kind(w, kind, .5, .5);
		x = end_item(w, x,
			     kind < KIND_LANGUAGES ? kinds[kind].name
						   : languages[kind - KIND_LANGUAGES].name);
	}
	fputs("</svg>\n", w->f);
}

int svg_write(const struct stackset *ss, const struct html_meta *meta, FILE *f)
{
	struct svg w = { .ss = ss, .meta = meta, .f = f };
	int err = build(&w);

	if (!err && meta->changes)
		err = changes_real(meta->changes, ss, &w.real);
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
	free(w.real);
	return err ? err : out_finish(f);
}

int out_svg(const struct out_report *r, FILE *f)
{
	return out_flame(r, svg_write, f);
}
