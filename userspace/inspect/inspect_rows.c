/* SPDX-License-Identifier: BSD-2-Clause */
/* inspect --rows and --compare: lines about rows. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "inspect/inspect.h"
#include "readers/code_rows.h"
#include "readers/row_compare.h"
#include "rows/row_text.h"
#include "symtab/elf_symtab.h"

int inspect_rows(struct inspected *in, unsigned int which)
{
	struct row_stream stream;
	char line[ROW_TEXT_MAX];
	struct row row;
	const struct code_rows_opts opts = { .whole = which == ROWS_CODE &&
						      !(in->file.has_go && in->file.debug_frame) };
	int more = which & ROWS_CODE ? code_rows(&in->file, &opts) : 0;

	if (more)
		return more;
	row_stream_open(&stream, &in->file, which, &in->diag);
	while ((more = row_stream_next(&stream, &row)) > 0) {
		size_t len = row_text(line, in->file.arch, &row);

		line[len++] = '\n';
		if (fwrite_unlocked(line, 1, len, stdout) != len) {
			more = -EIO;
			break;
		}
	}
	row_stream_close(&stream);
	return more;
}

#define FUNCTION_MAX 1024 /* bytes of a function's name, with its NUL */

struct clash_printer {
	const struct inspected *in;
	struct symtab *symbols;
};

/*
 * "name+0x12", not demangled: a demangler may never end (symtab/sym_names.h). "?": no function at
 * the address.
 */
static void function_at(const struct clash_printer *p, uint64_t addr, char *buf, size_t cap)
{
	char raw[SYMTAB_NAME_MAX], name[FUNCTION_MAX];
	struct symtab_hit hit;
	uint64_t offset;

	snprintf(buf, cap, "?");
	if (!elf_image_vaddr_to_offset(&p->in->file.img, addr, &offset) ||
	    !symtab_find(p->symbols, offset, &hit) ||
	    symtab_name(p->symbols, &hit, raw, sizeof(raw)) < 0)
		return;
	text_clean(name, sizeof(name), raw, strlen(raw), 0);
	snprintf(buf, cap, "%s%s+0x%" PRIx64, name, hit.plt ? "@plt" : "", offset - hit.start);
}

static void print_clash(void *ctx, const struct row_clash *clash)
{
	/* The name of each bit of ROW_* */
	static const char *const names[] = { "cfa", "ra", "fp", "pac" };
	const struct clash_printer *p = ctx;
	char where[FUNCTION_MAX + 32], sf[ROW_TEXT_MAX], eh[ROW_TEXT_MAX], columns[32] = "";
	size_t n = 0;

	for (unsigned int i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (clash->columns & 1u << i)
			n += (size_t)snprintf(columns + n, sizeof(columns) - n, "%s%s",
					      n ? "," : "", names[i]);
	function_at(p, clash->start, where, sizeof(where));
	row_text_rules(sf, p->in->file.arch, clash->sframe);
	row_text_rules(eh, p->in->file.arch, clash->eh);
	printf("%016" PRIx64 " %016" PRIx64 " %s: %s: sframe %s | eh_frame %s\n", clash->start,
	       clash->end, where, columns, sf, eh);
}

int inspect_compare(struct inspected *in, bool *ret_clash)
{
	struct clash_printer p = { .in = in };
	struct row_compare_totals totals;
	int err = symtab_build(&in->file.img, NULL, UINT32_MAX, &p.symbols);

	if (err)
		return err;
	err = row_compare(&in->file, print_clash, &p, &totals, &in->diag);
	symtab_free(p.symbols);
	if (err)
		return err;
	printf("%s: %" PRIu64 " of %" PRIu64 " .sframe rows compared with %s, %" PRIu64
	       " disagree\n",
	       in->name, totals.compared, totals.rows,
	       in->file.has_eh ? in->file.eh.name : ".eh_frame (none)", totals.clashing);
	*ret_clash = totals.clashing != 0;
	return 0;
}
