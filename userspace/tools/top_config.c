/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The settings of the setup page, in $XDG_CONFIG_HOME/sfbpf/config or ~/.config/sfbpf/config. We
 * may be root with another user's HOME, so only a regular file of ours, of root or of the caller of
 * sudo is read, and result_file refuses to write through what another user planted.
 */
#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/num.h"
#include "base/result_file.h"
#include "tools/top.h"
#include "tui/setup.h"
#include "tui/view.h"

#define MOST 16384 /* bytes of a file */

static const char *const spans[LIVE_SPANS] = { "5s", "30s", "all" };

struct reading {
	struct ui_settings *s;
	char why[160];
};

/* ~ or $XDG_CONFIG_HOME; false: there is neither, or it is too long */
static bool set_path(struct top *t)
{
	const char *xdg = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	bool has_xdg = xdg && *xdg == '/';
	int n;

	if (!has_xdg && !(home && *home == '/'))
		return false;
	n = snprintf(t->config_path, sizeof(t->config_path), "%s%s/sfbpf/config",
		     has_xdg ? xdg : home, has_xdg ? "" : "/.config");
	if (n < 0 || (size_t)n >= sizeof(t->config_path))
		return false;
	t->ui.config_path = t->config_path;
	return true;
}

static bool is_choice(const char *value, const char *yes, const char *no, bool *ret)
{
	*ret = !strcmp(value, yes);
	return *ret || !strcmp(value, no);
}

static bool take_hidden(struct ui_settings *s, const char *name, const char *value)
{
	int v = 0;
	char title[32];
	enum column column;

	while (v < VIEW_MAX && strcmp(view_name((enum view)v), name) != 0)
		v++;
	if (v == VIEW_MAX)
		return false;
	while (*value) {
		size_t len = strcspn(value, ",");

		if (len >= sizeof(title))
			return false;
		memcpy(title, value, len);
		title[len] = 0;
		if (!setup_column((enum view)v, title, &column))
			return false;
		s->hidden[v] |= 1u << column;
		value += len;
		value += strspn(value, ", ");
	}
	return true;
}

static bool take_setting(struct ui_settings *s, const char *name, const char *value)
{
	uint64_t ns;
	bool on;

	if (!strcmp(name, "delay")) {
		if (num_duration(value, NUM_S, &ns) || ns < UI_DELAY_MIN || ns > UI_DELAY_MAX)
			return false;
		s->delay_ns = ns;
		return true;
	}
	for (int i = 0; !strcmp(name, "window") && i < LIVE_SPANS; i++) {
		if (!strcmp(value, spans[i])) {
			s->span = (enum live_span)i;
			return true;
		}
	}
	for (int v = 0; !strcmp(name, "view") && v < VIEW_MAX; v++) {
		if (!strcmp(value, view_name((enum view)v))) {
			s->view = (enum view)v;
			return true;
		}
	}
	if (!strcmp(name, "names"))
		return is_choice(value, "thread", "process", &s->by_thread);
	if (!strcmp(name, "kernel"))
		return is_choice(value, "hide", "show", &s->hide_kernel);
	if (!strcmp(name, "color") && is_choice(value, "yes", "no", &on)) {
		s->no_color = !on;
		return true;
	}
	return false;
}

static int on_pair(void *ctx, const char *section, const char *name, const char *value)
{
	struct reading *r = ctx;
	bool ok = !strcmp(section, "top")    ? take_setting(r->s, name, value)
		  : !strcmp(section, "hide") ? take_hidden(r->s, name, value)
					     : false;

	if (!ok && !*r->why)
		snprintf(r->why, sizeof(r->why), "[%.20s] %.40s = %.40s", section, name, value);
	return ok;
}

static bool is_trusted(uid_t owner)
{
	uid_t uid;
	gid_t gid;

	return !owner || owner == geteuid() || (result_file_caller(&uid, &gid) && owner == uid);
}

/* The file's text, NUL-terminated; NULL: no file, or *why says why it is not read. */
static char *read_text(const char *path, const char **why)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	char *text = NULL;
	struct stat st;
	ssize_t n = 0;

	if (fd < 0) {
		*why = errno == ENOENT ? NULL : strerror(errno);
		return NULL;
	}
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size > MOST)
		*why = "not a regular file of at most 16 kB";
	else if (!is_trusted(st.st_uid))
		*why = "it belongs to another user";
	else
		text = calloc(1, MOST + 1);
	if (text)
		n = read(fd, text, MOST);
	close(fd);
	if (n < 0) {
		*why = "cannot be read";
		free(text);
		return NULL;
	}
	return text;
}

/* The path comes last: the line may be too long for the screen. */
static void say(struct top *t, const char *what, const char *why)
{
	char text[sizeof(t->config_path) + 256];

	snprintf(text, sizeof(text), "%s: %s (%s)", what, why, t->config_path);
	ui_say(&t->ui, true, text);
}

void top_config_read(struct top *t)
{
	struct ui_settings given = ui_settings(&t->ui), s = given;
	struct reading r = { .s = &s };
	const char *why = NULL;
	char *text;

	if (!set_path(t))
		return;
	text = read_text(t->config_path, &why);
	if (!text) {
		if (why)
			say(t, "settings not read", why);
		return;
	}
	if (ini_parse_string(text, on_pair, &r))
		say(t, "error in the settings",
		    *r.why ? r.why : "a line is neither 'key = value' nor '[section]'");
	free(text);
	if (t->has_delay)
		s.delay_ns = given.delay_ns;
	if (t->has_by)
		s.by_thread = given.by_thread;
	if (t->always_color || given.no_color) /* an option or NO_COLOR */
		s.no_color = given.no_color;
	s.hide_kernel |= given.hide_kernel;
	ui_apply_settings(&t->ui, &s);
}

/* ---- Saving ---- */

static void write_hidden(FILE *f, const struct ui_settings *s, enum view view)
{
	const struct column_spec *col = view_at(view)->columns;
	bool any = false;

	for (; col && col->title; col++) {
		if (!(s->hidden[view] >> col->id & 1))
			continue;
		if (any)
			fprintf(f, ", %s", col->title);
		else
			fprintf(f, "%s = %s", view_name(view), col->title);
		any = true;
	}
	if (any)
		fputc('\n', f);
}

static void write_settings(FILE *f, const struct ui_settings *s)
{
	fprintf(f, "# Settings of sfbpf top, written by its setup page (F2).\n[top]\n");
	fprintf(f, "delay = %gs\nwindow = %s\nview = %s\n", (double)s->delay_ns / 1e9,
		spans[s->span], view_name(s->view));
	fprintf(f, "names = %s\nkernel = %s\ncolor = %s\n", s->by_thread ? "thread" : "process",
		s->hide_kernel ? "hide" : "show", s->no_color ? "no" : "yes");
	fprintf(f, "\n# Columns that are not shown, by view\n[hide]\n");
	for (int v = 0; v < VIEW_MAX; v++)
		write_hidden(f, s, (enum view)v);
}

/* Makes the directories above the file. The last one must not be another user's. 0 or -errno. */
static int make_directories(const char *path)
{
	struct stat st;
	char dir[PATH_MAX];

	for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		snprintf(dir, sizeof(dir), "%.*s", (int)(slash - path), path);
		result_file_make_directory(dir);
	}
	if (lstat(dir, &st))
		return -errno;
	return S_ISDIR(st.st_mode) && is_trusted(st.st_uid) ? 0 : -EPERM;
}

void top_config_save(struct top *t)
{
	struct ui_settings s = ui_settings(&t->ui);
	const char *why = NULL;
	FILE *f = NULL, *made;
	int err;

	if (!t->ui.config_path)
		return;
	err = make_directories(t->config_path);
	if (!err)
		err = result_file_open(t->config_path, &f, &why);
	made = result_file_stage();
	if (!err && !made)
		err = -errno;
	if (!err) {
		write_settings(made, &s);
		err = result_file_fill(f, made);
	}
	if (made)
		fclose(made);
	if (f && fclose(f) && !err)
		err = -errno;
	if (err)
		say(t, "settings not saved", why ? why : strerror(-err));
}
