/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Source lines and inlined functions of many places in a Go program (elf/go_lines.h), as the child
 * that reads ELF files (symtab/elf_worker.h) sends them to the main process.
 */
#ifndef SFBPF_SYMTAB_GO_PLACES_H
#define SFBPF_SYMTAB_GO_PLACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elf/elf_image.h"

#define GO_PLACES_ASKED 512  /* places of one question */
#define GO_PLACES_MOST	8192 /* frames of one answer; inlined ones are a third in real programs */
#define GO_PLACES_TEXT	(1u << 20) /* bytes of the names and paths of one answer */

/* A frame: the frames of a place follow each other, the innermost inlined one first. */
struct go_place {
	uint32_t at;		   /* index of the place */
	uint32_t name, file;	   /* where its strings begin in the text; "": unknown */
	uint32_t line, start_line; /* 0: unknown */
};

struct go_places {
	struct go_place *v; /* `at` ascends; some places may have no frames */
	char *text;	    /* ends with a NUL */
	uint32_t n, text_len;
};

/*
 * Finds the frames at n file offsets. Ends at the first place that exceeds the limits above: it and
 * the later ones get none. 0; -ENOENT: not a program of Go 1.20 or later; -ENOMEM, -EIO.
 */
int go_places_read(const struct elf_image *img, const uint64_t *offsets, size_t n,
		   struct go_places *ret);
/* Writes v, then the text. 0 or -errno. */
int go_places_write(const struct go_places *p, int fd);
/*
 * Reads the answer that go_places_write wrote to fd, and checks it. n, text_len: its members;
 * asked: the places of the question. 0; -EBADMSG: it is short, or go_places_read cannot have made
 * it; -ENOMEM.
 */
int go_places_take(int fd, uint32_t n, uint32_t text_len, size_t asked, struct go_places *ret);
void go_places_free(struct go_places *p); /* also of a zeroed struct */

#endif
