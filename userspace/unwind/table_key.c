/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwind/table_key.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/full_io.h"
#include "base/sealed_file.h"
#include "unwind/eh_record.h"

#define PIECE (256u << 10)
#define COPY_MAX (64ull << 20)

/* In pieces, so that it does not matter in which ones it was read. */
static void add_bytes(struct digest *d, const uint8_t *data, uint64_t len)
{
	for (uint64_t n; len; len -= n, data += n) {
		n = len < PIECE ? len : PIECE;
		digest_add(d, data, n);
	}
}

static struct digest begin(const struct table_keying *k, uint64_t size)
{
	struct digest d;

	digest_init(&d, &k->key);
	digest_add(&d, &k->build, sizeof(k->build));
	digest_add(&d, &size, sizeof(size));
	return d;
}

/* Bytes of the file that are at hand. */
static const uint8_t *at_hand(const struct unwind_file *f, const struct elf_range *r)
{
	const struct elf_blob *blobs[] = { f->found_sframe ? &f->sframe_bytes : NULL, f->found_eh ? &f->eh_bytes : NULL };

	for (int i = 0; i < 2; i++)
		if (blobs[i] && blobs[i]->view.base == blobs[i]->owned && blobs[i]->view.len == r->size)
			return blobs[i]->owned;
	return NULL;
}

/* Through a buffer of PIECE bytes; to: -1, or where they are written, too. */
static int add_range(struct digest *d, int fd, const struct elf_range *r, uint8_t *buf, int to)
{
	for (uint64_t at = 0; at < r->size; at += PIECE) {
		size_t n = r->size - at < PIECE ? r->size - at : PIECE;

		if (pread_full(fd, buf, n, r->offset + at))
			return -EIO;
		digest_add(d, buf, n);
		if (to >= 0 && pwrite(to, buf, n, (off_t)(r->offset + at)) != (ssize_t)n)
			return -ENOMEM;
	}
	return 0;
}

uint64_t table_bytes(const struct unwind_file *f)
{
	return (f->found_sframe ? f->sframe_bytes.view.len : 0) + (f->found_eh ? f->eh_bytes.view.len : 0);
}

bool table_key_of(const struct table_keying *k, struct unwind_file *f, struct table_key *ret)
{
	uint8_t *buf = NULL;
	struct eh_hdr hdr;
	struct digest d;
	int err = 0;

	*ret = (struct table_key){ 0 };
	ret->build_id_len = (uint32_t)elf_image_build_id(&f->img, ret->build_id, sizeof(ret->build_id));
	if (!ret->build_id_len || table_bytes(f) < k->min_bytes)
		return false;
	/* The conversion will look at it. */
	if (f->found_eh && !f->debug_frame)
		eh_hdr_read(&f->img, &hdr);
	buf = malloc(PIECE);
	d = begin(k, f->img.size);
	for (uint32_t i = 0; buf && i < f->reads.n && !err; i++) {
		const struct elf_range *r = &f->reads.at[i];
		const uint8_t *bytes = at_hand(f, r);

		digest_add(&d, r, sizeof(*r));
		if (bytes)
			add_bytes(&d, bytes, r->size);
		else
			err = add_range(&d, f->img.fd, r, buf, -1);
	}
	free(buf);
	ret->digest = digest_end(&d);
	return buf && !err && f->reads.n && !f->reads.lost;
}

int table_key_copy(const struct table_keying *k, int fd, const struct elf_reads *reads, struct digest_value *ret)
{
	off_t size = lseek(fd, 0, SEEK_END);
	uint8_t *buf = malloc(PIECE);
	uint64_t sum = 0;
	struct digest d;
	int copy = size < 0 ? -EINVAL : sealed_file_begin("sfbpf-keyed", size);
	int err = !buf || copy < 0 || reads->lost || reads->n > ELF_READS_MAX ? -EINVAL : 0;

	d = begin(k, (uint64_t)size);
	for (uint32_t i = 0; !err && i < reads->n; i++) {
		const struct elf_range *r = &reads->at[i];

		sum += r->size <= COPY_MAX ? r->size : COPY_MAX;
		if (r->offset > (uint64_t)size || r->size > (uint64_t)size - r->offset || sum >= COPY_MAX)
			err = -E2BIG;
		digest_add(&d, r, sizeof(*r));
		if (!err)
			err = add_range(&d, fd, r, buf, copy);
	}
	free(buf);
	*ret = digest_end(&d);
	return sealed_file_end(copy, err);
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
