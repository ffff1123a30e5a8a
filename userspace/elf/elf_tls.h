/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the threads of a process have a thread-local variable that a file exports (System V gABI
 * and psABIs, "Thread-Local Storage"; Drepper, "ELF Handling For Thread-Local Storage").
 */
#ifndef SFBPF_ELF_ELF_TLS_H
#define SFBPF_ELF_ELF_TLS_H

#include "elf/elf_image.h"

struct elf_tls {
	/*
	 * Relative to the thread pointer (SF_TLS_EXEC), or an address as if the file were mapped at
	 * its offsets as its first segment with code is: address = at + start - offset of that
	 * mapping
	 */
	uint64_t at;
	uint32_t how;  /* SF_TLS_* */
	uint32_t musl; /* bool: the C library is musl */
};

/*
 * -ENOENT: the file does not define the variable, or nothing says where ld.so has put it: a library
 * has a relocation for it if its own code uses it.
 */
int elf_tls_find(const struct elf_image *img, const char *name, struct elf_tls *ret);

#endif
