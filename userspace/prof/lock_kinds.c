/* SPDX-License-Identifier: BSD-2-Clause */
#include "prof/lock_kinds.h"

#include <stdbool.h>
#include <string.h>

#include "prof/wait_notes.h"

#define NEAR 24 /* frames from the leaf on that may tell the kind */

#define BY_WORD	  (1u << SF_OWNER_WORD)
#define BY_FIELD  (1u << SF_OWNER_FIELD)
#define BY_WAKER  (1u << SF_OWNER_WAKER)
#define BY_KERNEL (1u << SF_OWNER_KERNEL)

#define PLAIN(prefix, name, owners)                   \
	{                                             \
		prefix, { name, owners, false }, NULL \
	}

/*
 * The innermost function that is here decides, unless a function of a runtime is near. Names are
 * without the underscores and "GI_" of the C library in front.
 */
static const struct pattern {
	const char *prefix;
	struct lock_kind kind;
	const char *module; /* NULL: any */
} functions[] = {
	/* POSIX */
	PLAIN("pthread_mutex_", "mutex", BY_WORD | BY_FIELD | BY_WAKER),
	{ "pthread_rwlock_", { "rwlock", BY_WAKER, true }, "libc.so.6" },
	{ "pthread_rwlock_", { "rwlock", BY_WAKER, true }, "libpthread.so.0" },
	PLAIN("pthread_rwlock_", "rwlock", BY_WAKER),
	PLAIN("pthread_cond_", "condition variable", 0),
	PLAIN("pthread_barrier_", "barrier", 0),
	PLAIN("pthread_join", "join", 0),
	PLAIN("pthread_timedjoin", "join", 0),
	PLAIN("pthread_clockjoin", "join", 0),
	PLAIN("pthread_once", "once", BY_WAKER),
	PLAIN("call_once", "once", BY_WAKER),
	PLAIN("cxa_guard_acquire", "once", BY_WAKER),
	PLAIN("sem_", "semaphore", 0),
	PLAIN("new_sem_wait", "semaphore", 0),
	PLAIN("lll_lock_wait_private", "lock of libc", BY_WAKER),
	/* C++: waits for the value of a variable */
	PLAIN("std::__atomic_", "atomic", 0),
	PLAIN("std::atomic", "atomic", 0),
	/* Rust; older versions have std::sys::unix::locks and std::sys_common */
	PLAIN("std::sys::sync::mutex::", "mutex", BY_WAKER),
	PLAIN("std::sys::sync::rwlock::", "rwlock", BY_WAKER),
	PLAIN("std::sys::sync::condvar::", "condition variable", 0),
	PLAIN("std::sys::sync::once::", "once", BY_WAKER),
	PLAIN("std::sys::sync::thread_parking::", "park", 0),
	PLAIN("std::sys::unix::locks::futex_mutex::", "mutex", BY_WAKER),
	PLAIN("std::sys::unix::locks::futex_rwlock::", "rwlock", BY_WAKER),
	PLAIN("std::sys::unix::locks::futex_condvar::", "condition variable", 0),
	PLAIN("std::thread::park", "park", 0),
	/* The futex is the thread's, not the lock's. */
	PLAIN("parking_lot", "park", 0),
	PLAIN("<parking_lot", "park", 0),
	/* Go's runtime; goroutines that wait for a sync.Mutex are in no futex */
	PLAIN("runtime.lock", "runtime lock", BY_WAKER),
	PLAIN("runtime.note", "park", 0),
};

static const struct pattern runtimes[] = {
	PLAIN("ObjectMonitor::enter", "Java monitor", 0),
	PLAIN("ObjectMonitor::wait", "Java wait", 0),
	PLAIN("ObjectSynchronizer::", "Java monitor", 0),
	PLAIN("Parker::park", "Java park", 0),
	PLAIN("Unsafe_Park", "Java park", 0),
	PLAIN("take_gil", "GIL", BY_WAKER),
	PLAIN("PyThread_acquire_lock", "Python lock", BY_WAKER),
};

static const struct lock_kind other = { "futex", 0, false };

/* What locks of the program are made of, besides the C library */
static const char *const wrappers[] = {
	"std::mutex::",
	"std::timed_mutex::",
	"std::recursive_",
	"std::shared_",
	"std::unique_lock",
	"std::lock_guard",
	"std::scoped_lock",
	"std::__",
	"std::condition_variable",
	"std::lock",
	"std::call_once",
	"std::counting_semaphore",
	"std::binary_",
	"std::latch",
	"std::barrier",
	"std::atomic",
	"std::sys::",
	"std::sync::",
	"std::thread::park",
	"__gthread_",
	"lock_api::",
	"<lock_api",
	"uv_mutex_",
	"uv_cond_",
	"uv_sem_",
	"g_mutex_",
	"g_cond_",
	"g_rw_lock_",
	"g_rec_mutex_",
	"QMutex",
	"QBasicMutex",
	"QReadWriteLock",
	"QSemaphore",
	"boost::mutex",
	"boost::unique_lock",
	"boost::condition_variable",
	"mtx_lock",
	"cnd_wait",
	"SDL_LockMutex",
	"__interceptor_",
	"runtime.sema",
	"runtime.futex",
};

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

static bool begins_one(const char *text, const char *const *with, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (begins(text, with[i]))
			return true;
	return false;
}

static const char *without_marks(const char *name)
{
	while (*name == '_')
		name++;
	if (begins(name, "GI_"))
		for (name += 3; *name == '_';)
			name++;
	return name;
}

static const struct pattern *match(const struct pattern *list, size_t n, const char *name,
				   const char *module)
{
	for (size_t i = 0; i < n; i++)
		if (begins(name, list[i].prefix) &&
		    (!list[i].module || !strcmp(module, list[i].module)))
			return &list[i];
	return NULL;
}

#define MATCH(list, name, module) match(list, sizeof(list) / sizeof(list[0]), name, module)

static bool is_library(const char *module, const char *name)
{
	if (wait_is_c_library(module) || *name == '[')
		return true;
	return begins_one(name, wrappers, sizeof(wrappers) / sizeof(wrappers[0])) ||
	       MATCH(functions, without_marks(name), module) || MATCH(runtimes, name, module);
}

/* The innermost frame of a language from k on; k: none. */
static size_t language_from(const struct profile_stack *s, size_t k)
{
	for (size_t i = k; i < s->n_user; i++)
		if (SF_FRAME_KIND(s->frames[i]) == SF_FRAME_LANG)
			return i;
	return k;
}

const struct lock_kind *lock_kind_of(const struct profile_stack *s, const uint32_t *ids,
				     const struct symbolizer *sz, uint32_t *ret_user)
{
	size_t near = s->n_user < NEAR ? s->n_user : NEAR, k = 0;
	bool runtime = false;
	const struct pattern *found = NULL, *p;

	for (size_t i = 0; i < near && !found; i++) {
		found = MATCH(functions, without_marks(symbolizer_name(sz, ids[i])),
			      symbolizer_module(sz, ids[i]));
		k = found ? i : 0;
	}
	for (size_t i = 0; i < near; i++) {
		p = MATCH(runtimes, symbolizer_name(sz, ids[i]), "");
		if (p) {
			found = p;
			runtime = true;
			k = i;
			break;
		}
	}
	while (k < s->n_user &&
	       is_library(symbolizer_module(sz, ids[k]), symbolizer_name(sz, ids[k])))
		k++;
	if (runtime)
		k = language_from(s, k);
	*ret_user = k < s->n_user ? ids[k] : SYM_UNKNOWN;
	return found ? &found->kind : &other;
}

/* ---- The kernel's ---- */

/* Functions of locks, where stacks have them */
static const char *const kernel_functions[] = { "__mutex_", "mutex_", "__ww_mutex_", "ww_mutex_",
						"rwsem_",   "down_",  "__down_" };

const struct lock_kind *lock_kind_of_kernel(uint32_t kind, const struct profile_stack *s,
					    const uint32_t *ids, const struct symbolizer *sz,
					    uint32_t *ret_user)
{
	static const struct lock_kind mutex = { "kernel mutex", BY_KERNEL, false },
				      rwsem = { "kernel rwsem", BY_KERNEL, false };
	size_t k = s->n_user, n = k + s->n_kernel;

	while (k < n && begins_one(symbolizer_name(sz, ids[k]), kernel_functions,
				   sizeof(kernel_functions) / sizeof(kernel_functions[0])))
		k++;
	*ret_user = k < n ? ids[k] : SYM_UNKNOWN;
	return kind == SF_LOCK_MUTEX ? &mutex : &rwsem;
}
