/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by go_switch.c and its parts for each architecture. */
#ifndef SFBPF_READERS_GO_SWITCH_ARCH_H
#define SFBPF_READERS_GO_SWITCH_ARCH_H

#include "readers/go_switch.h"

/* Functions by name. Of several with a name, the one in assembly, else the one with most room. */
enum go_name {
	GO_SYSTEMSTACK,
	GO_MCALL,
	GO_MORESTACK,
	GO_ASMCGOCALL,
	GO_CGOCALLBACK,
	GO_CROSSCALL,
	GO_GOGO,
	GO_LOAD_G,
	GO_MSTART,
	GO_MSTART0,
	GO_CLONE,
	GO_NANOTIME,
	GO_WALLTIME,
	GO_TIME_NOW,
	GO_GETRANDOM,
	GO_RESTORER,
	GO_PREEMPT,
	GO_SIGPANIC,
	GO_NAMES
};

struct go_arch;

struct go_search {
	const struct go_arch *arch;
	struct go_rows *rows;
	const struct elf_image *img;
	struct go_func fns[GO_NAMES]; /* end 0: not found */
	/* Found in systemstack, for all: struct sf_go_rule with tls, g_m, g_sched and m_off */
	struct sf_go_rule layout;
	int err; /* 0 or -ENOMEM, sticky */
};

/* The code of a function, and a place in it. */
struct go_code {
	struct elf_blob blob;
	struct bytes at;
	uint64_t start, end; /* virtual addresses */
};

/* False: it was not found, or cannot be read. */
bool go_code_open(const struct go_search *s, enum go_name name, struct go_code *ret);
void go_code_close(struct go_code *c);
/*
 * Moves past the next occurrence of the bytes and of the `size` bytes (0, 1 or 4) of a signed
 * number that follow them. False: there is none; the place stays.
 */
bool go_code_next(struct go_code *c, const char *bytes, size_t n, size_t size, int32_t *ret);
static inline uint64_t go_code_pc(const struct go_code *c)
{
	return c->start + c->at.pos;
}

/* The height of sp at a pc of the function; -1: unknown. */
int32_t go_height_at(const struct go_search *s, enum go_name name, uint64_t pc);
int32_t go_height_most(const struct go_search *s, enum go_name name);
/* File offset of an address; 0: none that fits. */
int32_t go_file_offset(const struct go_search *s, uint64_t addr);

/* Adds a row for [start, end) by the rule. Rules with op SF_GO_NONE are not added. */
void go_add_switch(struct go_search *s, uint64_t start, uint64_t end,
		   const struct sf_go_rule *rule);
void go_add_row(struct go_search *s, uint64_t start, uint64_t end, const struct row *row);

/* What systemstack tells: offsets in g, m and g, and how g is found. */
struct go_layout {
	int32_t m, curg, sched;
	int32_t tls;
	bool tls_slot;
	uint64_t start; /* sp is that of g0 from there on */
};

/* C called Go: sp is g0's between the addresses, and the call returns between them. */
struct go_callback {
	uint64_t start, returns;
	int32_t g; /* where the g is, from sp */
};

/*
 * What differs between architectures. A find_ function moves past the instructions that it looks
 * for, in a function that is open. False: they are not there.
 */
struct go_arch {
	bool (*find_layout)(struct go_search *s, struct go_code *c, struct go_layout *ret);
	bool (*find_callback)(struct go_code *c, struct go_callback *ret);
	bool (*find_call)(struct go_code *c); /* a direct call */
	/* The load of sp from g0, in a function that stays there. Adds to the rule, too. */
	bool (*find_g0)(struct go_code *c, enum go_name name, struct sf_go_rule *rule);
	/* The rule of a frame at that height; op SF_GO_NONE: the height is not known. */
	struct sf_go_rule (*frame)(const struct go_search *s, enum sf_go_op op, int32_t height);
	/* Adds functions that call C on the stack of g0. s->layout is known. */
	void (*add_calls)(struct go_search *s);
	/* Adds functions that set sp to where another goroutine or thread goes on. */
	void (*add_jumps)(struct go_search *s);
	bool pushes_ra; /* a call does, so that mstart's RA is above the frame of mstart0 */
};

extern const struct go_arch go_arch_x86, go_arch_arm64;

#endif
