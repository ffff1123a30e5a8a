/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * memfdexec PROGRAM ARGS...: copies PROGRAM into a memfd and executes that, so that the file has no
 * path.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include "prog.h"

int main(int argc, char **argv)
{
	static char buf[65536];
	int in, out;
	ssize_t n;

	if (argc < 2)
		return 2;
	in = open(argv[1], O_RDONLY | O_CLOEXEC);
	out = memfd_create("nopath", MFD_CLOEXEC);
	if (in < 0 || out < 0)
		return 77;
	while ((n = read(in, buf, sizeof(buf))) > 0)
		if (write(out, buf, (size_t)n) != n)
			return 1;
	fexecve(out, argv + 1, environ);
	return 1;
}
