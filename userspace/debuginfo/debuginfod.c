/* SPDX-License-Identifier: BSD-2-Clause */
#include "debuginfo/debuginfod.h"

#include <errno.h>

#ifdef HAVE_DEBUGINFOD
#include <elfutils/debuginfod.h>
#include <fcntl.h>
#include <glob.h>
#include <pwd.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUILD_ID_MAX	  64
#define DEFAULT_MAX_BYTES (2ull << 30)
#define DEFAULT_MAX_S	  "600"

struct debuginfod {
	char urls[4096];
	bool (*stopped)(void);
	debuginfod_client *client; /* made by the first fetch */
	bool asked_network;	   /* the current fetch has asked it */
	struct debuginfod_totals totals;
};

static void read_url_files(char *urls, size_t cap)
{
	glob_t found;
	size_t len = 0;

	if (glob(DEBUGINFOD_URLS_DIR "/*.urls", 0, NULL, &found))
		return;
	for (size_t i = 0; i < found.gl_pathc && len + 2 < cap; i++) {
		FILE *f = fopen(found.gl_pathv[i], "re");

		if (!f)
			continue;
		len += fread(urls + len, 1, cap - 2 - len, f);
		urls[len++] = ' ';
		fclose(f);
	}
	urls[len] = 0;
	globfree(&found);
	/* The library splits at spaces only. */
	for (char *c = urls; (c = strpbrk(c, "\t\r\n"));)
		*c = ' ';
}

int debuginfod_new(bool (*stopped)(void), struct debuginfod **ret)
{
	const char *urls = getenv(DEBUGINFOD_URLS_ENV_VAR);
	struct debuginfod *d = calloc(1, sizeof(*d));

	if (!d)
		return -ENOMEM;
	if (urls && *urls)
		snprintf(d->urls, sizeof(d->urls), "%s", urls);
	else
		read_url_files(d->urls, sizeof(d->urls));
	if (!d->urls[strspn(d->urls, " ")]) {
		free(d);
		return -ENOENT;
	}
	d->stopped = stopped;
	*ret = d;
	return 0;
}

void debuginfod_free(struct debuginfod *d)
{
	if (d && d->client)
		debuginfod_end(d->client);
	free(d);
}

static bool is_stopped(const struct debuginfod *d)
{
	return d->stopped && d->stopped();
}

static int on_progress(debuginfod_client *client, long part, long all)
{
	struct debuginfod *d = debuginfod_get_user_data(client);

	(void)part, (void)all;
	d->asked_network = true;
	return is_stopped(d);
}

/*
 * Keeps root from writing a cache below a home directory that another user controls: some sudo
 * configurations keep $HOME.
 */
static void use_own_home(void)
{
	const char *home = getenv("HOME");
	const struct passwd *pw = getpwuid(geteuid());
	struct stat st;

	if (geteuid() || !pw || (home && !stat(home, &st) && !st.st_uid))
		return;
	setenv("HOME", pw->pw_dir, 1);
	unsetenv("XDG_CACHE_HOME");
}

/*
 * Called by the first fetch, not earlier, because a command that is recorded keeps the environment
 * of the caller.
 */
static int begin(struct debuginfod *d)
{
	char max[24];

	snprintf(max, sizeof(max), "%llu", DEFAULT_MAX_BYTES);
	use_own_home();
	setenv(DEBUGINFOD_URLS_ENV_VAR, d->urls, 1);
	setenv(DEBUGINFOD_MAXTIME_ENV_VAR, DEFAULT_MAX_S, 0);
	setenv(DEBUGINFOD_MAXSIZE_ENV_VAR, max, 0);
	setenv(DEBUGINFOD_RETRY_LIMIT_ENV_VAR, "0", 0);
	signal(SIGXFSZ, SIG_IGN);
	d->client = debuginfod_begin();
	if (!d->client)
		return -ENOMEM;
	debuginfod_set_user_data(d->client, d);
	debuginfod_set_progressfn(d->client, on_progress);
	return 0;
}

/*
 * The library trusts the length that a server announces. RLIMIT_FSIZE also ends an answer without a
 * length, and one that unpacks to more.
 */
static int find_bounded(struct debuginfod *d, const uint8_t *build_id, size_t len)
{
	uint64_t max = strtoull(getenv(DEBUGINFOD_MAXSIZE_ENV_VAR), NULL, 10);
	struct rlimit before, during;
	int fd;

	if (getrlimit(RLIMIT_FSIZE, &before))
		return -errno;
	during = before;
	if (max && max < during.rlim_cur)
		during.rlim_cur = max;
	setrlimit(RLIMIT_FSIZE, &during);
	fd = debuginfod_find_debuginfo(d->client, build_id, (int)len, NULL);
	setrlimit(RLIMIT_FSIZE, &before);
	return fd;
}

int debuginfod_fetch(void *ctx, const uint8_t *build_id, size_t len)
{
	struct debuginfod *d = ctx;
	struct stat st;
	int fd;

	if (!len || len > BUILD_ID_MAX)
		return -ENOENT;
	if (d->totals.error || is_stopped(d))
		return -EIO;
	if (!d->client && begin(d))
		return -ENOMEM;
	d->asked_network = false;
	fd = find_bounded(d, build_id, len);
	/* A file that is too large does not mean that the next one is. */
	if (fd < 0 && !is_stopped(d) && fd != -ENOENT && fd != -EFBIG && fd != -EIO)
		d->totals.error = fd;
	if (fd < 0)
		return fd == -ENOENT ? fd : -EIO;
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		close(fd);
		return -EIO;
	}
	d->totals.files += d->asked_network;
	d->totals.bytes += d->asked_network ? (uint64_t)st.st_size : 0;
	return fd;
}

struct debuginfod_totals debuginfod_totals(const struct debuginfod *d)
{
	return d->totals;
}
#else
int debuginfod_new(bool (*stopped)(void), struct debuginfod **ret)
{
	(void)stopped, (void)ret;
	return -ENOTSUP;
}

void debuginfod_free(struct debuginfod *d)
{
	(void)d;
}

int debuginfod_fetch(void *ctx, const uint8_t *build_id, size_t len)
{
	(void)ctx, (void)build_id, (void)len;
	return -ENOTSUP;
}

struct debuginfod_totals debuginfod_totals(const struct debuginfod *d)
{
	(void)d;
	return (struct debuginfod_totals){ 0 };
}
#endif
