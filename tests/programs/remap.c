/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Linked into a program: before main, replaces the mapped code of the program and of its libraries
 * by copies at the same addresses. REMAP 1: anonymous memory, all but the first page of each
 * mapping, as programs do that copy their code onto huge pages. 2: memfds, all of each mapping.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define TEXTS 16

struct text {
	char *start;
	size_t len;
};

static int texts_of_this_process(struct text *texts)
{
	FILE *f = fopen("/proc/self/maps", "re");
	unsigned long start, end;
	char line[512], perms[8];
	int n = 0;

	while (f && n < TEXTS && fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx-%lx %7s", &start, &end, perms) == 3 && perms[2] == 'x' &&
		    strchr(line, '/'))
			texts[n++] = (struct text){ (char *)start, end - start };
	if (f)
		fclose(f);
	return n;
}

/* The copy takes the place of the code at once: these functions are part of it. */
static void *put_anonymous(const struct text *t)
{
	char *copy = mmap(NULL, t->len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (copy == MAP_FAILED)
		return copy;
	memcpy(copy, t->start, t->len);
	if (mprotect(copy, t->len, PROT_READ | PROT_EXEC))
		return MAP_FAILED;
	return mremap(copy, t->len, t->len, MREMAP_MAYMOVE | MREMAP_FIXED, t->start);
}

static void *put_memfd(const struct text *t)
{
	int fd = memfd_create("text", MFD_CLOEXEC);
	void *at = MAP_FAILED;

	if (fd >= 0 && write(fd, t->start, t->len) == (ssize_t)t->len)
		at = mmap(t->start, t->len, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 0);
	close(fd);
	return at;
}

__attribute__((constructor)) static void remap(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct text texts[TEXTS];
	int n = texts_of_this_process(texts);

	for (int i = 0; i < n; i++) {
		struct text t = texts[i];

		if (REMAP == 1 && t.len > page) {
			t.start += page;
			t.len -= page;
		}
		if ((REMAP == 1 ? put_anonymous(&t) : put_memfd(&t)) != t.start)
			abort();
	}
}
