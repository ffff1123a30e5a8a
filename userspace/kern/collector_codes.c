/* SPDX-License-Identifier: BSD-2-Clause */
/* Code of languages: the kernel's ids become numbers, and are forgotten in time. */
#include <bpf/bpf.h>
#include <string.h>

#include "kern/collector_internal.h"

#define SWEEP_AT    (SF_MAX_CODES / 4 * 3)
#define SWEEP_BATCH 1024

const struct sf_sample *collector_number(struct collector *c, const struct sf_sample *s,
					 size_t words)
{
	uint64_t *frames = c->copy.room + sizeof(*s) / 8;

	if (sizeof(*s) + 8 * words > sizeof(c->copy) || s->n_user > words)
		return s;
	memcpy(&c->copy, s, sizeof(*s) + 8 * words);
	for (size_t i = 0; i < s->n_user; i++)
		if (SF_FRAME_KIND(frames[i]) == SF_FRAME_LANG)
			frames[i] = lang_codes_word(c->opts.codes, frames[i]);
	return &c->copy.sample;
}

/*
 * Removes everything: what is still in use comes back at its next sight, under a new id and the
 * same number.
 */
void collector_codes_forget(struct collector *c)
{
	static struct {
		uint64_t space, addr;
	} keys[SWEEP_BATCH];
	static struct {
		uint64_t cookie, id;
	} values[SWEEP_BATCH];
	uint32_t at, n;
	LIBBPF_OPTS(bpf_map_batch_opts, opts);
	int fd = bpf_map__fd(c->skel->maps.codes), err = 0;

	c->codes_begun = __atomic_load_n(&c->skel->data_tables->code_ids, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < 2 * SF_MAX_CODES / SWEEP_BATCH && !err; i++) {
		n = SWEEP_BATCH;
		err = bpf_map_lookup_and_delete_batch(fd, i ? &at : NULL, &at, keys, values, &n,
						      &opts);
	}
	/* Last: frames that BPF has kept with ids from before are no longer used. */
	__atomic_fetch_add(&c->skel->data_tables->code_epoch, 1, __ATOMIC_RELEASE);
}

void collector_codes_sweep(struct collector *c)
{
	uint32_t last = __atomic_load_n(&c->skel->data_tables->code_ids, __ATOMIC_RELAXED);

	if (last - c->codes_begun >= SWEEP_AT)
		collector_codes_forget(c);
}
