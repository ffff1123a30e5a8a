/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The processes whose threads publish the span that they work for (OTEP 4947), for BPF
 * (bpf/core/trace_link.bpf.h): which of the files that a process maps has the variable, and where.
 * Files are read by workers, through the mapping itself, and remembered by device, inode and time
 * of change. One thread only.
 */
#ifndef SFBPF_AGENT_THREAD_LINKS_H
#define SFBPF_AGENT_THREAD_LINKS_H

#include "border/sfbpf_shared.h"
#include "paths/path_opener.h"
#include "symtab/elf_reader.h"

struct thread_links;

/* Tells BPF where the threads of a process have their span; NULL: nowhere any more. 0 or -errno. */
typedef int (*thread_links_fn)(void *ctx, uint32_t pid, const struct sf_thread_link *link);

/* All must outlive it. NULL: out of memory. */
struct thread_links *thread_links_new(struct path_opener *opener, struct elf_reader *reader,
				      thread_links_fn fn, void *ctx);
void thread_links_free(struct thread_links *l);
/*
 * Tells BPF where the process has the variable. owner: the user of the process. 0; -ENOENT: it has
 * none (yet); -EAGAIN: ask later, as earlier questions took too long; or another error.
 */
int thread_links_find(struct thread_links *l, uint32_t pid, uint32_t owner);
void thread_links_forget(struct thread_links *l, uint32_t pid);

#endif
