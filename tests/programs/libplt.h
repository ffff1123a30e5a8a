/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SFBPF_TESTS_LIBPLT_H
#define SFBPF_TESTS_LIBPLT_H

unsigned long pl_add(unsigned long a, unsigned long b);
unsigned long pl_xor(unsigned long a, unsigned long b);
unsigned long pl_neg(unsigned long a);
unsigned long pl_one(void);

#endif
