/* SPDX-License-Identifier: BSD-2-Clause */
#include "kern/cpu_events.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"

static bool chosen(const struct cpu_events *e, int cpu)
{
	return !e->cpus || num_cpus_has(e->cpus, (uint32_t)cpu);
}

/* 0 or -errno; -ENODEV, -ENXIO: the CPU is offline. */
static int open_one(struct cpu_events *e, int cpu)
{
	int fd = perf_event_open_cpu(e->kind, e->hz, e->period, cpu);

	e->of[cpu].fd = fd < 0 ? -1 : fd;
	return fd < 0 ? fd : 0;
}

static int attach_one(struct cpu_events *e, int cpu, const struct bpf_program *prog)
{
	LIBBPF_OPTS(bpf_perf_event_opts, opts, .bpf_cookie = e->cookie);
	struct cpu_event *event = &e->of[cpu];

	event->link = bpf_program__attach_perf_event_opts(prog, event->fd, &opts); /* enables it */
	if (event->link && e->paused)
		ioctl(event->fd, PERF_EVENT_IOC_DISABLE, 0);
	return event->link ? 0 : -errno;
}

static void close_one(struct cpu_event *event)
{
	if (event->link)
		bpf_link__destroy(event->link);
	else if (event->fd >= 0)
		close(event->fd);
	*event = (struct cpu_event){ .fd = -1 };
}

int cpu_events_open(struct cpu_events *e)
{
	int opened = 0, err;

	e->of = calloc((size_t)e->ncpus, sizeof(*e->of));
	if (!e->of)
		return -ENOMEM;
	for (int cpu = 0; cpu < e->ncpus; cpu++)
		e->of[cpu].fd = -1;
	for (int cpu = 0; cpu < e->ncpus; cpu++) {
		err = chosen(e, cpu) ? open_one(e, cpu) : -ENODEV;
		if (err && err != -ENODEV && err != -ENXIO)
			return err;
		opened += !err;
	}
	return opened ? 0 : -ENODEV;
}

int cpu_events_attach(struct cpu_events *e, const struct bpf_program *prog)
{
	int err = 0;

	for (int cpu = 0; cpu < e->ncpus && !err; cpu++)
		if (e->of[cpu].fd >= 0)
			err = attach_one(e, cpu, prog);
	return err;
}

/*
 * The argument of PERF_EVENT_IOC_PERIOD. For these clocks, the kernel converts the frequency to a
 * period when the event is opened (perf_swevent_init_hrtimer).
 */
static uint64_t new_period(const struct cpu_events *e)
{
	bool clock = e->kind->type == PERF_TYPE_SOFTWARE &&
		     (e->kind->config == PERF_COUNT_SW_CPU_CLOCK ||
		      e->kind->config == PERF_COUNT_SW_TASK_CLOCK);

	return clock ? NUM_S / e->hz : e->hz;
}

int cpu_events_set_hz(struct cpu_events *e, uint64_t hz)
{
	uint64_t period;
	int err = 0;

	e->hz = hz;
	period = new_period(e);
	for (int cpu = 0; e->of && cpu < e->ncpus; cpu++)
		if (e->of[cpu].fd >= 0 && ioctl(e->of[cpu].fd, PERF_EVENT_IOC_PERIOD, &period))
			err = -errno;
	return err;
}

int cpu_events_pause(struct cpu_events *e, bool pause)
{
	unsigned long request = pause ? PERF_EVENT_IOC_DISABLE : PERF_EVENT_IOC_ENABLE;
	int err = 0;

	e->paused = pause;
	for (int cpu = 0; e->of && cpu < e->ncpus; cpu++)
		if (e->of[cpu].fd >= 0 && ioctl(e->of[cpu].fd, request, 0))
			err = -errno;
	return err;
}

static bool online_cpus(struct num_cpus *ret)
{
	char text[4096];
	FILE *f = fopen("/sys/devices/system/cpu/online", "re");
	bool ok = f && fgets(text, sizeof(text), f) && !num_cpus(text, ret);

	if (f)
		fclose(f);
	return ok;
}

/* Whether the machine was suspended since the last call: CPUs went offline and came back. */
static bool has_slept(struct cpu_events *e)
{
	/* This order: the difference is never negative. */
	uint64_t awake = clock_ns(CLOCK_MONOTONIC), asleep = clock_ns(CLOCK_BOOTTIME) - awake;
	bool slept = e->asleep_ns && asleep > e->asleep_ns + NUM_S / 2;

	if (!e->asleep_ns || slept)
		e->asleep_ns = asleep | 1;
	return slept;
}

/*
 * The old event is closed only after the new one counts. The old one may still work, and there may
 * be no permission to open another.
 */
static void renew_one(struct cpu_events *e, int cpu, const struct bpf_program *prog)
{
	struct cpu_event old = e->of[cpu];

	e->of[cpu] = (struct cpu_event){ .fd = -1 };
	if (open_one(e, cpu) || attach_one(e, cpu, prog)) {
		close_one(&e->of[cpu]);
		e->of[cpu] = old;
	} else {
		close_one(&old);
	}
}

int cpu_events_follow(struct cpu_events *e, const struct bpf_program *prog)
{
	struct num_cpus online;
	bool known = online_cpus(&online), slept = has_slept(e);
	int n = 0;

	for (int cpu = 0; e->of && cpu < e->ncpus; cpu++) {
		bool up = !known || num_cpus_has(&online, (uint32_t)cpu);

		if (!up)
			close_one(&e->of[cpu]); /* stays dead even if the CPU comes back */
		else if (slept && e->of[cpu].link)
			renew_one(e, cpu, prog);
		else if (known && chosen(e, cpu) && e->of[cpu].fd < 0 && !open_one(e, cpu) &&
			 attach_one(e, cpu, prog))
			close_one(&e->of[cpu]);
		n += e->of[cpu].link != NULL;
	}
	return n;
}

void cpu_events_close(struct cpu_events *e)
{
	for (int cpu = 0; e->of && cpu < e->ncpus; cpu++)
		close_one(&e->of[cpu]);
	free(e->of);
	e->of = NULL;
}
