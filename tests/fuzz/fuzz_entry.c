/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libFuzzer target: packed tables as bytes, from a process that may have been broken into
 * (tables/table_entry.h). Built by scripts/fuzz.sh.
 *
 * Promises: what is taken is fit for the BPF program, and is written again as what it was.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../unit/sound.h"
#include "tables/table_entry.h"

#define SPACE (16u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool cond)
{
	if (!cond)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct sound_space made;
	static int fd = -1;
	const struct pack_space inner = { sound_alloc, &made };
	struct table_pieces pieces = { .inner = &inner };
	const struct pack_space space = table_pieces_space(&pieces);
	struct pack_result packed;
	uint64_t bytes = 0;
	int err;

	if (fd < 0) {
		fd = memfd_create("entry", 0);
		require(fd >= 0 && space_init(&made.space, SPACE));
	}
	sound_clear(&made);
	require(!ftruncate(fd, 0) && pwrite(fd, data, size, 0) == (ssize_t)size);
	err = table_entry_read(fd, size, &space, &packed);
	require(!err || err == -EBADMSG || err == -ENOSPC);
	if (!err) {
		require(sound_tables(&made, &packed) && packed.bytes <= size);
		require(!ftruncate(fd, 0) && !lseek(fd, 0, SEEK_SET));
		require(!table_entry_write(fd, &packed, &pieces, &bytes) && bytes <= size);
		free(packed.ranges);
	}
	table_pieces_free(&pieces);
	return 0;
}
