/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One spooled body as a file "SEQ.body" (SEQ: 16 digits): struct spool_head, then the data, in the
 * byte order of the host.
 */
#ifndef SFBPF_AGENT_SPOOL_FILE_H
#define SFBPF_AGENT_SPOOL_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/body.h"

#define SPOOL_MAGIC    0x4c505346u /* "FSPL" */
#define SPOOL_MAX_BODY (1u << 30)

struct spool_head {
	uint32_t magic, head_crc; /* CRC-32 of this struct after head_crc */
	uint32_t data_crc, kind;
	uint64_t seq, len, time_ns, samples;
	uint8_t id[16];
	uint32_t gzip, zero;
};

_Static_assert(sizeof(struct spool_head) == 72, "spool_head layout");

/* All functions that return int: 0 or -errno. */
int spool_file_write(int dir, uint64_t seq, const struct body *b);
/* -EBADMSG: damaged. ret->data is malloc'ed */
int spool_file_read(int dir, uint64_t seq, struct body *ret);
void spool_file_remove(int dir, uint64_t seq);
bool spool_file_exists(int dir, uint64_t seq);
/* Calls fn for each valid header. Removes damaged files, which are counted, and unfinished ones. */
int spool_files(int dir, int (*fn)(void *ctx, const struct spool_head *h), void *ctx,
		uint64_t *ret_damaged);
int spool_file_give(int dir, uint64_t seq, uid_t uid, gid_t gid);

#endif
