/* SPDX-License-Identifier: BSD-2-Clause */
#include "tui/rows.h"
#include "tui/view.h"

static const struct view_spec view_functions = {
	.title = "Functions",
	.finds = VIEW_FINDS_FUNCTION | VIEW_FINDS_MODULE,
	.census = CENSUS_FUNCTIONS,
	.rows = rows_functions,
	.draw = draw_table,
	.zoom = zoom_function_row,
	.columns = function_columns,
	.cell = draw_function_cell,
	.compare = compare_functions,
	.self = self_of_function,
	.then = then_function,
	.name = name_of_function,
};

static const struct view_spec view_processes = {
	.title = "Processes",
	.finds = VIEW_FINDS_PROCESS,
	.census = CENSUS_PROCESSES,
	.rows = rows_processes,
	.draw = draw_table,
	.zoom = zoom_process_row,
	.columns = process_columns,
	.cell = draw_process_cell,
	.compare = compare_processes,
	.self = self_of_process,
	.then = then_process,
	.name = name_of_process,
	.add_parts = rows_process_parts,
};

static const struct view_spec view_modules = {
	.title = "Modules",
	.finds = VIEW_FINDS_MODULE,
	.census = CENSUS_MODULES,
	.rows = rows_modules,
	.draw = draw_table,
	.zoom = zoom_module_row,
	.columns = module_columns,
	.cell = draw_module_cell,
	.compare = compare_modules,
	.self = self_of_module,
	.then = then_module,
	.name = name_of_module,
};

static const struct view_spec view_offcpu = {
	.title = "Off-CPU",
	.finds = VIEW_FINDS_PROCESS | VIEW_FINDS_FUNCTION,
	.rows = rows_blocked,
	.draw = draw_table,
	.zoom = zoom_blocked_row,
	.columns = offcpu_columns,
	.cell = draw_blocked_cell,
	.compare = compare_blocked,
	.self = self_of_blocked,
	.then = then_blocked,
	.name = name_of_blocked,
	.add_parts = rows_blocked_parts,
};

static const struct view_spec view_wall = {
	.title = "Wall",
	.finds = VIEW_FINDS_PROCESS,
	.rows = rows_wall,
	.draw = draw_table,
	.zoom = zoom_wall_row,
	.columns = wall_columns,
	.cell = draw_wall_cell,
	.compare = compare_wall,
	.name = rows_wall_name,
	.add_parts = rows_wall_parts,
};

static const struct view_spec view_tree = {
	.title = "Call tree",
	.finds = VIEW_FINDS_PROCESS | VIEW_FINDS_FUNCTION,
	.order = CALLTREE_TOP_DOWN,
	.rows = rows_tree,
	.draw = draw_table,
	.zoom = zoom_tree_row,
	.name = name_of_node,
	.columns = tree_columns,
	.cell = draw_tree_cell,
};

static const struct view_spec view_callers = {
	.title = "Callers",
	.finds = VIEW_FINDS_PROCESS | VIEW_FINDS_FUNCTION,
	.order = CALLTREE_BOTTOM_UP,
	.rows = rows_tree,
	.draw = draw_table,
	.zoom = zoom_tree_row,
	.name = name_of_node,
	.columns = caller_columns,
	.cell = draw_tree_cell,
};

static const struct view_spec view_flame = {
	.title = "Flame",
	.finds = VIEW_FINDS_PROCESS | VIEW_FINDS_FUNCTION,
	.order = CALLTREE_TOP_DOWN,
	.rows = rows_flame,
	.draw = draw_flame,
	.zoom = zoom_tree_row,
	.name = name_of_node,
};

const struct view_spec *view_at(enum view view)
{
	static const struct view_spec *const views[VIEW_MAX] = {
#define VIEW(id, group, name) [VIEW_##id] = &view_##name,
#include "tui/views.def"
#undef VIEW
	};

	return views[view];
}

const char *view_name(enum view view)
{
	static const char *const names[VIEW_MAX] = {
#define VIEW(id, group, name) [VIEW_##id] = #name,
#include "tui/views.def"
#undef VIEW
	};

	return names[view];
}
