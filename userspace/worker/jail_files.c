/* SPDX-License-Identifier: BSD-2-Clause */
#include "worker/jail_files.h"

#include <errno.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* All that the first version of Landlock (Linux 5.13) knows. */
#define ALL_ACCESS ((LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1)

int jail_files(int dir)
{
	struct landlock_ruleset_attr all = { .handled_access_fs = ALL_ACCESS };
	struct landlock_path_beneath_attr below = {
		.allowed_access = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR,
		.parent_fd = dir,
	};
	int rules = (int)syscall(SYS_landlock_create_ruleset, &all, sizeof(all), 0), err = 0;

	if (rules < 0)
		return -errno;
	if (syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &below, 0) ||
	    syscall(SYS_landlock_restrict_self, rules, 0))
		err = -errno;
	close(rules);
	return err;
}
