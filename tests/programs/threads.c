/* SPDX-License-Identifier: BSD-2-Clause */
/* threads [SECONDS]: two threads, each with a chain of its own, while the first one waits. */
#include <pthread.h>
#include "prog.h"

HOT(tha)
HOT(thb)

static NOIPA void *tha_main(void *arg)
{
	unsigned long r = tha_hot((unsigned long)arg);

	prog_keep(&r);
	return NULL;
}

static NOIPA unsigned long thb_inner(unsigned long x)
{
	return thb_hot(x) + 1;
}

static NOIPA void *thb_main(void *arg)
{
	unsigned long r = thb_inner((unsigned long)arg);

	prog_keep(&r);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t a, b;

	prog_init(argc, argv);
	if (pthread_create(&a, NULL, tha_main, (void *)1) ||
	    pthread_create(&b, NULL, thb_main, (void *)2))
		return 1;
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	return 0;
}
