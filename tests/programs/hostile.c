/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a process can do to a profiler: hostile SHAPE, hostile run FILE, or hostile sleep FILE. Runs
 * until killed.
 *
 * The shapes spin for ever with registers and a stack that no compiler makes:
 * 	cycle		a frame whose saved frame pointer is its own
 * 	pair		two frames that name each other
 * 	endless		a million frames by frame pointer, in code without tables
 * 	endless-read	the same, and the code before each return address can be read
 * 	endless-spread	the same, each return address in another page that is not mapped
 * 	tables		a million frames in code whose .eh_frame says so
 * 	elsewhere	stack pointer and frame pointer into libc's text
 * 	wild		a stack pointer of 1, a frame pointer in the kernel's half
 * 	edge		a frame pointer to the last word before memory that cannot be read
 * 	absent		a stack that has never been touched
 * 	churn		maps, runs and unmaps a file without a pause
 * 	rewrite		rewrites the head of a file that it maps and runs
 * run: maps FILE from offset 4096 on and jumps there.
 * sleep: sleeps with the stack pointer in a page of FILE that was never read.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "prog.h"

#define PAGE	  4096
#define FRAMES	  (1 << 20)
#define AFTER_ONE 2 /* bytes: after the first instruction */

static const unsigned char spin_code[] = { 0xf3, 0x90, 0xeb, 0xfc }; /* 1: pause; jmp 1b */
static const unsigned char return_code[] = { 0xc3 };

/* spin_by_table: each frame is 16 bytes, its return address the word below the CFA. */
extern const char spin_by_table[], spin_by_table_back[];
__asm__(".text\n"
	".type spin_by_table, @function\n"
	"spin_by_table:\n"
	"	.cfi_startproc\n"
	"	.cfi_def_cfa %rsp, 16\n"
	"1:	pause\n"
	"spin_by_table_back:\n"
	"	jmp 1b\n"
	"	nop\n"
	"	.cfi_endproc\n"
	".size spin_by_table, . - spin_by_table\n");

/* Waits for a signal, without a word of the stack. */
extern const char pause_for_ever[];
__asm__(".text\n"
	"pause_for_ever:\n"
	"	mov $34, %eax\n"
	"	syscall\n"
	"	jmp pause_for_ever\n");

static void *map(size_t n, int prot)
{
	void *p = mmap(NULL, n, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		exit(1);
	return p;
}

/* Anonymous code: no file, so no tables. */
static const void *anonymous_code(void)
{
	void *p = map(PAGE, PROT_READ | PROT_WRITE);

	memcpy(p, spin_code, sizeof(spin_code));
	mprotect(p, PAGE, PROT_READ | PROT_EXEC);
	return p;
}

static _Noreturn void run(const void *code, const void *sp, const void *fp)
{
	__asm__ volatile("mov %1, %%rsp\n\tmov %2, %%rbp\n\tjmp *%0"
			 :
			 : "r"(code), "r"(sp), "r"(fp));
	__builtin_unreachable();
}

/*
 * n frames by frame pointer; the last one names the frame that is step frames on. ra: where in the
 * code they return to; of the next frame: spread bytes below.
 */
static _Noreturn void by_frame_pointer(size_t n, ssize_t step, int64_t ra, size_t spread)
{
	const void *code = anonymous_code();
	uint64_t *at = map(n * 16, PROT_READ | PROT_WRITE);

	for (size_t i = 0; i < n; i++) {
		at[2 * i] = (uint64_t)&at[2 * ((ssize_t)i + (i + 1 < n ? 1 : step))];
		at[2 * i + 1] = (uint64_t)code + ra - i * spread;
	}
	run(code, at, at);
}

static _Noreturn void tables(void)
{
	uint64_t *at = map(FRAMES * 16UL, PROT_READ | PROT_WRITE);

	for (size_t i = 0; i < 2 * FRAMES; i++)
		at[i] = (uint64_t)spin_by_table_back;
	run(spin_by_table, at, at);
}

static _Noreturn void edge(void)
{
	char *p = map(2 * PAGE, PROT_READ | PROT_WRITE);

	mprotect(p + PAGE, PAGE, PROT_NONE);
	run(anonymous_code(), p, p + PAGE - 8);
}

/* A file of our own with code at its second page; *fd stays open. */
static const char *own_file(const unsigned char *code, size_t n, int *fd)
{
	static const char elf[] = "\177ELF\2\1\1";
	static char path[64];

	*fd = memfd_create("hostile", 0);
	if (*fd < 0 || pwrite(*fd, elf, sizeof(elf), 0) < 0 || pwrite(*fd, code, n, PAGE) < 0 ||
	    ftruncate(*fd, 2 * PAGE))
		exit(1);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", *fd);
	return path;
}

static _Noreturn void churn(void)
{
	int fd;

	own_file(return_code, sizeof(return_code), &fd);
	for (;;) {
		void *p = mmap(NULL, 2 * PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);

		if (p == MAP_FAILED)
			exit(1);
		for (int i = 0; i < 1000; i++)
			((void (*)(void))((char *)p + PAGE))();
		munmap(p, 2 * PAGE);
	}
}

static void *scribble(void *fd)
{
	unsigned char head[PAGE];
	unsigned int seed = 1;

	for (;;) {
		for (size_t i = 0; i < sizeof(head); i++)
			head[i] = (unsigned char)rand_r(&seed);
		memcpy(head, "\177ELF\2\1\1", 7);
		if (pwrite((int)(intptr_t)fd, head, sizeof(head), 0) < 0)
			exit(1);
	}
	return NULL;
}

static _Noreturn void run_file(int fd)
{
	void *p = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, PAGE);

	if (p == MAP_FAILED)
		exit(1);
	run(p, __builtin_frame_address(0), __builtin_frame_address(0));
}

static _Noreturn void sleep_on(int fd)
{
	char *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);

	if (p == MAP_FAILED)
		exit(1);
	run(pause_for_ever, p + PAGE / 2, p + PAGE / 2);
}

static _Noreturn void rewrite(void)
{
	pthread_t t;
	int fd;

	own_file(spin_code, sizeof(spin_code), &fd);
	if (pthread_create(&t, NULL, scribble, (void *)(intptr_t)fd))
		exit(1);
	run_file(fd);
}

int main(int argc, char **argv)
{
	const char *shape = argc > 1 ? argv[1] : "";

	if (argc > 2) {
		int fd = open(argv[2], O_RDONLY | O_CLOEXEC);

		if (fd >= 0 && !strcmp(shape, "run"))
			run_file(fd);
		if (fd >= 0 && !strcmp(shape, "sleep"))
			sleep_on(fd);
	}
	if (!strcmp(shape, "cycle"))
		by_frame_pointer(1, 0, AFTER_ONE, 0);
	if (!strcmp(shape, "pair"))
		by_frame_pointer(2, -1, AFTER_ONE, 0);
	if (!strcmp(shape, "endless"))
		by_frame_pointer(FRAMES, 1, AFTER_ONE, 0);
	if (!strcmp(shape, "endless-read"))
		by_frame_pointer(FRAMES, 1, 64, 0);
	if (!strcmp(shape, "endless-spread"))
		by_frame_pointer(FRAMES, 1, 64 - (1ll << 32), PAGE);
	if (!strcmp(shape, "tables"))
		tables();
	if (!strcmp(shape, "elsewhere"))
		run(anonymous_code(), (const void *)printf, (const void *)printf);
	if (!strcmp(shape, "wild"))
		run(anonymous_code(), (const void *)1, (const void *)0xffffffff81000000);
	if (!strcmp(shape, "edge"))
		edge();
	if (!strcmp(shape, "absent"))
		run(anonymous_code(), map(FRAMES, PROT_READ), map(FRAMES, PROT_READ));
	if (!strcmp(shape, "churn"))
		churn();
	if (!strcmp(shape, "rewrite"))
		rewrite();
	fprintf(stderr, "hostile: unknown shape\n");
	return 2;
}
