/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * record --wall: running threads are sampled, and their waits measured as in offcpu. With a
 * timeline, waits of timeline->min_block_ns or more are on it, too.
 */
#ifndef SFBPF_TOOLS_WALL_H
#define SFBPF_TOOLS_WALL_H

#include "tools/oneshot.h"
#include "tools/session.h"

int wall_run(struct oneshot *r, struct session *s, struct timeline *t); /* the exit code */

#endif
