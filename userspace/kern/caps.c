/* SPDX-License-Identifier: BSD-2-Clause */
#include "kern/caps.h"

#include <inttypes.h>
#include <linux/capability.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "worker/privs.h"

static const struct cap_need needs[] = {
	{ "CAP_BPF", CAP_BPF, "load BPF programs" },
	{ "CAP_PERFMON", CAP_PERFMON, "open perf events, read kernel memory from BPF" },
	{ "CAP_SYS_PTRACE", CAP_SYS_PTRACE, "see other users' processes" },
	{ "CAP_CHECKPOINT_RESTORE", CAP_CHECKPOINT_RESTORE,
	  "open mapped files through /proc/PID/map_files" },
	{ "CAP_DAC_READ_SEARCH", CAP_DAC_READ_SEARCH, "read mapped files of other users" },
	{ "CAP_SYSLOG", CAP_SYSLOG, "read kernel symbol addresses" },
};

const struct cap_need *caps_needed(unsigned int i)
{
	return i < sizeof(needs) / sizeof(needs[0]) ? &needs[i] : NULL;
}

/* include/linux/proc_ns.h: the inode number of the first user namespace, the host's */
#define FIRST_USER_NS 0xeffffffdu

bool caps_in_user_namespace(void)
{
	struct stat st;

	return !stat("/proc/self/ns/user", &st) && st.st_ino != FIRST_USER_NS;
}

static uint64_t effective_caps(void)
{
	uint64_t effective = 0;
	char line[256];
	FILE *f = caps_in_user_namespace() ? NULL : fopen("/proc/self/status", "re");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "CapEff: %" SCNx64, &effective) == 1)
			break;
	if (f)
		fclose(f);
	return effective;
}

bool caps_have(int number)
{
	uint64_t effective = effective_caps();

	/* CAP_SYS_ADMIN still implies these, as it did before they were split from it. */
	if ((number == CAP_BPF || number == CAP_PERFMON || number == CAP_CHECKPOINT_RESTORE) &&
	    effective >> CAP_SYS_ADMIN & 1)
		return true;
	return effective >> number & 1;
}

void caps_explain(char *text, size_t cap, const char *refused)
{
	char missing[160] = "";
	const struct cap_need *need;
	size_t n = 0;

	for (unsigned int i = 0; (need = caps_needed(i)); i++)
		if (!caps_have(need->number) && n < sizeof(missing))
			n += (size_t)snprintf(missing + n, sizeof(missing) - n, "%s%s",
					      n ? "," : "", need->name);
	if (caps_in_user_namespace())
		snprintf(text, cap,
			 "no permission: %s was refused; this is not the host's user namespace, "
			 "and its capabilities do not count for the kernel. Run it outside "
			 "(rootless containers cannot)",
			 refused);
	else if (!n)
		snprintf(text, cap,
			 "no permission: %s was refused although no capability is missing "
			 "(check kernel.perf_event_paranoid (above 2?), lockdown, and the "
			 "container's seccomp filter)",
			 refused);
	else
		snprintf(text, cap,
			 "no permission: %s was refused; missing: %s. "
			 "Run it as root (sudo), or grant them once: sudo setcap "
			 "cap_bpf,cap_perfmon,cap_sys_ptrace,cap_checkpoint_restore,"
			 "cap_dac_read_search,cap_syslog+ep sfbpf",
			 refused, missing);
}

uint64_t caps_needed_mask(void)
{
	const uint64_t most = PRIVS_CAP(CAP_BPF) | PRIVS_CAP(CAP_PERFMON) |
			      PRIVS_CAP(CAP_CHECKPOINT_RESTORE);
	const struct cap_need *need;
	uint64_t keep = 0;

	for (unsigned int i = 0; (need = caps_needed(i)); i++)
		keep |= PRIVS_CAP(need->number);
	/*
	 * The kernel has no CAP_BPF and CAP_PERFMON, or they are not in the set: keep CAP_SYS_ADMIN
	 * instead.
	 */
	if ((effective_caps() & most) != most)
		keep |= PRIVS_CAP(CAP_SYS_ADMIN);
	return keep;
}

bool caps_events_restricted(void)
{
	FILE *f = fopen("/proc/sys/kernel/perf_event_paranoid", "re");
	int paranoid = 0;
	bool above = f && fscanf(f, "%d", &paranoid) == 1 && paranoid > 2;

	if (f)
		fclose(f);
	return above;
}

uint64_t caps_opening_mask(void)
{
	/* CAP_SETPCAP: to remove CAP_SYS_ADMIN from the bounding set afterwards. */
	return caps_needed_mask() |
	       (caps_events_restricted() ? PRIVS_CAP(CAP_SYS_ADMIN) | PRIVS_CAP(CAP_SETPCAP) : 0);
}

int caps_keep_needed(uint64_t more)
{
	return privs_keep(caps_needed_mask() | more);
}
