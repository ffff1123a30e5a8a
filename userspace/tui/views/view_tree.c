/* SPDX-License-Identifier: BSD-2-Clause */
/* The call tree, from the processes down. */
#include "tui/tree.h"
#include "tui/view.h"

static const struct column_spec columns[] = {
	{ COL_TOTAL, "TOTAL%", 8, 8, 0, 0 },
	{ COL_SELF, "SELF%", 7, 7, 50, 0 },
	{ COL_NODE, "CALL TREE", 0, 0, 0, COLUMN_LEFT },
	{ COL_MODULE, "MODULE", 18, 28, 70, COLUMN_LEFT },
	{ 0 },
};

const struct view_spec view_tree = {
	.title = "Call tree",
	.finds = VIEW_FINDS_PROCESS | VIEW_FINDS_FUNCTION,
	.order = CALLTREE_TOP_DOWN,
	.rows = tree_rows,
	.zoom = tree_zoom,
	.name = tree_name,
	.annotates = true,
	.columns = columns,
	.cell = tree_cell,
};
