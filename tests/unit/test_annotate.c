/* SPDX-License-Identifier: BSD-2-Clause */
/* The instructions of a function, and the samples at each of them. */
#include "symtab/elf_code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "screens.h"
#include "symtab/elf_steps.h"

/* Whether this build has a disassembler for its own code. */
static bool can_decode(void)
{
	static const uint8_t ret[] = { 0xc3 };
	struct elf_instruction i;
	uint32_t n;

	elf_code_decode(ret, 1, 0, &i, &n);
#ifdef __x86_64__
	return n == 1;
#else
	return false;
#endif
}

TEST(decodes)
{
	/* push %rbp; an address within the code; no instruction; a cut one */
	static const uint8_t code[] = { 0x55, 0xeb, 0x01, 0x06, 0xe8 };
	struct elf_instruction v[sizeof(code)];
	uint32_t n;

	if (!can_decode())
		SKIP("no disassembler");
	elf_code_decode(code, sizeof(code), 0x1000, v, &n);
	EXPECT_EQ(n, 4);
	EXPECT_STR(v[0].text, "push %rbp");
	EXPECT_EQ(v[1].at, 1);
	EXPECT_EQ(v[1].len, 2);
	EXPECT(strstr(v[1].text, " 0x1004"));
	EXPECT_STR(v[2].text, "(bad)");
	EXPECT_STR(v[3].text, "(bad)");
	EXPECT(elf_code_sound(v, n, sizeof(code)));
}

/* An image of machine code alone. */
static struct elf_image code_image(const uint8_t *code, size_t size)
{
	struct elf_image img = { .fd = memfd_create("code", 0),
				 .size = size,
				 .machine = EM_X86_64 };

	EXPECT_EQ(pwrite(img.fd, code, size, 0), size);
	return img;
}

TEST(finds_blocks)
{
	/* xor; a loop: inc, cmp, jne to inc; ret; nop; half an instruction */
	static const uint8_t code[] = { 0x31, 0xc0, 0xff, 0xc0, 0x83, 0xf8,
					0x0a, 0x75, 0xf9, 0xc3, 0x90, 0xe8 };
	static const uint32_t want[] = { ELF_STEP(0, 1), ELF_STEP(2, 1), ELF_STEP(4, 0),
					 ELF_STEP(7, 0), ELF_STEP(9, 1), ELF_STEP(10, 1),
					 ELF_STEP(11, 0) };
	struct elf_code what = { .addr = 0x1000, .size = sizeof(code) };
	struct elf_image img = code_image(code, sizeof(code));
	uint32_t *v = NULL, n = 0;
	int err = elf_steps_read(&img, &what, &v, &n);

	if (!can_decode())
		SKIP("no disassembler");
	EXPECT_EQ(err, 0);
	EXPECT_EQ(n, sizeof(want) / sizeof(want[0]));
	EXPECT(n == sizeof(want) / sizeof(want[0]) && !memcmp(v, want, sizeof(want)));
	EXPECT(elf_steps_sound(v, n, sizeof(code)));
	EXPECT(!elf_steps_sound(v, n, 11)); /* the last one is outside */
	EXPECT(!elf_steps_sound(v + 1, n - 1, sizeof(code)));
	EXPECT(!elf_steps_sound(v, 0, sizeof(code)));
	free(v);
	what.off = 1;
	EXPECT_EQ(elf_steps_read(&img, &what, &v, &n), -ENOENT);
	what.size = 0;
	EXPECT_EQ(elf_steps_read(&img, &what, &v, &n), -ENOENT);
	close(img.fd);
}

TEST(unsound_answers)
{
	struct elf_instruction v[] = { { 0, 1, "nop" }, { 1, 2, "jmp" } };

	EXPECT(elf_code_sound(v, 2, 3));
	EXPECT(!elf_code_sound(v, 2, 4)); /* does not reach the end */
	EXPECT(!elf_code_sound(v, 2, 2)); /* goes beyond it */
	v[1].at = 2;
	EXPECT(!elf_code_sound(v, 2, 4)); /* a gap */
	v[1].at = 1;
	v[0].len = 0;
	EXPECT(!elf_code_sound(v, 2, 3));
	v[0].len = 1;
	v[0].text[0] = 27; /* an escape sequence */
	EXPECT(!elf_code_sound(v, 2, 3));
	memset(v[0].text, 'x', sizeof(v[0].text)); /* without an end */
	EXPECT(!elf_code_sound(v, 2, 3));
}

TEST(file_limits)
{
	struct elf_code what = { .off = 1ull << 40, .size = 16 };
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct elf_instruction *v = NULL;
	struct test_reader reader;
	uint32_t n;

	if (!can_decode())
		SKIP("no disassembler");
	reader = open_reader(elf_worker_main);
	EXPECT_EQ(elf_reader_code(reader.r, fd, &what, &v, &n), -ENOENT);
	what.off = ~0ull - 4;
	EXPECT_EQ(elf_reader_code(reader.r, fd, &what, &v, &n), -ENOENT);
	what = (struct elf_code){ .size = ELF_CODE_MOST + 1 };
	EXPECT_EQ(elf_reader_code(reader.r, fd, &what, &v, &n), -ENOENT);
	what.size = ELF_CODE_MOST;
	EXPECT_EQ(elf_reader_code(reader.r, fd, &what, &v, &n), 0);
	EXPECT(n > 0 && n <= ELF_CODE_MOST);
	free(v);
	close(fd);
	close_reader(&reader);
}

#ifdef __x86_64__
__attribute__((naked, noinline, used)) static int hot_loop(int x __attribute__((unused)))
{
	__asm__("xor %eax,%eax\n1: inc %eax\ncmp $9,%eax\njne 1b\nret");
}

/* The line of the page with its address and what follows. */
static void expect_line(struct fixture *f, int y, const char *share, uint32_t at, const char *text)
{
	char want[128], addr[32];

	snprintf(addr, sizeof(addr), "%llx", (unsigned long long)(f->ui.annotate.fn.addr + at));
	snprintf(want, sizeof(want), "%7s%12s  %s", share, addr, text);
	EXPECT_STR(line(f, y), want);
}

static void add_at(struct fixture *f, uint32_t offset, int count)
{
	const struct made m = { 400,   "hot", count, SF_STOP_COMPLETE,
				false, 1,     0,     { at(hot_loop) + offset } };

	add(f->profile, &m);
}

/* hot_loop: 6 samples at `inc`, 90 at `cmp`, 4 at `jne`, of 200. */
static void open_page(struct fixture *f)
{
	set_up(f, 80, 10);
	add_at(f, 2, 6);
	add_at(f, 4, 90);
	add_at(f, 7, 4);
	EXPECT_EQ(ui_refresh(&f->ui, f->profile, &f->sum), 0);
	press(f, 'g'); /* the hottest function */
	press(f, 'a');
	EXPECT(f->ui.annotate.open);
}

TEST(screen)
{
	struct fixture f;

	if (!can_decode())
		SKIP("no disassembler");
	open_page(&f);
	EXPECT_STR(line(&f, 0), "hot_loop  demo");
	EXPECT_STR(line(&f, 1), "100 samples in it, 50.0% of all");
	EXPECT_STR(line(&f, 2), "  SELF%     ADDRESS  INSTRUCTION");
	expect_line(&f, 3, "", 0, "xor %eax, %eax");
	expect_line(&f, 4, "6.0", 2, "inc %eax");
	expect_line(&f, 5, "90.0", 4, "cmp $0x9, %eax");
	EXPECT(strncmp(line(&f, 6), "    4.0", 7) == 0 && strstr(f.line, "jnz "));
	expect_line(&f, 7, "", 9, "ret");
	EXPECT_STR(line(&f, 9), "n p Next, previous hot  H Hottest  Z Pause  Esc Back");
	EXPECT_EQ(f.ui.annotate.cursor, 2);
	tear_down(&f);
}

TEST(keys)
{
	struct fixture f;

	if (!can_decode())
		SKIP("no disassembler");
	open_page(&f);
	press(&f, 'n');
	EXPECT_EQ(f.ui.annotate.cursor, 1);
	press(&f, 'n');
	EXPECT_EQ(f.ui.annotate.cursor, 3);
	press(&f, 'n'); /* around */
	EXPECT_EQ(f.ui.annotate.cursor, 2);
	press(&f, 'p');
	EXPECT_EQ(f.ui.annotate.cursor, 3);
	press(&f, 'p');
	EXPECT_EQ(f.ui.annotate.cursor, 1);
	press(&f, K_UP);
	press(&f, K_UP);
	EXPECT_EQ(f.ui.annotate.cursor, 0);
	press(&f, K_PAGE_DOWN);
	EXPECT_EQ(f.ui.annotate.cursor, f.ui.annotate.fn.n - 1);
	press(&f, 'H');
	EXPECT_EQ(f.ui.annotate.cursor, 2);
	press(&f, KEY_ESCAPE);
	EXPECT(!f.ui.annotate.open && f.ui.view == VIEW_FUNCTIONS);
	tear_down(&f);
}

/* New samples are counted while the page is open; the cursor follows the hottest instruction. */
TEST(live)
{
	struct fixture f;

	if (!can_decode())
		SKIP("no disassembler");
	open_page(&f);
	add_at(&f, 2, 300);
	EXPECT_EQ(ui_refresh(&f.ui, f.profile, &f.sum), 0);
	draw(&f);
	EXPECT_STR(line(&f, 1), "400 samples in it, 80.0% of all");
	expect_line(&f, 4, "76.5", 2, "inc %eax");
	EXPECT_EQ(f.ui.annotate.cursor, 1);
	tear_down(&f);
}
#endif

TEST(without_code)
{
	struct fixture f;

	set_up(&f, 80, 24);
	press(&f, 'j');
	press(&f, 'j'); /* vfs_read_[k] */
	press(&f, 'a');
	EXPECT(!f.ui.annotate.open);
	EXPECT(shows(&f, "no instructions of vfs_read_[k]: its code is not in a file"));
	press(&f, '3');
	press(&f, 'g'); /* a process */
	press(&f, 'a');
	EXPECT(shows(&f, "annotate needs a function"));
	tear_down(&f);
}
