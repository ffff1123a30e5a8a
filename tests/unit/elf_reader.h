/* SPDX-License-Identifier: BSD-2-Clause */
/* A reader with a server of its own, for tests. Includes test.h first. */
#ifndef SFBPF_TESTS_UNIT_ELF_READER_H
#define SFBPF_TESTS_UNIT_ELF_READER_H

#include "sym/elf_child.h"
#include "sym/elf_reader.h"
#include "test.h"

struct test_reader {
	struct fork_server *server;
	struct elf_reader *r;
};

static inline struct test_reader open_reader(fork_child_fn fn)
{
	struct test_reader t = { .server = fork_server_start(0) };

	EXPECT(t.server != NULL);
	t.r = elf_reader_new(t.server, fn);
	EXPECT(t.r != NULL);
	return t;
}

static inline void close_reader(struct test_reader *t)
{
	elf_reader_free(t->r);
	fork_server_stop(t->server);
}

#endif
