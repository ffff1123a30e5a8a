/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Whether a call instruction ends where a return address points. A word that was taken for a return
 * address but is data nearly always fails this. Pure; compiled for BPF and for the host.
 */
#ifndef SFBPF_CALL_INSN_H
#define SFBPF_CALL_INSN_H

#include "border/sfbpf_shared.h"

#define SF_CALL_BYTES 8 /* bytes before the return address */

#if defined(__TARGET_ARCH_x86)

/* Bytes of ModRM, SIB and displacement (Intel SDM, volume 2, table 2-2). */
static __attribute__((always_inline)) inline sf_u32 modrm_len(sf_u32 modrm, sf_u32 sib)
{
	sf_u32 mod = modrm >> 6, rm = modrm & 7, len = 1;

	if (mod == 3)
		return 1;
	if (rm == 4)
		len++;
	if (mod == 1)
		return len + 1;
	if (mod == 2 || rm == 5 || (rm == 4 && (sib & 7) == 5))
		return len + 4;
	return len;
}

/*
 * Whether the bytes before a return address (`before`, in memory order) end with a call. e8: call
 * rel32; ff /2: call through a register or memory. Prefixes stand in front of these and need no
 * test. A call of the address after it counts as none: it is the last instruction before a function
 * that does not return, and the address is that function's.
 */
static __attribute__((always_inline)) inline int ends_with_call(sf_u64 before)
{
	if ((before >> 24 & 0xff) == 0xe8 && before >> 32)
		return 1;
	for (sf_u32 len = 2; len <= 7; len++) {
		sf_u64 insn = before >> (64 - 8 * len);

		if ((insn & 0x38ff) == 0x10ff &&
		    modrm_len(insn >> 8 & 0xff, insn >> 16 & 0xff) == len - 1)
			return 1;
	}
	return 0;
}

#elif defined(__TARGET_ARCH_arm64)

/* bl; blr, blraa, blraaz, blrab, blrabz */
static __attribute__((always_inline)) inline int ends_with_call(sf_u64 before)
{
	sf_u32 insn = before >> 32;

	return (insn & 0xfc000000) == 0x94000000 || (insn & 0xfefff000) == 0xd63f0000;
}

#else
#error "no ends_with_call() for this architecture"
#endif

#endif
