/* SPDX-License-Identifier: BSD-2-Clause */
#include "kern/ksymbols.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"

#define RING_PAGES 8 /* a power of two: some 150 records */
#define RECORD_MAX 1024

static int open_cpu(int cpu)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = PERF_SAMPLE_TIME,
		.sample_id_all = 1,
		.ksymbol = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.watermark = 1, /* the buffer is read on a timer, without wake-ups */
		.wakeup_watermark = UINT32_MAX,
	};

	return (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static int open_ring(struct ksymbols *k, int cpu)
{
	struct ksymbol_ring *r = &k->of[cpu];
	void *mem;
	int fd = open_cpu(cpu);

	if (fd < 0)
		return -errno;
	mem = mmap(NULL, k->page * (1 + RING_PAGES), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (mem == MAP_FAILED) {
		close(fd);
		return -errno;
	}
	*r = (struct ksymbol_ring){ fd, mem };
	return 0;
}

int ksymbols_open(struct ksymbols *k, int ncpus)
{
	int why = 0, opened = 0;

	if (!k->of) {
		k->of = calloc((size_t)ncpus, sizeof(*k->of));
		if (!k->of)
			return -ENOMEM;
		k->ncpus = ncpus;
		k->page = (size_t)sysconf(_SC_PAGESIZE);
		for (int cpu = 0; cpu < ncpus; cpu++)
			k->of[cpu].fd = -1;
	}
	for (int cpu = 0; cpu < ncpus; cpu++) {
		int err = k->of[cpu].fd < 0 ? open_ring(k, cpu) : 0;

		opened += !err;
		why = err ? err : why;
	}
	return opened ? 0 : why;
}

void ksymbols_close(struct ksymbols *k)
{
	for (int cpu = 0; cpu < k->ncpus; cpu++) {
		if (k->of[cpu].fd < 0)
			continue;
		munmap(k->of[cpu].mem, k->page * (1 + RING_PAGES));
		close(k->of[cpu].fd);
	}
	free(k->of);
	*k = (struct ksymbols){ .of = NULL };
}

static uint64_t head_of(const struct ksymbol_ring *r)
{
	const struct perf_event_mmap_page *p = r->mem;

	return __atomic_load_n(&p->data_head, __ATOMIC_ACQUIRE);
}

bool ksymbols_pending(const struct ksymbols *k)
{
	for (int cpu = 0; cpu < k->ncpus; cpu++) {
		const struct perf_event_mmap_page *p = k->of[cpu].mem;

		if (p && head_of(&k->of[cpu]) != p->data_tail)
			return true;
	}
	return false;
}

/* struct perf_record_ksymbol: addr, len, type, flags, name; then the time. */
static void take(const struct perf_event_header *h, const uint8_t *body,
		 void (*fn)(void *ctx, const struct ksymbol *s), void *ctx)
{
	struct bytes b = bytes_of(body, h->size - sizeof(*h),
				  __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
	struct ksymbol s = { .start = bytes_u64(&b), .len = bytes_u32(&b) };

	bytes_skip(&b, 2);
	s.gone = bytes_u16(&b) & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER;
	s.name = bytes_str(&b);
	bytes_seek(&b, h->size - sizeof(*h) - sizeof(uint64_t));
	s.time_ns = bytes_u64(&b);
	if (!b.err && s.name && *s.name && s.len)
		fn(ctx, &s);
}

static bool read_ring(struct ksymbols *k, struct ksymbol_ring *r,
		      void (*fn)(void *ctx, const struct ksymbol *s), void *ctx)
{
	struct perf_event_mmap_page *p = r->mem;
	const uint8_t *data = (const uint8_t *)r->mem + k->page;
	const size_t size = k->page * RING_PAGES;
	union {
		struct perf_event_header h;
		uint8_t bytes[RECORD_MAX];
	} rec;
	uint64_t head = head_of(r), at = p->data_tail;
	bool all = true;

	while (at < head) {
		uint16_t len = ((const struct perf_event_header *)(data + at % size))->size;

		if (len < sizeof(rec.h) || len > head - at || len > sizeof(rec)) {
			all = false;
			break;
		}
		for (uint16_t i = 0; i < len; i++)
			rec.bytes[i] = data[(at + i) % size];
		if (rec.h.type == PERF_RECORD_KSYMBOL)
			take(&rec.h, rec.bytes + sizeof(rec.h), fn, ctx);
		all &= rec.h.type != PERF_RECORD_LOST;
		at += len;
	}
	__atomic_store_n(&p->data_tail, head, __ATOMIC_RELEASE);
	return all;
}

bool ksymbols_read(struct ksymbols *k, void (*fn)(void *ctx, const struct ksymbol *s), void *ctx)
{
	bool all = true;

	for (int cpu = 0; cpu < k->ncpus; cpu++)
		if (k->of[cpu].mem)
			all &= read_ring(k, &k->of[cpu], fn, ctx);
	return all;
}
