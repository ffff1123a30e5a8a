/* SPDX-License-Identifier: BSD-2-Clause */
#include "sym/debuginfod.h"

#include <errno.h>

#ifdef HAVE_CURL
#include <curl/curl.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/full_io.h"

#define MAX_SERVERS 16
#define BUILD_ID_MAX 64
#define MISS_S 600
#define CONNECT_S 10
#define SLOW_BYTES (100 * 1024)		/* that must come in timeout_s, as elfutils' client has it */

struct server {
	char *url;
	bool dead;
};

struct debuginfod {
	struct server servers[MAX_SERVERS];
	size_t nservers;
	char cache[PATH_MAX / 2];
	uint64_t max_bytes;
	unsigned int timeout_s, max_s;
	CURL *curl;
	unsigned int files;
	uint64_t bytes;
};

/* ---- What the environment says ---- */

static uint64_t number_from(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);
	char *end;
	unsigned long long v;

	if (!text || !*text || *text == '-')
		return otherwise;
	v = strtoull(text, &end, 10);
	return *end || !v ? otherwise : v;
}

static int add_urls(struct debuginfod *d, const char *text)
{
	while (*(text += strspn(text, " \t\r\n"))) {
		size_t len = strcspn(text, " \t\r\n");
		struct server *s = &d->servers[d->nservers];

		if (d->nservers == MAX_SERVERS)
			break;
		s->url = strndup(text, len);
		if (!s->url)
			return -ENOMEM;
		while (len && s->url[len - 1] == '/')
			s->url[--len] = 0;
		d->nservers++;
		text += strcspn(text, " \t\r\n");
	}
	return 0;
}

static int add_url_files(struct debuginfod *d)
{
	DIR *dir = opendir(DEBUGINFOD_URLS_DIR);
	struct dirent *e;
	int err = 0;

	while (dir && !err && (e = readdir(dir))) {
		char path[sizeof(DEBUGINFOD_URLS_DIR) + 1 + sizeof(e->d_name)], text[4096];
		const char *dot = strrchr(e->d_name, '.');
		FILE *f;

		if (!dot || strcmp(dot, ".urls"))
			continue;
		snprintf(path, sizeof(path), DEBUGINFOD_URLS_DIR "/%s", e->d_name);
		f = fopen(path, "re");
		if (!f)
			continue;
		text[fread(text, 1, sizeof(text) - 1, f)] = 0;
		fclose(f);
		err = add_urls(d, text);
	}
	if (dir)
		closedir(dir);
	return err;
}

static int make_dir(const char *path)
{
	return mkdir(path, 0700) && errno != EEXIST ? -errno : 0;
}

static int choose_cache(struct debuginfod *d, const char *given)
{
	const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	char parent[sizeof(d->cache)];
	struct stat st;
	int n, err;

	if (!given)
		given = getenv("DEBUGINFOD_CACHE_PATH");
	if (given && *given) {
		n = snprintf(d->cache, sizeof(d->cache), "%s", given);
		return n >= (int)sizeof(d->cache) ? -ENAMETOOLONG : make_dir(d->cache);
	}
	/* Where older clients had it. */
	n = snprintf(d->cache, sizeof(d->cache), "%s/.debuginfod_client_cache", home ? home : "");
	if (home && n < (int)sizeof(d->cache) && !stat(d->cache, &st))
		return 0;
	n = xdg && *xdg ? snprintf(parent, sizeof(parent), "%s", xdg) : snprintf(parent, sizeof(parent), "%s/.cache", home ? home : "/root");
	if (n + (int)sizeof("/debuginfod_client") > (int)sizeof(d->cache))
		return -ENAMETOOLONG;
	err = make_dir(parent);
	strcpy(stpcpy(d->cache, parent), "/debuginfod_client");
	return err ? err : make_dir(d->cache);
}

int debuginfod_new(const struct debuginfod_opts *opts, struct debuginfod **ret)
{
	struct debuginfod *d = calloc(1, sizeof(*d));
	const char *urls = opts->urls ? opts->urls : getenv("DEBUGINFOD_URLS");
	int err;

	if (!d)
		return -ENOMEM;
	err = urls && *urls ? add_urls(d, urls) : add_url_files(d);
	if (!err && !d->nservers)
		err = -ENOENT;
	if (!err)
		err = choose_cache(d, opts->cache);
	d->max_bytes = opts->max_bytes ? opts->max_bytes : number_from("DEBUGINFOD_MAXSIZE", 2ull << 30);
	d->timeout_s = opts->timeout_s ? opts->timeout_s : (unsigned int)number_from("DEBUGINFOD_TIMEOUT", 90);
	d->max_s = opts->max_s ? opts->max_s : (unsigned int)number_from("DEBUGINFOD_MAXTIME", 600);
	if (!err && (curl_global_init(CURL_GLOBAL_DEFAULT) || !(d->curl = curl_easy_init())))
		err = -ENOMEM;
	if (err) {
		debuginfod_free(d);
		return err;
	}
	*ret = d;
	return 0;
}

void debuginfod_free(struct debuginfod *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < d->nservers; i++)
		free(d->servers[i].url);
	if (d->curl)
		curl_easy_cleanup(d->curl);
	free(d);
}

/* ---- The network ---- */

struct body {
	int fd;
	uint64_t len, max;
};

static size_t on_body(char *data, size_t size, size_t n, void *ctx)
{
	struct body *b = ctx;
	size_t len = size * n;

	if (len > b->max - b->len)
		return 0;
	if (write_full(b->fd, data, len))
		return 0;
	b->len += len;
	return len;
}

/* 0; -ENOENT: it says that it has none; -EIO. */
static int ask(struct debuginfod *d, struct server *s, const char *hex, int fd)
{
	struct body body = { .fd = fd, .max = d->max_bytes };
	char url[2048];
	long status = 0;
	CURLcode rc;

	if (snprintf(url, sizeof(url), "%s/buildid/%s/debuginfo", s->url, hex) >= (int)sizeof(url) || ftruncate(fd, 0) ||
	    lseek(fd, 0, SEEK_SET))
		return -EIO;
	curl_easy_reset(d->curl);
	curl_easy_setopt(d->curl, CURLOPT_URL, url);
#if LIBCURL_VERSION_NUM >= 0x075500
	curl_easy_setopt(d->curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(d->curl, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
#else
	curl_easy_setopt(d->curl, CURLOPT_PROTOCOLS, CURLPROTO_HTTP | CURLPROTO_HTTPS);
	curl_easy_setopt(d->curl, CURLOPT_REDIR_PROTOCOLS, CURLPROTO_HTTP | CURLPROTO_HTTPS);
#endif
	curl_easy_setopt(d->curl, CURLOPT_FOLLOWLOCATION, 1L);
	curl_easy_setopt(d->curl, CURLOPT_MAXREDIRS, 5L);
	curl_easy_setopt(d->curl, CURLOPT_FAILONERROR, 1L);
	curl_easy_setopt(d->curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(d->curl, CURLOPT_ACCEPT_ENCODING, "");
	curl_easy_setopt(d->curl, CURLOPT_USERAGENT, "sfbpf/" SFBPF_VERSION);
	curl_easy_setopt(d->curl, CURLOPT_CONNECTTIMEOUT, (long)(d->timeout_s < CONNECT_S ? d->timeout_s : CONNECT_S));
	curl_easy_setopt(d->curl, CURLOPT_LOW_SPEED_TIME, (long)d->timeout_s);
	curl_easy_setopt(d->curl, CURLOPT_LOW_SPEED_LIMIT, (long)(SLOW_BYTES / (d->timeout_s ? d->timeout_s : 1)));
	curl_easy_setopt(d->curl, CURLOPT_TIMEOUT, (long)d->max_s);
	curl_easy_setopt(d->curl, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)d->max_bytes);
	curl_easy_setopt(d->curl, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(d->curl, CURLOPT_WRITEDATA, &body);
	rc = curl_easy_perform(d->curl);
	curl_easy_getinfo(d->curl, CURLINFO_RESPONSE_CODE, &status);
	if (rc == CURLE_OK && body.len) {
		d->files++;
		d->bytes += body.len;
		return 0;
	}
	if (rc == CURLE_HTTP_RETURNED_ERROR && status == 404)
		return -ENOENT;
	/* Too large, or the disk is full: the next file may do. */
	s->dead = rc != CURLE_FILESIZE_EXCEEDED && rc != CURLE_WRITE_ERROR && status != 200;
	return -EIO;
}

/* ---- The cache ---- */

static int from_cache(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st;

	if (fd < 0)
		return errno == ENOENT ? -ENODATA : -EIO;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size)
		return fd;
	close(fd);
	if (S_ISREG(st.st_mode) && time(NULL) - st.st_mtime <= MISS_S)
		return -ENOENT;
	unlink(path);
	return -ENODATA;
}

static void remember_miss(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd >= 0)
		close(fd);
}

int debuginfod_fetch(void *ctx, const uint8_t *build_id, size_t len)
{
	struct debuginfod *d = ctx;
	char hex[2 * BUILD_ID_MAX + 1], path[PATH_MAX], part[PATH_MAX + 16];
	int fd, err = -EIO, rc;
	bool asked = false;

	if (!len || len > BUILD_ID_MAX)
		return -ENOENT;
	for (size_t i = 0; i < len; i++)
		snprintf(hex + 2 * i, 3, "%02x", build_id[i]);
	snprintf(path, sizeof(path), "%s/%s", d->cache, hex);
	if (make_dir(path))
		return -EIO;
	snprintf(path, sizeof(path), "%s/%s/debuginfo", d->cache, hex);
	fd = from_cache(path);
	if (fd != -ENODATA)
		return fd;
	snprintf(part, sizeof(part), "%s.XXXXXX", path);
	fd = mkostemp(part, O_CLOEXEC);
	if (fd < 0)
		return -EIO;
	for (size_t i = 0; i < d->nservers && err; i++) {
		if (d->servers[i].dead)
			continue;
		rc = ask(d, &d->servers[i], hex, fd);
		if (!rc || rc == -ENOENT)
			err = rc;
		asked |= rc == -EIO;
	}
	if (!err && !rename(part, path))
		return fd;
	if (err == -ENOENT && !asked)
		remember_miss(path);
	unlink(part);
	close(fd);
	return err ? err : -EIO;
}

void debuginfod_totals(const struct debuginfod *d, unsigned int *ret_files, uint64_t *ret_bytes)
{
	*ret_files = d->files;
	*ret_bytes = d->bytes;
}
#else
int debuginfod_new(const struct debuginfod_opts *opts, struct debuginfod **ret)
{
	(void)opts, (void)ret;
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

void debuginfod_totals(const struct debuginfod *d, unsigned int *ret_files, uint64_t *ret_bytes)
{
	(void)d;
	*ret_files = 0;
	*ret_bytes = 0;
}
#endif
