/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A mapped file as the rest of user space knows it: an id (the one that frame words carry), a name, and
 * where its bytes can be read. Filled once by the loader, read-only afterwards except for `symbols`.
 */
#ifndef SFBPF_ELF_MODULE_H
#define SFBPF_ELF_MODULE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "elf/elf_image.h"
#include "sfbpf_shared.h"

enum module_state {
	MODULE_LOADING,		/* asked for, tables not there yet */
	MODULE_READY,		/* tables published */
	MODULE_NO_TABLE,	/* opened, but there is nothing to unwind with */
	MODULE_GONE,		/* could not be opened; may be asked for again */
};

struct module_range {		/* code described by .sframe, file offsets, ascending, half-open */
	uint64_t start, end;
};

struct module {
	uint32_t id;
	_Atomic int state;	/* enum module_state; the fields below are valid once it is not MODULE_LOADING */
	struct sf_file_key key;
	int fd;			/* the file, open for reading; -1 if it could not be opened or is the vDSO */
	const void *mem;	/* the vDSO's image instead of fd */
	uint64_t size;		/* bytes of the file or image */
	char *path;		/* as the process sees it, perhaps with " (deleted)"; "[vdso]" */
	const char *name;	/* last component of path, inside path */
	struct module_range *sframe;	/* NULL, 0: none of its rows come from .sframe */
	uint32_t nsframe;
	uint64_t rows, rules, bytes;	/* of its BPF tables */
	uint64_t build_ns;	/* CPU time of the conversion */
	uint64_t bad_fdes;	/* damaged ones that were left out */
	uint8_t build_id[20];
	uint32_t build_id_len;
	void *symbols;		/* owned by sym/ */
};

/* All modules of a run, by id. Thread-safe: the loader adds, everybody looks up; modules are never moved or freed before the end. */
struct modules;

struct modules *modules_new(void);
void modules_free(struct modules *ms);
/* The module of that id, made (MODULE_LOADING) if it is new; NULL if id >= 65536 or out of memory. */
struct module *modules_get(struct modules *ms, uint32_t id);
/* NULL if there is none of that id. */
struct module *modules_find(const struct modules *ms, uint32_t id);
uint32_t modules_max_id(const struct modules *ms);	/* largest id ever made; 0 if none (ids start at 1) */
/* Its bytes as ELF, to be closed with elf_image_close. -ENOENT: they cannot be had; else as elf_image_open_fd. */
int module_image(const struct module *m, struct elf_image *ret);

#define MODULE_MAX_CODE 8	/* executable segments of a file; linkers make one or two */
#define MODULE_PAGE 0x1000ull

struct module_code {		/* as it is mapped: off and vaddr lie at the start of a page, with the same remainder before */
	uint64_t off, vaddr, size;
};

/* Its executable segments; their number, 0 if its bytes cannot be had. */
uint32_t module_code(const struct module *m, struct module_code ret[MODULE_MAX_CODE]);
/* The one that holds the file offset, or NULL. */
const struct module_code *module_code_at(const struct module_code *code, uint32_t n, uint64_t offset);

#endif
