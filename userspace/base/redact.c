/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/redact.h"

#include <stdbool.h>
#include <string.h>

static bool is_private(const char *path)
{
	static const char *const homes[] = { "/home/", "/root/", "/Users/", "/run/user/" };

	for (size_t i = 0; i < sizeof(homes) / sizeof(homes[0]); i++)
		if (!strncmp(path, homes[i], strlen(homes[i])))
			return true;
	return false;
}

static size_t append_text(char *dst, size_t n, size_t cap, const char *s, size_t len)
{
	if (len > cap - 1 - n)
		len = cap - 1 - n;
	memcpy(dst + n, s, len);
	return n + len;
}

void redact_paths(enum redact which, const char *text, char *dst, size_t cap)
{
	bool inside = false; /* inside a word, where a '/' does not start a path */
	size_t n = 0;

	while (*text) {
		size_t len = strcspn(text, " \t\"'()<>,;=");
		bool path = which != REDACT_NONE && !inside && *text == '/' &&
			    (which == REDACT_ALL || is_private(text));

		if (path) {
			const char *slash = memrchr(text, '/', len);

			n = append_text(dst, n, cap, "~/", which == REDACT_HOME ? 2 : 0);
			n = append_text(dst, n, cap, slash + 1, len - (size_t)(slash + 1 - text));
			text += len;
			inside = true;
		} else {
			/* Characters that may precede a path, such as node's "file:///home/...". */
			inside = !strchr(" \t\"'()<>,;=:", *text) && *text != '/';
			n = append_text(dst, n, cap, text++, 1);
		}
	}
	dst[n] = 0;
}
