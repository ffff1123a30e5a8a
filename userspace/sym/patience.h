/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long the thread that names may wait for others. It cannot do anything else meanwhile, so all waiting together may not take more than a share
 * of the time that passes: that for what is root's, and that for what is anybody else's. One thread only.
 */
#ifndef SFBPF_SYM_PATIENCE_H
#define SFBPF_SYM_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/num.h"

#define PATIENCE_MOST_NS (2 * NUM_S)	/* for a question; a file of 600 MB takes 50 ms */
#define PATIENCE_LEAST_NS (250 * NUM_MS)	/* with less, it is not asked */

/* Whose: distributions' files may not have to wait because somebody made slow ones. */
enum { PATIENCE_ROOT, PATIENCE_OTHERS, PATIENCES };

struct patience {
	bool unhurried;		/* nothing waits for us: only a question's own limit counts */
	struct {
		uint64_t ns, since;	/* what was left at that time */
	} left[PATIENCES];
};

void patience_init(struct patience *p);
/* How long a question about what belongs to that user may take, ns; 0: it is to be asked later. */
uint64_t patience_have(struct patience *p, uint32_t owner);
void patience_spend(struct patience *p, uint32_t owner, uint64_t ns);
/* Whose a file is, as far as is known without asking its file system; somebody's but root's where that is not known. */
uint32_t patience_owner(int fd);

#endif
