/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/spool_account.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/spool_file.h"

#define FILE_NAME "account"
/* Changes with the layout: a page with another value is cleared */
#define MAGIC	  0x3174636363614673ull

_Static_assert(SPOOL_OUTCOMES <= 16, "outcomes fit the page");

/*
 * Orders the stores: after a kill, a step that is marked as begun has all its values. The processor
 * keeps the order of a thread's own stores; this keeps the compiler from changing it.
 */
static void flag(uint64_t *at, uint64_t value)
{
	__atomic_store_n(at, value, __ATOMIC_SEQ_CST);
}

static struct spool_count plus(struct spool_count c, uint64_t entries, uint64_t samples)
{
	return (struct spool_count){ c.entries + entries, c.samples + samples };
}

/* Completes steps that a crash interrupted. */
static void recover(struct account_page *p, int dir)
{
	if (p->in.on) {
		if (spool_file_exists(dir, p->in.seq))
			p->added = p->in.after;
		flag(&p->in.on, 0);
	}
	if (p->out.on) {
		spool_file_remove(dir, p->out.seq);
		if (p->out.outcome < SPOOL_OUTCOMES)
			p->done[p->out.outcome] = p->out.after;
		flag(&p->out.on, 0);
	}
}

int account_open(struct account *a, int dir)
{
	struct stat st;
	int fd, err = 0;

	account_close(a);
	if (dir < 0) {
		a->page = calloc(1, sizeof(*a->page));
		if (a->page)
			a->page->next_seq = 1;
		return a->page ? 0 : -ENOMEM;
	}
	fd = openat(dir, FILE_NAME, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	/* Allocates the blocks now: otherwise a full disk would cause SIGBUS later. */
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) ||
	    (st.st_size < (off_t)sizeof(*a->page) && posix_fallocate(fd, 0, sizeof(*a->page))))
		err = -ENOSPC;
	if (!err) {
		a->page = mmap(NULL, sizeof(*a->page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		a->mapped = a->page != MAP_FAILED;
		if (!a->mapped) {
			a->page = NULL;
			err = -errno;
		}
	}
	close(fd);
	if (err)
		return err;
	if (a->page->magic != MAGIC) {
		memset(a->page, 0, sizeof(*a->page));
		a->page->next_seq = 1;
		flag(&a->page->magic, MAGIC);
	}
	recover(a->page, dir);
	a->was_sending = a->page->sending;
	return 0;
}

void account_close(struct account *a)
{
	if (a->mapped)
		munmap(a->page, sizeof(*a->page));
	else
		free(a->page);
	*a = (struct account){ 0 };
}

void account_resume(struct account *a, const struct spool_count *held, uint64_t damaged,
		    uint64_t last_seq)
{
	struct account_page *p = a->page;
	struct spool_count there = *held;

	p->done[SPOOL_DAMAGED].entries += damaged;
	for (int i = 0; i < SPOOL_OUTCOMES; i++)
		there = plus(there, p->done[i].entries, p->done[i].samples);
	if (there.entries < p->added.entries)
		p->done[SPOOL_CRASHED].entries += p->added.entries - there.entries;
	else
		/* A power failure lost the last seconds of the account */
		p->added.entries = there.entries;
	if (there.samples < p->added.samples)
		p->done[SPOOL_CRASHED].samples += p->added.samples - there.samples;
	else
		p->added.samples = there.samples;
	if (p->next_seq <= last_seq)
		p->next_seq = last_seq + 1;
}

uint64_t account_next(struct account *a, uint64_t samples)
{
	struct account_page *p = a->page;

	p->in.seq = p->next_seq++;
	p->in.after = plus(p->added, 1, samples);
	flag(&p->in.on, 1);
	return p->in.seq;
}

void account_added(struct account *a, bool ok)
{
	if (ok)
		a->page->added = a->page->in.after;
	flag(&a->page->in.on, 0);
}

void account_add(struct account *a, uint64_t samples)
{
	a->page->added = plus(a->page->added, 1, samples);
}

void account_begin(struct account *a, uint64_t seq, enum spool_outcome outcome, uint64_t samples)
{
	struct account_page *p = a->page;

	p->out.seq = seq;
	p->out.outcome = outcome;
	p->out.after = plus(p->done[outcome], 1, samples);
	flag(&p->out.on, 1);
}

void account_end(struct account *a)
{
	a->page->done[a->page->out.outcome] = a->page->out.after;
	flag(&a->page->out.on, 0);
}

void account_sending(struct account *a, uint64_t seq)
{
	flag(&a->page->sending, seq);
	if (!seq)
		a->was_sending = 0;
}

bool account_was_sending(const struct account *a, uint64_t seq)
{
	return seq && a->was_sending == seq;
}

void account_get(const struct account *a, struct spool_count *added,
		 struct spool_count done[SPOOL_OUTCOMES])
{
	*added = a->page->added;
	memcpy(done, a->page->done, SPOOL_OUTCOMES * sizeof(*done));
}

int account_give(int dir, uid_t uid, gid_t gid)
{
	return fchownat(dir, FILE_NAME, uid, gid, AT_SYMLINK_NOFOLLOW) ? -errno : 0;
}
