/* SPDX-License-Identifier: BSD-2-Clause */
#include "sframe_encode.h"

#include <stdlib.h>
#include <string.h>

#define HEADER_SIZE 28

static void put(uint8_t *at, unsigned int size, uint64_t value, bool be)
{
	for (unsigned int i = 0; i < size; i++)
		at[be ? size - 1 - i : i] = (uint8_t)(value >> (8 * i));
}

void senc_append(struct senc *e, const void *bytes, size_t len)
{
	if (e->len + len >= e->cap) {
		e->cap = (e->len + len + 64) * 2;
		e->buf = realloc(e->buf, e->cap);
		if (!e->buf)
			abort();
	}
	if (bytes)
		memcpy(e->buf + e->len, bytes, len);
	else
		memset(e->buf + e->len, 0, len);
	e->len += len;
}

static void append_int(struct senc *e, unsigned int size, uint64_t value)
{
	uint8_t raw[8];

	put(raw, size, value, e->be);
	senc_append(e, raw, size);
}

static void fre_int(struct senc *e, unsigned int size, uint64_t value)
{
	if (e->fre_len + size > sizeof(e->fre))
		abort();
	put(e->fre + e->fre_len, size, value, e->be);
	e->fre_len += size;
}

void senc_init(struct senc *e, uint64_t addr)
{
	memset(e, 0, sizeof(*e));
	e->addr = addr;
}

void senc_free(struct senc *e)
{
	free(e->buf);
	e->buf = NULL;
	e->len = e->cap = 0;
}

void senc_begin(struct senc *e, uint8_t version, uint8_t abi, uint8_t flags,
		enum senc_anchor anchor)
{
	senc_append(e, NULL, -e->len & 7);
	e->version = version;
	e->abi = abi;
	e->flags = flags;
	e->anchor = anchor;
	e->be = abi == SENC_AARCH64_BE || abi == SENC_S390X;
	e->fixed_fp = 0;
	e->fixed_ra = abi == SENC_AMD64 ? -8 : 0;
	e->nfns = e->total_rows = e->fre_len = 0;
}

static uint8_t fn_info(const struct senc_fn *fn)
{
	return fn->row_type | fn->pcmask << 4 | fn->key_b << 5 | fn->signal << 7 | fn->info_bits;
}

void senc_fn(struct senc *e, struct senc_fn fn)
{
	if (e->nfns == SENC_MAX_FNS)
		abort();
	e->fns[e->nfns] = fn;
	e->rows_at[e->nfns] = e->fre_len;
	e->nrows[e->nfns] = 0;
	e->nfns++;
	if (e->version < 3)
		return;
	fre_int(e, 2, 0); /* the row count, known at senc_end */
	fre_int(e, 1, fn_info(&fn));
	fre_int(e, 1, fn.flex | fn.info2_bits);
	fre_int(e, 1, fn.rep_size);
}

void senc_row(struct senc *e, uint32_t start, uint8_t bits, unsigned int word_size,
	      const char *words)
{
	const struct senc_fn *fn = &e->fns[e->nfns - 1];
	unsigned int n = 0, code = word_size == 4 ? 2 : word_size - 1;
	size_t info_at;
	char *end;

	fre_int(e, 1u << fn->row_type, start);
	info_at = e->fre_len;
	fre_int(e, 1, 0);
	for (; *words; words = end, n++) {
		long long value = strtoll(words, &end, 0);

		if (end == words)
			break;
		fre_int(e, word_size, (uint64_t)value);
	}
	e->fre[info_at] = (uint8_t)(bits | n << 1 | (n ? code : 0) << 5);
	e->nrows[e->nfns - 1]++;
	e->total_rows++;
}

void senc_raw_row(struct senc *e, const void *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		fre_int(e, 1, ((const uint8_t *)bytes)[i]);
	e->nrows[e->nfns - 1]++;
	e->total_rows++;
}

static unsigned int entry_size(uint8_t version)
{
	return version == 1 ? 17 : version == 2 ? 20 : 16;
}

static void put_entry(struct senc *e, uint32_t i, size_t header)
{
	const struct senc_fn *fn = &e->fns[i];
	uint64_t from = e->addr + (e->anchor == SENC_FROM_FIELD ? e->len : header);
	uint32_t nrows = e->nrows[i] + (uint32_t)fn->extra_rows;

	append_int(e, e->version >= 3 ? 8 : 4, fn->raw_start ? fn->addr : fn->addr - from);
	append_int(e, 4, fn->size);
	append_int(e, 4, e->rows_at[i] + fn->rows_at_add);
	if (e->version >= 3) {
		put(e->fre + e->rows_at[i], 2, nrows, e->be);
		return;
	}
	append_int(e, 4, nrows);
	append_int(e, 1, fn_info(fn));
	if (e->version == 2) {
		append_int(e, 1, fn->rep_size);
		append_int(e, 2, 0);
	}
}

size_t senc_end(struct senc *e)
{
	size_t header = e->len;

	append_int(e, 2, 0xdee2);
	append_int(e, 1, e->version);
	append_int(e, 1, e->flags);
	append_int(e, 1, e->abi);
	append_int(e, 1, (uint8_t)e->fixed_fp);
	append_int(e, 1, (uint8_t)e->fixed_ra);
	append_int(e, 1, 0);
	append_int(e, 4, e->nfns);
	append_int(e, 4, e->total_rows);
	append_int(e, 4, e->fre_len);
	append_int(e, 4, 0);
	append_int(e, 4, e->nfns * entry_size(e->version));
	for (uint32_t i = 0; i < e->nfns; i++)
		put_entry(e, i, header);
	senc_append(e, e->fre, e->fre_len);
	return header;
}

void senc_poke(struct senc *e, size_t off, unsigned int size, uint64_t value)
{
	if (off + size > e->len)
		abort();
	put(e->buf + off, size, value, e->be);
}
