/* SPDX-License-Identifier: BSD-2-Clause */
/* record --wall: running threads are sampled, and their waits measured as in offcpu. */
#ifndef SFBPF_TOOLS_WALL_H
#define SFBPF_TOOLS_WALL_H

#include "tools/oneshot.h"
#include "tools/session.h"

int wall_run(struct oneshot *r, struct session *s); /* the exit code */

#endif
