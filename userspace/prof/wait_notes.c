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
	{ "__x64_sys_pause", WAIT_SIGNAL },
	{ "__arm64_sys_pause", WAIT_SIGNAL },
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
	{ "__mutex_lock", WAIT_LOCK },
	{ "rwsem_down_", WAIT_LOCK },
	{ "__down_", WAIT_LOCK },
	{ "percpu_rwsem_wait", WAIT_LOCK },
	{ "rtmutex_", WAIT_LOCK },
};

/*
 * Functions in which worker threads wait for their next task. A thread that waits below them does
 * no request's work.
 */
static const struct pattern worker_waits[] = {
	/* Java: thread pools, timers, the collector's and compiler's threads */
	{ "ThreadPoolExecutor.getTask", WAIT_QUEUE },
	{ "ForkJoinPool.awaitWork", WAIT_QUEUE },
	{ "TimerThread.mainLoop", WAIT_QUEUE },
	{ "ReferenceQueue.remove", WAIT_QUEUE },
	{ "WorkerThread::run", WAIT_QUEUE },
	{ "CompileQueue::get", WAIT_QUEUE },
	{ "VMThread::wait_for_vm_thread_to", WAIT_QUEUE },
	{ "VMThread::wait_until_executed", WAIT_QUEUE },
	{ "WatcherThread::sleep", WAIT_QUEUE },
	/* Go: threads without a goroutine */
	{ "runtime.findRunnable", WAIT_QUEUE },
	{ "runtime.findrunnable", WAIT_QUEUE },
	{ "runtime.stopm", WAIT_QUEUE },
	{ "runtime.sysmon", WAIT_QUEUE },
	/* Python */
	{ "_worker (thread.py", WAIT_QUEUE },
	/* node, V8, libuv */
	{ "uv__worker", WAIT_QUEUE },
	{ "node::WorkerThreadsTaskRunner", WAIT_QUEUE },
	{ "node::(anonymous namespace)::PlatformWorkerThread", WAIT_QUEUE },
	{ "v8::platform::DefaultWorkerThreadsTaskRunner", WAIT_QUEUE },
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

static enum wait_note blocked(const struct profile_stack *s, const uint32_t *ids,
			      const struct symbolizer *sz)
{
	enum wait_note note = s->state == SF_OFF_D ? WAIT_IO : WAIT_OTHER;
	const struct pattern *p = NULL;

	for (size_t k = 0; k < s->n_kernel && !p; k++)
		p = MATCH(kernel_waits, symbolizer_name(sz, ids[s->n_user + k]));
	note = p ? p->note : note;
	if (s->state == SF_OFF_D || note > WAIT_OTHER)
		return note;
	for (size_t k = 0; k < s->n_user; k++) {
		p = MATCH(worker_waits, symbolizer_name(sz, ids[k]));
		if (p)
			return p->note;
	}
	return note;
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
