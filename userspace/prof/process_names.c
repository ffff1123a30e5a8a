/* SPDX-License-Identifier: BSD-2-Clause */
#include "prof/process_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#define SLOTS 4096 /* a power of two; a new name replaces what its slot held */

struct process_names {
	struct {
		uint32_t pid;
		char comm[SF_COMM], name[SF_COMM];
	} slots[SLOTS];
	char own[SF_COMM];
};

struct process_names *process_names_new(void)
{
	return calloc(1, sizeof(struct process_names));
}

void process_names_free(struct process_names *pn)
{
	free(pn);
}

static void read_name(uint32_t pid, const char *otherwise, char name[SF_COMM])
{
	char path[32];
	size_t n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%u/comm", pid);
	f = fopen(path, "re");
	if (f) {
		n = fread(name, 1, SF_COMM - 1, f);
		fclose(f);
	}
	while (n && name[n - 1] == '\n')
		n--;
	memset(name + n, 0, SF_COMM - n);
	if (!n)
		memcpy(name, otherwise, SF_COMM);
}

const char *process_names_get(struct process_names *pn, const struct sf_sample *rec)
{
	size_t at;

	memset(pn->own, 0, sizeof(pn->own));
	memcpy(pn->own, rec->comm, strnlen(rec->comm, SF_COMM - 1));
	if (rec->tid == rec->pid)
		return pn->own;
	at = hash_mix(rec->pid, hash_bytes(pn->own, SF_COMM)) & (SLOTS - 1);
	if (pn->slots[at].pid != rec->pid || memcmp(pn->slots[at].comm, pn->own, SF_COMM) != 0) {
		pn->slots[at].pid = rec->pid;
		memcpy(pn->slots[at].comm, pn->own, SF_COMM);
		read_name(rec->pid, pn->own, pn->slots[at].name);
	}
	return pn->slots[at].name;
}
