/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * program SECONDS: the interpreter of Toy, a stack machine, with one program in it. toy_run() runs
 * instructions until the function that it was called with returns. `call` begins a frame in the
 * loop that runs, `apply` goes through C to another one. The chain is
 *
 *   main, outer (a.toy), outer (b.toy); toy_apply; middle, inner, burn
 */
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

enum toy_op { CALL, APPLY, PUSH, ADD, BACK, END };

struct toy_code {
	uint8_t name_len, file_len, zero[6];
	char name[24], file[24];
	const struct toy_insn {
		enum toy_op op;
		long arg;
	} * insns;
};

struct toy_frame {
	struct toy_frame *back;
	const struct toy_code *code;
	uint32_t line, entry; /* entry: C called it */
	const struct toy_insn *at;
};

struct toy_frame *toy_top;
long toy_run(const struct toy_code *code);

static time_t end;
static const struct toy_code codes[];

static __attribute__((noinline)) long toy_apply(const struct toy_code *code)
{
	return toy_run(code) + 1;
}

static void enter(const struct toy_code *code, struct toy_frame *f, int entry)
{
	*f = (struct toy_frame){ toy_top, code, 1, (uint32_t)entry, code->insns };
	toy_top = f;
}

__attribute__((noinline)) long toy_run(const struct toy_code *code)
{
	struct toy_frame frames[16];
	int n = 0;
	volatile long stack[16];
	int sp = 0;

	enter(code, &frames[n++], 1);
	for (;;) {
		struct toy_frame *f = toy_top;
		const struct toy_insn *insn = f->at;

		f->at++;
		f->line = (uint32_t)(f->at - f->code->insns);
		switch (insn->op) {
		case CALL:
			enter(&codes[insn->arg], &frames[n++], 0);
			break;
		case APPLY:
			stack[sp++] = toy_apply(&codes[insn->arg]);
			break;
		case PUSH:
			stack[sp++] = insn->arg;
			break;
		case ADD:
			stack[sp - 2] += stack[sp - 1];
			sp--;
			break;
		case BACK:
			sp = 0;
			if ((f->at - f->code->insns) && time(NULL) < end)
				f->at = f->code->insns + insn->arg;
			break;
		case END:
			toy_top = f->back;
			n--;
			if (f->entry)
				return sp ? stack[sp - 1] : 0;
			break;
		}
	}
}

static const struct toy_insn main_insns[] = { { CALL, 1 }, { END, 0 } },
			     outer_insns[] = { { PUSH, 1 }, { CALL, 2 }, { END, 0 } },
			     again_insns[] = { { APPLY, 3 }, { END, 0 } },
			     middle_insns[] = { { CALL, 4 }, { END, 0 } },
			     inner_insns[] = { { PUSH, 1 }, { CALL, 5 }, { END, 0 } },
			     burn_insns[] = { { PUSH, 1 }, { PUSH, 2 }, { ADD, 0 }, { PUSH, 3 },
					      { ADD, 0 },  { BACK, 0 }, { END, 0 } };

#define CODE(name, file, insns)                                              \
	{                                                                    \
		sizeof(name) - 1, sizeof(file) - 1, { 0 }, name, file, insns \
	}

static const struct toy_code codes[] = {
	CODE("main", "a.toy", main_insns),   CODE("outer", "a.toy", outer_insns),
	CODE("outer", "b.toy", again_insns), CODE("middle", "b.toy", middle_insns),
	CODE("inner", "b.toy", inner_insns), CODE("burn", "b.toy", burn_insns),
};

int main(int argc, char **argv)
{
	end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 1);
	return toy_run(&codes[0]) < 0;
}
