/* SPDX-License-Identifier: BSD-2-Clause */
/* What waits are called, and what locks they are for, by made-up stacks. */
#include "prof/lock_kinds.h"
#include "prof/wait_notes.h"

#include "samples.h"
#include "sym/symbolizer_internal.h"
#include "test.h"

#define DEPTH 24

struct waits {
	struct modules *ms;
	struct symbolizer *sz;
};

static struct waits make_waits(void)
{
	struct waits w = { .ms = modules_new() };

	w.sz = symbolizer_new(w.ms);
	return w;
}

static void free_waits(struct waits *w)
{
	symbolizer_free(w->sz);
	modules_free(w->ms);
}

static uint32_t symbol_of(struct waits *w, const char *name, const char *module)
{
	struct symbol s = { .file = 0 };
	uint32_t id = 0;

	EXPECT(!symbolizer_intern_name(w->sz, name, &s.name) &&
	       !strpool_intern(w->sz->modules, module, strlen(module), &s.module));
	s.function = s.name;
	EXPECT(!symbolizer_intern_symbol(w->sz, &s, &id));
	return id;
}

/* The frame of a name in the module: of a language, if the module says so. */
static uint64_t frame_in(const char *module)
{
	uint32_t language = !strcmp(module, "[python]") ? SF_LANG_PYTHON
			    : !strcmp(module, "[java]") ? SF_LANG_JAVA
			    : !strcmp(module, "[ruby]") ? SF_LANG_RUBY
			    : !strcmp(module, "[php]")	? SF_LANG_PHP
			    : !strcmp(module, "[perl]") ? SF_LANG_PERL
							: SF_LANG_NONE;

	return language ? SF_FRAME_LANG_WORD(language, 1, 0) : ROW(1, 1);
}

struct made { /* a sleeping thread's stack */
	struct waits w;
	struct profile_stack s;
	uint64_t frames[DEPTH];
	uint32_t ids[DEPTH];
};

/*
 * user: "module!name|name|module!name", root first; a name without a module is in the module of the
 * one before. kernel: the kernel's function that decides.
 */
static void make_stack(struct made *m, const char *user, const char *kernel)
{
	char text[2048], module[64] = "", *save = NULL;
	uint64_t rooted[DEPTH];
	uint32_t rooted_ids[DEPTH];
	struct profile_stack *s = &m->s;

	m->w = make_waits();
	*s = (struct profile_stack){ .comm = "t",
				     .stop = SF_STOP_COMPLETE,
				     .flags = SF_SAMPLE_USER };
	snprintf(text, sizeof(text), "%s", user);
	for (char *at = strtok_r(text, "|", &save); at; at = strtok_r(NULL, "|", &save)) {
		char *mark = strchr(at, '!');

		if (mark) {
			*mark = 0;
			snprintf(module, sizeof(module), "%s", at);
			at = mark + 1;
		}
		rooted[s->n_user] = frame_in(module);
		rooted_ids[s->n_user++] = symbol_of(&m->w, at, module);
	}
	for (size_t k = 0; k < s->n_user; k++) {
		m->frames[k] = rooted[s->n_user - 1 - k];
		m->ids[k] = rooted_ids[s->n_user - 1 - k];
	}
	m->frames[s->n_user] = 0xffffffff81000000ull;
	m->ids[s->n_user] = symbol_of(&m->w, kernel, "[kernel]");
	s->n_kernel = 1;
	s->frames = m->frames;
}

static const char *note_of(const char *user, const char *kernel)
{
	const char *note;
	struct made m;

	make_stack(&m, user, kernel);
	note = wait_note_text(wait_note_of(&m.s, m.ids, m.w.sz));
	free_waits(&m.w);
	return note;
}

#define FUTEX  "futex_do_wait_[k]"
#define SOCKET "unix_stream_read_generic_[k]"
#define SLEEP  "do_nanosleep_[k]"
#define POLL   "do_sys_poll_[k]"

#define THREAD	"libc.so.6!clone3|start_thread|"
#define LOCK	"libc.so.6!__new_sem_wait_slow64.constprop.0|__futex_abstimed_wait_common"
#define PY_ROOT THREAD "python3.11![python3.11+0x1]|[python]!Thread.run (threading.py)|"
#define WORKER	PY_ROOT "python3.11!_PyFunction_Vectorcall|[python]!_worker (thread.py)|"
#define TASK	WORKER "_WorkItem.run (thread.py)|<lambda> (a.py)|python3.11!PyObject_Vectorcall|"

TEST(notes_of_python_workers)
{
	static const struct {
		const char *stack, *kernel, *want;
	} cases[] = {
		{ WORKER "python3.11!PyObject_Vectorcall|_queue.cpython-311-x86_64-linux-gnu.so!"
			 "_queue_SimpleQueue_get|python3.11!PyThread_acquire_lock_timed|" LOCK,
		  FUTEX, "[idle: work queue]" },
		{ PY_ROOT
		  "_worker (thread.py:83)|Queue.get (queue.py:171)|"
		  "Condition.wait (threading.py:320)|libpython3.9.so.1.0!lock_acquire|" LOCK,
		  FUTEX, "[idle: work queue]" },
		/* The same waits inside of a task */
		{ TASK "lock_acquire|" LOCK, FUTEX, "[blocked: futex]" },
		{ WORKER "_WorkItem.run (thread.py)|python3.11!lock_acquire|" LOCK, FUTEX,
		  "[blocked: futex]" },
		{ TASK "[python]!Queue.get (queue.py)|python3.11!lock_acquire|" LOCK, FUTEX,
		  "[blocked: futex]" },
		{ TASK "sock_recv|libc.so.6!recv", SOCKET, "[blocked: socket]" },
		{ TASK "time_sleep|libc.so.6!clock_nanosleep", SLEEP, "[blocked: sleep]" },
		{ TASK "sock_recv|libc.so.6!poll", POLL, "[blocked: poll]" },
		/* It has a task, and waits for Python's lock. */
		{ WORKER "python3.11!lock_acquire|PyEval_RestoreThread|" LOCK, FUTEX,
		  "[blocked: futex]" },
		/* Another function of that name */
		{ WORKER "python3.11!sock_recv|libc.so.6!recv", SOCKET, "[blocked: socket]" },
		{ PY_ROOT "my_worker (thread.py)|python3.11!lock_acquire|" LOCK, FUTEX,
		  "[blocked: futex]" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		EXPECT_STR(note_of(cases[i].stack, cases[i].kernel), cases[i].want);
}

#define COND  "|libc.so.6!pthread_cond_wait|__futex_abstimed_wait_common"
#define TIMER THREAD "libjvm.so!thread_entry|[java]!java.util.TimerThread.mainLoop|"
#define POOL  THREAD "[java]!java.util.concurrent.ThreadPoolExecutor.runWorker|"

TEST(notes_of_other_workers)
{
	static const struct {
		const char *stack, *kernel, *want;
	} cases[] = {
		{ TIMER "java.lang.Object.wait|libjvm.so!JVM_MonitorWait" COND, FUTEX,
		  "[idle: work queue]" },
		{ TIMER "App$1.run|java.lang.Object.wait|libjvm.so!JVM_MonitorWait" COND, FUTEX,
		  "[blocked: futex]" },
		{ POOL "java.util.concurrent.ThreadPoolExecutor.getTask|"
		       "java.util.concurrent.LinkedBlockingQueue.take|libjvm.so!Unsafe_Park" COND,
		  FUTEX, "[idle: work queue]" },
		{ POOL "App.handle|java.util.concurrent.LinkedBlockingQueue.take|"
		       "libjvm.so!Unsafe_Park" COND,
		  FUTEX, "[blocked: futex]" },
		{ THREAD "node!worker|uv_cond_wait" COND, FUTEX, "[idle: work queue]" },
		{ THREAD "node!worker|uv__fs_work|uv_mutex_lock|libc.so.6!pthread_mutex_lock",
		  FUTEX, "[blocked: futex]" },
		{ THREAD "node!node::(anonymous namespace)::PlatformWorkerThread|uv_cond_wait" COND,
		  FUTEX, "[idle: work queue]" },
		{ THREAD "node!node::(anonymous namespace)::PlatformWorkerThread|"
			 "v8::internal::Task::Run|v8::base::ConditionVariable::Wait" COND,
		  FUTEX, "[blocked: futex]" },
		{ THREAD "nginx!ngx_thread_pool_cycle|ngx_thread_cond_wait" COND, FUTEX,
		  "[idle: work queue]" },
		{ THREAD "nginx!ngx_thread_pool_cycle|ngx_http_work|ngx_thread_cond_wait" COND,
		  FUTEX, "[blocked: futex]" },
		/* A program that is linked statically, and what only sounds like them */
		{ "sfbpf!main|worker_serve|fork_receive_most|recvmsg", SOCKET,
		  "[idle: work queue]" },
		{ "sfbpf!main|worker_serve|answer|fork_receive_most|recvmsg", SOCKET,
		  "[blocked: socket]" },
		{ "shop!main|worker_serve|fork_receive_most|recvmsg", SOCKET, "[blocked: socket]" },
		{ "sfbpf!main|worker_serve_all|recvmsg", SOCKET, "[blocked: socket]" },
		{ "shop!main|worker" COND, FUTEX, "[blocked: futex]" },
		/* OpenMP's threads run tasks in their barriers. */
		{ THREAD "libgomp.so.1!gomp_thread_start|gomp_team_barrier_wait|futex_wait", FUTEX,
		  "[idle: work queue]" },
		{ THREAD "libgomp.so.1!gomp_team_barrier_wait|gomp_barrier_handle_tasks|"
			 "app!main._omp_fn.0" COND,
		  FUTEX, "[blocked: futex]" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		EXPECT_STR(note_of(cases[i].stack, cases[i].kernel), cases[i].want);
}

#define MAIN(program) "libc.so.6!__libc_start_main|" program "!main|"
#define PYTHON	      MAIN("python3.11") "[python]!<module> (a.py)|"

TEST(notes_of_poll)
{
	static const struct {
		const char *stack, *kernel, *want;
	} cases[] = {
		/* Loops: of the program itself, of libraries and of languages */
		{ MAIN("cron") "wait_for_work|libc.so.6!poll", POLL, "[idle: poll]" },
		{ MAIN("cron") "wait_for_work|libc.so.6!ppoll|__internal_syscall_cancel", POLL,
		  "[idle: poll]" },
		{ MAIN("ring") "liburing.so.2!io_uring_wait_cqe", "io_cqring_wait_[k]",
		  "[idle: poll]" },
		{ MAIN("gdm") "libglib-2.0.so.0!g_main_loop_run|libc.so.6!poll", POLL,
		  "[idle: poll]" },
		{ PYTHON "libglib-2.0.so.0!g_main_loop_run|libc.so.6!poll", POLL, "[idle: poll]" },
		{ MAIN("rpcbind") "libtirpc.so.3!svc_run|libc.so.6!poll", POLL, "[idle: poll]" },
		{ PYTHON "BaseServer.serve_forever (socketserver.py)|"
			 "_PollLikeSelector.select (selectors.py)|python3.11!f|libc.so.6!poll",
		  POLL, "[idle: poll]" },
		{ PYTHON "select.cpython-311.so![select+0x1]|libc.so.6!select", "do_select_[k]",
		  "[idle: poll]" },
		{ MAIN("ruby") "[ruby]!select (a.rb)|libruby.so.3!rb_thread_fd_select|"
			       "libc.so.6!select",
		  "do_select_[k]", "[idle: poll]" },
		{ MAIN("php") "[php]!React\\EventLoop\\StreamSelectLoop::run (a.php)|php!f|"
			      "libc.so.6!select",
		  "do_select_[k]", "[idle: poll]" },
		{ MAIN("perl") "[perl]!IO::Select::can_read (Select.pm)|perl!f|libc.so.6!select",
		  "do_select_[k]", "[idle: poll]" },
		{ THREAD "libcoreclr.so!ds_ipc_poll|libc.so.6!poll", POLL, "[idle: poll]" },
		/* Answers: of a database, of a name server, of a child, of a peer */
		{ MAIN("psql") "SendQuery|libpq.so.5!PQexec|pqSocketPoll|libc.so.6!poll", POLL,
		  "[blocked: poll]" },
		{ MAIN("wget") "connect_to|libc.so.6!getaddrinfo|__res_nsend|__poll", POLL,
		  "[blocked: poll]" },
		{ PYTHON "read (db.py)|libpq.so.5!PQexec|libc.so.6!poll", POLL, "[blocked: poll]" },
		{ PYTHON "read (db.py)|python3.11!sock_recv|libc.so.6!poll", POLL,
		  "[blocked: poll]" },
		{ PYTHON "Popen._communicate (subprocess.py)|"
			 "_PollLikeSelector.select (selectors.py)|python3.11!f|libc.so.6!poll",
		  POLL, "[blocked: poll]" },
		{ MAIN("ruby") "[ruby]!read (a.rb)|libruby.so.3!rb_io_wait|libc.so.6!ppoll", POLL,
		  "[blocked: poll]" },
		{ THREAD "[java]!sun.nio.ch.NioSocketImpl.read|sun.nio.ch.Net.poll|"
			 "libnio.so!Java_sun_nio_ch_Net_poll|libc.so.6!poll",
		  POLL, "[blocked: poll]" },
		{ THREAD "[java]!sun.nio.ch.NioSocketImpl.accept|sun.nio.ch.Net.poll|"
			 "libnio.so!Java_sun_nio_ch_Net_poll|libc.so.6!poll",
		  POLL, "[idle: accept]" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		EXPECT_STR(note_of(cases[i].stack, cases[i].kernel), cases[i].want);
}

/* "kind of function", the function that uses the lock */
static const char *kind_of(const char *stack)
{
	static char text[256];
	const struct lock_kind *kind;
	struct made m;
	uint32_t user;

	make_stack(&m, stack, FUTEX);
	kind = lock_kind_of(&m.s, m.ids, m.w.sz, &user);
	snprintf(text, sizeof(text), "%s of %s", kind->name,
		 user != SYM_UNKNOWN ? symbolizer_name(m.w.sz, user) : "nobody");
	free_waits(&m.w);
	return text;
}

TEST(kinds_of_locks)
{
	static const struct {
		const char *stack, *want;
	} cases[] = {
		{ MAIN("a") "get|libc.so.6!pthread_mutex_lock|__lll_lock_wait", "mutex of get" },
		{ MAIN("a") "get|libc.so.6!___pthread_mutex_lock|[libc.so.6+0x8a1]",
		  "mutex of get" },
		{ MAIN("a") "get|std::mutex::lock|__gthread_mutex_lock|"
			    "libc.so.6!pthread_mutex_lock|__lll_lock_wait",
		  "mutex of get" },
		{ MAIN("a") "get|libc.so.6!pthread_rwlock_rdlock", "rwlock of get" },
		/* The wait for the mutex, after the signal */
		{ MAIN("a") "get|libc.so.6!pthread_cond_wait|__pthread_mutex_cond_lock|"
			    "__lll_lock_wait",
		  "mutex of get" },
		{ MAIN("a") "get|libc.so.6!pthread_cond_wait|__futex_abstimed_wait_common",
		  "condition variable of get" },
		{ MAIN("a") "get|libc.so.6!sem_wait|__new_sem_wait_slow64.constprop.0",
		  "semaphore of get" },
		{ MAIN("a") "get|libc.so.6!malloc|__lll_lock_wait_private", "lock of libc of get" },
		{ MAIN("a") "get|libc.so.6!__pthread_clockjoin_ex", "join of get" },
		{ MAIN("a") "get|libstdc++.so.6!__cxa_guard_acquire|libc.so.6!syscall",
		  "once of get" },
		{ MAIN("a") "get|std::sys::sync::mutex::futex::Mutex::lock_contended|"
			    "libc.so.6!syscall",
		  "mutex of get" },
		{ MAIN("a") "get|parking_lot::raw_mutex::RawMutex::lock_slow|libc.so.6!syscall",
		  "park of get" },
		{ MAIN("a") "main.get|runtime.lock2|runtime.futex", "runtime lock of main.get" },
		{ PY_ROOT "f (a.py)|python3.11!take_gil|libc.so.6!pthread_cond_timedwait",
		  "GIL of f (a.py)" },
		{ THREAD "[java]!f|libjvm.so!ObjectMonitor::enter|libc.so.6!pthread_cond_wait",
		  "Java monitor of f" },
		{ MAIN("a") "get|libc.so.6!syscall", "futex of get" },
		{ "libc.so.6!syscall", "futex of nobody" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		EXPECT_STR(kind_of(cases[i].stack), cases[i].want);
}
