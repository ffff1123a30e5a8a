/* SPDX-License-Identifier: BSD-2-Clause */
#include "kern/versions.h"

#include <bpf/libbpf.h>
#include <bpf/libbpf_version.h>

#define TEXT_OF(number) #number
#define TEXT(number)	TEXT_OF(number)

/* The Makefile defines both for this file. */
const char *versions_cc(void)
{
	return SFBPF_CC;
}

const char *versions_clang(void)
{
	return SFBPF_CLANG;
}

const char *versions_libbpf(void)
{
	return TEXT(LIBBPF_MAJOR_VERSION) "." TEXT(LIBBPF_MINOR_VERSION);
}

const char *versions_libbpf_now(void)
{
	const char *v = libbpf_version_string();

	return *v == 'v' ? v + 1 : v;
}
