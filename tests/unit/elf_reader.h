/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who reads files for names and who opens them, with servers of their own, for tests. Includes
 * test.h first.
 */
#ifndef SFBPF_TESTS_UNIT_ELF_READER_H
#define SFBPF_TESTS_UNIT_ELF_READER_H

#include <linux/capability.h>
#include <stdlib.h>

#include "jit/perf_map.h"
#include "paths/path_opener.h"
#include "symtab/elf_reader.h"
#include "symtab/elf_worker.h"
#include "test.h"
#include "worker/privs.h"

struct test_reader {
	struct fork_server *server;
	struct allowance *allowance;
	struct elf_reader *r;
};

static inline struct allowance *new_allowance(void)
{
	struct allowance *p = malloc(sizeof(*p));

	EXPECT(p != NULL);
	allowance_init(p);
	return p;
}

static inline struct test_reader open_reader(fork_child_fn fn)
{
	struct test_reader t = { .server = fork_server_start(0), .allowance = new_allowance() };

	EXPECT(t.server != NULL);
	t.r = malloc(sizeof(*t.r));
	EXPECT(t.r != NULL);
	elf_reader_init(t.r, t.server, fn, t.allowance);
	return t;
}

static inline void close_reader(struct test_reader *t)
{
	worker_end(&t->r->worker);
	free(t->r);
	fork_server_stop(t->server);
	free(t->allowance);
}

struct test_paths {
	struct fork_server *server;
	struct allowance *allowance;
	struct path_opener *o;
};

static inline struct test_paths open_paths(fork_child_fn fn)
{
	struct test_paths t = {
		.server = fork_server_start(PRIVS_CAP(CAP_SYS_PTRACE) |
					    PRIVS_CAP(CAP_DAC_READ_SEARCH)),
		.allowance = new_allowance(),
	};

	EXPECT(t.server != NULL);
	t.o = malloc(sizeof(*t.o));
	EXPECT(t.o != NULL);
	path_opener_init(t.o, t.server, fn, t.allowance);
	return t;
}

static inline void close_paths(struct test_paths *t)
{
	path_opener_end(t->o);
	free(t->o);
	fork_server_stop(t->server);
	free(t->allowance);
}

static inline struct perf_maps *open_maps(const struct test_paths *t)
{
	struct perf_maps *pm = perf_maps_new();

	EXPECT(pm != NULL);
	perf_maps_set_opener(pm, t->o);
	return pm;
}

#endif
