/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All rows of a file in ascending address order, from .sframe, .eh_frame, or both merged.
 *
 * Per source: functions sorted, those that start outside the executable segments dropped, each cut off where
 * the next one starts. Merged: every byte of code has its .sframe row if that can be used (CFA and RA
 * expressible, or outermost), else its .eh_frame row. Only one function of each source is evaluated at a time.
 */
#ifndef SFBPF_UNWIND_ROW_STREAM_H
#define SFBPF_UNWIND_ROW_STREAM_H

#include "base/diag.h"
#include "elf/elf_image.h"
#include "unwind/brief.h"
#include "unwind/eh_frame.h"
#include "unwind/row.h"
#include "unwind/sframe.h"

/* A file with its tables open. */
struct unwind_file {
	struct elf_image img;
	struct elf_reads reads;		/* of the file, if it is one */
	enum row_arch arch;
	bool has_sframe, has_eh;	/* parsed */
	bool found_sframe, found_eh, debug_frame;	/* the bytes are there; those of .eh_frame are .debug_frame's */
	struct elf_blob sframe_bytes, eh_bytes;
	struct rowbuf known;		/* trampolines: they stand above whatever the tables say there */
	struct sframe sframe;
	struct eh_frame eh;
	uint64_t fns_sframe, fns_eh;	/* functions in code, after sorting and cutting */
	size_t noted[2];	/* by enum row_source: the first so many functions' damage is noted already */
};

/* Opens what there is. 0 also without any table; -ENOEXEC no ELF64 of a known machine, -ENOMEM, -EIO. */
int unwind_file_open_fd(struct unwind_file *f, int fd, struct diag *diag);
int unwind_file_open_mem(struct unwind_file *f, const void *mem, size_t size, struct diag *diag);
void unwind_file_close(struct unwind_file *f);	/* also on a zeroed file */
/* The two steps of the above: everything that rows depend on is found, then understood (a tenth and a third of the cost of packing). */
int unwind_file_find_fd(struct unwind_file *f, int fd, struct diag *diag);
/* As unwind_file_find_fd; -EFBIG: there may be more than max_bytes of tables (0: no matter), which are not read. */
int unwind_file_find_within(struct unwind_file *f, int fd, uint64_t max_bytes, struct diag *diag);
int unwind_file_find_mem(struct unwind_file *f, const void *mem, size_t size, struct diag *diag);
int unwind_file_parse(struct unwind_file *f, struct diag *diag);

#define ROWS_SFRAME 1
#define ROWS_EH_FRAME 2
#define ROWS_MERGED 3

struct row_source_state {
	const struct fntab *fns;
	size_t next;		/* function to evaluate when buf is used up */
	struct rowbuf buf;
	size_t at;		/* row of buf that is current */
	struct row cur;		/* cut to what is still to come; valid if have */
	bool have;
	size_t block_at;	/* repeating block of buf that was cut short ... */
	uint64_t block_from;	/* ... and holds again from here on; 0: none */
};

#define ROW_BLOCK_MAX 16	/* rows of one repeating block that are looked at together */

struct sframe_brief;
struct eh_brief;

struct row_stream {
	struct unwind_file *file;
	struct diag *diag;
	struct row_source_state src[2];	/* by enum row_source */
	struct row piece[ROW_BLOCK_MAX];	/* what row_stream_function() gives where sources are merged */
	struct row ahead;	/* the row behind it; valid if have_ahead */
	bool have_ahead;
	uint64_t sframe_end;	/* of the last .sframe row given out: .eh_frame rows start behind it */
	struct sframe_brief *sframe;	/* NULL until a function is asked for */
	struct eh_brief *eh;
	struct brief brief, passed;	/* passed: of functions that .sframe says all of */
};

/* Rows of one function. */
struct fn_rows {
	const struct brief *brief;	/* or NULL: */
	struct row *rows;		/* n */
	size_t n;
	enum row_source source;		/* of those in brief */
};

/* which: ROWS_*. Cannot fail. What is wrong with a function is noted once, however often it is evaluated. */
void row_stream_open(struct row_stream *s, struct unwind_file *file, unsigned int which, struct diag *diag);
/* 1 and the next row, 0 at the end, -ENOMEM. Rows of one repeating block (plt_rep) follow each other with equal ranges. */
int row_stream_next(struct row_stream *s, struct row *ret);
/*
 * The same rows, faster: those of the next function at once, nearly always in brief, if one source alone has it or .sframe says all of
 * it; else the next row or the next repeating block. 1 (there may be none), 0 at the end, -ENOMEM. They live until the next call.
 * Rows in brief are not always joined where nothing changes.
 */
int row_stream_function(struct row_stream *s, struct fn_rows *ret);
/* What a number of rows in brief stands for, all but start and end. */
void row_stream_rule(const struct row_stream *s, enum row_source source, uint32_t rule, struct row *ret);
void row_stream_close(struct row_stream *s);

#endif
