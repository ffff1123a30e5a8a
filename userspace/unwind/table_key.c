/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwind/table_key.h"

#include <stdio.h>
#include <string.h>

#include "unwind/eh_record.h"

/* A field at a time: structures may have padding. */
static void add_headers(struct digest *d, const struct elf_image *img)
{
	const uint64_t file[] = { img->size, img->type, img->machine, img->be, img->nphdrs, img->nshdrs };

	digest_add(d, file, sizeof(file));
	for (uint32_t i = 0; i < img->nphdrs; i++) {
		const struct elf_phdr *p = &img->phdrs[i];
		const uint64_t ph[] = { p->type, p->flags, p->offset, p->vaddr, p->filesz, p->memsz };

		digest_add(d, ph, sizeof(ph));
	}
	for (uint32_t i = 0; i < img->nshdrs; i++) {
		const struct elf_shdr *s = &img->shdrs[i];
		const uint64_t sh[] = { s->type, s->flags, s->addr, s->offset, s->size };

		digest_add(d, sh, sizeof(sh));
		digest_add(d, s->name, strlen(s->name));
	}
}

static void add_blob(struct digest *d, bool found, const struct elf_blob *blob)
{
	const uint64_t place[] = { found, found ? blob->addr : 0, found ? blob->view.len : 0 };

	digest_add(d, place, sizeof(place));
	if (found)
		digest_add(d, blob->view.base, blob->view.len);
}

static void add_known(struct digest *d, const struct rowbuf *known)
{
	digest_add(d, &known->n, sizeof(known->n));
	for (size_t i = 0; i < known->n; i++) {
		const struct row *r = &known->rows[i];
		const uint64_t row[] = { r->start, r->end, r->cfa.kind, (uint64_t)r->cfa.off, r->ra.kind, (uint64_t)r->ra.off, r->fp.kind };

		digest_add(d, row, sizeof(row));
	}
}

uint64_t table_bytes(const struct unwind_file *f)
{
	return (f->found_sframe ? f->sframe_bytes.view.len : 0) + (f->found_eh ? f->eh_bytes.view.len : 0);
}

bool table_key_of(const struct table_keying *k, const struct unwind_file *f, struct table_key *ret)
{
	struct eh_hdr hdr = { 0 };
	struct digest d;

	*ret = (struct table_key){ 0 };
	ret->build_id_len = (uint32_t)elf_image_build_id(&f->img, ret->build_id, sizeof(ret->build_id));
	if (!ret->build_id_len || table_bytes(f) < k->min_bytes)
		return false;
	digest_init(&d, &k->key);
	digest_add(&d, &k->build, sizeof(k->build));
	digest_add(&d, ret->build_id, ret->build_id_len);
	add_headers(&d, &f->img);
	add_blob(&d, f->found_sframe, &f->sframe_bytes);
	add_blob(&d, f->found_eh, &f->eh_bytes);
	/* Of the header the conversion looks at the count; where it needs the table, too, the result is not kept. */
	if (f->found_eh && !f->debug_frame && !eh_hdr_read(&f->img, &hdr)) {
		digest_add(&d, &hdr.eh_frame, sizeof(hdr.eh_frame));
		digest_add(&d, &hdr.count, sizeof(hdr.count));
	}
	add_known(&d, &f->known);
	ret->digest = digest_end(&d);
	return true;
}

bool table_key_covers(const struct unwind_file *f)
{
	return !f->eh.by_hdr;
}

void table_key_name(const struct table_key *k, char ret[TABLE_KEY_NAME])
{
	size_t at = 0;

	for (size_t i = 0; i < k->build_id_len && i < sizeof(k->build_id); i++)
		at += (size_t)snprintf(ret + at, TABLE_KEY_NAME - at, "%02x", k->build_id[i]);
	snprintf(ret + at, TABLE_KEY_NAME - at, "-%016llx", (unsigned long long)k->digest.words[0]);
}
