/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * init [SECONDS]: busy in a function that the code in .init calls, as libcrypto's does: before
 * main(), and before the arguments are known.
 */
#include <fcntl.h>

#include "prog.h"

HOT(init)

__attribute__((used)) static NOIPA void init_begin(void)
{
	char line[256] = { 0 }, *argv[] = { line, line };
	int fd = open("/proc/self/cmdline", O_RDONLY);
	unsigned long r;

	if (fd >= 0 && read(fd, line, sizeof(line) - 1) > 0)
		argv[1] = line + strlen(line) + 1;
	close(fd);
	prog_init(2, argv);
	r = init_hot(2);
	prog_keep(&r);
}

#ifdef __x86_64__
__asm__(".section .init, \"ax\", @progbits\n	call init_begin\n.text\n");
#else
__asm__(".section .init, \"ax\", %progbits\n	bl init_begin\n.text\n");
#endif

int main(void)
{
	return 0;
}
