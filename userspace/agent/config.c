/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/config.h"

#include <errno.h>
#include <ini.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/num.h"
#include "base/vec.h"

enum type { T_STRING, T_TIME, T_SIZE, T_NUMBER, T_PERCENT, T_SWITCH, T_CHOICE, T_PAIRS };

struct key {
	struct agent_key pub;
	enum type type;
	size_t at;			/* offset in struct agent_config */
	uint64_t min, max;
	const char *const *choices;	/* T_CHOICE: an int, its place in the list */
};

static const char *const protocols[] = { "otlphttp", "otlpgrpc", "pyroscope", "parca", "clickhouse", "file", NULL };
static const char *const symbols[] = { "host", "none", NULL };
static const char *const redactions[] = { "none", "home", "all", NULL };
static const char *const unsures[] = { "resend", "drop", NULL };
static const char *const levels[] = { "error", "warn", "info", "debug", NULL };
static const char *const log_formats[] = { "logfmt", "json", NULL };

#define AT(field) offsetof(struct agent_config, field)
#define TIME(s, n, field, lo, hi, h) { { s, n, "TIME", h }, T_TIME, AT(field), lo, hi, NULL }
#define SIZE(s, n, field, lo, hi, h) { { s, n, "SIZE", h }, T_SIZE, AT(field), lo, hi, NULL }
#define STRING(s, n, arg, field, h) { { s, n, arg, h }, T_STRING, AT(field), 0, 0, NULL }
#define CHOICE(s, n, arg, field, list, h) { { s, n, arg, h }, T_CHOICE, AT(field), 0, 0, list }
#define SWITCH(s, n, field, h) { { s, n, NULL, h }, T_SWITCH, AT(field), 0, 0, NULL }

static const struct key keys[] = {
	TIME("agent", "interval", interval_ns, 100 * NUM_MS, 3600 * NUM_S, "length of a window (10s)"),
	{ { "agent", "jitter", "PERCENT", "how much a window's end varies, so that a fleet does not send at once (20)" },
	  T_NUMBER, AT(jitter_pct), 0, 50, NULL },
	{ { "agent", "frequency", "HZ", "samples a second and CPU (19); the same as -F" }, T_NUMBER, AT(hz), 1, 10000, NULL },
	CHOICE("agent", "symbols", "WHERE", symbols, symbols, "host: names; none: build-ids and offsets, for backends that symbolize"),
	SWITCH("agent", "label-pid", label_pid, "keep processes of one service apart"),
	SWITCH("agent", "off-cpu", off_cpu, "blocked time, too: profiles of their own, in nanoseconds"),
	TIME("agent", "off-cpu-min", off_min_ns, 0, 3600 * NUM_S, "blocks shorter than that are not counted (1ms)"),
	CHOICE("agent", "redact-paths", "WHICH", redact, redactions, "none, home (directories of users), all (file names only)"),
	STRING("agent", "host", "NAME", host, "instead of the machine's name"),
	STRING("agent", "service", "NAME", service, "service.name of what belongs to no unit or container (host)"),
	STRING("agent", "user", "USER", user, "become this user once the programs are loaded"),
	{ { "labels", "label", "NAME=VALUE", "added to all that is sent; again for more" }, T_PAIRS, AT(labels), 0, 0, NULL },

	CHOICE("delivery", "protocol", "P", protocol, protocols, "otlphttp, otlpgrpc, pyroscope, parca, clickhouse, file"),
	STRING("delivery", "endpoint", "URL", endpoint, "where to; protocol file: a directory"),
	STRING("delivery", "database", "NAME", database, "clickhouse: the database (default)"),
	STRING("delivery", "format", "F", format, "protocol file and copy: folded, pprof, json, text, html"),
	STRING("delivery", "copy", "DIR", copy, "write each window there, too, folded or in format"),
	STRING("delivery", "token-file", "FILE", token_file, "its content is sent as Authorization: Bearer"),
	STRING("delivery", "header-file", "FILE", header_file, "headers to send, a line each: Name: value"),
	{ { "headers", "header", "NAME=VALUE", "a header to send; for secrets use files" }, T_PAIRS, AT(headers), 0, 0, NULL },
	STRING("delivery", "ca-file", "FILE", ca_file, "certificates to trust instead of the system's"),
	STRING("delivery", "cert-file", "FILE", cert_file, "our certificate"),
	STRING("delivery", "key-file", "FILE", key_file, "its key"),
	SWITCH("delivery", "insecure", insecure, "do not verify the server's certificate"),
	SWITCH("delivery", "gzip", gzip, "compress requests (yes)"),
	TIME("delivery", "timeout", timeout_ns, 50 * NUM_MS, 600 * NUM_S, "of a request (10s)"),
	TIME("delivery", "connect-timeout", connect_timeout_ns, 50 * NUM_MS, 600 * NUM_S, "of connecting (5s)"),
	SIZE("delivery", "request-size", request_bytes, 16 << 10, 64 << 20, "of a request at most, before compression (3M)"),
	TIME("delivery", "retry-min", retry_min_ns, 10 * NUM_MS, 600 * NUM_S, "first wait after a failure; doubles (1s)"),
	TIME("delivery", "retry-max", retry_max_ns, 10 * NUM_MS, 3600 * NUM_S, "longest wait (60s)"),
	CHOICE("delivery", "unsure", "WHAT", unsure, unsures, "a request whose answer got lost: resend (same id), drop"),
	TIME("delivery", "shutdown", shutdown_ns, 0, 600 * NUM_S, "how long to go on sending after SIGTERM (3s)"),

	STRING("spool", "spool", "DIR", spool, "keeps what is not delivered; without it, memory does"),
	SIZE("spool", "spool-size", spool_bytes, 64 << 10, 1ull << 40, "at most; the oldest goes first (64M)"),
	TIME("spool", "spool-age", spool_age_ns, NUM_S, 31 * 86400 * NUM_S, "what is older is dropped (1440m)"),

	{ { "budget", "cpu-limit", "PERCENT", "of one CPU, for the agent itself; above it the frequency is lowered (1)" },
	  T_PERCENT, AT(cpu_pct), 0, 0, NULL },
	{ { "budget", "off-cpu-limit", "PERCENT", "of all CPUs, for measuring blocked time; above it short blocks are sampled (1)" },
	  T_PERCENT, AT(off_pct), 0, 0, NULL },
	SIZE("budget", "table-memory", table_bytes, 1 << 20, 1ull << 40, "at most this much kernel memory for row tables (256M)"),
	SIZE("budget", "ring-size", ring_bytes, 4096, 1 << 30, "ring buffer between kernel and user space (2M)"),
	SIZE("budget", "memory-limit", memory_bytes, 1 << 20, 1ull << 40, "of heap; above it symbols are forgotten (64M)"),
	SWITCH("agent", "seccomp", seccomp, "filter system calls (yes)"),

	STRING("metrics", "metrics-address", "[HOST:]PORT", metrics, "of /metrics and /healthz (127.0.0.1:9419); none"),
	CHOICE("log", "log-level", "LEVEL", log_level, levels, "error, warn, info, debug"),
	CHOICE("log", "log-format", "F", log_format, log_formats, "logfmt, json"),
};

#define NKEYS (sizeof(keys) / sizeof(keys[0]))

const struct agent_key *agent_key_at(size_t i)
{
	return i < NKEYS ? &keys[i].pub : NULL;
}

const char *agent_protocol_name(int protocol)
{
	return protocol >= 0 && protocol < AGENT_PROTOCOLS ? protocols[protocol] : "?";
}

static int fail(struct agent_config_error *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static int fail(struct agent_config_error *err, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, args);
	va_end(args);
	return -EINVAL;
}

struct agent_config *agent_config_new(void)
{
	struct agent_config *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	*c = (struct agent_config){
		.interval_ns = 10 * NUM_S, .jitter_pct = 20, .hz = 19, .off_min_ns = NUM_MS, .off_pct = 1, .gzip = true, .seccomp = true,
		.timeout_ns = 10 * NUM_S, .connect_timeout_ns = 5 * NUM_S, .request_bytes = 3 << 20,
		.retry_min_ns = NUM_S, .retry_max_ns = 60 * NUM_S, .shutdown_ns = 3 * NUM_S,
		.spool_bytes = 64 << 20, .spool_age_ns = 86400 * NUM_S, .cpu_pct = 1, .memory_bytes = 64 << 20,
		.table_bytes = 256 << 20, .ring_bytes = 2 << 20,
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
	free(c);
}

/* ---- One value ---- */

static int set_string(char **at, const char *value)
{
	char *copy = strdup(value);

	if (!copy)
		return -ENOMEM;
	free(*at);
	*at = copy;
	return 0;
}

/* A name that is there already gets the new value. */
static int set_pair(struct agent_pairs *p, const char *name, size_t len, const char *value)
{
	char *copy = strdup(value), *key;

	if (!copy)
		return -ENOMEM;
	for (size_t i = 0; i < p->n; i++) {
		if (strlen(p->list[i].name) != len || strncmp(p->list[i].name, name, len))
			continue;
		free(p->list[i].value);
		p->list[i].value = copy;
		return 0;
	}
	key = strndup(name, len);
	if (!key || vec_reserve(&p->list, &p->cap, p->n + 1, sizeof(*p->list))) {
		free(copy);
		free(key);
		return -ENOMEM;
	}
	p->list[p->n++] = (struct agent_pair){ key, copy };
	return 0;
}

static bool has_control(const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < ' ' || *s == 0x7f)
			return true;
	return false;
}

static int set_switch(bool *at, const char *value)
{
	static const char *const yes[] = { "yes", "true", "on", "1", NULL }, *const no[] = { "no", "false", "off", "0", NULL };

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

	if (end == value || *end || !isfinite(v) || v < 0.01 || v > 10000)
		return -EINVAL;
	*at = v;
	return 0;
}

static int set_number(const struct key *k, uint64_t *at, const char *value)
{
	uint64_t v = 0;
	int err = k->type == T_TIME ? num_duration(value, NUM_S, &v) : k->type == T_SIZE ? num_size(value, &v) :
		  num_u64(value, k->min, k->max, &v);

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
		return *value && !has_control(value) ? set_string(at, value) : -EINVAL;
	case T_SWITCH:
		return set_switch(at, value);
	case T_CHOICE:
		return set_choice(at, k->choices, value);
	case T_PERCENT:
		return set_percent(at, value);
	case T_PAIRS:
		return eq && eq > value && !has_control(value) ? set_pair(at, value, (size_t)(eq - value), eq + 1) : -EINVAL;
	default:
		return set_number(k, at, value);
	}
}

int agent_config_set(struct agent_config *c, size_t key, const char *value, struct agent_config_error *err)
{
	const struct key *k = &keys[key];
	int rc = set(c, k, value ? value : "yes");

	if (!rc && !strcmp(k->pub.name, "metrics-address"))
		c->metrics_given = true;
	if (!rc && !strcmp(k->pub.name, "endpoint"))
		c->endpoint_is_base = false;
	if (rc == -EINVAL)
		return fail(err, "%s: '%s' is not %s%s", k->pub.name, value ? value : "yes", k->pub.arg ? "a " : "yes or no",
			    k->pub.arg ? k->pub.arg : "");
	return rc ? (fail(err, "out of memory"), rc) : 0;
}

/* ---- The file ---- */

struct reading {
	struct agent_config *c;
	struct agent_config_error *err;
	char text[400];		/* the first thing that is wrong */
};

/* inih's handler: 1 is success. */
static int on_pair(void *ctx, const char *section, const char *name, const char *value)
{
	struct reading *r = ctx;
	const char *why = "no such key";

	for (size_t i = 0; i < NKEYS; i++) {
		const struct key *k = &keys[i];

		if (strcmp(k->pub.section, section))
			continue;
		if (k->type == T_PAIRS) {	/* the section's own keys are the names */
			if (*name && !has_control(value) && !set_pair((void *)((char *)r->c + k->at), name, strlen(name), value))
				return 1;
		} else if (!strcmp(k->pub.name, name)) {
			if (!agent_config_set(r->c, i, value, r->err))
				return 1;
			why = r->err->text;
			break;
		}
	}
	if (!*r->text)
		snprintf(r->text, sizeof(r->text), "[%.40s] %.60s: %.250s", section, name, why);
	return 0;
}

int agent_config_file(struct agent_config *c, const char *path, struct agent_config_error *err)
{
	struct reading r = { .c = c, .err = err };
	FILE *f = fopen(path, "re");
	int line;

	if (!f)
		return fail(err, "%s: %s", path, strerror(errno));
	line = ini_parse_file(f, on_pair, &r);
	fclose(f);
	if (line < 0)
		return fail(err, "%s: out of memory", path);
	if (line > 0)
		return fail(err, "%s:%d: %s", path, line, *r.text ? r.text : "not 'key = value' nor '[section]'");
	return 0;
}

/* ---- The environment: what OpenTelemetry's exporters read ---- */

static int hex(char ch)
{
	return ch >= '0' && ch <= '9' ? ch - '0' : (ch | 32) >= 'a' && (ch | 32) <= 'f' ? (ch | 32) - 'a' + 10 : -1;
}

/* "a=1,b=x%20y": W3C baggage, as OTEL_EXPORTER_OTLP_HEADERS and OTEL_RESOURCE_ATTRIBUTES have it. */
static int pairs_from(struct agent_pairs *p, const char *list)
{
	char item[4096];

	while (*list) {
		size_t len = strcspn(list, ","), n = 0;
		const char *s = list + strspn(list, " \t"), *end = list + len;
		char *eq;

		while (s < end && n < sizeof(item) - 1) {
			bool escape = *s == '%' && end - s > 2 && hex(s[1]) >= 0 && hex(s[2]) >= 0;

			item[n++] = escape ? (char)(hex(s[1]) << 4 | hex(s[2])) : *s;
			s += escape ? 3 : 1;
		}
		while (n && item[n - 1] == ' ')
			n--;
		item[n] = 0;
		eq = strchr(item, '=');
		if (n && (!eq || eq == item || has_control(item)))
			return -EINVAL;
		if (n && set_pair(p, item, (size_t)(eq - item), eq + 1))
			return -ENOMEM;
		list = end + (*end == ',');
	}
	return 0;
}

/* The first of OTEL_EXPORTER_OTLP_PROFILES_name and OTEL_EXPORTER_OTLP_name that is set and not empty. */
static const char *exporter_env(const char *name, bool *ret_base)
{
	char var[80];
	const char *v;

	snprintf(var, sizeof(var), "OTEL_EXPORTER_OTLP_PROFILES_%s", name);
	v = getenv(var);
	if (ret_base)
		*ret_base = !v || !*v;
	if (v && *v)
		return v;
	snprintf(var, sizeof(var), "OTEL_EXPORTER_OTLP_%s", name);
	v = getenv(var);
	return v && *v ? v : NULL;
}

static int env_string(const char *name, char **at)
{
	const char *v = exporter_env(name, NULL);

	return v ? set_string(at, v) : 0;
}

static int env_protocol(struct agent_config *c, struct agent_config_error *err)
{
	const char *v = exporter_env("PROTOCOL", NULL);

	if (!v)
		return 0;
	if (!strcmp(v, "grpc"))
		c->protocol = AGENT_OTLP_GRPC;
	else if (!strcmp(v, "http/protobuf"))
		c->protocol = AGENT_OTLP_HTTP;
	else
		return fail(err, "OTEL_EXPORTER_OTLP_PROTOCOL: '%s' is not grpc or http/protobuf", v);
	return 0;
}

int agent_config_environment(struct agent_config *c, struct agent_config_error *err)
{
	const char *v;
	uint64_t ms;
	int rc = env_protocol(c, err);
	bool base;

	if (rc)
		return rc;
	v = exporter_env("ENDPOINT", &base);
	if (v && set_string(&c->endpoint, v))
		return -ENOMEM;
	if (v)
		c->endpoint_is_base = base;
	if ((v = exporter_env("HEADERS", NULL)) && pairs_from(&c->headers, v))
		return fail(err, "OTEL_EXPORTER_OTLP_HEADERS is not a list of name=value");
	if ((v = getenv("OTEL_RESOURCE_ATTRIBUTES")) && pairs_from(&c->labels, v))
		return fail(err, "OTEL_RESOURCE_ATTRIBUTES is not a list of name=value");
	if ((v = exporter_env("COMPRESSION", NULL)))
		c->gzip = !strcmp(v, "gzip");
	if ((v = exporter_env("TIMEOUT", NULL))) {
		if (num_u64(v, 50, 600000, &ms))
			return fail(err, "OTEL_EXPORTER_OTLP_TIMEOUT: '%s' is not a number of milliseconds from 50 to 600000", v);
		c->timeout_ns = ms * NUM_MS;
	}
	if ((v = getenv("OTEL_SERVICE_NAME")) && *v && set_string(&c->service, v))
		return -ENOMEM;
	if (env_string("CERTIFICATE", &c->ca_file) || env_string("CLIENT_CERTIFICATE", &c->cert_file) ||
	    env_string("CLIENT_KEY", &c->key_file))
		return -ENOMEM;
	return 0;
}

/* ---- The whole ---- */

static int check_endpoint(struct agent_config *c, struct agent_config_error *err)
{
	static const char *const defaults[] = {
		"http://127.0.0.1:4318", "http://127.0.0.1:4317", "http://127.0.0.1:4040", "http://127.0.0.1:7070",
		"http://127.0.0.1:8123", NULL,
	};
	const char *host;

	if (!c->endpoint && c->protocol == AGENT_FILE)
		return fail(err, "protocol file needs an endpoint: a directory");
	if (!c->endpoint && set_string(&c->endpoint, defaults[c->protocol]))
		return -ENOMEM;
	if (c->protocol == AGENT_FILE)
		return 0;
	host = strstr(c->endpoint, "://");
	if ((strncmp(c->endpoint, "http://", 7) && strncmp(c->endpoint, "https://", 8)) || !host[3] || host[3] == '/')
		return fail(err, "endpoint: '%s' is not http://HOST[:PORT] or https://...", c->endpoint);
	if (strchr(host, '@') || strchr(c->endpoint, '?') || strchr(c->endpoint, '#'))
		return fail(err, "endpoint: no user, password or query in the URL, please: use headers");
	return 0;
}

static int check_readable(const char *what, const char *path, struct agent_config_error *err)
{
	return path && access(path, R_OK) ? fail(err, "%s: %s: %s", what, path, strerror(errno)) : 0;
}

int agent_config_check(struct agent_config *c, struct agent_config_error *err)
{
	static const char *const formats[] = { "folded", "pprof", "json", "text", "html", NULL };
	int rc = check_endpoint(c, err), which;

	if (rc)
		return rc;
	if (!c->format && set_string(&c->format, c->protocol == AGENT_FILE ? "pprof" : "folded"))
		return -ENOMEM;
	if (set_choice(&which, formats, c->format))
		return fail(err, "format: '%s' is not folded, pprof, json, text or html", c->format);
	if (!c->metrics_given && !c->metrics && set_string(&c->metrics, "127.0.0.1:9419"))
		return -ENOMEM;
	if (c->retry_max_ns < c->retry_min_ns)
		c->retry_max_ns = c->retry_min_ns;
	if (!c->cert_file != !c->key_file)
		return fail(err, "cert-file and key-file belong together");
	if ((rc = check_readable("ca-file", c->ca_file, err)) || (rc = check_readable("cert-file", c->cert_file, err)) ||
	    (rc = check_readable("key-file", c->key_file, err)) || (rc = check_readable("token-file", c->token_file, err)) ||
	    (rc = check_readable("header-file", c->header_file, err)))
		return rc;
	if (c->request_bytes > c->spool_bytes / 2)
		c->request_bytes = c->spool_bytes / 2;
	return 0;
}

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

			fprintf(f, "%s = %s\n", p->name, !strcmp(k->pub.section, "headers") ? "(not shown)" : p->value);
		}
		break;
	default:
		fprintf(f, "%s = %llu\n", k->pub.name, (unsigned long long)v);
	}
}

int agent_config_print(const struct agent_config *c, int fd)
{
	static const char *const sections[] = { "agent", "labels", "delivery", "headers", "spool", "budget", "metrics", "log" };
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
