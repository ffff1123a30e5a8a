/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/terminal.h"

#include <locale.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tui/term.h"

bool terminal_unicode(void)
{
	setlocale(LC_CTYPE, "");
	return term_unicode();
}

int terminal_columns(void)
{
	struct winsize ws;

	if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws))
		return 0;
	return ws.ws_col;
}
