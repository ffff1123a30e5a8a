/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * spans LIBRARY|-: threads that publish the span that they work for (OTEP 4947), in a variable of
 * this program (-) or of a library that is opened now. It says that in a process context (OTEP
 * 4719), and prints its pid.
 *
 *	span-1, span-2	work for a trace and a span of their number; span-2 in run-time code
 *	turns		works for span 3 and for none, in turns of 10 ms
 *	plain		has no record
 *	unset		has a record without a trace
 *	changing	has a record that is being changed
 *	wild		has a pointer to memory that is not mapped
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct record {
	uint8_t trace[16], span[8];
	volatile uint8_t valid;
	uint8_t flags;
	uint16_t attributes;
};

#ifdef LIBRARY
__thread void *otel_thread_ctx_v1;

void set_context(void *record)
{
	*(void *volatile *)&otel_thread_ctx_v1 = record;
}
#else
#ifdef OWN
__thread void *otel_thread_ctx_v1;

static void set_own(void *record)
{
	*(void *volatile *)&otel_thread_ctx_v1 = record;
}
#else
#define set_own NULL
#endif

static void (*set_context)(void *record) = set_own;

typedef void burn_fn(unsigned int n);

static void burn(unsigned int n)
{
	for (volatile unsigned int i = 0; i < n; i++)
		;
}

/* The same in memory without a file; the process has a jitdump (a header alone). */
static burn_fn *burn_made(void)
{
	static const uint8_t code[] = { 0xff, 0xcf, 0x75, 0xfc,
					0xc3 }; /* 1: dec %edi; jnz 1b; ret */
	void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
			-1, 0);
	char path[32];
	burn_fn *fn;
	FILE *dump;

	snprintf(path, sizeof(path), "/tmp/jit-%d.dump", getpid());
	dump = fopen(path, "w");
	if (at == MAP_FAILED || !dump)
		exit(1);
	fwrite((uint32_t[10]){ 0x4a695444, 1, 40, 62 }, 40, 1, dump);
	fclose(dump);
	memcpy(at, code, sizeof(code));
	memcpy(&fn, &at, sizeof(fn));
	return fn;
}

static void spin(long ms, burn_fn *fn)
{
	struct timespec from, now;

	clock_gettime(CLOCK_MONOTONIC, &from);
	do {
		fn(10000);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((now.tv_sec - from.tv_sec) * 1000 + (now.tv_nsec - from.tv_nsec) / 1000000 < ms);
}

static void *work(void *arg)
{
	const char *name = arg;
	burn_fn *fn = strcmp(name, "span-2") ? burn : burn_made();
	struct record r = { .valid = 1 };
	int n = name[0] == 's' ? name[5] - '0' : name[0] == 't' ? 3 : 0;

	pthread_setname_np(pthread_self(), name);
	if (n) {
		memset(r.trace, 0xa0 + n, sizeof(r.trace));
		memset(r.span, 0xb0 + n, sizeof(r.span));
	}
	if (!strcmp(name, "changing")) {
		memset(&r, 0xee, offsetof(struct record, valid));
		r.valid = 0;
	}
	if (strcmp(name, "plain"))
		set_context(!strcmp(name, "wild") ? (void *)0x7000 : &r);
	for (;;) {
		spin(10, fn);
		if (!strcmp(name, "turns"))
			r.valid = !r.valid;
	}
	return NULL;
}

/* ---- The process context ---- */

static uint8_t *put(uint8_t *at, int field, const void *data, size_t len)
{
	*at++ = (uint8_t)(field << 3 | 2);
	*at++ = (uint8_t)len;
	memcpy(at, data, len);
	return at + len;
}

static size_t attribute(uint8_t *to, const char *key, const char *value)
{
	uint8_t any[100], *end = put(any, 1, value, strlen(value)),
			  *at = put(to, 1, key, strlen(key));

	return (size_t)(put(at, 2, any, (size_t)(end - any)) - to);
}

static void publish(void)
{
	uint8_t pair[120], resource[128], *body, *at;
	int fd = memfd_create("OTEL_CTX", MFD_CLOEXEC);
	uint64_t *header;
	size_t len;

	if (fd < 0 || ftruncate(fd, 4096))
		exit(1);
	header = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (header == MAP_FAILED)
		exit(1);
	body = at = (uint8_t *)(header + 4);
	len = attribute(pair, "service.name", "svc-spans");
	len = (size_t)(put(resource, 1, pair, len) - resource);
	at = put(at, 1, resource, len);
	len = attribute(pair, "threadlocal.schema_version", "tls_v1");
	at = put(at, 2, pair, len);
	header[1] = 2 | (uint64_t)(at - body) << 32;
	header[3] = (uint64_t)(uintptr_t)body;
	header[2] = 1;
	atomic_thread_fence(memory_order_seq_cst);
	memcpy(header, "OTEL_CTX", 8);
}

int main(int argc, char **argv)
{
	static const char *const threads[] = { "span-1", "span-2",   "turns", "plain",
					       "unset",	 "changing", "wild" };
	void *lib;

	if (argc != 2)
		return 2;
	if (strcmp(argv[1], "-")) {
		lib = dlopen(argv[1], RTLD_NOW);
		set_context = lib ? (void (*)(void *))dlsym(lib, "set_context") : NULL;
	}
	if (!set_context) {
		fprintf(stderr, "spans: %s\n", dlerror());
		return 1;
	}
	publish();
	for (size_t i = 0; i < sizeof(threads) / sizeof(threads[0]); i++) {
		pthread_t t;

		if (pthread_create(&t, NULL, work, (void *)(uintptr_t)threads[i]))
			return 1;
	}
	printf("%d\n", getpid());
	fflush(stdout);
	/* The same process, as an image without spans. */
	if (getchar() == 'x')
		execl("/bin/sh", "sh", "-c", "while :; do :; done", (char *)NULL);
	pause();
	return 0;
}
#endif
