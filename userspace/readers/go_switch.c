/* SPDX-License-Identifier: BSD-2-Clause */
#include "readers/go_switch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "readers/go_switch_arch.h"

#define CODE_MAX 4096 /* bytes of a function; the longest has 300 */

static const char *const names[GO_NAMES] = {
	[GO_SYSTEMSTACK] = "runtime.systemstack",
	[GO_MCALL] = "runtime.mcall",
	[GO_MORESTACK] = "runtime.morestack",
	[GO_ASMCGOCALL] = "runtime.asmcgocall",
	[GO_CGOCALLBACK] = "runtime.cgocallback",
	[GO_CROSSCALL] = "crosscall2",
	[GO_GOGO] = "gogo",
	[GO_LOAD_G] = "runtime.load_g",
	[GO_MSTART] = "runtime.mstart",
	[GO_MSTART0] = "runtime.mstart0",
	[GO_CLONE] = "runtime.clone",
	[GO_NANOTIME] = "runtime.nanotime1",
	[GO_WALLTIME] = "runtime.walltime",
	[GO_TIME_NOW] = "time.now",
	[GO_GETRANDOM] = "runtime.vgetrandom1",
	[GO_RESTORER] = "runtime.sigreturn", /* and runtime.sigreturn__sigaction */
	[GO_PREEMPT] = "runtime.asyncPreempt",
	[GO_SIGPANIC] = "runtime.sigpanic",
};

static bool is_named(const char *name, enum go_name which)
{
	return !strcmp(name, names[which]) ||
	       (which == GO_RESTORER && !strcmp(name, "runtime.sigreturn__sigaction"));
}

static int32_t most_of(const struct go_table *t, const struct go_func *f)
{
	struct go_values h = go_heights_of(t, f);
	int32_t most = 0;
	uint64_t start;

	while (go_values_next(t, &h, &start))
		most = h.value > most ? h.value : most;
	return most;
}

static void find_functions(struct go_search *s)
{
	const struct go_table *t = &s->rows->table;

	for (uint64_t i = 0; i < t->count; i++) {
		const char *name;
		struct go_func f;

		if (!go_table_func(t, i, &f) || !(name = go_table_name(t, &f)) ||
		    (strncmp(name, "runtime.", 8) && strcmp(name, "gogo") &&
		     strcmp(name, "time.now") && strcmp(name, "crosscall2")))
			continue;
		for (int k = 0; k < GO_NAMES; k++)
			if (is_named(name, k) && (!s->fns[k].end || f.flags & GO_ASM ||
						  (!(s->fns[k].flags & GO_ASM) &&
						   most_of(t, &f) > most_of(t, &s->fns[k]))))
				s->fns[k] = f;
	}
}

bool go_code_open(const struct go_search *s, enum go_name name, struct go_code *ret)
{
	const struct go_func *f = &s->fns[name];
	uint64_t offset;

	*ret = (struct go_code){ .start = f->start, .end = f->end };
	if (f->end <= f->start || f->end - f->start > CODE_MAX ||
	    !elf_image_vaddr_to_offset(s->img, f->start, &offset) ||
	    elf_image_read(s->img, offset, f->end - f->start, &ret->blob))
		return false;
	ret->at = ret->blob.view;
	return true;
}

void go_code_close(struct go_code *c)
{
	elf_blob_free(&c->blob);
}

bool go_code_next(struct go_code *c, const char *bytes, size_t n, size_t size, int32_t *ret)
{
	struct bytes at = c->at;
	int32_t number = 0;

	if (!bytes_find(&at, bytes, n))
		return false;
	bytes_skip(&at, n);
	if (size)
		number = size == 1 ? bytes_s8(&at) : bytes_s32(&at);
	if (at.err)
		return false;
	c->at = at;
	if (ret)
		*ret = number;
	return true;
}

int32_t go_height_at(const struct go_search *s, enum go_name name, uint64_t pc)
{
	const struct go_table *t = &s->rows->table;
	struct go_values h = go_heights_of(t, &s->fns[name]);
	uint64_t start;

	while (go_values_next(t, &h, &start))
		if (pc >= start && pc < h.pc)
			return h.value;
	return -1;
}

int32_t go_height_most(const struct go_search *s, enum go_name name)
{
	return most_of(&s->rows->table, &s->fns[name]);
}

int32_t go_file_offset(const struct go_search *s, uint64_t addr)
{
	uint64_t offset;

	return elf_image_vaddr_to_offset(s->img, addr, &offset) && offset <= INT32_MAX
		       ? (int32_t)offset
		       : 0;
}

void go_add_row(struct go_search *s, uint64_t start, uint64_t end, const struct row *row)
{
	struct row r = *row;

	r.start = start;
	r.end = end;
	r.source = ROW_CODE;
	if (!s->err && start < end)
		s->err = rowbuf_push(&s->rows->special, &r);
}

void go_add_switch(struct go_search *s, uint64_t start, uint64_t end, const struct sf_go_rule *rule)
{
	struct go_rows *g = s->rows;
	struct row row = { 0 };

	if (rule->op == SF_GO_NONE || g->nrules == GO_RULES_MAX)
		return;
	g->rules[g->nrules] = *rule;
	g->rules[g->nrules].flags = SF_RULE_GO;
	row.go = (uint8_t)++g->nrules;
	go_add_row(s, start, end, &row);
}

static bool fits(int32_t off)
{
	return off > 0 && off <= UINT8_MAX;
}

static void systemstack(struct go_search *s)
{
	struct go_layout l = { 0 };
	struct sf_go_rule rule;
	struct go_code c;

	if (!go_code_open(s, GO_SYSTEMSTACK, &c))
		return;
	if (s->arch->find_layout(s, &c, &l) && fits(l.m) && fits(l.sched) && l.curg > 0) {
		s->layout = (struct sf_go_rule){ .g_m = (uint8_t)l.m,
						 .g_sched = (uint8_t)l.sched,
						 .tls = l.tls,
						 .tls_slot = l.tls_slot,
						 .m_off = l.curg };
		rule = s->arch->frame(s, SF_GO_GOROUTINE, go_height_at(s, GO_SYSTEMSTACK, l.start));
		go_add_switch(s, l.start, go_code_pc(&c), &rule);
	}
	go_code_close(&c);
}

/* Returns where the call of Go returns, as a file offset; 0: not known. */
static int32_t cgocallback(struct go_search *s)
{
	struct go_callback call;
	struct sf_go_rule rule;
	struct go_code c;
	int32_t ret = 0;

	if (!go_code_open(s, GO_CGOCALLBACK, &c))
		return 0;
	if (s->arch->find_callback(&c, &call)) {
		rule = s->arch->frame(s, SF_GO_CALLBACK,
				      go_height_at(s, GO_CGOCALLBACK, call.start));
		rule.call_g = (uint8_t)call.g;
		go_add_switch(s, call.start, go_code_pc(&c), &rule);
		ret = go_file_offset(s, call.returns);
	}
	go_code_close(&c);
	return ret;
}

/* The first frames of a thread, on which mcall and morestack do not return. */
static struct sf_go_rule thread_rule(struct go_search *s, int32_t callback)
{
	struct sf_go_rule rule = s->layout;
	struct go_code c;

	if (!go_code_open(s, GO_MSTART, &c))
		return rule;
	if (s->fns[GO_MSTART0].end && s->arch->find_call(&c)) {
		rule.op = SF_GO_THREAD;
		if (s->arch->pushes_ra)
			rule.cfa_off = go_height_most(s, GO_MSTART0);
		rule.ra_off = go_file_offset(s, go_code_pc(&c));
		rule.callback = callback;
	}
	go_code_close(&c);
	return rule;
}

/* A function is on g0 to its end after the instruction that loads sp from g0. */
static void rest_of(struct go_search *s, enum go_name name, struct sf_go_rule *rule)
{
	struct go_code c;

	if (!go_code_open(s, name, &c))
		return;
	if (s->arch->find_g0(&c, name, rule))
		go_add_switch(s, go_code_pc(&c), c.end, rule);
	go_code_close(&c);
}

static void find_switches(struct go_search *s)
{
	struct sf_go_rule rule;

	systemstack(s);
	if (s->layout.g_m) {
		rule = thread_rule(s, cgocallback(s));
		rest_of(s, GO_MCALL, &rule);
		rule.op = rule.op ? SF_GO_MORE : SF_GO_NONE;
		rest_of(s, GO_MORESTACK, &rule);
		s->arch->add_calls(s);
	}
	s->arch->add_jumps(s);
}

static int by_start(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

int go_switch_find(struct go_rows *g, const struct elf_image *img)
{
	struct go_search s = { .arch = g->arch == ROW_ARCH_X86_64 ? &go_arch_x86 : &go_arch_arm64,
			       .rows = g,
			       .img = img };

	find_functions(&s);
	g->restorer = s.fns[GO_RESTORER].start;
	find_switches(&s);
	if (g->special.n)
		qsort(g->special.rows, g->special.n, sizeof(*g->special.rows), by_start);
	return s.err;
}
