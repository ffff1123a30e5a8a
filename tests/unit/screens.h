/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The live views without a terminal: a made-up window of samples, keys in, screens out. Includes
 * test.h first.
 */
#ifndef SFBPF_TESTS_UNIT_SCREENS_H
#define SFBPF_TESTS_UNIT_SCREENS_H

#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <unistd.h>

#include "elf_reader.h"
#include "test.h"
#include "tui/batch.h"
#include "tui/live.h"
#include "tui/rows.h"
#include "tui/screen.h"
#include "tui/ui.h"

/* ---- A window ---- */

/* Functions of the made-up program: their names are read from our own file's symbol table. */
#define FUNCTION(name)                                         \
	__attribute__((noinline, used)) static int name(int x) \
	{                                                      \
		return x * (int)sizeof(#name) + 1;             \
	}
FUNCTION(demo_main)
FUNCTION(parse_line)
FUNCTION(hash_word)
FUNCTION(worker)

#define KERNEL_BASE 0xffffffff81000000ull

struct fixture {
	struct test_reader reader;
	struct modules *modules;
	struct symbolizer *symbols;
	struct profile *profile;
	struct live_sum sum;
	struct ui ui;
	struct grid grid;
	char line[4096];
};

struct where {
	uintptr_t addr;
	uint64_t offset;
};

static inline int find_offset(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct where *w = ctx;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + ph->p_vaddr;

		if (ph->p_type == PT_LOAD && w->addr >= start && w->addr < start + ph->p_filesz) {
			w->offset = w->addr - start + ph->p_offset;
			return 1;
		}
	}
	return 0;
}

static inline uint64_t at(int (*fn)(int))
{
	struct where w = { .addr = (uintptr_t)fn };

	dl_iterate_phdr(find_offset, &w);
	return 1ull << SF_FRAME_MODULE_SHIFT | w.offset;
}

struct made {
	uint32_t pid;
	const char *comm;
	int count;
	uint8_t stop;
	bool kthread;
	int nu, nk;
	uint64_t frames[8];
};

/* A blocked stack: so many blocks, and their time. */
static inline void add_blocked(struct profile *p, const struct made *m, uint8_t state, uint64_t ms)
{
	union {
		struct sf_sample s;
		uint64_t room[sizeof(struct sf_sample) / 8 + 8];
	} rec = { .s = {
			  .type = SF_REC_STACK,
			  .pid = m->pid,
			  .tid = m->pid,
			  .n_user = (uint16_t)m->nu,
			  .n_kernel = (uint16_t)m->nk,
			  .stop = m->stop,
			  .flags = (uint8_t)((m->kthread ? 0 : SF_SAMPLE_USER) |
					     SF_SAMPLE_IN_KERNEL),
		  } };
	struct profile_times t = { .count = (uint64_t)m->count,
				   .weight = ms * 1000000,
				   .state = state };

	memcpy(rec.s.comm, m->comm, strnlen(m->comm, SF_COMM - 1));
	memcpy(rec.s.frames, m->frames, sizeof(m->frames));
	EXPECT_EQ(profile_add_times(p, &rec.s, &t, NULL), 0);
}

static inline void add_on_cpu(struct profile *p, const struct made *m, uint32_t cpu)
{
	union {
		struct sf_sample s;
		uint64_t room[sizeof(struct sf_sample) / 8 + 8];
	} rec = { .s = {
			  .type = SF_REC_SAMPLE,
			  .pid = m->pid,
			  .tid = m->pid,
			  .n_user = (uint16_t)m->nu,
			  .stop = m->stop,
			  .flags = SF_SAMPLE_USER,
		  } };
	struct profile_times t = { .count = (uint64_t)m->count,
				   .weight = (uint64_t)m->count,
				   .cpu1 = cpu + 1 };

	memcpy(rec.s.comm, m->comm, strnlen(m->comm, SF_COMM - 1));
	memcpy(rec.s.frames, m->frames, sizeof(m->frames));
	EXPECT_EQ(profile_add_times(p, &rec.s, &t, NULL), 0);
}

static inline void add(struct profile *p, const struct made *m)
{
	union {
		struct sf_sample s;
		uint64_t room[sizeof(struct sf_sample) / 8 + 8];
	} rec = { .s = {
			  .type = SF_REC_SAMPLE,
			  .pid = m->pid,
			  .tid = m->pid,
			  .weight = 1,
			  .n_user = (uint16_t)m->nu,
			  .n_kernel = (uint16_t)m->nk,
			  .stop = m->stop,
			  .flags = (uint8_t)((m->kthread ? 0 : SF_SAMPLE_USER) |
					     (m->nk ? SF_SAMPLE_IN_KERNEL : 0)),
		  } };

	memcpy(rec.s.comm, m->comm, strnlen(m->comm, SF_COMM - 1));
	memcpy(rec.s.frames, m->frames, sizeof(m->frames));
	for (int i = 0; i < m->count; i++)
		EXPECT_EQ(profile_add(p, &rec.s), 0);
}

static inline bool kernel_name(void *ctx, uint64_t addr, char *ret, size_t cap)
{
	static const char *const names[] = { "vfs_read", "process_one_work", "do_syscall_64",
					     "end" };
	uint64_t page = (addr - KERNEL_BASE) >> 12;

	(void)ctx;
	if (page < 4)
		snprintf(ret, cap, "%s", names[page]);
	return page < 4;
}

/*
 * 100 samples: demo 70 (20 in read(2)), two threads of "pool" 20 (10 incomplete), a kernel thread
 * 10.
 */
static inline void fill(struct profile *p)
{
	const uint64_t lib = 2ull << SF_FRAME_MODULE_SHIFT | 0x1a2b;
	const uint64_t vfs_read = KERNEL_BASE + 8, work = KERNEL_BASE + 0x1008,
		       syscall = KERNEL_BASE + 0x2008;
	const struct made made[] = {
		{ 100,
		  "demo",
		  30,
		  SF_STOP_COMPLETE,
		  false,
		  3,
		  0,
		  { at(hash_word), at(parse_line), at(demo_main) } },
		{
			100,
			"demo",
			20,
			SF_STOP_COMPLETE,
			false,
			2,
			0,
			{ at(parse_line), at(demo_main) },
		},
		{ 100,
		  "demo",
		  20,
		  SF_STOP_COMPLETE,
		  false,
		  1,
		  2,
		  { at(demo_main), vfs_read, syscall } },
		{ 200, "pool-1", 10, SF_STOP_COMPLETE, false, 1, 0, { at(worker) } },
		{ 200, "pool\033[2J", 10, SF_STOP_READ_FAULT, false, 2, 0, { at(worker), lib } },
		{ 300, "kworker/0:1", 10, SF_STOP_COMPLETE, true, 0, 1, { work } },
	};

	for (size_t i = 0; i < sizeof(made) / sizeof(made[0]); i++)
		add(p, &made[i]);
}

static inline void set_module(struct module *m, const char *path, enum file_state state,
			      uint64_t rows)
{
	m->path = strdup(path);
	m->name = strrchr(m->path, '/') + 1;
	m->rows = rows;
	m->bytes = rows * 5;
	m->state = (uint8_t)state;
	m->known = (uint8_t)file_life_known(state);
}

static inline void set_up(struct fixture *f, int w, int h)
{
	memset(f, 0, sizeof(*f));
	f->reader = open_reader(elf_worker_main);
	f->modules = modules_new();
	f->symbols = symbolizer_new(f->modules);
	symbolizer_set_kernel_names(f->symbols, kernel_name, NULL);
	symbolizer_set_reader(f->symbols, f->reader.r, NULL);
	/* first, as a tie of functions goes by their ids */
	symbolizer_kernel(f->symbols, KERNEL_BASE);
	set_module(modules_get(f->modules, 1), "/usr/bin/demo", FILE_PUBLISHED, 1234);
	modules_get(f->modules, 1)->fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	set_module(modules_get(f->modules, 2), "/usr/lib/libx.so", FILE_NO_TABLES, 0);
	set_module(modules_get(f->modules, 3), "/usr/lib/libidle.so", FILE_PUBLISHED, 77);
	f->profile = profile_new();
	fill(f->profile);
	f->sum = (struct live_sum){ .seconds = 5,
				    .c = { .taken = 100, .cpu_ns = 20000000, .bpf_ns = 5000000 } };
	ui_init(&f->ui, f->symbols, f->modules);
	f->ui.gauges = (struct ui_gauges){
		.what = "cpu-clock 99 Hz, all processes",
		.rss_kb = 20480,
		.table_files = 2,
		.table_bytes = 1 << 20,
		.table_limit = 256 << 20,
		.full_rate = 40,
	};
	f->grid.unicode = true;
	ui_resize(&f->ui, w, h);
	EXPECT_EQ(ui_refresh(&f->ui, f->profile, &f->sum), 0);
}

static inline void tear_down(struct fixture *f)
{
	ui_free(&f->ui);
	grid_free(&f->grid);
	profile_free(f->profile);
	symbolizer_free(f->symbols);
	close_reader(&f->reader);
	modules_free(f->modules);
}

/* ---- Looking and typing ---- */

static inline void draw(struct fixture *f)
{
	EXPECT_EQ(grid_reset(&f->grid, f->ui.w, f->ui.h), 0);
	screen_draw(&f->ui, &f->grid);
}

static const char *line(struct fixture *f, int y)
{
	grid_line(&f->grid, y, f->line, sizeof(f->line));
	return f->line;
}

static inline unsigned int press(struct fixture *f, uint32_t key)
{
	const struct ui_event ev = { .key = key };
	unsigned int flags = ui_event(&f->ui, &ev);

	draw(f);
	return flags;
}

static inline void type(struct fixture *f, const char *s)
{
	for (; *s; s++)
		press(f, (uint32_t)*s);
}

static inline unsigned int mouse(struct fixture *f, int what, int x, int y)
{
	struct ui_event ev = { .x = x, .y = y };
	unsigned int flags;

	ev.mouse = what;
	flags = ui_event(&f->ui, &ev);
	draw(f);
	return flags;
}

/* Whether any line of the screen has s. */
static inline bool shows(struct fixture *f, const char *s)
{
	for (int y = 0; y < f->grid.h; y++)
		if (strstr(line(f, y), s))
			return true;
	return false;
}

static inline void expect_screen(struct fixture *f, const char *const *want, int n)
{
	draw(f);
	EXPECT_EQ(f->grid.h, n);
	for (int y = 0; y < n && y < f->grid.h; y++)
		EXPECT_STR(line(f, y), want[y]);
}

#define EXPECT_SCREEN(f, ...)                                                     \
	do {                                                                      \
		static const char *const want_[] = { __VA_ARGS__ };               \
		expect_screen(f, want_, (int)(sizeof(want_) / sizeof(want_[0]))); \
	} while (0)

#endif
