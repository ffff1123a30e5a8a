/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * manyfiles SECONDS TEMPLATE COUNT DEPTH UID: maps COUNT different files, executable, and runs in
 * them, DEPTH of them on each stack. The function in file K is called stub_K, eight digits, and
 * calls down, which calls the one in file K + 1. Prints "ready" when all files are mapped. The
 * files have no names any more by then.
 */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define NAME "stub_00000000"

typedef void (*stub_fn)(void (*fn)(long), long arg);

static stub_fn *stubs;
static long count, left;
static char *image;
static size_t size;

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void die(const char *what)
{
	perror(what);
	exit(1);
}

__attribute__((noinline)) void manyfiles_spin(void);
__attribute__((noinline)) void down(long k);

void manyfiles_spin(void)
{
	double end = now() + 0.004;

	while (now() < end)
		;
}

void down(long k)
{
	if (left-- > 0)
		stubs[k % count](down, k + 1);
	else
		manyfiles_spin();
	__asm__ volatile("");
}

static void read_template(const char *path)
{
	FILE *f = fopen(path, "r");

	image = malloc(1 << 20);
	size = f ? fread(image, 1, 1 << 20, f) : 0;
	if (!size)
		die(path);
	fclose(f);
}

/* Where the function lies in the file, and where its name does. */
static size_t find_stub(char **ret_name)
{
	Elf64_Ehdr *eh = (Elf64_Ehdr *)image;
	Elf64_Shdr *sh = (Elf64_Shdr *)(image + eh->e_shoff);

	for (int i = 0; i < eh->e_shnum; i++) {
		Elf64_Sym *sym = (Elf64_Sym *)(image + sh[i].sh_offset);

		if (sh[i].sh_type != SHT_SYMTAB)
			continue;
		for (size_t k = 0; k < sh[i].sh_size / sizeof(*sym); k++) {
			char *name = image + sh[sh[i].sh_link].sh_offset + sym[k].st_name;

			if (strcmp(name, NAME))
				continue;
			*ret_name = name;
			return sym[k].st_value;
		}
	}
	fprintf(stderr, "no %s\n", NAME);
	exit(1);
}

static void map_one(long k, size_t at)
{
	char path[] = "/dev/shm/manyfiles-XXXXXX";
	int fd = mkstemp(path);
	void *mem;

	if (fd < 0)
		die(path);
	unlink(path);
	if (write(fd, image, size) != (ssize_t)size)
		die("write");
	mem = mmap(NULL, size, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
	if (mem == MAP_FAILED)
		die("mmap");
	close(fd);
	stubs[k] = (stub_fn)((char *)mem + at);
}

int main(int argc, char **argv)
{
	char *name, digits[24];
	long depth;
	double end;
	size_t at;

	if (argc != 6)
		return 1;
	count = atol(argv[3]);
	depth = atol(argv[4]);
	read_template(argv[2]);
	if (setgid((gid_t)atol(argv[5])) || setuid((uid_t)atol(argv[5])))
		die("setuid");
	at = find_stub(&name);
	stubs = calloc((size_t)count, sizeof(*stubs));
	for (long k = 0; k < count; k++) {
		snprintf(digits, sizeof(digits), "%08ld", k % 100000000);
		memcpy(name + strlen("stub_"), digits, 8);
		map_one(k, at);
	}
	puts("ready");
	fflush(stdout);
	end = now() + atof(argv[1]);
	for (long k = 0; now() < end; k += depth) {
		left = depth;
		down(k % count);
	}
	return 0;
}
