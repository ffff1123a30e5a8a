/* SPDX-License-Identifier: BSD-2-Clause */
/* Made-up samples for the tests of profile and outputs. */
#ifndef SFBPF_TESTS_UNIT_SAMPLES_H
#define SFBPF_TESTS_UNIT_SAMPLES_H

#include <stdlib.h>
#include <string.h>

#include "prof/profile.h"

#define ROW(module, offset)                                                                  \
	(SF_FRAME_ROW << SF_FRAME_KIND_SHIFT | (uint64_t)(module) << SF_FRAME_MODULE_SHIFT | \
	 (offset))
#define NOROW(module, offset) (ROW(module, offset) | SF_FRAME_NOROW << SF_FRAME_KIND_SHIFT)
#define JIT(addr)	      (SF_FRAME_JIT << SF_FRAME_KIND_SHIFT | (addr))
#define RAW(addr)	      (SF_FRAME_RAW << SF_FRAME_KIND_SHIFT | (addr))
#define FP		      SF_FRAME_BY_FP

struct fake {
	const char *comm;
	uint32_t pid;
	uint8_t stop, flags;
	uint64_t weight;
	uint16_t n_user, n_kernel;
	uint64_t frames[8];
};

static inline int add_fake(struct profile *p, const struct fake *f, int times)
{
	struct sf_sample *rec = calloc(1, sizeof(*rec) + sizeof(f->frames));
	int err = 0;

	rec->type = SF_REC_SAMPLE;
	rec->pid = f->pid;
	rec->tid = f->pid + 1;
	rec->stop = f->stop;
	rec->flags = f->flags;
	rec->weight = f->weight ? f->weight : 1;
	rec->n_user = f->n_user;
	rec->n_kernel = f->n_kernel;
	memset(rec->comm, 0xaa, sizeof(rec->comm)); /* bytes after the NUL do not count */
	strcpy(rec->comm, f->comm);
	memcpy(rec->frames, f->frames, sizeof(f->frames));
	while (times-- > 0 && !err)
		err = profile_add(p, rec);
	free(rec);
	return err;
}

/* Files without a symbol table: their frames are named by offset, "[lib+0x10]". */
static inline struct module *add_module(struct modules *ms, uint32_t id, const char *name)
{
	struct module *m = modules_get(ms, id);

	m->path = strdup(name);
	m->name = m->path;
	m->state = FILE_PUBLISHED;
	m->known = KNOWN_TABLES;
	return m;
}

#endif
