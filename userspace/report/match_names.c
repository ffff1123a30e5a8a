/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/match_names.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COMM_MAX 15 /* bytes that the kernel keeps of a program's name */

struct name {
	uint32_t id; /* its string */
	char *bare;  /* without its numbers */
	enum stack_side side;
};

static bool is_number(const char *s, const char *start)
{
	return isdigit((unsigned char)*s) ||
	       (*s == '.' && s > start && isdigit((unsigned char)s[-1]) &&
		isdigit((unsigned char)s[1]));
}

/* Writes '#' for each number: "foo-1.2" is "foo-#". */
static char *without_numbers(const char *name)
{
	char *ret = malloc(strlen(name) + 1), *to = ret;

	for (const char *s = name; ret && *s; s++)
		if (!is_number(s, name))
			*to++ = *s;
		else if (s == name || !is_number(s - 1, name))
			*to++ = '#';
	if (ret)
		*to = 0;
	return ret;
}

static int by_bare(const void *a, const void *b)
{
	const struct name *x = a, *y = b;
	int c = strcmp(x->bare, y->bare);

	return c ? c : (int)x->side - (int)y->side;
}

/* Which sides each string begins stacks of: bits by enum stack_side. The caller frees it. */
static uint8_t *sides_of(const struct stackset *ss)
{
	uint8_t *ret = calloc(strpool_count(ss->strings) + 1u, 1);

	for (size_t l = 0; ret && l < ss->leaves.n; l++)
		for (int side = 0; side < STACK_SIDES; side++)
			if (ss->values[l][side])
				ret[ss->groups.keys[ss->leaves.keys[l].b].a] |= (uint8_t)(1
											  << side);
	return ret;
}

/* Names that are on one side only. The caller frees *ret and what is in it. */
static int names_of_one_side(const struct stackset *ss, struct name **ret, size_t *ret_n)
{
	uint8_t *sides = sides_of(ss);
	size_t count = strpool_count(ss->strings), n = 0;

	*ret_n = 0;
	for (size_t i = 0; sides && i < count; i++)
		n += sides[i] == 1 << STACK_AFTER || sides[i] == 1 << STACK_BEFORE;
	*ret = calloc(n + 1, sizeof(**ret));
	for (size_t i = 0; sides && *ret && i < count; i++) {
		if (sides[i] != 1 << STACK_AFTER && sides[i] != 1 << STACK_BEFORE)
			continue;
		(*ret)[*ret_n] =
			(struct name){ (uint32_t)i,
				       without_numbers(strpool_str(ss->strings, (uint32_t)i)),
				       sides[i] == 1 << STACK_AFTER ? STACK_AFTER : STACK_BEFORE };
		if (!(*ret)[(*ret_n)++].bare)
			break;
	}
	free(sides);
	return sides && *ret && *ret_n == n && (!n || (*ret)[n - 1].bare) ? 0 : -ENOMEM;
}

/* The name that the kernel gives the program of a command. */
static const struct name *name_of_command(const struct stackset *ss, const struct name *list,
					  size_t n, const char *command, enum stack_side side)
{
	const char *slash = strrchr(command, '/');
	char comm[COMM_MAX + 1];

	snprintf(comm, sizeof(comm), "%s", slash ? slash + 1 : command);
	for (size_t i = 0; i < n; i++)
		if (list[i].side == side && !strcmp(strpool_str(ss->strings, list[i].id), comm))
			return &list[i];
	return NULL;
}

/* Fills to, by string. */
static void match(const struct stackset *ss, struct name *list, size_t n,
		  const char *const commands[STACK_SIDES], uint32_t *to)
{
	const struct name *before, *after;
	size_t end;

	before = name_of_command(ss, list, n, commands[STACK_BEFORE], STACK_BEFORE);
	after = name_of_command(ss, list, n, commands[STACK_AFTER], STACK_AFTER);
	if (before && after)
		to[before->id] = after->id;
	if (n)
		qsort(list, n, sizeof(*list), by_bare);
	for (size_t i = 0; i < n; i = end) {
		for (end = i + 1; end < n && !strcmp(list[end].bare, list[i].bare); end++)
			;
		/* AFTER comes first. */
		if (end == i + 2 && list[i].side == STACK_AFTER &&
		    list[i + 1].side == STACK_BEFORE && to[list[i + 1].id] == list[i + 1].id)
			to[list[i + 1].id] = list[i].id;
	}
}

int match_names(struct stackset *ss, const char *const commands[STACK_SIDES])
{
	const uint32_t count = strpool_count(ss->strings);
	uint32_t *to = calloc(count + 1u, sizeof(*to));
	struct name *list;
	size_t n;
	int err = names_of_one_side(ss, &list, &n);

	for (uint32_t i = 0; to && i < count; i++)
		to[i] = i;
	if (!err && !to)
		err = -ENOMEM;
	if (!err && n) {
		match(ss, list, n, commands, to);
		err = stackset_rename_groups(ss, to);
	}
	for (size_t i = 0; list && i < n; i++)
		free(list[i].bare);
	free(list);
	free(to);
	return err;
}
