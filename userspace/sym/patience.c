/* SPDX-License-Identifier: BSD-2-Clause */
#include "sym/patience.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/clock.h"

#define SAVED_NS (3 * NUM_S)	/* of time that was not used */
#define SHARE 10		/* the part of the time that may go to it in the long run is one in this many */
#define NOBODY 65534

static int whose(uint32_t owner)
{
	return owner ? PATIENCE_OTHERS : PATIENCE_ROOT;
}

void patience_init(struct patience *p)
{
	p->unhurried = false;
	for (int i = 0; i < PATIENCES; i++) {
		p->left[i].ns = SAVED_NS;
		p->left[i].since = clock_ns(CLOCK_MONOTONIC);
	}
}

uint64_t patience_have(struct patience *p, uint32_t owner)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC), *ns = &p->left[whose(owner)].ns, *since = &p->left[whose(owner)].since;

	*ns += (now - *since) / SHARE;
	if (*ns > SAVED_NS)
		*ns = SAVED_NS;
	*since = now;
	if (p->unhurried || *ns > PATIENCE_MOST_NS)
		return PATIENCE_MOST_NS;
	return *ns < PATIENCE_LEAST_NS ? 0 : *ns;
}

void patience_spend(struct patience *p, uint32_t owner, uint64_t ns)
{
	uint64_t *left = &p->left[whose(owner)].ns;

	*left = *left > ns ? *left - ns : 0;
}

uint32_t patience_owner(int fd)
{
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_UID, &st) || !(st.stx_mask & STATX_UID))
		return NOBODY;
	return st.stx_uid;
}
