/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/config_value.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int config_fail(struct agent_config_error *err, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, args);
	va_end(args);
	return -EINVAL;
}

int config_set_string(char **at, const char *value)
{
	char *copy = strdup(value);

	if (!copy)
		return -ENOMEM;
	free(*at);
	*at = copy;
	return 0;
}

bool config_has_control(const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < ' ' || *s == 0x7f)
			return true;
	return false;
}

int config_check_url(const char *key, const char *url, struct agent_config_error *err)
{
	CURLU *u = curl_url();
	char *port = NULL;
	CURLUcode rc;
	int ret = 0;

	if (!u)
		return -ENOMEM;
	rc = curl_url_set(u, CURLUPART_URL, url, 0);
	if (rc || (!curl_url_get(u, CURLUPART_PORT, &port, 0) && !strcmp(port, "0")))
		ret = config_fail(err,
				  "%s: '%s' is not a URL: its %s is wrong; "
				  "accepted is http[s]://HOST[:PORT][/PATH], PORT from 1 to 65535",
				  key, url, rc == CURLUE_BAD_PORT_NUMBER || !rc ? "port" : "host");
	curl_free(port);
	curl_url_cleanup(u);
	return ret;
}

int config_check_readable(const char *what, const char *path, struct agent_config_error *err)
{
	return path && access(path, R_OK)
		       ? config_fail(err, "%s: %s: %s", what, path, strerror(errno))
		       : 0;
}
