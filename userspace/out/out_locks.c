/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * JSON, schema 1: one object of
 *
 *   schema, event, duration_s
 *   locks     name: the variable, or the function that uses the lock, in brackets; address (a hex
 *             string); kind; pid and comm of the process (a lock of the kernel: 0 and ""); waits,
 *             wait_us, max_us; idle_us: the part of wait_us in which threads waited for work to
 *             arrive; owners: tid, comm, waits, wait_us; owner_unknown_waits, owner_unknown_us;
 *             waiters, wakers: the stacks with the longest time, each comm, pid, wait_us, frames
 *             (names, root first)
 *   left_out_waits  those for which there was no room
 *
 * The locks with the longest time come first.
 */
#include "out/out_locks.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/idmap.h"
#include "base/json.h"
#include "base/text.h"
#include "base/vec.h"
#include "out/out_blocks.h"
#include "out/out_table.h"
#include "prof/lock_kinds.h"
#include "prof/locks.h"
#include "prof/wait_notes.h"
#include "symtab/sym_names.h"

#define ROWS_SHOWN    20
#define OWNERS_SHOWN  4
#define STACKS_SHOWN  2
#define STACKS_LISTED 5 /* JSON */

/* Stacks of waiters, or wakers, and owners: their share of a lock's waits */
struct part {
	uint32_t at; /* index of a stack or a waker, or an owner's thread id */
	struct lock_sums sums;
	const char *comm; /* owners */
};

struct parts {
	struct idmap ids; /* what they are -> list */
	struct part *list;
	size_t cap;
};

struct row {
	const struct lock *lock;
	const struct lock_kind *kind;
	uint32_t inside;		/* bytes from the begin of the lock to its futex */
	struct lock_sums sums, unknown; /* unknown: waits whose owner is not known */
	uint64_t idle_ns;
	struct parts owners, waiters, wakers;
	uint32_t user; /* symbol of the function that uses the lock, in the waits of user_ns */
	uint64_t user_ns;
	const char *comm; /* the process's name */
};

struct rows {
	const struct out_report *r;
	struct idmap ids; /* lock, kind -> list */
	struct row *list;
	size_t cap;
};

/* key: equal for waits that are shown as one */
static int add_part(struct parts *p, uint64_t key, uint32_t at, const char *comm,
		    const struct lock_sums *sums)
{
	size_t before = p->ids.n;
	uint32_t id;

	if (vec_reserve(&p->list, &p->cap, before + 1, sizeof(*p->list)) ||
	    idmap_get(&p->ids, key, 0, &id))
		return -ENOMEM;
	if (id == before)
		p->list[id] = (struct part){ .at = at, .comm = comm };
	lock_sums_add(&p->list[id].sums, sums);
	return 0;
}

static void free_parts(struct parts *p)
{
	idmap_free(&p->ids);
	free(p->list);
}

static void free_rows(struct rows *all)
{
	for (size_t i = 0; i < all->ids.n; i++) {
		free_parts(&all->list[i].owners);
		free_parts(&all->list[i].waiters);
		free_parts(&all->list[i].wakers);
	}
	idmap_free(&all->ids);
	free(all->list);
}

/* What follows the last + of the lock's name; 0: nothing. */
static uint64_t offset_in(const struct lock *l)
{
	const char *plus = l->name ? strrchr(l->name, '+') : NULL;

	return plus ? strtoull(plus + 1, NULL, 16) : 0;
}

/* Where a futex is in its lock. A variable that begins behind that is not the lock's. */
static uint32_t inside_of(const struct lock *l, const struct lock_kind *kind)
{
	uint32_t inside = !kind->inside ? 0 : l->addr % 8 ? 12 : 8;

	return l->name && offset_in(l) < inside ? 0 : inside;
}

/* Several futexes of a lock are one row. */
static int row_of(struct rows *all, const struct lock_wait *w, const struct lock_kind *kind,
		  struct row **ret)
{
	const struct lock *l = &all->r->blocks->locks->list[w->lock];
	uint32_t id, inside = inside_of(l, kind);
	size_t before = all->ids.n;

	if (vec_reserve(&all->list, &all->cap, before + 1, sizeof(*all->list)) ||
	    idmap_get(&all->ids, l->addr - inside,
		      (uint64_t)l->pid << 32 | (uint32_t)(uintptr_t)kind, &id))
		return -ENOMEM;
	*ret = &all->list[id];
	if (id == before)
		**ret = (struct row){ .lock = l, .kind = kind, .inside = inside };
	return 0;
}

/* Adds the owner if the thread that may be it really is, which the kind of lock tells. */
static int add_owner(struct rows *all, struct row *row, const struct lock_wait *w)
{
	const struct lock_owner *o = &all->r->blocks->locks->owners[w->owner];

	if (w->how != SF_OWNER_UNKNOWN && row->kind->owners >> w->how & 1 && o->id)
		return add_part(&row->owners, o->id, o->id, o->comm, &w->sums);
	lock_sums_add(&row->unknown, &w->sums);
	return 0;
}

/* Stacks that look the same are one. */
static int add_stack(const struct out_report *r, struct parts *parts, struct profile *p,
		     uint32_t at, const struct lock_sums *sums)
{
	struct profile_stack s;
	uint64_t look;
	int err = out_blocks_look(r, p, at, &look);

	profile_stack(p, at, &s);
	return err ? err : add_part(parts, look ^ s.pid, at, NULL, sums);
}

static int add_wait(struct rows *all, const struct lock_wait *w)
{
	const struct out_report *r = all->r;
	const uint32_t *ids = profile_symbols(r->profile, w->stack, r->symbols);
	int note = out_wait_note(r, w->stack), err;
	const struct lock_kind *kind;
	const struct lock *lock;
	struct profile_stack s;
	struct row *row;
	uint32_t user;

	if (!ids || note < 0)
		return -ENOMEM;
	profile_stack(r->profile, w->stack, &s);
	lock = &r->blocks->locks->list[w->lock];
	kind = lock->kind == SF_LOCK_FUTEX
		       ? lock_kind_of(&s, ids, r->symbols, &user)
		       : lock_kind_of_kernel(lock->kind, &s, ids, r->symbols, &user);
	err = row_of(all, w, kind, &row);
	if (err)
		return err;
	lock_sums_add(&row->sums, &w->sums);
	row->idle_ns += wait_note_is_idle((enum wait_note)note) ? w->sums.ns : 0;
	row->comm = row->lock->pid ? s.process : "";
	if (user != SYM_UNKNOWN && w->sums.ns >= row->user_ns) {
		row->user = user;
		row->user_ns = w->sums.ns;
	}
	err = add_stack(r, &row->waiters, r->profile, w->stack, &w->sums);
	if (!err && s.waker && r->wakers)
		err = add_stack(r, &row->wakers, r->wakers, s.waker - 1, &w->sums);
	return err ? err : add_owner(all, row, w);
}

static int longer_part(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	return x->sums.ns != y->sums.ns ? (x->sums.ns < y->sums.ns ? 1 : -1)
					: (x->at > y->at) - (x->at < y->at);
}

static uint64_t busy_ns(const struct row *r)
{
	return r->sums.ns - r->idle_ns;
}

static int longer_row(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (busy_ns(x) != busy_ns(y))
		return busy_ns(x) < busy_ns(y) ? 1 : -1;
	return (x->lock->addr > y->lock->addr) - (x->lock->addr < y->lock->addr);
}

static void sort_parts(struct parts *p)
{
	if (p->ids.n)
		qsort(p->list, p->ids.n, sizeof(*p->list), longer_part);
}

/* All rows, sorted; the caller frees them, also after an error. */
static int make_rows(const struct out_report *r, struct rows *ret)
{
	const struct locks *l = r->blocks->locks;
	int err = 0;

	*ret = (struct rows){ .r = r };
	for (size_t i = 0; i < l->wait_ids.n && !err; i++)
		err = add_wait(ret, &l->waits[i]);
	if (err || !ret->ids.n)
		return err;
	qsort(ret->list, ret->ids.n, sizeof(*ret->list), longer_row);
	for (size_t i = 0; i < ret->ids.n; i++) {
		sort_parts(&ret->list[i].owners);
		sort_parts(&ret->list[i].waiters);
		sort_parts(&ret->list[i].wakers);
	}
	return 0;
}

/* "cache_lock", "[in handle_order]" or "[lock]" */
static void name_of(const struct rows *all, const struct row *row, char *ret, size_t cap)
{
	uint64_t offset = offset_in(row->lock);

	if (row->lock->name && offset && row->inside)
		snprintf(ret, cap, offset > row->inside ? "%.*s+0x%" PRIx64 "%s" : "%.*s",
			 (int)(strrchr(row->lock->name, '+') - row->lock->name), row->lock->name,
			 offset - row->inside, *row->lock->name == '[' ? "]" : "");
	else if (row->lock->name)
		snprintf(ret, cap, "%s", row->lock->name);
	else if (row->user_ns)
		snprintf(ret, cap, "[in %s]", symbolizer_function(all->r->symbols, row->user));
	else
		snprintf(ret, cap, "[lock]");
}

static void clean_comm(char ret[4 * SF_COMM], const char *comm)
{
	text_clean(ret, 4 * SF_COMM, comm, strnlen(comm, SF_COMM), 0);
}

/* ---- Text ---- */

static double share(const struct lock_sums *part, const struct row *row)
{
	return row->sums.ns ? 100 * (double)part->ns / (double)row->sums.ns : 0;
}

static void put_owners(const struct row *row, FILE *f)
{
	char comm[4 * SF_COMM];

	fputs("  owner:", f);
	for (size_t i = 0; i < row->owners.ids.n && i < OWNERS_SHOWN; i++) {
		const struct part *p = &row->owners.list[i];

		clean_comm(comm, p->comm);
		fprintf(f, "%s %s%s%" PRIu32 "%s %.0f %%", i ? "," : "", comm, *comm ? " (" : "",
			p->at, *comm ? ")" : "", share(&p->sums, row));
	}
	if (row->owners.ids.n > OWNERS_SHOWN)
		fprintf(f, ", and %zu more", row->owners.ids.n - OWNERS_SHOWN);
	if (row->unknown.count || row->unknown.ns)
		fprintf(f, "%s unknown %.0f %%", row->owners.ids.n ? "," : "",
			share(&row->unknown, row));
	fputc('\n', f);
}

static int put_stacks(const struct rows *all, const struct row *row, const struct parts *parts,
		      struct profile *p, const char *what, FILE *f)
{
	struct out_report r = *all->r;
	char comm[4 * SF_COMM];
	struct profile_stack s;
	int err = 0;

	/* All futexes have the same functions of the kernel. */
	r.opts.user_only |= row->lock->pid != 0;
	for (size_t i = 0; i < parts->ids.n && i < STACKS_SHOWN && !err; i++) {
		profile_stack(p, parts->list[i].at, &s);
		clean_comm(comm, s.comm);
		fprintf(f, "  %s %s (%" PRIu32 "), %.0f %%:\n", what, comm, s.pid,
			share(&parts->list[i].sums, row));
		err = out_blocks_frames(&r, p, parts->list[i].at, f);
	}
	return err;
}

static int put_row(const struct rows *all, const struct row *row, FILE *f)
{
	char name[SYM_NAME_MAX + 8], comm[4 * SF_COMM], of[6 * SF_COMM] = "", sum[OUT_TIME],
							       average[OUT_TIME], most[OUT_TIME];
	uint64_t count = row->sums.count ? row->sums.count : 1;
	int err;

	name_of(all, row, name, sizeof(name));
	clean_comm(comm, row->comm);
	if (row->lock->pid)
		snprintf(of, sizeof(of), " of %s (%" PRIu32 ")", comm, row->lock->pid);
	fprintf(f,
		"\n%s  %s at 0x%" PRIx64 "%s: %s in %" PRIu64
		" wait%s, %s on average, %s at most\n",
		name, row->kind->name, row->lock->addr - row->inside, of,
		out_table_time(sum, row->sums.ns / 1000), row->sums.count,
		row->sums.count == 1 ? "" : "s",
		out_table_time(average, row->sums.ns / 1000 / count),
		out_table_time(most, row->sums.max_ns / 1000));
	if (row->kind->owners)
		put_owners(row, f);
	err = put_stacks(all, row, &row->waiters, all->r->profile, "waited for by", f);
	if (!err && all->r->wakers)
		err = put_stacks(all, row, &row->wakers, all->r->wakers,
				 row->kind->owners ? "given up by" : "woken by", f);
	return err;
}

int out_locks_text(const struct out_report *r, FILE *f)
{
	char idle[OUT_TIME];
	uint64_t idle_ns = 0;
	struct rows all;
	size_t shown = 0;
	int err = make_rows(r, &all);

	for (size_t i = 0; i < all.ids.n; i++)
		idle_ns += all.list[i].idle_ns;
	fputs("\nLocks with the longest waits", f);
	if (idle_ns)
		fprintf(f, ", without %s of idle threads, which wait for work",
			out_table_time(idle, idle_ns / 1000));
	fputs(":\n", f);
	for (size_t i = 0; i < all.ids.n && shown < ROWS_SHOWN && !err; i++) {
		if (!busy_ns(&all.list[i]))
			break;
		err = put_row(&all, &all.list[i], f);
		shown++;
	}
	if (!err && !shown)
		fputs("  none\n", f);
	if (r->blocks->locks->left_out)
		fprintf(f, "  %" PRIu64 " waits are left out: there was no room for them\n",
			r->blocks->locks->left_out);
	free_rows(&all);
	return err;
}

/* ---- JSON ---- */

static void json_owners(struct json *j, const struct row *row)
{
	char comm[4 * SF_COMM];

	json_array(j, "owners");
	for (size_t i = 0; i < row->owners.ids.n; i++) {
		const struct part *p = &row->owners.list[i];

		clean_comm(comm, p->comm);
		json_object(j, NULL);
		json_u64(j, "tid", p->at);
		json_str(j, "comm", comm);
		json_u64(j, "waits", p->sums.count);
		json_u64(j, "wait_us", p->sums.ns / 1000);
		json_object_end(j);
	}
	json_array_end(j);
	json_u64(j, "owner_unknown_waits", row->unknown.count);
	json_u64(j, "owner_unknown_us", row->unknown.ns / 1000);
}

static int json_stacks(struct json *j, const struct rows *all, const struct parts *parts,
		       struct profile *p, const char *key)
{
	json_array(j, key);
	for (size_t i = 0; i < parts->ids.n && i < STACKS_LISTED; i++) {
		const uint32_t *ids = profile_symbols(p, parts->list[i].at, all->r->symbols);
		char comm[4 * SF_COMM];
		struct profile_stack s;

		if (!ids)
			return -ENOMEM;
		profile_stack(p, parts->list[i].at, &s);
		clean_comm(comm, s.comm);
		json_object(j, NULL);
		json_str(j, "comm", comm);
		json_u64(j, "pid", s.pid);
		json_u64(j, "wait_us", parts->list[i].sums.ns / 1000);
		json_array(j, "frames");
		for (size_t k = s.n_user; k > 0 && !all->r->opts.kernel_only; k--)
			json_str(j, NULL, symbolizer_name(all->r->symbols, ids[k - 1]));
		for (size_t k = s.n_kernel; k > 0 && !all->r->opts.user_only; k--)
			json_str(j, NULL, symbolizer_name(all->r->symbols, ids[s.n_user + k - 1]));
		json_array_end(j);
		json_object_end(j);
	}
	json_array_end(j);
	return 0;
}

static int json_row(struct json *j, const struct rows *all, const struct row *row)
{
	char name[SYM_NAME_MAX + 8], comm[4 * SF_COMM], address[24];
	int err;

	name_of(all, row, name, sizeof(name));
	clean_comm(comm, row->comm);
	snprintf(address, sizeof(address), "0x%" PRIx64, row->lock->addr - row->inside);
	json_newline(j);
	json_object(j, NULL);
	json_str(j, "name", name);
	json_str(j, "address", address);
	json_str(j, "kind", row->kind->name);
	json_u64(j, "pid", row->lock->pid);
	json_str(j, "comm", comm);
	json_u64(j, "waits", row->sums.count);
	json_u64(j, "wait_us", row->sums.ns / 1000);
	json_u64(j, "max_us", row->sums.max_ns / 1000);
	json_u64(j, "idle_us", row->idle_ns / 1000);
	json_owners(j, row);
	err = json_stacks(j, all, &row->waiters, all->r->profile, "waiters");
	if (!err && all->r->wakers)
		err = json_stacks(j, all, &row->wakers, all->r->wakers, "wakers");
	json_object_end(j);
	return err;
}

int out_locks_json(const struct out_report *r, FILE *f)
{
	struct json j = json_on(f);
	struct rows all;
	int err = make_rows(r, &all);

	json_object(&j, NULL);
	json_u64(&j, "schema", 1);
	json_str(&j, "event", r->meta->event);
	json_double(&j, "duration_s", r->stats->duration_s, 3);
	json_array(&j, "locks");
	for (size_t i = 0; i < all.ids.n && !err; i++)
		err = json_row(&j, &all, &all.list[i]);
	json_array_end(&j);
	json_u64(&j, "left_out_waits", r->blocks->locks->left_out);
	json_object_end(&j);
	json_newline(&j);
	free_rows(&all);
	return err;
}
