/* SPDX-License-Identifier: BSD-2-Clause */
#include "kern/host_gaps.h"

#include <linux/capability.h>
#include <stdio.h>
#include <sys/stat.h>

#include "kern/caps.h"

/* include/linux/proc_ns.h: inode numbers of the first namespaces, the host's */
#define FIRST_CGROUP_NS 0xeffffffbu
#define FIRST_PID_NS	0xeffffffcu

static bool is_not(const char *path, ino_t first)
{
	struct stat st;

	return !stat(path, &st) && st.st_ino != first;
}

static bool in_pid_namespace(void)
{
	return is_not("/proc/self/ns/pid", FIRST_PID_NS);
}

static bool in_cgroup_namespace(void)
{
	return is_not("/proc/self/ns/cgroup", FIRST_CGROUP_NS);
}

static bool no_ptrace(void)
{
	return !caps_have(CAP_SYS_PTRACE);
}

static bool no_map_files(void)
{
	return !caps_have(CAP_CHECKPOINT_RESTORE);
}

static bool no_read_search(void)
{
	return !caps_have(CAP_DAC_READ_SEARCH);
}

static const struct {
	struct host_gap pub;
	bool (*open)(void);
} gaps[] = {
	[HOST_GAP_PID_NAMESPACE] = { { "pid_namespace",
				       "this is not the host's PID namespace: the files of most "
				       "processes are not found, so their stacks are incomplete",
				       "hostPID: true (Kubernetes), --pid=host (docker, podman)" },
				     in_pid_namespace },
	{ { "cgroup_namespace",
	    "this is not the host's cgroup namespace: services and containers are not recognized",
	    "--cgroupns=host (docker, podman), privileged: true (Kubernetes)" },
	  in_cgroup_namespace },
	{ { "cap_sys_ptrace", "CAP_SYS_PTRACE is missing: only this user's processes are seen",
	    "add the capability SYS_PTRACE" },
	  no_ptrace },
	{ { "cap_checkpoint_restore",
	    "CAP_CHECKPOINT_RESTORE is missing: mapped files are opened by their paths, not those "
	    "that were replaced or deleted",
	    "add the capability CHECKPOINT_RESTORE" },
	  no_map_files },
	{ { "cap_dac_read_search",
	    "CAP_DAC_READ_SEARCH is missing: files that this user may not read have no tables",
	    "add the capability DAC_READ_SEARCH" },
	  no_read_search },
};

const struct host_gap *host_gap_at(size_t i)
{
	return i < sizeof(gaps) / sizeof(gaps[0]) ? &gaps[i].pub : NULL;
}

bool host_gap_open(size_t i)
{
	return gaps[i].open();
}
