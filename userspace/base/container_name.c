/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/container_name.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/full_io.h"
#include "base/hash.h"
#include "base/in_root.h"
#include "base/json_read.h"
#include "base/text.h"

#define MAX_FILE (4 << 20)
#define SLOTS	 256 /* a power of two; a new name replaces the one in its slot */

struct container_names {
	int root_fd;
	struct slot {
		char id[CONTAINER_ID_MAX];
		struct container_name name;
	} slots[SLOTS];
};

typedef void (*read_fn)(struct json_reader *j, const char *id, struct container_name *ret);

static void take(struct json_reader *j, char *dst, size_t cap)
{
	const char *s = json_string(j);

	text_clean(dst, cap, s, strlen(s), 0);
}

/* "web", docker's "/web", and Kubernetes' "k8s_CONTAINER_POD_NAMESPACE_UID_ATTEMPT". */
static void take_name(struct json_reader *j, struct container_name *ret)
{
	static const char kube[] = "k8s_", sandbox[] = "POD_";
	const char *s = json_string(j), *pod, *space, *uid;

	s += *s == '/';
	pod = strncmp(s, kube, strlen(kube)) ? NULL : strchr(s + strlen(kube), '_');
	space = pod ? strchr(pod + 1, '_') : NULL;
	uid = space ? strchr(space + 1, '_') : NULL;
	if (!uid) {
		text_clean(ret->name, sizeof(ret->name), s, strlen(s), 0);
		return;
	}
	s += strlen(kube);
	text_clean(ret->pod, sizeof(ret->pod), pod + 1, (size_t)(space - pod - 1), 0);
	text_clean(ret->space, sizeof(ret->space), space + 1, (size_t)(uid - space - 1), 0);
	if (strncmp(s, sandbox, strlen(sandbox)) != 0)
		text_clean(ret->name, sizeof(ret->name), s, (size_t)(pod - s), 0);
}

/* {"Name": "/web"} */
static void read_docker(struct json_reader *j, const char *id, struct container_name *ret)
{
	const char *key;

	(void)id;
	if (!json_enter(j, '{'))
		return;
	while ((key = json_key(j))) {
		if (!strcmp(key, "Name"))
			take_name(j, ret);
		else
			json_skip(j);
	}
}

static void read_annotations(struct json_reader *j, struct container_name *ret)
{
	const char *key;

	if (!json_enter(j, '{'))
		return;
	while ((key = json_key(j))) {
		if (!strcmp(key, "io.kubernetes.cri.container-name") ||
		    !strcmp(key, "nerdctl/name"))
			take(j, ret->name, sizeof(ret->name));
		else if (!strcmp(key, "io.kubernetes.cri.sandbox-name"))
			take(j, ret->pod, sizeof(ret->pod));
		else if (!strcmp(key, "io.kubernetes.cri.sandbox-namespace"))
			take(j, ret->space, sizeof(ret->space));
		else
			json_skip(j);
	}
}

/* OCI runtime specification, config.json: {"annotations": {"KEY": "VALUE"}} */
static void read_bundle(struct json_reader *j, const char *id, struct container_name *ret)
{
	const char *key;

	(void)id;
	if (!json_enter(j, '{'))
		return;
	while ((key = json_key(j))) {
		if (!strcmp(key, "annotations"))
			read_annotations(j, ret);
		else
			json_skip(j);
	}
}

/* [{"id": "ID", "names": ["web"]}] */
static void read_list(struct json_reader *j, const char *id, struct container_name *ret)
{
	const char *key;

	if (!json_enter(j, '['))
		return;
	while (json_element(j)) {
		struct container_name first = { 0 };
		bool is_it = false, any = false;

		if (!json_enter(j, '{'))
			continue;
		while ((key = json_key(j))) {
			if (!strcmp(key, "id")) {
				is_it = !strcmp(json_string(j), id);
			} else if (strcmp(key, "names") != 0) {
				json_skip(j);
			} else if (json_enter(j, '[')) {
				for (; json_element(j); any = true) {
					if (any)
						json_skip(j);
					else
						take_name(j, &first);
				}
			}
		}
		if (is_it)
			*ret = first;
	}
}

#define TASKS	"io.containerd.runtime.v2.task"
#define STORAGE "var/lib/containers/storage/overlay-containers/"

static const struct source {
	const char *dir, *file; /* dir/ID/file; dir NULL: file */
	read_fn read;
} sources[] = {
	{ "var/lib/docker/containers", "config.v2.json", read_docker },
	{ "run/containerd/" TASKS "/k8s.io", "config.json", read_bundle },
	{ "run/k3s/containerd/" TASKS "/k8s.io", "config.json", read_bundle },
	{ "run/containerd/" TASKS "/default", "config.json", read_bundle },
	{ NULL, STORAGE "containers.json", read_list },
	{ NULL, STORAGE "volatile-containers.json", read_list },
};

static void read_source(int root_fd, const struct source *s, const char *id,
			struct container_name *ret)
{
	struct json_reader j;
	char path[PATH_MAX], *text = NULL;
	struct stat st;
	int fd;

	if (s->dir)
		snprintf(path, sizeof(path), "%s/%s/%s", s->dir, id, s->file);
	fd = open_in_root(root_fd, s->dir ? path : s->file, &st);
	if (fd < 0)
		return;
	if (st.st_size > 0 && st.st_size <= MAX_FILE)
		text = malloc((size_t)st.st_size);
	if (text && !pread_full(fd, text, (size_t)st.st_size, 0)) {
		json_reader_init(&j, text, (size_t)st.st_size);
		s->read(&j, id, ret);
		if (j.bytes.err) /* not all of it: believe nothing */
			*ret = (struct container_name){ 0 };
		json_reader_free(&j);
	}
	free(text);
	close(fd);
}

static void look_up(struct container_names *cn, const struct container *c,
		    struct container_name *ret)
{
	const char *id = c->id;
	size_t len = strlen(id);

	if (!strcmp(c->runtime, "lxc"))
		text_clean(ret->name, sizeof(ret->name), id, len, 0);
	if (cn->root_fd < 0 || strspn(id, "0123456789abcdef") != len)
		return; /* an id is part of a path */
	for (size_t i = 0; i < sizeof(sources) / sizeof(*sources); i++)
		if (!*ret->name && !*ret->pod)
			read_source(cn->root_fd, &sources[i], id, ret);
}

struct container_names *container_names_new(int root_fd)
{
	struct container_names *cn = calloc(1, sizeof(*cn));

	if (cn)
		cn->root_fd = root_fd;
	else if (root_fd >= 0)
		close(root_fd);
	return cn;
}

struct container_names *container_names_of_host(void)
{
	int root = root_of_process(1);

	return container_names_new(root < 0 ? root_of_process(0) : root);
}

void container_names_free(struct container_names *cn)
{
	if (cn && cn->root_fd >= 0)
		close(cn->root_fd);
	free(cn);
}

const struct container_name *container_names_get(struct container_names *cn,
						 const struct container *c)
{
	static const struct container_name none;
	size_t len = strlen(c->id);
	struct slot *s;

	if (!cn || !len)
		return &none;
	s = &cn->slots[hash_bytes(c->id, len) & (SLOTS - 1)];
	if (strcmp(s->id, c->id) != 0) {
		memcpy(s->id, c->id, len + 1);
		s->name = none;
		look_up(cn, c, &s->name);
	}
	return &s->name;
}

char *container_name_text(const struct container_name *name, char dst[CONTAINER_TEXT])
{
	snprintf(dst, CONTAINER_TEXT, "%s%s%s", name->pod, *name->pod && *name->name ? "/" : "",
		 name->name);
	return dst;
}
