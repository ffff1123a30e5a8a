/* SPDX-License-Identifier: BSD-2-Clause */
#include "sym/perf_map.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/num.h"
#include "base/vec.h"
#include "sym/jit_dump.h"
#include "sym/path_opener.h"

#define LOOK_AGAIN_NS (200 * NUM_MS)	/* how often a file is asked whether it has grown */
#define LINE_MAX_BYTES 4096
#define CHUNK (1u << 20)
#define DUMP_COPY_MAX (128u << 20)	/* bytes at a time */
#define DUMP_TRIES 50		/* times that a process is asked for a dump while it runs */

struct entry {
	uint64_t start, size;
	uint32_t name;		/* offset in names */
	uint32_t order;		/* line number */
};

struct process {
	uint32_t pid, ns_pid;	/* as we and as it itself knows it */
	uint32_t uid;
	uint64_t started;	/* of /proc/PID/stat: tells a reused PID */
	int root;		/* its root directory; held, because /proc/PID ends with the process */
	uint64_t checked_ns;	/* last time that it was compared with what runs under its PID */
	uint64_t looked_ns;	/* last time at the file */
	uint64_t silent_ns;	/* when its file system did not answer; 0: it has */
	bool root_later;	/* root is not known yet */
	uint64_t used;		/* last use, a counter */
	ino_t ino;
	uint64_t done;		/* bytes of the file that were read, up to a line's end */
	struct entry *entries;	/* by start, none overlapping */
	size_t n, cap;
	char *names;
	size_t names_len, names_cap;
	uint32_t lines;
	struct jit_dump *dump;
	char *dump_path;	/* NULL: it has none yet */
	bool dump_found;
	unsigned int dump_tries;
	uint64_t tried_ns;
};

struct perf_maps {
	struct path_opener *opener;
	struct process *list;
	size_t n, cap;
	uint64_t uses;
	uint64_t start_ns;	/* of epoch 1 */
	size_t last;		/* index that was asked for last */
};

static uint64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC_COARSE);
}

/* ---- Processes ---- */

static void forget_entries(struct process *p)
{
	free(p->entries);
	free(p->names);
	p->entries = NULL;
	p->names = NULL;
	p->n = p->cap = p->names_len = p->names_cap = 0;
	p->done = p->lines = 0;
}

static void forget(struct process *p)
{
	forget_entries(p);
	jit_dump_free(p->dump);
	free(p->dump_path);
	p->dump = NULL;
	p->dump_path = NULL;
	if (p->root >= 0)
		close(p->root);
	p->root = -1;
}

struct perf_maps *perf_maps_new(void)
{
	return calloc(1, sizeof(struct perf_maps));
}

void perf_maps_free(struct perf_maps *pm)
{
	if (!pm)
		return;
	for (size_t i = 0; i < pm->n; i++)
		forget(&pm->list[i]);
	free(pm->list);
	free(pm);
}

void perf_maps_set_opener(struct perf_maps *pm, struct path_opener *opener)
{
	pm->opener = opener;
}

/* Field 22 of /proc/PID/stat, behind a comm that may hold anything: 0 if the process is gone. */
static uint64_t start_time(uint32_t pid)
{
	char path[32], buf[1024], *at;
	unsigned long long started = 0;
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	n = fread(buf, 1, sizeof(buf) - 1, f);
	fclose(f);
	buf[n] = 0;
	at = strrchr(buf, ')');
	if (!at || sscanf(at + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", &started) != 1)
		return 0;
	return started;
}

/* Its effective user, and its PID in the innermost namespace. */
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

static struct process *make_room(struct perf_maps *pm)
{
	struct process *oldest;

	if (pm->n < PERF_MAP_MAX_PROCESSES) {
		if (vec_reserve(&pm->list, &pm->cap, pm->n + 1, sizeof(*pm->list)))
			return NULL;
		pm->last = pm->n;
		return &pm->list[pm->n++];
	}
	oldest = &pm->list[0];
	for (size_t i = 1; i < pm->n; i++)
		if (pm->list[i].used < oldest->used)
			oldest = &pm->list[i];
	forget(oldest);
	pm->last = (size_t)(oldest - pm->list);
	return oldest;
}

/* As path_open, but for a process that did not answer lately. */
static int ask(struct perf_maps *pm, struct process *p, struct path_ask *what, struct path_answer *ret)
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
	/* What was read must have been one process. */
	if (root >= 0 && start_time(p->pid) == p->started)
		p->root = root;
	else if (root >= 0)
		close(root);
}

/* A process that cannot be looked at is kept too, so that it is not asked for again and again. */
static struct process *meet(struct perf_maps *pm, uint32_t pid)
{
	struct process *p = make_room(pm);

	if (!p)
		return NULL;
	*p = (struct process){ .pid = pid, .root = -1 };
	p->started = start_time(pid);
	if (!read_status(p))
		take_root(pm, p);
	return p;
}

/* ---- Files ---- */

static bool next_hex(struct bytes *line, uint64_t *ret)
{
	unsigned int digits = 0;
	uint64_t v = 0;

	for (;; digits++) {
		uint8_t c = bytes_u8(line), low = c | 32;

		if (c >= '0' && c <= '9')
			v = v << 4 | (uint64_t)(c - '0');
		else if (low >= 'a' && low <= 'f')
			v = v << 4 | (uint64_t)(low - 'a' + 10);
		else if (low == 'x' && digits == 1 && !v)
			digits = UINT32_MAX;	/* "0x": some writers have it */
		else
			break;
	}
	*ret = v;
	return digits && digits <= 16;
}

static int add_line(struct process *p, struct bytes line)
{
	struct entry e = { .order = p->lines++ };
	struct bytes at = line;
	const uint8_t *name;
	size_t len;

	if (!next_hex(&at, &e.start) || !next_hex(&at, &e.size) || !e.size || e.size > UINT64_MAX - e.start)
		return 0;
	len = bytes_left(&at);
	if (len > LINE_MAX_BYTES)
		len = LINE_MAX_BYTES;
	name = bytes_take(&at, len);
	if (!len || !name)
		return 0;
	if (p->names_len + len + 1 > UINT32_MAX || vec_reserve(&p->names, &p->names_cap, p->names_len + len + 1, 1) ||
	    vec_reserve(&p->entries, &p->cap, p->n + 1, sizeof(*p->entries)))
		return -ENOMEM;
	e.name = (uint32_t)p->names_len;
	memcpy(p->names + e.name, name, len);
	p->names[e.name + len] = 0;
	p->names_len += len + 1;
	p->entries[p->n++] = e;
	return 0;
}

/* Whole lines of text. Returns the bytes they take. */
static size_t add_lines(struct process *p, struct bytes text)
{
	struct bytes end = text;

	while (bytes_find(&end, "\n", 1)) {
		if (add_line(p, bytes_sub(&text, text.pos, end.pos - text.pos)))
			break;
		bytes_skip(&end, 1);
		bytes_seek(&text, end.pos);
	}
	return text.pos;
}

static void read_rest(struct process *p, int fd, uint64_t size)
{
	uint8_t *buf = malloc(CHUNK);

	while (buf && p->done < size) {
		ssize_t n = pread(fd, buf, CHUNK, (off_t)p->done);
		size_t used = n > 0 ? add_lines(p, bytes_of(buf, (size_t)n, false)) : 0;

		if (!used)
			break;		/* half a line is left, or a line longer than any name */
		p->done += used;
	}
	free(buf);
}

static int by_start(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->order < y->order ? 1 : -1;
}

/* Code is made, thrown away, and made again in its place: where entries overlap, the newest stays and the older ones are gone. */
static void drop_overwritten(struct process *p)
{
	size_t out = 0;

	if (p->n)
		qsort(p->entries, p->n, sizeof(*p->entries), by_start);
	for (size_t i = 0; i < p->n; i++) {
		const struct entry e = p->entries[i];

		while (out && p->entries[out - 1].order < e.order && p->entries[out - 1].start + p->entries[out - 1].size > e.start)
			out--;
		if (!out || p->entries[out - 1].start + p->entries[out - 1].size <= e.start)
			p->entries[out++] = e;
	}
	p->n = out;
}

static void read_map(struct perf_maps *pm, struct process *p)
{
	struct path_answer a;
	struct path_ask what;
	int fd;

	path_ask_begin(&what, PATH_FILE, 0, 0);
	path_ask_add(&what, "/tmp/perf-%u.map", p->ns_pid);
	what.part = true;
	what.from = p->done;
	what.ino = p->ino;
	what.most = PERF_MAP_MAX_FILE;
	fd = ask(pm, p, &what, &a);
	if (fd < 0)
		return;
	if (a.uid == p->uid) {
		if (a.ino != p->ino || a.size < p->done)
			forget_entries(p);
		p->ino = a.ino;
		if (a.size > PERF_MAP_MAX_FILE)
			a.size = PERF_MAP_MAX_FILE;
		if (a.size > p->done) {
			read_rest(p, fd, a.size);
			drop_overwritten(p);
		}
	}
	close(fd);
}

/* The dump may be made after the process was first seen, but its path cannot be had after the process's end. */
static void find_dump(struct perf_maps *pm, struct process *p, bool live)
{
	struct path_answer a;
	struct path_ask what;
	int fd;

	if (p->dump_found)
		return;
	path_ask_begin(&what, PATH_DUMP, 0, 0);
	what.ns_pid = p->ns_pid;
	what.part = true;	/* and nothing of it */
	what.live = live;
	fd = ask(pm, p, &what, &a);
	if (fd >= 0 && a.uid == p->uid) {
		p->dump_path = strdup(a.path);
		p->dump_found = p->dump_path != NULL;
	}
	if (fd >= 0)
		close(fd);
}

static void read_dump(struct perf_maps *pm, struct process *p)
{
	struct path_answer a;
	struct path_ask what;
	int fd;

	find_dump(pm, p, false);
	if (!p->dump_found)
		return;
	if (!p->dump)
		p->dump = jit_dump_new();
	if (!p->dump)
		return;
	path_ask_begin(&what, PATH_FILE, 0, 0);
	path_ask_add(&what, "%s", p->dump_path);
	what.part = true;
	jit_dump_place(p->dump, &what.ino, &what.from);
	what.most = DUMP_COPY_MAX;
	fd = ask(pm, p, &what, &a);
	if (fd < 0)
		return;
	if (a.uid == p->uid)
		jit_dump_read(p->dump, fd, &(struct stat){ .st_ino = a.ino, .st_dev = a.dev, .st_size = (off_t)a.size });
	close(fd);
}

/* ---- The front ---- */

static struct process *known(struct perf_maps *pm, uint32_t pid)
{
	struct process *p = lookup(pm, pid);
	uint64_t now = now_ns(), started;

	if (p && now - p->checked_ns >= LOOK_AGAIN_NS) {
		started = start_time(pid);
		p->checked_ns = now;
		if (started && started != p->started) {
			/* Another process by now. */
			forget(p);
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

uint32_t perf_maps_see(struct perf_maps *pm, uint32_t pid, uint64_t time_ns)
{
	struct process *p = lookup(pm, pid);
	uint64_t epoch;

	if (!p) {
		p = known(pm, pid);
		if (!p || p->root < 0)
			return 0;
	}
	if (!p->dump_found && p->root >= 0 && p->dump_tries < DUMP_TRIES && time_ns - p->tried_ns >= LOOK_AGAIN_NS) {
		p->dump_tries++;
		p->tried_ns = time_ns;
		find_dump(pm, p, true);
	}
	if (!p->dump_found)
		return 0;
	if (!pm->start_ns)
		pm->start_ns = time_ns;
	epoch = time_ns < pm->start_ns ? 1 : (time_ns - pm->start_ns) / JIT_EPOCH_NS + 1;
	return epoch < JIT_EPOCHS ? (uint32_t)epoch : JIT_EPOCHS - 1;
}

static const char *find_in_dump(const struct perf_maps *pm, const struct process *p, uint64_t addr, uint32_t epoch)
{
	uint64_t from = pm->start_ns + (epoch - 1ull) * JIT_EPOCH_NS;

	if (!p->dump)
		return NULL;
	if (!epoch || epoch == JIT_EPOCHS - 1)
		return jit_dump_find(p->dump, addr, 0, 0);
	return jit_dump_find(p->dump, addr, from, from + JIT_EPOCH_NS);
}

const char *perf_maps_find(struct perf_maps *pm, uint32_t pid, uint64_t addr, uint32_t epoch)
{
	struct process *p = known(pm, pid);
	size_t lo = 0, hi;	/* entries before lo start at or below addr, those from hi on above it */
	const char *name;

	if (!p || p->root < 0)
		return NULL;
	if (now_ns() - p->looked_ns >= LOOK_AGAIN_NS || !p->looked_ns) {
		read_map(pm, p);
		read_dump(pm, p);
		p->looked_ns = now_ns();
	}
	name = find_in_dump(pm, p, addr, epoch);
	if (name)
		return name;
	for (hi = p->n; lo < hi;) {
		size_t mid = lo + (hi - lo) / 2;

		if (p->entries[mid].start <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo || addr - p->entries[lo - 1].start >= p->entries[lo - 1].size)
		return NULL;
	return p->names + p->entries[lo - 1].name;
}

size_t perf_maps_bytes(const struct perf_maps *pm)
{
	size_t sum = sizeof(*pm) + pm->cap * sizeof(*pm->list);

	for (size_t i = 0; i < pm->n; i++)
		sum += pm->list[i].cap * sizeof(struct entry) + pm->list[i].names_cap +
		       (pm->list[i].dump ? jit_dump_bytes(pm->list[i].dump) : 0);
	return sum;
}
