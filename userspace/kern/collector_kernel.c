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

/*
 * The number of no name (kern/kernel_names.c). The address is not 0, so that one less has the same
 * number.
 */
#define TRUNCATED KERNEL_WORD(KERNEL_NUMBERS - 1, 1)

bool collector_kernel_name(void *ctx, uint64_t word, char *ret, size_t cap)
{
	struct collector *c = ctx;

	if (!kernel_word_numbered(word))
		return collector_ask_kernel(c, word, ret, cap);
	if (kernel_word_number(word) != kernel_word_number(TRUNCATED))
		return kernel_names_get(c->names, word, ret, cap);
	snprintf(ret, cap, "[truncated]");
	return true;
}

/* The most frames that the kernel gives of its part of a stack. */
static uint32_t kernel_frames_max(void)
{
	static uint32_t most; /* the kernel refuses to change it while programs use it */
	unsigned int max = 0;
	FILE *f;

	if (most)
		return most;
	f = fopen("/proc/sys/kernel/perf_event_max_stack", "re");
	most = f && fscanf(f, "%u", &max) == 1 && max && max < SF_MAX_KERNEL ? max : SF_MAX_KERNEL;
	if (f)
		fclose(f);
	return most;
}

static bool named_like(struct collector *c, uint64_t addr, const char *const *list, size_t n)
{
	char name[256];

	if (!collector_ask_kernel(c, addr, name, sizeof(name)))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!strncmp(name, list[i], strlen(list[i])))
			return true;
	return false;
}

/* Whether the kernel part of a stack may lack outer frames. */
static bool is_cut(struct collector *c, const struct sf_sample *s)
{
	static const char *const first[] = { "entry_", "ret_from_fork", "el0t_",
					     "asm_fred_exit_user", "asm_fred_entrypoint_user" };

	return s->n_kernel >= kernel_frames_max() &&
	       !named_like(c, s->frames[s->n_user + s->n_kernel - 1] - 1, first,
			   sizeof(first) / sizeof(first[0]));
}

/*
 * The word of a kernel frame. A return address belongs to the function of the call before it; that
 * makes a difference where a function ends with a call. The innermost address is none, and the one
 * outside of an exception's or interrupt's entry is where that came.
 */
static uint64_t word_of(struct collector *c, const struct sf_sample *s, size_t i, uint64_t now)
{
	static const char *const entries[] = { "asm_", "el1h_64_" };
	uint64_t time = s->type == SF_REC_SAMPLE ? s->time_ns : 0, addr = s->frames[i],
		 word = kernel_names_word(c->names, addr, time, now), called;

	if (i == s->n_user)
		return word;
	called = kernel_names_word(c->names, addr - 1, time, now);
	if (word - 1 == called ||
	    named_like(c, s->frames[i - 1] - 1, entries, sizeof(entries) / sizeof(entries[0])))
		return word;
	return called + 1;
}

const struct sf_sample *collector_kernel_words(struct collector *c, const struct sf_sample *s,
					       size_t words)
{
	uint64_t *frames = c->copy.room + sizeof(*s) / 8, word, now = 0;
	bool copied = s == &c->copy.sample, cut;
	size_t end = (size_t)s->n_user + s->n_kernel;

	if (sizeof(*s) + 8 * words > sizeof(c->copy) || end > words || !s->n_kernel)
		return s;
	cut = is_cut(c, s);
	now = clock_ns(CLOCK_MONOTONIC);
	for (size_t i = s->n_user; i < end; i++) {
		word = cut && i + 1 == end ? TRUNCATED : word_of(c, s, i, now);
		if (word == s->frames[i])
			continue;
		if (!copied)
			memcpy(&c->copy, s, sizeof(*s) + 8 * words);
		copied = true;
		frames[i] = word;
	}
	return copied ? &c->copy.sample : s;
}
