/* SPDX-License-Identifier: BSD-2-Clause */
/* What several readers of AArch64 code need to know of an instruction (Arm ARM, C4.1). */
#ifndef SFBPF_BASE_ARM64_H
#define SFBPF_BASE_ARM64_H

#include <stdbool.h>
#include <stdint.h>

/* b, bl, br, blr, ret, and their forms with signed addresses */
static inline bool arm64_is_jump(uint32_t insn)
{
	return (insn & 0x7c000000) == 0x14000000 || (insn & 0xfe000000) == 0xd6000000;
}

static inline bool arm64_is_adr(uint32_t insn) /* adr or adrp */
{
	return (insn & 0x1f000000) == 0x10000000;
}

/* The address that adr or adrp at pc computes. */
static inline uint64_t arm64_adr_target(uint32_t insn, uint64_t pc)
{
	int64_t imm = ((int32_t)(insn << 8) >> 13) * 4ll + (insn >> 29 & 3);

	return insn >> 31 ? (pc & ~0xfffull) + (uint64_t)imm * 4096 : pc + (uint64_t)imm;
}

#endif
