/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All rows of a file in ascending address order, from .sframe, .eh_frame, machine code, or merged.
 *
 * Per source, functions are sorted, those that start outside the executable segments are dropped,
 * and each ends at the latest where the next one starts. If merged, each byte of code has its
 * .sframe row if that is usable (CFA and RA expressible, or outermost), else its .eh_frame row, and
 * where no function of either is, the row from machine code, if file->code was made.
 * Only one function of each source is evaluated at a time.
 *
 * In Go programs, the rows of go_rows.h take the place of .sframe's, and .debug_frame is not used.
 */
#ifndef SFBPF_READERS_ROW_STREAM_H
#define SFBPF_READERS_ROW_STREAM_H

#include "base/diag.h"
#include "elf/elf_image.h"
#include "readers/eh_frame.h"
#include "readers/go_rows.h"
#include "readers/sframe.h"
#include "rows/row.h"

/* A file with its tables open. */
struct unwind_file {
	struct elf_image img;
	enum row_arch arch;
	bool has_sframe, has_eh, has_go; /* parsed */
	/* The bytes were found; debug_frame: eh_bytes is .debug_frame */
	bool found_sframe, found_eh, debug_frame;
	struct elf_blob sframe_bytes, eh_bytes;
	/* Rows of trampolines; they override the tables */
	struct rowbuf known;
	/* Rows from machine code (readers/code_rows.h), if it was analysed */
	struct rowbuf code;
	struct fntab code_fns; /* the functions that it found, unless with `whole` */
	struct sframe sframe;
	struct eh_frame eh;
	struct go_rows go;
	uint64_t fns_sframe, fns_eh; /* functions in code, after sorting and cutting */
	/* Number of functions, from the first, whose damage was noted; by enum row_source */
	size_t noted[2];
};

/*
 * Opens all tables. 0 even if there are none; -ENOEXEC: not ELF64 or an unknown machine, -ENOMEM,
 * -EIO.
 */
int unwind_file_open_fd(struct unwind_file *f, int fd, struct diag *diag);
int unwind_file_open_mem(struct unwind_file *f, const void *mem, size_t size, struct diag *diag);
void unwind_file_close(struct unwind_file *f); /* also on a zeroed file */
/*
 * unwind_file_open_fd in two steps. find reads the tables' bytes. -EFBIG: they may be more than
 * max_bytes (0: no limit), and none were read. parse checks and sorts what find read.
 */
int unwind_file_find(struct unwind_file *f, int fd, uint64_t max_bytes, struct diag *diag);
int unwind_file_parse(struct unwind_file *f, struct diag *diag);
/* The function of .eh_frame or else of .sframe that holds the address. NULL: neither has one. */
const struct fn *unwind_file_fn_at(const struct unwind_file *f, uint64_t addr);

#define ROWS_SFRAME   1
#define ROWS_EH_FRAME 2
#define ROWS_CODE     4
#define ROWS_MERGED   7

struct row_source_state {
	const struct fntab *fns;
	size_t next; /* function to evaluate when buf is used up */
	struct rowbuf buf;
	size_t at;	/* row of buf that is current */
	struct row cur; /* cut to the part still to be returned; valid if have */
	bool have;
	size_t block_at;     /* repeating block of buf that was cut short ... */
	uint64_t block_from; /* ... and holds again from here on; 0: none */
};

struct row_stream {
	struct unwind_file *file;
	struct diag *diag;
	struct row_source_state src[2]; /* state of the tables, by enum row_source */
	const struct rowbuf *code;	/* rows from machine code; NULL: not wanted */
	size_t code_at;			/* the next of them */
	bool go;			/* src[ROW_SFRAME] is that of go_rows */
	/* End of the last .sframe row returned; .eh_frame rows start there or later */
	uint64_t sframe_end;
};

/* which: ROWS_*. Cannot fail. Damage of a function is noted once, however often it is evaluated. */
void row_stream_open(struct row_stream *s, struct unwind_file *file, unsigned int which,
		     struct diag *diag);
/*
 * 1 and the next row, 0 at the end, -ENOMEM. Rows of one repeating block (plt_rep) follow each
 * other with equal ranges.
 */
int row_stream_next(struct row_stream *s, struct row *ret);
void row_stream_close(struct row_stream *s);

#endif
