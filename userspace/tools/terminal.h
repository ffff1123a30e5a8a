/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SFBPF_TOOLS_TERMINAL_H
#define SFBPF_TOOLS_TERMINAL_H

int terminal_columns(void);	/* of the standard output; 0 if it is no terminal */

#endif
