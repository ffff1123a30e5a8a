/* SPDX-License-Identifier: BSD-2-Clause */
#include "worker/privs.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int set(struct __user_cap_data_struct data[2], uint64_t permitted, uint64_t effective)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };

	for (int w = 0; w < 2; w++) {
		data[w].permitted &= (uint32_t)(permitted >> 32 * w);
		data[w].effective = data[w].permitted & (uint32_t)(effective >> 32 * w);
		data[w].inheritable = 0;
	}
	return syscall(SYS_capset, &head, data) ? -errno : 0;
}

int privs_keep(uint64_t keep)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];
	int err;

	if (syscall(SYS_capget, &head, data))
		return -errno;
	err = set(data, ~0ull, ~0ull); /* dropping from the bounding set needs CAP_SETPCAP */
	if (err)
		return err;
	for (int i = 0; i < 64 && prctl(PR_CAPBSET_READ, i, 0, 0, 0) >= 0; i++)
		if (!(keep >> i & 1))
			prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	err = set(data, keep, keep);
	if (err)
		return err;
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? -errno : 0;
}
