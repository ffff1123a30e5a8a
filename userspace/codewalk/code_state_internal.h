/* SPDX-License-Identifier: BSD-2-Clause */
/* What code_state.c and code_state_row.c share. */
#ifndef SFBPF_CODEWALK_CODE_STATE_INTERNAL_H
#define SFBPF_CODEWALK_CODE_STATE_INTERNAL_H

#include "codewalk/code_state.h"

#define RETURN_ADDRESS 16 /* its number on x86-64, which no register has */

static inline bool is_orig(const struct code_val *v, uint8_t reg)
{
	return v->kind == VAL_ORIG && v->off == reg;
}

static inline bool from_cfa(const struct code_val *v)
{
	return v->kind == VAL_STACK && !v->sym;
}

static inline const struct code_val *slot_at(const struct code_state *s, uint64_t sym, int64_t off)
{
	for (uint32_t i = 0; i < s->nslots; i++)
		if (s->slot[i].off == off && s->slot[i].sym == sym)
			return &s->slot[i].val;
	return NULL;
}

#endif
