/* SPDX-License-Identifier: BSD-2-Clause */
#include "prof/wait_notes.h"

#include <ctype.h>
#include <string.h>

#define GOPARK "runtime.gopark" /* where goroutines wait, outside the kernel */

struct pattern {
	const char *prefix;
	enum wait_note note;
};

/*
 * Functions of the kernel (6.1 to 7.2): the innermost frame that matches decides. Names that other
 * waits pass through (schedule_timeout, __x64_sys_read) are not here.
 */
#define SYSCALL(name, note)                                                                  \
	{ "__do_sys_" name, note }, { "__se_sys_" name, note }, { "__x64_sys_" name, note }, \
		{ "__ia32_sys_" name, note },                                                \
	{                                                                                    \
		"__arm64_sys_" name, note                                                    \
	}

static const struct pattern kernel_waits[] = {
	{ "futex_", WAIT_FUTEX },
	{ "__futex_", WAIT_FUTEX },
	{ "ep_poll", WAIT_EPOLL },
	{ "do_epoll_", WAIT_EPOLL },
	{ "do_sys_poll", WAIT_POLL },
	{ "do_poll", WAIT_POLL },
	{ "do_select", WAIT_POLL },
	{ "core_sys_select", WAIT_POLL },
	{ "poll_schedule_timeout", WAIT_POLL },
	{ "io_cqring_wait", WAIT_POLL },
	{ "inet_csk_accept", WAIT_ACCEPT },
	{ "unix_accept", WAIT_ACCEPT },
	{ "do_accept", WAIT_ACCEPT },
	{ "do_nanosleep", WAIT_SLEEP },
	{ "hrtimer_nanosleep", WAIT_SLEEP },
	{ "do_sigtimedwait", WAIT_SIGNAL },
	{ "sigsuspend", WAIT_SIGNAL },
	/* These names are at one address, and which one the kernel gives differs */
	SYSCALL("pause", WAIT_SIGNAL),
	SYSCALL("rt_sigsuspend", WAIT_SIGNAL),
	SYSCALL("rt_sigtimedwait", WAIT_SIGNAL),
	{ "signalfd_", WAIT_SIGNAL },
	{ "do_wait", WAIT_CHILD },
	{ "kernel_wait", WAIT_CHILD },
	{ "wait_for_vfork_done", WAIT_CHILD },
	{ "n_tty_read", WAIT_TERMINAL },
	{ "pipe_", WAIT_PIPE },
	{ "anon_pipe_", WAIT_PIPE },
	{ "wait_for_partner", WAIT_PIPE },
	{ "sk_wait_data", WAIT_SOCKET },
	{ "sk_stream_wait_", WAIT_SOCKET },
	{ "tcp_", WAIT_SOCKET },
	{ "unix_", WAIT_SOCKET },
	{ "__skb_wait_", WAIT_SOCKET },
	{ "sock_", WAIT_SOCKET },
	{ "inet_", WAIT_SOCKET },
	{ "io_schedule", WAIT_IO },
	{ "folio_wait_", WAIT_IO },
	{ "wait_on_page_", WAIT_IO },
	{ "bit_wait_io", WAIT_IO },
	{ "blk_", WAIT_IO },
	{ "submit_bio_wait", WAIT_IO },
	{ "jbd2_", WAIT_IO },
	{ "request_wait_answer", WAIT_IO },
	{ "rpc_wait_bit_killable", WAIT_IO },
	{ "p9_client_rpc", WAIT_IO },
	{ "wait_for_completion_io", WAIT_IO },
	{ "balance_dirty_pages", WAIT_IO },
	/* A frozen cgroup; __refrigerator: of version 1. Other waits in get_signal come first. */
	{ "__refrigerator", WAIT_STOPPED },
	{ "do_freezer_trap", WAIT_STOPPED },
	{ "do_coredump", WAIT_OTHER },
	{ "vfs_coredump", WAIT_OTHER },
	{ "do_exit", WAIT_OTHER },
	{ "get_signal", WAIT_STOPPED },
	{ "__mutex_lock", WAIT_LOCK },
	{ "rwsem_down_", WAIT_LOCK },
	{ "__down_", WAIT_LOCK },
	{ "percpu_rwsem_wait", WAIT_LOCK },
	{ "rtmutex_", WAIT_LOCK },
};

/* Patterns for what waits uninterruptibly, if nothing above matches: file systems and disks. */
static const struct pattern disk_waits[] = {
	{ "ext4_", WAIT_IO },	     { "xfs_", WAIT_IO },     { "xlog_", WAIT_IO },
	{ "btrfs_", WAIT_IO },	     { "f2fs_", WAIT_IO },    { "nfs_", WAIT_IO },
	{ "nfs4_", WAIT_IO },	     { "cifs_", WAIT_IO },    { "smb2_", WAIT_IO },
	{ "ceph_", WAIT_IO },	     { "zio_", WAIT_IO },     { "zil_", WAIT_IO },
	{ "txg_", WAIT_IO },	     { "dm_", WAIT_IO },      { "md_", WAIT_IO },
	{ "raid", WAIT_IO },	     { "wb_wait_", WAIT_IO }, { "sync_inodes", WAIT_IO },
	{ "iomap_", WAIT_IO },	     { "dio_", WAIT_IO },     { "swap_", WAIT_IO },
	{ "do_swap_page", WAIT_IO },
};

/*
 * Functions that do nothing but wait for the next task. A thread that waits below them does no
 * request's work.
 */
static const struct pattern task_waits[] = {
	/* Java: thread pools, references, servers */
	{ "java.util.concurrent.ThreadPoolExecutor.getTask", WAIT_QUEUE },
	{ "java.util.concurrent.ForkJoinPool.awaitWork", WAIT_QUEUE },
	{ "java.lang.ref.ReferenceQueue.remove", WAIT_QUEUE },
	{ "java.lang.ref.Reference.waitForReferencePendingList", WAIT_QUEUE },
	{ "java.lang.Thread.sleep", WAIT_SLEEP },
	{ "sun.nio.ch.NioSocketImpl.accept", WAIT_ACCEPT },
	{ "sun.nio.ch.ServerSocketChannelImpl.accept", WAIT_ACCEPT },
	{ "java.net.PlainSocketImpl.socketAccept", WAIT_ACCEPT },
	/* Go: threads without a goroutine */
	{ "runtime.findRunnable", WAIT_QUEUE },
	{ "runtime.findrunnable", WAIT_QUEUE },
	{ "runtime.stopm", WAIT_QUEUE },
	{ "runtime.sysmon", WAIT_QUEUE },
	{ "runtime.stoplockedm", WAIT_QUEUE },
	{ "runtime.templateThread", WAIT_QUEUE },
	{ "os/signal.signal_recv", WAIT_SIGNAL },
	/* GLib, Rust's tokio and rayon */
	{ "g_thread_pool_wait_for_new_task", WAIT_QUEUE },
	{ "g_async_queue_", WAIT_QUEUE },
	{ "tokio::runtime::scheduler::multi_thread::worker::Context::park", WAIT_QUEUE },
	{ "rayon_core::sleep::Sleep::sleep", WAIT_QUEUE },
};

#define THROUGH_MAX 5

/*
 * Functions that wait for tasks and also run them. A thread is idle if nothing but the waiting
 * itself lies between the function and the kernel: the C library, and what `through` names.
 */
static const struct task_loop {
	const char *name;
	const char *module; /* the module's name begins with this; NULL: any */
	enum wait_note by;  /* how the kernel calls this wait */
	/* Beginnings of names, or after '@' of modules */
	const char *through[THROUGH_MAX];
} workers[] = {
	/* Java: timers, the launcher's first thread */
	{ "java.util.TimerThread.mainLoop",
	  NULL,
	  WAIT_FUTEX,
	  { "java.lang.Object.wait", "@libjvm.so", "[jit]" } },
	{ "JLI_Launch", NULL, WAIT_FUTEX, { "@libjli.so" } },
	/* Python's ThreadPoolExecutor. A task is below _WorkItem.run(). */
	{ "_worker (thread.py",
	  NULL,
	  WAIT_FUTEX,
	  { "get (queue.py", "wait (threading.py", "@python", "@libpython", "@_queue." } },
	/* node, V8, libuv */
	{ "worker", "node", WAIT_FUTEX, { "uv_cond_", "uv_sem_" } },
	{ "worker", "libuv.so", WAIT_FUTEX, { "uv_cond_", "uv_sem_" } },
	{ "node::(anonymous namespace)::PlatformWorkerThread",
	  NULL,
	  WAIT_FUTEX,
	  { "uv_cond_", "node::TaskQueue<", "node::ConditionVariableBase<" } },
	{ "node::inspector::(anonymous namespace)::StartIoThreadMain",
	  NULL,
	  WAIT_FUTEX,
	  { "uv_sem_", "uv__custom_sem_" } },
	{ "v8::platform::DefaultWorkerThreadsTaskRunner::WorkerThread::Run",
	  NULL,
	  WAIT_FUTEX,
	  { "v8::platform::DelayedTaskQueue::GetNext",
	    "v8::platform::DefaultWorkerThreadsTaskRunner::GetNext",
	    "v8::base::ConditionVariable::", "v8::base::Semaphore::" } },
	/* OpenMP's threads run tasks while they wait for each other. */
	{ "gomp_team_barrier_wait", NULL, WAIT_FUTEX, { "gomp_", "do_wait", "futex_wait" } },
	{ "gomp_barrier_wait", NULL, WAIT_FUTEX, { "gomp_", "do_wait", "futex_wait" } },
	/* nginx; sfbpf's own */
	{ "ngx_thread_pool_cycle", "nginx", WAIT_FUTEX, { "ngx_thread_cond_wait" } },
	{ "worker_serve", "sfbpf", WAIT_SOCKET, { "fork_receive_most" } },
};

static const struct pattern *match(const struct pattern *list, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (*name == *list[i].prefix &&
		    !strncmp(name, list[i].prefix, strlen(list[i].prefix)))
			return &list[i];
	return NULL;
}

#define MATCH(list, name) match(list, sizeof(list) / sizeof(list[0]), name)

/* The note of the innermost kernel frame that one of the patterns matches, NULL: none does. */
static const struct pattern *kernel_wait(const struct profile_stack *s, const uint32_t *ids,
					 const struct symbolizer *sz)
{
	const struct pattern *p = NULL;

	for (size_t k = 0; k < s->n_kernel && !p; k++)
		p = MATCH(kernel_waits, symbolizer_name(sz, ids[s->n_user + k]));
	for (size_t k = 0; k < s->n_kernel && !p && s->state == SF_OFF_D; k++)
		p = MATCH(disk_waits, symbolizer_name(sz, ids[s->n_user + k]));
	return p;
}

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

bool wait_is_c_library(const char *module)
{
	return begins(module, "libc.so") || begins(module, "libpthread") ||
	       begins(module, "libc-") || begins(module, "libc.musl-") || begins(module, "ld-") ||
	       !strcmp(module, "[vdso]");
}

/*
 * `with` may be a name with a file, as "wait (threading.py". What languages put before such a name
 * does not count: "Condition.wait", "Server#wait", "Class::wait", "block in wait".
 */
static bool name_begins(const char *name, const char *with)
{
	const char *at;

	if (*name == *with && begins(name, with))
		return true;
	at = strstr(with, " (") ? strstr(name, " (") : NULL;
	for (; at && at > name && !strchr(".#: ", at[-1]); at--)
		;
	return at && begins(at, with);
}

/*
 * Runtimes whose own threads wait when they have nothing to do. No code of a program is on the
 * stack then, only the runtime's and the C library's. Schedulers of Erlang run such code, but it
 * never waits there by itself.
 */
static const struct runtime {
	const char *prefix; /* the module's name begins with this */
	bool runs_code;
	bool serves; /* the module is a library that other runtimes use */
} runtimes[] = {
	{ "libjvm.so", false, false },
	{ "libcoreclr.so", false, false },
	{ "libSystem.Native.so", false, false },
	{ "mono-sgen", false, false },
	{ "libnode.so", false, false },
	{ "libuv.so", false, true },
	{ "beam.smp", true, false },
};

static const struct runtime *runtime_named(const char *module)
{
	for (size_t i = 0; i < sizeof(runtimes) / sizeof(runtimes[0]); i++)
		if (!strncmp(module, runtimes[i].prefix, strlen(runtimes[i].prefix)))
			return &runtimes[i];
	return NULL;
}

/* The runtime that the thread is one of; NULL: none. */
static const struct runtime *runtime_of(const struct profile_stack *s, const uint32_t *ids,
					const struct symbolizer *sz)
{
	const struct runtime *r = NULL, *here;

	if (!profile_at_root(s->stop))
		return NULL;
	for (size_t k = 0; k < s->n_user; k++) {
		const char *module = symbolizer_module(sz, ids[k]);

		if (wait_is_c_library(module) || (r && r->runs_code))
			continue;
		here = runtime_named(module);
		if (!here || (r && r != here && !r->serves && !here->serves))
			return NULL;
		if (!r || r->serves)
			r = here;
	}
	return r;
}

/* Whether a runtime's thread waits so when it is idle. */
static bool is_idle(const struct profile_stack *s, const uint32_t *ids, const struct symbolizer *sz,
		    enum wait_note note)
{
	const struct runtime *r = note == WAIT_FUTEX || note == WAIT_PIPE ? runtime_of(s, ids, sz)
									  : NULL;

	/* Erlang's threads that wait for signals, before and since OTP 26 */
	return r && (note == WAIT_FUTEX || !r->runs_code || !strcmp(s->comm, "sys_sig_dispatc") ||
		     !strcmp(s->comm, "erts_ssig_disp"));
}

/* ---- Workers ---- */

/* The C library's functions that wait, in programs that are linked statically */
static const char *const c_waits[] = {
	"pthread_",	 "__pthread_",	"sem_",	       "__new_sem_",  "__futex_",
	"do_futex_wait", "__timedwait", "__syscall_c", "__libc_recv", "recvmsg",
};

/* A thread that waits for Python's lock has got something to do. */
static const char *const lock_waits[] = { "PyEval_RestoreThread", "_PyThreadState_Attach",
					  "take_gil" };

#define IN_LIST(list, name) in_list(list, sizeof(list) / sizeof(list[0]), name)

static bool in_list(const char *const *list, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (name_begins(name, list[i]))
			return true;
	return false;
}

/* Whether the whole name matches, apart from suffixes of compilers, parameters and lines. */
static bool is_worker(const struct task_loop *w, const char *name, const char *module)
{
	size_t n = strlen(w->name);

	if ((w->module && !begins(module, w->module)) || !name_begins(name, w->name))
		return false;
	name = strstr(name, w->name);
	return name && !(name[n] == '_' || isalnum((unsigned char)name[n]));
}

/* Whether a frame is part of how the worker waits. */
static bool is_waiting(const struct task_loop *w, const char *name, const char *module)
{
	if (IN_LIST(lock_waits, name))
		return false;
	for (size_t i = 0; i < THROUGH_MAX && w->through[i]; i++)
		if (*w->through[i] == '@' ? begins(module, w->through[i] + 1)
					  : name_begins(name, w->through[i]))
			return true;
	return wait_is_c_library(module) || IN_LIST(c_waits, name);
}

/* Whether frame k is a worker's function, and the frames inside of it are how it waits. */
static bool waits_for_task(const uint32_t *ids, const struct symbolizer *sz, enum wait_note by,
			   size_t k)
{
	const char *name = symbolizer_name(sz, ids[k]), *module = symbolizer_module(sz, ids[k]);

	for (size_t i = 0; i < sizeof(workers) / sizeof(workers[0]); i++) {
		const struct task_loop *w = &workers[i];
		size_t inner = k;

		if (w->by != by || !is_worker(w, name, module))
			continue;
		while (inner && is_waiting(w, symbolizer_name(sz, ids[inner - 1]),
					   symbolizer_module(sz, ids[inner - 1])))
			inner--;
		if (!inner)
			return true;
	}
	return false;
}

/* ---- poll() ---- */

/* Functions of the C library that wait for descriptors */
static const char *const poll_calls[] = { "poll",     "__poll",	 "ppoll",     "__ppoll", "select",
					  "__select", "pselect", "__pselect", "syscall" };
/* Libraries that wait for the work of the whole program */
static const char *const loop_libraries[] = {
	"libglib-2.0.so", "libuv.so",	   "libev.so",		 "libevent",
	"libQt5Core.so",  "libQt6Core.so", "libtevent.so",	 "libavahi-common.so",
	"libpulse",	  "libpcap.so",	   "libmicrohttpd.so",	 "libdovecot.so",
	"libtcl",	  "libverto",	   "libpostfix-util.so", "libusbmuxd",
};
/* Functions of other libraries that do */
static const char *const loops[] = { "svc_run", "xcb_wait_for_event", "XNextEvent",
				     "_XReadEvents" };
/* Functions of languages that wait for the descriptors of a loop */
static const char *const language_loops[] = {
	"select (selectors.py",
	"poll (asyncore.py",
	"poll2 (asyncore.py",
	"doPoll (pollreactor.py",
	"doSelect (selectreactor.py",
	"poll (poller.py",
	"wait (sync.py",
	"accept (socket.py",
	"sun.nio.ch.PollSelectorImpl.",
	"can_read (Select.pm",
	"Net::Server::",
	"IO::Async::",
	"AnyEvent::",
	"POE::",
	"Mojo::Reactor::",
	"React\\EventLoop\\",
	"Revolt\\EventLoop\\",
	"Workerman\\Events\\",
	"stream_select",
	"socket_select",
};
/* Callers of these that wait for an answer */
static const char *const language_answers[] = { "_communicate (subprocess.py",
						"wait (connection.py" };

static bool is_language(const struct profile_stack *s, size_t k)
{
	return SF_FRAME_KIND(s->frames[k]) == SF_FRAME_LANG;
}

static size_t next_language(const struct profile_stack *s, size_t k)
{
	while (k < s->n_user && !is_language(s, k))
		k++;
	return k;
}

/*
 * Whether a thread waits in poll() for a loop of the language's program. at: its innermost frame
 * of a language. Ruby's methods in C are frames, so `select` there is Ruby's own.
 */
static bool is_language_loop(const struct profile_stack *s, const uint32_t *ids,
			     const struct symbolizer *sz, size_t at)
{
	const char *name = symbolizer_name(sz, ids[at]);
	size_t next = next_language(s, at + 1);
	bool ruby = SF_FRAME_LANGUAGE(s->frames[at]) == SF_LANG_RUBY,
	     loop = IN_LIST(language_loops, name) ||
		    (ruby && (name_begins(name, "select (") || name_begins(name, "accept (")));

	for (size_t k = 0; k < at && !loop; k++) /* Python's */
		loop = begins(symbolizer_module(sz, ids[k]), "select.") ||
		       begins(symbolizer_name(sz, ids[k]), "select_");
	return loop &&
	       (next == s->n_user || !IN_LIST(language_answers, symbolizer_name(sz, ids[next])));
}

static bool is_library(const char *module)
{
	const char *at = strstr(module, ".so");

	return at && (!at[3] || at[3] == '.');
}

/*
 * Whether a thread in poll() waits for work to arrive. A program's own loop calls poll() itself, or
 * a library that is known to be a loop does. Any other library, the C library and the code of a
 * language wait for an answer, for the sake of the function that called them.
 */
static bool polls_for_work(const struct profile_stack *s, const uint32_t *ids,
			   const struct symbolizer *sz)
{
	size_t k = 0, at;
	const char *caller;

	while (k < s->n_user && wait_is_c_library(symbolizer_module(sz, ids[k])))
		k++;
	if (k && !IN_LIST(poll_calls, symbolizer_name(sz, ids[k - 1])))
		return false;
	if (k == s->n_user || runtime_of(s, ids, sz))
		return true;
	caller = symbolizer_module(sz, ids[k]);
	at = next_language(s, k);
	if (IN_LIST(loop_libraries, caller))
		return true;
	for (; k < at && !strcmp(symbolizer_module(sz, ids[k]), caller); k++)
		if (IN_LIST(loops, symbolizer_name(sz, ids[k])))
			return true;
	return at < s->n_user ? is_language_loop(s, ids, sz, at) : !is_library(caller);
}

/* ---- Goroutines ---- */

/* Functions of Go that wait in runtime.gopark; the innermost one decides. */
static const struct pattern go_waits[] = {
	{ "time.Sleep", WAIT_SLEEP },
	{ "runtime.timeSleep", WAIT_SLEEP },
	{ "runtime.netpollblock", WAIT_ANSWER },
	{ "internal/poll.runtime_pollWait", WAIT_ANSWER },
	{ "runtime.chan", WAIT_CHANNEL },
	{ "runtime.selectgo", WAIT_CHANNEL },
	{ "runtime.block", WAIT_CHANNEL },
	{ "runtime.semacquire", WAIT_SYNC },
	{ "sync.", WAIT_SYNC },
	{ "internal/sync.", WAIT_SYNC },
};

static enum wait_note parked(const struct profile_stack *s, const uint32_t *ids,
			     const struct symbolizer *sz)
{
	for (size_t k = 1; k < s->n_user; k++) {
		const struct pattern *p = MATCH(go_waits, symbolizer_name(sz, ids[k]));

		if (p)
			return p->note;
	}
	return WAIT_OTHER;
}

/* ---- All waits ---- */

static enum wait_note blocked(const struct profile_stack *s, const uint32_t *ids,
			      const struct symbolizer *sz)
{
	const struct pattern *p = kernel_wait(s, ids, sz);
	enum wait_note note = p ? p->note : WAIT_OTHER;
	bool polls = note == WAIT_POLL && strcmp(p->prefix, "io_cqring_wait") != 0;

	if (s->state == SF_OFF_D || note == WAIT_STOPPED ||
	    (note > WAIT_OTHER && note != WAIT_POLL))
		return note;
	for (size_t k = 0; k < s->n_user; k++) {
		p = MATCH(task_waits, symbolizer_name(sz, ids[k]));
		if (p)
			return p->note;
		if (waits_for_task(ids, sz, note, k))
			return WAIT_QUEUE;
	}
	if (polls && !polls_for_work(s, ids, sz))
		return WAIT_ANSWER;
	return is_idle(s, ids, sz, note) ? WAIT_QUEUE : note;
}

enum wait_note wait_note_of(const struct profile_stack *s, const uint32_t *ids,
			    const struct symbolizer *sz)
{
	switch (s->state) {
	case PROFILE_RUNNING:
		return WAIT_RUNNING;
	case SF_OFF_R:
		return WAIT_RUNNABLE;
	case SF_OFF_T:
	case SF_OFF_TRACED:
	case SF_OFF_P:
		return WAIT_STOPPED;
	default:
		if (!(s->flags & SF_SAMPLE_USER) && s->state != SF_OFF_D)
			return WAIT_KTHREAD;
		if (!s->n_kernel && s->n_user && !strcmp(symbolizer_name(sz, ids[0]), GOPARK))
			return parked(s, ids, sz);
		return blocked(s, ids, sz);
	}
}

const char *wait_note_text(enum wait_note note)
{
	static const char *const texts[WAIT_NOTES] = {
#define WAIT(id, text) [WAIT_##id] = "[" text "]",
#include "prof/wait_notes.def"
#undef WAIT
	};

	return texts[note];
}
