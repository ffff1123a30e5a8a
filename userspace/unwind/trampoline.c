/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwind/trampoline.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "elf/known_code.h"
#include "unwind/fntab.h"

#define TEXT_MAX (32u << 20)	/* no C library's text is near this */

/* DT_SONAME of the file, "" if it has none; false: no dynamic section at all. */
static bool soname(const struct elf_image *img, char *ret, size_t cap)
{
	const struct elf_phdr *ph = elf_image_segment(img, PT_DYNAMIC);
	uint64_t name = 0, strtab = 0, off;
	struct elf_blob dyn = { 0 }, str = { 0 };
	bool named = false;

	ret[0] = 0;
	if (!ph || elf_image_read(img, ph->offset, ph->filesz < 65536 ? ph->filesz : 65536, &dyn))
		return false;
	while (bytes_left(&dyn.view) >= sizeof(Elf64_Dyn)) {
		uint64_t tag = bytes_u64(&dyn.view), val = bytes_u64(&dyn.view);

		if (tag == DT_SONAME) {
			name = val;
			named = true;
		} else if (tag == DT_STRTAB) {
			strtab = val;
		}
	}
	elf_blob_free(&dyn);
	if (named && elf_image_vaddr_to_offset(img, strtab, &off) && name < img->size && !elf_image_read(img, off + name, cap - 1, &str)) {
		const char *s = bytes_str(&str.view);

		if (s)
			memcpy(ret, s, strlen(s) + 1);
		elf_blob_free(&str);
	}
	return named ? ret[0] != 0 : true;
}

static bool worth_searching(const struct elf_image *img)
{
	bool interp = elf_image_segment(img, PT_INTERP) != NULL;	/* glibc's libc.so.6 has one too */
	char name[32];

	if (!soname(img, name, sizeof(name)))
		return !interp && img->type == ET_EXEC;
	return (!name[0] && !interp) || !strncmp(name, "libc.", 5) || !strncmp(name, "ld-musl", 7) || !strncmp(name, "libpthread", 10);
}

/* The signal restorer's registers: rsp points at the ucontext, the saved ones start 40 bytes into it (see step_sigcontext). */
#define AT_RSP(offset) { .kind = RULE_REG_MEM, .reg = 7, .off = (offset) }
static const struct row restorer_row = {
	.cfa = AT_RSP(160), .ra = AT_RSP(168), .fp = AT_RSP(120), .bx = AT_RSP(128), .source = ROW_EH_FRAME, .flags = ROW_SIGNAL,
};
static const struct row outermost_row = { .ra = { .kind = RULE_UNDEF }, .source = ROW_EH_FRAME };

static const struct trampoline {
	enum known_code code;
	const struct row *row;
} trampolines[] = {
	{ KNOWN_RESTORE_RT, &restorer_row },
	{ KNOWN_START_CONTEXT, &outermost_row },
	{ KNOWN_MUSL_THREAD, &outermost_row },
};

#define MAX_FOUND 16	/* in a window; real files hold one of each */
#define WINDOW (256u << 10)	/* of text that is in memory at a time */
#define MARGIN 64u		/* a range may begin in one window and end in the next */

/* Those that begin in [from, to) of the text at vaddr. */
static int search(struct bytes text, uint64_t from, uint64_t to, uint64_t vaddr, const struct trampoline *t, struct rowbuf *out)
{
	uint64_t start;
	int err = 0;

	for (int i = 0; i < MAX_FOUND && !err && known_code_next(&text, t->code, &start); i++) {
		struct row row = *t->row;

		row.start = vaddr + start;
		row.end = row.start + known_code_size(t->code);
		if (start >= from && start < to)
			err = rowbuf_push(out, &row);
	}
	return err;
}

static int search_window(const struct elf_image *img, const struct elf_phdr *seg, uint64_t from, struct rowbuf *out)
{
	uint64_t ahead = from < MARGIN ? from : MARGIN, start = from - ahead, left = seg->filesz - start, len = WINDOW + ahead;
	struct elf_blob text = { 0 };
	int err = 0;

	if (elf_image_read(img, seg->offset + start, left < len + MARGIN ? left : len + MARGIN, &text))
		return 0;
	for (size_t k = 0; k < sizeof(trampolines) / sizeof(trampolines[0]) && !err; k++)
		err = search(text.view, ahead, len, seg->vaddr + start, &trampolines[k], out);
	elf_blob_free(&text);
	return err;
}

static int by_start(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

int trampolines_find(const struct elf_image *img, enum row_arch arch, struct rowbuf *out)
{
	struct elf_phdr segs[EXEC_SEGMENTS_MAX];
	size_t n = exec_segments(img, segs, EXEC_SEGMENTS_MAX);
	int err = 0;

	if (arch != ROW_ARCH_X86_64 || !worth_searching(img))
		return 0;
	for (size_t i = 0; i < n && !err; i++)
		for (uint64_t from = 0; segs[i].vaddr && segs[i].filesz <= TEXT_MAX && from < segs[i].filesz && !err; from += WINDOW)
			err = search_window(img, &segs[i], from, out);
	if (out->n)
		qsort(out->rows, out->n, sizeof(*out->rows), by_start);
	return err;
}
