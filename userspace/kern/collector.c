/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/complain.h"
#include "kern/collector.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include <linux/perf_event.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/user_account.h"
#include "kern/collector_internal.h"
#include "kern/libbpf_log.h"
#include "nocast.skel.h"

#define VERIFIER_STATS 4 /* log level: statistics only */

#define KERNEL_BTF "/sys/kernel/btf/vmlinux"

#define SAME_GLOBALS(other)                                                                      \
	_Static_assert(sizeof(struct sfbpf_bpf__rodata_knobs) ==                                 \
				       sizeof(struct other##_bpf__rodata_knobs) &&               \
			       sizeof(struct sfbpf_bpf__bss) == sizeof(struct other##_bpf__bss), \
		       "all objects have the same globals")
SAME_GLOBALS(nocast);

/* The skeleton on one of two objects, which have the same maps, programs and globals. */
struct sfbpf_bpf *collector_open_object(bool rdonly_cast)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts);
	struct sfbpf_bpf *skel = calloc(1, sizeof(*skel));
	int err = skel ? sfbpf_bpf__create_skeleton(skel) : -ENOMEM;

	if (!err && !rdonly_cast)
		skel->skeleton->data = (void *)nocast_bpf__elf_bytes(&skel->skeleton->data_sz);
	if (!err)
		err = bpf_object__open_skeleton(skel->skeleton, &opts);
	if (!err)
		return skel;
	if (skel)
		sfbpf_bpf__destroy(skel);
	errno = -err;
	return NULL;
}

/* Ranges beyond those that BPF has room for are not folded there. */
static void set_users(struct sfbpf_bpf__rodata_knobs *ro)
{
	const size_t most = sizeof(ro->cfg_range_first) / sizeof(ro->cfg_range_first[0]);
	const struct user_range *ranges;
	size_t n = user_ranges(&ranges);

	ro->cfg_hash_key = hash_u64(1) | 1;
	ro->cfg_nranges = (uint32_t)(n < most ? n : most);
	for (size_t i = 0; i < ro->cfg_nranges; i++) {
		((uint32_t *)ro->cfg_range_first)[i] = ranges[i].first;
		((uint32_t *)ro->cfg_range_count)[i] = ranges[i].count;
	}
}

static void set_knobs(const struct collector *c, struct sfbpf_bpf *skel)
{
	const struct collector_opts *o = &c->opts;
	struct sfbpf_bpf__rodata_knobs *ro = skel->rodata_knobs;

	ro->cfg_user = o->user;
	ro->cfg_kernel = o->kernel;
	ro->cfg_native = o->native;
	ro->cfg_lines = o->lines;
	ro->cfg_by_pid = o->npids || o->follow_forks;
	ro->cfg_only_pid = o->npids == 1 && !o->follow_forks ? o->pids[0] : 0;
	ro->cfg_by_tid = o->ntids != 0;
	ro->cfg_only_tid = o->ntids == 1 ? o->tids[0] : 0;
	ro->cfg_by_excluded = o->excludes;
	ro->cfg_filter = o->filter;
	ro->cfg_event_period = o->period ? o->period : 1;
	ro->cfg_many_events = o->events->n > 1;
	ro->cfg_latency_us = o->latency && o->hz ? NUM_S / NUM_US / o->hz : 0;
	ro->cfg_calls = o->calls != NULL;
	ro->cfg_call_g = o->calls && events_of_goroutines(o->calls);
	ro->cfg_call_words = o->calls && collector_keeps_words(o->calls);
	ro->cfg_by_cpu = o->cpus != NULL;
	if (o->cpus)
		memcpy((void *)ro->cfg_cpu_mask, o->cpus->bits, sizeof(ro->cfg_cpu_mask));
	ro->cfg_ncpus = (uint32_t)c->ncpus;
	ro->cfg_page_shift = (uint32_t)__builtin_ctzl((unsigned long)sysconf(_SC_PAGESIZE));
	ro->cfg_want_cgroup = o->want_cgroup;
	ro->cfg_want_cost = o->want_cost;
	ro->cfg_want_link = o->want_link;
	ro->cfg_wake_bytes = o->ring_bytes / 4;
	set_users(ro);
}

/* Not with -vv, which needs libbpf's own buffers to show a verifier's refusal in full. */
void collector_log_verifier(struct bpf_object *obj, char (**said)[VERIFIER_LOG])
{
	struct bpf_program *prog;
	size_t n = 0;

	bpf_object__for_each_program(prog, obj) n++;
	if (!*said)
		*said = calloc(n, sizeof(**said));
	n = 0;
	if (*said)
		bpf_object__for_each_program(prog, obj)
		{
			bpf_program__set_log_level(prog, VERIFIER_STATS);
			bpf_program__set_log_buf(prog, (*said)[n++], VERIFIER_LOG);
		}
}

void collector_read_verifier(struct refusal *r, struct bpf_object *obj, char (*said)[VERIFIER_LOG])
{
	struct bpf_program *prog;
	size_t n = 0;

	if (said && r->program[0])
		bpf_object__for_each_program(prog, obj)
		{
			if (!strcmp(bpf_program__name(prog), r->program))
				refusal_take_log(r, said[n]);
			n++;
		}
}

static int open_and_load(struct collector *c, bool rdonly_cast)
{
	struct sfbpf_bpf *skel;
	uint32_t cpus = (uint32_t)c->ncpus;
	/* Slots of on_cpu, on_exec and event_slot() (bpf/); on_exec caches no rows. */
	bool hits = collector_hit_programs(c);
	uint32_t slots = hits ? (2 + SF_EVENT_SLOTS) * cpus : 2 * cpus;
	int err;

	c->rdonly_cast = rdonly_cast;
	c->refused = (struct refusal){ 0 };
	skel = collector_open_object(rdonly_cast);
	if (!skel)
		return -errno;
	c->skel = skel;
	if (c->opts.count_run_time && c->opts.verbose <= 1)
		collector_log_verifier(skel->obj, &c->verifier_said);
	set_knobs(c, skel);
	bpf_map__set_max_entries(skel->maps.scratch, slots);
	bpf_map__set_max_entries(skel->maps.cache, hits ? slots : cpus);
	bpf_map__set_max_entries(skel->maps.cpu_stats, cpus);
	bpf_map__set_max_entries(skel->maps.ring, (uint32_t)c->opts.ring_bytes);
	bpf_program__set_autoload(skel->progs.on_fork, c->opts.follow_forks);
	bpf_program__set_autoload(skel->progs.on_free, c->opts.follow_forks);
	collector_choose_programs(c, skel);
	libbpf_log_into(&c->refused);
	err = sfbpf_bpf__load(skel);
	libbpf_log_into(NULL);
	if (err) {
		collector_read_verifier(&c->refused, skel->obj, c->verifier_said);
		sfbpf_bpf__destroy(skel);
		c->skel = NULL;
	}
	return err;
}

static uint64_t ring_size(uint64_t want)
{
	uint64_t size = (uint64_t)sysconf(_SC_PAGESIZE);

	while (size < want && size < (1ull << 30))
		size *= 2;
	return size;
}

static int explain_load(const struct collector *c, int rc, struct collector_error *err)
{
	char why[REFUSAL_LINE + sizeof(c->refused.program)];

	if (rc == -EPERM)
		return collector_forbid(err, "loading BPF programs");
	if (rc == -ENOMEM)
		return collector_fail(err, COLLECTOR_FAILED, "not enough memory for the BPF maps");
	err->refusal = c->refused;
	refusal_text(&c->refused, why, sizeof(why));
	return collector_fail(
		err, COLLECTOR_UNSUPPORTED,
		"this kernel refuses %s%s (%s); 'sfbpf doctor' prints what to report, "
		"docs/doctor.md (\"Programs that the kernel refuses\") says what to do",
		c->refused.program[0] ? "the BPF program " : "the BPF programs: ", why,
		strerror(-rc));
}

bool collector_refused(const struct collector *c, const struct refusal *r, int err,
		       const char *what)
{
	char why[REFUSAL_LINE + sizeof(r->program)];

	if (!err || err == -EPERM || err == -ENOMEM)
		return false;
	refusal_text(r, why, sizeof(why));
	if (c->opts.verbose)
		complain(0,
			 "the kernel refuses the BPF programs that %s (%s: %s); trying those that "
			 "do not",
			 what, why, strerror(-err));
	return true;
}

static int load(struct collector *c, struct collector_error *err)
{
	int rc;

	if (access(KERNEL_BTF, R_OK))
		return collector_fail(err, COLLECTOR_UNSUPPORTED,
				      "cannot use this kernel's BTF (" KERNEL_BTF ": %s): "
				      "sfbpf needs a kernel built with CONFIG_DEBUG_INFO_BTF=y",
				      strerror(errno));
	libbpf_log_show(c->opts.verbose > 1);
	rc = open_and_load(c, true);
	if (collector_refused(c, &c->refused, rc, "use bpf_rdonly_cast"))
		rc = open_and_load(c, false);
	return rc ? explain_load(c, rc, err) : 0;
}

int collector_map_stats(struct collector *c, const struct bpf_map *map, struct sf_cpu_stats **ret)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *mem;

	c->cpu_stats_len = ((size_t)c->ncpus * sizeof(struct sf_cpu_stats) + page - 1) / page *
			   page;
	mem = mmap(NULL, c->cpu_stats_len, PROT_READ, MAP_SHARED, bpf_map__fd(map), 0);
	if (mem == MAP_FAILED)
		return -errno;
	*ret = mem;
	return 0;
}

/*
 * A user stack that ended in a file's code without a row, or that a row led nowhere: the file may
 * need a second pass.
 */
static void want_code(struct collector *c, const struct sf_sample *s)
{
	const uint32_t from_end = s->stop == SF_STOP_NO_MODULE ? 2 : 1;
	uint64_t last = s->n_user < from_end ? 0 : s->frames[s->n_user - from_end];

	if ((s->stop == SF_STOP_NO_ROW && SF_FRAME_KIND(last) == SF_FRAME_NOROW) ||
	    (s->stop == SF_STOP_NO_MODULE && SF_FRAME_KIND(last) == SF_FRAME_ROW))
		loader_want_code(c->loader, SF_FRAME_MODULE(last),
				 SF_FRAME_OFFSET(last) - !!(last & SF_FRAME_RA));
}

/* false: the record is shorter than its counts require. */
static bool take_sample(struct collector *c, const struct sf_sample *s, size_t len)
{
	size_t words = sample_words(s);

	if (len < sizeof(*s) + 8 * words || s->stop >= SF_STOP_MAX || s->lang_stop >= SF_STOP_MAX)
		return false;
	if (s->type != SF_REC_SAMPLE && !c->offcpu)
		return true; /* left in the ring when off-CPU stopped */
	if (SF_SAMPLE_LANG(s->flags) && c->opts.codes)
		s = collector_number(c, s, words);
	s = collector_kernel_words(c, s, words);
	for (size_t i = 0; i < s->n_user; i++)
		modules_mark(c->modules, s->frames[i]);
	want_code(c, s);
	if (s->type == SF_REC_STACK)
		offcpu_keep(c->offcpu, s);
	else if (c->fn)
		c->fn(c->fn_ctx, s);
	return true;
}

static int on_record(void *ctx, void *data, size_t len)
{
	struct collector *c = ctx;
	const struct sf_sample *s = data;
	bool good = false;

	if (len >= sizeof(struct sf_need) && s->type == SF_REC_NEED) {
		loader_push(c->loader, data);
		good = true;
	} else if (len >= sizeof(struct sf_copy_need) && s->type == SF_REC_COPY) {
		loader_compare(c->loader, data);
		good = true;
	} else if (len >= sizeof(*s) && (s->type == SF_REC_SAMPLE || s->type == SF_REC_STACK ||
					 s->type == SF_REC_BLOCK)) {
		good = take_sample(c, s, len);
	} else if (len >= sizeof(struct sf_off_single) && s->type == SF_REC_SINGLE) {
		if (c->offcpu)
			offcpu_keep_single(c->offcpu, data);
		good = true;
	} else if (len >= sizeof(struct sf_call) && s->type == SF_REC_CALL) {
		if (c->opts.calls)
			c->opts.call(c->opts.call_ctx, data);
		good = true;
	} else if (len >= sizeof(struct sf_code) - SF_CODE_LINES && s->type == SF_REC_CODE) {
		good = !c->opts.codes || lang_codes_add(c->opts.codes, data, len);
	}
	c->bad_records += !good;
	return 0;
}

static bool fill_set(int fd, const uint32_t *ids, size_t n)
{
	uint8_t one = 1;

	for (size_t i = 0; i < n; i++)
		if (bpf_map_update_elem(fd, &ids[i], &one, BPF_ANY))
			return false;
	return true;
}

bool collector_add_pid(struct collector *c, uint32_t pid)
{
	return fill_set(bpf_map__fd(c->skel->maps.pids), &pid, 1);
}

void collector_exclude_none(struct collector *c)
{
	int fd = bpf_map__fd(c->skel->maps.excluded);
	uint64_t id;

	while (!bpf_map_get_next_key(fd, NULL, &id) && !bpf_map_delete_elem(fd, &id))
		;
}

void collector_exclude(void *collector, uint64_t cgroup_id)
{
	const struct collector *c = collector;
	int fd = bpf_map__fd(c->skel->maps.excluded);
	uint8_t one = 1;

	if (!bpf_map_update_elem(fd, &cgroup_id, &one, BPF_ANY) || errno != E2BIG)
		return;
	collector_exclude_none(collector);
	bpf_map_update_elem(fd, &cgroup_id, &one, BPF_ANY);
}

/* The vDSO has no inode, so its key and its id are assigned here. No program takes ids yet. */
static void add_vdso(struct collector *c)
{
	struct sf_file_key key = { .ino = SF_KEY_VDSO };
	uint32_t id = c->skel->data_tables->free_ids[c->skel->data_tables->free_head++];

	loader_load_vdso(c->loader, id, &key);
	bpf_map_update_elem(bpf_map__fd(c->skel->maps.files), &key, &id, BPF_ANY);
}

static void on_lost(void *ctx, uint32_t module, enum file_event event)
{
	modules_lost(ctx, module, event);
}

static struct tables *make_tables(struct collector *c)
{
	struct sfbpf_bpf__data_tables *state = c->skel->data_tables;
	struct tables_maps maps = {
		.chunks_fd = bpf_map__fd(c->skel->maps.chunks),
		.modules_fd = bpf_map__fd(c->skel->maps.modules),
		.files_fd = bpf_map__fd(c->skel->maps.files),
		.cache = { bpf_map__fd(c->skel->maps.cache),
			   bpf_map__max_entries(c->skel->maps.cache) },
		.free_ids = state->free_ids,
		.free_head = &state->free_head,
		.free_tail = &state->free_tail,
		.epoch = &state->tables_epoch,
	};

	return tables_new(&maps, c->opts.table_bytes, on_lost, c->modules);
}

static int set_up(struct collector *c, struct collector_error *err)
{
	const struct collector_opts *o = &c->opts;

	c->tables = make_tables(c);
	c->loader = c->tables ? loader_new(c->modules, c->tables, bpf_map__fd(c->skel->maps.copies),
					   o->servers)
			      : NULL;
	c->ring = ring_buffer__new(bpf_map__fd(c->skel->maps.ring), on_record, c, NULL);
	c->names = kernel_names_new(collector_ask_kernel, c, "/proc/modules");
	if (!c->loader || !c->ring || !c->names ||
	    collector_map_stats(c, c->skel->maps.cpu_stats, &c->cpu_stats))
		return collector_fail(err, COLLECTOR_FAILED, "cannot map the BPF maps: %s",
				      strerror(errno));
	if (!fill_set(bpf_map__fd(c->skel->maps.pids), o->pids, o->npids) ||
	    !fill_set(bpf_map__fd(c->skel->maps.tids), o->tids, o->ntids))
		return collector_fail(err, COLLECTOR_FAILED,
				      "too many process or thread ids to filter by");
	loader_prove_files(c->loader, collector_opened_file, c);
	add_vdso(c);
	/* Names are those of their first sight where the kernel does not report changes. */
	kernel_names_follow(c->names, c->ncpus);
	return 0;
}

static bool any_cpu(const struct num_cpus *cpus, int ncpus)
{
	for (uint32_t i = 0; cpus && i < (uint32_t)ncpus; i++)
		if (num_cpus_has(cpus, i))
			return true;
	return !cpus;
}

struct collector *collector_new(const struct collector_opts *opts, struct modules *modules,
				struct collector_error *err)
{
	struct rlimit files = { 0 };
	struct collector *c = calloc(1, sizeof(*c));

	*err = (struct collector_error){ 0 };
	if (!c) {
		collector_fail(err, COLLECTOR_FAILED, "out of memory");
		return NULL;
	}
	c->opts = *opts;
	c->opts.ring_bytes = ring_size(opts->ring_bytes);
	if (opts->offcpu) {
		c->offcpu_opts = *opts->offcpu;
		c->opts.offcpu = &c->offcpu_opts;
	}
	c->modules = modules;
	c->stats_fd = -1;
	c->ncpus = libbpf_num_possible_cpus();
	/* One descriptor per mapped file stays open, for its symbols. */
	if (!getrlimit(RLIMIT_NOFILE, &files)) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	if (c->ncpus < 1) {
		collector_fail(err, COLLECTOR_FAILED, "cannot read the number of possible CPUs");
	} else if (!any_cpu(opts->cpus, c->ncpus)) {
		collector_fail(err, COLLECTOR_FAILED, "none of the chosen CPUs is online");
	} else if (!load(c, err) && !set_up(c, err) && !collector_open_events(c, err)) {
		/* Needs CAP_SYS_ADMIN, which is dropped later. */
		if (opts->count_run_time || opts->want_cost)
			c->stats_fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
		return c;
	}
	collector_free(c);
	return NULL;
}

int collector_thread_link(struct collector *c, uint32_t pid, const struct sf_thread_link *link)
{
	int fd = bpf_map__fd(c->skel->maps.thread_links);

	return link ? bpf_map_update_elem(fd, &pid, link, BPF_ANY) : bpf_map_delete_elem(fd, &pid);
}

/* Evictions cannot wait for its iterators, which sleep, so tables are held meanwhile. */
static int attach_offcpu(struct collector *c)
{
	int rc;

	tables_hold(c->tables);
	rc = offcpu_attach(c->offcpu);
	tables_release(c->tables);
	return rc;
}

int collector_attach(struct collector *c, struct collector_error *err)
{
	int rc = collector_walks_load(c);

	/* A call that begins before all programs are attached would miss what they take. */
	c->skel->bss->events_paused = c->opts.calls != NULL;
	if (!rc && c->opts.offcpu)
		rc = collector_load_offcpu(c);
	if (rc)
		return explain_load(c, rc, err);

	if (c->opts.table_idle_ns && bpf_program__fd(c->skel->progs.unmapped_files) >= 0)
		loader_drop_unmapped(c->loader, c->opts.table_idle_ns / NUM_MS,
				     collector_list_unmapped, c);
	rc = loader_start(c->loader);
	if (rc)
		return collector_fail(err, COLLECTOR_FAILED, "cannot start a thread: %s",
				      strerror(-rc));
	c->skel->links.on_exec = bpf_program__attach(c->skel->progs.on_exec);
	if (c->opts.follow_forks) {
		c->skel->links.on_fork = bpf_program__attach(c->skel->progs.on_fork);
		c->skel->links.on_free = bpf_program__attach(c->skel->progs.on_free);
		if (!c->skel->links.on_fork)
			return collector_fail(err, COLLECTOR_UNSUPPORTED,
					      "this kernel cannot trace process creation "
					      "(tp_btf/sched_process_fork)");
	}
	if (c->opts.latency)
		c->skel->links.on_running = bpf_program__attach(c->skel->progs.on_running);
	if (collector_attach_events(c, err))
		return -1;
	rc = c->offcpu ? attach_offcpu(c) : 0;
	c->skel->bss->events_paused = false;
	return rc ? collector_fail(err, COLLECTOR_UNSUPPORTED,
				   "this kernel cannot trace its scheduler: %s", strerror(-rc))
		  : 0;
}

int collector_fd(const struct collector *c)
{
	return ring_buffer__epoll_fd(c->ring);
}

int collector_poll(struct collector *c, int timeout_ms, collector_sample_fn fn, void *ctx)
{
	uint64_t retired = modules_retired(c->modules);
	int n;

	c->fn = fn;
	c->fn_ctx = ctx;
	/*
	 * Samples do not wake the consumer (see record_send). Wait for the few records that do, or
	 * for the timeout, then take everything from the ring.
	 */
	n = timeout_ms ? ring_buffer__poll(c->ring, timeout_ms) : 0;
	if (n >= 0)
		n = ring_buffer__consume(c->ring);
	if (n >= 0)
		modules_drained(c->modules, retired);
	collector_codes_sweep(c);
	collector_walks_follow(c);
	kernel_names_round(c->names, clock_ns(CLOCK_MONOTONIC));
	return n < 0 && n != -EINTR ? n : 0;
}

struct offcpu *collector_offcpu(struct collector *c)
{
	return c->offcpu;
}

/* Lets the loader make the tables of files that were just met. */
static void drain_ring(void *ctx)
{
	struct collector *c = ctx;
	struct timespec pause = { .tv_nsec = 10 * NUM_MS };

	ring_buffer__consume(c->ring);
	for (int i = 0; i < 200 && loader_busy(c->loader); i++)
		nanosleep(&pause, NULL);
}

void collector_detach(struct collector *c)
{
	c->skel->bss->events_paused = c->opts.calls != NULL;
	collector_walks_end(c);
	if (!c->opts.offcpu) {
		collector_offcpu_stop(c);
	} else if (c->offcpu) {
		tables_hold(c->tables);
		offcpu_finish(c->offcpu, drain_ring, c);
		tables_release(c->tables);
		offcpu_bpf__detach(c->off_skel);
	}
	collector_close_events(c);
	sfbpf_bpf__detach(c->skel);
}

/* ---- Off-CPU in addition to samples ---- */

int collector_offcpu_start(struct collector *c, const struct offcpu_opts *opts,
			   struct collector_error *err)
{
	int rc;

	*err = (struct collector_error){ 0 };
	collector_walks_wait(c);
	c->offcpu_opts = *opts;
	rc = collector_load_offcpu(c);
	if (rc)
		explain_load(c, rc, err);
	else if ((rc = attach_offcpu(c)))
		collector_fail(err, COLLECTOR_UNSUPPORTED,
			       "this kernel cannot trace its scheduler: %s", strerror(-rc));
	if (rc)
		collector_offcpu_stop(c);
	return rc ? -1 : 0;
}

int collector_offcpu_try(struct collector *c, const struct offcpu_opts *opts,
			 struct collector_error *err)
{
	int rc;

	*err = (struct collector_error){ 0 };
	collector_walks_wait(c);
	c->offcpu_opts = *opts;
	rc = collector_load_offcpu(c);
	collector_offcpu_stop(c);
	return rc ? explain_load(c, rc, err) : 0;
}

int collector_offcpu_cut(struct collector *c)
{
	int err;

	tables_hold(c->tables);
	err = offcpu_cut(c->offcpu);
	tables_release(c->tables);
	return err;
}

void collector_free(struct collector *c)
{
	if (!c)
		return;
	collector_close_events(c);
	collector_walks_free(c);
	loader_free(c->loader);
	collector_offcpu_stop(c);
	ring_buffer__free(c->ring);
	tables_free(c->tables);
	if (c->cpu_stats)
		munmap(c->cpu_stats, c->cpu_stats_len);
	if (c->stats_fd >= 0)
		close(c->stats_fd);
	kernel_names_free(c->names);
	if (c->skel)
		sfbpf_bpf__destroy(c->skel);
	free(c->verifier_said);
	free(c->off_said);
	free(c);
}
