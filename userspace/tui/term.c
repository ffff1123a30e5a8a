/* SPDX-License-Identifier: BSD-2-Clause */
#include "tui/term.h"

#include <curses.h>
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <term.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

#include "base/num.h"

#define DOUBLE_CLICK_MS 400
#define CRASH_STACK	32768

/* Whatever the signal handlers read is set before they are installed. */
static struct {
	bool open;
	SCREEN *screen;
	struct termios modes; /* modes from before term_open */
	/* Bytes that restore the terminal after a crash */
	char reset[256];
	size_t nreset;
	int held_stderr; /* the original stderr while the screen is open; else -1 */
	attr_t attrs[ROLE_MAX];
	short pairs[ROLE_MAX];
	bool changed;
	long clicked_ms;
	int clicked_x, clicked_y;
} term = { .held_stderr = -1 };

static volatile sig_atomic_t stop_wanted, suspend_wanted, resumed;
static char crash_stack[CRASH_STACK];

bool term_unicode(void)
{
	return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

/* ---- Restoring the terminal ---- */

static int collect_reset(int c)
{
	if (term.nreset < sizeof(term.reset))
		term.reset[term.nreset++] = (char)c;
	return c;
}

static void add_reset(const char *capability)
{
	const char *s = tigetstr((char *)capability);

	if (s && s != (const char *)-1)
		tputs(s, 1, collect_reset);
}

static void prepare_reset(void)
{
	static const char mouse_off[] = "\033[?1006l\033[?1002l\033[?1000l";
	const char *mouse = tigetstr("kmous");

	term.nreset = 0;
	for (size_t i = 0; mouse && mouse != (const char *)-1 && mouse_off[i]; i++)
		collect_reset(mouse_off[i]);
	add_reset("rmkx");
	add_reset("sgr0");
	add_reset("op");
	add_reset("cnorm");
	add_reset("rmcup");
}

/* Async-signal-safe. */
static void emergency(void)
{
	ssize_t n = write(STDOUT_FILENO, term.reset, term.nreset);

	(void)n;
	tcsetattr(STDIN_FILENO, TCSANOW, &term.modes);
	if (term.held_stderr >= 0)
		dup2(term.held_stderr, STDERR_FILENO);
}

static void die_of(int sig)
{
	struct sigaction dfl = { .sa_handler = SIG_DFL };
	sigset_t set;

	sigaction(sig, &dfl, NULL);
	sigemptyset(&set);
	sigaddset(&set, sig);
	raise(sig);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static void on_crash(int sig)
{
	static const char words[] = "sfbpf: crashed; the terminal was restored\n";
	ssize_t n;

	emergency();
	n = write(STDERR_FILENO, words, sizeof(words) - 1);
	(void)n;
	die_of(sig);
}

/* The first signal asks the main loop to end. The second one ends the program at once. */
static void on_stop(int sig)
{
	if (stop_wanted) {
		emergency();
		die_of(sig);
	}
	stop_wanted = 1;
}

static void on_suspend(int sig)
{
	(void)sig;
	suspend_wanted = 1;
}

static void on_continue(int sig)
{
	(void)sig;
	resumed = 1;
}

static void handle(int sig, void (*fn)(int), int flags)
{
	struct sigaction sa = { .sa_handler = fn, .sa_flags = flags };

	sigemptyset(&sa.sa_mask);
	sigaction(sig, &sa, NULL);
}

static void install_handlers(void)
{
	static const int crashes[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGQUIT };
	stack_t stack = { .ss_sp = crash_stack, .ss_size = sizeof(crash_stack) };

	sigaltstack(&stack, NULL);
	for (size_t i = 0; i < sizeof(crashes) / sizeof(crashes[0]); i++)
		handle(crashes[i], on_crash, SA_ONSTACK);
	handle(SIGINT, on_stop, 0);
	handle(SIGTERM, on_stop, 0);
	handle(SIGHUP, on_stop, 0);
	handle(SIGTSTP, on_suspend, 0);
	handle(SIGCONT, on_continue, 0);
}

static void remove_handlers(void)
{
	static const int ours[] = { SIGSEGV, SIGBUS,  SIGFPE,  SIGILL,
				    SIGABRT, SIGQUIT, SIGTSTP, SIGCONT };

	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		handle(ours[i], SIG_DFL, 0);
}

/* Messages would damage the screen, so they are kept in memory until it is closed. */
static void hold_stderr(void)
{
	int fd = memfd_create("stderr", MFD_CLOEXEC);

	if (fd < 0)
		return;
	term.held_stderr = dup(STDERR_FILENO);
	if (term.held_stderr >= 0)
		dup2(fd, STDERR_FILENO);
	close(fd);
}

static void release_stderr(void)
{
	char buf[4096];
	ssize_t n;
	int fd;

	if (term.held_stderr < 0)
		return;
	fflush(stderr);
	fd = dup(STDERR_FILENO);
	dup2(term.held_stderr, STDERR_FILENO);
	close(term.held_stderr);
	term.held_stderr = -1;
	if (fd < 0)
		return;
	lseek(fd, 0, SEEK_SET);
	while ((n = read(fd, buf, sizeof(buf))) > 0)
		if (write(STDERR_FILENO, buf, (size_t)n) != n)
			break;
	close(fd);
}

/* ---- Looks ---- */

struct look {
	short fg, bg; /* one of 8 colours; -1: the default colour of the terminal */
	short fg256, bg256;
	attr_t attr, mono; /* attributes with and without colours */
};

static const struct look looks[ROLE_MAX] = {
	[ROLE_TEXT] = { -1, -1, -1, -1, A_NORMAL, A_NORMAL },
	[ROLE_DIM] = { -1, -1, 245, -1, A_NORMAL, A_NORMAL },
	[ROLE_STRONG] = { -1, -1, -1, -1, A_BOLD, A_BOLD },
	[ROLE_GOOD] = { COLOR_GREEN, -1, COLOR_GREEN, -1, A_NORMAL, A_NORMAL },
	[ROLE_WARN] = { COLOR_YELLOW, -1, COLOR_YELLOW, -1, A_BOLD, A_BOLD },
	[ROLE_BAD] = { COLOR_RED, -1, 203, -1, A_BOLD, A_BOLD | A_UNDERLINE },
	[ROLE_TITLE] = { COLOR_BLACK, COLOR_GREEN, 16, 71, A_NORMAL, A_REVERSE },
	[ROLE_TITLE_ON] = { COLOR_BLACK, COLOR_CYAN, 16, 80, A_NORMAL, A_REVERSE | A_BOLD },
	[ROLE_TAB] = { COLOR_WHITE, COLOR_BLUE, 252, 24, A_NORMAL, A_NORMAL },
	[ROLE_TAB_ON] = { COLOR_BLACK, COLOR_WHITE, 16, 252, A_NORMAL, A_REVERSE },
	[ROLE_KERNEL] = { COLOR_MAGENTA, -1, 176, -1, A_NORMAL, A_NORMAL },
	[ROLE_MATCH] = { COLOR_BLACK, COLOR_YELLOW, 16, 226, A_NORMAL, A_BOLD | A_UNDERLINE },
	[ROLE_CURSOR] = { COLOR_BLACK, COLOR_CYAN, 16, 80, A_NORMAL, A_REVERSE },
	[ROLE_KEY] = { -1, -1, -1, -1, A_BOLD, A_BOLD },
	[ROLE_LABEL] = { COLOR_BLACK, COLOR_CYAN, 16, 73, A_NORMAL, A_REVERSE },
	[ROLE_FLAME] = { COLOR_BLACK, COLOR_YELLOW, 16, 215, A_NORMAL, A_NORMAL },
	[ROLE_FLAME + 1] = { COLOR_BLACK, COLOR_RED, 16, 209, A_NORMAL, A_NORMAL },
	[ROLE_FLAME + 2] = { COLOR_BLACK, COLOR_YELLOW, 16, 221, A_NORMAL, A_NORMAL },
	[ROLE_FLAME + 3] = { COLOR_BLACK, COLOR_RED, 16, 180, A_NORMAL, A_NORMAL },
	[ROLE_FLAME_KERNEL] = { COLOR_BLACK, COLOR_MAGENTA, 16, 176, A_NORMAL, A_NORMAL },
};

void term_color(bool color)
{
	color = color && has_colors() && start_color() == OK;
	if (color)
		use_default_colors();
	for (short i = 0; i < ROLE_MAX; i++) {
		const struct look *l = &looks[i];
		bool many = COLORS >= 256;

		term.attrs[i] = color ? l->attr : l->mono;
		term.pairs[i] = 0;
		if (!color || (l->fg256 < 0 && l->bg256 < 0))
			continue;
		if (init_pair((short)(i + 1), many ? l->fg256 : l->fg, many ? l->bg256 : l->bg) ==
		    OK)
			term.pairs[i] = (short)(i + 1);
	}
}

/* ---- Open and close ---- */

/*
 * Key sequences that terminals send although they are not in the terminfo entry of $TERM: tmux and
 * screen with TERM=xterm, PuTTY, rxvt.
 */
static void add_keys(void)
{
	static const struct {
		const char *bytes;
		int key;
	} keys[] = {
		{ "\033[H", KEY_HOME },	  { "\033OH", KEY_HOME },   { "\033[1~", KEY_HOME },
		{ "\033[7~", KEY_HOME },  { "\033[F", KEY_END },    { "\033OF", KEY_END },
		{ "\033[4~", KEY_END },	  { "\033[8~", KEY_END },   { "\033[A", KEY_UP },
		{ "\033[B", KEY_DOWN },	  { "\033[C", KEY_RIGHT },  { "\033[D", KEY_LEFT },
		{ "\033[11~", KEY_F(1) }, { "\033[12~", KEY_F(2) }, { "\033[13~", KEY_F(3) },
		{ "\033[14~", KEY_F(4) }, { "\033OP", KEY_F(1) },   { "\033OQ", KEY_F(2) },
		{ "\033OR", KEY_F(3) },	  { "\033OS", KEY_F(4) },   { "\033[Z", KEY_BTAB },
	};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (key_defined(keys[i].bytes) <= 0)
			define_key(keys[i].bytes, keys[i].key);
}

static void set_modes(void)
{
	cbreak(); /* the keyboard still generates signals */
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	add_keys();
	nodelay(stdscr, TRUE);
	curs_set(0);
	mouseinterval(0); /* report presses at once; read_mouse detects double clicks */
	mousemask(BUTTON1_PRESSED | BUTTON4_PRESSED | BUTTON5_PRESSED, NULL);
}

int term_open(bool color)
{
	static const char *const like[] = { "xterm-256color", "xterm", "linux", "vt100" };

	if (tcgetattr(STDIN_FILENO, &term.modes))
		return -ENOTTY;
	install_handlers(); /* called before newterm, which keeps existing handlers */
	set_escdelay(25);
	term.screen = newterm(NULL, stdout, stdin);
	/* Terminals without an entry on this machine are nearly always like xterm. */
	for (size_t i = 0; !term.screen && i < sizeof(like) / sizeof(like[0]); i++)
		term.screen = newterm(like[i], stdout, stdin);
	if (!term.screen) {
		remove_handlers();
		return -ENOTTY;
	}
	term.open = true;
	prepare_reset();
	hold_stderr();
	term_color(color);
	set_modes();
	return 0;
}

void term_close(void)
{
	if (!term.open)
		return;
	endwin();
	tcsetattr(STDIN_FILENO, TCSADRAIN, &term.modes);
	delscreen(term.screen);
	term.screen = NULL;
	term.open = false;
	remove_handlers();
	release_stderr();
}

void term_size(int *ret_w, int *ret_h)
{
	getmaxyx(stdscr, *ret_h, *ret_w);
}

/* ---- Waiting and reading ---- */

static void suspend(void)
{
	suspend_wanted = 0;
	endwin();
	tcsetattr(STDIN_FILENO, TCSADRAIN, &term.modes);
	handle(SIGTSTP, SIG_DFL, 0);
	raise(SIGTSTP);
	handle(SIGTSTP, on_suspend, 0);
	resumed = 1;
}

void term_wait(int fd, int timeout_ms)
{
	struct pollfd fds[] = { { .fd = STDIN_FILENO, .events = POLLIN },
				{ .fd = fd, .events = POLLIN } };

	if (suspend_wanted)
		suspend();
	if (resumed) {
		resumed = 0;
		reset_prog_mode();
		curs_set(0);
		clearok(curscr, TRUE);
		term.changed = true;
		return;
	}
	if (poll(fds, 2, timeout_ms) > 0 && (fds[0].revents & (POLLHUP | POLLERR | POLLNVAL)))
		stop_wanted = 1;
}

bool term_stopped(void)
{
	return stop_wanted;
}

bool term_changed(void)
{
	bool was = term.changed;

	term.changed = false;
	return was;
}

static uint32_t special_key(wint_t code)
{
	static const struct {
		wint_t curses;
		uint32_t key;
	} map[] = {
		{ KEY_UP, K_UP },
		{ KEY_DOWN, K_DOWN },
		{ KEY_LEFT, K_LEFT },
		{ KEY_RIGHT, K_RIGHT },
		{ KEY_PPAGE, K_PAGE_UP },
		{ KEY_NPAGE, K_PAGE_DOWN },
		{ KEY_HOME, K_HOME },
		{ KEY_END, K_END },
		{ KEY_BTAB, K_BACK_TAB },
		{ KEY_ENTER, KEY_RETURN },
		{ KEY_BACKSPACE, KEY_RUBOUT },
	};

	for (size_t i = 0; i < sizeof(map) / sizeof(map[0]); i++)
		if (map[i].curses == code)
			return map[i].key;
	if (code > KEY_F(0) && code <= KEY_F(12))
		return K_F0 + (code - KEY_F(0));
	return 0;
}

static long now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000 + ts.tv_nsec / (long)NUM_MS;
}

static void read_mouse(struct ui_event *ev)
{
	long now = now_ms();
	bool again;
	MEVENT m;

	if (getmouse(&m) != OK)
		return;
	ev->x = m.x;
	ev->y = m.y;
	if (m.bstate & BUTTON4_PRESSED) {
		ev->mouse = MOUSE_WHEEL_UP;
	} else if (m.bstate & BUTTON5_PRESSED) {
		ev->mouse = MOUSE_WHEEL_DOWN;
	} else if (m.bstate & BUTTON1_PRESSED) {
		again = now - term.clicked_ms < DOUBLE_CLICK_MS && m.x == term.clicked_x &&
			m.y == term.clicked_y;
		ev->mouse = again ? MOUSE_DOUBLE : MOUSE_CLICK;
		term.clicked_ms = again ? 0 : now;
		term.clicked_x = m.x;
		term.clicked_y = m.y;
	}
}

/*
 * Skips the sequence of an unknown key, so that it is not read as Esc and letters. False: there was
 * none.
 */
static bool was_sequence(void)
{
	wint_t c;
	int kind = get_wch(&c);

	if (kind != OK || (c != '[' && c != 'O')) {
		if (kind == OK)
			unget_wch((wchar_t)c);
		else if (kind == KEY_CODE_YES)
			ungetch((int)c);
		return false;
	}
	while (get_wch(&c) == OK && (c < 0x40 || c > 0x7e))
		;
	return true;
}

bool term_read(struct ui_event *ret)
{
	wint_t c;
	int kind = get_wch(&c);

	*ret = (struct ui_event){ 0 };
	if (kind == ERR)
		return false;
	if (kind == OK && c == 27 && was_sequence())
		return true;
	if (kind == OK)
		ret->key = c == '\n' ? KEY_RETURN : c == 8 ? KEY_RUBOUT : (uint32_t)c;
	else if (c == KEY_RESIZE)
		term.changed = true;
	else if (c == KEY_MOUSE)
		read_mouse(ret);
	else
		ret->key = special_key(c);
	return true;
}

/* ---- Drawing ---- */

/* '?' replaces characters whose width differs in the C library: they would shift the line. */
static wchar_t shown(const struct grid *g, int x, int y)
{
	const struct cell *c = grid_cell(g, x, y);
	int width = x + 1 < g->w && !grid_cell(g, x + 1, y)->ch ? 2 : 1;

	return c->ch < 0x7f || wcwidth((wchar_t)c->ch) == width ? (wchar_t)c->ch : L'?';
}

static void draw_line(const struct grid *g, int y)
{
	wchar_t run[256];

	for (int x = 0; x < g->w;) {
		uint32_t role = grid_cell(g, x, y)->role;
		int start = x, n = 0;

		for (; x < g->w && n < 256 && grid_cell(g, x, y)->role == role; x++)
			if (grid_cell(g, x, y)->ch)
				run[n++] = shown(g, x, y);
		attr_set(term.attrs[role], term.pairs[role], NULL);
		mvaddnwstr(y, start, run, n);
	}
}

void term_draw(const struct grid *g, bool repaint)
{
	if (repaint)
		clearok(curscr, TRUE);
	for (int y = 0; y < g->h; y++)
		draw_line(g, y);
	attr_set(A_NORMAL, 0, NULL);
	refresh();
}
