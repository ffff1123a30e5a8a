/* SPDX-License-Identifier: BSD-2-Clause */
/* A small made-up profile with everything that outputs must cope with. Includes test.h first. */
#ifndef SFBPF_TESTS_UNIT_WORLD_H
#define SFBPF_TESTS_UNIT_WORLD_H

#include "out/out.h"
#include "out/out_stacks.h"
#include "samples.h"
#include "test.h"

#define USER   SF_SAMPLE_USER
#define KERNEL SF_SAMPLE_IN_KERNEL
#define KADDR  0xffffffff81001010

struct world {
	struct modules *ms;
	struct symbolizer *sz;
	struct profile *p;
	struct run_stats st;
	struct out_meta meta;
	struct out_report r;
};

static inline bool kernel_name(void *ctx, uint64_t addr, char *ret, size_t cap)
{
	(void)ctx;
	snprintf(ret, cap, "vfs_read");
	return addr >> 12 == 0xffffffff81001;
}

static inline void make_world(struct world *w)
{
	*w = (struct world){ .ms = modules_new(),
			     .p = profile_new(),
			     .meta = { "cpu-clock", 99, "host\x1b", 0 } };
	w->sz = symbolizer_new(w->ms);
	symbolizer_set_kernel_names(w->sz, kernel_name, NULL);
	add_module(w->ms, 1, "app");
	add_module(w->ms, 2, "li;b\n");
	w->r = (struct out_report){
		.profile = w->p,
		.symbols = w->sz,
		.modules = w->ms,
		.meta = &w->meta,
		.stats = &w->st,
	};
}

static inline void free_world(struct world *w)
{
	profile_free(w->p);
	symbolizer_free(w->sz);
	modules_free(w->ms);
}

static inline char *folded_of(const struct stackset *ss, bool two_sides)
{
	char *out = NULL;
	size_t len;
	FILE *f = open_memstream(&out, &len);

	EXPECT_EQ(stacks_write_folded(ss, two_sides, UINT64_MAX, f), 0);
	fclose(f);
	return out;
}

static inline char *written_bytes(int (*write)(const struct out_report *r, FILE *f),
				  const struct out_report *r, size_t *ret_len)
{
	char *out = NULL;
	FILE *f = open_memstream(&out, ret_len);

	EXPECT_EQ(write(r, f), 0);
	fclose(f);
	return out;
}

static inline char *written(int (*write)(const struct out_report *r, FILE *f),
			    const struct out_report *r)
{
	size_t len;

	return written_bytes(write, r, &len);
}

static inline void fill(struct world *w)
{
	static const struct fake fakes[] = {
		{ "app",
		  7,
		  SF_STOP_COMPLETE,
		  USER | KERNEL,
		  1500,
		  2,
		  1,
		  { ROW(1, 0x20), ROW(1, 0x10) | SF_FRAME_RA, KADDR } },
		{ "app",
		  8,
		  SF_STOP_COMPLETE,
		  USER | KERNEL,
		  1600,
		  2,
		  1,
		  { ROW(1, 0x20) | FP, ROW(1, 0x10), KADDR } },
		{ "a;b \x1b\xff",
		  9,
		  SF_STOP_READ_FAULT,
		  USER,
		  1000,
		  2,
		  0,
		  { JIT(0x7000), ROW(2, 0x30) } },
		{ "kworker/0:1", 2, SF_STOP_COMPLETE, KERNEL, 1000, 0, 1, { KADDR } },
		{ "app", 7, SF_STOP_NO_REGS, USER, 100, 0, 0, { 0 } },
		{ "", 3, SF_STOP_COMPLETE, USER, 2000, 1, 0, { RAW(5) } },
	};

	for (int i = 0; i < 6; i++)
		add_fake(w->p, &fakes[i], i + 1);
	profile_account(w->p, w->ms, &w->st.account);
	w->st.samples = w->st.account.samples + 4;
	w->st.lost[SF_LOST_RING_FULL] = 4;
	w->st.duration_s = 10.5;
}

/*
 * One block of "app", woken by "b", which was woken by an interrupt. The caller frees the profile.
 */
static inline struct profile *fill_wakers(struct world *w)
{
	static const struct {
		const char *comm;
		uint8_t flags;
		uint16_t n_user;
		uint64_t frame;
	} stacks[3] = {
		{ "[hardirq]", KERNEL, 0, KADDR },
		{ "b", USER, 1, ROW(1, 0x30) },
		{ "app", USER, 1, ROW(1, 0x40) },
	};
	struct profile *wakers = profile_new();
	struct profile_times t = { .count = 1, .weight = 5000 };
	size_t at = 0;

	for (int i = 0; i < 3; i++) {
		struct sf_sample *rec = calloc(1, sizeof(*rec) + 8);

		rec->flags = stacks[i].flags;
		rec->n_user = stacks[i].n_user;
		rec->n_kernel = (uint16_t)(1 - stacks[i].n_user);
		rec->frames[0] = stacks[i].frame;
		strcpy(rec->comm, stacks[i].comm);
		EXPECT(!profile_has(i < 2 ? wakers : w->p, rec, &t, &at));
		EXPECT_EQ(profile_add_times(i < 2 ? wakers : w->p, rec, &t, &at), 0);
		EXPECT(profile_has(i < 2 ? wakers : w->p, rec, &t, &at));
		t.waker = (uint32_t)at + 1;
		/* Another waker is another stack */
		EXPECT(!profile_has(i < 2 ? wakers : w->p, rec, &t, &at));
		free(rec);
	}
	w->r.wakers = wakers;
	w->r.opts.usec = w->st.offcpu = true;
	return wakers;
}

#endif
