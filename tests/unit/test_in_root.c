/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process whose first thread has ended: its root and its mappings are another thread's to show.
 */
#include "base/in_root.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "paths/path_worker.h"
#include "test.h"

#define MARKER "/var/tmp/jit-%d.dump" /* not where it is looked for if no mapping tells */

static void *stay(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static void live_on(void)
{
	char path[64];
	pthread_t t;
	int fd;

	snprintf(path, sizeof(path), MARKER, getpid());
	fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
	if (fd < 0 || ftruncate(fd, 4096) ||
	    mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED ||
	    pthread_create(&t, NULL, stay, NULL))
		_exit(1);
	pthread_exit(NULL);
}

static bool leader_has_ended(pid_t pid)
{
	char path[32], state = 0;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	for (int i = 0; i < 1000 && state != 'Z'; i++) {
		FILE *f = fopen(path, "re");

		if (!f || fscanf(f, "%*d %*s %c", &state) != 1)
			state = 0;
		if (f)
			fclose(f);
		usleep(10000);
	}
	return state == 'Z';
}

TEST(in_root_leaderless)
{
	char path[64], *found;
	pid_t pid = fork();
	uint32_t tid;
	int root;

	if (!pid)
		live_on();
	EXPECT(leader_has_ended(pid));
	tid = living_thread((uint32_t)pid);
	EXPECT(tid && tid != (uint32_t)pid);
	root = root_of_process((uint32_t)pid);
	EXPECT(root >= 0);
	if (root >= 0)
		close(root);
	snprintf(path, sizeof(path), MARKER, pid);
	found = jit_dump_path((uint32_t)pid, (uint32_t)pid);
	EXPECT(found && !strcmp(found, path));
	free(found);
	unlink(path);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

TEST(in_root_gone)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
	EXPECT_EQ(living_thread((uint32_t)pid), (uint32_t)pid);
	EXPECT_EQ(living_thread((uint32_t)getpid()), (uint32_t)getpid());
	EXPECT(root_of_process((uint32_t)pid) < 0);
}
