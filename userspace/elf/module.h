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

#define MODULE_MAX_CODE 8	/* executable segments of a file; linkers make one or two */
#define MODULE_PAGE 0x1000ull

struct module_code {		/* as it is mapped: off and vaddr lie at the start of a page, with the same remainder before */
	uint64_t off, vaddr, size;
};

struct module {
	uint32_t id;
	_Atomic int state;	/* enum module_state; the fields below are valid once it is not MODULE_LOADING */
	struct sf_file_key key;
	int fd;			/* the file, open for reading; -1 if it could not be opened or is the vDSO */
	uint32_t copied;	/* fd is a copy of the file, which takes so many bytes of memory */
	const void *mem;	/* the vDSO's image instead of fd */
	uint64_t size;		/* bytes of the file or image */
	char *path;		/* as the process sees it, perhaps with " (deleted)"; "[vdso]" */
	const char *name;	/* last component of path, inside path */
	struct module_range *sframe;	/* NULL, 0: none of its rows come from .sframe */
	uint32_t nsframe;
	uint64_t rows, rules, bytes;	/* of its BPF tables */
	uint64_t room;		/* bytes that making its tables took, or had taken when there was no more */
	uint64_t build_ns;	/* CPU time of the conversion */
	uint64_t bad_fdes;	/* damaged ones that were left out */
	uint8_t build_id[20];
	uint32_t build_id_len;
	void *symbols;		/* owned by sym/ */
	struct module_code *code;	/* module_set_code's, by sym/; NULL: not known yet */
	uint32_t ncode;

	uint32_t index;		/* dense; another module's once this one is freed */
	_Atomic bool evicted;	/* its BPF tables were taken away; they come back when it is sampled again */
	_Atomic bool seen;	/* frames of it may be kept somewhere: see modules_sweep */
	uint64_t left_at;	/* when its id was given up (modules_left); 0: it is valid */
	struct module *older, *next;	/* the registry's: same place, the id before; retired ones */
};

/*
 * The modules of a run, by id. One thread, the loader's, adds modules and says which ids are given up (an id comes never back).
 * Another one, the consumer's, looks up and frees: what was given up before its frames were seen, or whose frames nobody
 * keeps any more.
 */
struct modules;

struct modules *modules_new(void);
void modules_free(struct modules *ms);
/* The module of that id, made (MODULE_LOADING) if it is new; NULL if the id is out of range or out of memory. Any thread. */
struct module *modules_get(struct modules *ms, uint32_t id);
/* NULL if there is none of that id. Not for the loader's thread. */
struct module *modules_find(const struct modules *ms, uint32_t id);
/* All of them: indices below modules_count, where modules_at may be NULL. Not for the loader's thread. */
uint32_t modules_count(const struct modules *ms);
struct module *modules_at(const struct modules *ms, uint32_t index);

/* BPF has no tables of it any more, or (id_too) will never use the id again. The loader's thread. */
void modules_gone(struct modules *ms, uint32_t id, bool id_too);
/*
 * How many ids have been given up so far. Samples that carry one of them were in the ring before: once it has been read from there on,
 * modules_drained(that number) says so.
 */
uint64_t modules_left(struct modules *ms);
void modules_drained(struct modules *ms, uint64_t left);
void modules_see(const struct modules *ms, uint64_t frame);	/* a user frame that is kept */
/*
 * Frees modules whose id is given up and no frame of which was seen. Pointers to such modules must not be held. Returns the
 * number of others whose id is given up; each of them holds a descriptor and its symbols until modules_unsee finds it not seen again.
 */
size_t modules_sweep(struct modules *ms);
void modules_unsee(struct modules *ms);		/* forgets what modules_see said; all frames that are kept are to be seen again */
/* The n that were given up first of those that modules_sweep counts, one by one; *pos starts as NULL. */
struct module *modules_next_left(const struct modules *ms, struct module *pos);
/* Its bytes as ELF, to be closed with elf_image_close. -ENOENT: they cannot be had; else as elf_image_open_fd. */
int module_image(const struct module *m, struct elf_image *ret);

/* Its executable segments, as the file's headers have them. 0 or -ENOMEM. */
int module_set_code(struct module *m, const struct module_code *segments, uint32_t n);
/* Its file is now fd, a copy in memory if copied is not 0. */
void module_set_file(struct module *m, int fd, uint32_t copied);
void module_close_file(struct module *m);
uint64_t modules_copied(void);	/* bytes of memory that all the copies take */

/* The one that holds the file offset, or NULL. */
const struct module_code *module_code_at(const struct module_code *code, uint32_t n, uint64_t offset);

#endif
