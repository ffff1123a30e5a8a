/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages for the user on stderr: one line each, which begins with "sfbpf TOOL: ". */
#ifndef SFBPF_BASE_COMPLAIN_H
#define SFBPF_BASE_COMPLAIN_H

/* The name of the tool in all later messages; must stay valid. */
void complain_as(const char *tool);
/* Prints a message, without its newline in fmt. Returns code. */
int complain(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
