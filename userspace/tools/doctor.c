/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sfbpf doctor: checks the requirements of a recording one by one, with a fix for each. Then it
 * records a thread whose stack is known.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/exitcode.h"
#include "base/num.h"
#include "cli/options.h"
#include "cli/tools.h"
#include "kern/caps.h"
#include "kern/host_gaps.h"
#include "kern/perf_event.h"
#include "kern/versions.h"
#include "tools/selftest.h"
#include "worker/jail.h"

#define KERNEL_MIN_MAJOR 6
#define KERNEL_MIN_MINOR 1 /* maple tree of mappings */

enum level { LEVEL_OK, LEVEL_WARN, LEVEL_FAIL };

struct doctor {
	int rc;		/* exit code */
	bool told_caps; /* the setcap command has been printed */
	char *btf;	/* the kernel's BTF; NULL: not readable */
	size_t btf_len;
	struct refusal refused; /* found by the self-test; empty if all programs were accepted */
};

static void say(enum level level, const char *what, const char *fix, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* One line. fix may be NULL. */
static void say(enum level level, const char *what, const char *fix, const char *fmt, ...)
{
	static const char *const names[] = { "ok", "warn", "FAIL" };
	va_list args;

	printf("%-4s  %s: ", names[level], what);
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	if (fix)
		printf(" (fix: %s)", fix);
	putchar('\n');
	fflush(stdout);
}

/* EXIT_UNSUPPORTED takes precedence, because no permission fixes a missing kernel feature. */
static void verdict(struct doctor *d, int rc)
{
	if (rc == EXIT_UNSUPPORTED || !d->rc)
		d->rc = rc;
}

/* The first line of a file, without its newline. False: cannot be read. */
static bool read_line(const char *path, char *buf, size_t cap)
{
	FILE *f = fopen(path, "re");
	bool ok = f && fgets(buf, (int)cap, f);

	if (f)
		fclose(f);
	if (ok)
		buf[strcspn(buf, "\n")] = 0;
	return ok;
}

static bool read_number(const char *path, long *ret)
{
	char line[64], *end;

	if (!read_line(path, line, sizeof(line)))
		return false;
	*ret = strtol(line, &end, 10);
	return end != line;
}

/* ---- This binary ---- */

static void check_build(void)
{
	say(LEVEL_OK, "build", NULL, "sfbpf %s, built by %s", SFBPF_VERSION, versions_cc());
	say(LEVEL_OK, "BPF programs", NULL, "built by %s", versions_clang());
	say(LEVEL_OK, "libbpf", NULL, "%s, built with %s", versions_libbpf_now(),
	    versions_libbpf());
}

/* ---- The kernel ---- */

static void check_kernel(struct doctor *d)
{
	unsigned int major = 0, minor = 0;
	struct utsname u;

	if (uname(&u)) {
		say(LEVEL_WARN, "kernel", NULL, "%s", strerror(errno));
		return;
	}
	sscanf(u.release, "%u.%u", &major, &minor);
	if (strcmp(u.machine, "x86_64") && strcmp(u.machine, "aarch64")) {
		say(LEVEL_FAIL, "kernel", "use an x86-64 or AArch64 machine",
		    "Linux %s on %s, an unsupported architecture", u.release, u.machine);
		verdict(d, EXIT_UNSUPPORTED);
	} else if (major < KERNEL_MIN_MAJOR ||
		   (major == KERNEL_MIN_MAJOR && minor < KERNEL_MIN_MINOR)) {
		say(LEVEL_FAIL, "kernel", "update the kernel", "Linux %s, older than %d.%d",
		    u.release, KERNEL_MIN_MAJOR, KERNEL_MIN_MINOR);
		verdict(d, EXIT_UNSUPPORTED);
	} else {
		say(LEVEL_OK, "kernel", NULL, "Linux %s on %s", u.release, u.machine);
	}
}

#define BTF_MAX (64u << 20)

static void check_btf(struct doctor *d)
{
	const char *path = "/sys/kernel/btf/vmlinux";
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	ssize_t n;

	if (fd >= 0 && !fstat(fd, &st) && st.st_size > 0 && st.st_size <= BTF_MAX)
		d->btf = malloc((size_t)st.st_size);
	while (d->btf && d->btf_len < (size_t)st.st_size &&
	       (n = read(fd, d->btf + d->btf_len, (size_t)st.st_size - d->btf_len)) > 0)
		d->btf_len += (size_t)n;
	if (fd >= 0)
		close(fd);
	if (d->btf_len) {
		say(LEVEL_OK, "BTF", NULL, "%s, %.1f MB", path, (double)d->btf_len / 1e6);
		return;
	}
	say(LEVEL_FAIL, "BTF", "a kernel built with CONFIG_DEBUG_INFO_BTF=y",
	    "%s cannot be read: %s", path, strerror(errno));
	verdict(d, EXIT_UNSUPPORTED);
}

/* Whether a type, function or enumerator is in the BTF, where names are NUL-terminated strings. */
static bool kernel_knows(const struct doctor *d, const char *name)
{
	char pattern[64];
	int n = snprintf(pattern + 1, sizeof(pattern) - 1, "%s", name);

	pattern[0] = 0;
	return d->btf && memmem(d->btf, d->btf_len, pattern, (size_t)n + 2);
}

static void check_features(struct doctor *d)
{
	static const struct {
		const char *what, *btf_name, *since;
		bool needed;
		const char *use;
	} features[] = {
		{ "ring buffer", "BPF_MAP_TYPE_RINGBUF", "5.8", true, "transports samples" },
		{ "bpf_loop", "BPF_FUNC_loop", "5.17", true, "walks stacks of hundreds of frames" },
		{ "maple tree", "ma_root", "6.1", true, "finds the mapping of an address" },
		{ "file iterator", "bpf_iter__task_vma", "5.12", true,
		  "finds the files of running processes" },
		{ "exec tracepoint", "btf_trace_sched_process_exec", "5.5", false,
		  "loads a new program's tables early" },
		{ "bpf_rdonly_cast", "bpf_rdonly_cast", "6.2", false,
		  "reads kernel memory without copying" },
	};

	for (size_t i = 0; d->btf && i < sizeof(features) / sizeof(features[0]); i++) {
		char fix[64];

		if (kernel_knows(d, features[i].btf_name)) {
			say(LEVEL_OK, features[i].what, NULL, "%s", features[i].use);
			continue;
		}
		snprintf(fix, sizeof(fix), "Linux %s or newer", features[i].since);
		say(features[i].needed ? LEVEL_FAIL : LEVEL_WARN, features[i].what, fix,
		    "missing in this kernel: %s", features[i].use);
		if (features[i].needed)
			verdict(d, EXIT_UNSUPPORTED);
	}
}

static void check_jit(void)
{
	long on;

	if (read_number("/proc/sys/net/core/bpf_jit_enable", &on) && !on)
		say(LEVEL_WARN, "BPF JIT", "sysctl net.core.bpf_jit_enable=1",
		    "off: samples cost ten times as much");
	else
		say(LEVEL_OK, "BPF JIT", NULL, "on");
}

/* BPF memory is charged to the cgroup, not to memlock, since Linux 5.11. */
static void check_memlock(void)
{
	say(LEVEL_OK, "memlock", NULL, "no limit applies: BPF memory is charged to the cgroup");
}

/* ---- Permissions ---- */

/* The fix for missing capabilities, in full only once. */
static const char *grant(struct doctor *d)
{
	const char *fix = caps_in_user_namespace()
				  ? "run it in the host's user namespace: capabilities do not "
				    "count in this one"
				  : "run as root, or once: setcap "
				    "cap_bpf,cap_perfmon,cap_sys_ptrace,cap_checkpoint_restore,"
				    "cap_dac_read_search,cap_syslog+ep sfbpf";

	if (d->told_caps)
		return "as above";
	d->told_caps = true;
	return fix;
}

/* Recording is impossible without these; without the others it is less complete. */
static bool cap_is_vital(int number)
{
	return number == CAP_BPF || number == CAP_PERFMON || number == CAP_CHECKPOINT_RESTORE;
}

static void check_caps(struct doctor *d)
{
	const struct cap_need *need;

	for (unsigned int i = 0; (need = caps_needed(i)); i++) {
		if (caps_have(need->number)) {
			say(LEVEL_OK, need->name, NULL, "%s", need->why);
		} else if (cap_is_vital(need->number)) {
			say(LEVEL_FAIL, need->name, grant(d), "missing: %s", need->why);
			verdict(d, EXIT_PERMISSION);
		} else {
			say(LEVEL_WARN, need->name, grant(d), "missing: %s", need->why);
		}
	}
}

/* Capabilities and symbols have lines of their own. */
static void check_namespaces(void)
{
	static const char *const names[] = { "PID namespace", "cgroup namespace" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const struct host_gap *gap = host_gap_at(i);

		if (host_gap_open(i))
			say(LEVEL_WARN, names[i], gap->fix, "%s", gap->what);
		else
			say(LEVEL_OK, names[i], NULL, "the host's");
	}
}

static void check_sysctl(struct doctor *d, const char *what, const char *path, int overriding_cap,
			 const char *cap_name, long harmless)
{
	long value;

	if (!read_number(path, &value))
		say(LEVEL_OK, what, NULL, "not in this kernel");
	else if (value <= harmless)
		say(LEVEL_OK, what, NULL, "%ld", value);
	else if (caps_have(overriding_cap))
		say(LEVEL_OK, what, NULL, "%ld, which %s overrides", value, cap_name);
	else
		say(LEVEL_WARN, what, grant(d), "%ld, and %s is missing", value, cap_name);
}

static void check_paranoid(struct doctor *d)
{
	const char *path = "/proc/sys/kernel/perf_event_paranoid";
	long value;

	if (caps_events_restricted() && !caps_have(CAP_SYS_ADMIN) && read_number(path, &value))
		say(LEVEL_WARN, "perf_event_paranoid", "sudo sysctl kernel.perf_event_paranoid=2",
		    "%ld, which some kernels (Debian's) let only CAP_SYS_ADMIN override", value);
	else
		check_sysctl(d, "perf_event_paranoid", path, CAP_PERFMON, "CAP_PERFMON", 0);
}

/* Lockdown's confidentiality mode keeps BPF from kernel memory, which unwinding needs. */
static void check_lockdown(struct doctor *d)
{
	char line[128];

	if (!read_line("/sys/kernel/security/lockdown", line, sizeof(line))) {
		say(LEVEL_OK, "lockdown", NULL, "not in this kernel");
	} else if (strstr(line, "[confidentiality]")) {
		say(LEVEL_FAIL, "lockdown", "boot with lockdown=integrity or without lockdown",
		    "confidentiality: BPF may not read kernel memory");
		verdict(d, EXIT_PERMISSION);
	} else {
		say(LEVEL_OK, "lockdown", NULL, "%s",
		    strstr(line, "[integrity]") ? "integrity, which allows profiling" : "none");
	}
}

static void check_filter(void)
{
	if (jail_can_filter())
		say(LEVEL_OK, "system-call filter", NULL,
		    "for the processes that read mapped files");
	else
		say(LEVEL_WARN, "system-call filter", "a kernel with CONFIG_SECCOMP_FILTER",
		    "none: an exploited reader of mapped files could make any system call");
}

/* BPF asks the kernel for names, which it has in every configuration with kallsyms. */
static void check_kernel_names(void)
{
	if (!access("/proc/kallsyms", F_OK))
		say(LEVEL_OK, "kernel symbols", NULL, "names of kernel frames: from the kernel");
	else
		say(LEVEL_WARN, "kernel symbols", "a kernel with CONFIG_KALLSYMS",
		    "none: kernel frames will have no names");
}

/* Opening mapped files: a file of this process, and the list of another process's files. */
static void check_map_files(struct doctor *d)
{
	static const char dir[] = "/proc/self/map_files";
	DIR *own = opendir(dir), *other;
	struct dirent *e;
	int fd = -1;

	while (own && fd < 0 && (e = readdir(own)))
		if (e->d_name[0] != '.')
			fd = openat(dirfd(own), e->d_name,
				    O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0) {
		say(LEVEL_FAIL, "mapped files", grant(d), "%s cannot be read: %s", dir,
		    strerror(errno));
		verdict(d, EXIT_PERMISSION);
	} else {
		other = opendir("/proc/1/map_files");
		if (other)
			say(LEVEL_OK, "mapped files", NULL, "/proc/PID/map_files can be read");
		else
			say(LEVEL_WARN, "mapped files",
			    "CAP_SYS_PTRACE, in the host's PID namespace",
			    "only for processes of this user: %s", strerror(errno));
		if (other)
			closedir(other);
		close(fd);
	}
	if (own)
		closedir(own);
}

/* ---- Events ---- */

static int first_cpu(void)
{
	struct num_cpus cpus;
	char line[256];

	if (read_line("/sys/devices/system/cpu/online", line, sizeof(line)) &&
	    !num_cpus(line, &cpus))
		for (uint32_t i = 0; i <= cpus.last; i++)
			if (num_cpus_has(&cpus, i))
				return (int)i;
	return 0;
}

static void check_events(struct doctor *d)
{
	int cpu = first_cpu(), fd = perf_event_open_cpu(perf_event_named("cpu-clock"), 99, 0, cpu);

	if (fd >= 0) {
		say(LEVEL_OK, "perf events", NULL, "cpu-clock of all processes can be sampled");
		close(fd);
	} else if (fd == -EACCES || fd == -EPERM) {
		say(LEVEL_FAIL, "perf events", grant(d), "cpu-clock: %s", strerror(-fd));
		verdict(d, EXIT_PERMISSION);
		return;
	} else {
		say(LEVEL_FAIL, "perf events", "a kernel with CONFIG_PERF_EVENTS", "cpu-clock: %s",
		    strerror(-fd));
		verdict(d, EXIT_UNSUPPORTED);
		return;
	}
	fd = perf_event_open_cpu(perf_event_named("cpu-cycles"), 99, 0, cpu);
	if (fd >= 0) {
		say(LEVEL_OK, "hardware events", NULL, "cpu-cycles can be sampled");
		close(fd);
	} else {
		say(LEVEL_WARN, "hardware events", "none needed for cpu-clock, the default",
		    "no cpu-cycles: %s (a virtual machine?)", strerror(-fd));
	}
}

/* ---- A recording ---- */

static bool any_refused(const struct refusal *r)
{
	return r->program[0] || r->reason[0];
}

static const char *how_to_report(const struct doctor *d)
{
	return any_refused(&d->refused) ? "another build; please report it with the last lines"
					: NULL;
}

/* The off-CPU programs, which 'sfbpf record' does not need. */
static void check_blocked(struct doctor *d, const struct selftest *t)
{
	if (!t->blocked.trouble) {
		say(LEVEL_OK, "off-CPU", NULL, "the kernel accepts the programs for blocked time");
		return;
	}
	d->refused = t->blocked.refusal;
	say(LEVEL_WARN, "off-CPU", how_to_report(d), "%s", t->blocked.text);
}

static void check_unwinding(struct doctor *d)
{
	struct selftest t;

	selftest_run(&t);
	if (t.error.trouble) {
		d->refused = t.error.refusal;
		say(LEVEL_FAIL, "unwinding", how_to_report(d), "not tried: %s", t.error.text);
		verdict(d, t.error.trouble == COLLECTOR_FORBIDDEN ? EXIT_PERMISSION
								  : EXIT_UNSUPPORTED);
		return;
	}
	check_blocked(d, &t);
	if (t.judged && t.known * 100 >= t.judged * 97) {
		say(LEVEL_OK, "unwinding", NULL,
		    "%u of %u stacks of a known thread were right to the last frame "
		    "(%u more while its files were loaded)",
		    t.known, t.judged, t.early);
		return;
	}
	if (t.judged)
		say(LEVEL_FAIL, "unwinding", "please report it with this output",
		    "only %u of %u stacks of a known thread were right; most of the others: %s",
		    t.known, t.judged, t.text);
	else
		say(LEVEL_FAIL, "unwinding", "run it in the host's PID namespace",
		    "no stack of a known thread could be judged: %s", t.text);
	verdict(d, EXIT_UNSUPPORTED);
}

/*
 * What to paste into a report of a refused program. Lines that begin with "|" cannot be mistaken
 * for checks.
 */
static void print_report(const struct refusal *r)
{
	struct utsname u;
	const char *line;

	if (!any_refused(r))
		return;
	printf("| To report a refused program, send these lines to where this sfbpf came from:\n");
	printf("| sfbpf %s, built by %s\n", SFBPF_VERSION, versions_cc());
	printf("| BPF programs built by %s\n", versions_clang());
	printf("| libbpf %s, built with %s\n", versions_libbpf_now(), versions_libbpf());
	if (!uname(&u))
		printf("| %s %s %s %s\n", u.sysname, u.release, u.version, u.machine);
	printf("| program %s: %s\n", r->program[0] ? r->program : "(none: loading failed before)",
	       r->error[0] ? r->error : r->reason);
	if (r->source[0])
		printf("| source %s\n", r->source);
	for (size_t i = 0; (line = refusal_line(r, i)); i++)
		printf("|   %s\n", line);
}

static const struct option_spec options[] = { { 0 } };

static int doctor_run(int argc, char **argv);

const struct tool_spec doctor_tool = {
	.name = "doctor",
	.usage = "doctor",
	.brief = "check what this kernel and user can do",
	.summary =
		"Checks what this kernel and user can do. Prints one line for each check, with a "
		"fix for each problem. Then it records a thread whose stack is known. Exits with "
		"0 if 'sfbpf record' would work, 3 if a permission is missing, 4 if the kernel "
		"lacks a feature. If the kernel refuses a BPF program, the last lines tell what "
		"to report: versions, the program, and the end of the verifier's log.",
	.options = options,
	.run = doctor_run,
};

static int doctor_run(int argc, char **argv)
{
	struct doctor d = { 0 };
	int err = options_parse(&doctor_tool, argc, argv, NULL, NULL);

	if (err)
		return err;
	if (optind < argc)
		return complain(EXIT_USAGE, "unexpected '%s': doctor takes no operands",
				argv[optind]);
	check_build();
	check_kernel(&d);
	check_btf(&d);
	check_features(&d);
	check_jit();
	check_memlock();
	check_caps(&d);
	check_namespaces();
	check_paranoid(&d);
	check_sysctl(&d, "unprivileged_bpf_disabled", "/proc/sys/kernel/unprivileged_bpf_disabled",
		     CAP_BPF, "CAP_BPF", 0);
	check_lockdown(&d);
	check_filter();
	check_kernel_names();
	check_map_files(&d);
	check_events(&d);
	check_unwinding(&d);
	print_report(&d.refused);
	free(d.btf);
	return d.rc;
}
