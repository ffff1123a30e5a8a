/* SPDX-License-Identifier: BSD-2-Clause */
/* The environment variables of OpenTelemetry's exporters. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/config_pairs.h"
#include "agent/config_value.h"
#include "base/num.h"

/*
 * The value of OTEL_EXPORTER_OTLP_PROFILES_name, else of OTEL_EXPORTER_OTLP_name. Empty values
 * count as unset. *ret_base: not from the former.
 */
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

	return v ? config_set_string(at, v) : 0;
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
		return config_fail(err,
				   "OTEL_EXPORTER_OTLP_PROTOCOL: '%s' is not grpc or http/protobuf",
				   v);
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
	if (v && config_set_string(&c->endpoint, v))
		return -ENOMEM;
	if (v)
		c->endpoint_is_base = base;
	if ((v = exporter_env("HEADERS", NULL)) && config_pairs_from(&c->headers, true, v))
		return config_fail(err, "OTEL_EXPORTER_OTLP_HEADERS is not a list of name=value");
	if ((v = getenv("OTEL_RESOURCE_ATTRIBUTES")) && config_pairs_from(&c->labels, false, v))
		return config_fail(err, "OTEL_RESOURCE_ATTRIBUTES is not a list of name=value");
	if ((v = exporter_env("COMPRESSION", NULL)))
		c->gzip = !strcmp(v, "gzip");
	if ((v = exporter_env("TIMEOUT", NULL))) {
		if (num_u64(v, 50, 600000, &ms))
			return config_fail(
				err,
				"OTEL_EXPORTER_OTLP_TIMEOUT: '%s' is not a number of milliseconds "
				"from 50 to 600000",
				v);
		c->timeout_ns = ms * NUM_MS;
	}
	if ((v = getenv("OTEL_SERVICE_NAME")) && *v && config_set_string(&c->service, v))
		return -ENOMEM;
	if (env_string("CERTIFICATE", &c->ca_file) ||
	    env_string("CLIENT_CERTIFICATE", &c->cert_file) ||
	    env_string("CLIENT_KEY", &c->key_file))
		return -ENOMEM;
	return 0;
}
