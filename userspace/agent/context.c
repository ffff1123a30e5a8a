/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/context.h"

#include <string.h>

#include "base/pb.h"
#include "base/text.h"

/* Field numbers, by message. */
enum {
	CONTEXT_RESOURCE = 1,
	CONTEXT_ATTRIBUTES = 2,
	RESOURCE_ATTRIBUTES = 1,
	KEY_VALUE_KEY = 1,
	KEY_VALUE_VALUE = 2,
	ANY_STRING = 1,
};

static bool is(const struct bytes *s, const char *want)
{
	return s->len == strlen(want) && bytes_are(s, 0, want, s->len);
}

/* The text of an attribute; NULL: it does not matter. */
static char *text_of(struct target *t, const struct bytes *key)
{
	return is(key, "service.name")			? t->service
	       : is(key, "service.namespace")		? t->space
	       : is(key, "service.version")		? t->version
	       : is(key, "service.instance.id")		? t->instance
	       : is(key, "deployment.environment.name") ? t->environment
							: NULL;
}

static bool parse_value(struct bytes msg, struct bytes *ret)
{
	struct pb_field f;

	while (pb_next(&msg, &f))
		if (f.number == ANY_STRING)
			*ret = f.bytes;
	return !msg.err;
}

static bool parse_attribute(struct bytes msg, struct bytes *ret_key, struct bytes *ret_value)
{
	struct pb_field f;

	*ret_key = *ret_value = (struct bytes){ 0 };
	while (pb_next(&msg, &f)) {
		if (f.number == KEY_VALUE_KEY)
			*ret_key = f.bytes;
		else if (f.number == KEY_VALUE_VALUE && !parse_value(f.bytes, ret_value))
			return false;
	}
	return !msg.err;
}

static bool parse_resource(struct bytes msg, struct target *ret)
{
	struct bytes key, value;
	struct pb_field f;
	char *text;

	while (pb_next(&msg, &f)) {
		if (f.number != RESOURCE_ATTRIBUTES)
			continue;
		if (!parse_attribute(f.bytes, &key, &value))
			return false;
		text = text_of(ret, &key);
		if (text && value.len)
			text_clean(text, TARGET_TEXT, (const char *)value.base, value.len, 0);
	}
	return !msg.err;
}

/*
 * Schemas that have a thread-local variable are called tls_v1 and, before OTEP 4947 was accepted,
 * tlsdesc_v1_dev.
 */
static bool has_threads(const struct bytes *key, const struct bytes *value)
{
	return is(key, "threadlocal.schema_version") &&
	       (is(value, "tls_v1") || is(value, "tlsdesc_v1_dev"));
}

bool context_parse(const void *data, size_t len, struct target *ret, bool *ret_threads)
{
	static const char unknown[] = "unknown_service";
	struct bytes msg = bytes_of(data, len, false);
	struct bytes key, value;
	struct pb_field f;

	*ret = (struct target){ 0 };
	*ret_threads = false;
	while (pb_next(&msg, &f)) {
		if (f.number == CONTEXT_RESOURCE && !parse_resource(f.bytes, ret))
			return false;
		if (f.number != CONTEXT_ATTRIBUTES)
			continue;
		if (!parse_attribute(f.bytes, &key, &value))
			return false;
		*ret_threads |= has_threads(&key, &value);
	}
	if (!strncmp(ret->service, unknown, strlen(unknown)) &&
	    (!ret->service[strlen(unknown)] || ret->service[strlen(unknown)] == ':'))
		*ret->service = 0;
	return !msg.err;
}
