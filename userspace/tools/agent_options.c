/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/agent_options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/exitcode.h"
#include "cli/tools.h"

enum { OPT_CONFIG = 900, OPT_CHECK, OPT_ONCE, OPT_SCHEMA, OPT_KEY = 1000, OPT_NO_KEY = 2000 };

#define MAX_SPECS 96
#define NO_KEY	  SIZE_MAX

static struct option_spec specs[MAX_SPECS];
static char no_names[MAX_SPECS][40];

static bool is_common(const char *name)
{
	for (size_t i = 0; common_options[i].id; i++)
		if (common_options[i].name && !strcmp(common_options[i].name, name))
			return true;
	return false;
}

static const struct option_spec *make_options(void)
{
	static const struct option_spec own[] = {
		{ OPT_CONFIG, "config", "FILE", "configuration file; SIGHUP reloads it" },
		{ OPT_CHECK, "check-config", NULL,
		  "print the effective configuration, or the error in it, and exit" },
		{ OPT_ONCE, "once", NULL,
		  "deliver one window and exit, with 0 if the receiver accepted it" },
		{ OPT_SCHEMA, "print-schema", NULL,
		  "print the SQL that creates the ClickHouse tables" },
	};
	const struct agent_key *k;
	size_t n = sizeof(own) / sizeof(own[0]);

	memcpy(specs, own, sizeof(own));
	for (size_t i = 0; (k = agent_key_at(i)) && n < MAX_SPECS - 2; i++) {
		if (is_common(k->name))
			continue;
		specs[n++] = (struct option_spec){ OPT_KEY + (int)i, k->name, k->arg, k->help };
		if (k->arg)
			continue;
		snprintf(no_names[n], sizeof(no_names[n]), "no-%s", k->name);
		specs[n] = (struct option_spec){ OPT_NO_KEY + (int)i, no_names[n], NULL,
						 "turn it off" };
		n++;
	}
	specs[n] = (struct option_spec){ 0 };
	return specs;
}

const struct tool_spec agent_tool = {
	.name = "agent",
	.usage = "agent [options]",
	.brief = "profile continuously; deliver to OTLP, Pyroscope, Parca, ClickHouse or files",
	.summary = "Profiles the whole machine continuously, in windows of a few seconds, and "
		   "delivers them over OTLP (HTTP or gRPC) or to Pyroscope, Parca, ClickHouse or "
		   "files. A bounded spool keeps windows that cannot be delivered yet. Each option "
		   "except the first four is also a key of the configuration file. The agent reads "
		   "OTEL_EXPORTER_OTLP_* and OTEL_RESOURCE_ATTRIBUTES. -o DIR means --copy DIR.",
	.make_options = make_options,
	.common = true,
	.examples = "  sudo sfbpf agent --endpoint http://collector:4318\n"
		    "  sudo sfbpf agent --config /etc/sfbpf/agent.ini\n"
		    "  sudo sfbpf agent --once --protocol file --endpoint /tmp/profiles\n",
	.run = agent_run,
};

static size_t key_named(const char *name)
{
	const struct agent_key *k;

	for (size_t i = 0; (k = agent_key_at(i)); i++)
		if (!strcmp(k->name, name))
			return i;
	return NO_KEY;
}

static int give(struct agent_options *o, size_t key, const char *value)
{
	if (key == NO_KEY || o->ngiven == AGENT_MAX_GIVEN)
		return complain(EXIT_USAGE, "too many options");
	o->given[o->ngiven].key = key;
	o->given[o->ngiven++].value = value;
	return 0;
}

/* The configuration key that a common option sets; NULL: none. */
static const char *key_of_common(int id)
{
	switch (id) {
	case 'F':
		return "frequency";
	case 'o':
		return "copy";
	case OPT_FORMAT:
		return "format";
	case OPT_TABLES:
		return "table-memory";
	case OPT_RING:
		return "ring-size";
	default:
		return NULL;
	}
}

static int take(void *ctx, int id, const char *arg)
{
	struct agent_options *o = ctx;
	const char *key = key_of_common(id);

	if (key)
		return give(o, key_named(key), arg);
	if (id >= OPT_NO_KEY)
		return give(o, (size_t)(id - OPT_NO_KEY), "no");
	if (id >= OPT_KEY)
		return give(o, (size_t)(id - OPT_KEY), arg ? arg : "yes");
	switch (id) {
	case OPT_CONFIG:
		o->config = arg;
		return 0;
	case OPT_CHECK:
		o->check = true;
		return 0;
	case OPT_ONCE:
		o->once = true;
		return 0;
	case OPT_SCHEMA:
		o->schema = true;
		return 0;
	default:
		return common_opts_take(&o->common, id, arg);
	}
}

int agent_options_parse(struct agent_options *o, int argc, char **argv)
{
	int err;

	*o = (struct agent_options){ 0 };
	common_opts_init(&o->common, 19);
	err = options_parse(&agent_tool, argc, argv, take, o);
	if (err)
		return err;
	if (optind < argc)
		return complain(EXIT_USAGE, "unexpected '%s': agent takes only options",
				argv[optind]);
	err = common_opts_check(&o->common);
	return err ? err : common_opts_one_count(&o->common);
}

struct agent_config *agent_options_config(const struct agent_options *o,
					  struct agent_config_error *err)
{
	struct agent_config *c = agent_config_new();
	int rc = 0;

	if (!c) {
		snprintf(err->text, sizeof(err->text), "out of memory");
		return NULL;
	}
	if (o->config)
		rc = agent_config_file(c, o->config, err);
	if (!rc)
		rc = agent_config_environment(c, err);
	for (size_t i = 0; i < o->ngiven && !rc; i++)
		rc = agent_config_set(c, o->given[i].key, o->given[i].value, err);
	if (!rc)
		rc = agent_config_check(c, err);
	if (!rc)
		return c;
	agent_config_free(c);
	return NULL;
}
