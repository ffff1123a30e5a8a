/* SPDX-License-Identifier: BSD-2-Clause */
#include "kern/open_worker.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/in_root.h"
#include "kern/caps.h"
#include "worker/privs.h"
#include "worker/sealed_file.h"

uint64_t open_worker_rights(void)
{
	uint64_t rights = PRIVS_CAP(CAP_SYS_PTRACE) | PRIVS_CAP(CAP_DAC_READ_SEARCH) |
			  PRIVS_CAP(CAP_CHECKPOINT_RESTORE);

	return rights | (caps_needed_mask() & PRIVS_CAP(CAP_SYS_ADMIN));
}

/* Reads the key that BPF sees of the file at SF_OPENED_AT. false: BPF sees none. */
static bool read_key(int iter_fd, struct sf_file_key *ret)
{
	ssize_t got;

	do
		got = read(iter_fd, ret, sizeof(*ret));
	while (got < 0 && (errno == EINTR || errno == EAGAIN));
	return got == (ssize_t)sizeof(*ret);
}

/*
 * Whether the file is the one that was requested: a mapping of it has the requested key. The key
 * tells a replaced mapping, a reused pid and a file that was written since from the file. On an
 * overlay it is the key of the layer's file, which stat(2) does not show.
 */
static bool is_expected(const struct open_ask *ask, int fd, int iter_fd)
{
	struct sf_file_key key;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *at = mmap((void *)SF_OPENED_AT, page, PROT_READ, MAP_PRIVATE | MAP_FIXED_NOREPLACE,
			fd, 0);
	bool same;

	if (at == MAP_FAILED)
		return false;
	same = at == (void *)SF_OPENED_AT && read_key(iter_fd, &key) &&
	       !memcmp(&key, &ask->key, sizeof(key));
	munmap(at, page);
	return same;
}

/* Opens the mapped file itself. Returns an fd or -errno. */
static int open_mapped(const struct open_ask *ask, int iter_fd, const char *link, struct stat *st)
{
	int fd = open(link, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return -errno;
	if (fstat(fd, st) || !S_ISREG(st->st_mode) || !is_expected(ask, fd, iter_fd)) {
		close(fd);
		return -ESTALE;
	}
	return fd;
}

/* Returns a copy of the file, or -errno. Closes `from`. */
static int copy_of(int from, const struct stat *st, uint64_t most, uint32_t *ret_bytes)
{
	struct stat now;
	int to = (uint64_t)st->st_size > most
			 ? -EFBIG
			 : sealed_file_copy("sfbpf-file", from, 0, st->st_size, ret_bytes);

	if (to >= 0 && (fstat(from, &now) ||
			clock_timespec_ns(now.st_ctim) != clock_timespec_ns(st->st_ctim))) {
		close(to);
		to = -ESTALE;
	}
	close(from);
	return to;
}

static int open_file(const struct worker_request *r)
{
	const struct open_ask *ask = r->ask;
	struct open_answer *answer = r->answer;
	struct stat st;
	char link[96];
	int fd;

	answer->err = -EINPROGRESS;
	snprintf(link, sizeof(link), "/proc/%u/map_files/%llx-%llx", living_thread(ask->pid),
		 (unsigned long long)ask->start, (unsigned long long)ask->end);
	if (readlink(link, answer->path, sizeof(answer->path) - 1) < 0)
		answer->path[0] = 0;
	/* The path is useful even if the open never returns. */
	if (ask->copy && fork_send(r->sock, answer, sizeof(*answer), &r->mem, 1, 0))
		_exit(1);
	fd = open_mapped(ask, r->fds[0], link, &st);
	answer->ctime_ns = fd < 0 || ask->copy ? 0 : clock_timespec_ns(st.st_ctim);
	if (fd >= 0 && ask->copy)
		fd = copy_of(fd, &st, ask->most, &answer->bytes);
	answer->err = fd < 0 ? fd : 0;
	return fd;
}

void open_worker_main(int sock, int mem)
{
	static const struct worker_service service = {
		.least = sizeof(struct open_ask),
		.most = sizeof(struct open_ask),
		.nfds = 1,
		.answer_len = sizeof(struct open_answer),
		.sends_fd = true,
		.reply = open_file,
	};

	prctl(PR_SET_NAME, "sfbpf-open");
	worker_serve(sock, mem, &service);
}
