/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of code that a process made itself, from a dump in perf's format (linux/tools/perf/Documentation/jitdump-specification.txt):
 * node --perf-prof, the JVM with perf's agent, wasmtime, LLVM's listener. Unlike perf-PID.map it says when code was made and
 * moved, so that an address that was used again has the name that it had at the time.
 *
 * The file is jit-PID.dump, found as perf finds it: its writer maps a page of it executable. Without one, /tmp/jit-PID.dump.
 */
#ifndef SFBPF_SYM_JIT_DUMP_H
#define SFBPF_SYM_JIT_DUMP_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#define JIT_DUMP_MAX_CODES (1u << 20)
#define JIT_DUMP_MAX_NAMES (128u << 20)	/* bytes */

struct jit_dump;

struct jit_dump *jit_dump_new(void);	/* NULL: out of memory */
void jit_dump_free(struct jit_dump *d);
/*
 * Where the process has it: its path, malloc'ed, below the process's root; NULL: it has none. pid as we, ns_pid as the
 * process itself knows it. It may take for ever: /proc waits for a process's mappings.
 */
char *jit_dump_path(uint32_t pid, uint32_t ns_pid);
/* The file that was read (0: none), and how far. */
void jit_dump_place(const struct jit_dump *d, uint64_t *ret_ino, uint64_t *ret_done);
/* What fd has got since the last time; another file than before starts anew. Foreign bytes. 0, -ENOEXEC no dump, -ENOMEM, -EIO. */
int jit_dump_read(struct jit_dump *d, int fd, const struct stat *st);
/*
 * The code at addr for the most of [from_ns, to_ns) (CLOCK_MONOTONIC); to_ns 0: now. As written in the file (foreign
 * bytes), valid until the next call; NULL: none.
 */
const char *jit_dump_find(struct jit_dump *d, uint64_t addr, uint64_t from_ns, uint64_t to_ns);
size_t jit_dump_bytes(const struct jit_dump *d);

#endif
