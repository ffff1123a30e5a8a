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
#ifndef SFBPF_JIT_JIT_FILES_H
#define SFBPF_JIT_JIT_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/num.h"
#include "worker/allowance.h"

#define JIT_FILES_MAX (64u << 20)
#define JIT_FILE_MAX  (JIT_FILES_MAX / 2)
#define JIT_AGAIN_NS  (200 * NUM_MS) /* interval at which a file is checked for growth */

/* The name of an address where several pieces may have been at the time */
#define JIT_REPLACED "[replaced code]"

enum jit_kind { JIT_MAP, JIT_DUMP };

struct jit_files;
struct jit_file;

struct jit_files *jit_files_new(void);	   /* NULL: out of memory */
void jit_files_free(struct jit_files *fs); /* frees all files, too */
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
 * Reads the bytes added to fd since the last call. size: size of the file at look_ns; a file that
 * has shrunk is read from its start.
 */
void jit_file_read(struct jit_files *fs, struct jit_file *f, int fd, uint64_t size,
		   uint64_t look_ns, struct allowance *p);
/* f, not read yet, has taken the place of another file of the process. */
void jit_file_follow(struct jit_file *f, const struct jit_file *before);
/* Takes over a descriptor of a JIT_MAP whose calls never block, to look at it later. */
void jit_file_keep(struct jit_file *f, int fd);
/*
 * The epoch (jit/map_ages.h) of a sample taken in [from_ns, to_ns], CLOCK_MONOTONIC. Looks at the
 * JIT_MAP, and reads its new lines. 0: the file's descriptor is not kept.
 */
uint32_t jit_file_epoch(struct jit_files *fs, struct jit_file *f, uint64_t from_ns, uint64_t to_ns,
			struct allowance *p);
/* Times [from, to) of code: CLOCK_MONOTONIC for a JIT_DUMP, from epochs for a JIT_MAP; 0, 0: now */
struct jit_span {
	uint64_t from, to;
};

/* The times of an epoch in a JIT_MAP. false: what was there is not known yet. f may be NULL. */
bool jit_file_span(const struct jit_file *f, uint32_t epoch, struct jit_span *ret);
/*
 * The name of the code that was at addr at the time; JIT_REPLACED if code with other names was
 * there, too. As in the file (foreign bytes), valid until the next call. NULL: none.
 */
const char *jit_file_find(struct jit_files *fs, struct jit_file *f, uint64_t addr,
			  struct jit_span span, struct allowance *p);

#endif
