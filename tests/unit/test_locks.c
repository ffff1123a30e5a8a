/* SPDX-License-Identifier: BSD-2-Clause */
/* Sums of waits for locks, their names, and threads by the id that a process knows. */
#include "prof/locks.h"

#include <fcntl.h>
#include <link.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/num.h"
#include "prof/thread_look.h"
#include "symtab/elf_data.h"
#include "test.h"

#define ADDR 0x7f0000001000ull

static void add(struct locks *l, uint32_t pid, uint64_t addr, uint32_t owner, enum sf_owner how,
		uint64_t ns)
{
	struct sf_off_lock lock = {
		.addr = addr,
		.owner = owner,
		.how = (uint16_t)how,
		.kind = how == SF_OWNER_KERNEL ? SF_LOCK_MUTEX : SF_LOCK_FUTEX,
	};

	locks_add(l, pid, 1, &lock, &(struct lock_sums){ 1, ns, ns });
}

TEST(sums_by_lock_and_owner)
{
	struct locks l = { .left_out = 0 };

	add(&l, 10, ADDR, 11, SF_OWNER_FIELD, 100);
	add(&l, 10, ADDR, 11, SF_OWNER_FIELD, 50);
	add(&l, 10, ADDR, 12, SF_OWNER_FIELD, 7);
	add(&l, 20, ADDR, 11, SF_OWNER_FIELD, 1);
	add(&l, 10, ADDR, 0, SF_OWNER_UNKNOWN, 3);
	EXPECT_EQ(l.lock_ids.n, 2);
	EXPECT_EQ(l.owner_ids.n, 3); /* thread 11 of process 20 is another one */
	EXPECT_EQ(l.wait_ids.n, 4);
	EXPECT_EQ(l.waits[0].sums.count, 2);
	EXPECT_EQ(l.waits[0].sums.ns, 150);
	EXPECT_EQ(l.waits[0].sums.max_ns, 100);
	EXPECT_EQ(l.list[1].pid, 20);
	EXPECT_EQ(l.left_out, 0);
	locks_free(&l);
}

TEST(locks_of_the_kernel_have_no_process)
{
	struct locks l = { .left_out = 0 };

	add(&l, 10, 0xffffffff82001000ull, 11, SF_OWNER_KERNEL, 1);
	add(&l, 20, 0xffffffff82001000ull, 11, SF_OWNER_KERNEL, 1);
	EXPECT_EQ(l.lock_ids.n, 1);
	EXPECT_EQ(l.owner_ids.n, 1);
	EXPECT_EQ(l.list[0].pid, 0);
	EXPECT_EQ(l.owners[0].pid, 0);
	locks_free(&l);
}

/* The first answer comes later, the second lock has no name. */
static int name_of(void *ctx, const struct lock *l, char *ret, size_t cap)
{
	int *calls = ctx;

	if ((*calls)++ == 0)
		return -EAGAIN;
	snprintf(ret, cap, "cache_lock");
	return l->addr == ADDR ? 0 : -ENOENT;
}

TEST(names_that_come_later)
{
	struct locks l = { .left_out = 0 };
	int calls = 0;

	add(&l, 10, ADDR, 0, SF_OWNER_UNKNOWN, 1);
	add(&l, 10, ADDR + 64, 0, SF_OWNER_UNKNOWN, 1);
	locks_look(&l, name_of, &calls, NUM_S);
	EXPECT(!l.list[0].name && l.list[1].looked); /* the second one does not wait for it */
	locks_look(&l, name_of, &calls, NUM_S);
	locks_look(&l, name_of, &calls, NUM_S);
	EXPECT_EQ(calls, 3);
	EXPECT_STR(l.list[0].name, "cache_lock");
	EXPECT(!l.list[1].name);
	locks_free(&l);
}

TEST(threads_by_their_ids)
{
	uint32_t self = (uint32_t)syscall(SYS_gettid), pid = (uint32_t)getpid();
	char comm[SF_COMM];

	prctl(PR_SET_NAME, "look at me");
	EXPECT_EQ(thread_look(pid, self, comm), self);
	EXPECT_STR(comm, "look at me");
	EXPECT_EQ(thread_look(0, self, comm), self);
	EXPECT_STR(comm, "look at me");
	EXPECT_EQ(thread_look(0, 0x3ffffffe, comm), 0x3ffffffe);
	EXPECT_STR(comm, "");
}

static volatile int locks_of_the_test[16];

struct place { /* a mapping of this program's code: the address, and where it begins in the file */
	uint64_t start, offset;
};

/* The first object is the program itself. */
static int find_code(struct dl_phdr_info *info, size_t size, void *place)
{
	struct place *ret = place;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_LOAD && p->p_flags & PF_X) {
			ret->start = (info->dlpi_addr + p->p_vaddr) & ~4095ull;
			ret->offset = p->p_offset & ~4095ull;
		}
	}
	return 1;
}

TEST(names_of_variables)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	uint64_t at = (uintptr_t)&locks_of_the_test;
	struct place code = { 0 };
	struct elf_image img;
	char name[256] = "";

	EXPECT(fd >= 0 && !elf_image_open_fd(&img, fd, NULL));
	dl_iterate_phdr(find_code, &code);
	EXPECT(code.start && code.start < at);
	EXPECT(!elf_data_name(&img, code.offset, at - code.start, name, sizeof(name)));
	EXPECT_STR(name, "locks_of_the_test");
	EXPECT(!elf_data_name(&img, code.offset, at + 8 - code.start, name, sizeof(name)));
	EXPECT_STR(name, "locks_of_the_test+0x8");
	/* Not in the file, and not a mapping of code */
	EXPECT_EQ(elf_data_name(&img, code.offset, 1ull << 40, name, sizeof(name)), -ENOENT);
	EXPECT_EQ(elf_data_name(&img, 1ull << 40, 0, name, sizeof(name)), -ENOENT);
	elf_image_close(&img);
	close(fd);
}
