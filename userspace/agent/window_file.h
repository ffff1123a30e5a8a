/* SPDX-License-Identifier: BSD-2-Clause */
/* Windows as files in a directory, for the receiver `file` and for --copy. */
#ifndef SFBPF_AGENT_WINDOW_FILE_H
#define SFBPF_AGENT_WINDOW_FILE_H

#include "agent/body.h"

/*
 * Writes b to a file in the folder of its day (UTC) in dir, "2026-01-31". The name contains host,
 * time and id, so a repetition replaces the same file. 0 or -errno.
 */
int window_file_write(const char *dir, const char *format, const char *host, const struct body *b);
/*
 * Removes this host's windows that are older than keep_ns at now_ns, and its oldest ones while all
 * take more than keep_bytes of the disk, and folders that are empty then. 0: no limit. Returns how
 * many are gone. Files of other names stay.
 */
size_t window_file_prune(const char *dir, const char *host, uint64_t now_ns, uint64_t keep_ns,
			 uint64_t keep_bytes);

#endif
