/* SPDX-License-Identifier: BSD-2-Clause */
/* dlmid [SECONDS]: main program, a library got by dlopen(), main program again. */
#include <dlfcn.h>
#include <stdio.h>
#include "prog.h"

HOT(dl)

static NOIPA unsigned long dl_callback(unsigned long x)
{
	return dl_hot(x) + 1;
}

static NOIPA unsigned long dl_run(unsigned long (*enter)(unsigned long (*)(unsigned long),
							 unsigned long),
				  unsigned long x)
{
	return enter(dl_callback, x) + 1;
}

int main(int argc, char **argv)
{
	unsigned long (*enter)(unsigned long (*)(unsigned long), unsigned long);
	char path[4096];
	unsigned long r;
	void *lib;
	ssize_t n;

	n = readlink("/proc/self/exe", path, sizeof(path) - 32);
	while (n > 0 && path[n - 1] != '/')
		n--;
	snprintf(path + n, 32, "libdlmid.so");
	lib = dlopen(path, RTLD_NOW);
	if (!lib)
		return 77;
	*(void **)&enter = dlsym(lib, "mid_enter");
	prog_init(argc, argv);
	r = dl_run(enter, (unsigned long)argc);
	prog_keep(&r);
	return 0;
}
