/* SPDX-License-Identifier: BSD-2-Clause */
#include "jit/perf_map.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/num.h"
#include "base/process.h"
#include "base/user_account.h"
#include "base/vec.h"
#include "jit/map_ages.h"
#include "paths/path_opener.h"

#define COPY_MAX (16u << 20) /* bytes per read of a file that is copied */
#define TRIES	 50	     /* attempts to find the files of a running process */
/* How much older than the write the time of a file may be: two ticks of the slowest kernel */
#define GRAIN_NS (20 * NUM_MS)

struct process {
	uint32_t pid, ns_pid;  /* pid in our namespace, and in that of the process */
	uint32_t uid, account; /* account: the user it counts for */
	uint64_t started;      /* start time from /proc/PID/stat, to detect a reused PID */
	/* Its root directory, kept open because /proc/PID ends with the process */
	int root;
	uint64_t checked_ns;	     /* last check that the PID is still this process */
	uint64_t looked_ns;	     /* last check of its files */
	uint64_t silent_ns;	     /* time at which its file system did not answer; 0: none */
	bool root_later;	     /* root could not be opened yet */
	uint64_t used;		     /* last use, a counter */
	struct jit_file *map, *dump; /* NULL: not found yet */
	char *dump_path;	     /* NULL: not found yet */
	bool dump_found;
	unsigned int tries;
	uint64_t tried_ns;
};

struct perf_maps {
	struct path_opener *opener;
	struct jit_files *files;
	struct process *list;
	size_t n, cap;
	uint64_t uses;
	uint64_t start_ns; /* start of epoch 1 */
	size_t last;	   /* index of the last lookup */
};

static uint64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC_COARSE);
}

/* ---- Processes ---- */

static void forget(struct perf_maps *pm, struct process *p)
{
	jit_file_put(pm->files, p->map);
	jit_file_put(pm->files, p->dump);
	p->map = p->dump = NULL;
	free(p->dump_path);
	p->dump_path = NULL;
	if (p->root >= 0)
		close(p->root);
	p->root = -1;
}

struct perf_maps *perf_maps_new(void)
{
	struct perf_maps *pm = calloc(1, sizeof(*pm));

	if (pm)
		pm->files = jit_files_new();
	if (pm && !pm->files) {
		free(pm);
		pm = NULL;
	}
	return pm;
}

void perf_maps_free(struct perf_maps *pm)
{
	if (!pm)
		return;
	for (size_t i = 0; i < pm->n; i++)
		forget(pm, &pm->list[i]);
	jit_files_free(pm->files);
	free(pm->list);
	free(pm);
}

void perf_maps_set_opener(struct perf_maps *pm, struct path_opener *opener)
{
	pm->opener = opener;
}

/* Reads its effective user and its PID in the innermost namespace. */
static int read_status(struct process *p)
{
	char path[32], line[256], *last;
	unsigned int uid;
	bool has_uid = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%u/status", p->pid);
	f = fopen(path, "re");
	if (!f)
		return -ENOENT;
	p->ns_pid = p->pid;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "Uid: %*u %u", &uid) == 1) {
			p->uid = uid;
			p->account = user_account(uid);
			has_uid = true;
		} else if (!strncmp(line, "NSpid:", 6)) {
			last = strrchr(line, '\t');
			if (last)
				p->ns_pid = (uint32_t)strtoul(last, NULL, 10);
		}
	}
	fclose(f);
	return has_uid ? 0 : -ENOENT;
}

static struct process *lookup(struct perf_maps *pm, uint32_t pid)
{
	if (pm->last < pm->n && pm->list[pm->last].pid == pid)
		return &pm->list[pm->last];
	for (size_t i = 0; i < pm->n; i++) {
		if (pm->list[i].pid == pid) {
			pm->last = i;
			return &pm->list[i];
		}
	}
	return NULL;
}

static size_t of_user(const struct perf_maps *pm, uint32_t account)
{
	size_t n = 0;

	for (size_t i = 0; i < pm->n; i++)
		n += pm->list[i].account == account;
	return n;
}

/* Reuses the least recently used process of the user with the most, if there are too many. */
static struct process *make_room(struct perf_maps *pm)
{
	struct process *oldest = NULL;
	size_t most = 0;

	if (pm->n < PERF_MAP_MAX_PROCESSES) {
		if (vec_reserve(&pm->list, &pm->cap, pm->n + 1, sizeof(*pm->list)))
			return NULL;
		pm->last = pm->n;
		return &pm->list[pm->n++];
	}
	for (size_t i = 0; i < pm->n; i++) {
		size_t n = of_user(pm, pm->list[i].account);

		if (n > most || (n == most && pm->list[i].used < oldest->used)) {
			oldest = &pm->list[i];
			most = n;
		}
	}
	forget(pm, oldest);
	pm->last = (size_t)(oldest - pm->list);
	return oldest;
}

/* Calls path_open, but fails at once for a process that recently did not answer. */
static int ask(struct perf_maps *pm, struct process *p, struct path_ask *what,
	       struct path_answer *ret)
{
	uint64_t now = now_ns();
	int fd;

	if (p->silent_ns && now - p->silent_ns < PATH_SILENT_NS)
		return -ETIMEDOUT;
	p->silent_ns = 0;
	what->pid = p->pid;
	what->owner = p->uid;
	fd = path_open(pm->opener, what, p->root, ret);
	if (fd == -ETIMEDOUT || fd == -ECHILD)
		p->silent_ns = now;
	return fd;
}

static void take_root(struct perf_maps *pm, struct process *p)
{
	struct path_answer a;
	struct path_ask what;
	int root;

	path_ask_begin(&what, PATH_ROOT, 0, 0);
	what.live = true;
	root = ask(pm, p, &what, &a);
	p->root_later = root < 0 && root != -ENOENT;
	/* The root and the status must be of the same process. */
	if (root >= 0 && process_started(p->pid) == p->started)
		p->root = root;
	else if (root >= 0)
		close(root);
}

/* A process that cannot be read is kept too, so that it is not tried again and again. */
static struct process *meet(struct perf_maps *pm, uint32_t pid)
{
	struct process *p = make_room(pm);

	if (!p)
		return NULL;
	*p = (struct process){ .pid = pid, .root = -1 };
	p->started = process_started(pid);
	if (!read_status(p))
		take_root(pm, p);
	return p;
}

/* ---- Files ---- */

/*
 * Whether the file was last written before the process began: it is of an earlier process with the
 * same PID. The first process of a container has PID 1 each time. Both are times of day; if the
 * clock was set forward since, a file that was not written since then counts as older, and names
 * are missing. A file system that counts whole seconds may be a second behind.
 */
static bool is_left_over(const struct process *p, const struct path_answer *a)
{
	const int64_t tick = (int64_t)NUM_S / sysconf(_SC_CLK_TCK);
	int64_t written = (int64_t)clock_timespec_ns(a->written), now, began;

	if (!p->started)
		return false;
	now = (int64_t)clock_ns(CLOCK_REALTIME);
	began = now - (int64_t)clock_ns(CLOCK_BOOTTIME) + (int64_t)p->started * tick;
	return written + (int64_t)(a->written.tv_nsec ? GRAIN_NS : NUM_S) < began;
}

static bool is_own(const struct process *p, const struct path_answer *a)
{
	return a->uid == p->uid && !is_left_over(p, a);
}

/* Reads the new part of a file. Processes that share a file share what is read. */
static void read_file(struct perf_maps *pm, struct process *p, struct path_ask *what,
		      enum jit_kind kind, struct jit_file **slot)
{
	struct jit_file_wish wish = jit_file_wish(*slot);
	struct path_answer a;
	struct jit_file *f;
	uint64_t look_ns = clock_ns(CLOCK_MONOTONIC);
	int fd;

	if (*slot && !jit_file_due(*slot))
		return;
	what->part = true;
	what->ino = wish.ino;
	what->from = wish.from;
	what->most = wish.more ? COPY_MAX : 0;
	fd = ask(pm, p, what, &a);
	if (fd < 0)
		return;
	f = is_own(p, &a) ? jit_file_get(pm->files, kind, a.dev, a.ino, a.uid) : NULL;
	if (f) {
		if (*slot && *slot != f)
			jit_file_follow(f, *slot);
		jit_file_put(pm->files, *slot);
		*slot = f;
		jit_file_read(pm->files, f, fd, a.size, look_ns, pm->opener->allowance);
	}
	if (f && kind == JIT_MAP && !a.copied)
		jit_file_keep(f, fd);
	else
		close(fd);
}

static void read_map(struct perf_maps *pm, struct process *p)
{
	struct path_ask what;

	path_ask_begin(&what, PATH_FILE, 0, 0);
	path_ask_add(&what, "/tmp/perf-%u.map", p->ns_pid);
	read_file(pm, p, &what, JIT_MAP, &p->map);
}

/*
 * The dump may be created after the process was first seen. Its path cannot be found after the
 * process has ended.
 */
static void find_dump(struct perf_maps *pm, struct process *p, bool live)
{
	struct path_answer a;
	struct path_ask what;
	int fd;

	if (p->dump_found)
		return;
	path_ask_begin(&what, PATH_DUMP, 0, 0);
	what.ns_pid = p->ns_pid;
	what.part = true; /* but with no bytes of it */
	what.live = live;
	fd = ask(pm, p, &what, &a);
	if (fd >= 0 && is_own(p, &a)) {
		p->dump_path = strdup(a.path);
		p->dump_found = p->dump_path != NULL;
	}
	if (fd >= 0)
		close(fd);
}

static void read_dump(struct perf_maps *pm, struct process *p)
{
	struct path_ask what;

	find_dump(pm, p, false);
	if (!p->dump_found)
		return;
	path_ask_begin(&what, PATH_FILE, 0, 0);
	path_ask_add(&what, "%s", p->dump_path);
	read_file(pm, p, &what, JIT_DUMP, &p->dump);
}

/* ---- Lookups ---- */

static struct process *known(struct perf_maps *pm, uint32_t pid)
{
	struct process *p = lookup(pm, pid);
	uint64_t now = now_ns(), started;

	if (p && now - p->checked_ns >= JIT_AGAIN_NS) {
		started = process_started(pid);
		p->checked_ns = now;
		if (started && started != p->started) {
			/* The PID has been reused. */
			forget(pm, p);
			pm->list[pm->last] = pm->list[--pm->n];
			p = NULL;
		} else if (p->root_later) {
			take_root(pm, p);
		}
	}
	if (!p) {
		p = meet(pm, pid);
		if (p)
			p->checked_ns = now;
	}
	if (p)
		p->used = ++pm->uses;
	return p;
}

static uint32_t second(struct perf_maps *pm, uint64_t time_ns)
{
	uint64_t epoch;

	if (!pm->start_ns)
		pm->start_ns = time_ns;
	epoch = time_ns < pm->start_ns ? 1 : (time_ns - pm->start_ns) / JIT_EPOCH_NS + 1;
	return epoch < JIT_EPOCHS ? (uint32_t)epoch : JIT_EPOCHS - 1;
}

uint32_t perf_maps_see(struct perf_maps *pm, uint32_t pid, uint64_t from_ns, uint64_t to_ns)
{
	struct process *p = lookup(pm, pid);

	if (!p)
		p = known(pm, pid);
	if (!p || p->root < 0)
		return 0;
	if ((!p->dump_found || !p->map) && p->tries < TRIES &&
	    now_ns() - p->tried_ns >= JIT_AGAIN_NS) {
		p->tries++;
		p->tried_ns = now_ns();
		find_dump(pm, p, true);
		if (!p->map)
			read_map(pm, p);
	}
	if (p->dump_found)
		return second(pm, from_ns);
	return p->map ? jit_file_epoch(pm->files, p->map, from_ns, to_ns, pm->opener->allowance)
		      : MAP_AGES_NO_FILE;
}

const char *perf_maps_find(struct perf_maps *pm, uint32_t pid, uint64_t addr, uint32_t epoch)
{
	struct process *p = known(pm, pid);
	struct jit_span dumped = { 0 }, listed = { 0 };
	struct allowance *allowance;
	const char *name;

	if (!p || p->root < 0)
		return NULL;
	if (now_ns() - p->looked_ns >= JIT_AGAIN_NS || !p->looked_ns) {
		read_map(pm, p);
		read_dump(pm, p);
		p->looked_ns = now_ns();
	}
	if (p->dump_found && epoch && epoch != JIT_EPOCHS - 1) {
		dumped.from = pm->start_ns + (epoch - 1ull) * JIT_EPOCH_NS;
		dumped.to = dumped.from + JIT_EPOCH_NS;
	} else if (!p->dump_found && !jit_file_span(p->map, epoch, &listed)) {
		return NULL;
	}
	allowance = pm->opener ? pm->opener->allowance : NULL;
	name = jit_file_find(pm->files, p->dump, addr, dumped, allowance);
	return name ? name : jit_file_find(pm->files, p->map, addr, listed, allowance);
}

size_t perf_maps_bytes(const struct perf_maps *pm)
{
	return sizeof(*pm) + pm->cap * sizeof(*pm->list) + jit_files_bytes(pm->files);
}
