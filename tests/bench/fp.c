// SPDX-License-Identifier: BSD-2-Clause
/*
 * fp [-o] [-s] -C CPU -p PID [-F HZ] MILLISECONDS: loads fp.bpf.c, lets it run, prints its run
 * statistics as JSON.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fp.skel.h"
#include "kern/perf_event.h"

struct options {
	int cpu;
	unsigned int pid;
	unsigned long hz, ms;
	bool output;  /* with a record to the ring buffer */
	bool off_cpu; /* from sched_switch instead of a clock */
};

static int quiet(enum libbpf_print_level level, const char *fmt, va_list args)
{
	return level == LIBBPF_WARN ? vfprintf(stderr, fmt, args) : 0;
}

static int drop(void *ctx, void *data, size_t len)
{
	(void)ctx;
	(void)data;
	(void)len;
	return 0;
}

static bool parse(struct options *o, int argc, char **argv)
{
	int c;

	*o = (struct options){ .hz = 997 };
	while ((c = getopt(argc, argv, "osC:p:F:")) != -1) {
		switch (c) {
		case 'o':
			o->output = true;
			break;
		case 's':
			o->off_cpu = true;
			break;
		case 'C':
			o->cpu = atoi(optarg);
			break;
		case 'p':
			o->pid = (unsigned int)strtoul(optarg, NULL, 10);
			break;
		case 'F':
			o->hz = strtoul(optarg, NULL, 10);
			break;
		default:
			return false;
		}
	}
	if (optind + 1 != argc)
		return false;
	o->ms = strtoul(argv[optind], NULL, 10);
	return o->ms && o->pid;
}

static struct bpf_link *attach(struct fp_bpf *skel, const struct options *o)
{
	int fd;

	if (o->off_cpu)
		return bpf_program__attach(skel->progs.off_cpu);
	fd = perf_event_open_cpu(perf_event_named("cpu-clock"), o->hz, 0, o->cpu);
	if (fd < 0) {
		errno = -fd;
		return NULL;
	}
	return bpf_program__attach_perf_event(skel->progs.on_cpu, fd);
}

static void report(struct fp_bpf *skel, const struct options *o)
{
	struct bpf_program *prog = o->off_cpu ? skel->progs.off_cpu : skel->progs.on_cpu;
	struct bpf_prog_info info = { 0 };
	uint32_t len = sizeof(info);

	bpf_obj_get_info_by_fd(bpf_program__fd(prog), &info, &len);
	printf("{\"samples\": %llu, \"frames\": %llu, \"run_cnt\": %llu, \"run_ns\": %llu}\n",
	       (unsigned long long)skel->bss->stacks, (unsigned long long)skel->bss->frames,
	       (unsigned long long)info.run_cnt, (unsigned long long)info.run_time_ns);
}

static int run(struct fp_bpf *skel, const struct options *o)
{
	struct ring_buffer *ring = ring_buffer__new(bpf_map__fd(skel->maps.ring), drop, NULL, NULL);
	int stats = bpf_enable_stats(BPF_STATS_RUN_TIME);
	struct bpf_link *link = ring && stats >= 0 ? attach(skel, o) : NULL;

	if (!link) {
		fprintf(stderr, "fp: cannot attach: %s\n", strerror(errno));
		return 1;
	}
	for (unsigned long t = 0; t < o->ms; t += 50) {
		usleep((o->ms - t < 50 ? (useconds_t)(o->ms - t) : 50) * 1000);
		ring_buffer__consume(ring);
	}
	bpf_link__destroy(link);
	report(skel, o);
	ring_buffer__free(ring);
	close(stats);
	return 0;
}

int main(int argc, char **argv)
{
	struct fp_bpf *skel;
	struct options o;
	int rc = 1;

	if (!parse(&o, argc, argv)) {
		fputs("usage: fp [-o] [-s] -C CPU -p PID [-F HZ] MILLISECONDS\n", stderr);
		return 2;
	}
	libbpf_set_print(quiet);
	skel = fp_bpf__open();
	if (!skel)
		return 1;
	skel->rodata->cfg_pid = o.pid;
	skel->rodata->cfg_output = o.output;
	bpf_program__set_autoload(skel->progs.on_cpu, !o.off_cpu);
	bpf_program__set_autoload(skel->progs.off_cpu, o.off_cpu);
	if (!fp_bpf__load(skel))
		rc = run(skel, &o);
	fp_bpf__destroy(skel);
	return rc;
}
