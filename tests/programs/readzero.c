/* SPDX-License-Identifier: BSD-2-Clause */
/* readzero [SECONDS]: large reads of /dev/zero: the kernel's part on top of the user chain. */
#include <fcntl.h>
#include "prog.h"

static char rz_buf[1 << 20];

static NOIPA unsigned long rz_hot(int fd, unsigned long x)
{
	while (!prog_stop)
		x += (unsigned long)read(fd, rz_buf, sizeof(rz_buf));
	return x;
}

static NOIPA unsigned long rz_run(int fd)
{
	return rz_hot(fd, 1) + 1;
}

int main(int argc, char **argv)
{
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	unsigned long r;

	if (fd < 0)
		return 77;
	prog_init(argc, argv);
	r = rz_run(fd);
	prog_keep(&r);
	return 0;
}
