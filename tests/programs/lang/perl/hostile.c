// SPDX-License-Identifier: BSD-2-Clause
/*
 * hostile CASE SECONDS: has the symbols of a Perl 5.36, and an interpreter whose contexts are
 * honest ("deep"), or cyclic, endless, nameless or wild pointers.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default"), used))

EXPORT const unsigned char PL_revision = 5, PL_version = 36;
EXPORT pthread_key_t PL_thr_key;

struct context {
	uint8_t type, rest[15];
	const void *cop;
	uint64_t room[3];
	const void *retop;
	uint64_t room2[2];
	const void *cv;
	uint64_t room3[3];
};

struct stack {
	void *av;
	struct context *contexts;
	struct stack *prev, *next;
	int32_t top, max, room, type;
};

_Static_assert(sizeof(struct context) == 104, "context");
_Static_assert(sizeof(struct stack) == 48, "stack");

enum { BLOCK = 2, SUB = 9, EVAL = 11, MAIN = 1, DESTROY = 6, MANY = 1 << 20 };

static uint64_t interp[64];
static struct stack stack, second;
static time_t end;

/* A sub: the head, the body, and "name" as its name */
static uint64_t cop[8], head[3], body[13], stash[3], stash_body[8];
static struct {
	uint32_t hash;
	int32_t len;
	char text[300];
} name = { 0, 4, "name" };
static char *endless_text;

static void make_sub(void)
{
	static char file[] = "hostile.pl";

	cop[6] = (uintptr_t)file;
	head[0] = (uintptr_t)body;
	head[1] = 13ull << 32;
	body[4] = (uintptr_t)stash;
	body[6] = 1;
	body[7] = (uintptr_t)&name;
	body[8] = (uintptr_t)file;
	body[11] = 0x8000ull << 32;
	stash[0] = (uintptr_t)stash_body;
	stash_body[4] = (uintptr_t)&name;
}

static void *map(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		exit(1);
	return p;
}

/* Contexts in memory that is there. */
static void fill(int n, int type, const void *cv)
{
	stack.contexts = map(sizeof(struct context) * (size_t)n);
	for (int i = 0; i < n; i++)
		stack.contexts[i] = (struct context){
			.type = (uint8_t)type, .cop = cop, .retop = cop, .cv = cv
		};
	stack.contexts[0].type = BLOCK;
	stack.top = n - 1;
}

EXPORT __attribute__((noinline)) int Perl_runops_standard(void)
{
	volatile unsigned int x = 1;

	while (time(NULL) < end)
		for (int i = 0; i < 100000; i++)
			x = x * 1103515245 + 12345;
	return (int)x;
}

int main(int argc, char **argv)
{
	const char *which = argc > 2 ? argv[1] : "";

	end = time(NULL) + (argc > 2 ? atoi(argv[2]) : 0);
	make_sub();
	stack.type = MAIN;
	interp[1] = (uintptr_t)cop;
	interp[208 / 8] = (uintptr_t)cop;
	interp[224 / 8] = (uintptr_t)&stack;
	if (!strcmp(which, "deep")) {
		fill(900, SUB, head);
	} else if (!strcmp(which, "cycle")) { /* stacks without contexts */
		stack = (struct stack){ .prev = &second, .top = -1, .type = DESTROY };
		second = stack;
		second.prev = &stack;
	} else if (!strcmp(which, "called")) { /* each context ends an activation */
		fill(900, SUB, head);
		for (int i = 1; i < 900; i++)
			stack.contexts[i].retop = NULL;
		stack.type = DESTROY;
		stack.prev = &stack;
	} else if (!strcmp(which, "nameless")) {
		fill(MANY, BLOCK, NULL);
	} else if (!strcmp(which, "endless")) {
		fill(MANY, SUB, head);
	} else if (!strcmp(which, "wild")) {
		fill(900, SUB, (void *)(uintptr_t)0xdeadbeef0000);
	} else if (!strcmp(which, "top")) { /* contexts that are not there */
		fill(900, SUB, head);
		stack.top = INT32_MAX;
	} else if (!strcmp(which, "different") || !strcmp(which, "text")) {
		static char file[] = "hostile.pl";

		/* Each context is another sub; their names have no end. */
		endless_text = file;
		if (!strcmp(which, "text")) {
			endless_text = map(1 << 20);
			memset(endless_text, 'x', 1 << 20);
			name.len = INT32_MAX;
		}
		fill(900, SUB, head);
		for (int i = 1; i < 900; i++) {
			uint64_t *cv = map(4096);

			memcpy(cv, head, sizeof(head));
			memcpy(cv + 8, body, sizeof(body));
			cv[0] = (uintptr_t)(cv + 8);
			cv[8 + 6] = (uintptr_t)cv;
			cv[8 + 8] = (uintptr_t)endless_text;
			stack.contexts[i].cv = cv;
		}
	} else {
		return 2;
	}
	if (pthread_key_create(&PL_thr_key, NULL) || pthread_setspecific(PL_thr_key, interp))
		return 1;
	puts("READY");
	fflush(stdout);
	return Perl_runops_standard() == 3;
}
