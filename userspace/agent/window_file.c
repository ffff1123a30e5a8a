/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/window_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agent/log.h"
#include "agent/receiver.h"
#include "base/clock.h"
#include "base/num.h"
#include "base/vec.h"

#define PRUNE_NS (60 * NUM_S)

/* The labels of a window's targets, for out_report. */
struct labels {
	const struct encode_input *in;
	uint64_t of; /* the target plus 1 that list is of; 0: none */
	struct out_label *list;
	size_t n, cap;
};

static void add_label(void *ctx, const char *name, const char *value)
{
	struct labels *l = ctx;

	/* The host is in the file's name, and once in the file. */
	if (strcmp(name, "host.name") &&
	    !vec_reserve(&l->list, &l->cap, l->n + 1, sizeof(*l->list)))
		l->list[l->n++] = (struct out_label){ name, value };
}

static size_t labels_of(void *ctx, uint64_t target1, const struct out_label **ret)
{
	struct labels *l = ctx;

	if (l->of != target1) {
		l->of = target1;
		l->n = 0;
		body_labels(l->in, targets_at(l->in->window->targets, (uint32_t)target1 - 1),
			    add_label, l);
	}
	*ret = l->list;
	return l->n;
}

static void link_of(void *window, uint32_t link, uint64_t ret[SF_LINK_WORDS])
{
	window_link(window, link, ret);
}

/*
 * Makes a file in cfg->format of everything of one kind in the window. The caller frees ret->data.
 * 0 or -errno.
 */
static int make(const struct encode_input *in, enum window_kind kind, struct body *ret)
{
	const struct out_format *format = out_format_named(in->cfg->format, OUT_PROFILE);
	struct profile *p = window_merged(in->window, kind, format->cgroups);
	struct labels labels = { .in = in };
	struct out_labels out_labels = { labels_of, &labels };
	struct out_links out_links = { link_of, in->window };
	struct run_stats stats;
	struct out_meta meta;
	struct out_report r = body_report(in, kind, p, &stats, &meta);
	char *text = NULL;
	FILE *f;
	int err = -ENOMEM;

	if (format->cgroups)
		r.labels = &out_labels;
	r.links = &out_links;
	*ret = (struct body){
		.kind = kind == WINDOW_OFF_CPU ? BODY_FILE_OFF_CPU : BODY_FILE,
		.time_ns = in->window->start_unix_ns,
		.samples = kind == WINDOW_OFF_CPU ? in->window->blocks : in->window->samples,
	};
	f = p ? open_memstream(&text, &ret->len) : NULL;
	if (f) {
		profile_account(p, in->modules, &stats.account);
		err = format->write(&r, f);
	}
	if (f && fclose(f) && !err)
		err = -ENOMEM;
	profile_free(p);
	free(labels.list);
	if (err)
		free(text);
	else
		ret->data = (uint8_t *)text;
	return err;
}

static int encode_window(const struct encode_input *in, body_fn fn, void *ctx)
{
	struct body b;
	int err = 0;

	for (enum window_kind kind = 0; kind < WINDOW_KINDS && !err; kind++) {
		if (!body_has(in, kind))
			continue;
		err = make(in, kind, &b);
		if (!err)
			err = body_emit(in, (enum body_kind)b.kind, false, b.data, b.len, b.samples,
					NULL, fn, ctx);
	}
	return err;
}

static int write_file(int dir, const char *name, const struct body *b)
{
	char tmp[300];
	FILE *f;
	int fd, err = 0;

	snprintf(tmp, sizeof(tmp), ".%s.tmp", name);
	fd = openat(dir, tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	f = fd < 0 ? NULL : fdopen(fd, "w");
	if (!f)
		return -errno;
	if (fwrite(b->data, 1, b->len, f) != b->len || fflush(f) || fsync(fd))
		err = errno ? -errno : -EIO;
	if (fclose(f) && !err)
		err = -errno;
	if (!err && renameat(dir, tmp, dir, name))
		err = -errno;
	if (err)
		unlinkat(dir, tmp, 0);
	return err;
}

#define DAY_TEXT sizeof("2026-01-31")

/* The folder of a day, in UTC. */
static void day_of(uint64_t unix_ns, char ret[DAY_TEXT])
{
	time_t at = (time_t)(unix_ns / NUM_S);
	struct tm tm;

	if (!gmtime_r(&at, &tm) || strftime(ret, DAY_TEXT, "%Y-%m-%d", &tm) != DAY_TEXT - 1)
		strcpy(ret, "1970-01-01");
}

static bool is_day(const char *name)
{
	struct tm tm;
	const char *end = strptime(name, "%Y-%m-%d", &tm);

	return strlen(name) == DAY_TEXT - 1 && end && !*end;
}

/* Opens a folder, which is made for the users that the directory is for. */
static int make_folder(int dir, const char *name)
{
	bool made = !mkdirat(dir, name, 0700);
	struct stat st;
	int fd;

	if (!made && errno != EEXIST)
		return -errno;
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return -errno;
	if (made && !fstat(dir, &st))
		fchmod(fd, st.st_mode & 07777);
	return fd;
}

int window_file_write(const char *dir, const char *format, const char *host, const struct body *b)
{
	const struct out_format *f = out_format_named(format, OUT_PROFILE);
	char name[256], safe[128], id[37], day[DAY_TEXT];
	int top, fd, err;

	body_escape(safe, sizeof(safe), host);
	body_id_text(b->id, id);
	day_of(b->time_ns, day);
	snprintf(name, sizeof(name), "sfbpf-%s-%" PRIu64 "-%.8s%s%s", safe,
		 (uint64_t)(b->time_ns / NUM_MS), id,
		 b->kind == BODY_FILE_OFF_CPU ? ".off_cpu" : "",
		 f && f->suffixes[0] ? f->suffixes[0] : ".txt");
	if (mkdir(dir, 0700) && errno != EEXIST)
		return -errno;
	top = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (top < 0)
		return -errno;
	fd = make_folder(top, day);
	close(top);
	if (fd < 0)
		return fd;
	err = write_file(fd, name, b);
	close(fd);
	return err;
}

/* ---- Retention ---- */

struct kept {
	char name[DAY_TEXT + 256]; /* path below the directory */
	uint64_t ms, bytes;
};

struct kept_list {
	const char *prefix; /* how names of this host's windows begin */
	struct kept *list;
	size_t n, cap;
};

static int by_time(const void *a, const void *b)
{
	const struct kept *x = a, *y = b;

	return x->ms < y->ms ? -1 : x->ms > y->ms;
}

/* A directory at path below dir. NULL: not a directory. */
static DIR *open_folder(int dir, const char *path)
{
	int fd = openat(dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (fd >= 0 && !d)
		close(fd);
	return d;
}

static void add_kept(struct kept_list *l, int dir, const char *day, const char *name)
{
	size_t len = strlen(l->prefix);
	struct stat st;
	uint64_t ms;
	int used = 0;

	if (strncmp(name, l->prefix, len) ||
	    sscanf(name + len, "%" SCNu64 "-%*8[0-9a-f].%n", &ms, &used) != 1 || !used ||
	    fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode) ||
	    vec_reserve(&l->list, &l->cap, l->n + 1, sizeof(*l->list)))
		return;
	l->list[l->n] = (struct kept){ .ms = ms, .bytes = (uint64_t)st.st_blocks * 512 };
	snprintf(l->list[l->n].name, sizeof(l->list->name), "%s%s%s", day, *day ? "/" : "", name);
	l->n++;
}

/* Adds the windows in the folder of a day, or (day "") in the directory and all its folders. */
static void add_folder(struct kept_list *l, int dir, const char *day)
{
	DIR *d = open_folder(dir, *day ? day : ".");
	struct dirent *e;

	while (d && (e = readdir(d))) {
		if (*day || !is_day(e->d_name))
			add_kept(l, dirfd(d), day, e->d_name);
		else
			add_folder(l, dir, e->d_name);
	}
	if (d)
		closedir(d);
}

/* Removes a window, and the folder of its day if that is empty now. */
static bool remove_window(int dir, char *name)
{
	char *slash = strchr(name, '/');

	if (unlinkat(dir, name, 0))
		return false;
	if (slash) {
		*slash = 0;
		unlinkat(dir, name, AT_REMOVEDIR); /* fails unless it is empty */
	}
	return true;
}

size_t window_file_prune(const char *dir, const char *host, uint64_t now_ns, uint64_t keep_ns,
			 uint64_t keep_bytes)
{
	char prefix[256], safe[128];
	struct kept_list all = { .prefix = prefix };
	uint64_t sum = 0;
	size_t gone = 0;
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return 0;
	body_escape(safe, sizeof(safe), host);
	snprintf(prefix, sizeof(prefix), "sfbpf-%s-", safe);
	add_folder(&all, fd, "");
	if (all.n)
		qsort(all.list, all.n, sizeof(*all.list), by_time);
	for (size_t i = 0; i < all.n; i++)
		sum += all.list[i].bytes;
	/* The oldest first; a window of the future (the clock was set back) is not too old. */
	for (size_t i = 0; i < all.n; i++) {
		uint64_t start = all.list[i].ms * NUM_MS;
		bool old = keep_ns && start < now_ns && now_ns - start > keep_ns;

		if (!old && !(keep_bytes && sum > keep_bytes))
			break;
		sum -= all.list[i].bytes;
		gone += remove_window(fd, all.list[i].name);
	}
	free(all.list);
	close(fd);
	return gone;
}

/* Now and then, in the thread that writes. */
static void prune(const struct agent_config *cfg, const char *dir, const char *host)
{
	static uint64_t last_ns;
	uint64_t now = clock_ns(CLOCK_MONOTONIC), every = PRUNE_NS;
	size_t n;

	if (cfg->keep_ns && cfg->keep_ns / 10 < every)
		every = cfg->keep_ns / 10;
	if ((!cfg->keep_ns && !cfg->keep_bytes) || (last_ns && now - last_ns < every))
		return;
	last_ns = now;
	n = window_file_prune(dir, host, clock_ns(CLOCK_REALTIME), cfg->keep_ns, cfg->keep_bytes);
	if (n)
		agent_log(AGENT_LOG_INFO, "old windows are removed", "files", "%lu", (uint64_t)n,
			  NULL);
}

static int write_to_endpoint(const struct agent_config *cfg, const char *host, const struct body *b)
{
	const char *dir = cfg->endpoint;

	if (!strncmp(dir, "file://", 7))
		dir += 7;
	prune(cfg, dir, host);
	return window_file_write(dir, cfg->format, host, b);
}

const struct receiver receiver_file = {
	.bodies = BODY_BIT(BODY_FILE) | BODY_BIT(BODY_FILE_OFF_CPU),
	.encode = encode_window,
	.write = write_to_endpoint,
};
