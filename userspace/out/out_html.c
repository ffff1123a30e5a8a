/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * flame.html with a profile embedded in it. The data is one JSON object:
 *
 *   meta      struct html_meta
 *   strings   names, modules, comms
 *   groups    [comm, pid, comm, pid, ...]: comm is an index into strings
 *   frames    as digits (see below): count; then name, module, kind of each, most frequent first
 *   nodes, leaves, tree: counts; the trie in preorder, as digits, cut after each node with leaves:
 *             levels up from the previous node; levels down from there, and the frame of each level
 *             number of leaves, and of each: group, value [, value before]
 *             (The root has leaves if there are stacks without frames. It then comes first, with
 *             0 levels up and 0 down.)
 *   times     null, or: slices, and width of a slice in seconds; cells, as digits: for each leaf in
 *             the order of the tree, until its value is reached, slices since the last one (of
 *             the first: the slice) and, unless only 1 is missing, the value in that slice
 *
 * Digits: numbers in base 32, the lowest digit first, each a character of A-Z a-z 0-9 - _. Bit 5 of
 * its index says that more digits follow. Most numbers take one or two characters, so 100,000
 * stacks take a few megabytes.
 */
#include "out/changes.h"
#include "out/out_html.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/json.h"
#include "base/text.h"
#include "base/vec.h"

static const char page[] =
#include "flame.html.h"
	;

void html_put_digits(FILE *f, uint64_t v)
{
	static const char alphabet[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

	for (; v >= 32; v >>= 5)
		putc_unlocked(alphabet[(v & 31) | 32], f);
	putc_unlocked(alphabet[v], f);
}

static void put_clean(struct json *j, const char *key, const char *s)
{
	char buf[1024];

	if (s)
		text_clean(buf, sizeof(buf), s, strlen(s), 0);
	json_str(j, key, s ? buf : NULL);
}

static void put_meta(struct json *j, const struct html_meta *meta)
{
	json_object(j, "meta");
	json_str(j, "tool", "sfbpf " SFBPF_VERSION);
	put_clean(j, "title", meta->title);
	put_clean(j, "before", meta->before);
	put_clean(j, "verdict", meta->verdict);
	json_double(j, "ratio", changes_ratio(meta->changes), 9);
	put_clean(j, "unit", meta->unit ? meta->unit : "samples");
	put_clean(j, "event", meta->event);
	put_clean(j, "host", meta->host);
	json_double(j, "hz", meta->hz, 3);
	json_double(j, "duration", meta->duration_s, 3);
	json_double(j, "start", (double)meta->start_unix_ns / 1e9, 3);
	json_u64(j, "lost", meta->lost);
	json_u64(j, "userStacks", meta->user_stacks);
	json_u64(j, "complete", meta->complete);
	json_object_end(j);
	json_newline(j);
}

/* ---- The trie ---- */

struct trie {
	const struct stackset *ss;
	uint32_t *rank, *by_rank;   /* frame <-> its rank by frequency */
	uint32_t *child, *sibling;  /* each node's; 0: none */
	uint32_t *leaf, *next_leaf; /* first leaf by node, next one by leaf; id + 1, 0: none */
	uint32_t *order, nordered;  /* leaves as they are written */
};

struct frequency {
	uint32_t count, frame;
};

static int by_frequency(const void *a, const void *b)
{
	const struct frequency *x = a, *y = b;

	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	return x->frame < y->frame ? -1 : x->frame > y->frame;
}

static int rank_frames(struct trie *t)
{
	size_t n = t->ss->frames.n;
	struct frequency *fr = calloc(n + 1, sizeof(*fr));

	if (!fr)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		fr[i].frame = (uint32_t)i;
	for (size_t i = 1; i < t->ss->nodes.n; i++)
		fr[t->ss->nodes.keys[i].b].count++;
	qsort(fr, n, sizeof(*fr), by_frequency);
	for (size_t i = 0; i < n; i++) {
		t->by_rank[i] = fr[i].frame;
		t->rank[fr[i].frame] = (uint32_t)i;
	}
	free(fr);
	return 0;
}

static void trie_free(struct trie *t)
{
	free(t->rank);
	free(t->by_rank);
	free(t->child);
	free(t->sibling);
	free(t->leaf);
	free(t->next_leaf);
	free(t->order);
}

static int trie_build(struct trie *t, const struct stackset *ss)
{
	size_t n = ss->nodes.n;

	*t = (struct trie){
		.ss = ss,
		.rank = calloc(ss->frames.n + 1, 4),
		.by_rank = calloc(ss->frames.n + 1, 4),
		.child = calloc(n, 4),
		.sibling = calloc(n, 4),
		.leaf = calloc(n, 4),
		.next_leaf = calloc(ss->leaves.n + 1, 4),
		.order = calloc(ss->leaves.n + 1, 4),
	};
	if (!t->rank || !t->by_rank || !t->child || !t->sibling || !t->leaf || !t->next_leaf ||
	    !t->order || rank_frames(t)) {
		trie_free(t);
		return -ENOMEM;
	}
	for (size_t i = n - 1; i > 0; i--) {
		uint32_t parent = (uint32_t)ss->nodes.keys[i].a;

		t->sibling[i] = t->child[parent];
		t->child[parent] = (uint32_t)i;
	}
	for (size_t i = ss->leaves.n; i-- > 0;) {
		uint32_t node = (uint32_t)ss->leaves.keys[i].a;

		t->next_leaf[i] = t->leaf[node];
		t->leaf[node] = (uint32_t)i + 1;
	}
	return 0;
}

static void put_leaves(struct trie *t, uint32_t node, bool two_sides, FILE *f)
{
	uint64_t n = 0;

	for (uint32_t l = t->leaf[node]; l; l = t->next_leaf[l - 1])
		n++;
	html_put_digits(f, n);
	for (uint32_t l = t->leaf[node]; l; l = t->next_leaf[l - 1]) {
		t->order[t->nordered++] = l - 1;
		html_put_digits(f, t->ss->leaves.keys[l - 1].b);
		html_put_digits(f, t->ss->values[l - 1][STACK_AFTER]);
		if (two_sides)
			html_put_digits(f, t->ss->values[l - 1][STACK_BEFORE]);
	}
}

/*
 * Writes the nodes from `node` down by first children to one with leaves. There is one, because
 * every node was made for a leaf.
 */
static uint32_t put_run(struct trie *t, uint32_t node, uint32_t up, bool two_sides, FILE *f)
{
	uint32_t last = node, down = node != STACK_ROOT;

	for (; !t->leaf[last] && t->child[last]; last = t->child[last])
		down++;
	html_put_digits(f, up);
	html_put_digits(f, down);
	for (uint32_t n = node;; n = t->child[n]) {
		if (n != STACK_ROOT)
			html_put_digits(f, t->rank[t->ss->nodes.keys[n].b]);
		if (n == last)
			break;
	}
	put_leaves(t, last, two_sides, f);
	return last;
}

static void put_tree(struct trie *t, bool two_sides, FILE *f)
{
	uint32_t node = put_run(t, STACK_ROOT, 0, two_sides, f), up;

	while (!ferror(f)) {
		up = 0;
		if (t->child[node]) {
			node = put_run(t, t->child[node], up, two_sides, f);
			continue;
		}
		for (; node != STACK_ROOT && !t->sibling[node]; up++)
			node = (uint32_t)t->ss->nodes.keys[node].a;
		if (node == STACK_ROOT)
			return;
		node = put_run(t, t->sibling[node], up + 1, two_sides, f);
	}
}

static void put_times(const struct trie *t, const struct html_times *times, FILE *f)
{
	fputs("\",\n\"times\":", f);
	if (!times || !times->slices) {
		fputs("null}", f);
		return;
	}
	fprintf(f, "{\"slices\":%u,\"width\":%" PRIu64 "e-9,\"cells\":\"", times->slices,
		times->width_ns);
	for (uint32_t i = 0; i < t->nordered; i++)
		html_times_put(times, t->order[i], t->ss->values[t->order[i]][STACK_AFTER], f);
	fputs("\"}}", f);
}

/* Whether the changes of the frames are real, by rank; "" if that is not known */
static int put_real(const struct trie *t, const struct changes *c, FILE *f)
{
	uint8_t *real;
	int err;

	fputs("\",\n\"real\":\"", f);
	if (!c)
		return 0;
	err = changes_real(c, t->ss, &real);
	for (size_t i = 0; !err && i < t->ss->frames.n; i++)
		html_put_digits(f, real[t->by_rank[i]]);
	if (!err)
		free(real);
	return err;
}

static int put_data(const struct stackset *ss, const struct html_meta *meta, FILE *f)
{
	struct json j = { .f = f, .html = true };
	struct trie t;
	int err = trie_build(&t, ss);

	if (err)
		return err;
	json_object(&j, NULL);
	put_meta(&j, meta);
	json_array(&j, "strings");
	for (uint32_t i = 0; i < strpool_count(ss->strings); i++)
		json_str(&j, NULL, strpool_str(ss->strings, i));
	json_array_end(&j);
	json_newline(&j);
	json_array(&j, "groups");
	for (size_t i = 0; i < ss->groups.n; i++) {
		json_u64(&j, NULL, ss->groups.keys[i].a);
		json_u64(&j, NULL, ss->groups.keys[i].b);
	}
	json_array_end(&j);
	json_u64(&j, "nodes", ss->nodes.n);
	json_u64(&j, "leaves", ss->leaves.n);
	fputs(",\n\"frames\":\"", f);
	html_put_digits(f, ss->frames.n);
	for (size_t i = 0; i < ss->frames.n; i++) {
		uint64_t names = ss->frames.keys[t.by_rank[i]].a;

		html_put_digits(f, names >> 32);
		html_put_digits(f, names & UINT32_MAX);
		html_put_digits(f, ss->frames.keys[t.by_rank[i]].b);
	}
	fputs("\",\n\"tree\":\"", f);
	put_tree(&t, meta->before != NULL, f);
	err = put_real(&t, meta->changes, f);
	put_times(&t, meta->times, f);
	trie_free(&t);
	return err;
}

/* ---- The page ---- */

/*
 * The page's Content-Security-Policy allows only scripts and styles with this nonce. A name that
 * escaped from its string could not know it.
 */
static int make_nonce(char ret[33])
{
	uint8_t raw[16];

	if (getrandom(raw, sizeof(raw), 0) != (ssize_t)sizeof(raw))
		return -EIO;
	for (size_t i = 0; i < sizeof(raw); i++)
		snprintf(ret + 2 * i, 3, "%02x", raw[i]);
	return 0;
}

int html_write(const struct stackset *ss, const struct html_meta *meta, FILE *f)
{
	static const char nonce_mark[] = "@NONCE@", data_mark[] = "@DATA@";
	const char *at = page, *mark;
	char nonce[33];
	int err = make_nonce(nonce);

	while (!err && (mark = strchr(at, '@'))) {
		fwrite(at, 1, (size_t)(mark - at), f);
		at = mark;
		if (!strncmp(mark, nonce_mark, strlen(nonce_mark))) {
			fputs(nonce, f);
			at += strlen(nonce_mark);
		} else if (!strncmp(mark, data_mark, strlen(data_mark))) {
			err = put_data(ss, meta, f);
			at += strlen(data_mark);
		} else {
			putc(*at++, f);
		}
	}
	if (err)
		return err;
	fputs(at, f);
	return out_finish(f);
}

/* ---- From a report ---- */

size_t out_frame_name(const struct out_report *r, const struct profile_frame *f,
		      const char **ret_name, enum stack_kind *ret_kind)
{
	const char *name = symbolizer_name(r->symbols, f->symbol);
	size_t len = strlen(name), bare = len;
	enum stack_kind said = stack_kind_of_name(name, &bare), kind = STACK_USER;

	if (f->kernel)
		kind = STACK_KERNEL;
	else if (SF_FRAME_KIND(f->word) == SF_FRAME_JIT)
		kind = STACK_JIT;
	else if (f->inlined)
		kind = STACK_INLINED;
	*ret_name = name;
	*ret_kind = kind;
	return kind == said ? bare : len;
}

static int frame_of(struct stackset *ss, const struct out_report *r, const struct profile_frame *f,
		    uint32_t *ret)
{
	enum stack_kind kind;
	const char *name;
	size_t len = out_frame_name(r, f, &name, &kind);

	return stackset_frame(ss, name, len, symbolizer_module(r->symbols, f->symbol), kind, ret);
}

static int add_note(struct out_path *p, const char *text)
{
	int err = vec_reserve(&p->frames, &p->cap, p->n + 1, sizeof(*p->frames));

	return err ? err
		   : stackset_frame(p->ss, text, strlen(text), "", STACK_NOTE, &p->frames[p->n++]);
}

/* comm is foreign bytes. */
static void clean_comm(char ret[64], const char *comm)
{
	comm = *comm ? comm : "[unknown]";
	text_clean(ret, 64, comm, strlen(comm), 0);
}

/* Appends stack i of profile, which may be that of the wakers. */
static int add_frames(struct out_path *p, struct profile *profile, size_t i,
		      struct profile_stack *ret)
{
	const struct out_report *r = p->r;
	struct profile_frames f = { 0 };
	char marker[64];
	int err = profile_frames(profile, i, r->symbols, !r->opts.kernel_only, !r->opts.user_only,
				 &f);

	if (!err)
		err = vec_reserve(&p->frames, &p->cap, p->n + f.n, sizeof(*p->frames));
	profile_stack(profile, i, ret);
	if (!err && out_incomplete(r, ret)) {
		snprintf(marker, sizeof(marker), "[incomplete:%s]", profile_stop_name(ret->stop));
		err = add_note(p, marker);
	}
	if (!err)
		err = vec_reserve(&p->frames, &p->cap, p->n + f.n, sizeof(*p->frames));
	for (size_t k = f.n; k-- > 0 && !err;)
		err = frame_of(p->ss, r, &f.list[k], &p->frames[p->n++]);
	free(f.list);
	return err;
}

/* Adds the thread that ended the block, then the thread that had woken that one, and so on. */
static int add_wakers(struct out_path *p, uint32_t waker)
{
	struct profile_stack s;
	char comm[64];
	int err = 0;

	for (int depth = 0; waker && depth < SF_OFF_CHAIN && !err; depth++, waker = s.waker) {
		profile_stack(p->r->wakers, waker - 1, &s);
		clean_comm(comm, s.comm);
		err = add_note(p, STACK_WAKER_MARK);
		if (!err)
			err = add_note(p, comm);
		if (!err)
			err = add_frames(p, p->r->wakers, waker - 1, &s);
	}
	return err;
}

static int append_path(struct out_path *p, size_t i)
{
	const char *state = out_state_frame(p->r, i);
	bool at_root = state && out_state_at_root(p->r);
	struct profile_stack s;
	const char *group;
	int err;

	profile_stack(p->r->profile, i, &s);
	group = out_group_frame(p->r, s.group);
	err = group ? add_note(p, group) : 0;
	if (!err && at_root)
		err = add_note(p, state);
	if (!err)
		err = add_frames(p, p->r->profile, i, &s);
	if (!err && state && !at_root)
		err = add_note(p, state);
	if (!err && p->r->wakers)
		err = add_wakers(p, s.waker);
	return err;
}

int out_path_of(struct out_path *p, size_t i)
{
	p->n = 0;
	return append_path(p, i);
}

/*
 * Adds a stack. The process's name comes below the container's, if by container, and then the
 * thread's if it has another one.
 */
static int add_stack(struct out_path *p, size_t i, enum stack_side side, uint32_t *ret_leaf)
{
	bool by_thread = p->r->opts.by == OUT_BY_THREAD;
	char process[64], comm[64], container[CONTAINER_TEXT];
	const char *root = process;
	struct profile_stack s;
	int err = 0;

	profile_stack(p->r->profile, i, &s);
	clean_comm(comm, s.comm);
	clean_comm(process, by_thread ? s.comm : s.process);
	p->n = 0;
	if (p->containers) {
		root = out_container_root(p->containers, &s, container);
		err = add_note(p, process);
	}
	if (!err && strcmp(process, comm) != 0)
		err = add_note(p, comm);
	if (!err)
		err = append_path(p, i);
	if (!err)
		err = stackset_add(p->ss, root, s.pid, p->frames, p->n, side, out_value(p->r, &s));
	if (ret_leaf)
		*ret_leaf = p->ss->added;
	return err;
}

int out_stackset(const struct out_report *r, struct stackset *ss, enum stack_side side,
		 uint32_t *leaf_of)
{
	struct out_path p = { .ss = ss, .r = r };
	int err = 0;

	if (r->opts.by == OUT_BY_CONTAINER && !(p.containers = out_containers_of(r)))
		err = -ENOMEM;
	for (size_t i = 0; i < profile_count(r->profile) && !err; i++)
		err = add_stack(&p, i, side, leaf_of ? &leaf_of[i] : NULL);
	out_containers_done(r, p.containers);
	free(p.frames);
	return err;
}

int out_flame(const struct out_report *r, flame_fn *write, FILE *f)
{
	struct html_meta meta = {
		.unit = r->opts.unit   ? r->opts.unit
			: r->opts.usec ? "nanoseconds"
				       : "samples",
		.event = r->meta->event,
		.host = r->meta->host,
		.hz = out_is_clock(r->meta) ? r->meta->hz : 0,
		.duration_s = r->stats->duration_s,
		.start_unix_ns = r->meta->start_unix_ns,
		.lost = run_lost(r->stats),
		.user_stacks = r->opts.kernel_only ? 0 : r->stats->account.user_total,
		.complete = r->stats->account.stops[SF_STOP_COMPLETE],
	};
	uint32_t *leaf_of = r->slices ? calloc(profile_count(r->profile) + 1, sizeof(*leaf_of))
				      : NULL;
	struct html_times times = { 0 };
	struct stackset ss;
	int err = stackset_init(&ss);

	if (!err)
		err = out_stackset(r, &ss, STACK_AFTER, leaf_of);
	if (!err && leaf_of)
		err = html_times_make(&times, &ss, r->slices, leaf_of, r->stats->duration_s);
	meta.times = &times;
	if (!err)
		err = write(&ss, &meta, f);
	stackset_free(&ss);
	html_times_free(&times);
	free(leaf_of);
	return err;
}

int out_html(const struct out_report *r, FILE *f)
{
	return out_flame(r, html_write, f);
}
