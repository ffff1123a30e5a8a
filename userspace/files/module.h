/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A mapped file as user space knows it: an id (as in frame words), a name, where its bytes can be
 * read, and its state (files/file_life.h).
 *
 * The loader's thread fills a module. It writes a group of fields before it raises `known` to cover
 * the group, and does not change them afterwards. The one exception: symbolizer_forget closes the
 * file of a retired module. Other threads read a group only if `known` covers it.
 */
#ifndef SFBPF_FILES_MODULE_H
#define SFBPF_FILES_MODULE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "border/sfbpf_shared.h"
#include "elf/elf_image.h"
#include "files/file_life.h"

/*
 * Code whose rows are not from .eh_frame: from .sframe, or from machine code. File offsets,
 * ascending, half-open.
 */
struct module_range {
	uint64_t start, end;
	uint64_t code; /* bool: from machine code, else from .sframe */
};

struct module_ranges {
	struct module_ranges *older; /* what it replaced; other threads may still read it */
	struct module_range *v;
	uint32_t n;
};

#define MODULE_MAX_CODE 8 /* executable segments of a file; linkers make one or two */
#define MODULE_PAGE	0x1000ull

/* An executable segment as mapped: it starts at a page of the file */
struct module_code {
	uint64_t off, vaddr, size;
};

#define MODULE_HTLHASH 16

/* What identifies the contents of a file, besides its build-id (symtab/elf_ids.h). */
struct module_ids {
	uint8_t htlhash[MODULE_HTLHASH]; /* if hashed */
	uint8_t hashed, rust;		 /* bools; rust: rustc made a part of it */
	char go[128];			 /* Go's build id, printable ASCII; "": none */
};

struct module {
	uint32_t id;
	_Atomic uint8_t state; /* enum file_state; set by module_advance */
	_Atomic uint8_t known; /* enum file_known; only grows */

	/* KNOWN_PATH */
	struct sf_file_key key;
	uint64_t size;	/* bytes of the file or image */
	uint32_t owner; /* the user, as in struct sf_need */
	/* The path as the process sees it, or saw a deleted file; "[vdso]"; NULL: not known */
	char *path;
	const char *name; /* last component of path, inside path; "" if path is NULL */

	/* KNOWN_FILE */
	/* The file, open for reading; -1 if it could not be opened or is the vDSO */
	int fd;
	/* fd is a copy of the file, which takes this many bytes of memory; 0: it is no copy */
	uint32_t copied;
	uint64_t ctime_ns; /* change time when fd was opened; 0: its bytes cannot change */
	const void *mem;   /* the vDSO's image, used instead of fd */

	/* KNOWN_TABLES. A build-id may be known earlier; its length is written last. */
	/* The digest (elf/elf_digest.h) of the bytes that the tables are from; 0: unknown */
	_Atomic uint64_t digest;
	uint8_t build_id[20];
	_Atomic uint32_t build_id_len;
	/* These change when a second pass replaces the tables. NULL: all rows are .eh_frame's */
	struct module_ranges *_Atomic ranges;
	_Atomic uint64_t rows, rules, bytes; /* size of its BPF tables */

	/* The naming thread's */
	struct module_code *code; /* module_set_code's; NULL: not known yet */
	uint32_t ncode;
	struct module_ids *ids; /* symbolizer_ids'; NULL: not known yet */
	/* Another change time that it was found to have, and whether its bytes are the same then */
	uint64_t seen_ctime_ns;
	bool seen_same;
	/* sym/ has symbols of it; modules_sweep keeps it until symbolizer_forget */
	bool has_symbols;
	/* Frames of it may be kept somewhere; modules_sweep keeps it */
	bool marked;

	/* The loader's: bytes that its tables take, or needed when there was no room */
	uint64_t room;
	/*
	 * The next pass over its machine code (enum table_code; 0: none), if a sample that is read
	 * after code_ns (CLOCK_MONOTONIC) needs one. The loader sets both, the consumer clears
	 * next_code.
	 */
	_Atomic uint32_t next_code;
	_Atomic uint64_t code_ns;
	uint32_t index;	     /* dense; reused once this module is freed */
	uint64_t retired_at; /* modules_retired() after its id was given up; 0: the id is valid */
	/* The registry's: the previous id of the same place; the next retired module */
	struct module *older, *next;
};

/*
 * The modules of a run, by id. The loader's thread adds modules and retires ids; an id is never
 * used twice. The consumer's thread looks modules up. It frees a retired module once it has read
 * the ring past the retirement and no frame of the module is kept.
 */
struct modules;

struct modules *modules_new(void);
void modules_free(struct modules *ms);
/*
 * The module of that id, created (FILE_NEW) if it is new. NULL: the id is out of range, or out of
 * memory. Any thread.
 */
struct module *modules_get(struct modules *ms, uint32_t id);
/* NULL if no module has that id. Not for the loader's thread. */
struct module *modules_find(const struct modules *ms, uint32_t id);
/*
 * Iteration: indices below modules_count, where modules_at may be NULL. Not for the loader's
 * thread.
 */
uint32_t modules_count(const struct modules *ms);
struct module *modules_at(const struct modules *ms, uint32_t index);

/*
 * Applies the event to the module's state. False, with nothing changed, if it does not apply.
 * *ret_retry_ms: the time after which BPF may ask for the file again. The loader's thread.
 */
bool module_advance(struct module *m, enum file_event event, uint32_t *ret_retry_ms);
/*
 * EVENT_EVICTED: its tables were evicted. EVENT_ID_REUSED: its id was given up too. The loader's
 * thread.
 */
void modules_lost(struct modules *ms, uint32_t id, enum file_event event);

/*
 * Mark and sweep. modules_retired: the number of ids retired so far; samples that carry one of them
 * are already in the ring. The consumer reads the number, reads the ring to its end, and passes the
 * number to modules_drained.
 */
uint64_t modules_retired(struct modules *ms);
void modules_drained(struct modules *ms, uint64_t retired);
void modules_mark(const struct modules *ms, uint64_t frame); /* this user frame is kept */
/* Unmarks all modules; then every kept frame must be marked again */
void modules_unmark(struct modules *ms);
/*
 * Frees retired modules that are neither marked nor have symbols. The caller must not hold pointers
 * to such modules. Returns the number of retired modules that remain; each may hold a descriptor.
 */
size_t modules_sweep(struct modules *ms);
/* The retired modules, the oldest first; pos NULL: the first one. */
struct module *modules_next_retired(const struct modules *ms, struct module *pos);
/*
 * Opens the module's bytes as ELF; close with elf_image_close. -ENOENT: they are not available;
 * else as elf_image_open_fd.
 */
int module_image(const struct module *m, struct elf_image *ret);

/* Sets the executable segments from the file's headers. 0 or -ENOMEM. The naming thread. */
int module_set_code(struct module *m, const struct module_code *segments, uint32_t n);
/* Sets path and name. Without memory both stay unknown. The loader's thread. */
void module_set_path(struct module *m, const char *path);
/* Sets the ranges, and takes over v. 0 or -ENOMEM, and v is freed. The loader's thread. */
int module_set_ranges(struct module *m, struct module_range *v, uint32_t n);
/* Sets fd, copied and ctime_ns (see struct module). */
void module_set_file(struct module *m, int fd, uint32_t copied, uint64_t ctime_ns);

enum module_change {
	MODULE_SAME,	/* unchanged since it was opened */
	MODULE_TOUCHED, /* renamed, linked, deleted; or written, and its mtime set back */
	MODULE_WRITTEN,
};

/* What happened to the file since it was opened. *ret_ns: its change time. Asks no server. */
enum module_change module_change(const struct module *m, uint64_t *ret_ns);
void module_close_file(struct module *m);
uint64_t modules_copied(void); /* bytes of memory that all copies take */

/* The segment that holds the file offset, or NULL. */
const struct module_code *module_code_at(const struct module_code *code, uint32_t n,
					 uint64_t offset);

#endif
