/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of the live views that need no window of samples. */
#include "test.h"
#include "tui/cgroup_name.h"
#include "tui/grid.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

TEST(grid_clips)
{
	struct grid g = { .unicode = true };
	char buf[64];

	EXPECT_EQ(grid_reset(&g, 6, 2), 0);
	EXPECT_EQ(grid_text(&g, 4, 0, 99, ROLE_TEXT, "abc"), 2);
	EXPECT_EQ(grid_text(&g, 0, 5, 99, ROLE_TEXT, "abc"), 0);
	/* Two wide ones */
	EXPECT_EQ(grid_text(&g, 0, 1, 5, ROLE_TEXT, "\xe6\xbc\xa2\xe5\xad\x97x!"), 5);
	grid_line(&g, 0, buf, sizeof(buf));
	EXPECT_STR(buf, "    ab");
	grid_line(&g, 1, buf, sizeof(buf));
	EXPECT_STR(buf, "\xe6\xbc\xa2\xe5\xad\x97x");
	EXPECT_EQ(grid_fit(&g, 0, 0, 4, ROLE_TEXT, "abcdefg"), 4);
	grid_line(&g, 0, buf, sizeof(buf));
	EXPECT_STR(buf, "abc…ab");
	grid_free(&g);
}

TEST(cgroup_names)
{
	char buf[64];

	EXPECT_STR(cgroup_name_short(NULL, "/", buf, sizeof(buf)), "/");
	EXPECT_STR(cgroup_name_short(NULL, "/system.slice/nginx.service", buf, sizeof(buf)),
		   "nginx.service");
	EXPECT_STR(cgroup_name_short(NULL, "/system.slice/docker-" ID ".scope", buf, sizeof(buf)),
		   "docker:0123456789ab");
	EXPECT_STR(cgroup_name_short(NULL, "/docker/" ID, buf, sizeof(buf)), "docker:0123456789ab");
	EXPECT_STR(cgroup_name_short(NULL, "/x/a\033[31mb", buf, sizeof(buf)), "a.[31mb");
	EXPECT_STR(cgroup_name_short(NULL, "/user.slice/deadbeef", buf, sizeof(buf)), "deadbeef");
	EXPECT_STR(cgroup_name_parse(NULL, "", buf, sizeof(buf)), "/");
	EXPECT_STR(cgroup_name_parse(NULL, "no colons\n::\n", buf, sizeof(buf)), "/");
	EXPECT_STR(cgroup_name_parse(NULL, "4:memory:/box/a\n1:name=systemd:/x/b\n0::/\n", buf,
				     sizeof(buf)),
		   "a");
	EXPECT_STR(cgroup_name_parse(NULL, "4:memory:/box/a\n0::/system.slice/c:d.service\n", buf,
				     sizeof(buf)),
		   "c:d.service");
}
