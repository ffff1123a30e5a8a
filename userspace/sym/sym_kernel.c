/* SPDX-License-Identifier: BSD-2-Clause */
#include "sym/sym_kernel.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strpool.h"
#include "base/vec.h"

/* kallsyms has no sizes: a function ends where the next begins, but none is this long; beyond lies unnamed memory. */
#define FUNCTION_MAX (256u << 10)

struct ksym {
	uint64_t addr;
	uint32_t name;		/* offset in names */
	uint16_t module;	/* id in modules */
	uint8_t rank;		/* of several names at one address the least wins */
};

struct sym_kernel {
	struct ksym *syms;	/* by addr, no two equal */
	size_t n, cap;
	char *names;
	size_t names_len, names_cap;
	struct strpool *modules;	/* "[ext4]" */
};

void sym_kernel_free(struct sym_kernel *k)
{
	if (!k)
		return;
	strpool_free(k->modules);
	free(k->names);
	free(k->syms);
	free(k);
}

/* As in elf_symtab: fewer leading underscores, then global, weak, local. */
static uint8_t rank_of(const char *name, char type)
{
	size_t under = strspn(name, "_");

	return (uint8_t)((under < 15 ? under : 15) << 2 | (type == 'T' ? 0 : type == 't' ? 2 : 1));
}

static int add_line(struct sym_kernel *k, char *line)
{
	char *at, *name, *end, *module = NULL;
	uint64_t addr = strtoull(line, &at, 16);
	uint32_t module_id = 0;
	char type;
	int err;

	if (!addr || at[0] != ' ' || !at[1] || at[2] != ' ' || !strchr("tTwW", at[1]))
		return 0;
	type = at[1];
	name = at + 3;
	end = name + strcspn(name, " \t\n");
	if (*end == '\t' || *end == ' ')
		module = end + 1 + strspn(end + 1, " \t");
	*end = 0;
	if (module)
		module[strcspn(module, " \t\n")] = 0;
	if (!*name || name[0] == '$')
		return 0;
	err = strpool_intern(k->modules, module ? module : "[kernel]", strlen(module ? module : "[kernel]"), &module_id);
	if (!err)
		err = vec_reserve(&k->syms, &k->cap, k->n + 1, sizeof(*k->syms));
	if (!err)
		err = vec_reserve(&k->names, &k->names_cap, k->names_len + (size_t)(end - name) + 1, 1);
	if (err || module_id > UINT16_MAX || k->names_len > UINT32_MAX)
		return -ENOMEM;
	k->syms[k->n++] = (struct ksym){ addr, (uint32_t)k->names_len, (uint16_t)module_id, rank_of(name, type) };
	memcpy(k->names + k->names_len, name, (size_t)(end - name) + 1);
	k->names_len += (size_t)(end - name) + 1;
	return 0;
}

static int compare_ksym(const void *a, const void *b)
{
	const struct ksym *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return x->name < y->name ? -1 : x->name > y->name;
}

static void sort_and_fit(struct sym_kernel *k)
{
	size_t out = 0;
	void *fitted;

	if (!k->n)
		return;
	qsort(k->syms, k->n, sizeof(*k->syms), compare_ksym);
	for (size_t i = 0; i < k->n; i++)
		if (!out || k->syms[i].addr != k->syms[out - 1].addr)
			k->syms[out++] = k->syms[i];
	k->n = out;
	fitted = realloc(k->syms, k->n * sizeof(*k->syms));
	if (fitted) {
		k->syms = fitted;
		k->cap = k->n;
	}
	fitted = realloc(k->names, k->names_len);
	if (fitted) {
		k->names = fitted;
		k->names_cap = k->names_len;
	}
}

int sym_kernel_load(const char *path, struct sym_kernel **ret)
{
	struct sym_kernel *k;
	char *line = NULL;
	size_t cap = 0;
	int err = 0;
	FILE *f;

	f = fopen(path, "re");
	if (!f)
		return -errno;
	k = calloc(1, sizeof(*k));
	if (k)
		k->modules = strpool_new();
	if (!k || !k->modules)
		err = -ENOMEM;
	while (!err && getline(&line, &cap, f) > 0)
		err = add_line(k, line);
	if (!err && ferror(f))
		err = -EIO;
	free(line);
	fclose(f);
	if (err) {
		sym_kernel_free(k);
		return err;
	}
	sort_and_fit(k);
	*ret = k;
	return 0;
}

const char *sym_kernel_find(const struct sym_kernel *k, uint64_t addr, const char **ret_module)
{
	size_t lo = 0, hi = k->n;	/* symbols before lo start at or below addr, those from hi on above it */

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (k->syms[mid].addr <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo || addr - k->syms[lo - 1].addr >= FUNCTION_MAX)
		return NULL;
	*ret_module = strpool_str(k->modules, k->syms[lo - 1].module);
	return k->names + k->syms[lo - 1].name;
}

uint32_t sym_kernel_count(const struct sym_kernel *k)
{
	return (uint32_t)k->n;
}

size_t sym_kernel_bytes(const struct sym_kernel *k)
{
	return sizeof(*k) + k->cap * sizeof(*k->syms) + k->names_cap + strpool_bytes(k->modules);
}
