/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libFuzzer target: an ELF file's headers, sections (also compressed), notes and symbols, what it
 * needs, a thread-local variable, and the lines of a Go program.
 * Built by scripts/fuzz.sh.
 */
#include <stdlib.h>
#include <string.h>

#include "border/sfbpf_shared.h"
#include "elf/elf_image.h"
#include "elf/elf_needed.h"
#include "elf/elf_tls.h"
#include "elf/go_lines.h"
#include "symtab/elf_symtab.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool cond)
{
	if (!cond)
		abort();
}

static void variable(const struct elf_image *img)
{
	struct elf_tls tls;

	if (!elf_tls_find(img, "otel_thread_ctx_v1", &tls))
		require(tls.how > SF_TLS_NONE && tls.how <= SF_TLS_WORD && tls.musl <= 1);
}

static void need(void *ctx, enum elf_needed kind, const char *text)
{
	(void)ctx;
	require(kind <= ELF_LIBRARY && *text && strlen(text) < ELF_NEEDED_TEXT);
}

static void all_sections(const struct elf_image *img)
{
	for (uint32_t i = 0; i < img->nshdrs && i < 64; i++) {
		struct elf_blob blob = { 0 };

		require(img->shdrs[i].name != NULL);
		if (!elf_image_section_bytes(img, &img->shdrs[i], &blob)) {
			require(blob.view.len == 0 || blob.view.base != NULL);
			elf_blob_free(&blob);
		}
	}
}

static void all_symbols(const struct elf_image *img)
{
	struct symtab *t = NULL;
	struct symtab_hit hit;
	char name[256];

	if (symtab_build(img, NULL, UINT32_MAX, &t))
		return;
	for (uint32_t i = 0; i < t->n && i < 4096; i++)
		if (symtab_at(t, i, &hit))
			symtab_name(t, &hit, name, sizeof(name));
	for (uint64_t off = 0; off < 65536; off += 997)
		symtab_find(t, off, &hit);
	symtab_free(t);
}

static void go_places(const struct elf_image *img)
{
	struct go_frame frames[GO_FRAMES_MAX];
	struct go_table table;
	struct go_lines lines;
	struct go_func f;

	if (go_table_open(img, &table))
		return;
	if (!go_lines_open(img, &table, &lines)) {
		for (uint64_t i = 0; i < table.count && i < 16; i++) {
			size_t n = go_table_func(&table, i, &f)
					   ? go_lines_at(&lines, f.start + f.pcsp % 64, frames)
					   : 0;

			require(n <= GO_FRAMES_MAX);
			for (size_t k = 0; k < n; k++)
				require(!frames[k].file || strlen(frames[k].file) < table.size);
		}
	}
	go_table_close(&table);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct elf_image img;
	struct diag diag = { 0 };
	uint8_t id[20];
	uint64_t at;

	if (elf_image_open_mem(&img, data, size, &diag)) {
		require(diag.malformed > 0);
		return 0;
	}
	for (uint32_t i = 0; i < img.nphdrs; i++)
		if (elf_image_vaddr_to_offset(&img, img.phdrs[i].vaddr, &at))
			elf_image_offset_to_vaddr(&img, at, &at);
	require(elf_image_build_id(&img, id, sizeof(id)) <= sizeof(id));
	all_sections(&img);
	all_symbols(&img);
	variable(&img);
	go_places(&img);
	elf_needed(&img, need, NULL);
	elf_image_close(&img);
	return 0;
}
