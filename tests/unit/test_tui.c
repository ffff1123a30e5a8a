/* SPDX-License-Identifier: BSD-2-Clause */
/* The live views without a terminal: a made-up window of samples in, keys in, screens out. */
#include "screens.h"

/* ---- Screens ---- */

TEST(functions_80x24)
{
	struct fixture f;

	set_up(&f, 80, 24);
	EXPECT_SCREEN(
		&f,
		"sfbpf top  last 5s  20 samples/s  lost 0  complete 88.9%  kernel 30%  busy 50%",
		"stops: read_fault 11.1%  sfbpf CPU 0.4% BPF 0.1% RSS 20M  tables 1.0M/2 files",
		"1 Functions 2 Processes 3 Call tree 4 Callers 5 Modules 6 Flame 7 Off-CPU 8 Wall",
		"all                                                                     1-8 of 8",
		" SELF%▾  TOTAL%  KERN% FUNCTION                                MODULE",
		"   30.0    30.0    0.0 hash_word                               demo",
		"   20.0    50.0    0.0 parse_line                              demo",
		"   20.0    20.0  100.0 vfs_read_[k]                            [kernel]",
		"   20.0    20.0    0.0 worker                                  demo",
		"   10.0    10.0  100.0 process_one_work_[k]                    [kernel]",
		"    0.0    70.0   28.6 demo_main                               demo",
		"    0.0    20.0  100.0 do_syscall_64_[k]                       [kernel]",
		"    0.0    10.0    0.0 [libx.so+0x1a2b]                        libx.so", "", "",
		"", "", "", "", "", "", "", "",
		"F1 Help  q Quit  Tab View  Enter Zoom  Esc Back  F6 Sort  / Filter  Z Pause");
	tear_down(&f);
}

TEST(functions_40x10)
{
	struct fixture f;

	set_up(&f, 40, 10);
	EXPECT_SCREEN(&f, "20 samples/s  lost 0  complete 88.9%",
		      " 1 Functions  2  3  4  5  6  7  8  all", " SELF%▾  TOTAL% FUNCTION",
		      "   30.0    30.0 hash_word", "   20.0    50.0 parse_line",
		      "   20.0    20.0 vfs_read_[k]", "   20.0    20.0 worker",
		      "   10.0    10.0 process_one_work_[k]", "    0.0    70.0 demo_main",
		      "F1 Help  q Quit  Tab View  Enter Zoom");
	tear_down(&f);
}

TEST(functions_120x40)
{
	struct fixture f;

	set_up(&f, 120, 40);
	draw(&f);
	EXPECT_STR(line(&f, 0),
		   "sfbpf top  last 5s  20 samples/s  lost 0  complete 88.9%  kernel 30%  "
		   "busy 50%");
	EXPECT_STR(line(&f, 1),
		   "stops: read_fault 11.1%  sfbpf CPU 0.4% BPF 0.1% RSS 20M  tables 1.0M/2 files  "
		   "cpu-clock 99 Hz, all processes");
	EXPECT_STR(line(&f, 5), "   30.0    30.0    0.0 hash_word                             "
				"                                demo");
	tear_down(&f);
}

TEST(processes)
{
	struct fixture f;

	set_up(&f, 80, 16);
	press(&f, '2');
	EXPECT_STR(line(&f, 4),
		   "     PID SELF%▾  KERN%  COMPL% NAME              HOTTEST FUNCTION");
	EXPECT_STR(line(&f, 5), "     100   70.0   28.6   100.0 ▸ demo            hash_word");
	/*
	 * Two thread names as busy: the smaller one names the process; the escape sequence in it is
	 * harmless.
	 */
	EXPECT_STR(line(&f, 6), "     200   20.0    0.0    50.0 ▸ pool.[2J +1     worker");
	EXPECT_STR(line(&f, 7),
		   "     300   10.0  100.0       - ▸ kworker/0:1     process_one_work_[k]");
	press(&f, 'j');
	press(&f, ' ');
	EXPECT_STR(line(&f, 6), "     200   20.0    0.0    50.0 ▾ pool.[2J +1     worker");
	EXPECT_STR(line(&f, 7), "     200   10.0    0.0     0.0   ▸ pool.[2J      worker");
	EXPECT_STR(line(&f, 8), "     200   10.0    0.0   100.0   ▸ pool-1        worker");
	press(&f, 'C');
	EXPECT_STR(line(&f, 7),
		   "     300   10.0  100.0       - ▸ kworker/0:1     process_one_work_[k]");
	press(&f, 'E');
	EXPECT_STR(line(&f, 7), "           20.0                                  vfs_read_[k]");
	/* A process's hot functions; into one is into both. */
	press(&f, 'C');
	press(&f, 'g');
	press(&f, ' ');
	EXPECT_STR(line(&f, 6), "           30.0                                  hash_word");
	press(&f, 'j');
	press(&f, 'j');
	press(&f, KEY_RETURN); /* a hot function */
	EXPECT_STR(
		line(&f, 3),
		"all › demo (100) › vfs_read_[k]  20.0% of all samples                   1-1 of 1");
	press(&f, KEY_ESCAPE);
	press(&f, KEY_ESCAPE);
	EXPECT_EQ(f.ui.view, VIEW_PROCESSES);
	press(&f, '-'); /* to the process; and close it */
	press(&f, '-');
	EXPECT(strstr(line(&f, 6), "pool."));
	tear_down(&f);
}

TEST(call_tree)
{
	struct fixture f;

	set_up(&f, 80, 24);
	press(&f, '3');
	EXPECT_STR(line(&f, 5), "    70.0    0.0 ▾ demo");
	EXPECT_STR(line(&f, 6),
		   "    70.0    0.0   ▾ demo_main                                  demo");
	EXPECT_STR(line(&f, 7),
		   "    50.0   20.0     ▾ parse_line                               demo");
	EXPECT_STR(line(&f, 8),
		   "    30.0   30.0         hash_word                              demo");
	EXPECT_STR(line(&f, 9),
		   "    20.0    0.0     ▾ do_syscall_64_[k]                        [kernel]");
	EXPECT_STR(line(&f, 10),
		   "    20.0   20.0         vfs_read_[k]                           [kernel]");
	EXPECT(shows(&f, "[incomplete:read_fault]"));
	EXPECT(shows(&f, "pool.[2J"));
	press(&f, '-');
	EXPECT_STR(line(&f, 5), "    70.0    0.0 ▸ demo");
	press(&f, '+');
	press(&f, 'C');
	EXPECT(!shows(&f, "demo_main"));
	press(&f, 'E');
	EXPECT(shows(&f, "vfs_read_[k]"));
	tear_down(&f);
}

TEST(callers)
{
	struct fixture f;

	set_up(&f, 80, 24);
	press(&f, KEY_RETURN); /* into hash_word */
	EXPECT_EQ(f.ui.view, VIEW_CALLERS);
	EXPECT_STR(
		line(&f, 3),
		"all › hash_word  30.0% of all samples                                   1-3 of 3");
	EXPECT_STR(line(&f, 5),
		   "   100.0  100.0 ▾ hash_word                                    demo");
	EXPECT_STR(line(&f, 6),
		   "   100.0  100.0   ▾ parse_line                                 demo");
	EXPECT_STR(line(&f, 7),
		   "   100.0  100.0     demo_main                                  demo");
	press(&f, '2'); /* whose is it? */
	EXPECT_STR(line(&f, 5), "     100  100.0    0.0   100.0 ▸ demo            hash_word");
	EXPECT_STR(line(&f, 6), "");
	EXPECT_EQ(press(&f, KEY_ESCAPE), UI_DRAW);
	EXPECT_EQ(f.ui.view, VIEW_FUNCTIONS);
	EXPECT_EQ(f.ui.sel.n, 0);
	EXPECT_EQ(press(&f, KEY_ESCAPE), 0);
	tear_down(&f);
}

/* Without a zoom the callers view opens where the cursor of the functions was. */
TEST(callers_of_the_picked)
{
	struct fixture f;

	set_up(&f, 80, 24);
	press(&f, 'j'); /* parse_line */
	press(&f, '4');
	EXPECT_STR(symbolizer_name(f.symbols, f.ui.tree.nodes[ui_current(&f.ui)->index].id),
		   "parse_line");
	tear_down(&f);
}

TEST(modules)
{
	struct fixture f;

	set_up(&f, 80, 24);
	press(&f, '5');
	EXPECT_STR(line(&f, 4),
		   " SELF%▾  TOTAL%  COMPL% TABLES       ROWS  BYTES ENDS         MODULE");
	EXPECT_STR(line(&f, 5),
		   "   70.0    90.0    88.9 eh_frame     1234   6.0k              demo");
	EXPECT_STR(line(&f, 6),
		   "   30.0    30.0   100.0 -               -      -              [kernel]");
	EXPECT_STR(line(&f, 7),
		   "    0.0    10.0     0.0 none            0      0 read_fault   libx.so");
	EXPECT_STR(line(&f, 8),
		   "    0.0     0.0       - eh_frame       77    385              libidle.so");
	press(&f, KEY_RETURN);
	EXPECT_STR(
		line(&f, 3),
		"all › demo  90.0% of all samples                                        1-4 of 4");
	EXPECT(!shows(&f, "[kernel]"));
	press(&f, KEY_ESCAPE);
	press(&f, K_END);
	press(&f, KEY_RETURN);
	EXPECT(shows(&f, "this module has no samples"));
	tear_down(&f);
}

TEST(flame)
{
	struct fixture f;

	set_up(&f, 50, 16);
	press(&f, '6');
	EXPECT_STR(line(&f, 4), "▏all");
	EXPECT_STR(line(&f, 5), "▏demo                              ▏kwo…▏poo…▏poo…");
	EXPECT_STR(line(&f, 6), "▏demo_main                         ▏pro…▏wor…▏[in…");
	EXPECT_STR(line(&f, 7), "▏do_sysca…▏parse_line                        ▏[li…");
	EXPECT_STR(line(&f, 14), "100.0%  all 100 samples shown");
	press(&f, K_DOWN);
	EXPECT_STR(line(&f, 14), "70.0%  self 0.0%  demo");
	press(&f, K_RIGHT);
	EXPECT_STR(line(&f, 14), "10.0%  self 0.0%  kworker/0:1");
	press(&f, K_LEFT);
	press(&f, 'j');
	press(&f, 'j');
	EXPECT_STR(line(&f, 14), "50.0%  self 20.0%  parse_line  in demo");
	press(&f, KEY_RETURN);
	EXPECT_STR(line(&f, 4), "▏50 samples");
	EXPECT_STR(line(&f, 5), "▏parse_line");
	EXPECT_STR(line(&f, 6), "▏hash_word");
	press(&f, KEY_ESCAPE);
	press(&f, K_UP);
	EXPECT_STR(line(&f, 14), "70.0%  self 0.0%  demo_main  in demo");
	tear_down(&f);
}

/* ---- Keys ---- */

TEST(sorting)
{
	struct fixture f;

	set_up(&f, 80, 24);
	press(&f, 'T');
	EXPECT_STR(line(&f, 5),
		   "    0.0    70.0   28.6 demo_main                               demo");
	press(&f, 'I');
	EXPECT(strstr(line(&f, 4), "TOTAL%▴"));
	EXPECT_STR(line(&f, 5),
		   "    0.0    10.0    0.0 [libx.so+0x1a2b]                        libx.so");
	press(&f, '>');
	EXPECT(strstr(line(&f, 4), "KERN%▾"));
	EXPECT_STR(line(&f, 5),
		   "   20.0    20.0  100.0 vfs_read_[k]                            [kernel]");
	press(&f, '>');
	EXPECT_STR(line(&f, 5),
		   "    0.0    10.0    0.0 [libx.so+0x1a2b]                        libx.so");
	press(&f, '<');
	press(&f, 'P');
	EXPECT_STR(line(&f, 5),
		   "   30.0    30.0    0.0 hash_word                               demo");
	press(&f, '2');
	press(&f, 'N');
	press(&f, 'I');
	EXPECT_STR(line(&f, 5),
		   "     300   10.0  100.0       - ▸ kworker/0:1     process_one_work_[k]");
	EXPECT_EQ(press(&f, 'T'), 0); /* processes have no total */
	tear_down(&f);
}

TEST(filter)
{
	struct fixture f;

	set_up(&f, 80, 24);
	press(&f, '/');
	type(&f, "WORX");
	press(&f, KEY_RUBOUT);
	EXPECT_STR(f.ui.typed, "WOR");
	EXPECT(strstr(line(&f, 23), "Filter: WOR"));
	press(&f, KEY_RETURN);
	EXPECT_STR(line(&f, 5),
		   "   30.0    30.0    0.0 hash_word                               demo");
	EXPECT_STR(line(&f, 6),
		   "   20.0    20.0    0.0 worker                                  demo");
	EXPECT_STR(line(&f, 7),
		   "   10.0    10.0  100.0 process_one_work_[k]                    [kernel]");
	EXPECT_STR(line(&f, 8), "");
	press(&f, 'n');
	EXPECT_EQ(f.ui.pos[VIEW_FUNCTIONS].cursor, 1);
	press(&f, '3'); /* trees keep all rows: they mark, and open the way */
	press(&f, 'C');
	press(&f, 'n');
	EXPECT_STR(symbolizer_name(f.symbols, f.ui.tree.nodes[ui_current(&f.ui)->index].id),
		   "hash_word");
	press(&f, KEY_ESCAPE);
	EXPECT_STR(f.ui.filter, "");
	press(&f, '/');
	type(&f, "nosuch");
	press(&f, KEY_RETURN);
	press(&f, '1');
	EXPECT(shows(&f, "nothing matches 'nosuch'"));
	tear_down(&f);
}

TEST(hide_kernel)
{
	struct fixture f;

	set_up(&f, 80, 24);
	press(&f, 'K');
	EXPECT(shows(&f, "kernel hidden"));
	EXPECT(!shows(&f, "vfs_read"));
	EXPECT_STR(line(&f, 6),
		   "   20.0    70.0   28.6 demo_main                               demo");
	EXPECT(shows(&f, "[no stack]"));
	press(&f, 'K');
	EXPECT(shows(&f, "vfs_read"));
	tear_down(&f);
}

TEST(cursor_stays_on_its_row)
{
	struct profile *next = profile_new();
	struct fixture f;

	set_up(&f, 80, 24);
	press(&f, 'j'); /* parse_line */
	profile_merge(next, f.profile);
	add(next, &(struct made){ 100, "demo", 50, SF_STOP_COMPLETE, false, 1, 0, { at(worker) } });
	EXPECT_EQ(ui_refresh(&f.ui, next, &f.sum), 0);
	EXPECT_STR(f.ui.census.functions[ui_current(&f.ui)->index].name, "parse_line");
	EXPECT_EQ(f.ui.pos[VIEW_FUNCTIONS].cursor, 2);
	press(&f, 'g'); /* at the top it stays at the top */
	EXPECT_EQ(ui_refresh(&f.ui, f.profile, &f.sum), 0);
	EXPECT_EQ(f.ui.pos[VIEW_FUNCTIONS].cursor, 0);
	press(&f, 'F'); /* unless it follows: hash_word */
	EXPECT_EQ(ui_refresh(&f.ui, next, &f.sum), 0);
	EXPECT_STR(f.ui.census.functions[ui_current(&f.ui)->index].name, "hash_word");
	EXPECT_EQ(f.ui.pos[VIEW_FUNCTIONS].cursor, 1);
	tear_down(&f);
	profile_free(next);
}

TEST(baseline)
{
	struct profile *next = profile_new();
	struct fixture f;

	set_up(&f, 80, 24);
	press(&f, 'b');
	profile_merge(next, f.profile);
	add(next,
	    &(struct made){ 100, "demo", 100, SF_STOP_COMPLETE, false, 1, 0, { at(worker) } });
	EXPECT_EQ(ui_refresh(&f.ui, next, &f.sum), 0);
	draw(&f);
	EXPECT_STR(line(&f, 5),
		   "   60.0    60.0    0.0  +40.0 worker                           demo");
	EXPECT_STR(line(&f, 6),
		   "   15.0    15.0    0.0  -15.0 hash_word                        demo");
	press(&f, 'b');
	EXPECT(!shows(&f, "DIFF"));
	tear_down(&f);
	profile_free(next);
}

TEST(flags_for_the_caller)
{
	struct fixture f;

	set_up(&f, 80, 24);
	EXPECT_EQ(press(&f, 'q'), UI_QUIT);
	EXPECT_EQ(press(&f, K_F0 + 10), UI_QUIT);
	EXPECT_EQ(press(&f, 'w'), UI_DRAW | UI_WINDOW);
	EXPECT_EQ(f.ui.span, LIVE_30S);
	EXPECT_EQ(press(&f, 'z'), UI_DRAW | UI_RESET);
	EXPECT_EQ(press(&f, 'Z'), UI_DRAW);
	EXPECT(strstr(line(&f, 0), "PAUSED"));
	EXPECT_EQ(press(&f, 'Z'), UI_DRAW | UI_RESUMED);
	EXPECT_EQ(press(&f, 'W'), UI_DRAW | UI_WRITE);
	EXPECT_EQ(press(&f, '!'), 0);
	press(&f, 'd');
	type(&f, "2.5");
	press(&f, KEY_RETURN);
	EXPECT_EQ(f.ui.delay_ns, 2500000000ll);
	press(&f, 'd');
	type(&f, "0");
	press(&f, KEY_RETURN);
	EXPECT(shows(&f, "the delay must be"));
	EXPECT_EQ(f.ui.delay_ns, 2500000000ll);
	tear_down(&f);
}

TEST(mouse)
{
	struct fixture f;

	set_up(&f, 80, 24);
	draw(&f);
	mouse(&f, MOUSE_CLICK, 30, 6);
	EXPECT_EQ(f.ui.pos[VIEW_FUNCTIONS].cursor, 1);
	mouse(&f, MOUSE_CLICK, 10, 4); /* TOTAL% */
	EXPECT_EQ(f.ui.pos[VIEW_FUNCTIONS].sort, COL_TOTAL);
	mouse(&f, MOUSE_CLICK, 10, 4);
	EXPECT(f.ui.pos[VIEW_FUNCTIONS].invert);
	mouse(&f, MOUSE_CLICK, 20, 2);
	EXPECT_EQ(f.ui.view, VIEW_PROCESSES);
	mouse(&f, MOUSE_WHEEL_DOWN, 20, 8);
	EXPECT_EQ(f.ui.pos[VIEW_PROCESSES].cursor, 2);
	mouse(&f, MOUSE_WHEEL_UP, 20, 8);
	mouse(&f, MOUSE_DOUBLE, 20, 5);
	EXPECT_EQ(f.ui.sel.n, 1);
	mouse(&f, MOUSE_CLICK, 1, 23); /* F1 Help */
	EXPECT(f.ui.help);
	mouse(&f, MOUSE_CLICK, 1, 5);
	EXPECT(!f.ui.help);
	EXPECT_EQ(mouse(&f, MOUSE_CLICK, 11, 23), UI_QUIT);
	tear_down(&f);
}

TEST(help_lists_every_binding)
{
	struct fixture f;
	char keys[64];

	set_up(&f, 100, 80);
	press(&f, 'h');
	for (size_t i = 0; keys_at(i); i++)
		if (keys_at(i)->help)
			EXPECT(shows(&f, keys_text(keys_at(i), keys, sizeof(keys))) &&
			       shows(&f, keys_at(i)->help));
	/* No key means two things in one view. */
	for (size_t i = 0; keys_at(i); i++)
		for (size_t k = 0; k < 4 && keys_at(i)->keys[k]; k++)
			for (int v = 0; v < VIEW_MAX; v++)
				if (keys_work(keys_at(i), (enum view)v))
					EXPECT_EQ(keys_find(keys_at(i)->keys[k], (enum view)v),
						  keys_at(i)->action);
	ui_resize(&f.ui, 40, 10);
	for (int i = 0; i < 60; i++)
		press(&f, K_DOWN);
	EXPECT(shows(&f, "Mouse"));
	press(&f, 'x');
	EXPECT(!f.ui.help);
	tear_down(&f);
}

/* ---- Robustness ---- */

static void check_cells(struct fixture *f)
{
	for (int y = 0; y < f->grid.h; y++)
		for (int x = 0; x < f->grid.w; x++) {
			const struct cell *c = grid_cell(&f->grid, x, y);

			if ((c->ch && c->ch < 0x20) || (c->ch >= 0x7f && c->ch < 0xa0) ||
			    c->role >= ROLE_MAX || (!f->grid.unicode && c->ch > 0x7e)) {
				EXPECT_EQ(c->ch, ' ');
				return;
			}
		}
}

static uint32_t some(uint32_t *state, uint32_t n)
{
	*state = *state * 1664525u + 1013904223u;
	return (*state >> 8) % n;
}

TEST(any_keys_at_any_size)
{
	struct profile *empty = profile_new(), *one = profile_new();
	uint32_t state = 7;
	struct fixture f;

	set_up(&f, 80, 24);
	fill(one);
	for (int i = 0; i < 20000; i++) {
		uint32_t what = some(&state, 40);
		size_t n = 0;

		while (keys_at(n))
			n++;
		f.grid.unicode = some(&state, 2);
		if (what == 0) {
			ui_resize(&f.ui, (int)some(&state, 130) + 1, (int)some(&state, 50) + 1);
		} else if (what == 1) {
			EXPECT_EQ(ui_refresh(&f.ui, some(&state, 4) ? one : empty, &f.sum), 0);
		} else if (what == 2) {
			mouse(&f, (int)some(&state, 4) + 1, (int)some(&state, 140),
			      (int)some(&state, 60));
		} else if (what < 5) {
			press(&f, some(&state, 128));
		} else {
			const struct binding *b = keys_at(some(&state, (uint32_t)n));

			press(&f, b->keys[some(&state, 2)]);
		}
		draw(&f);
		check_cells(&f);
		EXPECT(!f.ui.nrows || f.ui.pos[f.ui.view].cursor < f.ui.nrows);
	}
	tear_down(&f);
	profile_free(empty);
	profile_free(one);
}

TEST(ascii_only)
{
	struct fixture f;

	set_up(&f, 80, 24);
	f.grid.unicode = false;
	draw(&f);
	EXPECT_STR(line(&f, 4),
		   " SELF%v  TOTAL%  KERN% FUNCTION                                MODULE");
	press(&f, '3');
	EXPECT_STR(line(&f, 5), "    70.0    0.0 - demo");
	check_cells(&f);
	tear_down(&f);
}

/* ---- Windows ---- */

TEST(windows)
{
	struct live *l = live_new();
	struct live_counters c = { .taken = 0 };
	struct profile *p = profile_new();
	struct live_sum sum;
	struct fixture f;
	uint64_t now = 0;

	set_up(&f, 80, 24);
	live_start(l, &c, now);
	for (int i = 0; i < 40; i++) { /* 40 slices of a second; one loses a sample */
		fill(p);
		c.taken += 100;
		c.lost[SF_LOST_RING_FULL] += i == 36;
		now += 1000000000ull;
		p = live_take(l, p, f.symbols, &c, now, false);
		EXPECT_EQ(profile_count(p), 0);
	}
	EXPECT_EQ(profile_samples(live_window(l, LIVE_5S, &sum)), 500);
	EXPECT_EQ(sum.c.taken, 500);
	EXPECT_EQ(sum.c.lost[SF_LOST_RING_FULL], 1);
	EXPECT_EQ((int)sum.seconds, 5);
	EXPECT_EQ(profile_samples(live_window(l, LIVE_30S, &sum)), 3000);
	EXPECT_EQ(profile_samples(live_window(l, LIVE_ALL, &sum)), 4000);
	now += 20000000000ull; /* late samples count in the whole only */
	fill(p);
	c.taken += 100;
	p = live_take(l, p, f.symbols, &c, now, true);
	EXPECT_EQ(profile_samples(live_window(l, LIVE_5S, &sum)), 500);
	EXPECT_EQ(profile_samples(live_window(l, LIVE_ALL, &sum)), 4100);
	for (int i = 0; i < 4; i++) { /* short slices join */
		fill(p);
		now += 250000000ull;
		p = live_take(l, p, f.symbols, &c, now, false);
	}
	EXPECT_EQ(profile_samples(live_window(l, LIVE_5S, &sum)), 800);
	EXPECT_EQ((int)(sum.seconds * 10 + 0.5), 50);
	live_reset(l);
	EXPECT_EQ(profile_samples(live_window(l, LIVE_ALL, &sum)), 0);
	live_free(l);
	profile_free(p);
	tear_down(&f);
}

/* ---- Sums ---- */

TEST(self_adds_up)
{
	uint64_t functions = 0, processes = 0, modules = 0, threads = 0;
	struct fixture f;

	set_up(&f, 80, 24);
	EXPECT_EQ(census_build(&f.ui.census, f.profile, f.symbols, f.modules, &f.ui.sel,
			       CENSUS_FUNCTIONS | CENSUS_PROCESSES | CENSUS_MODULES),
		  0);
	for (size_t i = 0; i < f.ui.census.nfunctions; i++)
		functions += f.ui.census.functions[i].self;
	for (size_t i = 0; i < f.ui.census.nprocesses; i++)
		processes += f.ui.census.processes[i].self;
	for (size_t i = 0; i < f.ui.census.nthreads; i++)
		threads += f.ui.census.threads[i].self;
	for (size_t i = 0; i < f.ui.census.nmodules; i++)
		modules += f.ui.census.modules[i].self;
	EXPECT_EQ(functions, 100);
	EXPECT_EQ(processes, 100);
	EXPECT_EQ(threads, 100);
	EXPECT_EQ(modules, 100);
	tear_down(&f);
}

/* ---- Batch ---- */

TEST(batch_pages)
{
	struct batch_page page = { .number = 3, .unix_ns = 1700000000000000000ull, .rows = 2 };
	struct fixture f;
	char *text = NULL;
	size_t len = 0;
	FILE *out;

	set_up(&f, 80, 24);
	f.ui.all_tables = true;
	EXPECT_EQ(ui_refresh(&f.ui, f.profile, &f.sum), 0);
	out = open_memstream(&text, &len);
	EXPECT_EQ(batch_text(&f.ui, &page, out), 0);
	fclose(out);
	EXPECT_STR(text,
		   "# sfbpf top: page 3, 2023-11-14T22:13:20Z, 5.00 s, cpu-clock 99 Hz, "
		   "all processes\n"
		   "# samples 100, rate 20.0/s, lost 0, complete 88.89%, kernel 30.00%\n"
		   "# stops: read_fault=10\n"
		   "# lost:\n"
		   "# sfbpf: cpu 0.40%, bpf 0.10%, rss 20480 kB, tables 1048576 bytes of 2 files, "
		   "evicted 0, refused 0, parsers died 0, files lost 0, names lost 0\n"
		   "# SELF%  TOTAL%   KERN% MODULE                   FUNCTION\n"
		   "  30.00   30.00    0.00 demo                     hash_word\n"
		   "  20.00   50.00    0.00 demo                     parse_line\n"
		   "#   PID   SELF%   KERN%  COMPL% NAME\n"
		   "    100   70.00   28.57  100.00 demo\n"
		   "    200   20.00    0.00   50.00 pool.[2J\n");
	free(text);
	text = NULL;
	out = open_memstream(&text, &len);
	page.rows = 1;
	EXPECT_EQ(batch_json(&f.ui, &page, out), 0);
	fclose(out);
	EXPECT(strstr(text, "\"functions\":[{\"name\":\"hash_word\",\"module\":\"demo\","
			    "\"self\":30,\"total\":30,\"kernel\":0}]"));
	EXPECT(strstr(text, "\"processes\":[{\"pid\":100,\"comm\":\"demo\",\"cgroup\":\"\","
			    "\"samples\":70,\"kernel\":20,\"user_stacks\":70,\"complete\":70}]}"));
	EXPECT_EQ(strchr(text, '\n') - text, (long)len - 1);
	free(text);
	tear_down(&f);
}
