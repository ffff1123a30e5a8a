/* SPDX-License-Identifier: BSD-2-Clause */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/kernel_word.h"
#include "kern/collector_internal.h"

bool collector_ask_kernel(void *ctx, uint64_t addr, char *ret, size_t cap)
{
	struct collector *c = ctx;
	LIBBPF_OPTS(bpf_test_run_opts, opts);

	c->skel->bss->kname_addr = addr;
	if (bpf_prog_test_run_opts(bpf_program__fd(c->skel->progs.kernel_name), &opts))
		return false;
	/* "%ps" prints a plain number for an unknown address. */
	snprintf(ret, cap, "%s", c->skel->bss->kname_text);
	return ret[0] && strncmp(ret, "0x", 2) != 0;
}

bool collector_kernel_name(void *ctx, uint64_t word, char *ret, size_t cap)
{
	struct collector *c = ctx;

	return kernel_word_numbered(word) ? kernel_names_get(c->names, word, ret, cap)
					  : collector_ask_kernel(c, word, ret, cap);
}

const struct sf_sample *collector_kernel_words(struct collector *c, const struct sf_sample *s,
					       size_t words)
{
	uint64_t *frames = c->copy.room + sizeof(*s) / 8, word, now = 0;
	bool copied = s == &c->copy.sample;

	if (sizeof(*s) + 8 * words > sizeof(c->copy) || (size_t)s->n_user + s->n_kernel > words)
		return s;
	for (size_t i = s->n_user; i < (size_t)s->n_user + s->n_kernel; i++) {
		now = now ? now : clock_ns(CLOCK_MONOTONIC);
		word = kernel_names_word(c->names, s->frames[i],
					 s->type == SF_REC_SAMPLE ? s->time_ns : 0, now);
		if (word == s->frames[i])
			continue;
		if (!copied)
			memcpy(&c->copy, s, sizeof(*s) + 8 * words);
		copied = true;
		frames[i] = word;
	}
	return copied ? &c->copy.sample : s;
}
