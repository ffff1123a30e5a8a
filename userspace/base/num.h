/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Numbers given by the user. All functions use the whole string: "12abc", "", "-1", " 5" and values
 * out of range give -EINVAL (lists also -ENOMEM) and leave the output unchanged.
 */
#ifndef SFBPF_BASE_NUM_H
#define SFBPF_BASE_NUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NUM_NS 1ull
#define NUM_US 1000ull
#define NUM_MS 1000000ull
#define NUM_S  1000000000ull

/* Decimal, min <= value <= max. */
int num_u64(const char *s, uint64_t min, uint64_t max, uint64_t *ret);
/*
 * "10", "0.5s", "250ms", "100us", "2m". A number without a unit is in unit_ns (NUM_S for seconds).
 */
int num_duration(const char *s, uint64_t unit_ns, uint64_t *ret_ns);
/* Bytes: "4096", "64k", "10M", "1G" (powers of 1024). */
int num_size(const char *s, uint64_t *ret);
/* "12,34": process or thread ids, 1 to 2^31-1, duplicates dropped, ascending. *ret is malloc'ed. */
int num_ids(const char *s, uint32_t **ret, size_t *ret_n);

#define NUM_MAX_CPUS 8192

struct num_cpus {
	uint64_t bits[NUM_MAX_CPUS / 64];
	uint32_t count; /* number of bits set */
	uint32_t last;	/* highest bit set */
};

/* "0-3,5", as in /sys/devices/system/cpu/online; one newline may follow. */
int num_cpus(const char *s, struct num_cpus *ret);

static inline bool num_cpus_has(const struct num_cpus *c, uint32_t cpu)
{
	return cpu < NUM_MAX_CPUS && (c->bits[cpu / 64] >> cpu % 64 & 1);
}

#endif
