/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where a stripped file's symbols are kept: in a file of their own, or packed inside it.
 *
 *   /usr/lib/debug/.build-id/ab/cdef....debug		the same build-id
 *   .gnu_debuglink NAME: beside the file, in .debug/ beside it, in /usr/lib/debug/PATH/
 *							the same build-id, or without one the right CRC
 *   .gnu_debugdata in the file itself			xz-compressed ELF (with liblzma)
 *
 * Looked for in our own file system first, then in that of a process that has the file mapped: containers
 * bring their own. The latter's owner may put there what he likes, so a name from it is his word.
 */
#ifndef SFBPF_SYM_DEBUG_FILE_H
#define SFBPF_SYM_DEBUG_FILE_H

#include "elf/elf_image.h"

struct debug_file {
	struct elf_image img;
	int fd;			/* -1: none */
	void *mem;		/* instead of fd; malloc'ed */
	size_t mem_size;
};

/*
 * For the file img, which the process sees as path; pid 0: only our own file system. 0 with *ret to be closed;
 * -ENOENT: there is none.
 */
int debug_file_find(const struct elf_image *img, const char *path, uint32_t pid, struct debug_file *ret);
void debug_file_close(struct debug_file *d);	/* also a zeroed one with fd -1 */

#endif
