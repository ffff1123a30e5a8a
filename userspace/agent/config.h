/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The configuration of the agent. One table of keys (config.c) serves the INI file ("key = value"
 * below "[section]"), the command line ("--key value") and --help. Later sources take precedence:
 * defaults, file, environment (OTEL_*), command line. Units are in the names of the members.
 * Secrets are never options: they come from files or the environment.
 */
#ifndef SFBPF_AGENT_CONFIG_H
#define SFBPF_AGENT_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/redact.h"

enum agent_protocol {
#define RECEIVER(id, name) AGENT_##id,
#include "agent/receivers.def"
#undef RECEIVER
	AGENT_PROTOCOLS
};
enum agent_symbols { AGENT_SYMBOLS_HOST, AGENT_SYMBOLS_NONE };
enum agent_unsure { AGENT_UNSURE_RESEND, AGENT_UNSURE_DROP };
enum agent_log_format { AGENT_LOG_LOGFMT, AGENT_LOG_JSON };
enum agent_log_level { AGENT_LOG_ERROR, AGENT_LOG_WARN, AGENT_LOG_INFO, AGENT_LOG_DEBUG };

struct agent_pair {
	char *name, *value;
};

struct agent_pairs {
	struct agent_pair *list;
	size_t n, cap;
};

struct agent_config {
	uint64_t interval_ns, jitter_pct, hz;
	enum agent_symbols symbols;
	enum redact redact;
	bool label_pid, off_cpu, process_context, trace_links;
	uint64_t off_min_ns;
	char *host, *service; /* NULL: the host name of the machine; "host" */
	struct agent_pairs labels;
	struct agent_pairs include, exclude; /* agent/rules.h */

	enum agent_protocol protocol;
	char *endpoint, *format, *copy;
	uint64_t keep_ns, keep_bytes; /* limits on files; 0: none */
	/* endpoint is from OTEL_EXPORTER_OTLP_ENDPOINT: the signal's path is added to it */
	bool endpoint_is_base;
	char *token_file, *header_file, *ca_file, *cert_file, *key_file, *database;
	struct agent_pairs headers;
	bool insecure, gzip;
	uint64_t timeout_ns, connect_timeout_ns, request_bytes, retry_min_ns, retry_max_ns,
		shutdown_ns;
	enum agent_unsure unsure;

	char *spool;
	uint64_t spool_bytes, spool_age_ns;

	double cpu_pct, off_pct, window_share;
	uint64_t memory_bytes, table_bytes, ring_bytes;
	char *user;
	bool seccomp;

	char *kubelet, *kubelet_token, *kubelet_ca, *pod_labels, *service_label;
	struct agent_pairs pod_keys; /* pod_labels as pairs: k8s.pod.label.KEY and KEY */
	bool kubelet_insecure;
	uint64_t kubelet_interval_ns;

	char *metrics;
	enum agent_log_level log_level;
	enum agent_log_format log_format;

	/* Bits by number of the key: those from the file or the command line. */
	uint64_t given;
};

struct agent_key {
	const char *section, *name, *arg; /* arg NULL: a switch on the command line */
	const char *help;
};

const struct agent_key *agent_key_at(size_t i); /* NULL past the last one */

/* All of these return 0, or -EINVAL or -ENOMEM with a message. */
struct agent_config_error {
	char text[512];
};

struct agent_config *agent_config_new(void); /* the defaults; NULL: out of memory */
void agent_config_free(struct agent_config *c);
int agent_config_file(struct agent_config *c, const char *path, struct agent_config_error *err);
int agent_config_environment(struct agent_config *c, struct agent_config_error *err);
/* value NULL: a switch without a value. */
int agent_config_set(struct agent_config *c, size_t key, const char *value,
		     struct agent_config_error *err);
/* Called last: checks for contradictions and missing keys, and sets keys that depend on others. */
int agent_config_check(struct agent_config *c, struct agent_config_error *err);
/* Prints an INI file; the values of headers are not shown. */
int agent_config_print(const struct agent_config *c, int fd);
/* A copy of what the thread for the kubelet needs. NULL: out of memory. */
struct agent_config *agent_config_kubelet(const struct agent_config *c);
bool agent_config_same_kubelet(const struct agent_config *a, const struct agent_config *b);
const char *agent_protocol_name(enum agent_protocol protocol);
/* Whether the two differ in settings that are used once, before privileges are dropped. */
bool agent_config_needs_restart(const struct agent_config *a, const struct agent_config *b);
/* Whether the file or the command line has the key. */
bool agent_config_given(const struct agent_config *c, const char *name);

#endif
