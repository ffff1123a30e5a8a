/* SPDX-License-Identifier: BSD-2-Clause */
/* Types of fixed width, with one name in BPF and in user space. */
#ifndef SFBPF_TYPES_H
#define SFBPF_TYPES_H

#ifdef __bpf__
typedef unsigned long long sf_u64;
typedef unsigned int sf_u32;
typedef unsigned short sf_u16;
typedef unsigned char sf_u8;
typedef int sf_s32;
typedef long long sf_s64;
#else
#include <stdint.h>
typedef uint64_t sf_u64;
typedef uint32_t sf_u32;
typedef uint16_t sf_u16;
typedef uint8_t sf_u8;
typedef int32_t sf_s32;
typedef int64_t sf_s64;
#endif

struct sf_span {
	sf_u64 start, size;
};

#endif
