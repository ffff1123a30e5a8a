/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * iouring [SECONDS]: reads of 1 MiB that a thread of io_uring does, one after the other. Such a
 * thread belongs to the process, and has no user part.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include "prog.h"

#define SIZE (1u << 20)

static char buffer[SIZE];

static void *ring_part(int ring, size_t size, off_t which)
{
	return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, ring, which);
}

static unsigned int *ring_field(char *part, unsigned int at)
{
	return (unsigned int *)(void *)(part + at);
}

static int read_on(int ring, const struct io_uring_params *p, int fd)
{
	char *sq = ring_part(ring, 4096, IORING_OFF_SQ_RING);
	char *cq = ring_part(ring, 4096, IORING_OFF_CQ_RING);
	struct io_uring_sqe *sqe = ring_part(ring, 4096, IORING_OFF_SQES);

	if (sq == MAP_FAILED || cq == MAP_FAILED || sqe == MAP_FAILED)
		return 77;
	while (!prog_stop) {
		memset(sqe, 0, sizeof(*sqe));
		sqe->opcode = IORING_OP_READ;
		sqe->flags = IOSQE_ASYNC;
		sqe->fd = fd;
		sqe->addr = (unsigned long)buffer;
		sqe->len = SIZE;
		*ring_field(sq, p->sq_off.array) = 0;
		__atomic_add_fetch(ring_field(sq, p->sq_off.tail), 1, __ATOMIC_RELEASE);
		if (syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) < 0 &&
		    errno != EINTR)
			return 77;
		__atomic_store_n(ring_field(cq, p->cq_off.head), *ring_field(cq, p->cq_off.tail),
				 __ATOMIC_RELEASE);
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct io_uring_params p = { 0 };
	int ring = (int)syscall(SYS_io_uring_setup, 1, &p);
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	prog_init(argc, argv);
	return ring < 0 || fd < 0 ? 77 : read_on(ring, &p, fd);
}
