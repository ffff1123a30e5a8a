/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Call frame information in whole files: this program itself, files from the assembler, and damaged
 * copies.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "readers/eh_frame.h"
#include "test.h"

struct table { /* all rows of a file */
	struct rowbuf rows;
	struct fntab fns; /* ref: index of the first row */
	uint64_t malformed;
	bool debug_frame;
	int found;
};

static void *read_file(const char *path, size_t *ret_size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	char *p = NULL;

	*ret_size = 0;
	if (fd >= 0 && fstat(fd, &st) == 0 && (p = malloc((size_t)st.st_size + 1)))
		*ret_size = read(fd, p, (size_t)st.st_size) == st.st_size ? (size_t)st.st_size : 0;
	if (fd >= 0)
		close(fd);
	return p;
}

static void free_table(struct table *t)
{
	rowbuf_free(&t->rows);
	fntab_free(&t->fns);
}

static struct table table_of_image(const struct elf_image *img, struct diag *diag)
{
	struct table t = { .found = -1 };
	struct elf_blob blob = { 0 };
	struct eh_frame e;

	t.found = eh_frame_find(img, &blob, &t.debug_frame, diag);
	if (t.found)
		return t;
	EXPECT_EQ(eh_frame_open(&e, blob.view, blob.addr, t.debug_frame,
				row_arch_of_machine(img->machine), img, diag),
		  0);
	for (size_t i = 0; i < e.fns.n; i++) {
		const struct fn *fn = &e.fns.fns[i];
		uint64_t at = fn->start;

		fntab_push(&t.fns, fn->start, fn->end, t.rows.n);
		EXPECT_EQ(eh_frame_rows(&e, fn, &t.rows, diag), 0);
		for (size_t k = t.fns.fns[i].ref; k < t.rows.n; k++) {
			const struct row *r = &t.rows.rows[k];

			EXPECT(r->start < r->end && r->end <= fn->end &&
			       (r->start == at || r->plt_at));
			at = r->end;
		}
	}
	eh_frame_close(&e);
	elf_blob_free(&blob);
	return t;
}

static struct table table_of(const void *mem, size_t size)
{
	struct diag diag = { 0 };
	struct elf_image img;
	struct table t = { .found = -ENOEXEC };

	if (elf_image_open_mem(&img, mem, size, &diag))
		return t;
	t = table_of_image(&img, &diag);
	t.malformed = diag.malformed;
	elf_image_close(&img);
	return t;
}

/* Rows of the functions that both tables have. */
static size_t common_rows(const struct table *a, const struct table *b)
{
	size_t n = 0;

	for (size_t i = 0, k = 0; i < a->fns.n; i++) {
		size_t an, bn;
		bool same;

		while (k < b->fns.n && b->fns.fns[k].start < a->fns.fns[i].start)
			k++;
		if (k == b->fns.n || b->fns.fns[k].start != a->fns.fns[i].start)
			continue;
		an = (i + 1 < a->fns.n ? a->fns.fns[i + 1].ref : a->rows.n) - a->fns.fns[i].ref;
		bn = (k + 1 < b->fns.n ? b->fns.fns[k + 1].ref : b->rows.n) - b->fns.fns[k].ref;
		same = an == bn;
		for (size_t r = 0; same && r < an; r++)
			same = row_same_rules(&a->rows.rows[a->fns.fns[i].ref + r],
					      &b->rows.rows[b->fns.fns[k].ref + r]);
		n += same ? an : 0;
	}
	return n;
}

static size_t section_offset(const void *mem, size_t size, const char *name, size_t *ret_size)
{
	struct elf_image img;
	const struct elf_shdr *s;
	size_t off = 0;

	if (elf_image_open_mem(&img, mem, size, NULL))
		return 0;
	s = elf_image_section(&img, name);
	if (s) {
		off = s->offset;
		*ret_size = s->size;
	}
	elf_image_close(&img);
	return off;
}

TEST(eh_find_by_section_and_by_segment)
{
	size_t size;
	uint8_t *mem = read_file("/proc/self/exe", &size);
	struct table by_section = table_of(mem, size), by_segment, by_file = { .found = -1 };
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct elf_image img;

	EXPECT_EQ(by_section.found, 0);
	EXPECT_EQ(by_section.malformed, 0);
	EXPECT(by_section.fns.n > 20 && by_section.rows.n > by_section.fns.n);
	if (!elf_image_open_fd(&img, fd, NULL))
		by_file = table_of_image(&img, NULL);
	EXPECT_EQ(common_rows(&by_section, &by_file), by_section.rows.n);
	elf_image_close(&img);
	close(fd);
	/* e_shoff, e_shnum, e_shstrndx */
	memset(mem + 40, 0, 8);
	memset(mem + 60, 0, 4);
	by_segment = table_of(mem, size);
	EXPECT_EQ(by_segment.found, 0);
	EXPECT_EQ(by_segment.malformed, 0);
	EXPECT_EQ(by_segment.rows.n, by_section.rows.n);
	EXPECT_EQ(common_rows(&by_section, &by_segment), by_section.rows.n);
	free_table(&by_section);
	free_table(&by_segment);
	free_table(&by_file);
	free(mem);
}

/* The n-th record that is an FDE: its offset in the section. */
static size_t nth_fde(const uint8_t *sec, size_t size, unsigned int n)
{
	for (size_t at = 0; at + 8 <= size;) {
		uint32_t len, id;

		memcpy(&len, sec + at, 4);
		memcpy(&id, sec + at + 4, 4);
		if (len == 0 || (id && n-- == 0))
			return at;
		at += 4 + len;
	}
	return 0;
}

TEST(eh_wrong_length_costs_one_function)
{
	static const uint32_t lengths[] = { 0, 1, 4, 0x7fffffff, 0xfffffff0, 0xffffffff };
	size_t size, sec_size = 0, off;
	uint8_t *mem = read_file("/proc/self/exe", &size);
	struct table sound = table_of(mem, size);

	off = section_offset(mem, size, ".eh_frame", &sec_size);
	for (unsigned int k = 0; k < 40; k++) {
		size_t at = off + nth_fde(mem + off, sec_size, k * 7 % (unsigned int)sound.fns.n);
		uint32_t was, now;
		struct table t;
		size_t lost;

		memcpy(&was, mem + at, 4);
		now = k % 8 < 6 ? lengths[k % 8] : was + 8 * (k % 8 - 5);
		memcpy(mem + at, &now, 4);
		t = table_of(mem, size);
		memcpy(mem + at, &was, 4);
		/*
		 * A length of 0 may be an input's terminator: what it hides can lead back into the
		 * chain by chance, as the PLT's FDE does.
		 */
		EXPECT(t.fns.n >= sound.fns.n - 1 && (t.malformed > 0 || !now));
		/*
		 * No function has more than 60 rows here but the PLT, so what is lost is one
		 * function's rows.
		 */
		lost = sound.rows.n - common_rows(&sound, &t);
		EXPECT(lost < 200);
		free_table(&t);
	}
	free_table(&sound);
	free(mem);
}

/* ---- files from the assembler ---- */

static char dir[] = "/tmp/sfbpf-test-eh-XXXXXX";

/* Assembles and links text; further commands see $D/x. False: the tools are not there. */
static bool build(const char *text, const char *more)
{
	char cmd[1024], path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/x.s", dir);
	f = fopen(path, "w");
	if (!f)
		return false;
	fputs(text, f);
	fclose(f);
	snprintf(cmd, sizeof(cmd),
		 "D=%s; exec 2>$D/log; as --64 -o $D/x.o $D/x.s && ld -e 0 -o $D/x $D/x.o%s%s", dir,
		 *more ? " && " : "", more);
	return system(cmd) == 0;
}

static bool is_compressed(const void *mem, size_t size)
{
	struct elf_image img;
	const struct elf_shdr *s;
	bool yes;

	if (elf_image_open_mem(&img, mem, size, NULL))
		return false;
	s = elf_image_section(&img, ".debug_frame");
	yes = (s && (s->flags & SHF_COMPRESSED)) || elf_image_section(&img, ".zdebug_frame");
	elf_image_close(&img);
	return yes;
}

static struct table built_table(bool compressed)
{
	char path[128];
	size_t size;
	void *mem;
	struct table t;

	snprintf(path, sizeof(path), "%s/x", dir);
	mem = read_file(path, &size);
	t = table_of(mem, size);
	EXPECT_EQ(is_compressed(mem, size), compressed);
	free(mem);
	return t;
}

static void cleanup(void)
{
	char cmd[64];

	snprintf(cmd, sizeof(cmd), "rm -rf %s", dir);
	if (system(cmd) != 0)
		printf("  %s is left behind\n", dir);
}

static const char two_functions[] =
	".text\n"
	"f: .cfi_startproc\n push %rbp\n .cfi_def_cfa_offset 16\n .cfi_offset %rbp, -16\n"
	" mov %rsp, %rbp\n .cfi_def_cfa_register %rbp\n"
	" leave\n .cfi_def_cfa %rsp, 8\n .cfi_restore %rbp\n ret\n .cfi_endproc\n"
	"g: .cfi_startproc\n .cfi_signal_frame\n .cfi_undefined %rip\n .cfi_remember_state\n"
	" .cfi_adjust_cfa_offset 48\n nop\n"
	" .cfi_restore_state\n nop\n .cfi_escape 0x0f,3,0x76,0x58,6\n nop\n"
	" .rept 300\n .cfi_escape 0\n .endr\n .cfi_endproc\n"; /* makes it worth compressing */

static void check_two_functions(const struct table *t)
{
	const struct row *r = t->rows.rows;

	EXPECT_EQ(t->found, 0);
	EXPECT_EQ(t->malformed, 0);
	EXPECT_EQ(t->fns.n, 2);
	EXPECT_EQ(t->rows.n, 7);
	if (t->rows.n != 7)
		return;
	EXPECT(r[0].cfa.reg == 7 && r[0].cfa.off == 8 && r[0].fp.kind == RULE_SAME);
	EXPECT(r[1].cfa.reg == 7 && r[1].cfa.off == 16 && r[1].fp.kind == RULE_CFA_MEM &&
	       r[1].fp.off == -16);
	EXPECT(r[2].cfa.reg == 6 && r[2].cfa.off == 16 && r[2].ra.kind == RULE_CFA_MEM &&
	       r[2].ra.off == -8);
	EXPECT(r[3].cfa.reg == 7 && r[3].cfa.off == 8 && r[3].fp.kind == RULE_SAME &&
	       r[3].flags == 0);
	EXPECT(r[4].cfa.off == 56 && r[4].ra.kind == RULE_UNDEF && r[4].flags == ROW_SIGNAL);
	EXPECT(r[5].cfa.off == 8 && r[6].cfa.kind == RULE_REG_MEM && r[6].cfa.reg == 6 &&
	       r[6].cfa.off == -40);
}

TEST(eh_assembled)
{
	static const struct {
		const char *sections, *more;
		bool debug_frame;
	} forms[] = {
		{ "", "", false },
		{ ".cfi_sections .debug_frame\n", "", true },
		{ ".cfi_sections .eh_frame, .debug_frame\n", "", false },
		{ ".cfi_sections .debug_frame\n",
		  "objcopy --compress-debug-sections=zlib-gabi $D/x", true },
		{ ".cfi_sections .debug_frame\n", "objcopy --compress-debug-sections=zlib-gnu $D/x",
		  true },
		/* the terminator alone is not yet a table */
		{ ".cfi_sections .debug_frame\n .section .eh_frame,\"a\",@progbits\n .long 0\n", "",
		  true },
	};

	if (!mkdtemp(dir))
		SKIP("no directory for files");
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		char source[2048];
		struct table t;

		snprintf(source, sizeof(source), "%s%s", forms[i].sections, two_functions);
		if (!build(source, forms[i].more)) {
			cleanup();
			SKIP("as, ld or objcopy is missing");
		}
		t = built_table(strstr(forms[i].more, "compress") != NULL);
		EXPECT_EQ(t.debug_frame, forms[i].debug_frame);
		check_two_functions(&t);
		free_table(&t);
	}
	if (build(two_functions, "objcopy --only-keep-debug $D/x $D/y && mv $D/y $D/x")) {
		struct table t = built_table(false);

		EXPECT_EQ(t.found, -ENOENT);
		EXPECT_EQ(t.malformed, 0);
		free_table(&t);
	}
	cleanup();
}

/* ---- damage ---- */

static uint32_t rnd_state = 12345;

static uint32_t rnd(void)
{
	rnd_state = rnd_state * 1664525 + 1013904223;
	return rnd_state >> 8;
}

/*
 * Small tables survive many mutations in the time that this test has; a program's own begins with
 * PLT and start-up code.
 */
TEST(eh_mutated_section)
{
	size_t size, sec_size = 0, off, len;
	uint8_t *mem = read_file("/proc/self/exe", &size), *copy;
	struct rowbuf rows = { 0 };

	off = section_offset(mem, size, ".eh_frame", &sec_size);
	len = sec_size < 2048 ? sec_size : 2048;
	copy = malloc(len);
	for (unsigned int round = 0; round < 4000; round++) {
		enum row_arch arch = ROW_ARCH_X86_64 + round % 3;
		struct eh_frame e;

		memcpy(copy, mem + off, len);
		for (unsigned int n = 1 + rnd() % 6; n; n--)
			copy[rnd() % len] = (uint8_t)(rnd() % 3 ? rnd() : rnd() % 0x30);
		EXPECT_EQ(eh_frame_open(&e, bytes_of(copy, len - rnd() % 64, rnd() % 16 == 0),
					0x5000, rnd() % 8 == 0, arch, NULL, NULL),
			  0);
		for (size_t i = 0; i < e.fns.n; i++) {
			rows.n = 0;
			EXPECT_EQ(eh_frame_rows(&e, &e.fns.fns[i], &rows, NULL), 0);
			for (size_t k = 0; k < rows.n; k++)
				EXPECT(rows.rows[k].start < rows.rows[k].end &&
				       rows.rows[k].end <= e.fns.fns[i].end);
		}
		eh_frame_close(&e);
	}
	rowbuf_free(&rows);
	free(copy);
	free(mem);
}

TEST(eh_mutated_file)
{
	size_t size, hdr_size = 0, sec_size = 0, hdr, off;
	uint8_t *mem = read_file("/proc/self/exe", &size);

	hdr = section_offset(mem, size, ".eh_frame_hdr", &hdr_size);
	off = section_offset(mem, size, ".eh_frame", &sec_size);
	for (unsigned int round = 0; round < 60; round++) {
		size_t at[4];
		uint8_t was[4];
		struct table t;

		for (int i = 0; i < 4; i++) {
			at[i] = i == 0	 ? hdr + rnd() % hdr_size
				: i == 1 ? hdr + rnd() % 12
					 : off + rnd() % sec_size;
			was[i] = mem[at[i]];
			mem[at[i]] = (uint8_t)rnd();
		}
		t = table_of(mem, size);
		for (int i = 3; i >= 0; i--)
			mem[at[i]] = was[i];
		free_table(&t);
	}
	free(mem);
}
