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
#include <unistd.h>

#include "agent/log.h"
#include "agent/receiver.h"
#include "base/clock.h"
#include "base/num.h"
#include "base/vec.h"

#define PRUNE_NS (60 * NUM_S)

int window_file_make(const struct encode_input *in, enum window_kind kind, struct body *ret)
{
	const struct out_format *format = out_format_named(in->cfg->format, OUT_PROFILE);
	struct profile *p = window_merged(in->window, kind);
	struct run_stats stats;
	struct out_meta meta;
	struct out_report r = body_report(in, kind, p, &stats, &meta);
	char *text = NULL;
	FILE *f;
	int err = -ENOMEM;

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
		err = window_file_make(in, kind, &b);
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

int window_file_write(const char *dir, const char *format, const char *host, const struct body *b)
{
	const struct out_format *f = out_format_named(format, OUT_PROFILE);
	char name[256], safe[128], id[37];
	int fd, err;

	body_escape(safe, sizeof(safe), host);
	body_id_text(b->id, id);
	snprintf(name, sizeof(name), "sfbpf-%s-%" PRIu64 "-%.8s%s%s", safe,
		 (uint64_t)(b->time_ns / NUM_MS), id,
		 b->kind == BODY_FILE_OFF_CPU ? ".off_cpu" : "",
		 f && f->suffixes[0] ? f->suffixes[0] : ".txt");
	if (mkdir(dir, 0700) && errno != EEXIST)
		return -errno;
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	err = write_file(fd, name, b);
	close(fd);
	return err;
}

/* ---- Retention ---- */

struct kept {
	char name[256];
	uint64_t ms, bytes;
};

static int by_time(const void *a, const void *b)
{
	const struct kept *x = a, *y = b;

	return x->ms < y->ms ? -1 : x->ms > y->ms;
}

/* The windows in dir whose names begin with prefix. The caller frees *ret. */
static size_t list_windows(int dir, const char *prefix, struct kept **ret)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct kept *list = NULL;
	size_t n = 0, cap = 0, len = strlen(prefix);
	struct dirent *e;
	struct stat st;

	*ret = NULL;
	while (d && (e = readdir(d))) {
		uint64_t ms;
		int used = 0;

		if (strncmp(e->d_name, prefix, len) ||
		    sscanf(e->d_name + len, "%" SCNu64 "-%*8[0-9a-f].%n", &ms, &used) != 1 ||
		    !used || fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
		    !S_ISREG(st.st_mode) || vec_reserve(&list, &cap, n + 1, sizeof(*list)))
			continue;
		list[n] = (struct kept){ .ms = ms, .bytes = (uint64_t)st.st_blocks * 512 };
		snprintf(list[n++].name, sizeof(list->name), "%s", e->d_name);
	}
	if (d)
		closedir(d);
	else if (fd >= 0)
		close(fd);
	*ret = list;
	return n;
}

size_t window_file_prune(const char *dir, const char *host, uint64_t now_ns, uint64_t keep_ns,
			 uint64_t keep_bytes)
{
	char prefix[256], safe[128];
	struct kept *list;
	uint64_t sum = 0;
	size_t n, gone = 0;
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return 0;
	body_escape(safe, sizeof(safe), host);
	snprintf(prefix, sizeof(prefix), "sfbpf-%s-", safe);
	n = list_windows(fd, prefix, &list);
	if (n)
		qsort(list, n, sizeof(*list), by_time);
	for (size_t i = 0; i < n; i++)
		sum += list[i].bytes;
	/* The oldest first; a window of the future (the clock was set back) is not too old. */
	for (size_t i = 0; i < n; i++) {
		uint64_t start = list[i].ms * NUM_MS;
		bool old = keep_ns && start < now_ns && now_ns - start > keep_ns;

		if (!old && !(keep_bytes && sum > keep_bytes))
			break;
		gone += !unlinkat(fd, list[i].name, 0);
		sum -= list[i].bytes;
	}
	free(list);
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
