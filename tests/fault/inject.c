/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Makes one call of libc or libbpf fail: linked into build-san/fault/sfbpf with -Wl,--wrap for each
 * name below, so that it is between our code and the library, under the sanitizers.
 *
 *	FAULT_LOG=FILE		no fault: at exit, one line "SITE COUNT NAME" for each place that
 *				called one of them
 *	FAULT_AT=SITE[:K]	the K-th call (default the first) from SITE fails as it can fail
 *
 * SITE: "0x…", the offsets in the program of the return addresses of the call (its low 32 bits) and
 * of its caller (the high ones, 0 if that is not ours); addr2line understands each.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* The sanitized build has frame pointers; main's caller has a return address, too. */
#pragma GCC diagnostic ignored "-Wframe-address"

#define SITES 4096 /* a power of two, well above the number of calls in the program's text */

struct site {
	_Atomic uintptr_t at;
	_Atomic unsigned int count;
	const char *name;
};

extern const char __ehdr_start[], etext[];
static struct site sites[SITES];
static uintptr_t fail_at;
static unsigned int fail_nth = 1;
static char *log_path; /* an own copy: the program may change its environment */
static pid_t owner;    /* a forked child has the sites, too, but neither fails nor logs */

__attribute__((constructor)) static void inject_init(void)
{
	const char *at = getenv("FAULT_AT");
	char *end;

	owner = getpid();
	log_path = getenv("FAULT_LOG");
	if (!at)
		return;
	fail_at = strtoull(at, &end, 16);
	if (*end == ':')
		fail_nth = strtoul(end + 1, NULL, 10);
}

__attribute__((destructor)) static void inject_done(void)
{
	FILE *__real_fopen(const char *path, const char *mode);
	int __real_fclose(FILE * f);
	FILE *f = log_path && getpid() == owner ? __real_fopen(log_path, "we") : NULL;

	if (!f)
		return;
	for (size_t i = 0; i < SITES; i++)
		if (sites[i].at)
			fprintf(f, "0x%lx %u %s\n", sites[i].at, sites[i].count, sites[i].name);
	__real_fclose(f);
}

static uintptr_t offset(const void *address)
{
	return (const char *)address < etext && (const char *)address > __ehdr_start
		       ? (uintptr_t)address - (uintptr_t)__ehdr_start
		       : 0;
}

#define SITE (offset(__builtin_return_address(0)) | offset(__builtin_return_address(1)) << 32)

/* Whether this call is the one that fails. */
static bool chosen(uintptr_t at, const char *name)
{
	uintptr_t none;
	struct site *s;
	unsigned int nth;

	if (getpid() != owner)
		return false;
	for (size_t i = at * 2654435761u;; i++) {
		s = &sites[i % SITES];
		none = 0;
		if (s->at == at || atomic_compare_exchange_strong(&s->at, &none, at) || none == at)
			break;
	}
	s->name = name;
	nth = atomic_fetch_add(&s->count, 1) + 1;
	if (at != fail_at || nth != fail_nth)
		return false;
	fprintf(stderr, "inject: %s fails\n", name);
	return true;
}

/*
 * WRAP(type of result, name, (parameters), (arguments), result of a failure, errno of it): what
 * __wrap_NAME does when its turn comes, else it calls the library's.
 */
#define WRAP(type, name, params, args, result, error) \
	type __real_##name params;                    \
	type __wrap_##name params;                    \
	type __wrap_##name params                     \
	{                                             \
		if (chosen(SITE, #name)) {            \
			errno = (error);              \
			return (type)(result);        \
		}                                     \
		return __real_##name args;            \
	}

WRAP(void *, malloc, (size_t n), (n), NULL, ENOMEM)
WRAP(void *, calloc, (size_t n, size_t size), (n, size), NULL, ENOMEM)
WRAP(void *, realloc, (void *p, size_t n), (p, n), NULL, ENOMEM)
WRAP(char *, strdup, (const char *s), (s), NULL, ENOMEM)
WRAP(void *, mmap, (void *addr, size_t n, int prot, int flags, int fd, off_t off),
     (addr, n, prot, flags, fd, off), MAP_FAILED, ENOMEM)
WRAP(FILE *, fopen, (const char *path, const char *mode), (path, mode), NULL, EMFILE)
WRAP(FILE *, fdopen, (int fd, const char *mode), (fd, mode), NULL, ENOMEM)
WRAP(int, fclose, (FILE * f), (f), (__real_fclose(f), EOF), ENOSPC)
WRAP(int, fflush, (FILE * f), (f), EOF, ENOSPC)
WRAP(DIR *, opendir, (const char *path), (path), NULL, EMFILE)
WRAP(int, memfd_create, (const char *name, unsigned int flags), (name, flags), -1, EMFILE)
WRAP(int, pipe2, (int fds[2], int flags), (fds, flags), -1, EMFILE)
WRAP(int, dup, (int fd), (fd), -1, EMFILE)
WRAP(ssize_t, read, (int fd, void *buf, size_t n), (fd, buf, n), -1, EIO)
WRAP(ssize_t, pread, (int fd, void *buf, size_t n, off_t off), (fd, buf, n, off), -1, EIO)
WRAP(ssize_t, write, (int fd, const void *buf, size_t n), (fd, buf, n), -1, ENOSPC)
WRAP(ssize_t, readlink, (const char *path, char *buf, size_t n), (path, buf, n), -1, EACCES)
WRAP(int, fstat, (int fd, struct stat *st), (fd, st), -1, EIO)
WRAP(int, stat, (const char *path, struct stat *st), (path, st), -1, EIO)
WRAP(pid_t, fork, (void), (), -1, EAGAIN)
WRAP(int, socketpair, (int domain, int type, int protocol, int fds[2]),
     (domain, type, protocol, fds), -1, EMFILE)
WRAP(ssize_t, sendmsg, (int fd, const struct msghdr *m, int flags), (fd, m, flags), -1, ENOBUFS)
WRAP(ssize_t, recvmsg, (int fd, struct msghdr *m, int flags), (fd, m, flags), -1, ENOBUFS)
WRAP(int, eventfd, (unsigned int n, int flags), (n, flags), -1, EMFILE)
WRAP(int, pthread_create, (pthread_t * t, const pthread_attr_t *a, void *(*fn)(void *), void *arg),
     (t, a, fn, arg), EAGAIN, 0)
WRAP(int, bpf_map_create,
     (enum bpf_map_type type, const char *name, __u32 ksize, __u32 vsize, __u32 max,
      const struct bpf_map_create_opts *opts),
     (type, name, ksize, vsize, max, opts), -ENOMEM, ENOMEM)
WRAP(int, bpf_map_update_elem, (int fd, const void *key, const void *value, __u64 flags),
     (fd, key, value, flags), -E2BIG, E2BIG)
WRAP(int, bpf_map_lookup_elem, (int fd, const void *key, void *value), (fd, key, value), -ENOENT,
     ENOENT)
WRAP(int, bpf_map_lookup_batch,
     (int fd, void *in, void *out, void *keys, void *values, __u32 *count,
      const struct bpf_map_batch_opts *opts),
     (fd, in, out, keys, values, count, opts), -ENOSPC, ENOSPC)
WRAP(int, bpf_prog_test_run_opts, (int fd, struct bpf_test_run_opts *opts), (fd, opts), -EINVAL,
     EINVAL)
WRAP(int, bpf_iter_create, (int fd), (fd), -EMFILE, EMFILE)
WRAP(int, bpf_enable_stats, (enum bpf_stats_type type), (type), -EPERM, EPERM)
WRAP(int, bpf_obj_get_info_by_fd, (int fd, void *info, __u32 *len), (fd, info, len), -EINVAL,
     EINVAL)
WRAP(int, bpf_object__open_skeleton,
     (struct bpf_object_skeleton * s, const struct bpf_object_open_opts *opts), (s, opts), -ENOMEM,
     ENOMEM)
WRAP(int, bpf_object__load_skeleton, (struct bpf_object_skeleton * s), (s), -EINVAL, EINVAL)
WRAP(struct bpf_link *, bpf_program__attach, (const struct bpf_program *p), (p), NULL, EBUSY)
WRAP(struct bpf_link *, bpf_program__attach_iter,
     (const struct bpf_program *p, const struct bpf_iter_attach_opts *opts), (p, opts), NULL, EBUSY)
WRAP(struct bpf_link *, bpf_program__attach_perf_event, (const struct bpf_program *p, int fd),
     (p, fd), NULL, EBUSY)
WRAP(struct ring_buffer *, ring_buffer__new,
     (int fd, ring_buffer_sample_fn fn, void *ctx, const struct ring_buffer_opts *opts),
     (fd, fn, ctx, opts), NULL, ENOMEM)
WRAP(int, ring_buffer__poll, (struct ring_buffer * r, int ms), (r, ms), -EIO, EIO)
WRAP(struct btf *, btf__load_vmlinux_btf, (void), (), NULL, ENOENT)

/*
 * open and openat take their mode, syscall its arguments, as variable ones; reading more of them
 * than were passed is harmless.
 */
int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
	va_list ap;
	mode_t mode;

	va_start(ap, flags);
	mode = va_arg(ap, mode_t);
	va_end(ap);
	if (chosen(SITE, "open")) {
		errno = EMFILE;
		return -1;
	}
	return __real_open(path, flags, mode);
}

int __real_openat(int dir, const char *path, int flags, ...);
int __wrap_openat(int dir, const char *path, int flags, ...);
int __wrap_openat(int dir, const char *path, int flags, ...)
{
	va_list ap;
	mode_t mode;

	va_start(ap, flags);
	mode = va_arg(ap, mode_t);
	va_end(ap);
	if (chosen(SITE, "openat")) {
		errno = EMFILE;
		return -1;
	}
	return __real_openat(dir, path, flags, mode);
}

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...)
{
	long a[6];
	va_list ap;

	va_start(ap, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	if (chosen(SITE, "syscall")) {
		errno = EMFILE;
		return -1;
	}
	return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
