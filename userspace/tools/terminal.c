/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

int terminal_columns(void)
{
	struct winsize ws;

	if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws))
		return 0;
	return ws.ws_col;
}
