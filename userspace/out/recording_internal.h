/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by recording_read.c and recording_times.c. */
#ifndef SFBPF_OUT_RECORDING_INTERNAL_H
#define SFBPF_OUT_RECORDING_INTERNAL_H

#include "base/pb.h"
#include "out/recording.h"
#include "out/recording_fields.h"
#include "symtab/sym_names.h"

#define TEXT_MAX 4096

/* The texts of a symbol */
enum text { TEXT_NAME, TEXT_MODULE, TEXT_FUNCTION, TEXT_FILE, TEXTS };

struct recording_reader {
	struct recording *rec;
	struct read_error *why;
	struct bytes *strings;
	size_t nstrings, strings_cap;
	uint32_t *symbols; /* ids, by number */
	uint32_t *lengths; /* bytes of their names */
	size_t nsymbols, symbols_cap, lengths_cap;
	uint64_t *words; /* index: number of a frame; its word, symbol, and bytes of names */
	uint32_t *ids, *costs;
	size_t nframes, words_cap, ids_cap, costs_cap;
	uint8_t *depths; /* index: waker; stacks of the chain from this one on */
	size_t depths_cap;
	uint64_t names; /* bytes of names that stacks may still have */
	uint64_t samples, weight;
	/* A struct sf_sample with its frames */
	uint64_t room[sizeof(struct sf_sample) / 8 + SF_MAX_USER + SF_MAX_KERNEL];
	uint32_t stack_ids[SF_MAX_USER + SF_MAX_KERNEL];
	char text[TEXTS][TEXT_MAX];
};

static inline struct sf_sample *recording_sample(struct recording_reader *r)
{
	return (struct sf_sample *)r->room;
}

/* -EINVAL, with the reason in r->why */
int recording_damaged(struct recording_reader *r, const char *what, uint64_t number);
/* The next n numbers of a packed field. false: at its end, or fewer are left, with *ret_bad set. */
bool recording_next(struct pb_field *f, uint64_t *ret, size_t n, bool *ret_bad);
/* The fields of a message that are numbers, by their number below n. The last one counts. */
int recording_numbers(struct recording_reader *r, struct bytes msg, uint64_t *ret, uint32_t n,
		      const char *what);
/* The first n numbers of a packed field; missing ones are 0. */
int recording_array(struct recording_reader *r, struct pb_field *f, uint64_t *to, size_t n);
/* Foreign bytes, which the outputs clean */
void recording_comm(const struct recording_reader *r, char ret[SF_COMM], uint64_t number);

int recording_read_timeline(struct recording_reader *r, struct bytes msg);
int recording_read_slices(struct recording_reader *r, struct bytes msg);
int recording_read_blocks(struct recording_reader *r, struct bytes msg);

#endif
