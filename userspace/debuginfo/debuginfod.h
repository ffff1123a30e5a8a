/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Debug files by build-id from debuginfod servers, through elfutils' libdebuginfod, which does the
 * caching and networking.
 *
 * Its environment variables apply ($DEBUGINFOD_URLS, $DEBUGINFOD_CACHE_PATH, ...). The first fetch
 * sets these if they are unset:
 *
 *   DEBUGINFOD_URLS         the URLs in /etc/debuginfod, because sudo drops the variable
 *   DEBUGINFOD_MAXTIME      600 s for one file; the library has no limit
 *   DEBUGINFOD_MAXSIZE      2 GB written to the cache; the library has no limit, and ignores
 *                           this one for a compressed answer
 *   DEBUGINFOD_RETRY_LIMIT  0
 *
 * A fetch waits for the network, so it is for reports, never for a live view. Not thread-safe:
 * fetch only after sampling has ended.
 */
#ifndef SFBPF_DEBUGINFO_DEBUGINFOD_H
#define SFBPF_DEBUGINFO_DEBUGINFOD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DEBUGINFOD_URLS_DIR "/etc/debuginfod" /* *.urls files, read if DEBUGINFOD_URLS is unset */

struct debuginfod;

struct debuginfod_totals {
	unsigned int files; /* files that came over the network */
	uint64_t bytes;
	int error; /* -errno after which no server is asked any more; 0: none */
};

/*
 * stopped: whether to give up a fetch; NULL: never. 0; -ENOTSUP: built without libdebuginfod;
 * -ENOENT: no servers are configured; -ENOMEM.
 */
int debuginfod_new(bool (*stopped)(void), struct debuginfod **ret);
void debuginfod_free(struct debuginfod *d); /* d may be NULL */
/*
 * ctx is a struct debuginfod (see struct debug_fetch). Returns an fd of a regular file with
 * unchecked contents; -ENOENT: no server has it; -EIO: the fetch failed. Once a server is
 * unreachable or too slow, no server is asked again.
 */
int debuginfod_fetch(void *ctx, const uint8_t *build_id, size_t len);
struct debuginfod_totals debuginfod_totals(const struct debuginfod *d);

#endif
