/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/identity.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/text.h"

static FILE *open_in(const char *etc, const char *name)
{
	char path[300];

	snprintf(path, sizeof(path), "%s/%s", etc, name);
	return fopen(path, "re");
}

/* NAME=value or NAME="value", as in os-release(5). Other quoting is shown as it is. */
static void take(const char *line, const char *name, char *ret, size_t cap)
{
	size_t len = strlen(name);
	const char *value = line + len + 1;

	if (strncmp(line, name, len) || line[len] != '=')
		return;
	len = strlen(value);
	if (len >= 2 && (*value == '"' || *value == '\'') && value[len - 1] == *value) {
		value++;
		len -= 2;
	}
	text_clean(ret, cap, value, len, 0);
}

static void read_os(struct identity *ret, const char *etc)
{
	char line[512], pretty[120] = "";
	FILE *f = open_in(etc, "os-release");
	struct utsname un;

	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		take(line, "NAME", ret->os_name, sizeof(ret->os_name));
		take(line, "VERSION_ID", ret->os_version, sizeof(ret->os_version));
		take(line, "PRETTY_NAME", pretty, sizeof(pretty));
	}
	if (f)
		fclose(f);
	if (uname(&un))
		return;
	snprintf(ret->os_description, sizeof(ret->os_description), "%s%sLinux %.60s", pretty,
		 *pretty ? ", " : "", un.release);
	snprintf(ret->arch, sizeof(ret->arch), "%.15s",
		 !strcmp(un.machine, "x86_64")	  ? "amd64"
		 : !strcmp(un.machine, "aarch64") ? "arm64"
						  : un.machine);
}

void identity_read(struct identity *ret, const char *etc)
{
	FILE *f = open_in(etc, "machine-id");
	char id[64] = "";

	*ret = (struct identity){ .host_id = "" };
	if (f && fgets(id, sizeof(id), f))
		id[strcspn(id, "\n")] = 0;
	if (f)
		fclose(f);
	if (strlen(id) == 32 && strspn(id, "0123456789abcdef") == 32)
		strcpy(ret->host_id, id);
	read_os(ret, etc);
}
