/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/json.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/text.h"

/* The number of leading bytes of s that need no escaping: usually all. */
static size_t plain(const char *s)
{
	size_t n = 0;

	while (s[n] >= 0x20 && s[n] < 0x7f && s[n] != '"' && s[n] != '\\' && s[n] != '<' &&
	       s[n] != '/')
		n++;
	return n;
}

static void quote(const struct json *j, const char *s)
{
	FILE *f = j->f;
	size_t len = strlen(s), i = 0;

	putc('"', f);
	while (i < len) {
		uint32_t c;
		size_t n = plain(s + i);

		if (n) {
			fwrite(s + i, 1, n, f);
			i += n;
			continue;
		}
		n = text_decode(s + i, len - i, &c);
		if (c == UINT32_MAX)
			fputs("\\ufffd", f);
		else if (c == '"' || c == '\\')
			fprintf(f, "\\%c", (char)c);
		else if (c == '\n')
			fputs("\\n", f);
		else if (c == '\t')
			fputs("\\t", f);
		else if (c < 0x20 || c == 0x7f || c == 0x2028 || c == 0x2029)
			/* The last two end a line in older JavaScript */
			fprintf(f, "\\u%04x", c);
		else if (c == '<' && j->html)
			fputs("\\u003c", f);
		else if (c == '/' && i && s[i - 1] == '<')
			fputs("\\/", f);
		else
			fwrite(s + i, 1, n, f);
		i += n;
	}
	putc('"', f);
}

static void lead(struct json *j, const char *key)
{
	if (j->comma)
		putc(',', j->f);
	j->comma = true;
	if (key) {
		quote(j, key);
		putc(':', j->f);
	}
}

static void open_with(struct json *j, const char *key, char bracket)
{
	lead(j, key);
	putc(bracket, j->f);
	j->comma = false;
}

static void close_with(struct json *j, char bracket)
{
	putc(bracket, j->f);
	j->comma = true;
}

void json_object(struct json *j, const char *key)
{
	open_with(j, key, '{');
}

void json_object_end(struct json *j)
{
	close_with(j, '}');
}

void json_array(struct json *j, const char *key)
{
	open_with(j, key, '[');
}

void json_array_end(struct json *j)
{
	close_with(j, ']');
}

void json_str(struct json *j, const char *key, const char *value)
{
	lead(j, key);
	if (value)
		quote(j, value);
	else
		fputs("null", j->f);
}

void json_u64(struct json *j, const char *key, uint64_t value)
{
	lead(j, key);
	fprintf(j->f, "%" PRIu64, value);
}

void json_i64(struct json *j, const char *key, int64_t value)
{
	lead(j, key);
	fprintf(j->f, "%" PRId64, value);
}

void json_double(struct json *j, const char *key, double value, int decimals)
{
	uint64_t scale = 1, scaled;

	lead(j, key);
	if (!isfinite(value)) {
		fputs("null", j->f);
		return;
	}
	for (int i = 0; i < decimals; i++)
		scale *= 10;
	/* printf %f would use the decimal point of the locale. */
	if (!decimals || fabs(value) >= 9e18 / (double)scale) {
		fprintf(j->f, "%.0f", value);
		return;
	}
	scaled = (uint64_t)(fabs(value) * (double)scale + 0.5);
	fprintf(j->f, "%s%" PRIu64 ".%0*" PRIu64, value < 0 && scaled ? "-" : "", scaled / scale,
		decimals, scaled % scale);
}

void json_bool(struct json *j, const char *key, bool value)
{
	lead(j, key);
	fputs(value ? "true" : "false", j->f);
}

void json_newline(struct json *j)
{
	putc('\n', j->f);
}
