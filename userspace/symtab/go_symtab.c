/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions of a Go program, from the table that its runtime uses (elf/go_table.h). */
#include <errno.h>

#include "elf/go_table.h"
#include "symtab/symtab_builder.h"

static int add_functions(struct builder *b, const struct go_table *t)
{
	int err = 0;

	for (uint64_t i = 0; i < t->count && !err; i++) {
		struct cand c = { 0 };
		struct go_func f;

		if (!go_table_func(t, i, &f) || !builder_code_offset(b, f.start, &c.off))
			continue;
		c.name = f.name + 1; /* see below */
		c.size = f.end - f.start > SYMTAB_SIZE ? SYMTAB_SIZE : (uint32_t)(f.end - f.start);
		err = builder_add(b, &c);
	}
	return err;
}

int builder_read_go(struct builder *b)
{
	struct go_table t;
	int err = go_table_open(b->img, &t);

	if (err == -ENOENT)
		return 0;
	if (!err && t.count <= SYMTAB_MAX) {
		/*
		 * Name 0 means no name, but Go puts a name at offset 0. So the string table starts
		 * one byte early.
		 */
		b->str[0] = (struct string_table){ t.offset + t.names - 1, t.size - t.names + 1 };
		if (b->str[0].size > NAME_DYNSTR - 2)
			b->str[0].size = NAME_DYNSTR - 2;
		err = add_functions(b, &t);
	}
	go_table_close(&t);
	return err == -EIO ? 0 : err;
}
