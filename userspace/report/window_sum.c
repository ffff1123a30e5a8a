/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/window_sum.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "base/complain.h"
#include "base/exitcode.h"
#include "base/hash.h"
#include "base/text.h"
#include "worker/jail.h"

#define MAX_READERS 8
/* What windows need is not given back to the system after each. */
#define KEEP_BYTES  (8u << 20)

struct shared {
	const char *path;
	const struct window_choice *choice;
	enum stack_side side;
	size_t readers, all; /* all: windows to be read, if that is shown */
	size_t done;	     /* atomic */
};

struct reader {
	struct shared *s;
	size_t index;
	int dir, err;
	struct stackset *ss, own;
	struct window_sum sum;
	pthread_t thread;
};

void window_sum_meta(struct stacks_meta *sum, const struct stacks_meta *m)
{
	struct stacks_meta before = *sum;

	*sum = *m;
	if (!before.bytes)
		return;
	sum->bytes += before.bytes;
	sum->duration_s += before.duration_s;
	sum->lost += before.lost;
	sum->user_stacks += before.user_stacks;
	sum->complete += before.complete;
	if (before.start_unix_ns < sum->start_unix_ns)
		sum->start_unix_ns = before.start_unix_ns;
	if (strcmp(before.host, sum->host) != 0)
		*sum->host = 0;
	if (before.hz != sum->hz)
		sum->hz = 0;
}

/* Counts the windows without the labels that stacks are chosen by. */
static void count_lacking(struct reader *r)
{
	const struct stack_choice *c = &r->ss->choice;
	uint32_t lacks = (1u << c->n) - 1;

	if (c->by == STACK_BY_LABEL)
		lacks |= 1u << c->n;
	lacks &= ~c->found;
	r->sum.lacking += lacks != 0;
	for (size_t i = 0; i <= c->n && !r->sum.lacks; i++)
		if (lacks >> i & 1)
			r->sum.lacks = i < c->n ? c->labels[i].name : c->by_label;
}

static void show_progress(struct shared *s)
{
	size_t done = __atomic_add_fetch(&s->done, 1, __ATOMIC_RELAXED);

	if (s->all && done % 64 == 0)
		fprintf(stderr, "\r%zu of %zu windows, %zu %%\033[K", done, s->all,
			100 * done / s->all);
}

/* Whoever may write to the directory chose the names in it. */
static const char *clean_name(char buf[NAME_MAX + 1], const char *name)
{
	text_clean(buf, NAME_MAX + 1, name, strlen(name), 0);
	return buf;
}

/* The first damaged window is named; none keeps the others from being read. */
static bool read_one(struct reader *r, FILE *f, const char *name, struct stacks_meta *meta)
{
	char clean[NAME_MAX + 1];
	struct read_error why;
	int err = read_stacks(f, r->ss, r->s->side, meta, &why);

	if (err && !r->sum.unread)
		complain(0, "%s: %s", clean_name(clean, name),
			 err == -EINVAL ? why.text : strerror(-err));
	return !err;
}

static int read_window(void *ctx, int folder, const char *name, const struct window_name *w)
{
	struct reader *r = ctx;
	struct stacks_meta meta = { 0 };
	const char *unit = r->sum.meta.unit;
	char clean[NAME_MAX + 1];
	FILE *f;

	if (hash_mix(w->start_ns, strlen(w->host)) % r->s->readers != r->index)
		return 0;
	f = window_open_file(folder, name);
	r->ss->choice.host = w->host;
	r->ss->choice.found = 0;
	show_progress(r->s);
	if (!f || !read_one(r, f, name, &meta)) {
		r->sum.unread++;
		if (f)
			fclose(f);
		return 0;
	}
	fclose(f);
	if (*unit && strcmp(unit, meta.unit) != 0)
		return complain(EXIT_FAILED, "%s: %s counts %s, the windows before it %s",
				r->s->path, clean_name(clean, name), meta.unit, unit);
	count_lacking(r);
	if (!*meta.host)
		strcpy(meta.host, w->host);
	r->sum.n++;
	window_sum_meta(&r->sum.meta, &meta);
	return 0;
}

static void *reader_main(void *arg)
{
	struct reader *r = arg;

	r->err = windows_each(r->dir, r->s->choice, read_window, r);
	r->ss->choice.host = NULL;
	return NULL;
}

/* Adds what a reader of its own set has read. */
static int take(struct reader *to, struct reader *from)
{
	if (from->err)
		return from->err;
	to->sum.n += from->sum.n;
	to->sum.unread += from->sum.unread;
	to->sum.lacking += from->sum.lacking;
	if (!to->sum.lacks)
		to->sum.lacks = from->sum.lacks;
	if (!from->sum.n)
		return 0;
	if (*to->sum.meta.unit && strcmp(to->sum.meta.unit, from->sum.meta.unit) != 0)
		return complain(EXIT_FAILED, "%s: some windows count %s, others %s", to->s->path,
				to->sum.meta.unit, from->sum.meta.unit);
	window_sum_meta(&to->sum.meta, &from->sum.meta);
	return stackset_copy(to->ss, from->ss, (const uint64_t(*)[STACK_SIDES])from->ss->values);
}

/* Starts the others, then reads a share in this thread. */
static int read_shares(struct reader *list, size_t n)
{
	size_t started = 1;
	int err = 0;

	for (; started < n; started++) {
		struct reader *r = &list[started];

		r->ss = &r->own;
		if (stackset_init(r->ss))
			break;
		r->ss->no_modules = list->ss->no_modules;
		r->ss->file = list->ss->file;
		r->ss->choice = list->ss->choice;
		if (pthread_create(&r->thread, NULL, reader_main, r)) {
			stackset_free(r->ss);
			break;
		}
	}
	/* The shares would be wrong if memory or threads for the others were missing. */
	if (started == n)
		reader_main(list);
	err = started == n ? list->err : -EAGAIN;
	for (size_t i = 1; i < started; i++) {
		pthread_join(list[i].thread, NULL);
		if (!err)
			err = take(list, &list[i]);
		stackset_free(list[i].ss);
	}
	return err;
}

static int count_window(void *ctx, int folder, const char *name, const struct window_name *w)
{
	(void)folder, (void)name, (void)w;
	++*(size_t *)ctx;
	return 0;
}

int window_sum_read(const char *path, const struct window_choice *c, struct stackset *ss,
		    enum stack_side side, struct window_sum *ret)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	struct shared s = { .path = path, .choice = c, .side = side };
	struct reader list[MAX_READERS] = { 0 };
	int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), err;

	if (dir < 0)
		return complain(EXIT_FAILED, "cannot read '%s': %s", path, strerror(errno));
	jail_keep_memory(KEEP_BYTES);
	s.readers = cpus < 1 ? 1 : cpus > MAX_READERS ? MAX_READERS : (size_t)cpus;
	if (isatty(STDERR_FILENO))
		windows_each(dir, c, count_window, &s.all);
	for (size_t i = 0; i < s.readers; i++)
		list[i] = (struct reader){ .s = &s, .index = i, .dir = dir };
	list[0].ss = ss;
	err = read_shares(list, s.readers);
	close(dir);
	if (s.all)
		fputs("\r\033[K", stderr);
	if (err < 0)
		return complain(EXIT_FAILED, "cannot read '%s': %s", path, strerror(-err));
	*ret = list[0].sum;
	return err;
}
