/* SPDX-License-Identifier: BSD-2-Clause */
#include "paths/process_maps.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/full_io.h"

#define LIST_MOST (1u << 20)   /* bytes of a list of mappings: some 10,000 */
#define FILE_MOST (1ull << 30) /* bytes of a file that is read as a copy */

int process_maps_read(struct path_opener *o, uint32_t pid, uint32_t owner, char **ret)
{
	static struct path_answer answer;
	static struct path_ask what;
	int fd, err = -ENOENT;
	char *list = NULL;

	path_ask_begin(&what, PATH_MAPS, pid, owner);
	what.live = true;
	fd = path_open(o, &what, -1, &answer);
	if (fd < 0)
		return fd;
	if (answer.size && answer.size < LIST_MOST) {
		list = malloc((size_t)answer.size + 1);
		err = list ? pread_full(fd, list, (size_t)answer.size, 0) : -ENOMEM;
	}
	close(fd);
	if (err) {
		free(list);
		return err;
	}
	list[answer.size] = 0;
	*ret = list;
	return 0;
}

bool process_maps_next(char **text, struct process_map *ret)
{
	char *line;

	while ((line = strsep(text, "\n")))
		if (sscanf(line, PROCESS_CONTEXT_SCAN, &ret->start, &ret->end, &ret->offset,
			   &ret->id.dev, &ret->id.ino, &ret->id.ctime_ns) == 6)
			return true;
	return false;
}

int process_maps_open(struct path_opener *o, uint32_t pid, uint32_t owner,
		      const struct process_map *m)
{
	static struct path_answer answer;
	static struct path_ask what;
	int fd;

	path_ask_begin(&what, PATH_MAPPED, pid, owner);
	what.live = true;
	what.most = FILE_MOST;
	what.mapping.start = m->start;
	what.mapping.end = m->end;
	fd = path_open(o, &what, -1, &answer);
	if (fd < 0)
		return fd == -ENOENT ? -ESTALE : fd;
	if (!memcmp(&answer.id, &m->id, sizeof(m->id)))
		return fd;
	close(fd);
	return -ESTALE;
}
