/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The process that reads files for names: it makes the same tables, has no rights, and whatever one
 * does that was broken into harms nothing else.
 */
#include "symtab/elf_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/full_io.h"
#include "elf_reader.h"
#include "files.h"
#include "proc_status.h"
#include "symtab/elf_symtab.h"
#include "symtab/sym_names.h"
#include "test.h"
#include "worker/fork_server.h"
#include "worker/jail.h"

static int own_file(void)
{
	return open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
}

static struct symtab *table_here(int fd)
{
	struct symtab *t = NULL;
	struct elf_image img;

	EXPECT_EQ(elf_image_open_fd(&img, fd, NULL), 0);
	EXPECT_EQ(symtab_build(&img, NULL, UINT32_MAX, &t), 0);
	elf_image_close(&img);
	return t;
}

/* Small tables bring their names, large ones' are asked for: both are those that the file has. */
static void same_names(const char *path)
{
	struct test_reader reader = open_reader(elf_worker_main);
	char want[SYMTAB_NAME_MAX], shown[SYM_NAME_MAX], got[SYM_NAME_MAX];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct symtab *a = table_here(fd), *b = NULL;
	struct symtab_hit x, y;
	uint32_t step;

	EXPECT_EQ(elf_reader_symbols(reader.r, fd, -1, &b), 0);
	if (a && b) {
		EXPECT(a->n == b->n && a->n > 0);
		step = b->n < 20000 ? 1 : 97;
		for (uint32_t i = 0; symtab_at(a, i, &x) && symtab_at(b, i, &y); i++) {
			int err;

			/* All that are in the table, as marked ones are, and some of the others */
			if (i % step && symtab_name(b, &y, got, sizeof(got)) <= 0)
				continue;
			err = elf_reader_name(reader.r, fd, 1, b, &y, got, sizeof(got));
			bool named = symtab_name(a, &x, want, sizeof(want)) > 0;

			sym_demangle(want, shown, sizeof(shown));
			EXPECT_EQ(err, named ? 0 : -ENOENT);
			EXPECT(x.start == y.start && x.size == y.size && x.plt == y.plt);
			if (named)
				EXPECT_STR(got, shown);
		}
		printf("# %s: %u functions, names %s\n", path, a->n,
		       step == 1 ? "along" : "asked for");
	}
	symtab_free(a);
	symtab_free(b);
	close(fd);
	close_reader(&reader);
}

TEST(reader_names_as_in_process)
{
	glob_t large;

	same_names("/proc/self/exe");
	if (glob("/usr/lib/*/libLLVM*.so.*", 0, NULL, &large))
		return;
	same_names(large.gl_pathv[0]);
	globfree(&large);
}

/* A table whose names are asked for one by one, with versions and other names with an @. */
TEST_IN_DIR(reader_names_with_versions)
{
	struct test_reader reader = open_reader(elf_worker_main);
	FILE *to = fopen(in_dir("v.s"), "w");
	char name[SYM_NAME_MAX];
	struct symtab *t = NULL;
	struct symtab_hit hit;
	int fd, versioned = 0, whole = 0;

	for (int i = 0; to && i < 8000; i++) {
		fprintf(to, ".type \"own_%d@of_a_language_that_has_long_names\", @function\n", i);
		fprintf(to, "\"own_%d@of_a_language_that_has_long_names\": nop\n", i);
		fprintf(to, ".size \"own_%d@of_a_language_that_has_long_names\", 1\n", i);
		fprintf(to, ".type f_%d, @function\n f_%d: nop\n .size f_%d, 1\n", i, i, i);
		fprintf(to, ".symver f_%d, a_long_name_too_which_has_a_version_%d@V1\n", i, i);
	}
	if (to)
		fclose(to);
	write_file("v.map", "V1 { a_*; };\n");
	if (!run("gcc -shared -nostdlib -Wl,--version-script=v.map -o v.so v.s"))
		SKIP("no gcc");
	fd = open(in_dir("v.so"), O_RDONLY | O_CLOEXEC);
	EXPECT_EQ(elf_reader_symbols(reader.r, fd, -1, &t), 0);
	EXPECT(t && !t->names);
	for (uint32_t i = 0; t && symtab_at(t, i, &hit); i += 7) {
		EXPECT_EQ(elf_reader_name(reader.r, fd, 1, t, &hit, name, sizeof(name)), 0);
		EXPECT(!strchr(name, '@') || strstr(name, "@of_a_language_that_has_long_names"));
		whole += strchr(name, '@') != NULL;
		versioned += strstr(name, "a_long_name_too") != NULL;
	}
	EXPECT(whole > 500 && versioned > 500);
	symtab_free(t);
	close(fd);
	close_reader(&reader);
}

TEST(reader_has_no_rights)
{
	struct test_reader reader = open_reader(elf_worker_main);
	struct elf_facts facts;
	int fd = own_file();
	pid_t pid;

	EXPECT_EQ(elf_reader_facts(reader.r, fd, &facts), 0);
	EXPECT(facts.symtab && facts.ncode && facts.machine);
	pid = child_of(fork_server_pid(reader.server));
	EXPECT(pid > 0);
	for (const char *const *f = (const char *const[]){ "CapInh", "CapPrm", "CapEff", "CapBnd",
							   "CapAmb", NULL };
	     *f; f++)
		EXPECT(status_has(pid, *f, "0000000000000000") || geteuid());
	EXPECT(status_has(pid, "NoNewPrivs", "1"));
#ifndef __SANITIZE_ADDRESS__
	EXPECT(status_has(pid, "Seccomp", jail_can_filter() ? "2" : "0"));
#endif
	/* One that was killed meanwhile is replaced. */
	kill(pid, SIGKILL);
	EXPECT_EQ(elf_reader_facts(reader.r, fd, &facts), 0);
	close_reader(&reader);
	EXPECT(kill(pid, 0) && errno == ESRCH);
	close(fd);
}

/* Without a reader, no file is asked about. */
TEST(reader_none)
{
	struct elf_facts facts;
	struct symtab *t;

	EXPECT_EQ(elf_reader_facts(NULL, 0, &facts), -ENOENT);
	EXPECT_EQ(elf_reader_symbols(NULL, 0, -1, &t), -ENOENT);
}

/* ---- Children that were broken into ---- */

static void take_ask(int sock, struct elf_ask *ask)
{
	int fds[2];

	if (fork_receive_most(sock, ask, offsetof(struct elf_ask, raw), sizeof(*ask), fds, 2, 0))
		_exit(0);
	close(fds[0]);
	close(fds[1]);
}

static void dies(int sock, int mem)
{
	struct elf_ask ask;

	(void)mem;
	take_ask(sock, &ask);
	raise(SIGKILL);
}

static void hangs(int sock, int mem)
{
	struct elf_ask ask;

	(void)mem;
	take_ask(sock, &ask);
	for (;;)
		pause();
}

static void answers_another(int sock, int mem)
{
	static struct elf_answer a;
	struct elf_ask ask;

	(void)mem;
	for (;;) {
		take_ask(sock, &ask);
		a.question = ask.question + 1;
		fork_send(sock, &a, sizeof(a), NULL, 0, 0);
	}
}

static void answers_short(int sock, int mem)
{
	struct elf_ask ask;

	(void)mem;
	take_ask(sock, &ask);
	fork_send(sock, "x", 1, NULL, 0, 0);
	pause();
}

/* No string ends, no number fits. */
static void answers_ones(int sock, int mem)
{
	static struct elf_answer a;
	struct elf_ask ask;

	(void)mem;
	for (;;) {
		take_ask(sock, &ask);
		memset(&a, 0xff, sizeof(a));
		a.question = ask.question;
		a.err = 0;
		fork_send(sock, &a, sizeof(a), NULL, 0, 0);
	}
}

static void claims_a_table(int sock, int mem)
{
	static struct elf_answer a;
	struct elf_ask ask;

	(void)mem;
	for (;;) {
		take_ask(sock, &ask);
		a = (struct elf_answer){ .question = ask.question, .n = 100, .names_len = 100 };
		fork_send(sock, &a, sizeof(a), NULL, 0, 0); /* and the memory is empty */
	}
}

TEST(reader_survives_its_child)
{
	static const fork_child_fn bad[] = { dies, answers_another, answers_short, answers_ones,
					     claims_a_table };
	int fd = own_file();

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct test_reader reader = open_reader(bad[i]);
		struct symtab *t = NULL;
		struct worker_totals *totals = &reader.allowance->totals;

		EXPECT_EQ(elf_reader_symbols(reader.r, fd, -1, &t), -ECHILD);
		EXPECT(!t);
		EXPECT(totals->died >= 1 && totals->failed == 1 && !totals->late);
		close_reader(&reader);
	}
	for (size_t i = 0; i < 4; i++) {
		struct test_reader reader = open_reader(bad[i]);
		static struct elf_facts facts;

		EXPECT_EQ(elf_reader_facts(reader.r, fd, &facts), -ECHILD);
		close_reader(&reader);
	}
	close(fd);
}

/* What hangs is ended, and soon not begun any more, until time has passed. */
TEST(reader_puts_off_what_takes_long)
{
	struct test_reader reader = open_reader(hangs);
	int fd = own_file(), err = 0, tries = 0;
	uint64_t start = clock_ns(CLOCK_MONOTONIC);
	struct worker_totals *totals = &reader.allowance->totals;
	struct elf_facts facts;

	while (tries < 10 && (err = elf_reader_facts(reader.r, fd, &facts)) != -EAGAIN)
		tries++;
	EXPECT_EQ(err, -EAGAIN);
	EXPECT(tries >= 1 && totals->late == (uint64_t)tries + !totals->deferred && !totals->died);
	while (elf_reader_facts(reader.r, fd, &facts) == -EAGAIN && !totals->deferred)
		;
	EXPECT(clock_ns(CLOCK_MONOTONIC) - start < 8000000000ull);
	EXPECT(totals->deferred >= 1);
	/* At the end there is no later. */
	allowance_end(reader.allowance);
	EXPECT_EQ(elf_reader_facts(reader.r, fd, &facts), -ETIMEDOUT);
	close_reader(&reader);
	close(fd);
}

/* ---- Tables that lie ---- */

static uint32_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(*state >> 33);
}

/* Whatever was taken can be asked anything. */
static void use_table(const struct symtab *t)
{
	static char buf[SYMTAB_NAME_MAX];
	struct symtab_hit hit;
	uint64_t off;
	uint32_t len;
	bool debug;

	for (uint32_t i = 0; symtab_at(t, i, &hit); i++) {
		EXPECT(symtab_name(t, &hit, buf, i % 7 ? sizeof(buf) : 2) < (int)sizeof(buf));
		symtab_find(t, hit.start, &hit);
		if (symtab_name_place(t, &hit, &off, &len, &debug))
			EXPECT(len < SYMTAB_NAME_MAX);
	}
	symtab_find(t, UINT64_MAX, &hit);
}

static int read_back(const uint8_t *bytes, size_t len, const struct symtab *head)
{
	int mem = memfd_create("table", MFD_CLOEXEC), err;
	struct symtab *t = NULL;

	EXPECT_EQ(write_full(mem, bytes, len), 0);
	err = symtab_read(mem, head, &t);
	EXPECT(!err == (t != NULL));
	if (t)
		use_table(t);
	symtab_free(t);
	close(mem);
	return err;
}

static void mutate(const struct symtab *good)
{
	size_t syms = good->n * sizeof(*good->syms), len = syms + good->names_len;
	uint8_t *bytes = malloc(len), *copy = malloc(len);
	unsigned int refused = 0;
	uint64_t state = 42;

	memcpy(bytes, good->syms, syms);
	memcpy(bytes + syms, good->names ? good->names : "", good->names_len);
	EXPECT_EQ(read_back(bytes, len, good), 0);
	for (int i = 0; i < 3000; i++) {
		struct symtab head = *good;
		uint32_t *const heads[] = { &head.n, &head.names_len, (uint32_t *)&head.str[0].size,
					    (uint32_t *)&head.str[1].size };

		memcpy(copy, bytes, len);
		for (uint32_t k = 0; k < 1 + next_random(&state) % 4; k++)
			copy[next_random(&state) % len] ^= (uint8_t)(1u << next_random(&state) % 8);
		if (i % 4 == 0)
			*heads[next_random(&state) % 4] = next_random(&state) >>
							  next_random(&state) % 32;
		refused += read_back(copy, i % 16 == 15 ? next_random(&state) % len : len, &head) !=
			   0;
	}
	printf("# %u of 3,000 damaged tables refused\n", refused);
	EXPECT(refused > 300);
	free(bytes);
	free(copy);
}

static void refuse(struct symtab head, const struct symtab_sym *syms, const char *names)
{
	uint8_t bytes[256];
	size_t len = head.n * sizeof(*syms);

	memcpy(bytes, syms, len);
	memcpy(bytes + len, names, head.names_len);
	EXPECT_EQ(read_back(bytes, len + head.names_len, &head), -EBADMSG);
}

TEST(table_is_checked)
{
	struct symtab_sym two[2] = { { 16, 8, 1 }, { 32, 8, 3 } };
	const struct symtab head = { .n = 2, .names_len = 5 },
			    bare = { .n = 2, .str = { { 0, 4 }, { 0, 0 } } };
	struct symtab large = head;

	refuse(head, two, "\0a\0bc"); /* the last name does not end */
	refuse(head, two, "xa\0b\0"); /* the first one is not "" */
	two[1].off = 16;
	refuse(head, two, "\0a\0b\0"); /* twice the same place */
	two[1].off = 8;
	refuse(head, two, "\0a\0b\0"); /* not sorted */
	two[1].off = 1ull << 40;
	refuse(head, two, "\0a\0b\0"); /* no frame has that offset */
	two[1] = (struct symtab_sym){ 32, 8, 5 };
	refuse(head, two, "\0a\0b\0"); /* a name beyond the end */
	two[1].name = 4;
	refuse(bare, two, ""); /* the same, in the file */
	two[1].name = 1 | NAME_DYNSTR;
	refuse(bare, two, ""); /* in a string table that is not there */
	large.n = UINT32_MAX;
	refuse((struct symtab){ .n = 2, .names_len = 6 }, two, "\0a\0b\0\1");
	EXPECT_EQ(read_back((const uint8_t *)two, sizeof(two), &large), -EBADMSG);
}

TEST(table_survives_mutation)
{
	struct symtab *good, bare;
	int fd = own_file();

	good = table_here(fd);
	if (good) {
		good->n = good->n < 200 ? good->n : 200;
		mutate(good);
		bare = *good;
		bare.names = NULL;
		bare.names_len = 0;
		for (uint32_t i = 0; i < bare.n; i++)
			bare.syms[i].name %= bare.str[0].size;
		mutate(&bare);
	}
	symtab_free(good);
	close(fd);
}
