/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/windows.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/num.h"
#include "base/text.h"

#define ID_DIGITS 8
#define DAY_NS	  (86400 * NUM_S)

/* Whether a window with that suffix can be read again. */
static bool known_suffix(const char *suffix, bool *ret_off_cpu)
{
	static const char mark[] = ".off_cpu";

	*ret_off_cpu = !strncmp(suffix, mark, strlen(mark));
	if (*ret_off_cpu)
		suffix += strlen(mark);
	return !strcmp(suffix, ".pb.gz") || !strcmp(suffix, ".folded") || !strcmp(suffix, ".json");
}

/* Undoes body_escape() of agent/body.c: "%2F". */
static void unescape(char *dst, size_t cap, const char *s, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len && n + 1 < cap; i++, n++) {
		unsigned int byte;

		dst[n] = s[i];
		if (s[i] == '%' && i + 2 < len && sscanf(s + i + 1, "%2x", &byte) == 1 && byte) {
			dst[n] = (char)byte;
			i += 2;
		}
	}
	dst[n] = 0;
}

/* Names are "sfbpf-HOST-MILLISECONDS-ID.SUFFIX" (agent/window_file.c). HOST may contain '-'. */
bool window_name_parse(const char *name, struct window_name *ret)
{
	const char *id = strrchr(name, '-'), *ms = id, *host = name + strlen("sfbpf-");
	char digits[24], raw[sizeof(ret->host)];

	if (strncmp(name, "sfbpf-", strlen("sfbpf-")) || !id ||
	    strspn(id + 1, "0123456789abcdef") != ID_DIGITS ||
	    !known_suffix(id + 1 + ID_DIGITS, &ret->off_cpu))
		return false;
	do {
		if (ms-- <= host)
			return false;
	} while (*ms != '-');
	if (id - ms - 1 >= (int)sizeof(digits))
		return false;
	snprintf(digits, sizeof(digits), "%.*s", (int)(id - ms - 1), ms + 1);
	if (num_u64(digits, 0, UINT64_MAX / NUM_MS, &ret->start_ns))
		return false;
	ret->start_ns *= NUM_MS;
	unescape(raw, sizeof(raw), host, (size_t)(ms - host));
	text_clean(ret->host, sizeof(ret->host), raw, strlen(raw), 0);
	return true;
}

bool window_chosen(const struct window_choice *c, const char *name, struct window_name *ret)
{
	return window_name_parse(name, ret) && ret->off_cpu == c->off_cpu &&
	       (!c->host || !strcmp(ret->host, c->host)) && ret->start_ns >= c->since_ns &&
	       (!c->until_ns || ret->start_ns < c->until_ns);
}

/* ---- Directories ---- */

/* "2026-01-31": *ret is the start of that day. */
static bool is_day(const char *name, uint64_t *ret)
{
	struct tm tm = { 0 };
	const char *end = strlen(name) == 10 ? strptime(name, "%Y-%m-%d", &tm) : NULL;
	time_t at = end && !*end ? timegm(&tm) : -1;

	if (at < 0)
		return false;
	*ret = (uint64_t)at * NUM_S;
	return true;
}

static bool day_chosen(const struct window_choice *c, const char *name)
{
	uint64_t start;

	return is_day(name, &start) && start + DAY_NS > c->since_ns &&
	       (!c->until_ns || start < c->until_ns);
}

static int each_in(DIR *dir, const struct window_choice *c, bool days, window_fn *fn, void *ctx)
{
	struct window_name w;
	struct dirent *e;
	int rc = 0;

	while (!rc && (e = readdir(dir))) {
		if (window_chosen(c, e->d_name, &w)) {
			rc = fn(ctx, dirfd(dir), e->d_name, &w);
		} else if (days && day_chosen(c, e->d_name)) {
			int fd = openat(dirfd(dir), e->d_name,
					O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
			DIR *day = fd < 0 ? NULL : fdopendir(fd);

			if (day) {
				rc = each_in(day, c, false, fn, ctx);
				closedir(day);
			} else if (fd >= 0) {
				close(fd);
			}
		}
	}
	return rc;
}

int windows_each(int dir, const struct window_choice *c, window_fn *fn, void *ctx)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), err;
	DIR *top = fd < 0 ? NULL : fdopendir(fd);

	if (!top) {
		err = -errno;
		if (fd >= 0)
			close(fd);
		return err;
	}
	err = each_in(top, c, true, fn, ctx);
	closedir(top);
	return err;
}

FILE *window_open_file(int folder, const char *name)
{
	int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;
	FILE *f = NULL;

	if (fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode))
		f = fdopen(fd, "r");
	if (fd >= 0 && !f)
		close(fd);
	return f;
}

/* ---- Times ---- */

static int local_time(const char *text, uint64_t *ret_ns)
{
	static const char *const forms[] = { "%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S" };

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		struct tm tm = { .tm_isdst = -1 };
		const char *end = strptime(text, forms[i], &tm);
		time_t at = end && !*end ? mktime(&tm) : -1;

		if (at < 0)
			continue;
		*ret_ns = (uint64_t)at * NUM_S;
		return 0;
	}
	return -EINVAL;
}

int window_time(const char *text, uint64_t now_ns, uint64_t *ret_ns)
{
	uint64_t ago;

	if (num_duration(text, NUM_S, &ago))
		return local_time(text, ret_ns);
	*ret_ns = ago < now_ns ? now_ns - ago : 0;
	return 0;
}
