/* SPDX-License-Identifier: BSD-2-Clause */
#include "symtab/elf_reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/full_io.h"
#include "base/text.h"
#include "border/sfbpf_shared.h"
#include "symtab/elf_worker.h"
#include "symtab/sym_names.h"
#include "worker/sealed_file.h"

#define NAME_MOST_NS (250 * NUM_MS) /* wall clock for one name, times allowance->busy */
#define SLOW_FOR_NS  (60 * NUM_S)

void elf_reader_init(struct elf_reader *r, struct fork_server *server, fork_child_fn child,
		     struct allowance *allowance)
{
	memset(r, 0, sizeof(*r));
	worker_init(&r->worker, server, child, &allowance->totals);
	r->allowance = allowance;
}

/* ---- Questions ---- */

static bool is_sound(const void *ask, const void *answer)
{
	const struct elf_ask *what = ask;
	const struct elf_answer *a = answer;

	if (a->question != what->question || a->err > 0 || a->err == -EAGAIN || a->err == -ECHILD)
		return false;
	if (what->question == ELF_FACTS && !a->err)
		return elf_facts_sound(&a->facts);
	if (what->question == ELF_IDS && !a->err)
		return elf_ids_sound(&a->ids);
	if (what->question == ELF_TLS && !a->err)
		return a->tls.how > SF_TLS_NONE && a->tls.how <= SF_TLS_WORD && a->tls.musl <= 1;
	return (what->question != ELF_NAME && what->question != ELF_DATA && !what->demangle) ||
	       a->err || memchr(a->name, 0, sizeof(a->name));
}

/*
 * Asks the child. Returns what the functions of the header return. -ETIME: the CPU time of a name
 * was used up. An error of the child, not its answer, is not counted yet.
 */
static int ask(struct elf_reader *r, const struct elf_ask *what, const int *fds, uint32_t owner,
	       uint64_t most_ns)
{
	const struct worker_question q = {
		.ask = what,
		.len = elf_ask_size(what),
		.fds = fds,
		.nfds = 2,
		.answer = &r->answer,
		.answer_len = sizeof(r->answer),
		.sound = is_sound,
		.owner = owner,
		.wall_ns = most_ns,
		.cpu_ns = what->demangle ? ELF_DEMANGLE_CPU_NS : 0,
	};
	int err = worker_call(&r->worker, r->allowance, &q);

	/* The answer may come when more time is left. */
	if (err == -ETIMEDOUT && r->worker.limits.wall_ns < ALLOWANCE_MOST_NS &&
	    !allowance_ending(r->allowance))
		return -EAGAIN;
	return err ? err : r->answer.err;
}

/* Counts a question about a file that has no answer. */
static int counted(struct elf_reader *r, int err)
{
	r->allowance->totals.failed += err == -ECHILD || err == -ETIMEDOUT;
	return err;
}

static int ask_file(struct elf_reader *r, const struct elf_ask *what, int fd, int debug_fd)
{
	const int fds[] = { fd, debug_fd < 0 ? fd : debug_fd };

	return r ? counted(r, ask(r, what, fds, allowance_owner(fd), 0)) : -ENOENT;
}

int elf_reader_facts(struct elf_reader *r, int fd, struct elf_facts *ret)
{
	int err = ask_file(r, &(struct elf_ask){ .question = ELF_FACTS }, fd, -1);

	if (!err)
		*ret = r->answer.facts;
	return err;
}

int elf_reader_ids(struct elf_reader *r, int fd, struct module_ids *ret)
{
	int err = ask_file(r, &(struct elf_ask){ .question = ELF_IDS }, fd, -1);

	if (!err)
		*ret = r->answer.ids;
	return err;
}

int elf_reader_tls(struct elf_reader *r, int fd, struct elf_tls *ret)
{
	int err = ask_file(r, &(struct elf_ask){ .question = ELF_TLS }, fd, -1);

	if (!err)
		*ret = r->answer.tls;
	return err;
}

int elf_reader_data(struct elf_reader *r, int fd, uint64_t offset, uint64_t distance, char *buf,
		    size_t cap)
{
	int err = ask_file(r,
			   &(struct elf_ask){
				   .question = ELF_DATA, .off = offset, .distance = distance },
			   fd, -1);

	if (!err)
		text_clean(buf, cap, r->answer.name, strlen(r->answer.name), 0);
	return err;
}

int elf_reader_crc(struct elf_reader *r, int fd, uint32_t *ret)
{
	int err = ask_file(r, &(struct elf_ask){ .question = ELF_CRC }, fd, -1);

	if (!err)
		*ret = r->answer.crc;
	return err;
}

int elf_reader_digest(struct elf_reader *r, int fd, uint64_t *ret)
{
	int err = ask_file(r, &(struct elf_ask){ .question = ELF_DIGEST }, fd, -1);

	if (!err)
		*ret = r->answer.digest;
	return err;
}

int elf_reader_check(struct elf_reader *r, struct module *m)
{
	uint64_t ns, digest;
	int err;

	if (module_change(m, &ns) == MODULE_SAME)
		return 0;
	if (ns != m->seen_ctime_ns) {
		err = elf_reader_digest(r, m->fd, &digest);
		if (err == -EAGAIN)
			return err;
		m->seen_ctime_ns = ns;
		m->seen_same = !err && digest == m->digest;
		if (!m->seen_same && r)
			r->allowance->totals.changed++;
	}
	return m->seen_same ? 0 : -ESTALE;
}

int elf_reader_symbols(struct elf_reader *r, int fd, int debug_fd, struct symtab **ret)
{
	/* A copy takes memory and is closed afterwards, so take all names now. */
	bool copy = debug_fd >= 0 && sealed_file_is(debug_fd);
	const struct elf_ask what = { .question = ELF_SYMBOLS,
				      .debug = debug_fd >= 0,
				      .all_names = copy };
	int err = ask_file(r, &what, fd, debug_fd);
	struct symtab head = { .names = NULL };
	uint64_t cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);

	if (err)
		return err;
	head.n = r->answer.n;
	head.names_len = r->answer.names_len;
	head.cut = r->answer.cut;
	memcpy(head.str, r->answer.str, sizeof(head.str));
	err = symtab_read(r->worker.child.mem, &head, ret);
	r->allowance->cpu_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
	if (err == -EBADMSG) {
		r->allowance->totals.failed++;
		worker_lose(&r->worker);
		return -ECHILD;
	}
	if (!err) {
		(*ret)->debug_fd = copy ? -1 : debug_fd;
		r->allowance->totals.cut += head.cut;
	}
	return err;
}

int elf_reader_code(struct elf_reader *r, int fd, const struct elf_code *what,
		    struct elf_instruction **ret, uint32_t *ret_n)
{
	const struct elf_ask q = { .question = ELF_CODE, .code = *what };
	int err = what->size > ELF_CODE_MOST ? -ENOENT : ask_file(r, &q, fd, -1);
	struct elf_instruction *v;
	uint32_t n;

	if (err)
		return err;
	n = r->answer.n;
	v = n && n <= what->size ? malloc(n * sizeof(*v)) : NULL;
	if (!v && n && n <= what->size)
		return -ENOMEM;
	if (!v || pread_full(r->worker.child.mem, v, n * sizeof(*v), 0) ||
	    !elf_code_sound(v, n, what->size)) {
		free(v);
		r->allowance->totals.failed++;
		worker_lose(&r->worker);
		return -ECHILD;
	}
	*ret = v;
	*ret_n = n;
	return 0;
}

int elf_reader_steps(struct elf_reader *r, int fd, const struct elf_code *what, uint32_t **ret,
		     uint32_t *ret_n)
{
	const struct elf_ask q = { .question = ELF_STEPS, .code = *what };
	int err = what->size > ELF_STEPS_MOST ? -ENOENT : ask_file(r, &q, fd, -1);
	uint32_t *v;
	uint32_t n;

	if (err)
		return err;
	n = r->answer.n;
	v = n && n <= what->size ? malloc(n * sizeof(*v)) : NULL;
	if (!v && n && n <= what->size)
		return -ENOMEM;
	if (!v || pread_full(r->worker.child.mem, v, n * sizeof(*v), 0) ||
	    !elf_steps_sound(v, n, what->size)) {
		free(v);
		r->allowance->totals.failed++;
		worker_lose(&r->worker);
		return -ECHILD;
	}
	*ret = v;
	*ret_n = n;
	return 0;
}

static int ask_places(struct elf_reader *r, enum elf_question question, int fd,
		      const uint64_t *offsets, size_t n, struct go_places *ret)
{
	struct elf_ask q = { .question = question, .len = (uint32_t)(n * sizeof(*offsets)) };
	int err;

	memcpy(q.offsets, offsets, n * sizeof(*offsets));
	err = ask_file(r, &q, fd, -1);
	if (err)
		return err;
	err = go_places_take(r->worker.child.mem, r->answer.n, r->answer.names_len, n, ret);
	if (err == -EBADMSG) {
		r->allowance->totals.failed++;
		worker_lose(&r->worker);
		return -ECHILD;
	}
	return err;
}

int elf_reader_go(struct elf_reader *r, int fd, const uint64_t *offsets, size_t n,
		  struct go_places *ret)
{
	return ask_places(r, ELF_GO, fd, offsets, n, ret);
}

int elf_reader_linked(struct elf_reader *r, int fd, const uint64_t *offsets, size_t n,
		      struct go_places *ret)
{
	return ask_places(r, ELF_LINKED, fd, offsets, n, ret);
}

int elf_reader_probes(struct elf_reader *r, int fd, enum elf_probes_of what, const char *pattern,
		      struct elf_probes *ret)
{
	struct elf_ask q = { .question = ELF_PROBES,
			     .off = what,
			     .len = (uint32_t)strnlen(pattern, SYMTAB_NAME_MAX) };
	int err;

	if (q.len == SYMTAB_NAME_MAX)
		return -E2BIG;
	memcpy(q.raw, pattern, q.len);
	err = ask_file(r, &q, fd, -1);
	if (err)
		return err;
	err = elf_probes_take(r->worker.child.mem, r->answer.n, r->answer.names_len, ret);
	elf_probes_set_flags(ret, r->answer.cut);
	if (err != -EBADMSG)
		return err;
	r->allowance->totals.failed++;
	worker_lose(&r->worker);
	return -ECHILD;
}

/* ---- Names ---- */

static bool is_refused(const struct elf_reader *r, struct elf_source from)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	int of_file = 0, of_user = 0;

	for (size_t i = 0; i < ELF_SLOW_KEPT; i++) {
		const struct elf_slow_name *s = &r->slow[i];

		if (!s->at_ns || now - s->at_ns > SLOW_FOR_NS)
			continue;
		of_file += s->from.file == from.file;
		of_user += s->from.owner == from.owner && from.owner;
	}
	return of_file >= ELF_SLOW_FILE || of_user >= ELF_SLOW_USER;
}

static void note_slow(struct elf_reader *r, struct elf_source from)
{
	r->slow[r->next_slow++ % ELF_SLOW_KEPT] =
		(struct elf_slow_name){ from, clock_ns(CLOCK_MONOTONIC) };
}

/*
 * 0; -EAGAIN: later; -ETIME: the name stays mangled and is counted; -ENOENT: it stays as it is and
 * is not counted.
 */
static int demangle(struct elf_reader *r, struct elf_source from, const char *raw)
{
	struct elf_ask what = { .question = ELF_DEMANGLE,
				.demangle = true,
				.len = (uint32_t)strnlen(raw, SYMTAB_NAME_MAX) };
	int err;

	if (!r || !sym_is_mangled(raw) || what.len == SYMTAB_NAME_MAX)
		return -ENOENT;
	if (is_refused(r, from))
		return -ETIME;
	memcpy(what.raw, raw, what.len);
	err = ask(r, &what, (const int[]){ -1, -1 }, from.owner, NAME_MOST_NS * r->allowance->busy);
	if (!err || err == -EAGAIN || err == -ENOENT)
		return err;
	/* A wait that ended before the child used its CPU time says nothing about the name. */
	if (err == -ETIMEDOUT) {
		r->allowance->totals.deferred++;
		return -EAGAIN;
	}
	note_slow(r, from);
	return -ETIME;
}

bool elf_reader_demangle(struct elf_reader *r, struct elf_source from, const char *raw, char *buf,
			 size_t cap)
{
	int err = demangle(r, from, raw);
	const char *shown = err ? raw : r->answer.name;

	if (err == -ETIME)
		r->allowance->totals.mangled++;
	/* The child sends clean text, but a compromised one may not. */
	text_clean(buf, cap, shown, strlen(shown), 0);
	return err != -EAGAIN;
}

int elf_reader_name(struct elf_reader *r, int fd, uint32_t file, const struct symtab *t,
		    const struct symtab_hit *hit, char *buf, size_t cap)
{
	struct elf_source from = { file, allowance_owner(fd) };
	struct elf_ask what = { .question = ELF_NAME };
	char raw[SYMTAB_NAME_MAX];
	int fds[2] = { fd }, err;
	bool debug;

	*buf = 0;
	if (!symtab_name_place(t, hit, &what.off, &what.len, &debug)) {
		if (symtab_name(t, hit, raw, sizeof(raw)) <= 0)
			return -ENOENT;
		return elf_reader_demangle(r, from, raw, buf, cap) ? 0 : -EAGAIN;
	}
	if (!r)
		return -ENOENT;
	fds[1] = debug ? t->debug_fd : fd;
	what.debug = debug;
	what.demangle = !is_refused(r, from);
	err = ask(r, &what, fds, from.owner, 0);
	/* Either the name or the file is the cause. */
	if (what.demangle && (err == -ETIME || err == -ECHILD)) {
		note_slow(r, from);
		what.demangle = false;
		err = ask(r, &what, fds, from.owner, 0);
	}
	if (err)
		return counted(r, err);
	r->allowance->totals.mangled += !what.demangle && sym_is_mangled(r->answer.name);
	text_clean(buf, cap, r->answer.name, strlen(r->answer.name), 0);
	return 0;
}
