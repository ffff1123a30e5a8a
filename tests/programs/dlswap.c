/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dlswap [SECONDS]: loads two libraries in turn at the same address, 30 ms each. 77 if the loader
 * does not put them at one address.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include "prog.h"

typedef unsigned long (*enter_fn)(volatile sig_atomic_t *stop, unsigned long rounds);

static NOIPA void *sw_turn(const char *path, unsigned long rounds)
{
	void *lib = dlopen(path, RTLD_NOW);
	enter_fn enter;
	void *at;

	if (!lib)
		return NULL;
	*(void **)&enter = dlsym(lib, "sw_enter");
	at = (void *)((struct link_map *)lib)->l_addr;
	if (!enter || enter(&prog_stop, rounds) == 0)
		at = NULL;
	dlclose(lib);
	return at;
}

int main(int argc, char **argv)
{
	char a[4096], b[4096];
	void *at_a, *at_b;
	ssize_t n;

	n = readlink("/proc/self/exe", a, sizeof(a) - 32);
	while (n > 0 && a[n - 1] != '/')
		n--;
	memcpy(b, a, (size_t)n);
	snprintf(a + n, 32, "libswapa.so");
	snprintf(b + n, 32, "libswapb.so");
	at_a = sw_turn(a, 1);
	at_b = sw_turn(b, 1);
	if (!at_a || at_a != at_b)
		return 77;
	prog_init(argc, argv);
	while (!prog_stop) {
		sw_turn(a, 100000);
		sw_turn(b, 100000);
	}
	return 0;
}
