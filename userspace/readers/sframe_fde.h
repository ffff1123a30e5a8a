/* SPDX-License-Identifier: BSD-2-Clause */
/* Function descriptors of a table, whose layout depends on the version. */
#ifndef SFBPF_READERS_SFRAME_FDE_H
#define SFBPF_READERS_SFRAME_FDE_H

#include "readers/sframe.h"

/* One function descriptor in the form of version 3, the widest. */
struct sframe_fde {
	int64_t start;	    /* stored value: relative to the field or to the table's header */
	uint64_t start_off; /* offset of the field that holds it */
	uint32_t size;	    /* bytes of code */
	uint32_t nrows;
	uint64_t rows_off;
	uint8_t row_type; /* 0, 1, 2: row starts are 1, 2, 4 bytes wide */
	/* != 0: PCMASK, one set of rows for each block of this many bytes */
	uint8_t rep_size;
	bool flex, signal;
};

/* The smallest row of the type: its start and the info byte. */
static inline unsigned int sframe_row_min(uint8_t row_type)
{
	return (1u << row_type) + 1;
}

/* Bytes of a function index entry. */
unsigned int sframe_fde_size(uint8_t version);
/* Index entry i (< t->nfdes): start, start_off and size only. */
void sframe_fde_span(const struct sframe *s, const struct sframe_table *t, uint32_t i,
		     struct sframe_fde *ret);
/*
 * Reads the whole descriptor and checks the position of its rows. NULL, or what is wrong with it.
 */
const char *sframe_fde_load(const struct sframe *s, const struct sframe_table *t, uint32_t i,
			    struct sframe_fde *ret);

#endif
