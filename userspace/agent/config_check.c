/* SPDX-License-Identifier: BSD-2-Clause */
/* What a configuration as a whole must be: values that exist and do not contradict each other. */
#include <curl/curl.h>
#include <errno.h>
#include <pwd.h>
#include <string.h>
#include <unistd.h>

#include "agent/config_kubelet.h"
#include "agent/config_value.h"
#include "agent/listen.h"
#include "agent/receiver.h"
#include "agent/rules.h"

static int check_directory(const struct agent_config *c, struct agent_config_error *err)
{
	const char *scheme = strstr(c->endpoint, "://");

	if (scheme && strncmp(c->endpoint, "file:///", 8))
		return config_fail(err,
				   "endpoint: '%s' is not a directory, which protocol %s needs",
				   c->endpoint, agent_protocol_name(c->protocol));
	return 0;
}

static int check_endpoint(struct agent_config *c, struct agent_config_error *err)
{
	const struct receiver *r = receiver_at(c->protocol);
	const char *host;

	if (!c->endpoint && !r->endpoint)
		return config_fail(err, "protocol %s needs an endpoint: %s",
				   agent_protocol_name(c->protocol),
				   r->write ? "a directory" : "a URL");
	if (!c->endpoint && config_set_string(&c->endpoint, r->endpoint))
		return -ENOMEM;
	if (r->write)
		return check_directory(c, err);
	host = strstr(c->endpoint, "://");
	if ((strncmp(c->endpoint, "http://", 7) && strncmp(c->endpoint, "https://", 8)) ||
	    !host[3] || host[3] == '/')
		return config_fail(err, "endpoint: '%s' is not http://HOST[:PORT] or https://...",
				   c->endpoint);
	if (strchr(host, '@') || strchr(c->endpoint, '?') || strchr(c->endpoint, '#'))
		return config_fail(
			err,
			"endpoint: the URL must not contain a user, password, query or fragment; "
			"put credentials in token-file or header-file");
	return config_check_url("endpoint", c->endpoint, err);
}

static int check_files(const struct agent_config *c, struct agent_config_error *err)
{
	int rc;

	if (!c->cert_file != !c->key_file)
		return config_fail(err, "cert-file and key-file belong together");
	if ((rc = config_check_readable("ca-file", c->ca_file, err)) ||
	    (rc = config_check_readable("cert-file", c->cert_file, err)) ||
	    (rc = config_check_readable("key-file", c->key_file, err)) ||
	    (rc = config_check_readable("token-file", c->token_file, err)))
		return rc;
	return config_check_readable("header-file", c->header_file, err);
}

/* An address and a user that a start needs. */
static int check_names(struct agent_config *c, struct agent_config_error *err)
{
	char host[256];

	if (!c->metrics && config_set_string(&c->metrics, "127.0.0.1:9419"))
		return -ENOMEM;
	if (strcmp(c->metrics, "none") && !listen_address(c->metrics, host, sizeof(host)))
		return config_fail(err,
				   "metrics-address: '%s' is not [HOST:]PORT, "
				   "PORT from 0 to 65535, or none",
				   c->metrics);
	if (c->user && !getpwnam(c->user))
		return config_fail(err, "user: there is no user '%s'", c->user);
	return 0;
}

static int check_format(struct agent_config *c, struct agent_config_error *err)
{
	bool file = receiver_at(c->protocol)->write;

	if (!c->format && config_set_string(&c->format, file ? "pprof" : "folded"))
		return -ENOMEM;
	if (!out_format_named(c->format, OUT_PROFILE))
		return config_fail(err, "format: '%s' is not one of%s", c->format,
				   out_format_names(OUT_PROFILE));
	return 0;
}

static bool has_authorization(const struct agent_pairs *headers)
{
	for (size_t i = 0; i < headers->n; i++)
		if (!strcasecmp(headers->list[i].name, "Authorization"))
			return true;
	return false;
}

/* Keys that were given and would do nothing, or the opposite of one another. */
static int check_contradictions(const struct agent_config *c, struct agent_config_error *err)
{
	const struct receiver *r = receiver_at(c->protocol);
	const char *protocol = agent_protocol_name(c->protocol);
	bool tls = !r->write && !strncmp(c->endpoint, "https:", 6);
	static const char *const of_tls[] = { "ca-file", "cert-file", "key-file", "insecure" };

	if (agent_config_given(c, "format") && !r->write && !c->copy)
		return config_fail(err, "format is for protocol file and for copy, not for %s",
				   protocol);
	if ((c->keep_ns || c->keep_bytes) && !r->write)
		return config_fail(err, "keep and keep-bytes are for protocol file, not for %s",
				   protocol);
	if (agent_config_given(c, "database") && c->protocol != AGENT_CLICKHOUSE)
		return config_fail(err, "database is for protocol clickhouse, not for %s",
				   protocol);
	if (c->symbols == AGENT_SYMBOLS_NONE && !(r->bodies & BODY_BIT(BODY_OTLP)))
		return config_fail(err,
				   "symbols = none is for otlphttp and otlpgrpc: %s sends names",
				   protocol);
	for (size_t i = 0; i < sizeof(of_tls) / sizeof(of_tls[0]); i++)
		if (agent_config_given(c, of_tls[i]) && !tls &&
		    (strcmp(of_tls[i], "insecure") || c->insecure))
			return config_fail(err, "%s needs an endpoint that begins with https://",
					   of_tls[i]);
	if (c->trace_links && !c->process_context)
		return config_fail(err, "trace-links needs process-context, in which a process "
					"says that its threads have spans");
	if (c->insecure && agent_config_given(c, "ca-file"))
		return config_fail(err, "insecure and ca-file contradict each other: "
					"without a check, nothing needs the certificate");
	if (c->token_file && has_authorization(&c->headers))
		return config_fail(err, "token-file and the header Authorization contradict each "
					"other: both set the same header");
	return 0;
}

/* Sets a limit that was not given to what the other one allows. */
static int check_limits(struct agent_config *c, struct agent_config_error *err)
{
	if (c->retry_max_ns < c->retry_min_ns) {
		if (agent_config_given(c, "retry-min") && agent_config_given(c, "retry-max"))
			return config_fail(err, "retry-max is less than retry-min");
		if (agent_config_given(c, "retry-max"))
			c->retry_min_ns = c->retry_max_ns;
		else
			c->retry_max_ns = c->retry_min_ns;
	}
	if (c->window_share > 100)
		return config_fail(err, "window-share is more than 100 %%");
	if (c->request_bytes > c->spool_bytes / 2) {
		if (agent_config_given(c, "request-size") && agent_config_given(c, "spool-size"))
			return config_fail(err, "request-size is more than half of spool-size");
		c->request_bytes = c->spool_bytes / 2;
	}
	return 0;
}

int agent_config_check(struct agent_config *c, struct agent_config_error *err)
{
	int rc;

	if ((rc = check_endpoint(c, err)) || (rc = check_format(c, err)) ||
	    (rc = check_names(c, err)) || (rc = check_files(c, err)) ||
	    (rc = check_contradictions(c, err)) || (rc = config_check_kubelet(c, err)) ||
	    (rc = rules_check(c, err)))
		return rc;
	return check_limits(c, err);
}

static bool differ(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "") != 0;
}

bool agent_config_needs_restart(const struct agent_config *a, const struct agent_config *b)
{
	return differ(a->spool, b->spool) || differ(a->user, b->user) ||
	       differ(a->metrics, b->metrics) || differ(a->host, b->host) ||
	       a->table_bytes != b->table_bytes || a->ring_bytes != b->ring_bytes ||
	       a->redact != b->redact || a->seccomp != b->seccomp ||
	       a->trace_links != b->trace_links;
}
