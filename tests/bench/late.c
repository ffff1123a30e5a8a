// SPDX-License-Identifier: BSD-2-Clause
/*
 * late LIBRARY DEPENDENCY...: a program that runs for a while, and at SIGUSR1 loads LIBRARY and
 * works in it from then on.
 *
 * LIBRARY is a libLLVM. What it depends on, and what its work calls, was loaded and used before, so
 * that LIBRARY is the only file that a profiler meets for the first time then.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

typedef void *(*create_fn)(void);
typedef void (*dispose_fn)(void *);
typedef void *(*new_fn)(size_t);

static volatile sig_atomic_t wanted;

static void on_signal(int sig)
{
	(void)sig;
	wanted = 1;
}

static void *symbol(void *lib, const char *name)
{
	void *at = dlsym(lib, name);

	if (!at) {
		fprintf(stderr, "late: %s\n", dlerror());
		exit(1);
	}
	return at;
}

static __attribute__((noinline)) void wait_busily(void *runtime)
{
	new_fn create = (new_fn)symbol(runtime, "_Znwm");
	dispose_fn dispose = (dispose_fn)symbol(runtime, "_ZdlPv");

	while (!wanted)
		dispose(create(64));
}

int main(int argc, char **argv)
{
	create_fn create;
	dispose_fn dispose;
	void *lib;

	signal(SIGUSR1, on_signal);
	for (int i = 2; i < argc; i++)
		dlopen(argv[i], RTLD_NOW | RTLD_GLOBAL);
	wait_busily(RTLD_DEFAULT);
	lib = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
	if (!lib) {
		fprintf(stderr, "late: %s\n", dlerror());
		return 1;
	}
	create = (create_fn)symbol(lib, "LLVMContextCreate");
	dispose = (dispose_fn)symbol(lib, "LLVMContextDispose");
	for (;;)
		dispose(create());
}
