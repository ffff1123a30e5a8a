/* SPDX-License-Identifier: BSD-2-Clause */
/* What kind of lock a thread waits for, by the functions on its stack. */
#ifndef SFBPF_PROF_LOCK_KINDS_H
#define SFBPF_PROF_LOCK_KINDS_H

#include <stdbool.h>
#include <stdint.h>

#include "prof/profile.h"
#include "sym/symbolizer.h"

struct lock_kind {
	const char *name; /* "mutex" */
	/* 1 << enum sf_owner: how a thread is known that really is the owner; 0: it has no owner */
	uint32_t owners;
	/*
	 * The futex is 8 bytes behind the begin of the lock, or 12, where it is no multiple of 8
	 * (glibc, sysdeps/nptl/bits/struct_rwlock.h: __wrphase_futex, __writers_futex)
	 */
	bool inside;
};

/*
 * ids: of all frames of s, as from profile_symbols. *ret_user: the symbol of the function that uses
 * the lock, the first one outside of libraries of locks; SYM_UNKNOWN: none.
 */
const struct lock_kind *lock_kind_of(const struct profile_stack *s, const uint32_t *ids,
				     const struct symbolizer *sz, uint32_t *ret_user);
/* The kind of a lock of the kernel (enum sf_lock_kind), and the function that uses it */
const struct lock_kind *lock_kind_of_kernel(uint32_t kind, const struct profile_stack *s,
					    const uint32_t *ids, const struct symbolizer *sz,
					    uint32_t *ret_user);

#endif
