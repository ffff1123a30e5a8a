/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/budget.h"

#include <malloc.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"

#define BUFFER_BYTES (128 << 10) /* larger allocations get their own mapping */

uint64_t budget_step(struct budget *b, uint64_t cpu_ns, uint64_t wall_ns)
{
	double pct = wall_ns ? 100.0 * (double)cpu_ns / (double)wall_ns : 0;

	b->above = pct > b->limit_pct ? b->above + 1 : 0;
	b->below = pct < b->limit_pct / 2 ? b->below + 1 : 0;
	if (b->above >= BUDGET_SLOW && b->hz > 1) {
		b->hz = b->hz * 2 / 3 ? b->hz * 2 / 3 : 1;
		b->above = 0;
	} else if (b->below >= BUDGET_FAST && b->hz < b->want_hz) {
		b->hz = b->hz * 3 / 2 + 1;
		b->below = 0;
	}
	if (b->hz > b->want_hz)
		b->hz = b->want_hz;
	return b->hz;
}

/* proc(5): total pages, resident pages, resident file and shared memory pages. */
static void read_pages(unsigned long long *resident, unsigned long long *shared)
{
	FILE *f = fopen("/proc/self/statm", "re");

	if (!f || fscanf(f, "%*u %llu %llu", resident, shared) != 2)
		*resident = *shared = 0;
	if (f)
		fclose(f);
}

uint64_t budget_rss(void)
{
	unsigned long long resident, shared;

	read_pages(&resident, &shared);
	return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

uint64_t budget_heap(void)
{
	unsigned long long resident, shared;

	read_pages(&resident, &shared);
	return (resident - shared) * (uint64_t)sysconf(_SC_PAGESIZE);
}

uint64_t budget_cpu_ns(void)
{
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

void budget_return_memory(void)
{
	mallopt(M_MMAP_THRESHOLD, BUFFER_BYTES);
	mallopt(M_TRIM_THRESHOLD, BUFFER_BYTES);
	mallopt(M_ARENA_MAX, 2);
}
