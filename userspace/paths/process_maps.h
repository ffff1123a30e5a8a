/* SPDX-License-Identifier: BSD-2-Clause */
/* The mappings of a process that are of files with code, through the worker that opens paths. */
#ifndef SFBPF_PATHS_PROCESS_MAPS_H
#define SFBPF_PATHS_PROCESS_MAPS_H

#include <stdbool.h>
#include <stdint.h>

#include "paths/path_opener.h"

struct process_map {
	uint64_t start, end; /* addresses */
	uint64_t offset;     /* where it begins in the file */
	struct mapped_id id;
};

/* Reads the list as text, which the caller frees. 0 or -errno, as path_open. owner: the user */
int process_maps_read(struct path_opener *o, uint32_t pid, uint32_t owner, char **ret);
/* Takes a mapping off the text. False: the end. */
bool process_maps_next(char **text, struct process_map *ret);
/*
 * Opens the mapped file, or a copy of it. Returns a descriptor; -ESTALE: another file is mapped
 * there, or none; else as path_open.
 */
int process_maps_open(struct path_opener *o, uint32_t pid, uint32_t owner,
		      const struct process_map *m);

#endif
