/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The files in which processes name the code that they generated (perf-PID.map, jit-PID.dump), one
 * copy of each by device and inode. The main process reads them, so all costs are bounded:
 *
 *  - memory: JIT_FILES_MAX for all files, JIT_FILE_MAX for each. Of a larger file only the
 *    beginning is read. When all memory is used, the least recently used files of users above their
 *    max-min fair share (base/share.h) are dropped. Users below their share keep their files.
 *  - time: reading is charged to the owner's allowance (worker/allowance.h). If lookups in a file
 *    are slow, they are charged as well, and refused without an allowance. After a read, a file is
 *    not read again for ten times as long as the read took.
 *
 * The totals of the allowance count the reads and lookups that were put off for lack of time
 * (deferred), and the files of which only the beginning was read (cut).
 *
 * One thread only.
 */
#ifndef SFBPF_SYM_JIT_FILES_H
#define SFBPF_SYM_JIT_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/num.h"
#include "worker/allowance.h"

#define JIT_FILES_MAX (64u << 20)
#define JIT_FILE_MAX  (JIT_FILES_MAX / 2)
#define JIT_AGAIN_NS  (200 * NUM_MS) /* interval at which a file is checked for growth */

enum jit_kind { JIT_MAP, JIT_DUMP };

struct jit_files;
struct jit_file;

struct jit_files *jit_files_new(void);	   /* NULL: out of memory */
void jit_files_free(struct jit_files *fs); /* with all files */
size_t jit_files_bytes(const struct jit_files *fs);

/* Gets the shared copy of a file, or a new one. uid: its owner. NULL: out of memory. */
struct jit_file *jit_file_get(struct jit_files *fs, enum jit_kind kind, uint64_t dev, uint64_t ino,
			      uint32_t uid);
void jit_file_put(struct jit_files *fs, struct jit_file *f); /* f may be NULL */
/* Whether the file may be read now. */
bool jit_file_due(const struct jit_file *f);
struct jit_file_wish {
	uint64_t ino, from; /* the file and the bytes read so far; 0: not read yet */
	bool more;	    /* false: the file was cut, read no more of it */
};

/* f NULL: the file is not known yet. */
struct jit_file_wish jit_file_wish(const struct jit_file *f);
/*
 * Reads the bytes added to fd since the last call. size: current size of the file; a file that has
 * shrunk is read from its start.
 */
void jit_file_read(struct jit_files *fs, struct jit_file *f, int fd, uint64_t size,
		   struct allowance *p);
/*
 * The name of the code that was at addr for the longest part of [from, to), CLOCK_MONOTONIC; to 0:
 * now. As in the file (foreign bytes), valid until the next call. NULL: none.
 */
const char *jit_file_find(struct jit_files *fs, struct jit_file *f, uint64_t addr, uint64_t from,
			  uint64_t to, struct allowance *p);

#endif
