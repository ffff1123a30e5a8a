/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/config.h"

#include <errno.h>
#include <inttypes.h>
#include <ini.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/config_pairs.h"
#include "agent/config_value.h"
#include "base/num.h"

enum type { T_STRING, T_TIME, T_SIZE, T_NUMBER, T_PERCENT, T_SWITCH, T_CHOICE, T_PAIRS };

struct key {
	struct agent_key pub;
	enum type type;
	size_t at; /* offset in struct agent_config */
	uint64_t min, max;
	const char *const *choices; /* T_CHOICE: the member is an enum, an index into this list */
};

/* set_choice and print_value access enums as ints. */
_Static_assert(sizeof(enum agent_protocol) == sizeof(int) &&
		       sizeof(enum agent_symbols) == sizeof(int) &&
		       sizeof(enum redact) == sizeof(int) &&
		       sizeof(enum agent_unsure) == sizeof(int) &&
		       sizeof(enum agent_log_level) == sizeof(int) &&
		       sizeof(enum agent_log_format) == sizeof(int),
	       "an enum has the size of an int");

static const char *const protocols[] = {
#define RECEIVER(id, name) #name,
#include "agent/receivers.def"
#undef RECEIVER
	NULL
};
static const char protocol_help[] = "what the endpoint is:"
#define RECEIVER(id, name) " " #name
#include "agent/receivers.def"
#undef RECEIVER
	;
static const char *const symbols[] = { "host", "none", NULL };
static const char *const redactions[] = { "none", "home", "all", NULL };
static const char *const unsures[] = { "resend", "drop", NULL };
static const char *const levels[] = { "error", "warn", "info", "debug", NULL };
static const char *const log_formats[] = { "logfmt", "json", NULL };

#define AT(field) offsetof(struct agent_config, field)
#define KEY(type, s, n, arg, field, lo, hi, list, h)            \
	{                                                       \
		{ s, n, arg, h }, type, AT(field), lo, hi, list \
	}
#define TIME(s, n, field, lo, hi, h)	    KEY(T_TIME, s, n, "TIME", field, lo, hi, NULL, h)
#define SIZE(s, n, field, lo, hi, h)	    KEY(T_SIZE, s, n, "SIZE", field, lo, hi, NULL, h)
#define NUMBER(s, n, arg, field, lo, hi, h) KEY(T_NUMBER, s, n, arg, field, lo, hi, NULL, h)
#define STRING(s, n, arg, field, h)	    KEY(T_STRING, s, n, arg, field, 0, 0, NULL, h)
#define CHOICE(s, n, arg, field, list, h)   KEY(T_CHOICE, s, n, arg, field, 0, 0, list, h)
#define SWITCH(s, n, field, h)		    KEY(T_SWITCH, s, n, NULL, field, 0, 0, NULL, h)
#define PERCENT(s, n, field, h)		    KEY(T_PERCENT, s, n, "PERCENT", field, 0, 0, NULL, h)
#define PAIRS(s, n, field, h)		    KEY(T_PAIRS, s, n, "NAME=VALUE", field, 0, 0, NULL, h)

#define PERCENT_MIN 0.01
#define PERCENT_MAX 10000.0

static const struct key keys[] = {
	TIME("agent", "interval", interval_ns, 100 * NUM_MS, 3600 * NUM_S,
	     "length of a window (default 10s)"),
	NUMBER("agent", "jitter", "PERCENT", jitter_pct, 0, 50,
	       "random variation of the end of a window, so that a fleet does not send at once "
	       "(default 20)"),
	NUMBER("agent", "frequency", "HZ", hz, 1, 10000,
	       "samples per second and CPU (default 19); same as -F"),
	CHOICE("agent", "symbols", "WHERE", symbols, symbols,
	       "host (default): send function names; "
	       "none: send build-ids and offsets, for backends that symbolize"),
	SWITCH("agent", "label-pid", label_pid, "report each process of a service separately"),
	SWITCH("agent", "off-cpu", off_cpu,
	       "also measure blocked time, as separate profiles in nanoseconds"),
	TIME("agent", "off-cpu-min", off_min_ns, 0, 3600 * NUM_S,
	     "ignore blocks shorter than this (default 1ms)"),
	CHOICE("agent", "redact-paths", "WHICH", redact, redactions,
	       "remove from paths: none, home (names of home directories), all (all directories)"),
	STRING("agent", "host", "NAME", host,
	       "host name to report (default: the name of the machine)"),
	STRING("agent", "service", "NAME", service,
	       "service.name of processes outside units and containers (default host)"),
	SWITCH("agent", "process-context", process_context,
	       "take service.name from processes that publish one in their memory (default yes)"),
	SWITCH("agent", "trace-links", trace_links,
	       "link samples to the spans that processes publish for their threads"),
	STRING("kubernetes", "kubelet", "URL", kubelet,
	       "kubelet that names pods and containers, https://NODE:10250; off (default): none"),
	STRING("kubernetes", "kubelet-token-file", "FILE", kubelet_token,
	       "file with the token for the kubelet, of a service account"),
	STRING("kubernetes", "kubelet-ca-file", "FILE", kubelet_ca,
	       "CA certificates of the kubelet instead of those of the system"),
	SWITCH("kubernetes", "kubelet-insecure", kubelet_insecure,
	       "do not verify the certificate of the kubelet"),
	TIME("kubernetes", "kubelet-interval", kubelet_interval_ns, 100 * NUM_MS, 3600 * NUM_S,
	     "least time between two requests to the kubelet (default 10s)"),
	STRING("kubernetes", "pod-labels", "LIST", pod_labels,
	       "labels of pods to send as k8s.pod.label.KEY, separated by commas; 8 at most"),
	STRING("kubernetes", "service-label", "KEY", service_label,
	       "label of pods that is their service.name (default app.kubernetes.io/name)"),
	STRING("agent", "user", "USER", user,
	       "switch to this user after the BPF programs are loaded"),
	PAIRS("labels", "label", labels,
	      "label to add to everything that is sent; may be repeated"),

	PAIRS("include", "include", include,
	      "profile only this: unit, pod, namespace, container, cgroup, user or comm, and "
	      "patterns separated by commas; may be repeated"),
	PAIRS("exclude", "exclude", exclude, "do not profile this; likewise"),

	CHOICE("delivery", "protocol", "P", protocol, protocols, protocol_help),
	STRING("delivery", "endpoint", "URL", endpoint,
	       "URL of the receiver; a directory for protocol file"),
	STRING("delivery", "database", "NAME", database,
	       "database for clickhouse (default: default)"),
	STRING("delivery", "format", "F", format, "format of files for protocol file and copy"),
	TIME("delivery", "keep", keep_ns, 60 * NUM_S, 3660 * 86400 * NUM_S,
	     "protocol file: remove this host's windows that are older (default: never)"),
	SIZE("delivery", "keep-bytes", keep_bytes, 1 << 20, 1ull << 50,
	     "protocol file: remove this host's oldest windows beyond this size "
	     "(default: no limit)"),
	STRING("delivery", "copy", "DIR", copy,
	       "also write each window to this directory, as folded lines or in the chosen format"),
	STRING("delivery", "token-file", "FILE", token_file,
	       "file whose content is sent as Authorization: Bearer"),
	STRING("delivery", "header-file", "FILE", header_file,
	       "file of headers to send, one 'Name: value' on each line"),
	PAIRS("headers", "header", headers,
	      "header to send; may be repeated; use files for secrets"),
	STRING("delivery", "ca-file", "FILE", ca_file,
	       "CA certificates to trust instead of those of the system"),
	STRING("delivery", "cert-file", "FILE", cert_file, "client certificate"),
	STRING("delivery", "key-file", "FILE", key_file, "key of the client certificate"),
	SWITCH("delivery", "insecure", insecure, "do not verify the certificate of the server"),
	SWITCH("delivery", "gzip", gzip, "compress requests (default yes)"),
	TIME("delivery", "timeout", timeout_ns, 50 * NUM_MS, 600 * NUM_S,
	     "limit on the time of a request (default 10s)"),
	TIME("delivery", "connect-timeout", connect_timeout_ns, 50 * NUM_MS, 600 * NUM_S,
	     "limit on the time to connect (default 5s)"),
	SIZE("delivery", "request-size", request_bytes, 16 << 10, 64 << 20,
	     "limit on the size of a request before compression (default 3M)"),
	TIME("delivery", "retry-min", retry_min_ns, 10 * NUM_MS, 600 * NUM_S,
	     "wait after the first failure; doubles with each further one (default 1s)"),
	TIME("delivery", "retry-max", retry_max_ns, 10 * NUM_MS, 3600 * NUM_S,
	     "longest wait between two tries (default 60s)"),
	CHOICE("delivery", "unsure", "WHAT", unsure, unsures,
	       "what to do with a request whose answer was lost: "
	       "resend with the same id (default), or drop"),
	TIME("delivery", "shutdown", shutdown_ns, 0, 600 * NUM_S,
	     "time to keep sending after SIGTERM (default 3s)"),

	STRING("spool", "spool", "DIR", spool,
	       "directory for windows that are not delivered yet (default: in memory)"),
	SIZE("spool", "spool-size", spool_bytes, 64 << 10, 1ull << 40,
	     "limit on the size of the spool; the oldest window is dropped first (default 64M)"),
	TIME("spool", "spool-age", spool_age_ns, NUM_S, 31 * 86400 * NUM_S,
	     "limit on the age of windows in the spool (default 24h)"),

	PERCENT("budget", "cpu-limit", cpu_pct,
		"limit on the CPU time of the agent, of one CPU; "
		"above it the agent lowers the frequency (default 1)"),
	PERCENT("budget", "off-cpu-limit", off_pct,
		"limit on the CPU time for measuring blocked time, of all CPUs; "
		"above it the agent samples short blocks (default 1)"),
	PERCENT("budget", "window-share", window_share,
		"share of windows that are sampled, chosen at random (default 100)"),
	SIZE("budget", "table-memory", table_bytes, 1 << 20, 1ull << 40,
	     "limit on kernel memory for unwind tables (default 256M)"),
	SIZE("budget", "ring-size", ring_bytes, 4096, 1 << 30,
	     "size of the ring buffer between kernel and user space (default 2M)"),
	SIZE("budget", "memory-limit", memory_bytes, 1 << 20, 1ull << 40,
	     "limit on heap memory; above it the agent drops symbol tables (default 64M)"),
	SWITCH("agent", "seccomp", seccomp, "filter system calls (default yes)"),

	STRING("metrics", "metrics-address", "[HOST:]PORT", metrics,
	       "address of /metrics and /healthz (default 127.0.0.1:9419); none: no server"),
	CHOICE("log", "log-level", "LEVEL", log_level, levels, "error, warn, info, debug"),
	CHOICE("log", "log-format", "F", log_format, log_formats, "logfmt, json"),
};

#define NKEYS (sizeof(keys) / sizeof(keys[0]))

_Static_assert(NKEYS <= 64, "a bit of agent_config.given for each key");

const struct agent_key *agent_key_at(size_t i)
{
	return i < NKEYS ? &keys[i].pub : NULL;
}

const char *agent_protocol_name(enum agent_protocol protocol)
{
	return protocol < AGENT_PROTOCOLS ? protocols[protocol] : "?";
}

struct agent_config *agent_config_new(void)
{
	struct agent_config *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	*c = (struct agent_config){
		.interval_ns = 10 * NUM_S,
		.jitter_pct = 20,
		.hz = 19,
		.off_min_ns = NUM_MS,
		.off_pct = 1,
		.process_context = true,
		.gzip = true,
		.seccomp = true,
		.timeout_ns = 10 * NUM_S,
		.connect_timeout_ns = 5 * NUM_S,
		.request_bytes = 3 << 20,
		.retry_min_ns = NUM_S,
		.retry_max_ns = 60 * NUM_S,
		.shutdown_ns = 3 * NUM_S,
		.spool_bytes = 64 << 20,
		.spool_age_ns = 86400 * NUM_S,
		.cpu_pct = 1,
		.window_share = 100,
		.kubelet_interval_ns = 10 * NUM_S,
		.memory_bytes = 64 << 20,
		.table_bytes = 256 << 20,
		.ring_bytes = 2 << 20,
		.log_level = AGENT_LOG_INFO,
	};
	return c;
}

static void free_pairs(struct agent_pairs *p)
{
	for (size_t i = 0; i < p->n; i++) {
		free(p->list[i].name);
		free(p->list[i].value);
	}
	free(p->list);
	*p = (struct agent_pairs){ 0 };
}

void agent_config_free(struct agent_config *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < NKEYS; i++) {
		if (keys[i].type == T_STRING)
			free(*(char **)((char *)c + keys[i].at));
		else if (keys[i].type == T_PAIRS)
			free_pairs((struct agent_pairs *)((char *)c + keys[i].at));
	}
	free_pairs(&c->pod_keys);
	free(c);
}

/* ---- One value ---- */

static int set_switch(bool *at, const char *value)
{
	static const char *const yes[] = { "yes", "true", "on", "1", NULL }, *const no[] = {
		"no", "false", "off", "0", NULL
	};

	for (size_t i = 0; yes[i]; i++) {
		if (!strcasecmp(value, yes[i]) || !strcasecmp(value, no[i])) {
			*at = !strcasecmp(value, yes[i]);
			return 0;
		}
	}
	return -EINVAL;
}

static int set_choice(int *at, const char *const *choices, const char *value)
{
	for (int i = 0; choices[i]; i++) {
		if (!strcmp(choices[i], value)) {
			*at = i;
			return 0;
		}
	}
	return -EINVAL;
}

static int set_percent(double *at, const char *value)
{
	char *end;
	double v = strtod(value, &end);

	if (end == value || *end || !isfinite(v) || v < PERCENT_MIN || v > PERCENT_MAX)
		return -EINVAL;
	*at = v;
	return 0;
}

static int set_number(const struct key *k, uint64_t *at, const char *value)
{
	uint64_t v = 0;
	int err = k->type == T_TIME   ? num_duration(value, NUM_S, &v)
		  : k->type == T_SIZE ? num_size(value, &v)
				      : num_u64(value, k->min, k->max, &v);

	if (err || v < k->min || v > k->max)
		return -EINVAL;
	*at = v;
	return 0;
}

static int set(struct agent_config *c, const struct key *k, const char *value)
{
	void *at = (char *)c + k->at;
	const char *eq = strchr(value, '=');

	switch (k->type) {
	case T_STRING:
		return *value && !config_has_control(value) ? config_set_string(at, value)
							    : -EINVAL;
	case T_SWITCH:
		return set_switch(at, value);
	case T_CHOICE:
		return set_choice(at, k->choices, value);
	case T_PERCENT:
		return set_percent(at, value);
	case T_PAIRS:
		return eq ? config_set_pair(at, value, (size_t)(eq - value), eq + 1) : -EINVAL;
	default:
		return set_number(k, at, value);
	}
}

static bool is_header(const struct key *k)
{
	return k->at == AT(headers);
}

bool agent_config_given(const struct agent_config *c, const char *name)
{
	for (size_t i = 0; i < NKEYS; i++)
		if (!strcmp(keys[i].pub.name, name))
			return c->given >> i & 1;
	return false;
}

/* Writes a size in the largest unit in which it is a whole number, as num_size reads it. */
static void size_text(uint64_t v, char *ret, size_t cap)
{
	static const char units[] = "kMGT";
	int unit = -1;

	while (unit < 3 && v && v % 1024 == 0) {
		v /= 1024;
		unit++;
	}
	snprintf(ret, cap, "%" PRIu64 "%.*s", v, unit >= 0, &units[unit < 0 ? 0 : unit]);
}

/* What a value of the key must be: "a number from 1 to 10000". */
static void describe(const struct key *k, char *ret, size_t cap)
{
	char least[32], most[32];
	size_t len;

	switch (k->type) {
	case T_CHOICE:
		len = (size_t)snprintf(ret, cap, "one of");
		for (size_t i = 0; k->choices[i] && len < cap; i++)
			len += (size_t)snprintf(ret + len, cap - len, " %s", k->choices[i]);
		return;
	case T_TIME:
		snprintf(ret, cap, "a time from %gs to %gs", (double)k->min / 1e9,
			 (double)k->max / 1e9);
		return;
	case T_SIZE:
		size_text(k->min, least, sizeof(least));
		size_text(k->max, most, sizeof(most));
		snprintf(ret, cap, "a size from %s to %s", least, most);
		return;
	case T_NUMBER:
		snprintf(ret, cap, "a number from %" PRIu64 " to %" PRIu64, k->min, k->max);
		return;
	case T_PERCENT:
		snprintf(ret, cap, "a percentage from %g to %g", PERCENT_MIN, PERCENT_MAX);
		return;
	case T_SWITCH:
		snprintf(ret, cap, "yes or no");
		return;
	default:
		snprintf(ret, cap, "%s%s", k->type == T_PAIRS ? "" : "a ", k->pub.arg);
	}
}

int agent_config_set(struct agent_config *c, size_t key, const char *value,
		     struct agent_config_error *err)
{
	const struct key *k = &keys[key];
	const char *eq = k->type == T_PAIRS && value ? strchr(value, '=') : NULL,
		   *why = eq ? config_pair_error(is_header(k), value, (size_t)(eq - value), eq + 1)
			     : NULL;
	int rc;

	if (why)
		return config_fail(err, "%s: '%.200s': %s", k->pub.name, value, why);
	rc = set(c, k, value ? value : "yes");
	if (!rc)
		c->given |= 1ull << key;
	if (!rc && !strcmp(k->pub.name, "endpoint"))
		c->endpoint_is_base = false;
	if (rc == -EINVAL) {
		char wanted[200];

		describe(k, wanted, sizeof(wanted));
		return config_fail(err, "%s: '%.200s' is not %s", k->pub.name,
				   value ? value : "yes", wanted);
	}
	return rc ? (config_fail(err, "out of memory"), rc) : 0;
}

/* ---- The file ---- */

struct reading {
	struct agent_config *c;
	struct agent_config_error *err;
	char text[400]; /* the first error */
};

static const char twice[] = "given twice (a line that begins with a space repeats the last key)";

/* The keys in this section are the names. NULL: done; else what is wrong. */
static const char *take_pair(struct agent_pairs *p, bool header, const char *name,
			     const char *value)
{
	const char *why = config_pair_error(header, name, strlen(name), value);

	if (why)
		return why;
	if (config_find_pair(p, name, strlen(name)))
		return twice;
	return config_set_pair(p, name, strlen(name), value) ? "out of memory" : NULL;
}

/* inih's handler: 1 is success. */
static int on_pair(void *ctx, const char *section, const char *name, const char *value)
{
	struct reading *r = ctx;
	const char *why = "no such key";

	for (size_t i = 0; i < NKEYS; i++) {
		const struct key *k = &keys[i];

		if (strcmp(k->pub.section, section) ||
		    (k->type != T_PAIRS && strcmp(k->pub.name, name)))
			continue;
		if (k->type == T_PAIRS)
			why = take_pair((void *)((char *)r->c + k->at), is_header(k), name, value);
		else if (r->c->given >> i & 1)
			why = twice;
		else
			why = agent_config_set(r->c, i, value, r->err) ? r->err->text : NULL;
		break;
	}
	if (why && !*r->text)
		snprintf(r->text, sizeof(r->text), "[%.40s] %.60s: %.250s", section, name, why);
	return !why;
}

int agent_config_file(struct agent_config *c, const char *path, struct agent_config_error *err)
{
	struct reading r = { .c = c, .err = err };
	FILE *f = fopen(path, "re");
	int line, failed;

	if (!f)
		return config_fail(err, "%s: %s", path, strerror(errno));
	errno = 0;
	line = ini_parse_file(f, on_pair, &r);
	failed = ferror(f) ? errno : 0; /* a directory, for example */
	fclose(f);
	if (failed)
		return config_fail(err, "%s: %s", path, strerror(failed));
	if (line < 0)
		return config_fail(err, "%s: out of memory", path);
	if (line > 0)
		return config_fail(err, "%s:%d: %s", path, line,
				   *r.text ? r.text : "neither 'key = value' nor '[section]'");
	return 0;
}

/* ---- Printing ---- */

static void print_value(FILE *f, const struct key *k, const void *at)
{
	uint64_t v = 0;

	if (k->type == T_TIME || k->type == T_SIZE || k->type == T_NUMBER)
		memcpy(&v, at, sizeof(v));
	switch (k->type) {
	case T_STRING:
		if (*(char *const *)at)
			fprintf(f, "%s = %s\n", k->pub.name, *(char *const *)at);
		break;
	case T_SWITCH:
		fprintf(f, "%s = %s\n", k->pub.name, *(const bool *)at ? "yes" : "no");
		break;
	case T_CHOICE:
		fprintf(f, "%s = %s\n", k->pub.name, k->choices[*(const int *)at]);
		break;
	case T_PERCENT:
		fprintf(f, "%s = %g\n", k->pub.name, *(const double *)at);
		break;
	case T_TIME:
		fprintf(f, "%s = %gs\n", k->pub.name, (double)v / 1e9);
		break;
	case T_PAIRS:
		for (size_t i = 0; i < ((const struct agent_pairs *)at)->n; i++) {
			const struct agent_pair *p = &((const struct agent_pairs *)at)->list[i];

			fprintf(f, "%s = %s\n", p->name,
				!strcmp(k->pub.section, "headers") ? "(not shown)" : p->value);
		}
		break;
	default:
		fprintf(f, "%s = %llu\n", k->pub.name, (unsigned long long)v);
	}
}

int agent_config_print(const struct agent_config *c, int fd)
{
	static const char *const sections[] = { "agent",      "labels",	 "delivery",
						"headers",    "spool",	 "budget",
						"kubernetes", "metrics", "log" };
	FILE *f = fdopen(dup(fd), "w");

	if (!f)
		return -errno;
	for (size_t s = 0; s < sizeof(sections) / sizeof(sections[0]); s++) {
		fprintf(f, "%s[%s]\n", s ? "\n" : "", sections[s]);
		for (size_t i = 0; i < NKEYS; i++)
			if (!strcmp(keys[i].pub.section, sections[s]))
				print_value(f, &keys[i], (const char *)c + keys[i].at);
	}
	return fclose(f) ? -EIO : 0;
}
