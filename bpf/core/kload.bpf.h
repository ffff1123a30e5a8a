/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Loads from kernel memory at computed addresses.
 *
 * bpf_rdonly_cast (kernel 6.2, commit a35b9af4ec2c) turns any address into a pointer whose loads
 * are plain instructions with fault protection: no helper call. Older kernels use
 * bpf_probe_read_kernel.
 */
#ifndef SFBPF_KLOAD_BPF_H
#define SFBPF_KLOAD_BPF_H

#include "core/maps.bpf.h"

#ifdef SF_NO_CAST
#define CAN_CAST false
#else
#define CAN_CAST true
extern void *bpf_rdonly_cast(const void *obj, u32 btf_id) __ksym __attribute__((const));
#endif

/* 8 bytes at a kernel address; 0 if it cannot be read. */
static __always_inline u64 kload(u64 addr)
{
#ifdef SF_NO_CAST
	u64 val = 0;

	bpf_probe_read_kernel(&val, sizeof(val), (void *)addr);
	return val;
#else
	/* maple_range_64 serves as any struct with a scalar at a known offset. */
	u64 at = addr - bpf_core_field_offset(struct maple_range_64, pivot[0]);
	struct maple_range_64 *p = bpf_rdonly_cast((void *)at,
						   bpf_core_type_id_kernel(struct maple_range_64));

	return p->pivot[0];
#endif
}

/* The address of a field, and the value of a field of at most 8 bytes. */
#define KADDR(addr, type, field) ((u64)(addr) + bpf_core_field_offset(type, field))
#ifdef SF_NO_CAST
#define KLOAD(addr, type, field)                                                              \
	({                                                                                    \
		__typeof__(((type *)0)->field) val_ = 0;                                      \
                                                                                              \
		bpf_probe_read_kernel(&val_, sizeof(val_), (void *)KADDR(addr, type, field)); \
		(u64) val_;                                                                   \
	})
#else
#define KLOAD(addr, type, field) \
	((u64)((type *)bpf_rdonly_cast((void *)(addr), bpf_core_type_id_kernel(type)))->field)
#endif
#define KLOAD32(addr, type, field) ((u32)KLOAD(addr, type, field))

#endif
