/* SPDX-License-Identifier: BSD-2-Clause */
#include "prof/profile.h"

#include <errno.h>
#include <time.h>

#include "prof/census.h"
#include "samples.h"
#include "test.h"

#define USER   SF_SAMPLE_USER
#define KERNEL SF_SAMPLE_IN_KERNEL
#define KTEXT  0xffffffff81000000ull

struct world {
	struct modules *ms;
	struct symbolizer *sz;
	struct profile *p;
};

static struct world make_world(void)
{
	struct world w = { .ms = modules_new(), .p = profile_new() };

	w.sz = symbolizer_new(w.ms);
	add_module(w.ms, 1, "app");
	add_module(w.ms, 2, "lib");
	return w;
}

static void free_world(struct world *w)
{
	profile_free(w->p);
	symbolizer_free(w->sz);
	modules_free(w->ms);
}

TEST(profile_merges_equal_stacks)
{
	struct world w = make_world();
	struct fake base = { "app", 7, SF_STOP_COMPLETE, USER, 5, 2, 0, { ROW(1, 1), ROW(1, 2) } };
	struct fake others[7];
	struct profile_stack s;

	EXPECT_EQ(add_fake(w.p, &base, 3), 0);
	for (int i = 0; i < 7; i++)
		others[i] = base;
	others[0].comm = "app2";
	others[1].pid = 8;
	others[2].stop = SF_STOP_DEPTH;
	others[3].flags = USER | KERNEL;
	others[4].n_user = 1;
	others[5].n_user = 1;
	others[5].n_kernel = 1;
	others[6].frames[1] |= SF_FRAME_RA;
	for (int i = 0; i < 7; i++)
		EXPECT_EQ(add_fake(w.p, &others[i], 1), 0);
	EXPECT_EQ(profile_count(w.p), 8);
	EXPECT_EQ(profile_samples(w.p), 10);
	profile_stack(w.p, 0, &s);
	EXPECT_EQ(s.count, 3);
	EXPECT_EQ(s.weight, 15);
	EXPECT_STR(s.comm, "app");
	EXPECT(s.n_user == 2 && s.n_kernel == 0 && s.frames[1] == ROW(1, 2) && s.pid == 7);
	profile_reset(w.p);
	EXPECT_EQ(profile_count(w.p), 0);
	EXPECT_EQ(profile_samples(w.p), 0);
	EXPECT_EQ(add_fake(w.p, &base, 1), 0);
	EXPECT_EQ(profile_count(w.p), 1);
	free_world(&w);
	profile_free(NULL);
}

TEST(profile_refuses_bad_records)
{
	struct world w = make_world();
	struct sf_sample rec = { .type = SF_REC_SAMPLE, .n_user = SF_MAX_USER + 1 };

	EXPECT_EQ(profile_add(w.p, &rec), -EINVAL);
	rec.n_user = 0;
	rec.n_kernel = SF_MAX_KERNEL + 1;
	EXPECT_EQ(profile_add(w.p, &rec), -EINVAL);
	rec.n_kernel = 0;
	rec.stop = SF_STOP_MAX;
	EXPECT_EQ(profile_add(w.p, &rec), -EINVAL);
	rec.stop = 0;
	memset(rec.comm, 'x', sizeof(rec.comm)); /* without a NUL */
	EXPECT_EQ(profile_add(w.p, &rec), 0);
	EXPECT(profile_symbols(w.p, 0, w.sz));
	EXPECT_EQ(profile_samples(w.p), 1);
	free_world(&w);
}

TEST(profile_merge)
{
	struct world w = make_world(), v = { .p = profile_new() };
	struct fake a = { "a", 1, 0, USER, 2, 1, 0, { ROW(1, 1) } },
		    b = { "b", 2, 0, 0, 3, 0, 0, { 0 } };
	struct profile_stack s;

	add_fake(w.p, &a, 2);
	add_fake(v.p, &b, 1);
	add_fake(v.p, &a, 3);
	EXPECT_EQ(profile_resolve(v.p, w.sz), 0);
	EXPECT_EQ(profile_merge(w.p, v.p), 0);
	EXPECT_EQ(profile_count(w.p), 2);
	EXPECT_EQ(profile_samples(w.p), 6);
	profile_stack(w.p, 0, &s);
	EXPECT_EQ(s.count, 5);
	EXPECT_STR(symbolizer_name(w.sz, profile_symbols(w.p, 0, w.sz)[0]), "[app+0x1]");
	EXPECT_EQ(profile_count(v.p), 2); /* the source is left as it was */
	profile_free(v.p);
	free_world(&w);
}

TEST(profile_forgets_processes)
{
	struct world w = make_world();
	struct fake a = { "a", 1, SF_STOP_COMPLETE, USER, 2, 2, 0, { ROW(1, 1), ROW(2, 2) } },
		    other_pid = a, other_comm = a, jit = a, jit_other;
	struct profile_stack s;

	other_pid.pid = 2;
	other_comm.comm = "b";
	other_comm.pid = 3;
	jit.frames[0] = JIT(16);
	jit_other = jit;
	jit_other.pid = 2;
	add_fake(w.p, &a, 2);
	add_fake(w.p, &jit, 1);
	add_fake(w.p, &other_comm, 1);
	add_fake(w.p, &other_pid, 3);
	add_fake(w.p, &jit_other, 1);
	EXPECT_EQ(profile_resolve(w.p, w.sz), 0);
	profile_forget_processes(w.p);
	EXPECT_EQ(profile_count(w.p), 4);
	EXPECT_EQ(profile_samples(w.p), 8);
	profile_stack(w.p, 0, &s);
	EXPECT(s.pid == 0 && s.count == 5 && s.weight == 10 && s.frames[1] == ROW(2, 2));
	EXPECT_STR(symbolizer_name(w.sz, profile_symbols(w.p, 0, w.sz)[1]), "[lib+0x2]");
	profile_stack(w.p, 1, &s);
	EXPECT(s.pid == 1 && s.count == 1 && s.frames[0] == JIT(16));
	profile_stack(w.p, 2, &s);
	EXPECT(s.pid == 0 && s.count == 1);
	EXPECT_STR(s.comm, "b");
	profile_stack(w.p, 3, &s);
	EXPECT(s.pid == 2 && s.count == 1);
	a.pid = 0;
	EXPECT_EQ(add_fake(w.p, &a, 1), 0); /* the stacks are still found */
	EXPECT_EQ(profile_count(w.p), 4);
	profile_stack(w.p, 0, &s);
	EXPECT_EQ(s.count, 6);
	free_world(&w);
}

/* A frame whose file is still being read gets its name later. */
TEST(profile_names_late_files)
{
	struct world w = make_world();
	struct fake a = { "a", 1, SF_STOP_NOT_LOADED, USER, 1, 1, 0, { NOROW(5, 16) } };

	add_fake(w.p, &a, 1);
	EXPECT_STR(symbolizer_name(w.sz, profile_symbols(w.p, 0, w.sz)[0]), "[unknown]");
	add_module(w.ms, 5, "late");
	EXPECT_STR(symbolizer_name(w.sz, profile_symbols(w.p, 0, w.sz)[0]), "[late+0x10]");
	free_world(&w);
}

/* do_group_exit() ends with the call of do_exit(), and an interrupt meets the first byte of f(). */
static bool kernel_function(void *ctx, uint64_t addr, char *ret, size_t cap)
{
	static const char *const names[] = { "asm_sysvec_x",  "before_f", "f",
					     "do_group_exit", "do_exit",  "leaf" };
	size_t i = (addr - KTEXT) >> 8;

	(void)ctx;
	if (addr < KTEXT || i >= sizeof(names) / sizeof(names[0]))
		return false;
	snprintf(ret, cap, "%s", names[i]);
	return true;
}

TEST(profile_names_callers_in_the_kernel)
{
	static const char *const want[] = { "f_[k]", "do_exit_[k]", "do_group_exit_[k]",
					    "asm_sysvec_x_[k]", "f_[k]" };
	struct fake a = { "a",
			  1,
			  SF_STOP_COMPLETE,
			  USER | KERNEL,
			  1,
			  1,
			  5,
			  { ROW(1, 1), KTEXT + 0x200, KTEXT + 0x450, KTEXT + 0x400, KTEXT + 0x80,
			    KTEXT + 0x200 } };
	struct world w = make_world();
	const uint32_t *ids;
	struct profile_stack s;

	symbolizer_set_kernel_names(w.sz, kernel_function, NULL);
	add_fake(w.p, &a, 1);
	ids = profile_symbols(w.p, 0, w.sz);
	for (size_t k = 0; k < 5; k++)
		EXPECT_STR(symbolizer_name(w.sz, ids[1 + k]), want[k]);
	profile_stack(w.p, 0, &s);
	EXPECT_EQ(s.frames[3], KTEXT + 0x400);
	free_world(&w);
}

TEST(profile_account)
{
	struct world w = make_world();
	static struct module_range ranges[] = { { 0x100, 0x200, 0 }, { 0x300, 0x400, 1 } };
	struct fake fakes[] = {
		/* leaf first: lib's .sframe, between its ranges, app's .eh_frame */
		{ "a",
		  1,
		  SF_STOP_COMPLETE,
		  USER,
		  1,
		  4,
		  0,
		  { ROW(2, 0x100), ROW(2, 0x1ff), ROW(2, 0x200), ROW(1, 0x150) } },
		/*
		 * no row: fp for the leaf and where the frame pointer found it, else as the frame
		 * below
		 */
		{ "a",
		  1,
		  SF_STOP_READ_FAULT,
		  USER,
		  1,
		  4,
		  0,
		  { NOROW(2, 1), ROW(2, 0x3ff), NOROW(2, 2), NOROW(2, 3) | FP } },
		{ "a",
		  1,
		  SF_STOP_JIT,
		  USER | KERNEL,
		  1,
		  4,
		  1,
		  { JIT(5), JIT(6) | FP, RAW(7), ROW(2, 0x400), 0xffffffff81000000 } },
		{ "a", 1, SF_STOP_NO_REGS, USER | KERNEL, 1, 0, 1, { 0xffffffff81000000 } },
		{ "kworker", 2, SF_STOP_COMPLETE, KERNEL, 1, 0, 1, { 0xffffffff81000000 } },
	};
	struct profile_account a;
	uint64_t stops = 0;
	struct module *lib = modules_find(w.ms, 2);

	module_set_ranges(lib, memcpy(malloc(sizeof(ranges)), ranges, sizeof(ranges)), 2);
	for (int i = 0; i < 5; i++)
		add_fake(w.p, &fakes[i], i + 1);
	profile_account(w.p, w.ms, &a);
	EXPECT_EQ(a.samples, 15);
	EXPECT_EQ(a.samples_without_user, 5);
	EXPECT_EQ(a.user_total, 10);
	EXPECT_EQ(a.stops[SF_STOP_COMPLETE], 1);
	EXPECT_EQ(a.stops[SF_STOP_READ_FAULT], 2);
	EXPECT_EQ(a.stops[SF_STOP_JIT], 3);
	EXPECT_EQ(a.stops[SF_STOP_NO_REGS], 4);
	for (int i = 0; i < SF_STOP_MAX; i++)
		stops += a.stops[i];
	EXPECT_EQ(stops, a.user_total);
	EXPECT_EQ(a.frames, 4 * 1 + 4 * 2 + 4 * 3);
	EXPECT_EQ(a.sframe, 2 * 1);
	EXPECT_EQ(a.eh_frame, 2 * 1 + 1 * 3);
	EXPECT_EQ(a.code, 2 * 2);
	EXPECT_EQ(a.fp, 2 * 2);
	EXPECT_EQ(a.jit, 3 * 3);
	EXPECT_EQ(a.frames, a.sframe + a.eh_frame + a.code + a.fp + a.jit);
	EXPECT_STR(profile_stop_name(SF_STOP_READ_FAULT), "read_fault");
	EXPECT_STR(profile_stop_name(255), "?");
	EXPECT_STR(profile_lost_name(SF_LOST_RING_FULL), "ring_full");
	EXPECT_STR(profile_lost_name(1000), "?");
	EXPECT(profile_stop_help(0)[0] && profile_lost_help(0)[0]);
	free_world(&w);
}

/* ---- Tables ---- */

static const struct census_function *function(const struct census *c, const char *name)
{
	for (size_t i = 0; i < c->nfunctions; i++)
		if (strcmp(c->functions[i].name, name) == 0)
			return &c->functions[i];
	return NULL;
}

static const struct census_module *module(const struct census *c, const char *name)
{
	for (size_t i = 0; i < c->nmodules; i++)
		if (strcmp(c->modules[i].name, name) == 0)
			return &c->modules[i];
	return NULL;
}

static uint64_t self_of_functions(const struct census *c)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < c->nfunctions; i++)
		sum += c->functions[i].self;
	return sum;
}

/*
 *  count  comm     leaf ................................ root
 *     4   app/7    lib+10  lib+10  app+2  app+1			recursion in lib+10
 *     3   app/7    lib+20  app+1
 *     2   app/8    [k]  app+1					kernel leaf
 *     1   kthr/9   (nothing)
 *
 *  function      self  total	module	   self  total	process  samples  kernel  complete/user
 *  [lib+0x10]       4      4	lib           7      7	app/7          7       0            4/7
 *  [lib+0x20]       3      3	app           0      9	app/8          2       2            2/2
 *  [unknown]_[k]    2      2	[kernel]      2      2	kthr/9         1       1            0/0
 *  [no stack]       1      1	[no stack]    1      1
 *  [app+0x1]        0      9	sum 10, self adds up to it
 *  [app+0x2]        0      4
 */
static void fill(struct world *w)
{
	static const struct fake fakes[] = {
		{ "app",
		  7,
		  SF_STOP_COMPLETE,
		  USER,
		  1000,
		  4,
		  0,
		  { ROW(2, 0x10), ROW(2, 0x10), ROW(1, 2), ROW(1, 1) } },
		{ "app", 7, SF_STOP_DEPTH, USER, 1000, 2, 0, { ROW(2, 0x20), ROW(1, 1) } },
		{ "app",
		  8,
		  SF_STOP_COMPLETE,
		  USER | KERNEL,
		  5000,
		  1,
		  1,
		  { ROW(1, 1), 0xffffffff81000000 } },
		{ "kthr", 9, SF_STOP_COMPLETE, KERNEL, 1000, 0, 0, { 0 } },
	};

	for (int i = 0; i < 4; i++)
		add_fake(w->p, &fakes[i], 4 - i);
}

TEST(census_self_and_total)
{
	static const struct {
		const char *name;
		uint64_t self, total;
	} want[] = {
		{ "[lib+0x10]", 4, 4 }, { "[lib+0x20]", 3, 3 }, { "[unknown]_[k]", 2, 2 },
		{ "[no stack]", 1, 1 }, { "[app+0x1]", 0, 9 },	{ "[app+0x2]", 0, 4 },
	};
	struct world w = make_world();
	struct selection sel = { 0 };
	struct census c = { 0 };
	unsigned int tables = CENSUS_FUNCTIONS | CENSUS_PROCESSES | CENSUS_MODULES;

	fill(&w);
	/* The memory of one build serves the next */
	for (int round = 0; round < 3; round++) {
		EXPECT_EQ(census_build(&c, w.p, w.sz, w.ms, &sel, tables), 0);
		EXPECT_EQ(c.sum, 10);
		EXPECT_EQ(c.all.samples, 10);
		EXPECT_EQ(c.all.user_stacks, 9);
		EXPECT_EQ(c.all.complete, 6);
		EXPECT_EQ(c.nfunctions, 6);
		for (size_t i = 0; i < 6; i++) {
			const struct census_function *f = function(&c, want[i].name);

			EXPECT(f && f->self == want[i].self && f->total == want[i].total);
		}
		EXPECT_EQ(self_of_functions(&c), c.sum);
		EXPECT_EQ(c.nmodules, 4);
		EXPECT(module(&c, "app") && module(&c, "app")->self == 0 &&
		       module(&c, "app")->total == 9);
		EXPECT(module(&c, "lib") && module(&c, "lib")->self == 7 &&
		       module(&c, "lib")->total == 7);
		EXPECT_EQ(c.nprocesses, 3);
		EXPECT(c.processes[0].pid == 7 && c.processes[0].self == 7 &&
		       c.processes[0].complete == 4 && c.processes[0].user_stacks == 7 &&
		       c.processes[0].kernel == 0);
		EXPECT(c.processes[1].pid == 8 && c.processes[1].kernel == 2);
		EXPECT(c.processes[2].pid == 9 && c.processes[2].user_stacks == 0);
		EXPECT_STR(c.processes[2].comm, "kthr");
	}
	census_free(&c);
	free_world(&w);
}

TEST(census_parts_and_weights)
{
	struct world w = make_world();
	struct selection sel = { .user_only = true };
	struct census c = { 0 };
	unsigned int tables = CENSUS_FUNCTIONS | CENSUS_PROCESSES | CENSUS_MODULES;

	fill(&w);
	EXPECT_EQ(census_build(&c, w.p, w.sz, w.ms, &sel, tables), 0);
	EXPECT(function(&c, "[app+0x1]") && function(&c, "[app+0x1]")->self == 2);
	EXPECT(!function(&c, "[unknown]_[k]"));
	EXPECT_EQ(self_of_functions(&c), 10);
	sel = (struct selection){ .kernel_only = true };
	EXPECT_EQ(census_build(&c, w.p, w.sz, w.ms, &sel, tables), 0);
	EXPECT_EQ(c.nfunctions, 2);
	EXPECT(function(&c, "[no stack]") && function(&c, "[no stack]")->self == 8);
	EXPECT_EQ(self_of_functions(&c), 10);
	sel = (struct selection){ 0 };
	tables |= CENSUS_BY_WEIGHT;
	EXPECT_EQ(census_build(&c, w.p, w.sz, w.ms, &sel, tables), 0);
	EXPECT_EQ(c.sum, 18000);
	EXPECT(function(&c, "[unknown]_[k]") && function(&c, "[unknown]_[k]")->self == 10000);
	EXPECT_EQ(self_of_functions(&c), c.sum);
	profile_reset(w.p);
	EXPECT_EQ(census_build(&c, w.p, w.sz, w.ms, &sel, tables), 0);
	EXPECT(c.nfunctions == 0 && c.sum == 0);
	census_free(&c);
	free_world(&w);
}

/* Rows have the process's name, or with by_thread that of its threads. */
TEST(census_process_names)
{
	struct fake fakes[] = {
		{ "reader", 7, SF_STOP_COMPLETE, USER, 1000, 1, 0, { ROW(1, 1) } },
		{ "writer", 7, SF_STOP_COMPLETE, USER, 1000, 1, 0, { ROW(1, 2) } },
		{ "other", 8, SF_STOP_COMPLETE, USER, 1000, 1, 0, { ROW(1, 1) } },
	};
	struct selection sel = { 0 };
	struct world w = make_world();
	struct profile_stack s;
	struct census c = { 0 };
	struct profile *copy;

	for (int i = 0; i < 3; i++)
		add_fake(w.p, &fakes[i], 6 - i);
	EXPECT(!profile_process_name(w.p, 7));
	EXPECT_EQ(profile_name_process(w.p, 7, "first"), 0);
	EXPECT_EQ(profile_name_process(w.p, 7, "server-with-a-long-name"), 0);
	EXPECT_STR(profile_process_name(w.p, 7), "server-with-a-l");
	profile_stack(w.p, 1, &s);
	EXPECT_STR(s.comm, "writer");
	EXPECT_STR(s.process, "server-with-a-l");
	profile_stack(w.p, 2, &s);
	EXPECT_STR(s.process, "other");
	copy = profile_new();
	EXPECT_EQ(profile_merge_one(copy, w.p, 1), 0);
	EXPECT_STR(profile_process_name(copy, 7), "server-with-a-l");
	profile_free(copy);
	EXPECT_EQ(census_build(&c, w.p, w.sz, w.ms, &sel, CENSUS_PROCESSES), 0);
	EXPECT_EQ(c.nprocesses, 2);
	EXPECT(c.processes[0].named && c.processes[0].names == 2);
	EXPECT_STR(c.processes[0].comm, "server-with-a-l");
	EXPECT(!c.processes[1].named);
	EXPECT_STR(c.processes[1].comm, "other");
	sel.by_thread = true;
	EXPECT_EQ(census_build(&c, w.p, w.sz, w.ms, &sel, CENSUS_PROCESSES), 0);
	EXPECT_STR(c.processes[0].comm, "reader");
	profile_reset(w.p);
	EXPECT(!profile_process_name(w.p, 7));
	census_free(&c);
	free_world(&w);
}

static double now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

/* A live view is rebuilt each second, also with very many stacks. */
TEST(census_is_fast)
{
	struct world w = make_world();
	struct selection sel = { 0 };
	struct census c = { 0 };
	unsigned int tables = CENSUS_FUNCTIONS | CENSUS_PROCESSES | CENSUS_MODULES;
	struct sf_sample *rec = calloc(1, sizeof(*rec) + 40 * 8);
	double added, first, again, t0 = now_ms();
	uint64_t state = 1;

	rec->n_user = 40;
	rec->flags = USER;
	rec->weight = 1;
	for (uint32_t i = 0; i < 100000; i++) {
		rec->pid = i % 500;
		for (int k = 0; k < 40; k++) {
			state = state * 6364136223846793005ull + 1442695040888963407ull;
			rec->frames[k] = ROW(1 + k % 2, (state >> 40) % 5000);
		}
		EXPECT_EQ(profile_add(w.p, rec), 0);
	}
	added = now_ms() - t0;
	t0 = now_ms();
	EXPECT_EQ(census_build(&c, w.p, w.sz, w.ms, &sel, tables), 0);
	first = now_ms() - t0;
	t0 = now_ms();
	EXPECT_EQ(census_build(&c, w.p, w.sz, w.ms, &sel, tables), 0);
	again = now_ms() - t0;
	printf("# 100000 stacks of 40 frames: added in %.0f ms, %zu MB; "
	       "table built in %.0f ms, again in %.0f ms\n",
	       added, profile_bytes(w.p) >> 20, first, again);
	EXPECT_EQ(self_of_functions(&c), 100000);
	EXPECT(again < 2000); /* with sanitizers on a busy machine; a tenth of it without */
	free(rec);
	census_free(&c);
	free_world(&w);
}
