/* SPDX-License-Identifier: BSD-2-Clause */
#include "prof/wait_notes.h"

#include <string.h>

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

/* The same for what waits uninterruptibly, if nothing above matches: file systems and disks. */
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
 * Functions in which worker threads wait for their next task. A thread that waits below them does
 * no request's work.
 */
static const struct pattern worker_waits[] = {
	/* Java: thread pools, timers, references, the launcher's first thread */
	{ "java.util.concurrent.ThreadPoolExecutor.getTask", WAIT_QUEUE },
	{ "java.util.concurrent.ForkJoinPool.awaitWork", WAIT_QUEUE },
	{ "java.util.TimerThread.mainLoop", WAIT_QUEUE },
	{ "java.lang.ref.ReferenceQueue.remove", WAIT_QUEUE },
	{ "java.lang.ref.Reference.waitForReferencePendingList", WAIT_QUEUE },
	{ "java.lang.Thread.sleep", WAIT_SLEEP },
	{ "JLI_Launch", WAIT_QUEUE },
	/* Go: threads without a goroutine */
	{ "runtime.findRunnable", WAIT_QUEUE },
	{ "runtime.findrunnable", WAIT_QUEUE },
	{ "runtime.stopm", WAIT_QUEUE },
	{ "runtime.sysmon", WAIT_QUEUE },
	{ "runtime.stoplockedm", WAIT_QUEUE },
	{ "runtime.templateThread", WAIT_QUEUE },
	{ "os/signal.signal_recv", WAIT_SIGNAL },
	/* Python */
	{ "_worker (thread.py", WAIT_QUEUE },
	/* node, V8, libuv */
	{ "uv__worker", WAIT_QUEUE },
	{ "node::WorkerThreadsTaskRunner", WAIT_QUEUE },
	{ "node::(anonymous namespace)::PlatformWorkerThread", WAIT_QUEUE },
	{ "v8::platform::DefaultWorkerThreadsTaskRunner", WAIT_QUEUE },
	{ "node::inspector::(anonymous namespace)::StartIoThreadMain", WAIT_QUEUE },
	/* GLib, OpenMP, Rust's tokio and rayon, nginx */
	{ "g_thread_pool_wait_for_new_task", WAIT_QUEUE },
	{ "g_async_queue_", WAIT_QUEUE },
	{ "gomp_team_barrier_wait", WAIT_QUEUE },
	{ "gomp_barrier_wait", WAIT_QUEUE },
	{ "tokio::runtime::scheduler::multi_thread::worker::Context::park", WAIT_QUEUE },
	{ "rayon_core::sleep::Sleep::sleep", WAIT_QUEUE },
	{ "ngx_thread_pool_cycle", WAIT_QUEUE },
	/* sfbpf's own */
	{ "worker_serve", WAIT_QUEUE },
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

static bool is_c_library(const char *module)
{
	return !strncmp(module, "libc.so", 7) || !strncmp(module, "libpthread", 10) ||
	       !strncmp(module, "libc-", 5) || !strncmp(module, "ld-", 3) ||
	       !strcmp(module, "[vdso]");
}

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

		if (is_c_library(module) || (r && r->runs_code))
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

static enum wait_note blocked(const struct profile_stack *s, const uint32_t *ids,
			      const struct symbolizer *sz)
{
	const struct pattern *p = kernel_wait(s, ids, sz);
	enum wait_note note = p ? p->note : WAIT_OTHER;

	if (s->state == SF_OFF_D || note == WAIT_STOPPED || note > WAIT_OTHER)
		return note;
	for (size_t k = 0; k < s->n_user; k++) {
		p = MATCH(worker_waits, symbolizer_name(sz, ids[k]));
		if (p)
			return p->note;
	}
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
