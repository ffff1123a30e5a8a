/* SPDX-License-Identifier: BSD-2-Clause */
#include "kern/event_regs.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/user.h>

#define SIZE_OF(array) (sizeof(array) / sizeof((array)[0]))

#ifdef __x86_64__

/* struct user_regs_struct begins as struct pt_regs (arch/x86/include/asm/ptrace.h). */
#define REG(name) offsetof(struct user_regs_struct, name)

static const struct {
	const char *names[4]; /* its names by size: 8, 4, 2, 1 bytes */
	int at;
} regs[] = {
	{ { "rax", "eax", "ax", "al" }, REG(rax) },
	{ { "rbx", "ebx", "bx", "bl" }, REG(rbx) },
	{ { "rcx", "ecx", "cx", "cl" }, REG(rcx) },
	{ { "rdx", "edx", "dx", "dl" }, REG(rdx) },
	{ { "rsi", "esi", "si", "sil" }, REG(rsi) },
	{ { "rdi", "edi", "di", "dil" }, REG(rdi) },
	{ { "rbp", "ebp", "bp", "bpl" }, REG(rbp) },
	{ { "rsp", "esp", "sp", "spl" }, REG(rsp) },
	{ { "r8", "r8d", "r8w", "r8b" }, REG(r8) },
	{ { "r9", "r9d", "r9w", "r9b" }, REG(r9) },
	{ { "r10", "r10d", "r10w", "r10b" }, REG(r10) },
	{ { "r11", "r11d", "r11w", "r11b" }, REG(r11) },
	{ { "r12", "r12d", "r12w", "r12b" }, REG(r12) },
	{ { "r13", "r13d", "r13w", "r13b" }, REG(r13) },
	{ { "r14", "r14d", "r14w", "r14b" }, REG(r14) },
	{ { "r15", "r15d", "r15w", "r15b" }, REG(r15) },
	{ { "rip", "", "", "" }, REG(rip) },
};

static const int arguments[] = { REG(rdi), REG(rsi), REG(rdx), REG(rcx), REG(r8), REG(r9) };
static const int go_arguments[] = { REG(rax), REG(rbx), REG(rcx), REG(rdi), REG(rsi),
				    REG(r8),  REG(r9),	REG(r10), REG(r11) };

int event_result(void)
{
	return REG(rax);
}

static int reg_named(const char *name, size_t len)
{
	for (size_t i = 0; i < SIZE_OF(regs); i++)
		for (size_t k = 0; k < 4; k++)
			if (len && strlen(regs[i].names[k]) == len &&
			    !memcmp(regs[i].names[k], name, len))
				return regs[i].at;
	return -1;
}

/* Takes "%rdi", and moves *at past the name. -1: no register that is known */
static int take_reg(const char **at)
{
	size_t len;
	int reg;

	if (**at != '%')
		return -1;
	len = strcspn(*at + 1, ",) ");
	reg = reg_named(*at + 1, len);
	*at += len + 1;
	return reg;
}

/* "-12(%rbp,%rax,4)" */
static int take_memory(const char *at, struct sf_event_site *ret)
{
	char *end;
	int base, index = -1;
	long scale = 1;

	ret->add = strtoll(at, &end, 0);
	if (*end != '(')
		return -EINVAL; /* a symbol */
	at = end + 1;
	base = take_reg(&at);
	if (*at == ',') {
		at++;
		index = take_reg(&at);
		if (index < 0)
			return -EINVAL;
	}
	if (*at == ',') {
		scale = strtol(at + 1, &end, 10);
		at = end;
	}
	if (base < 0 || *at != ')' || scale < 1 || scale > 8)
		return -EINVAL;
	ret->value = SF_VALUE_MEMORY;
	ret->at = (sf_u16)base;
	if (index >= 0) {
		ret->index = (sf_u16)index;
		ret->scale = (sf_u8)scale;
	}
	return 0;
}

static int take_operand(const char *at, struct sf_event_site *ret)
{
	int reg;

	if (*at == '$') {
		ret->value = SF_VALUE_CONST;
		ret->add = strtoll(at + 1, NULL, 0);
		return 0;
	}
	if (*at != '%')
		return take_memory(at, ret);
	reg = take_reg(&at);
	ret->value = SF_VALUE_HERE;
	ret->at = (sf_u16)reg;
	return reg < 0 ? -EINVAL : 0;
}

#else /* AArch64 */

/* struct pt_regs: x0 to x30, sp, pc (arch/arm64/include/asm/ptrace.h) */
#define REG(n) (8 * (n))

static const int arguments[] = { REG(0), REG(1), REG(2), REG(3), REG(4), REG(5), REG(6), REG(7) };
static const int go_arguments[] = { REG(0),  REG(1),  REG(2),  REG(3), REG(4),	REG(5),
				    REG(6),  REG(7),  REG(8),  REG(9), REG(10), REG(11),
				    REG(12), REG(13), REG(14), REG(15) };

int event_result(void)
{
	return REG(0);
}

static int take_reg(const char **at)
{
	char *end;
	long n;

	if (!strncmp(*at, "sp", 2)) {
		*at += 2;
		return REG(31);
	}
	if (**at != 'x' && **at != 'w')
		return -1;
	n = strtol(*at + 1, &end, 10);
	if (end == *at + 1 || n < 0 || n > 30)
		return -1;
	*at = end;
	return REG((int)n);
}

/* "[sp, 12]" or "[x1]" */
static int take_memory(const char *at, struct sf_event_site *ret)
{
	char *end = (char *)at;
	int base = take_reg(&at);

	if (base < 0)
		return -EINVAL;
	if (*at == ',')
		ret->add = strtoll(at + 1, &end, 0);
	else
		end = (char *)at;
	ret->value = SF_VALUE_MEMORY;
	ret->at = (sf_u16)base;
	return *end == ']' ? 0 : -EINVAL;
}

static int take_operand(const char *at, struct sf_event_site *ret)
{
	int reg;

	if (*at == '[')
		return take_memory(at + 1, ret);
	reg = take_reg(&at);
	if (reg >= 0) {
		ret->value = SF_VALUE_HERE;
		ret->at = (sf_u16)reg;
		return 0;
	}
	if (*at != '-' && (*at < '0' || *at > '9'))
		return -EINVAL;
	ret->value = SF_VALUE_CONST;
	ret->add = strtoll(at, NULL, 0);
	return 0;
}

#endif

int event_argument(unsigned int n, bool go)
{
	size_t most = go ? SIZE_OF(go_arguments) : SIZE_OF(arguments);

	return n < 1 || n > most ? -1 : go ? go_arguments[n - 1] : arguments[n - 1];
}

/* The next argument, "SIZE@OPERAND"; an operand in brackets may have spaces. NULL: none */
static const char *next_argument(const char *at)
{
	bool inside = false;

	for (; *at && (inside || *at != ' '); at++)
		inside = *at == '[' || (inside && *at != ']');
	while (*at == ' ')
		at++;
	return *at ? at : NULL;
}

int event_usdt_argument(const char *args, unsigned int n, struct sf_event_site *ret)
{
	const char *at = *args ? args : NULL;
	char *end;
	long size;

	while (at && --n)
		at = next_argument(at);
	if (!at)
		return -ENOENT;
	size = strtol(at, &end, 10);
	/* Operands of floating-point type have a letter after the size. */
	if (*end != '@' ||
	    (labs(size) != 1 && labs(size) != 2 && labs(size) != 4 && labs(size) != 8))
		return -EINVAL;
	ret->size = (sf_u8)labs(size);
	ret->is_signed = size < 0;
	return take_operand(end + 1, ret);
}
