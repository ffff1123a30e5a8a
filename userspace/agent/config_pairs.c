/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/config_pairs.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/config_value.h"
#include "base/text.h"
#include "base/vec.h"

#define MAX_NAME 128 /* bytes of a name */

static bool only_has(const char *name, size_t len, const char *punctuation)
{
	for (size_t i = 0; i < len; i++)
		if (!name[i] || (!isalnum((unsigned char)name[i]) && !strchr(punctuation, name[i])))
			return false;
	return true;
}

const char *config_pair_error(bool header, const char *name, size_t len, const char *value)
{
	char clean[4096];

	if (!len || len > MAX_NAME)
		return "a name has 1 to 128 characters";
	if (header ? !only_has(name, len, "!#$%&'*+-.^_`|~")
		   : !only_has(name, len, "_./-") ||
			     !(isalpha((unsigned char)*name) || *name == '_'))
		return header ? "a header's name has letters, digits and !#$%&'*+-.^_`|~"
			      : "a label's name has letters, digits, '_', '.', '/' and '-', and "
				"begins with a letter or '_'";
	if (config_has_control(value))
		return "the value has a control character";
	text_clean(clean, sizeof(clean), value, strlen(value), 0);
	if (!header && strcmp(clean, value))
		return "the value is not text in UTF-8 of less than 4096 bytes";
	return NULL;
}

struct agent_pair *config_find_pair(const struct agent_pairs *p, const char *name, size_t len)
{
	for (size_t i = 0; i < p->n; i++)
		if (strlen(p->list[i].name) == len && !strncmp(p->list[i].name, name, len))
			return &p->list[i];
	return NULL;
}

int config_set_pair(struct agent_pairs *p, const char *name, size_t len, const char *value)
{
	struct agent_pair *there = config_find_pair(p, name, len);
	char *key;

	if (there)
		return config_set_string(&there->value, value);
	key = strndup(name, len);
	if (!key || vec_reserve(&p->list, &p->cap, p->n + 1, sizeof(*p->list))) {
		free(key);
		return -ENOMEM;
	}
	p->list[p->n++] = (struct agent_pair){ key, NULL };
	return config_set_string(&p->list[p->n - 1].value, value);
}

static int hex(char ch)
{
	return ch >= '0' && ch <= '9'		      ? ch - '0'
	       : (ch | 32) >= 'a' && (ch | 32) <= 'f' ? (ch | 32) - 'a' + 10
						      : -1;
}

int config_pairs_from(struct agent_pairs *p, bool headers, const char *list)
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
		if (n && (!eq || config_pair_error(headers, item, (size_t)(eq - item), eq + 1)))
			return -EINVAL;
		if (n && config_set_pair(p, item, (size_t)(eq - item), eq + 1))
			return -ENOMEM;
		list = end + (*end == ',');
	}
	return 0;
}
