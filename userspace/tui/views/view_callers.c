/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions by their own samples, and below each one its callers. */
#include "tui/tree.h"
#include "tui/view.h"

static const struct column_spec columns[] = {
	{ COL_TOTAL, "TOTAL%", 8, 8, 0, 0 },
	{ COL_PART, "PART%", 7, 7, 50, 0 },
	{ COL_NODE, "FUNCTION, ITS CALLERS BELOW", 0, 0, 0, COLUMN_LEFT },
	{ COL_MODULE, "MODULE", 18, 28, 70, COLUMN_LEFT },
	{ 0 },
};

const struct view_spec view_callers = {
	.title = "Callers",
	.finds = VIEW_FINDS_PROCESS | VIEW_FINDS_FUNCTION,
	.order = CALLTREE_BOTTOM_UP,
	.rows = tree_rows,
	.zoom = tree_zoom,
	.name = tree_name,
	.annotates = true,
	.columns = columns,
	.cell = tree_cell,
};
