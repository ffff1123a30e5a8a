/* SPDX-License-Identifier: BSD-2-Clause */
/* Which stacks are shown: for writing them to files. */
#include <stdio.h>

#include "tui/rows.h"
#include "tui/view.h"

bool ui_shows_stack(const struct ui *ui, enum view view, struct profile *p, size_t i)
{
	const uint32_t *ids = profile_symbols(p, i, ui->symbols);
	bool blocked = view_at(view)->time == TIME_BLOCKED;
	struct profile_stack s;

	profile_stack(p, i, &s);
	if (!ids || !selection_takes(&ui->sel, &s, ids, ui->symbols))
		return false;
	if (blocked && s.state == SF_OFF_R)
		return false;
	if (blocked && ui->sel.no_idle && blocked_is_idle(&s, ids, ui->symbols))
		return false;
	return !ui->filter[0] || rows_filter_stack(ui, view_at(view)->finds, p, i);
}

const char *ui_describe(const struct ui *ui, enum view view, char *dst, size_t cap)
{
	size_t n = 0;

	dst[0] = 0;
#define ADD(...)                                                              \
	do {                                                                  \
		if (n < cap)                                                  \
			n += (size_t)snprintf(dst + n, cap - n, __VA_ARGS__); \
	} while (0)
	for (unsigned int i = 0; i < ui->sel.n; i++)
		ADD("%s%s", i ? " > " : "", ui->sel.levels[i].label);
	if (ui->sel.cpu1 && view_at(view)->time != TIME_BLOCKED)
		ADD("%sCPU %u", n ? ", " : "", ui->sel.cpu1 - 1);
	if (ui->sel.uid1)
		ADD("%suser %s", n ? ", " : "", ui->user);
	if (ui->filter[0])
		ADD("%sfilter '%s'", n ? ", " : "", ui->filter);
	if (ui->sel.user_only)
		ADD("%swithout kernel", n ? ", " : "");
#undef ADD
	return dst;
}
