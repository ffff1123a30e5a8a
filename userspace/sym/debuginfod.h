/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Debug files by build-id from debuginfod servers, over HTTP (libcurl): GET URL/buildid/HEX/debuginfo. Answers, also that there is
 * none, are kept where elfutils' client keeps them, and found there:
 *
 *   $DEBUGINFOD_CACHE_PATH, else $XDG_CACHE_HOME/debuginfod_client, else ~/.cache/debuginfod_client
 *	HEX/debuginfo		the file; empty: no server had it when it was made, which holds for 10 minutes
 *
 * It waits for the network, so it is for reports, never for a live view. A server that cannot be reached is not asked
 * again in the same run. Not thread-safe.
 */
#ifndef SFBPF_SYM_DEBUGINFOD_H
#define SFBPF_SYM_DEBUGINFOD_H

#include <stddef.h>
#include <stdint.h>

#define DEBUGINFOD_URLS_DIR "/etc/debuginfod"	/* *.urls, if the environment has none */

struct debuginfod;

struct debuginfod_opts {
	const char *urls;	/* separated by spaces; NULL: $DEBUGINFOD_URLS, else what is in DEBUGINFOD_URLS_DIR */
	const char *cache;	/* NULL: as above */
	uint64_t max_bytes;	/* of one file; 0: $DEBUGINFOD_MAXSIZE, else 2 GB */
	unsigned int timeout_s;	/* without progress; 0: $DEBUGINFOD_TIMEOUT, else 90 */
	unsigned int max_s;	/* for one file; 0: $DEBUGINFOD_MAXTIME, else 600 */
};

/* 0; -ENOTSUP: built without libcurl; -ENOENT: no servers are known; -ENOMEM; -errno: there is no place for a cache. */
int debuginfod_new(const struct debuginfod_opts *opts, struct debuginfod **ret);
void debuginfod_free(struct debuginfod *d);	/* NULL is fine */
/* ctx is a struct debuginfod (struct debug_fetch). An fd; -ENOENT: nobody has it; -EIO: nobody could be asked. */
int debuginfod_fetch(void *ctx, const uint8_t *build_id, size_t len);
void debuginfod_totals(const struct debuginfod *d, unsigned int *ret_files, uint64_t *ret_bytes);	/* that came over the network */

#endif
