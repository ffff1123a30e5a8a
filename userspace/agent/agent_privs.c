/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/agent_privs.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <seccomp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "kern/caps.h"
#include "worker/privs.h"

int privs_user(const char *user, uid_t *uid, gid_t *gid)
{
	const struct passwd *pw = getpwnam(user);

	if (!pw)
		return -ENOENT;
	*uid = pw->pw_uid;
	*gid = pw->pw_gid;
	return 0;
}

static int become(const char *user, char *err, size_t cap)
{
	uid_t uid;
	gid_t gid;

	if (privs_user(user, &uid, &gid)) {
		snprintf(err, cap, "user '%s' does not exist", user);
		return -ENOENT;
	}
	if (prctl(PR_SET_KEEPCAPS, 1) || setgroups(0, NULL) || setresgid(gid, gid, gid) ||
	    setresuid(uid, uid, uid)) {
		snprintf(err, cap, "cannot switch to user '%s': %s", user, strerror(errno));
		return -EPERM;
	}
	prctl(PR_SET_DUMPABLE, 1); /* otherwise root owns /proc/self */
	return 0;
}

int privs_drop(const char *user, char *err, size_t cap)
{
	/* read first: changing the user clears the effective set for a moment */
	uint64_t keep = caps_opening_mask();
	int rc = user ? become(user, err, cap) : 0;

	if (rc)
		return rc;
	rc = privs_keep(keep);
	if (rc)
		snprintf(err, cap, "cannot drop capabilities: %s", strerror(-rc));
	return rc;
}

/*
 * System calls that an attacker would need in a compromised agent. A denied call fails with EPERM,
 * so that an unexpected call from a library does not end the agent.
 */
static const char *const denied[] = {
	"execve",
	"execveat",
	"fork",
	"vfork",
	"ptrace",
	"process_vm_readv",
	"process_vm_writev",
	"kcmp",
	"pidfd_getfd",
	"mount",
	"umount2",
	"pivot_root",
	"chroot",
	"move_mount",
	"open_tree",
	"fsopen",
	"fsconfig",
	"fsmount",
	"fspick",
	"mount_setattr",
	"unshare",
	"setns",
	"init_module",
	"finit_module",
	"delete_module",
	"kexec_load",
	"kexec_file_load",
	"reboot",
	"setuid",
	"setgid",
	"setreuid",
	"setregid",
	"setresuid",
	"setresgid",
	"setfsuid",
	"setfsgid",
	"setgroups",
	"keyctl",
	"add_key",
	"request_key",
	"userfaultfd",
	"io_uring_setup",
	"io_uring_enter",
	"io_uring_register",
	"personality",
	"swapon",
	"swapoff",
	"sethostname",
	"setdomainname",
	"settimeofday",
	"clock_settime",
	"clock_adjtime",
	"adjtimex",
	"stime",
	"iopl",
	"ioperm",
	"modify_ldt",
	"acct",
	"quotactl",
	"syslog",
	"vhangup",
	"lookup_dcookie",
	"uselib",
	"nfsservctl",
	"mknod",
	"mknodat",
	"link",
	"linkat",
	"symlink",
	"symlinkat",
	"setxattr",
	"lsetxattr",
	"fsetxattr",
	"removexattr",
	"process_madvise",
	"migrate_pages",
	"move_pages",
	"mbind",
	"set_mempolicy",
	"fanotify_init",
	"landlock_create_ruleset",
};

int privs_filter(void)
{
	scmp_filter_ctx f = seccomp_init(SCMP_ACT_ALLOW);
	int rc = f ? 0 : -ENOMEM;

	for (size_t i = 0; i < sizeof(denied) / sizeof(denied[0]) && !rc; i++) {
		int nr = seccomp_syscall_resolve_name(denied[i]);

		if (nr != __NR_SCMP_ERROR)
			rc = seccomp_rule_add(f, SCMP_ACT_ERRNO(EPERM), nr, 0);
		if (rc == -EDOM || rc == -EINVAL)
			rc = 0; /* not on this architecture */
	}
	/* Allow new threads, but no new processes: 0x10000 is CLONE_THREAD. */
	if (!rc)
		rc = seccomp_rule_add(f, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
				      SCMP_A0(SCMP_CMP_MASKED_EQ, 0x00010000, 0));
	/* Seccomp cannot see the flags of clone3. After ENOSYS glibc uses clone. */
	if (!rc)
		rc = seccomp_rule_add(f, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	if (!rc)
		rc = seccomp_attr_set(f, SCMP_FLTATR_CTL_TSYNC, 1);
	if (!rc)
		rc = seccomp_load(f);
	if (f)
		seccomp_release(f);
	return rc;
}
