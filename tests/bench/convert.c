// SPDX-License-Identifier: BSD-2-Clause
/*
 * convert ROUNDS FILE...: how long it takes to turn a file's unwind tables into those that BPF
 * searches, in CPU time of this thread, the median of the rounds; one JSON object a line. Memory is
 * kept from round to round, as the profiler's child keeps it from file to file. For comparison: the
 * same in a child, and libdw, asked for the row of every address.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "rows/fntab.h"
#include "tables/pack.h"
#include "tables/table_worker.h"

#ifdef HAVE_LIBDW
#include <elfutils/libdw.h>
#endif

#define MAX_ROUNDS 99
#define MAX_CHUNKS 1024

struct result {
	uint64_t rows, rules, bytes, text, fns;
	double ms, child_ms;
	uint64_t dw_rows;
	double dw_ms;
};

static double cpu_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(double *v, size_t n)
{
	qsort(v, n, sizeof(*v), by_value);
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* ---- Chunks: kept from round to round, as the profiler's are from file to file ---- */

static uint8_t *chunk[MAX_CHUNKS];
static uint32_t chunk_at, chunk_used;

static void *chunk_alloc(void *ctx, uint32_t size, uint32_t *ret_loc)
{
	void *mem;

	(void)ctx;
	size = (size + 15) & ~15u;
	if (size > SF_CHUNK - 16)
		return NULL;
	if (SF_CHUNK - chunk_used < size) {
		if (++chunk_at == MAX_CHUNKS)
			return NULL;
		chunk_used = 16;
	}
	if (!chunk[chunk_at]) {
		chunk[chunk_at] = malloc(SF_CHUNK);
		if (!chunk[chunk_at])
			return NULL;
		memset(chunk[chunk_at], 0, SF_CHUNK);
	}
	mem = chunk[chunk_at] + chunk_used;
	*ret_loc = chunk_at << 16 | chunk_used >> 4;
	chunk_used += size;
	return mem;
}

static void chunks_reset(void)
{
	chunk_at = 0;
	chunk_used = 16;
}

static const struct pack_space space = { chunk_alloc, NULL };

/* ---- Ours ---- */

/*
 * Bytes of code. Of the segments only if there are no sections: a linker may put read-only data
 * into them, too.
 */
static uint64_t code_bytes(const struct elf_image *img)
{
	struct elf_phdr seg[EXEC_SEGMENTS_MAX];
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < img->nshdrs; i++)
		if (img->shdrs[i].flags & SHF_EXECINSTR)
			bytes += img->shdrs[i].size;
	if (!bytes)
		for (size_t i = exec_segments(img, seg, EXEC_SEGMENTS_MAX); i--;)
			bytes += seg[i].filesz;
	return bytes;
}

static int convert_once(int fd, struct result *res, double *ret_ms)
{
	struct pack_result packed = { 0 };
	struct unwind_file file;
	double start;
	int err;

	chunks_reset();
	start = cpu_ms();
	err = unwind_file_open_fd(&file, fd, NULL);
	if (err)
		return err;
	err = pack_file(&file, &space, &packed, NULL);
	*ret_ms = cpu_ms() - start;
	if (!err) {
		res->rows = packed.rows;
		res->rules = packed.rules;
		res->bytes = packed.bytes;
		res->fns = file.fns_sframe > file.fns_eh ? file.fns_sframe : file.fns_eh;
		res->text = code_bytes(&file.img);
		free(packed.ranges);
	}
	unwind_file_close(&file);
	return err;
}

/* ---- In a child, as the loader has it done; CPU time of both ---- */

static struct worker worker;
static struct worker_totals totals;

static void child_main(int sock, int mem)
{
	table_worker_run(sock, mem,
			 (struct jail_reader){ .memory = 1ull << 30, .output = 1ull << 28 });
}

static bool child_begin(void)
{
	worker_init(&worker, fork_server_start(0), child_main, &totals);
	return worker.server != NULL;
}

static void child_end(void)
{
	worker_end(&worker);
	fork_server_stop(worker.server);
}

/* 0 ms: it has no tables. */
static void child_once(int fd, double *ret_ms)
{
	const struct worker_limits no_limits = { 0 };
	const struct table_ask ask = { 0 };
	struct pack_result packed = { 0 };
	struct table_answer a;
	double start = cpu_ms(), spent = (double)totals.cpu_ns / 1e6;
	int err = worker_ask(&worker, &no_limits, &ask, sizeof(ask), &fd, 1);

	if (!err)
		err = worker_wait(&worker, &a, sizeof(a), sizeof(a), NULL);
	chunks_reset();
	if (!err && !a.err)
		err = table_worker_read(&worker, &a, UINT64_MAX, &space, &packed);
	*ret_ms = packed.rows ? cpu_ms() - start + (double)totals.cpu_ns / 1e6 - spent : 0;
	free(packed.ranges);
}

/* ---- libdw ---- */

#ifdef HAVE_LIBDW
/* Every row of [start, end): libdw makes one at a time and says how far it reaches. */
static uint64_t libdw_function(Dwarf_CFI *cfi, uint64_t start, uint64_t end)
{
	uint64_t rows = 0;

	while (start < end) {
		Dwarf_Frame *frame = NULL;
		Dwarf_Addr from, to = 0;

		if (dwarf_cfi_addrframe(cfi, start, &frame))
			break;
		dwarf_frame_info(frame, &from, &to, NULL);
		free(frame);
		rows++;
		if (to <= start)
			break;
		start = to;
	}
	return rows;
}

static void libdw_once(int fd, struct result *res, double *ret_ms)
{
	struct unwind_file file;
	Dwarf_CFI *cfi;
	double start;
	Elf *elf;

	*ret_ms = 0;
	if (unwind_file_open_fd(&file, fd, NULL))
		return;
	start = cpu_ms();
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	cfi = elf ? dwarf_getcfi_elf(elf) : NULL;
	res->dw_rows = 0;
	for (size_t i = 0; cfi && i < file.eh.fns.n; i++)
		res->dw_rows += libdw_function(cfi, file.eh.fns.fns[i].start,
					       file.eh.fns.fns[i].end);
	*ret_ms = cpu_ms() - start;
	dwarf_cfi_end(cfi);
	elf_end(elf);
	unwind_file_close(&file);
}
#else
static void libdw_once(int fd, struct result *res, double *ret_ms)
{
	(void)fd;
	(void)res;
	*ret_ms = 0;
}
#endif

/* Alternating, so that a change of the machine's mood meets both. */
static int measure(const char *path, int rounds, struct result *res)
{
	double ours[MAX_ROUNDS], child[MAX_ROUNDS], libdw[MAX_ROUNDS];
	int fd = open(path, O_RDONLY | O_CLOEXEC), err = 0;

	if (fd < 0)
		return -errno;
	for (int i = 0; i < rounds && !err; i++) {
		err = convert_once(fd, res, &ours[i]);
		if (!err) {
			child_once(fd, &child[i]);
			libdw_once(fd, res, &libdw[i]);
		}
	}
	close(fd);
	if (!err) {
		res->ms = median(ours, (size_t)rounds);
		res->child_ms = median(child, (size_t)rounds);
		res->dw_ms = median(libdw, (size_t)rounds);
	}
	return err;
}

int main(int argc, char **argv)
{
	int rounds = argc > 2 ? atoi(argv[1]) : 0;

	if (rounds < 1 || rounds > MAX_ROUNDS) {
		fputs("usage: convert ROUNDS FILE...\n", stderr);
		return 2;
	}
#ifdef HAVE_LIBDW
	elf_version(EV_CURRENT);
#endif
	table_worker_keep_memory();
	if (!child_begin()) {
		fputs("convert: a child cannot be started\n", stderr);
		return 1;
	}
	for (int i = 2; i < argc; i++) {
		struct result r = { 0 };
		int err = measure(argv[i], rounds, &r);

		if (err) {
			fprintf(stderr, "convert: %s: %s\n", argv[i], strerror(-err));
			return 1;
		}
		printf("{\"file\": \"%s\", \"text\": %llu, \"functions\": %llu, "
		       "\"rows\": %llu, \"rules\": %llu, \"bytes\": %llu, "
		       "\"ms\": %.3f, \"child_ms\": %.3f, "
		       "\"libdw_rows\": %llu, \"libdw_ms\": %.3f}\n",
		       argv[i], (unsigned long long)r.text, (unsigned long long)r.fns,
		       (unsigned long long)r.rows, (unsigned long long)r.rules,
		       (unsigned long long)r.bytes, r.ms, r.child_ms, (unsigned long long)r.dw_rows,
		       r.dw_ms);
	}
	child_end();
	return 0;
}
