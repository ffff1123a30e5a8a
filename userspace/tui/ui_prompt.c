/* SPDX-License-Identifier: BSD-2-Clause */
#include "tui/ui_prompt.h"

#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/num.h"
#include "base/text.h"
#include "prof/process_users.h"
#include "tui/rows.h"
#include "tui/view.h"

unsigned int ui_ask(struct ui *ui, enum ui_prompt prompt)
{
	ui->prompt = prompt;
	if (prompt == PROMPT_FILTER)
		memcpy(ui->typed, ui->filter, sizeof(ui->typed));
	else
		ui->typed[0] = 0;
	ui->search_from = ui->pos[ui->view].cursor;
	return UI_DRAW;
}

/* ---- Signals ---- */

static const struct {
	const char *name;
	int number;
} signals[] = {
	{ "TERM", SIGTERM }, { "KILL", SIGKILL }, { "INT", SIGINT },   { "HUP", SIGHUP },
	{ "QUIT", SIGQUIT }, { "ABRT", SIGABRT }, { "STOP", SIGSTOP }, { "CONT", SIGCONT },
	{ "USR1", SIGUSR1 }, { "USR2", SIGUSR2 },
};

/* "KILL", "sigkill" or "9"; 0: none of them */
static int signal_named(const char *text)
{
	uint64_t number;

	if (!num_u64(text, 1, 64, &number))
		return (int)number;
	if (!strncasecmp(text, "SIG", 3))
		text += 3;
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		if (!strcasecmp(text, signals[i].name))
			return signals[i].number;
	return 0;
}

/* The process of the row, or of the zoom. 0: none */
static uint32_t current_process(const struct ui *ui)
{
	const struct zoom *z = selection_level(&ui->sel, ZOOM_PROCESS);
	const struct ui_row *row = ui_current(ui);

	return row && row->pid ? row->pid : z ? z->id : 0;
}

unsigned int ui_ask_signal(struct ui *ui)
{
	uint32_t pid = current_process(ui);
	const char *name = pid && ui->window ? profile_process_name(ui->window, pid) : NULL;
	char clean[SF_COMM * 3 + 1];

	if (!pid) {
		ui_say(ui, false,
		       "no process selected: press 2 for the processes, or zoom into one");
		return UI_DRAW;
	}
	text_clean(clean, sizeof(clean), name ? name : "", name ? strlen(name) : 0, 0);
	ui->signal.pid = pid;
	snprintf(ui->signal.to, sizeof(ui->signal.to), *clean ? "%s (%u)" : "%s%u", clean, pid);
	ui_ask(ui, PROMPT_SIGNAL);
	strcpy(ui->typed, "TERM");
	return UI_DRAW;
}

static unsigned int answer_signal(struct ui *ui)
{
	ui->signal.number = signal_named(ui->typed);
	if (ui->signal.number)
		return UI_DRAW | UI_SIGNAL;
	ui_say(ui, true, "no such signal: enter 1 to 64, or a name such as TERM, KILL, STOP, CONT");
	return UI_DRAW;
}

/* ---- Search ---- */

/* Moves to the first row from `from` on, or from the top again, whose name has what is typed. */
static void search(struct ui *ui, size_t from)
{
	const struct view_spec *view = view_at(ui->view);
	char text[512];

	for (size_t i = 0; i < ui->nrows && ui->typed[0]; i++) {
		const struct ui_row *row = &ui->rows[(from + i) % ui->nrows];
		const char *name = row->kind == ROW_FUNCTION || !view->name
					   ? symbolizer_name(ui->symbols, row->symbol)
					   : view->name(ui, row, text, sizeof(text));

		if (rows_filter(ui->typed, name)) {
			ui_move_to(ui, (size_t)(row - ui->rows));
			return;
		}
	}
	ui_move_to(ui, ui->search_from);
}

/* ---- The user ---- */

static void show_user(struct ui *ui)
{
	struct passwd *pw = ui->typed[0] ? getpwnam(ui->typed) : NULL;
	uint64_t uid = pw ? pw->pw_uid : 0;

	if (ui->typed[0] && !pw && num_u64(ui->typed, 0, UINT32_MAX - 1, &uid)) {
		ui_say(ui, true, "no such user");
		return;
	}
	if (!ui->sel.users)
		ui->sel.users = process_users_new();
	ui->sel.uid1 = ui->typed[0] && ui->sel.users ? uid + 1 : 0;
	memcpy(ui->user, ui->typed, sizeof(ui->user));
	ui_set_view(ui, ui->view);
}

void ui_show_cpu(struct ui *ui, uint32_t cpu1)
{
	ui->sel.cpu1 = cpu1;
	ui_set_view(ui, ui->view);
}

static void refuse_cpu(struct ui *ui)
{
	char text[80];

	snprintf(text, sizeof(text), "no such CPU: enter 0 to %u, or nothing for all",
		 ui->gauges.ncpus - 1);
	ui_say(ui, true, text);
}

static unsigned int answer(struct ui *ui)
{
	enum ui_prompt prompt = ui->prompt;
	uint64_t ns;

	ui->prompt = PROMPT_NONE;
	if (prompt == PROMPT_SIGNAL)
		return answer_signal(ui);
	if (prompt == PROMPT_USER) {
		show_user(ui);
	} else if (prompt == PROMPT_FILTER) {
		memcpy(ui->filter, ui->typed, sizeof(ui->filter));
		ui_rearrange(ui);
	} else if (prompt == PROMPT_CPU) {
		if (!ui->typed[0])
			ui_show_cpu(ui, 0);
		else if (num_u64(ui->typed, 0, ui->gauges.ncpus - 1ull, &ns))
			refuse_cpu(ui);
		else
			ui_show_cpu(ui, (uint32_t)ns + 1);
	} else if (prompt == PROMPT_DELAY && ui->typed[0]) {
		if (num_duration(ui->typed, NUM_S, &ns) || ns < UI_DELAY_MIN || ns > UI_DELAY_MAX)
			ui_say(ui, true, "the delay must be 0.1 to 3600 seconds");
		else
			ui->delay_ns = ns;
	}
	return UI_DRAW;
}

unsigned int ui_type(struct ui *ui, uint32_t key)
{
	size_t n = strlen(ui->typed);

	if (key == KEY_RETURN)
		return answer(ui);
	if (key == K_F0 + 3 && ui->prompt == PROMPT_SEARCH) {
		search(ui, ui->pos[ui->view].cursor + 1);
		return UI_DRAW;
	}
	if (key == KEY_ESCAPE) {
		if (ui->prompt == PROMPT_SEARCH)
			ui_move_to(ui, ui->search_from);
		ui->prompt = PROMPT_NONE;
		return UI_DRAW;
	}
	if (key == KEY_RUBOUT || key == 8) {
		if (n)
			ui->typed[n - 1] = 0;
	} else if (key == ('U' & 0x1f)) {
		ui->typed[0] = 0;
	} else if (key >= ' ' && key < 0x7f && n + 1 < sizeof(ui->typed)) {
		ui->typed[n] = (char)key;
		ui->typed[n + 1] = 0;
	}
	if (ui->prompt == PROMPT_SEARCH)
		search(ui, ui->search_from);
	return UI_DRAW;
}
