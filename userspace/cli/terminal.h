/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SFBPF_CLI_TERMINAL_H
#define SFBPF_CLI_TERMINAL_H

#include <stdbool.h>

int terminal_columns(void); /* width of standard output; 0: not a terminal */
/* Whether the user's locale has UTF-8. */
bool terminal_unicode(void);

#endif
