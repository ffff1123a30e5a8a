/* SPDX-License-Identifier: BSD-2-Clause */
/* What `report` and `diff` share: recorded files in, text or pictures out. */
#ifndef SFBPF_TOOLS_STACKS_IO_H
#define SFBPF_TOOLS_STACKS_IO_H

#include "prof/read_stacks.h"
#include "tools/options.h"

enum view_format { VIEW_TEXT, VIEW_FOLDED, VIEW_HTML };

struct view {
	struct stackset stacks;
	struct stacks_meta meta;	/* of the file that was read last */
	const char *title, *before;	/* before: NULL unless two are compared */
	const char *output, *format;	/* -o, --format; NULL: not given */
	uint64_t rows;
};

/* These return 0 or an exit code, after having said why. */
int view_read(struct view *v, const char *path, enum stack_side side);	/* "-" is the standard input */
int view_write(struct view *v);
const char *path_name(const char *path);	/* its last component */
/* The command line: VIEW_OPTIONS and exactly n operands. */
int view_parse(struct view *v, const struct tool_spec *spec, int argc, char **argv, const char **operands, size_t n);
#define VIEW_OPTIONS \
	{ 'o', "output", "FILE", "write there; - is the standard output" }, \
	{ OPT_FORMAT, "format", "F", "text (default), folded, html; else by the suffix of FILE" }, \
	{ 'n', "rows", "N", "rows of the table (default 40)" }

#endif
