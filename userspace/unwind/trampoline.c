/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwind/trampoline.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "unwind/fntab.h"

#define TEXT_MAX (32u << 20)	/* no C library's text is near this */

static const uint8_t restorer[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };
static const uint8_t start_context[] = { 0x48, 0x89, 0xdc, 0x48, 0x8b, 0x3c, 0x24, 0x48, 0x85, 0xff };
#define START_CONTEXT_LEN 26	/* to its hlt */
static const uint8_t musl_thread[] = { 0x5f, 0x41, 0xff, 0xd1, 0x89, 0xc7, 0x31, 0xc0, 0xb0, 0x3c, 0x0f, 0x05 };

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

static const struct pattern {
	const uint8_t *bytes;
	uint8_t len;
	uint8_t rare;		/* index of the byte of it that other code has least */
	uint8_t before, size;	/* the row starts that many bytes ahead of the pattern and has that many behind its start */
	const struct row *row;
} patterns[] = {
	{ restorer, sizeof(restorer), 1, 1, sizeof(restorer) + 1, &restorer_row },
	{ start_context, sizeof(start_context), 2, 1, START_CONTEXT_LEN + 1, &outermost_row },
	{ musl_thread, sizeof(musl_thread), 3, 0, sizeof(musl_thread), &outermost_row },
};

#define MAX_FOUND 16	/* in a window; real files hold one of each */
#define WINDOW (256u << 10)	/* of text that is in memory at a time */
#define OVERLAP 32		/* a pattern that begins in one window may end in the next */

/* Those that begin in the first `len` bytes of the window at vaddr. */
static int search(const struct bytes *window, uint64_t len, uint64_t vaddr, const struct pattern *p, struct rowbuf *out)
{
	struct bytes at = *window;
	int err = 0;

	for (int i = 0; i < MAX_FOUND && !err && bytes_find_rare(&at, p->bytes, p->len, p->rare) && at.pos < len; i++) {
		struct row row = *p->row;

		row.start = vaddr + at.pos - p->before;
		row.end = row.start + p->size;
		err = rowbuf_push(out, &row);
		bytes_skip(&at, p->len);
	}
	return err;
}

static int search_window(const struct elf_image *img, const struct elf_phdr *seg, uint64_t from, struct rowbuf *out)
{
	uint64_t left = seg->filesz - from, len = left < WINDOW ? left : WINDOW;
	struct elf_blob text = { 0 };
	int err = 0;

	if (elf_image_read(img, seg->offset + from, left < len + OVERLAP ? left : len + OVERLAP, &text))
		return 0;
	for (size_t k = 0; k < sizeof(patterns) / sizeof(patterns[0]) && !err; k++)
		err = search(&text.view, len, seg->vaddr + from, &patterns[k], out);
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
