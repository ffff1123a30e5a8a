/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files that change while processes have them mapped. BPF remembers the files of mappings, so it
 * would not notice. A file that was written, renamed, linked or deleted has another change time,
 * and so is another file for BPF as soon as it looks the mapping up again.
 *
 * The kernel reports most changes at once, inotify(7). It does not report a write through a
 * mapping, or by another host on a network file system, and a user has a limited number of
 * watches: the change times of all files are compared now and then, too.
 */
#include <stdio.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/num.h"
#include "base/vec.h"
#include "kern/loader_internal.h"

#define REPORTED_MS   250   /* reports that come faster are handled together */
#define UNREPORTED_MS 10000 /* interval of the comparison without a report */

void loader_watch_start(struct loader *l)
{
	l->watched.inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
}

void loader_watch_end(struct loader *l)
{
	if (l->watched.inotify >= 0)
		close(l->watched.inotify);
	free(l->watched.v);
}

void loader_watch(struct loader *l, const struct module *m)
{
	struct watched *w = &l->watched;
	char path[32];
	uint64_t ns;

	/* The file is not watched when memory runs out. */
	if (!m->ctime_ns || vec_reserve(&w->v, &w->cap, w->n + 1, sizeof(*w->v)))
		return;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", m->fd);
	w->v[w->n++] = (struct watched_file){
		.module = m->id,
		.wd = inotify_add_watch(w->inotify, path, IN_MODIFY | IN_ATTRIB | IN_MOVE_SELF),
	};
	if (module_change(m, &ns) != MODULE_SAME) /* a change before there was a watch */
		w->looked_ns = 0;
}

/*
 * Removes an entry, and its watch unless another entry has it: a file that was changed and loaded
 * again is two modules with one watch.
 */
static void forget(struct watched *w, size_t at)
{
	int wd = w->v[at].wd, users = 0;

	if (at < w->nstale) {
		w->v[at] = w->v[--w->nstale];
		at = w->nstale;
	}
	w->v[at] = w->v[--w->n];
	for (size_t i = 0; i < w->n; i++)
		users += w->v[i].wd == wd;
	if (wd >= 0 && !users)
		inotify_rm_watch(w->inotify, wd);
}

static void compare_all(struct loader *l)
{
	struct watched *w = &l->watched;
	bool changed = false;
	uint64_t ns;

	for (size_t i = w->nstale; i < w->n; i++) {
		struct watched_file file = w->v[i];

		if (!tables_has(l->tables, file.module)) {
			forget(w, i--);
			continue;
		}
		if (module_change(modules_get(l->modules, file.module), &ns) == MODULE_SAME)
			continue;
		w->v[i] = w->v[w->nstale];
		w->v[w->nstale++] = file;
		changed = true;
	}
	if (changed)
		tables_forget_mappings(l->tables);
}

static bool any_report(int inotify)
{
	char events[4096];
	bool any = false;

	while (read(inotify, events, sizeof(events)) > 0)
		any = true;
	return any;
}

int loader_look_for_changes(struct loader *l, int *ret_fd)
{
	struct watched *w = &l->watched;
	uint64_t now = clock_ns(CLOCK_MONOTONIC), past = now - w->looked_ns;

	*ret_fd = -1;
	if (past < REPORTED_MS * NUM_MS)
		return (int)(REPORTED_MS - past / NUM_MS);
	*ret_fd = w->inotify;
	if (past < UNREPORTED_MS * NUM_MS && !any_report(w->inotify))
		return (int)(UNREPORTED_MS - past / NUM_MS);
	w->looked_ns = now;
	compare_all(l);
	*ret_fd = -1;
	return REPORTED_MS;
}

size_t loader_stale(struct loader *l, uint32_t *ids, size_t max)
{
	struct watched *w = &l->watched;
	size_t n = 0;

	for (size_t i = 0; i < w->nstale; i++) {
		uint32_t id = w->v[i].module;

		if (!tables_has(l->tables, id))
			forget(w, i--);
		else if (n < max)
			ids[n++] = id;
	}
	return n;
}
