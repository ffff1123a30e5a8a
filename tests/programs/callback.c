/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * callback [SECONDS]: busy in a comparison function that libc's qsort() calls, which bsearch()
 * called.
 */
#include "prog.h"

HOT(cb)

static NOIPA int cb_compare(const void *a, const void *b)
{
	unsigned long r = cb_hot(*(const unsigned int *)a);

	prog_keep(&r);
	return (*(const int *)a > *(const int *)b) - (*(const int *)a < *(const int *)b);
}

static NOIPA int cb_search(const void *key, const void *elem)
{
	int v[2] = { 2, 1 };

	(void)key;
	qsort(v, 2, sizeof(v[0]), cb_compare);
	return v[0] - *(const int *)elem;
}

static NOIPA int cb_run(int argc)
{
	int v[1] = { argc };

	return bsearch(&argc, v, 1, sizeof(v[0]), cb_search) == NULL;
}

int main(int argc, char **argv)
{
	int r;

	prog_init(argc, argv);
	r = cb_run(argc);
	prog_keep(&r);
	return 0;
}
