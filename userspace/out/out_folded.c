/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Folded lines: "comm;root;...;leaf COUNT", sorted, each text once.
 *
 * Stacks that differ in pid or address often have the same text. To merge and sort them without
 * building every line, each distinct name is numbered in alphabetical order, and a line is a
 * sequence of these numbers.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/strpool.h"
#include "base/text.h"
#include "base/vec.h"
#include "out/out.h"
#include "prof/stackset.h"

#define NONE UINT32_MAX

struct line {
	const uint32_t *seq; /* set when seqs no longer grows */
	size_t at, len;
	uint64_t value;
};

struct folded {
	const struct out_report *r;
	struct out_containers *containers; /* NULL: not by container */
	struct strpool *names;
	uint32_t *by_symbol; /* name id by symbol id; NONE: not interned yet */
	size_t nsymbols, symbols_cap;
	uint32_t *seqs;
	size_t nseqs, seqs_cap;
	struct line *lines;
	size_t nlines, lines_cap;
	struct profile_frames frames; /* scratch */
};

static int intern_clean(struct folded *fd, const char *s, uint32_t *ret)
{
	char buf[2048]; /* a symbol name has at most 1024 bytes */
	size_t len = text_clean(buf, sizeof(buf), s, strlen(s), TEXT_FOLDED);

	return strpool_intern(fd->names, buf, len, ret);
}

static int name_of_symbol(struct folded *fd, uint32_t symbol, uint32_t *ret)
{
	size_t want = symbolizer_count(fd->r->symbols);

	if (want > fd->nsymbols) {
		if (vec_reserve(&fd->by_symbol, &fd->symbols_cap, want, sizeof(*fd->by_symbol)))
			return -ENOMEM;
		memset(fd->by_symbol + fd->nsymbols, 0xff,
		       (want - fd->nsymbols) * sizeof(*fd->by_symbol));
		fd->nsymbols = want;
	}
	if (fd->by_symbol[symbol] == NONE &&
	    intern_clean(fd, symbolizer_name(fd->r->symbols, symbol), &fd->by_symbol[symbol]))
		return -ENOMEM;
	*ret = fd->by_symbol[symbol];
	return 0;
}

/* Appends a word that is not a frame. There is room for it. */
static int add_word(struct folded *fd, const char *word)
{
	int err = intern_clean(fd, word, &fd->seqs[fd->nseqs]);

	if (!err)
		fd->nseqs++;
	return err;
}

/*
 * Adds the names of the container and the thread or process, of the group (NULL: none), what the
 * thread did (NULL: not at the root), then the marker of an incomplete stack.
 */
static int add_head(struct folded *fd, const struct profile_stack *s, const char *group,
		    const char *state)
{
	const char *name = fd->r->opts.by == OUT_BY_PROCESS ? s->process : s->comm;
	char marker[64], container[CONTAINER_TEXT];
	int err = 0;

	if (fd->containers)
		err = add_word(fd, out_container_root(fd->containers, s, container));
	if (!err)
		err = add_word(fd, *name ? name : "[unknown]");
	if (!err && group)
		err = add_word(fd, group);
	if (!err && state)
		err = add_word(fd, state);
	if (err || !out_incomplete(fd->r, s))
		return err;
	snprintf(marker, sizeof(marker), "[incomplete:%s]", profile_stop_name(s->stop));
	return add_word(fd, marker);
}

/* Appends stack i of p to seqs, comm first. */
static int add_frames(struct folded *fd, struct profile *p, size_t i)
{
	struct profile_frames *f = &fd->frames;
	struct profile_stack s;
	const char *group, *state;
	int err;

	profile_stack(p, i, &s);
	group = p == fd->r->profile ? out_group_frame(fd->r, s.group) : NULL;
	state = p == fd->r->profile && out_state_at_root(fd->r) ? out_state_frame(fd->r, i) : NULL;
	if (profile_frames(p, i, fd->r->symbols, !fd->r->opts.kernel_only, !fd->r->opts.user_only,
			   f) ||
	    vec_reserve(&fd->seqs, &fd->seqs_cap, fd->nseqs + 8 + f->n, sizeof(*fd->seqs)))
		return -ENOMEM;
	err = add_head(fd, &s, group, state);
	for (size_t k = f->n; k-- > 0 && !err;)
		err = name_of_symbol(fd, f->list[k].symbol, &fd->seqs[fd->nseqs++]);
	return err;
}

/* Adds the thread that ended the block, then the thread that had woken that one, and so on. */
static int add_wakers(struct folded *fd, uint32_t waker)
{
	struct profile_stack s;
	int err = 0;

	for (; waker && !err; waker = s.waker) {
		err = add_word(fd, STACK_WAKER_MARK);
		if (!err)
			err = add_frames(fd, fd->r->wakers, waker - 1);
		profile_stack(fd->r->wakers, waker - 1, &s);
	}
	return err;
}

static int add_stack(struct folded *fd, size_t i)
{
	struct profile_stack s;
	size_t at = fd->nseqs;
	const char *state;
	int err;

	profile_stack(fd->r->profile, i, &s);
	if (vec_reserve(&fd->lines, &fd->lines_cap, fd->nlines + 1, sizeof(*fd->lines)))
		return -ENOMEM;
	err = add_frames(fd, fd->r->profile, i);
	state = out_state_at_root(fd->r) ? NULL : out_state_frame(fd->r, i);
	if (!err && state)
		err = add_word(fd, state);
	if (!err && fd->r->wakers)
		err = add_wakers(fd, s.waker);
	fd->lines[fd->nlines++] =
		(struct line){ .at = at, .len = fd->nseqs - at, .value = out_value(fd->r, &s) };
	return err;
}

static int compare_strings(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Renumbers the names in seqs in alphabetical order; *ret_sorted[number] is the text. */
static int rank_names(struct folded *fd, const char ***ret_sorted)
{
	uint32_t n = strpool_count(fd->names), id;
	const char **sorted = malloc((n ? n : 1) * sizeof(*sorted));
	uint32_t *rank = malloc((n ? n : 1) * sizeof(*rank));
	int err = 0;

	if (!sorted || !rank) {
		free(sorted);
		free(rank);
		return -ENOMEM;
	}
	for (id = 0; id < n; id++)
		sorted[id] = strpool_str(fd->names, id);
	qsort(sorted, n, sizeof(*sorted), compare_strings);
	for (uint32_t k = 0; k < n && !err; k++) {
		err = strpool_intern(fd->names, sorted[k], strlen(sorted[k]), &id);
		if (!err)
			rank[id] = k;
	}
	for (size_t i = 0; i < fd->nseqs && !err; i++)
		fd->seqs[i] = rank[fd->seqs[i]];
	free(rank);
	if (err)
		free(sorted);
	else
		*ret_sorted = sorted;
	return err;
}

static int compare_lines(const void *a, const void *b)
{
	const struct line *x = a, *y = b;
	size_t n = x->len < y->len ? x->len : y->len;

	for (size_t i = 0; i < n; i++)
		if (x->seq[i] != y->seq[i])
			return x->seq[i] < y->seq[i] ? -1 : 1;
	return x->len < y->len ? -1 : x->len > y->len;
}

static void write_line(const struct folded *fd, const struct line *l, uint64_t sum,
		       const char *const *text, FILE *f)
{
	uint64_t shown = out_shown(fd->r, sum);

	if (!shown)
		return; /* less than a microsecond */
	for (size_t i = 0; i < l->len; i++) {
		if (i)
			putc(';', f);
		fputs(text[l->seq[i]], f);
	}
	fprintf(f, " %" PRIu64 "\n", shown);
}

static int write_lines(struct folded *fd, FILE *f)
{
	const char **text;
	uint64_t sum = 0;
	int err;

	err = rank_names(fd, &text);
	if (err)
		return err;
	for (size_t i = 0; i < fd->nlines; i++)
		fd->lines[i].seq = fd->seqs + fd->lines[i].at;
	if (fd->nlines)
		qsort(fd->lines, fd->nlines, sizeof(*fd->lines), compare_lines);
	for (size_t i = 0; i < fd->nlines && !ferror(f); i++) {
		sum += fd->lines[i].value;
		if (i + 1 < fd->nlines && compare_lines(&fd->lines[i], &fd->lines[i + 1]) == 0)
			continue;
		write_line(fd, &fd->lines[i], sum, text, f);
		sum = 0;
	}
	free(text);
	return out_finish(f);
}

int out_folded(const struct out_report *r, FILE *f)
{
	struct folded fd = { .r = r, .names = strpool_new() };
	int err = fd.names ? 0 : -ENOMEM;

	if (r->opts.by == OUT_BY_CONTAINER && !(fd.containers = out_containers_of(r)))
		err = -ENOMEM;
	for (size_t i = 0; i < profile_count(r->profile) && !err; i++)
		err = add_stack(&fd, i);
	if (!err)
		err = write_lines(&fd, f);
	strpool_free(fd.names);
	out_containers_done(r, fd.containers);
	free(fd.by_symbol);
	free(fd.seqs);
	free(fd.lines);
	free(fd.frames.list);
	return err;
}
