/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * record --wall: running threads are sampled, and their waits measured as in offcpu. With a
 * timeline, waits of --min-block-time or more are on it, too.
 */
#ifndef SFBPF_TOOLS_RECORD_WALL_H
#define SFBPF_TOOLS_RECORD_WALL_H

#include "tools/run.h"

extern const struct run_hooks wall_hooks;

#endif
