/* SPDX-License-Identifier: BSD-2-Clause */
/* Files that tests make for themselves, in a directory of their own. */
#ifndef SFBPF_TESTS_UNIT_FILES_H
#define SFBPF_TESTS_UNIT_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

static char dir[64];

static inline bool make_dir(void)
{
	strcpy(dir, "/tmp/sfbpf-symtab-XXXXXX");
	return mkdtemp(dir) != NULL;
}

static inline void remove_dir(void)
{
	char cmd[128];

	snprintf(cmd, sizeof(cmd), "rm -rf %s", dir);
	if (system(cmd))
		printf("  could not remove %s\n", dir);
}

static inline const char *in_dir(const char *name)
{
	static char path[192];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

/* A test that has such a directory. */
#define TEST_IN_DIR(id)                                 \
	static void in_dir_##id(void);                  \
	TEST(id)                                        \
	{                                               \
		if (!make_dir())                        \
			SKIP("no temporary directory"); \
		in_dir_##id();                          \
		remove_dir();                           \
	}                                               \
	static void in_dir_##id(void)

static inline void write_file(const char *name, const char *text)
{
	char path[320];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	if (f) {
		fputs(text, f);
		fclose(f);
	}
}

/* Runs cmd in dir; false if it fails (the tool is missing). */
static inline bool run(const char *cmd)
{
	char line[512];

	snprintf(line, sizeof(line), "cd %s && %s 2>/dev/null", dir, cmd);
	return system(line) == 0;
}

/* Value of a symbol, from nm; 0 if there is none. */
/* The address of a symbol, and its size; 0: none. */
static inline uint64_t nm_sized(const char *file, const char *name, uint64_t *ret_size)
{
	char cmd[256], line[512], sym[256], type;
	unsigned long long value, size, found = 0;
	FILE *p;

	*ret_size = 0;
	snprintf(cmd, sizeof(cmd), "nm -S %s/%s", dir, file);
	p = popen(cmd, "r");
	while (p && fgets(line, sizeof(line), p)) {
		size = 0;
		if ((sscanf(line, "%llx %c %255s", &value, &type, sym) != 3 || strcmp(sym, name)) &&
		    (sscanf(line, "%llx %llx %c %255s", &value, &size, &type, sym) != 4 ||
		     strcmp(sym, name)))
			continue;
		found = value;
		*ret_size = size;
	}
	if (p)
		pclose(p);
	return found;
}

static inline uint64_t nm(const char *file, const char *name)
{
	uint64_t size;

	return nm_sized(file, name, &size);
}

static inline uint8_t *slurp(const char *path, size_t *ret_len)
{
	FILE *f = fopen(path, "r");
	uint8_t *mem = NULL;
	long len;

	if (!f)
		return NULL;
	fseek(f, 0, SEEK_END);
	len = ftell(f);
	rewind(f);
	mem = malloc((size_t)len + 1);
	*ret_len = mem ? fread(mem, 1, (size_t)len, f) : 0;
	fclose(f);
	return mem;
}

#endif
