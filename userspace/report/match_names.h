/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Matches programs of two versions: what stacks begin with on BEFORE only, and what they begin with
 * on AFTER only. The names of two commands that were run match, and names that differ in their
 * numbers only ("foo-1.2", "foo-1.3"), if one of each side does.
 */
#ifndef SFBPF_REPORT_MATCH_NAMES_H
#define SFBPF_REPORT_MATCH_NAMES_H

#include "prof/read_stacks.h"

/* commands: by side, the command that was run; "": none, or several. 0 or -ENOMEM. */
int match_names(struct stackset *ss, const char *const commands[STACK_SIDES]);

#endif
