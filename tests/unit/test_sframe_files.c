/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The SFrame reader on files: what Debian's assembler makes, ELF images with and without section
 * headers, and the fixtures (SFBPF_FIXTURES, by default ../shared/fixtures), whose dumps by GNU
 * objdump are the expectation.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sframe_case.h"

struct file {
	int fd;
	struct elf_image img;
	struct elf_blob blob;
	struct sframe s;
	struct diag diag;
};

/* 0 or the error of the step that failed. Close in either case. */
static int file_open(struct file *f, const char *path)
{
	struct sframe_bounds b;
	int err;

	memset(f, 0, sizeof(*f));
	f->fd = open(path, O_RDONLY);
	if (f->fd < 0)
		return -errno;
	err = elf_image_open_fd(&f->img, f->fd, &f->diag);
	if (err)
		return err;
	err = sframe_find(&f->img, &f->blob, &f->diag);
	if (err)
		return err;
	b.phdrs = f->img.phdrs;
	b.nphdrs = f->img.nphdrs;
	return sframe_open(&f->s, f->blob.view, f->blob.addr, row_arch_of_machine(f->img.machine),
			   &b, &f->diag);
}

static void file_close(struct file *f)
{
	sframe_close(&f->s);
	elf_blob_free(&f->blob);
	elf_image_close(&f->img);
	if (f->fd >= 0)
		close(f->fd);
}

/* Version 1, from the assembler at hand. */
static const char assembly[] = "	.text\n"
			       "f:	.cfi_startproc\n"
			       "	pushq %rbp\n"
			       "	.cfi_def_cfa_offset 16\n"
			       "	.cfi_offset 6, -16\n"
			       "	movq %rsp, %rbp\n"
			       "	.cfi_def_cfa_register 6\n"
			       "	.fill 300, 1, 0x90\n"
			       "	popq %rbp\n"
			       "	.cfi_def_cfa 7, 8\n"
			       "	ret\n"
			       "	.cfi_endproc\n"
			       "g:	.cfi_startproc\n"
			       "	subq $3000, %rsp\n"
			       "	.cfi_def_cfa_offset 3008\n"
			       "	addq $3000, %rsp\n"
			       "	.cfi_def_cfa_offset 8\n"
			       "	ret\n"
			       "	.cfi_endproc\n";

TEST(sframe_assembled)
{
	char path[] = "/tmp/sfbpf-test-XXXXXX", command[128];
	struct sframe_text got = { 0 };
	struct file f;
	FILE *as;
	int fd = mkstemp(path), status, err;

	if (fd < 0)
		SKIP("no temporary file");
	close(fd);
	snprintf(command, sizeof(command), "as --64 --gsframe -o %s - 2>/dev/null", path);
	as = popen(command, "w");
	if (as)
		fputs(assembly, as);
	status = as ? pclose(as) : -1;
	err = status ? 0 : file_open(&f, path);
	unlink(path);
	if (status)
		SKIP("the assembler has no --gsframe");
	EXPECT_EQ(err, 0);
	if (!err && f.s.ntables == 1 && f.s.fns.n == 2) {
		const struct fn *fns = f.s.fns.fns;
		struct rowbuf rows = { 0 };

		for (int i = 0; i < 2; i++) {
			rows.n = 0;
			EXPECT_EQ(sframe_rows(&f.s, &fns[i], &rows, &f.diag), 0);
			for (size_t k = 0; k < rows.n; k++)
				sframe_text_row(&got, ROW_ARCH_X86_64, &rows.rows[k], fns[i].start);
		}
		/* DWARF says it too: popq does not bring back "rbp is where it was". */
		EXPECT_STR(got.buf, "0-1 cfa=rsp+8 ra=*(cfa-8) fp=same\n"
				    "1-4 cfa=rsp+16 ra=*(cfa-8) fp=*(cfa-16)\n"
				    "4-131 cfa=rbp+16 ra=*(cfa-8) fp=*(cfa-16)\n"
				    "131-132 cfa=rsp+8 ra=*(cfa-8) fp=*(cfa-16)\n"
				    "0-7 cfa=rsp+8 ra=*(cfa-8) fp=same\n"
				    "7-e cfa=rsp+3008 ra=*(cfa-8) fp=same\n"
				    "e-f cfa=rsp+8 ra=*(cfa-8) fp=same\n");
		EXPECT_EQ(f.diag.malformed, 0);
		rowbuf_free(&rows);
	} else if (!err) {
		EXPECT_EQ(f.s.fns.n, 2);
		EXPECT_EQ(f.s.ntables, 1);
	}
	sframe_text_free(&got);
	file_close(&f);
}

/*
 * A small ELF file around the section that `enc` holds: code at CODE, the section at SECTION,
 * PT_GNU_SFRAME with `extra` bytes too many, section headers or not.
 */
struct elf_file {
	Elf64_Ehdr eh;
	Elf64_Phdr ph[3];
	Elf64_Shdr sh[3];
	char names[32];
	uint8_t sec[1024];
};

static void elf_make(struct elf_file *e, size_t extra, bool sections)
{
	const size_t at = offsetof(struct elf_file, sec);

	memset(e, 0, sizeof(*e));
	memcpy(e->eh.e_ident, ELFMAG "\2\1\1", 7);
	e->eh.e_type = ET_DYN;
	e->eh.e_machine = EM_X86_64;
	e->eh.e_phoff = offsetof(struct elf_file, ph);
	e->eh.e_phentsize = sizeof(e->ph[0]);
	e->eh.e_phnum = 3;
	e->ph[0] = (Elf64_Phdr){ PT_LOAD, PF_R | PF_X, 0, CODE, CODE, sizeof(*e), 0x8000, 0x1000 };
	e->ph[1] = (Elf64_Phdr){ PT_LOAD, PF_R, at, SECTION, SECTION, enc.len, enc.len, 0x1000 };
	e->ph[2] = (Elf64_Phdr){ PT_GNU_SFRAME,	  PF_R, at, SECTION, SECTION, enc.len + extra,
				 enc.len + extra, 8 };
	memcpy(e->names, "\0.sframe\0.shstrtab", 19);
	if (sections) {
		e->eh.e_shoff = offsetof(struct elf_file, sh);
		e->eh.e_shentsize = sizeof(e->sh[0]);
		e->eh.e_shnum = 3;
		e->eh.e_shstrndx = 2;
		e->sh[1] = (Elf64_Shdr){ 1, SHT_PROGBITS, SHF_ALLOC, SECTION, at, enc.len, 0, 0, 8,
					 0 };
		e->sh[2] = (Elf64_Shdr){ 9,  SHT_STRTAB, 0, 0, offsetof(struct elf_file, names),
					 19, 0,		 0, 1, 0 };
	}
	memcpy(e->sec, enc.buf, enc.len);
}

static int elf_find(const struct elf_file *e, size_t size, struct elf_blob *blob)
{
	struct elf_image img;
	int err;

	memset(&diag, 0, sizeof(diag));
	memset(blob, 0, sizeof(*blob));
	err = elf_image_open_mem(&img, e, size, &diag);
	if (!err)
		err = sframe_find(&img, blob, &diag);
	elf_image_close(&img);
	return err;
}

static void build_two(void)
{
	start(2, SENC_AMD64, good_flags(2));
	plain_fn(CODE, 0x10);
	plain_fn(CODE + 0x10, 0x10);
	senc_end(&enc);
}

TEST(sframe_find_section)
{
	struct elf_file e;
	struct elf_blob blob;

	build_two();
	elf_make(&e, 0, true);
	EXPECT_EQ(elf_find(&e, sizeof(e), &blob), 0);
	EXPECT_EQ(blob.view.len, enc.len);
	EXPECT_EQ(blob.addr, SECTION);
	expect_clean();
	/* by type, if the name is another */
	e.names[1] = '!';
	e.sh[1].sh_type = SHT_GNU_SFRAME;
	e.ph[2].p_type = PT_NULL;
	EXPECT_EQ(elf_find(&e, sizeof(e), &blob), 0);
	EXPECT_EQ(blob.view.len, enc.len);
	/* GNU ld: the program header has the size of the unmerged input */
	elf_make(&e, 100, true);
	EXPECT_EQ(elf_find(&e, sizeof(e), &blob), 0);
	EXPECT_EQ(blob.view.len, enc.len);
	expect_note(DIAG_REPAIRED, "PT_GNU_SFRAME is 100 bytes longer than the section");
	/* a file of debug information, an empty section, nothing at all */
	e.sh[1].sh_type = SHT_NOBITS;
	EXPECT_EQ(elf_find(&e, sizeof(e), &blob), -ENOENT);
	elf_make(&e, 0, true);
	e.sh[1].sh_size = 0;
	EXPECT_EQ(elf_find(&e, sizeof(e), &blob), -ENOENT);
	elf_make(&e, 0, false);
	e.ph[2].p_type = PT_NULL;
	EXPECT_EQ(elf_find(&e, sizeof(e), &blob), -ENOENT);
	EXPECT_EQ(diag.malformed, 0);
	/* a section that is not in the file: the program header is next */
	elf_make(&e, 0, true);
	e.sh[1].sh_offset = 1 << 20;
	EXPECT_EQ(elf_find(&e, sizeof(e), &blob), 0);
	EXPECT_EQ(blob.view.len, enc.len);
	expect_note(DIAG_MALFORMED, "outside the file");
	done();
}

TEST(sframe_find_segment)
{
	struct elf_file e;
	struct elf_blob blob;

	build_two();
	elf_make(&e, 0, false);
	EXPECT_EQ(elf_find(&e, sizeof(e), &blob), 0);
	EXPECT_EQ(blob.view.len, enc.len);
	EXPECT_EQ(blob.addr, SECTION);
	expect_note(DIAG_REPAIRED, "found by PT_GNU_SFRAME");
	EXPECT_EQ(diag.repaired, 1);
	/* raw remains of inputs after the tables */
	elf_make(&e, 50, false);
	memset(e.sec + enc.len, 0x5a, 50);
	EXPECT_EQ(elf_find(&e, sizeof(e), &blob), 0);
	EXPECT_EQ(blob.view.len, enc.len);
	expect_note(DIAG_REPAIRED, "50 bytes longer than the tables");
	/* too long for the file even */
	elf_make(&e, 1 << 20, false);
	EXPECT_EQ(elf_find(&e, sizeof(e), &blob), 0);
	EXPECT_EQ(blob.view.len, enc.len);
	EXPECT_EQ(diag.malformed, 0);
	e.ph[2].p_offset = 1 << 20;
	EXPECT_EQ(elf_find(&e, sizeof(e), &blob), -ENOENT);
	EXPECT_EQ(diag.malformed, 1);
	/* a damaged table is for sframe_open to judge */
	elf_make(&e, 0, false);
	e.sec[8] = 0xff;
	EXPECT_EQ(elf_find(&e, sizeof(e), &blob), 0);
	EXPECT_EQ(blob.view.len, enc.len);
	done();
}

/*
 * Dumps by GNU objdump. Columns: row start, CFA, FP, RA; `u` no rule, `f` fixed, `U` padding or no
 * rule, `c-16` at CFA - 16, `r17` or `r17+0` in a register, `(fp-40)` loaded from there, `[s]`
 * signed.
 */
struct dump {
	struct file *f;
	enum row_arch arch;
	bool relocatable;
	size_t functions, rows; /* compared */
	/* the function at hand */
	const struct fn *fn;
	uint64_t pc, size;
	bool signal, repeats;
	struct rowbuf got;
	size_t at;
};

static const char *default_ra(enum row_arch arch)
{
	return arch == ROW_ARCH_X86_64 ? "*(cfa-8)" : arch == ROW_ARCH_AARCH64 ? "x30+0" : "r14+0";
}

/* sp+8, fp-40, r17, r17+0, c-16 */
static void dump_plain(char *out, size_t cap, enum row_arch arch, const char *cell)
{
	const struct row_regs *regs = row_arch_regs(arch);
	unsigned int reg = 0;
	int off = 0;

	if (cell[0] == 'c') {
		snprintf(out, cap, "*(cfa%s)", cell + 1);
		return;
	}
	if (cell[0] == 'r')
		sscanf(cell + 1, "%u%d", &reg, &off);
	else
		sscanf(cell + 2, "%d", &off);
	if (cell[0] != 'r')
		reg = cell[0] == 's' ? regs->sp : regs->fp;
	snprintf(out, cap, "%s%+d", reg < regs->nnames ? regs->names[reg] : "?", off);
}

static void dump_cell(char *out, size_t cap, enum row_arch arch, const char *cell,
		      const char *absent)
{
	char inner[32], plain[40];

	if (strcmp(cell, "u") == 0 || strcmp(cell, "U") == 0 || strcmp(cell, "f") == 0) {
		snprintf(out, cap, "%s", absent);
	} else if (cell[0] == '(') {
		snprintf(inner, sizeof(inner), "%s", cell + 1);
		inner[strcspn(inner, ")")] = 0;
		dump_plain(plain, sizeof(plain), arch, inner);
		snprintf(out, cap, "*(%s)", plain);
	} else {
		dump_plain(out, cap, arch, cell);
	}
}

/* The rules of a dump's row as sframe_text_row would print them. */
static void dump_rules(const struct dump *d, const char *cells, char *want, size_t cap)
{
	char cfa_cell[32], fp_cell[32], ra_cell[32], cfa[64], fp[64], ra[64], *mark;

	if (strncmp(cells, "RA undefined", 12) == 0) {
		snprintf(want, cap, "cfa=? ra=undef fp=?%s", d->signal ? " signal" : "");
		return;
	}
	if (sscanf(cells, "%31s %31s %31s", cfa_cell, fp_cell, ra_cell) != 3) {
		snprintf(want, cap, "(unreadable: %s)", cells);
		return;
	}
	mark = strstr(ra_cell, "[s]");
	if (mark)
		*mark = 0;
	dump_cell(cfa, sizeof(cfa), d->arch, cfa_cell, "?");
	dump_cell(fp, sizeof(fp), d->arch, fp_cell, "same");
	dump_cell(ra, sizeof(ra), d->arch, ra_cell, default_ra(d->arch));
	/* .plt.got, which GNU ld gets wrong. */
	if (d->repeats && d->got.n == 1 && strcmp(cfa, "rsp+16") == 0)
		snprintf(cfa, sizeof(cfa), "rsp+8");
	snprintf(want, cap, "cfa=%s ra=%s fp=%s%s%s", cfa, ra, fp, d->signal ? " signal" : "",
		 mark ? " pac" : "");
}

static void dump_row(struct dump *d, const char *line)
{
	char rules[320], want[400], *cells;
	uint64_t at = strtoull(line, &cells, 16);
	struct sframe_text got = { 0 };
	const struct row *r;

	if (!d->fn)
		return;
	cells += strspn(cells, " ");
	if (!d->repeats && at - d->pc >= d->size) /* a dead row */
		return;
	EXPECT(d->at < d->got.n);
	if (d->at >= d->got.n)
		return;
	r = &d->got.rows[d->at++];
	dump_rules(d, cells, rules, sizeof(rules));
	sframe_text_row(&got, d->arch, r, d->fn->start);
	got.buf[got.len - 1] = 0;
	if (d->repeats)
		snprintf(want, sizeof(want), "0-%" PRIx64 " %s plt rep=%u at=%u", d->size, rules,
			 r->plt_rep, (unsigned int)at);
	else
		snprintf(want, sizeof(want), "%" PRIx64 "-%" PRIx64 " %s", at - d->pc,
			 r->end - d->fn->start, rules);
	EXPECT_STR(got.buf, want);
	EXPECT_EQ(r->plt_rep != 0, d->repeats);
	/*
	 * The dump has no ends: this one's end is the next one's start, the last one's the
	 * function's.
	 */
	if (!d->repeats)
		EXPECT_EQ(r->end, d->at < d->got.n ? d->got.rows[d->at].start : d->fn->end);
	d->rows++;
	sframe_text_free(&got);
}

static void dump_function_done(struct dump *d)
{
	if (d->fn)
		EXPECT_EQ(d->at, d->got.n);
	d->fn = NULL;
}

static void dump_function(struct dump *d, const char *line)
{
	const char *attr = strstr(line, "attr = ");
	unsigned int index;

	dump_function_done(d);
	if (sscanf(line, "func idx [%u]: pc = 0x%" SCNx64 ", size = %" SCNu64, &index, &d->pc,
		   &d->size) != 3) {
		EXPECT(!"a dump's function line");
		return;
	}
	for (size_t i = 0; i < d->f->s.fns.n; i++)
		if (d->f->s.fns.fns[i].ref == index)
			d->fn = &d->f->s.fns.fns[i];
	if (!d->size) {
		EXPECT(!d->fn);
		return;
	}
	EXPECT(d->fn);
	if (!d->fn)
		return;
	if (!d->relocatable)
		EXPECT_EQ(d->fn->start, d->pc);
	EXPECT_EQ(d->fn->end - d->fn->start, d->size);
	d->signal = attr && strchr(attr + 7, 'S');
	d->got.n = d->at = 0;
	EXPECT_EQ(sframe_rows(&d->f->s, d->fn, &d->got, &d->f->diag), 0);
	d->functions++;
}

static void dump_header(const struct dump *d, const char *line)
{
	unsigned int n;

	if (sscanf(line, "Version: SFRAME_VERSION_%u", &n) == 1)
		EXPECT_EQ(d->f->s.tables[0].version, n);
	if (sscanf(line, "Num FDEs: %u", &n) == 1)
		EXPECT_EQ(d->f->s.tables[0].nfdes, n);
	if (sscanf(line, "Num FREs: %u", &n) == 1)
		EXPECT_EQ(d->f->s.tables[0].nfres, n);
}

static void dump_compare(struct dump *d, FILE *txt)
{
	char line[256];

	while (fgets(line, sizeof(line), txt)) {
		const char *p = line + strspn(line, " ");

		line[strcspn(line, "\n")] = 0;
		if (strncmp(p, "func idx", 8) == 0)
			dump_function(d, p);
		else if (strncmp(p, "STARTPC", 7) == 0)
			d->repeats = p[7] == '[';
		else if (strspn(p, "0123456789abcdef") == 16 && p[16] == ' ')
			dump_row(d, p);
		else
			dump_header(d, p);
	}
	dump_function_done(d);
	rowbuf_free(&d->got);
}

struct totals {
	size_t files, functions, rows;
};

static void check_dump(const char *dir, const char *name, struct totals *totals)
{
	char path[512];
	struct dump d = { 0 };
	struct file f;
	int before = test_errors, err;
	FILE *txt;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	txt = fopen(path, "r");
	if (!txt)
		return;
	path[strlen(path) - strlen(".sframe.txt")] = 0;
	err = file_open(&f, path);
	if (err == -ENOENT) { /* GNU ld 2.40 to 2.45 loses the section with --gc-sections */
		char text_of[4096];
		size_t n = fread(text_of, 1, sizeof(text_of) - 1, txt);

		text_of[n] = 0;
		EXPECT(strstr(text_of, "No .sframe section present"));
	} else if (err) {
		EXPECT_EQ(err, 0);
	} else {
		d.f = &f;
		d.arch = f.s.arch;
		d.relocatable = f.img.type == ET_REL;
		EXPECT_EQ(f.s.ntables, 1);
		dump_compare(&d, txt);
		EXPECT_EQ(f.diag.malformed, 0);
		EXPECT_EQ(d.functions, f.s.fns.n);
		totals->files++;
		totals->functions += d.functions;
		totals->rows += d.rows;
	}
	if (test_errors != before) {
		printf("  in %s\n", path);
		sframe_text_notes(&f.diag);
	}
	fclose(txt);
	file_close(&f);
}

static bool has_suffix(const char *s, const char *suffix)
{
	size_t n = strlen(s), m = strlen(suffix);

	return n >= m && strcmp(s + n - m, suffix) == 0;
}

/* Set but empty: scripts/test.sh says once that there are none. */
static const char *without_fixtures(void)
{
	const char *dir = getenv("SFBPF_FIXTURES");

	return dir && !*dir ? "" : "no fixtures";
}

static const char *fixtures(void)
{
	const char *dir = getenv("SFBPF_FIXTURES");
	struct stat st;

	if (!dir)
		dir = "../shared/fixtures";
	return stat(dir, &st) == 0 && S_ISDIR(st.st_mode) ? dir : NULL;
}

TEST(sframe_fixtures)
{
	static const char *const dirs[] = {
		"v1/x86_64", "v1/aarch64", "v2/x86_64",	 "v2/aarch64",
		"v2/s390x",  "v3/x86_64",  "v3/aarch64", "v3/s390x",
	};
	struct totals totals = { 0 };
	char path[256];

	if (!fixtures())
		SKIP(without_fixtures());
	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
		struct dirent *de;
		DIR *dir;

		snprintf(path, sizeof(path), "%s/%s", fixtures(), dirs[i]);
		dir = opendir(path);
		EXPECT(dir);
		while (dir && (de = readdir(dir)))
			if (has_suffix(de->d_name, ".sframe.txt"))
				check_dump(path, de->d_name, &totals);
		if (dir)
			closedir(dir);
	}
	EXPECT(totals.rows > 0);
	printf("  %zu files, %zu functions, %zu rows as GNU objdump has them\n", totals.files,
	       totals.functions, totals.rows);
}

/* Big-endian AArch64 has no dumps; its functions have the rows of the little-endian library. */
TEST(sframe_fixtures_big_endian)
{
	char path[256];

	if (!fixtures())
		SKIP(without_fixtures());
	for (unsigned int v = 1; v <= 3; v++) {
		struct sframe_text be = { 0 };
		struct file f;

		snprintf(path, sizeof(path), "%s/v%u/aarch64/libfx-be.so", fixtures(), v);
		EXPECT_EQ(file_open(&f, path), 0);
		EXPECT(f.s.tables && f.s.tables[0].be && f.s.tables[0].version == v);
		EXPECT(f.s.fns.n > 3);
		sframe_text_all(&be, &f.s, 0, &f.diag);
		EXPECT(strstr(be.buf, " cfa=sp+0 ra=x30+0 fp=same"));
		EXPECT(strstr(be.buf, " cfa=sp+5056 ra="));
		EXPECT_EQ(f.diag.malformed, 0);
		sframe_text_free(&be);
		file_close(&f);
	}
}

struct odd { /* what a .check.txt says; 0: nothing */
	unsigned int version, flags, fdes, fres, tables, compared;
};

static void odd_read(struct odd *o, FILE *txt)
{
	char line[2048];

	*o = (struct odd){ .tables = 1 };
	while (fgets(line, sizeof(line), txt)) {
		const char *p = strstr(line, ": V"), *fdes = strstr(line, "fdes="),
			   *issue = strstr(line, "ISSUE ");

		if (p && fdes) {
			sscanf(p, ": V%u flags=0x%x", &o->version, &o->flags);
			sscanf(fdes, "fdes=%u fres=%u", &o->fdes, &o->fres);
		}
		if (issue && strstr(issue, "concatenated tables"))
			sscanf(issue, "ISSUE %u", &o->tables);
		sscanf(line, " compared %u fdes", &o->compared);
	}
	if (!o->compared)
		o->compared = o->fdes;
}

static void check_odd(const char *dir, const char *name)
{
	unsigned int fdes = 0, fres = 0;
	int before = test_errors;
	struct sframe_text rows = { 0 };
	char path[512];
	struct odd want;
	struct file f;
	FILE *txt;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	txt = fopen(path, "r");
	EXPECT(txt);
	if (!txt)
		return;
	odd_read(&want, txt);
	fclose(txt);
	path[strlen(path) - strlen(".check.txt")] = 0;
	EXPECT_EQ(file_open(&f, path), 0);
	for (uint32_t i = 0; i < f.s.ntables; i++) {
		EXPECT_EQ(f.s.tables[i].version, want.version);
		fdes += f.s.tables[i].nfdes;
		fres += f.s.tables[i].nfres;
	}
	EXPECT_EQ(f.s.ntables, want.tables);
	EXPECT(f.s.ntables && f.s.tables[0].flags == want.flags);
	EXPECT_EQ(fdes, want.fdes);
	EXPECT_EQ(fres, want.fres);
	EXPECT_EQ(f.s.fns.n, want.compared);
	for (size_t i = 0; i < f.s.fns.n && f.img.nphdrs; i++)
		EXPECT(f.s.fns.fns[i].start >= 0x1000);
	sframe_text_all(&rows, &f.s, 0, &f.diag);
	EXPECT_EQ(f.diag.malformed, 0);
	if (want.tables > 1)
		EXPECT(sframe_text_noted(&f.diag, DIAG_REPAIRED, "tables one after another"));
	if (test_errors != before) {
		printf("  in %s\n", path);
		sframe_text_notes(&f.diag);
	}
	sframe_text_free(&rows);
	file_close(&f);
}

TEST(sframe_fixtures_odd)
{
	struct dirent *de;
	char path[256];
	DIR *dir;

	if (!fixtures())
		SKIP(without_fixtures());
	snprintf(path, sizeof(path), "%s/odd", fixtures());
	dir = opendir(path);
	EXPECT(dir);
	while (dir && (de = readdir(dir)))
		if (has_suffix(de->d_name, ".check.txt"))
			check_odd(path, de->d_name);
	if (dir)
		closedir(dir);
}
