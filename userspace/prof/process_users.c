/* SPDX-License-Identifier: BSD-2-Clause */
#include "prof/process_users.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/idmap.h"
#include "base/vec.h"

#define MOST 65536 /* processes and thread names; then all are forgotten */

struct process_users {
	struct idmap threads; /* pid, hash of comm */
	uint32_t *users;      /* by id */
	size_t cap;
};

struct process_users *process_users_new(void)
{
	return calloc(1, sizeof(struct process_users));
}

void process_users_free(struct process_users *pu)
{
	if (!pu)
		return;
	idmap_free(&pu->threads);
	free(pu->users);
	free(pu);
}

static uint32_t read_user(uint32_t pid)
{
	uint32_t user = PROCESS_USER_UNKNOWN;
	char path[32], line[256];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%u/status", pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "Uid: %u", &user) == 1)
			break;
	if (f)
		fclose(f);
	return user;
}

uint32_t process_users_get(struct process_users *pu, uint32_t pid, const char *comm)
{
	uint64_t name = hash_bytes(comm, strlen(comm));
	uint32_t id;

	if (idmap_find(&pu->threads, pid, name, &id))
		return pu->users[id];
	if (pu->threads.n == MOST)
		idmap_reset(&pu->threads);
	if (vec_reserve(&pu->users, &pu->cap, pu->threads.n + 1, sizeof(*pu->users)) ||
	    idmap_get(&pu->threads, pid, name, &id))
		return PROCESS_USER_UNKNOWN;
	pu->users[id] = read_user(pid);
	return pu->users[id];
}
