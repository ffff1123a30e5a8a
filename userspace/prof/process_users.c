/* SPDX-License-Identifier: BSD-2-Clause */
#include "prof/process_users.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/idmap.h"
#include "base/process.h"
#include "base/vec.h"

#define MOST 65536 /* processes and thread names; then all are forgotten */

struct process_users {
	struct idmap threads; /* pid, hash of comm */
	uint32_t *users;      /* indexed by id */
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
		return PROCESS_NO_USER;
	pu->users[id] = process_user(pid);
	return pu->users[id];
}
