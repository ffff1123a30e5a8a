/* SPDX-License-Identifier: BSD-2-Clause */
/* Blocked stacks, one CPU, and what of a window is written to files. */
#include "screens.h"

#define VFS_READ (KERNEL_BASE + 8)
#define SYSCALL	 (KERNEL_BASE + 0x2008)
#define WORK	 (KERNEL_BASE + 0x1008)

/*
 * 10 s of blocked time in 5 s: 6 s in two processes, 3 s of a kernel thread, 1 s that slept all
 * through the window.
 */
static void fill_blocked(struct profile *p)
{
	const struct made read = { 100,	  "demo",
				   60,	  SF_STOP_COMPLETE,
				   false, 2,
				   2,	  { at(parse_line), at(demo_main), VFS_READ, SYSCALL } };
	const struct made idle = { 100,	  "demo", 0, SF_STOP_READ_FAULT,
				   false, 1,	  2, { at(worker), VFS_READ, SYSCALL } };
	const struct made kthread = {
		300, "kwork\033er", 10, SF_STOP_COMPLETE, true, 0, 1, { WORK }
	};
	struct made other = read;

	other.pid = 101;
	other.count = 20;
	add_blocked(p, &read, SF_OFF_S, 4000);
	add_blocked(p, &other, SF_OFF_S, 2000);
	add_blocked(p, &kthread, SF_OFF_D, 3000);
	add_blocked(p, &idle, SF_OFF_S, 1000);
}

static void set_up_blocked(struct fixture *f, struct profile *p, int w, int h)
{
	const struct live_sum sum = { .seconds = 5, .c = { .taken = 90 } };

	set_up(f, w, h);
	fill_blocked(p);
	ui_set_offcpu(&f->ui, p, &sum);
	EXPECT_EQ(ui_refresh(&f->ui, f->profile, &f->sum), 0);
	press(f, '7');
}

/* A test of a screen of that size that shows them. */
#define TEST_BLOCKED(id, w, h)                       \
	static void blocked_##id(struct fixture *f); \
	TEST(id)                                     \
	{                                            \
		struct profile *p = profile_new();   \
		struct fixture f;                    \
                                                     \
		set_up_blocked(&f, p, w, h);         \
		blocked_##id(&f);                    \
		tear_down(&f);                       \
		profile_free(p);                     \
	}                                            \
	static void blocked_##id(struct fixture *f)

TEST_BLOCKED(blocked_stacks_80x24, 80, 24)
{
	EXPECT_STR(line(f, 0),
		   "sfbpf top  last 5s  18 blocks/s  lost 0  complete 85.7%  2 threads");
	EXPECT_STR(line(f, 1),
		   "stops: read_fault 14.3%  sfbpf CPU 0.4% BPF 0.1% RSS 20M  tables 1.0M/2 files");
	EXPECT_STR(
		line(f, 3),
		"all                                                        idle hidden  1-2 of 2");
	EXPECT_STR(line(f, 4),
		   " TIME%▾ BLOCKS/s   EACH S  NAME             BLOCKED IN, THEN ITS CALLERS");
	EXPECT_STR(
		line(f, 5),
		"   66.7     16.0   75ms S  demo             ▸ vfs_read_[k] ‹ parse_line ‹ demo_…");
	EXPECT_STR(line(f, 6),
		   "   33.3      2.0  300ms D  kwork.er         ▸ process_one_work_[k]");
	EXPECT_STR(line(f, 7), "");
	press(f, 'i'); /* percentages are of what is shown */
	EXPECT_STR(
		line(f, 5),
		"   60.0     16.0   75ms S  demo             ▸ vfs_read_[k] ‹ parse_line ‹ demo_…");
	EXPECT_STR(line(f, 7),
		   "   10.0      0.0      - S  demo             ▸ vfs_read_[k] ‹ worker");
	press(f, 'K'); /* without its frames the kernel thread has none */
	EXPECT_STR(line(f, 5),
		   "   60.0     16.0   75ms S  demo             ▸ parse_line ‹ demo_main");
	EXPECT(shows(f, "[no stack]"));
}

TEST_BLOCKED(blocked_stacks_at_other_sizes, 120, 40)
{
	EXPECT_STR(line(f, 4), " TIME%▾  THREADS  BLOCKS/s    EACH S      PID NAME                "
			       "BLOCKED IN, THEN ITS CALLERS");
	EXPECT_STR(line(f, 5), "   66.7      1.2      16.0    75ms S  several demo                "
			       "▸ vfs_read_[k] ‹ parse_line ‹ demo_main");
	ui_resize(&f->ui, 40, 10);
	draw(f);
	EXPECT_STR(line(f, 2), " TIME%▾ NAME             BLOCKED IN, TH…");
	EXPECT_STR(line(f, 3), "   66.7 demo             ▸ vfs_read_[k]…");
}

TEST_BLOCKED(blocked_stacks_open_and_zoom, 80, 24)
{
	press(f, ' ');
	EXPECT_STR(line(f, 5), "   66.7     16.0   75ms S  demo             ▾ vfs_read_[k]");
	EXPECT_STR(line(f, 6), "                                                do_syscall_64_[k]");
	EXPECT_STR(line(f, 7), "                                                parse_line");
	EXPECT_STR(line(f, 8), "                                                demo_main");
	press(f, 'j');
	press(f, '-'); /* from a frame to its stack, and that is closed */
	EXPECT_EQ(f->ui.pos[VIEW_OFFCPU].cursor, 0);
	press(f, '-');
	EXPECT_STR(line(f, 6),
		   "   33.3      2.0  300ms D  kwork.er         ▸ process_one_work_[k]");
	press(f, KEY_RETURN); /* several processes: the command */
	EXPECT_STR(
		line(f, 3),
		"all › demo  60.0% of all time                              idle hidden  1-1 of 1");
	press(f, KEY_RETURN); /* then its function */
	EXPECT_STR(
		line(f, 3),
		"all › demo › parse_line  60.0% of all time                 idle hidden  1-1 of 1");
	press(f, '1'); /* the other views follow */
	EXPECT(shows(f, "hash_word") && !shows(f, "worker"));
	press(f, '7');
	press(f, KEY_ESCAPE);
	press(f, KEY_ESCAPE);
	press(f, 'j');
	press(f, KEY_RETURN);
	EXPECT(strstr(line(f, 3), "all › kwork.er (300)"));
	press(f, KEY_ESCAPE);
	EXPECT_EQ(f->ui.sel.n, 0);
}

TEST_BLOCKED(blocked_stacks_filter_sort_baseline, 80, 24)
{
	const struct live_sum sum = { .seconds = 5, .c = { .taken = 90 } };
	struct profile *next = profile_new();

	press(f, '/');
	type(f, "PARSE");
	press(f, KEY_RETURN);
	EXPECT(shows(f, "vfs_read_[k]") && !shows(f, "process_one"));
	press(f, KEY_ESCAPE);
	press(f, '/'); /* the row is that of process 101 as well */
	type(f, "101");
	press(f, KEY_RETURN);
	EXPECT(shows(f, "vfs_read_[k]") && !shows(f, "process_one"));
	press(f, KEY_ESCAPE);
	press(f, 'I');
	EXPECT(strstr(line(f, 5), "kwork.er"));
	press(f, 'I');
	for (int i = 0; i < 2; i++) /* BLOCKS/s, EACH */
		press(f, '>');
	EXPECT(strstr(line(f, 5), "kwork.er"));
	press(f, 'P');
	press(f, 'b');
	fill_blocked(next);
	add_blocked(next,
		    &(struct made){
			    300, "kwork\033er", 10, SF_STOP_COMPLETE, true, 0, 1, { WORK } },
		    SF_OFF_D, 3000);
	ui_set_offcpu(&f->ui, next, &sum);
	EXPECT_EQ(ui_refresh(&f->ui, f->profile, &f->sum), 0);
	draw(f);
	EXPECT_STR(
		line(f, 5),
		"   50.0  -16.7     16.0   75ms S  demo             ▸ vfs_read_[k] ‹ parse_line …");
	EXPECT_STR(line(f, 6),
		   "   50.0  +16.7      4.0  300ms D  kwork.er         ▸ process_one_work_[k]");
	press(f, 'b');
	EXPECT(!shows(f, "DIFF"));
	profile_free(next);
}

/* The collection may end at any time. */
TEST_BLOCKED(blocked_window_goes_away, 80, 24)
{
	ui_set_offcpu(&f->ui, NULL, NULL);
	draw(f);
	EXPECT(shows(f, "measuring blocks"));
	press(f, KEY_RETURN);
	press(f, ' ');
	snprintf(f->ui.off.error, sizeof(f->ui.off.error),
		 "this kernel cannot trace its scheduler");
	draw(f);
	EXPECT(shows(f, "this kernel cannot"));
}

TEST(one_cpu)
{
	struct profile *p = profile_new();
	struct fixture f;

	set_up(&f, 80, 24);
	f.ui.gauges.ncpus = 2;
	f.ui.gauges.full_rate = 40;
	add_on_cpu(p,
		   &(struct made){ 100, "demo", 75, SF_STOP_COMPLETE, false, 1, 0, { at(worker) } },
		   0);
	add_on_cpu(p,
		   &(struct made){
			   100, "demo", 25, SF_STOP_COMPLETE, false, 1, 0, { at(hash_word) } },
		   1);
	EXPECT_EQ(ui_refresh(&f.ui, p, &f.sum), 0);
	press(&f, ']');
	EXPECT_STR(line(&f, 0),
		   "CPU 0  last 5s  15 samples/s  lost 0  complete 100.0%  kernel 0%  busy 75%");
	EXPECT_STR(line(&f, 5),
		   "  100.0   100.0    0.0 worker                                  demo");
	EXPECT_STR(line(&f, 6), "");
	press(&f, ']');
	EXPECT(strstr(line(&f, 0), "CPU 1  last 5s  5 samples/s"));
	EXPECT_STR(line(&f, 5),
		   "  100.0   100.0    0.0 hash_word                               demo");
	press(&f, ']');
	EXPECT(strstr(line(&f, 5), "   75.0    75.0"));
	press(&f, '[');
	EXPECT_EQ(f.ui.sel.cpu1, 2);
	press(&f, 'c');
	EXPECT(shows(&f, "CPU (empty: all): "));
	type(&f, "0");
	press(&f, KEY_RETURN);
	EXPECT_EQ(f.ui.sel.cpu1, 1);
	press(&f, 'c');
	type(&f, "2");
	press(&f, KEY_RETURN);
	EXPECT(shows(&f, "no such CPU"));
	EXPECT_EQ(f.ui.sel.cpu1, 1);
	press(&f, 'c');
	press(&f, KEY_RETURN);
	EXPECT_EQ(f.ui.sel.cpu1, 0);
	tear_down(&f);
	profile_free(p);
}

static uint64_t shown_samples(const struct fixture *f, enum view view)
{
	struct profile_stack s;
	uint64_t n = 0;

	for (size_t i = 0; i < profile_count(f->profile); i++) {
		profile_stack(f->profile, i, &s);
		n += ui_shows_stack(&f->ui, view, f->profile, i) ? s.count : 0;
	}
	return n;
}

TEST(what_is_written_is_what_is_shown)
{
	struct fixture f;
	char what[160];

	set_up(&f, 80, 24);
	EXPECT_EQ(shown_samples(&f, VIEW_FUNCTIONS), 100);
	EXPECT_STR(ui_describe(&f.ui, VIEW_FUNCTIONS, what, sizeof(what)), "");
	press(&f, '/');
	type(&f, "pool");
	press(&f, KEY_RETURN);
	EXPECT_EQ(shown_samples(&f, VIEW_FUNCTIONS), 0); /* no function is called so */
	EXPECT_EQ(shown_samples(&f, VIEW_PROCESSES), 20);
	EXPECT_EQ(shown_samples(&f, VIEW_TREE), 20);
	EXPECT_EQ(shown_samples(&f, VIEW_MODULES), 0);
	EXPECT_STR(ui_describe(&f.ui, VIEW_FUNCTIONS, what, sizeof(what)), "filter 'pool'");
	press(&f, KEY_ESCAPE);
	press(&f, KEY_RETURN); /* hash_word */
	press(&f, 'K');
	EXPECT_EQ(shown_samples(&f, VIEW_FUNCTIONS), 30);
	f.ui.sel.cpu1 = 2;
	EXPECT_STR(ui_describe(&f.ui, VIEW_CALLERS, what, sizeof(what)),
		   "hash_word, CPU 1, without kernel");
	tear_down(&f);
}

/*
 * In 5 s: demo's threads waited 6 s in read and 1 s for a CPU, one is idle; the kernel thread
 * waited 3 s for what is not known. A sample stands for 10 ms.
 */
TEST_BLOCKED(wall_80x24, 80, 24)
{
	struct profile *p = f->ui.off.window;
	const struct made ready = { 100,   "demo", 5, SF_STOP_COMPLETE,
				    false, 1,	   1, { at(worker), SYSCALL } };
	const struct live_sum sum = { .seconds = 5, .c = { .taken = 90 } };

	add_blocked(p, &ready, SF_OFF_R, 1000);
	f->ui.gauges.period_ns = 10 * NUM_MS;
	ui_set_offcpu(&f->ui, p, &sum);
	EXPECT_EQ(ui_refresh(&f->ui, f->profile, &f->sum), 0);
	EXPECT(!shows(f, "worker")); /* in the Off-CPU view, who waits for a CPU is not blocked */
	press(f, '8');
	EXPECT_STR(line(f, 4), "     PID   ALL▾    RUN READY  LOCK   I/O   NET  SLEEP  OTHER NAME");
	EXPECT_STR(line(f, 5),
		   "     100   1.14   0.14  0.20  0.00  0.00  0.00   0.00   0.80 ▸ demo");
	EXPECT_STR(line(f, 6),
		   "     300   0.62   0.02  0.00  0.00  0.00  0.00   0.00   0.60 ▸ kworker/0:1");
	EXPECT_STR(line(f, 9), "");
	press(f, ' ');
	EXPECT_STR(line(f, 6),
		   "           0.80  [blocked: other] vfs_read_[k] ‹ parse_line ‹ demo_main");
	EXPECT_STR(line(f, 7), "           0.20  [runnable] do_syscall_64_[k] ‹ worker");
	EXPECT_STR(line(f, 8), "           0.14  [running] hash_word ‹ parse_line ‹ demo_main");
	press(f, 'i'); /* with the thread that waited all the time */
	EXPECT_STR(line(f, 4),
		   "     PID   ALL▾    RUN READY  LOCK   I/O   NET  SLEEP  OTHER   IDLE NAME");
	EXPECT_STR(line(f, 5),
		   "     100   1.34   0.14  0.20  0.00  0.00  0.00   0.00   0.80   0.20 ▾ demo");
	press(f, KEY_RETURN); /* it waits more than it runs */
	EXPECT_EQ(f->ui.view, VIEW_OFFCPU);
	EXPECT(strstr(line(f, 3), "all › demo (100)"));
	press(f, KEY_ESCAPE);
	EXPECT_EQ(f->ui.view, VIEW_WALL);
	press(f, 'G');
	press(f, KEY_RETURN); /* pool-1 only runs */
	EXPECT_EQ(f->ui.view, VIEW_FUNCTIONS);
	press(f, KEY_ESCAPE);
	press(f, '/');
	type(f, "kwork");
	press(f, KEY_RETURN);
	EXPECT(shows(f, "kworker") && !shows(f, "demo"));
	ui_set_offcpu(&f->ui, NULL, NULL); /* its rows go with the window */
	draw(f);
	EXPECT(shows(f, "measuring blocks"));
}
