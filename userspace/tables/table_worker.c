/* SPDX-License-Identifier: BSD-2-Clause */
#include "tables/table_worker.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "elf/elf_digest.h"
#include "elf/elf_dynsym.h"
#include "languages/lang.h"
#include "readers/code_rows.h"
#include "readers/code_starts.h"
#include "readers/row_stream.h"
#include "readers/stg_rows.h"
#include "rows/fntab.h"
#include "tables/table_entry.h"

/*
 * The files of a host at the start, or a burst of new ones, are a second of work. The child works
 * in bursts and sleeps in between, so that other tasks on the CPU get a share with any priorities.
 */
#define BURST_NS      100000000ull /* CPU time */
#define REST_NS	      25000000ull
#define PAGES_BETWEEN 16 /* pages between two reads of the clock; a page takes 50 us */
/* Bytes of memory kept from file to file: page faults are most of a small file's cost */
#define KEEP_BYTES    (16 << 20)

/*
 * Machine code is analysed for this much CPU time at first, as the first samples of the file and of
 * others wait for its tables. Files with more code outside of tables, and larger files, whose code
 * refers to such code in more places, are not analysed then. Nor are files with more code than
 * CODE_TEXT_SMALL and less than one part in CODE_SHARE of it outside of tables: most of that is
 * constants in libcrypto (70 ms of analysis) and fragments in libc (20 ms).
 */
#define CODE_NS		  100000000ull
#define CODE_GAPS_MAX	  (128u << 10)
#define CODE_FILE_MAX	  (16u << 20)
#define CODE_TEXT_SMALL	  (1u << 20)
#define CODE_SHARE	  10
#define CODE_SOON_MIN	  (16u << 10) /* bytes of gaps: a C library's at least */
#define STG_TEXT_MAX	  (8u << 20)  /* most code of GHC's programs to search then */
/*
 * A later pass, for which no sample waits, has more for each MB of code. It needs 40 to 130 ms on
 * an idle CPU, but rows are of use to deep stacks only when there are all of them.
 */
#define CODE_MB_NS	  250000000ull
#define ALL_CODE_NS	  5000000000ull /* limit for a whole file */
#define ALL_CODE_FILE_MAX (256u << 20)

static struct {
	uint64_t rest_cpu, rest_wall; /* clocks when the last burst began */
	bool slow;		      /* the process runs at nice 0 */
} child;

struct block {
	struct block *next;
	max_align_t bytes[];
};

/* The file in progress. */
struct job {
	struct table_answer *answer;
	int mem;
	uint64_t start;	  /* CPU time when it began */
	uint64_t code_ns; /* CPU time for the analysis of machine code */
	struct diag diag;
	struct block *blocks;
	uint32_t pieces;
};

static void set_nice(bool slow)
{
	if (child.slow == slow)
		return;
	/* Best effort: without permission the priority stays. */
	setpriority(PRIO_PROCESS, 0, slow ? 0 : FORK_CHILD_NICE);
	child.slow = slow;
}

static void rest(void)
{
	const struct timespec pause = { .tv_nsec = REST_NS };
	uint64_t cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID), wall = clock_ns(CLOCK_MONOTONIC),
		 used = cpu - child.rest_cpu;

	if (used < BURST_NS)
		return;
	if (wall - child.rest_wall < 2 * used) /* else it was idle for half of the time anyway */
		nanosleep(&pause, NULL);
	child.rest_cpu = cpu;
	child.rest_wall = clock_ns(CLOCK_MONOTONIC);
	/* The rest of the file has no priority over other processes. */
	set_nice(true);
}

static void *job_alloc(void *ctx, uint32_t size, uint32_t *ret_loc)
{
	struct job *job = ctx;
	struct block *b = malloc(sizeof(*b) + size);

	if (!b)
		return NULL;
	b->next = job->blocks;
	job->blocks = b;
	*ret_loc = ++job->pieces;
	if (job->pieces % PAGES_BETWEEN == 0)
		rest();
	return b->bytes;
}

static void free_blocks(struct job *job)
{
	for (struct block *b = job->blocks, *next; b; b = next) {
		next = b->next;
		free(b);
	}
	job->blocks = NULL;
}

/* A lang_functions.at, on the functions of .eh_frame. */
static bool function_at(void *ctx, uint64_t addr, uint64_t *ret_start, uint64_t *ret_end)
{
	const struct fn *fn = fntab_find(ctx, addr);

	if (!fn)
		return false;
	*ret_start = fn->start;
	*ret_end = fn->end;
	return true;
}

/* A lang_functions.gap. */
static bool longest_gap(void *ctx, uint64_t *ret_start, uint64_t *ret_end)
{
	const struct fntab *t = ctx;
	size_t best = 0;
	uint64_t most = 0;

	for (size_t i = 1; i < t->n; i++) {
		uint64_t bytes = t->fns[i].start - t->fns[i - 1].end;

		if (bytes > most) {
			most = bytes;
			best = i;
		}
	}
	if (!most)
		return false;
	*ret_start = t->fns[best - 1].end;
	*ret_end = t->fns[best].start;
	return true;
}

/* Whether the file has libcoro, or a copy of it. */
static bool makes_stacks(const struct elf_image *img)
{
	struct elf_dynsym_value sym;
	struct elf_dynsym syms;

	return elf_dynsym_open(&syms, img) && elf_dynsym_find(&syms, "coro_create", &sym) &&
	       elf_dynsym_find(&syms, "coro_transfer", &sym);
}

static void describe_runtime(struct unwind_file *file, struct pack_result *packed)
{
	const struct lang_functions functions = { function_at, longest_gap, &file->eh.fns };

	if (packed->tables.npages < SF_DIR_MAX / 2 &&
	    lang_describe(&file->img, &functions, &packed->lang))
		packed->tables.flags |= SF_MODULE_LANG;
	else if (lang_starts_stacks(&file->img))
		packed->tables.flags |= SF_MODULE_STARTS;
	if (makes_stacks(&file->img))
		packed->tables.flags |= SF_MODULE_MAKES;
}

/* The address at which an executable segment has that byte of the file. */
static bool exec_address(const struct elf_image *img, uint64_t offset, uint64_t *ret)
{
	struct elf_phdr segs[EXEC_SEGMENTS_MAX];
	size_t n = exec_segments(img, segs, EXEC_SEGMENTS_MAX);

	for (size_t i = 0; i < n; i++) {
		if (offset - segs[i].offset >= segs[i].filesz)
			continue;
		*ret = segs[i].vaddr + (offset - segs[i].offset);
		return true;
	}
	return false;
}

/* Rests, and says whether there is time for more. */
static bool more_code(void *ctx)
{
	struct job *job = ctx;

	rest();
	job->answer->code_left = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - job->start >= job->code_ns;
	return !job->answer->code_left;
}

static uint64_t text_bytes(const struct elf_image *img)
{
	struct elf_phdr segs[EXEC_SEGMENTS_MAX];
	uint64_t bytes = 0;

	for (size_t i = exec_segments(img, segs, EXEC_SEGMENTS_MAX); i;)
		bytes += segs[--i].filesz;
	return bytes;
}

/*
 * Whether nearly all stacks need rows from machine code: the file was built without tables, or it
 * is a static program, and the C library that begins its threads was. That is told by its entry.
 */
static bool stacks_need_code(const struct unwind_file *file, uint64_t gaps, uint64_t text)
{
	uint64_t entry;

	if (gaps < CODE_SOON_MIN)
		return false;
	return gaps >= text - text / 10 ||
	       (!file->has_go && !elf_image_segment(&file->img, PT_INTERP) &&
		code_entry(&file->img, &entry) && !unwind_file_fn_at(file, entry));
}

/* Whether the first pass looks at the code outside of tables. */
static bool is_quick(const struct unwind_file *file, uint64_t gaps, uint64_t text)
{
	return file->img.size <= CODE_FILE_MAX && gaps <= CODE_GAPS_MAX &&
	       (text <= CODE_TEXT_SMALL || gaps >= text / CODE_SHARE);
}

/*
 * Rows from the machine code of functions without tables. Nearly all files have none of them, and
 * then this does nothing.
 */
static int add_code(struct job *job, struct unwind_file *file, const struct table_ask *ask)
{
	struct code_rows_opts opts = { .tick = more_code, .ctx = job };
	uint64_t gaps, text = text_bytes(&file->img);
	uint32_t code = ask->code;
	struct row row;
	int err;

	if (file->img.size > ALL_CODE_FILE_MAX)
		return 0;
	gaps = code_gap_bytes(file);
	if (code == CODE_QUICK && gaps && stg_row(file, &row)) {
		opts.brief = text > STG_TEXT_MAX;
		job->answer->code_left = opts.brief;
	} else if (code == CODE_QUICK && !is_quick(file, gaps, text)) {
		job->answer->code_left = gaps != 0;
		job->answer->code_soon = stacks_need_code(file, gaps, text);
		return 0;
	}
	if (code == CODE_FUNCTION) {
		if (!exec_address(&file->img, ask->code_at, &opts.at) || !opts.at)
			return 0;
		err = code_has_symbol(file, opts.at);
		if (err < 0)
			return err;
		if (!err) { /* where the function starts is only found with all others */
			code = CODE_ALL;
			opts.at = 0;
		}
	}
	job->code_ns = CODE_NS;
	if (code == CODE_ALL)
		job->code_ns += (text >> 10) * (CODE_MB_NS >> 10);
	if (job->code_ns > ALL_CODE_NS)
		job->code_ns = ALL_CODE_NS;
	err = gaps ? code_rows(file, &opts) : 0;
	if (code != CODE_QUICK)
		job->answer->code_left = code == CODE_FUNCTION;
	return err;
}

static int convert(struct job *job, struct unwind_file *file, const struct table_ask *ask)
{
	const struct pack_space space = { job_alloc, job };
	struct table_pieces pieces = { .inner = &space };
	const struct pack_space recorded = table_pieces_space(&pieces);
	struct pack_result packed = { 0 };
	int err = unwind_file_parse(file, &job->diag);

	if (!err)
		err = add_code(job, file, ask);
	if (!err)
		err = pack_file(file, &recorded, &packed, &job->diag);
	if (!err)
		describe_runtime(file, &packed);
	/* Machine code in a runtime is that of its language, which has steps of its own. */
	if (packed.tables.flags & SF_MODULE_LANG)
		job->answer->code_left = job->answer->code_soon = 0;
	if (job->answer->code_left)
		packed.tables.flags |= SF_MODULE_MORE_ROWS;
	if (err == -ENOSPC)
		err = -ENOMEM;
	if (!err && lseek(job->mem, 0, SEEK_SET))
		err = -EIO;
	if (!err)
		err = table_entry_write(job->mem, &packed, &pieces, &job->answer->bytes);
	free(packed.ranges);
	table_pieces_free(&pieces);
	free_blocks(job);
	return err;
}

/* 0, or -errno as in struct table_answer. */
static int make_tables(struct job *job, struct unwind_file *file, const struct table_ask *ask)
{
	job->answer->build_id_len = (uint32_t)elf_image_build_id(&file->img, job->answer->build_id,
								 sizeof(job->answer->build_id));
	/*
	 * An emulator maps the programs of another machine, perhaps as executable, but only as
	 * data.
	 */
	return file->arch != row_arch_native() || file->img.be ? -ENODATA : convert(job, file, ask);
}

static int serve_file(const struct worker_request *r)
{
	const struct table_ask *ask = r->ask;
	struct table_answer *a = r->answer;
	struct job job = { .answer = a, .mem = r->mem };
	struct unwind_file file;

	rest();
	set_nice(false);
	/* The loader has read the previous file's tables. */
	if (lseek(r->mem, 0, SEEK_END) > KEEP_BYTES && ftruncate(r->mem, 0))
		_exit(1);
	job.start = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	a->err = unwind_file_find(&file, r->fds[0], ask->max_bytes, &job.diag);
	if (!a->err) {
		a->err = make_tables(&job, &file, ask);
		a->digest = elf_digest(&file.img);
		unwind_file_close(&file);
	}
	a->message = a->err == -EFBIG ? TABLE_LARGE : TABLE_DONE;
	a->malformed = job.diag.malformed;
	a->cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - job.start;
	return -1;
}

void table_worker_keep_memory(void)
{
	jail_keep_memory(KEEP_BYTES);
}

void table_worker_run(int sock, int mem, struct jail_reader limits)
{
	static const struct worker_service service = {
		.least = sizeof(struct table_ask),
		.most = sizeof(struct table_ask),
		.nfds = 1,
		.answer_len = sizeof(struct table_answer),
		.reply = serve_file,
	};

	limits.keep = KEEP_BYTES;
	jail_enter_reader(&limits);
	child.rest_wall = clock_ns(CLOCK_MONOTONIC);
	worker_serve(sock, mem, &service);
}

/* ---- The loader's side ---- */

static bool is_sound(const struct table_answer *a)
{
	return a->build_id_len <= sizeof(a->build_id) && a->err <= 0 &&
	       (a->message == TABLE_LARGE || a->message == TABLE_DONE);
}

int table_worker_look(struct worker *w, struct table_answer *ret)
{
	int err = worker_look(w, ret, sizeof(*ret), sizeof(*ret), NULL);

	if (!err && !is_sound(ret)) {
		worker_lose(w);
		err = -ECHILD;
	}
	if (w->killed)
		worker_drop(w);
	return err;
}

int table_worker_read(struct worker *w, const struct table_answer *a, uint64_t most,
		      const struct pack_space *space, struct pack_result *ret)
{
	int err = a->bytes > most ? -EBADMSG : table_entry_read(w->child.mem, a->bytes, space, ret);

	if (err == -EBADMSG)
		worker_lose(w);
	return err;
}
