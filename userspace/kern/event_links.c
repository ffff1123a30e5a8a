/* SPDX-License-Identifier: BSD-2-Clause */
#include "kern/event_links.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define UPROBE_PMU "/sys/bus/event_source/devices/uprobe/"

static int read_number(const char *path, const char *format, unsigned int *ret)
{
	FILE *f = fopen(path, "re");
	int n = f ? fscanf(f, format, ret) : 0;

	if (f)
		fclose(f);
	return n == 1 ? 0 : -EOPNOTSUPP;
}

/* Where the bits of a probe are in perf_event_attr.config; from Linux 4.17 and 4.20 */
static int probe_attr(const struct event *e, const struct event_place *p, char *path,
		      struct perf_event_attr *attr)
{
	unsigned int bit;
	int err = read_number(UPROBE_PMU "type", "%u", &attr->type);

	if (!err && p->at_return) {
		err = read_number(UPROBE_PMU "format/retprobe", "config:%u", &bit);
		attr->config |= err ? 0 : 1ull << (bit & 63);
	}
	if (!err && p->semaphore) {
		err = read_number(UPROBE_PMU "format/ref_ctr_offset", "config:%u-", &bit);
		attr->config |= err ? 0 : p->semaphore << (bit & 63);
	}
	/* The kernel opens the path again: this one leads to the file that was read. */
	snprintf(path, 32, "/proc/self/fd/%d", e->fd);
	attr->uprobe_path = (uintptr_t)path;
	attr->probe_offset = p->offset;
	return err;
}

static int first_cpu(void)
{
	unsigned int cpu = 0;

	return read_number("/sys/devices/system/cpu/online", "%u", &cpu) ? 0 : (int)cpu;
}

static int open_one(struct event_link *l, uint32_t pid, int cpu)
{
	struct perf_event_attr attr = { .size = sizeof(attr),
					.type = PERF_TYPE_TRACEPOINT,
					.config = l->place->config,
					.sample_period = 1 };
	bool probe = l->event->from == EVENT_PROBE, alone = probe && pid;
	char path[32];
	int err = probe ? probe_attr(l->event, l->place, path, &attr) : 0;

	if (err)
		return err;
	l->fd = (int)syscall(SYS_perf_event_open, &attr, alone ? (int)pid : -1, alone ? -1 : cpu,
			     -1, PERF_FLAG_FD_CLOEXEC);
	return l->fd < 0 ? -errno : 0;
}

int event_links_open(struct event_links *l, const struct events *e, uint32_t pid,
		     const struct event **ret_failed)
{
	int cpu = first_cpu(), err = 0;
	size_t n = 0;

	for (size_t i = 0; i < e->n; i++)
		n += e->v[i].nplaces;
	l->v = calloc(n + 1, sizeof(*l->v));
	if (!l->v)
		return -ENOMEM;
	for (size_t i = 0; i < e->n; i++)
		for (size_t k = 0; k < e->v[i].nplaces && !err; k++) {
			l->v[l->n] = (struct event_link){ .event = &e->v[i],
							  .place = &e->v[i].places[k],
							  .fd = -1 };
			err = open_one(&l->v[l->n++], pid, cpu);
			*ret_failed = &e->v[i];
		}
	return err;
}

int event_links_attach(struct event_links *l, const struct bpf_program *const *programs,
		       size_t first)
{
	for (size_t i = 0; i < l->n; i++) {
		LIBBPF_OPTS(bpf_perf_event_opts, opts, .bpf_cookie = first + i);
		struct event_link *v = &l->v[i];

		v->link = bpf_program__attach_perf_event_opts(programs[v->event->from], v->fd,
							      &opts);
		if (!v->link)
			return -errno;
	}
	return 0;
}

void event_links_close(struct event_links *l)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->v[i].link)
			bpf_link__destroy(l->v[i].link);
		else if (l->v[i].fd >= 0)
			close(l->v[i].fd);
	free(l->v);
	*l = (struct event_links){ .n = 0 };
}
