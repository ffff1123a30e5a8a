/* SPDX-License-Identifier: BSD-2-Clause */
#include "debuginfo/dwarf_worker.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/full_io.h"
#include "worker/jail.h"
#include "worker/privs.h"
#include "worker/worker.h"

#define ANSWERS_MAX (256u << 20) /* bytes of all answers */
#define STRING_MAX  4095	 /* bytes of a name or a path; longer ones are cut */
#define WALL	    4		 /* wall clock limit, as a multiple of the CPU time limit */
#define SILENT_NS   (10 * NUM_S) /* time without CPU use: the worker waits for a file system */
/* The rights to become the owner of the file, below their root directory. */
#define RIGHTS                                                                       \
	(PRIVS_CAP(CAP_SETUID) | PRIVS_CAP(CAP_SETGID) | PRIVS_CAP(CAP_SYS_CHROOT) | \
	 PRIVS_CAP(CAP_DAC_READ_SEARCH))

/*
 * The addresses are in the memfd. Descriptors: file, dwz file, root directory, or any in place of
 * one that is -1 in `job`.
 */
struct ask {
	struct dwarf_job job;
	struct dwarf_limits limits;
};

/*
 * Each address: index, number of frames; each frame: line, start line, discriminator, name, file.
 * Numbers are 32 bits in native byte order. Strings end with a NUL.
 */
struct answer {
	uint32_t last; /* bool: the end; this message has no bytes */
	int32_t err;   /* result of dwarf_read, if it is the last message */
	uint32_t len;
	uint8_t bytes[1 << 17];
};

/* ---- The worker ---- */

struct out {
	int sock;
	struct answer a;
};

static int flush(struct out *o)
{
	size_t len = offsetof(struct answer, bytes) + o->a.len;
	int err = o->a.len ? fork_send(o->sock, &o->a, len, NULL, 0, 0) : 0;

	o->a.len = 0;
	return err;
}

static void put(struct out *o, const void *data, size_t n)
{
	memcpy(o->a.bytes + o->a.len, data, n);
	o->a.len += (uint32_t)n;
}

/* reserve: bytes that must stay free after it. */
static void put_string(struct out *o, const char *s, size_t reserve)
{
	size_t room = sizeof(o->a.bytes) - o->a.len - reserve - 1;

	put(o, s ? s : "", s ? strnlen(s, room < STRING_MAX ? room : STRING_MAX) : 0);
	put(o, "", 1);
}

static int tell(void *ctx, size_t i, const struct dwarf_frame *frames, size_t n)
{
	const uint32_t head[2] = { (uint32_t)i, (uint32_t)n };
	const size_t least = 3 * sizeof(frames->line) + 2; /* bytes of a frame */
	struct out *o = ctx;
	int err = o->a.len > sizeof(o->a.bytes) / 2 ? flush(o) : 0;

	put(o, head, sizeof(head));
	for (size_t k = 0; k < n; k++) {
		put(o, &frames[k].line, sizeof(frames[k].line));
		put(o, &frames[k].start_line, sizeof(frames[k].start_line));
		put(o, &frames[k].discriminator, sizeof(frames[k].discriminator));
		put_string(o, frames[k].name, (n - k - 1) * least + 1);
		put_string(o, frames[k].file, (n - k - 1) * least);
	}
	return err;
}

/*
 * The paths in the file come from its owner. A file of a foreign
 * file system's root is read as the user nobody.
 */
static int drop_rights(const struct dwarf_job *job, int root_fd)
{
	struct stat st;
	uid_t uid;
	gid_t gid;

	if (geteuid() != 0)
		return 0;
	if (fstat(job->fd, &st))
		return -errno;
	uid = st.st_uid;
	gid = st.st_gid;
	if (job->root_fd >= 0 && (fchdir(root_fd) || chroot(".")))
		return -errno;
	if (job->foreign && !uid)
		uid = gid = NOBODY;
	if (!uid)
		return 0;
	return setgroups(0, NULL) || setresgid(gid, gid, gid) || setresuid(uid, uid, uid) ? -errno
											  : 0;
}

static int read_file(const struct worker_request *r)
{
	static struct out out;
	const struct ask *ask = r->ask;
	struct answer *a = r->answer;
	struct dwarf_job job = ask->job;
	uint64_t *addrs = calloc(job.n, sizeof(*addrs));

	job.fd = r->fds[0];
	job.alt_fd = job.alt_fd < 0 ? -1 : r->fds[1];
	job.addrs = addrs;
	out.sock = r->sock;
	/* The client's limit of CPU time comes first. */
	jail_limit(&(struct jail_limits){ .data_bytes = ask->limits.bytes,
					  .cpu_seconds = ask->limits.seconds + 1 });
	a->last = 1;
	a->err = !addrs ? -ENOMEM : pread_full(r->mem, addrs, job.n * sizeof(*addrs), 0);
	if (!a->err)
		a->err = drop_rights(&job, r->fds[2]);
	if (!a->err)
		a->err = privs_keep(0);
	if (!a->err)
		a->err = dwarf_read(&job, tell, &out);
	if (flush(&out))
		_exit(1);
	return -1;
}

static void dwarf_child_main(int sock, int mem)
{
	static const struct worker_service service = {
		.least = sizeof(struct ask),
		.most = sizeof(struct ask),
		.nfds = 3,
		.answer_len = offsetof(struct answer, bytes),
		.reply = read_file,
	};

	prctl(PR_SET_NAME, "sfbpf-dwarf");
	worker_serve(sock, mem, &service);
}

/* ---- The main process ---- */

/* 0; -EBADMSG: not valid output of a worker; or -errno of emit. */
static int take_records(const struct answer *a, size_t naddrs, dwarf_emit_fn emit, void *ctx)
{
	struct bytes b = bytes_of(a->bytes, a->len < sizeof(a->bytes) ? a->len : sizeof(a->bytes),
				  __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
	struct dwarf_frame frames[DWARF_MAX_CHAIN];
	int err = 0;

	while (!err && b.pos < a->len) {
		uint32_t i = bytes_u32(&b), n = bytes_u32(&b);

		if (i >= naddrs || !n || n > DWARF_MAX_CHAIN)
			return -EBADMSG;
		for (uint32_t k = 0; k < n && !b.err; k++) {
			frames[k].line = bytes_u32(&b);
			frames[k].start_line = bytes_u32(&b);
			frames[k].discriminator = bytes_u32(&b);
			frames[k].name = bytes_str(&b);
			frames[k].file = bytes_str(&b);
			if (b.err)
				return -EBADMSG;
			if (!*frames[k].name)
				frames[k].name = NULL;
			if (!*frames[k].file)
				frames[k].file = NULL;
		}
		err = emit(ctx, i, frames, n);
	}
	return err;
}

/* Receives answers until the last one. */
static int take_answers(struct worker *w, const struct dwarf_job *job, dwarf_emit_fn emit,
			void *ctx)
{
	static struct answer a;
	uint64_t total = 0;
	int err;

	for (;;) {
		err = worker_wait(w, &a, offsetof(struct answer, bytes), sizeof(a), NULL);
		if (err)
			return err == -ETIME ? -ETIMEDOUT : err;
		if (a.last)
			return !a.err || a.err == -ENOENT ? a.err : -ECHILD;
		total += a.len;
		err = total > ANSWERS_MAX ? -EFBIG : take_records(&a, job->n, emit, ctx);
		if (err)
			return err;
		w->busy = true;
	}
}

/* The child becomes another user, so it comes from a server of its own. */
int dwarf_work(const struct dwarf_job *job, const struct dwarf_limits *limits, dwarf_emit_fn emit,
	       void *ctx)
{
	const struct worker_limits l = {
		.wall_ns = limits->most_ns ? limits->most_ns : WALL * limits->seconds * NUM_S,
		.cpu_ns = limits->seconds * NUM_S,
		.silent_ns = SILENT_NS,
		.stopped = limits->stopped,
	};
	const struct ask ask = { *job, *limits };
	struct worker_totals totals = { 0 };
	struct worker w;
	int err;

	worker_init(&w, fork_server_start(RIGHTS), dwarf_child_main, &totals);
	err = w.server ? worker_start(&w) : -errno;
	if (!err)
		err = write_full(w.child.mem, job->addrs, job->n * sizeof(*job->addrs));
	if (!err)
		err = worker_ask(&w, &l, &ask, sizeof(ask),
				 (const int[]){ job->fd, job->alt_fd, job->root_fd }, 3);
	if (!err)
		err = take_answers(&w, job, emit, ctx);
	/* Exiting may wait as well, for the file systems of the open files. */
	worker_drop(&w);
	fork_server_stop(w.server);
	return err;
}
