/* SPDX-License-Identifier: BSD-2-Clause */
/* Folded lines: "comm;root;...;leaf COUNT". */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/text.h"
#include "base/vec.h"
#include "prof/read_stacks.h"

#define NAME_MAX_BYTES 2048

static int bad_line(struct read_error *why, size_t line, const char *what)
{
	snprintf(why->text, sizeof(why->text), "line %zu: %s", line, what);
	return -EINVAL;
}

/* Takes the text before the next ';', and the ';', from *text. False: nothing is left. */
static bool next_name(struct bytes *text, struct bytes *ret)
{
	struct bytes at = *text;

	if (!bytes_left(text))
		return false;
	if (bytes_find(&at, ";", 1)) {
		*ret = bytes_sub(text, text->pos, at.pos - text->pos);
		bytes_seek(text, at.pos + 1);
	} else {
		*ret = bytes_sub(text, text->pos, bytes_left(text));
		bytes_seek(text, text->len);
	}
	return true;
}

static size_t clean(char buf[NAME_MAX_BYTES], const struct bytes *name)
{
	return text_clean(buf, NAME_MAX_BYTES, name->len ? (const char *)name->base : "", name->len,
			  0);
}

/* Takes the count from the end of line: the text after the last space. */
static bool take_count(struct bytes *line, uint64_t *ret)
{
	struct bytes at = *line, last;
	const uint8_t *text;
	char digits[24];
	size_t n;

	if (!bytes_find(&at, " ", 1))
		return false;
	do {
		last = at;
		bytes_skip(&at, 1);
	} while (bytes_find(&at, " ", 1));
	*line = bytes_sub(line, 0, last.pos);
	bytes_skip(&last, 1);
	n = bytes_left(&last);
	text = bytes_take(&last, n);
	if (!text || !n || n >= sizeof(digits))
		return false;
	memcpy(digits, text, n);
	digits[n] = 0;
	return num_u64(digits, 0, UINT64_MAX, ret) == 0;
}

static int read_line(struct bytes line, size_t number, struct stackset *ss, enum stack_side side,
		     struct read_error *why)
{
	static const struct stack_labels none;
	const struct stack_choice *c = &ss->choice;
	uint32_t frames[READ_STACKS_DEPTH + 1];
	char comm[NAME_MAX_BYTES], name[NAME_MAX_BYTES], buf[STACK_LABEL_BYTES];
	const char *root;
	struct bytes part;
	bool waker = false;
	uint64_t count;
	size_t n = 0;
	int err;

	if (!take_count(&line, &count))
		return bad_line(why, number, "no count at its end");
	if (!next_name(&line, &part))
		return bad_line(why, number, "no stack");
	clean(comm, &part);
	root = stack_choice_root(c, &none, comm, "", buf);
	if (root != comm) {
		err = stackset_frame(ss, comm, strlen(comm), "", STACK_NOTE, &frames[n++]);
		if (err)
			return err;
	}
	while (next_name(&line, &part)) {
		size_t len = clean(name, &part);
		/* A waker's comm */
		enum stack_kind kind = waker ? STACK_NOTE : stack_kind_of_name(name, &len);

		waker = !strcmp(name, STACK_WAKER_MARK);
		if (n - (root != comm) == READ_STACKS_DEPTH)
			return bad_line(why, number, "too many frames");
		err = ss->file && kind != STACK_NOTE
			      ? stackset_no_place(ss, kind, STACK_NO_ADDRESS, &frames[n++])
			      : stackset_frame(ss, name, len, "", kind, &frames[n++]);
		if (err)
			return err;
	}
	if (!stack_choice_takes(c, &none, comm))
		return 0;
	return stackset_add(ss, root, 0, frames, n, side, count);
}

int read_folded(struct bytes text, struct stackset *ss, enum stack_side side,
		struct stacks_meta *meta, struct read_error *why)
{
	size_t number = 0;
	int err = 0;

	strcpy(meta->unit, "samples");
	while (bytes_left(&text) && !err) {
		struct bytes end = text, line;

		if (!bytes_find(&end, "\n", 1))
			bytes_seek(&end, end.len);
		line = bytes_sub(&text, text.pos, end.pos - text.pos);
		bytes_seek(&text, end.pos < text.len ? end.pos + 1 : text.len);
		number++;
		if (line.len)
			err = read_line(line, number, ss, side, why);
	}
	return err;
}
