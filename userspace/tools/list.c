/* SPDX-License-Identifier: BSD-2-Clause */
/* sfbpf list: prints events, one a line, as -e takes them. */
#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/exitcode.h"
#include "base/text.h"
#include "base/vec.h"
#include "cli/pids.h"
#include "cli/tools.h"
#include "kern/events.h"
#include "kern/tracepoint.h"
#include "symtab/elf_worker.h"
#include "worker/fork_server.h"

static const struct option_spec options[] = {
	{ 'p', "pid", "PID[,PID]",
	  "list the USDT probes of the files that these processes have mapped" },
	{ 0 },
};

static int list_run(int argc, char **argv);

const struct tool_spec list_tool = {
	.name = "list",
	.usage = "list [-p PID] [GLOB]",
	.brief = "list the events that can be sampled",
	.summary = "Prints the events that -e of record, top and agent takes, one a line: perf "
		   "events that this machine has, and tracepoints. GLOB selects; a word without "
		   "wildcards also selects what contains it. uprobe:PATH:GLOB lists functions of a "
		   "file, usdt:PATH:GLOB its USDT probes.",
	.options = options,
	.examples = "  sfbpf list 'block:*'                      tracepoints of block devices\n"
		    "  sfbpf list 'uprobe:libc.so.6:mem*'        functions of the C library\n"
		    "  sfbpf list 'usdt:/usr/bin/node:*'         USDT probes of a program\n"
		    "  sfbpf list -p 1234                        those of a process\n",
	.run = list_run,
};

struct lines {
	char **v;
	size_t n, cap;
	const char *glob; /* NULL: all */
	int err;
};

static int put_line(struct lines *l, const char *text)
{
	if (vec_reserve(&l->v, &l->cap, l->n + 1, sizeof(*l->v)) || !(l->v[l->n] = strdup(text)))
		l->err = -ENOMEM;
	else
		l->n++;
	return l->err;
}

static int put(struct lines *l, const char *text)
{
	bool wild = l->glob && strpbrk(l->glob, "*?[");
	bool wanted = !l->glob ||
		      (wild ? !fnmatch(l->glob, text, 0) : strstr(text, l->glob) != NULL);

	return wanted ? put_line(l, text) : 0;
}

static int put_tracepoint(void *ctx, const char *system, const char *name)
{
	char text[512];

	snprintf(text, sizeof(text), "%s:%s", system, name);
	return put(ctx, text);
}

/* Hardware events are listed only if this machine has them, or if that cannot be tried. */
static void put_perf_events(struct lines *l)
{
	const struct perf_event_kind *k;

	for (unsigned int i = 0; (k = perf_event_at(i)) && !l->err; i++) {
		int fd = k->type == PERF_TYPE_SOFTWARE ? -EACCES : perf_event_open_cpu(k, 0, 1, 0);

		if (fd >= 0)
			close(fd);
		if (fd != -ENOENT && fd != -EOPNOTSUPP)
			put(l, k->name);
	}
}

/* ---- Probes of files ---- */

struct files {
	struct fork_server *server;
	struct allowance allowance;
	struct elf_reader reader;
	struct lines *to;
};

/* path: as it is shown */
static int put_probes(struct files *f, int fd, const char *kind, const char *path,
		      const char *pattern)
{
	enum elf_probes_of what = strcmp(kind, "usdt") ? ELF_PROBES_FUNCTIONS : ELF_PROBES_USDT;
	char text[PATH_MAX + SYMTAB_NAME_MAX];
	struct elf_probes p;
	int err = elf_reader_probes(&f->reader, fd, what, pattern, &p);

	for (uint32_t i = 0; i < p.n && !err; i++) {
		char name[SYMTAB_NAME_MAX];
		const char *raw = p.text + p.v[i].name;

		text_clean(name, sizeof(name), raw, strlen(raw), 0);
		snprintf(text, sizeof(text), "%s:%s:%s", kind, path, name);
		err = put_line(f->to, text);
	}
	if (!err)
		elf_probes_free(&p);
	return err;
}

static int probes_of_file(struct files *f, const char *glob, const uint32_t *pids, size_t npids)
{
	const char *path = strchr(glob, ':') + 1, *colon = strchr(path, ':');
	char *kind = strndup(glob, (size_t)(path - glob - 1)),
	     *file = strndup(path, colon ? (size_t)(colon - path) : strlen(path));
	int fd = file ? event_file_open(file, pids, npids) : -ENOMEM, err = fd;

	if (fd >= 0) {
		err = kind ? put_probes(f, fd, kind, file, colon && colon[1] ? colon + 1 : "*")
			   : -ENOMEM;
		close(fd);
	}
	if (err)
		err = complain(EXIT_FAILED, "%s: %s", file ? file : path, strerror(-err));
	free(kind);
	free(file);
	return err;
}

static int probes_of_process(struct files *f, uint32_t pid)
{
	char maps[64], line[PATH_MAX + 128], place[64], path[PATH_MAX], before[PATH_MAX] = "";
	FILE *in;

	snprintf(maps, sizeof(maps), "/proc/%" PRIu32 "/maps", pid);
	in = fopen(maps, "re");
	if (!in)
		return complain(EXIT_FAILED, "%s: %s", maps, strerror(errno));
	while (fgets(line, sizeof(line), in)) {
		char file[128], clean[PATH_MAX];
		int fd;

		line[strcspn(line, "\n")] = 0;
		if (sscanf(line, "%40s %*s %*s %*s %*s %4095[^\n]", place, path) != 2 ||
		    *path != '/' || !strcmp(path, before))
			continue;
		snprintf(before, sizeof(before), "%s", path);
		snprintf(file, sizeof(file), "/proc/%" PRIu32 "/map_files/%s", pid, place);
		text_clean(clean, sizeof(clean), path, strlen(path), 0);
		fd = event_file_open(file, NULL, 0);
		if (fd < 0)
			continue;
		put_probes(f, fd, "usdt", clean, "*"); /* some are no ELF files */
		close(fd);
	}
	fclose(in);
	return 0;
}

static int put_all_probes(struct lines *l, const char *glob, const uint32_t *pids, size_t npids)
{
	struct files f = { .server = fork_server_start(0), .to = l };
	int err = 0;

	if (!f.server)
		return complain(EXIT_FAILED, "cannot start a process: %s", strerror(errno));
	allowance_init(&f.allowance);
	f.allowance.caller = getuid();
	elf_reader_init(&f.reader, f.server, elf_worker_main, &f.allowance);
	if (glob)
		err = probes_of_file(&f, glob, pids, npids);
	for (size_t i = 0; i < npids && !glob && !err; i++)
		err = probes_of_process(&f, pids[i]);
	worker_end(&f.reader.worker);
	fork_server_stop(f.server);
	return err;
}

/* ---- The tool ---- */

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int print(struct lines *l)
{
	if (l->err)
		return complain(EXIT_FAILED, "%s", strerror(-l->err));
	qsort(l->v, l->n, sizeof(*l->v), compare);
	for (size_t i = 0; i < l->n; i++)
		if (!i || strcmp(l->v[i], l->v[i - 1]))
			puts(l->v[i]);
	return l->n ? EXIT_OK
		    : complain(EXIT_FAILED, "there is no such event%s%s", l->glob ? ": " : "",
			       l->glob ? l->glob : "");
}

static int list_events(struct lines *l)
{
	int tracefs = tracefs_open();

	put_perf_events(l);
	if (tracefs < 0)
		complain(0, "tracepoints are not listed: tracefs: %s", strerror(-tracefs));
	else
		tracepoints_each(tracefs, put_tracepoint, l);
	if (tracefs >= 0)
		close(tracefs);
	return 0;
}

struct asked {
	uint32_t *pids;
	size_t npids;
};

static int take(void *ctx, int id, const char *arg)
{
	struct asked *a = ctx;
	int err = id == 'p' ? pids_parse(arg, &a->pids, &a->npids) : 0;

	return err == -ESRCH ? complain(EXIT_FAILED, "-p: no process is named so: '%s'", arg)
	       : err	     ? complain(EXIT_USAGE, "-p: '%s' is not a list of ids and names", arg)
			     : 0;
}

static int list_run(int argc, char **argv)
{
	struct lines l = { .n = 0 };
	struct asked a = { .npids = 0 };
	bool probes;
	int err = options_parse(&list_tool, argc, argv, take, &a);

	if (!err && optind < argc)
		l.glob = argv[optind++];
	if (!err && optind < argc)
		err = complain(EXIT_USAGE, "unexpected '%s'", argv[optind]);
	probes = !err && l.glob && event_is_probe(l.glob);
	if (probes || (!err && a.npids))
		err = put_all_probes(&l, probes ? l.glob : NULL, a.pids, a.npids);
	else if (!err)
		err = list_events(&l);
	if (!err)
		err = print(&l);
	for (size_t i = 0; i < l.n; i++)
		free(l.v[i]);
	free(l.v);
	free(a.pids);
	return err;
}
