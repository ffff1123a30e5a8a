/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of containers from the files of their runtimes, well-formed and hostile. */
#include "base/container_name.h"

#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "files.h"
#include "test.h"

#define ID  "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define ID2 "f123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

#define DOCKER	   "root/var/lib/docker/containers/" ID
#define CONTAINERD "root/run/containerd/io.containerd.runtime.v2.task/"
#define STORAGE	   "root/var/lib/containers/storage/overlay-containers"

static struct container_name found; /* by name_of */

/* The name, by someone who asks for the first time. */
static const char *name_of(const char *runtime, const char *id)
{
	static char text[CONTAINER_TEXT];
	struct container_names *cn =
		container_names_new(open(in_dir("root"), O_PATH | O_DIRECTORY | O_CLOEXEC));
	struct container c = { 0 };

	snprintf(c.runtime, sizeof(c.runtime), "%s", runtime);
	snprintf(c.id, sizeof(c.id), "%s", id);
	found = *container_names_get(cn, &c);
	container_names_free(cn);
	return container_name_text(&found, text);
}

static bool make(const char *at)
{
	char cmd[300];

	snprintf(cmd, sizeof(cmd), "mkdir -p %s", at);
	return run(cmd);
}

static void put_docker(const char *json)
{
	write_file(DOCKER "/config.v2.json", json);
}

TEST_IN_DIR(container_name_docker)
{
	EXPECT(make(DOCKER));
	EXPECT_STR(name_of("docker", ID), "");
	put_docker("{\"State\":{\"Name\":\"no\"},\"Config\":{\"Env\":[\"Name=no\"]},"
		   "\"Name\":\"/web\",\"Driver\":\"overlay2\"}");
	EXPECT_STR(name_of("docker", ID), "web");
	EXPECT_STR(name_of("container", ID), "web");
	EXPECT_STR(name_of("docker", ID2), "");
	put_docker("{\"Name\":\"/k8s_app_cart-5d9c-x2_shop_0a1b-2c3d_0\"}");
	EXPECT_STR(name_of("docker", ID), "cart-5d9c-x2/app");
	EXPECT_STR(found.space, "shop");
	put_docker("{\"Name\":\"/k8s_POD_cart-5d9c-x2_shop_0a1b-2c3d_0\"}");
	EXPECT_STR(name_of("docker", ID), "cart-5d9c-x2");
	put_docker("{\"Name\":\"/k8s_no_more\"}");
	EXPECT_STR(name_of("docker", ID), "k8s_no_more");
}

TEST_IN_DIR(container_name_containerd)
{
	EXPECT(make(CONTAINERD "k8s.io/" ID) && make(CONTAINERD "default/" ID2) &&
	       make("root/run/k3s"));
	write_file(CONTAINERD "k8s.io/" ID "/config.json",
		   "{\"ociVersion\":\"1.1.0\",\"process\":{\"args\":[\"a\"]},\"annotations\":{"
		   "\"io.kubernetes.cri.container-name\":\"app\","
		   "\"io.kubernetes.cri.container-type\":\"container\","
		   "\"io.kubernetes.cri.sandbox-name\":\"cart-5d9c-x2\","
		   "\"io.kubernetes.cri.sandbox-namespace\":\"shop\"},\"linux\":{}}");
	write_file(CONTAINERD "default/" ID2 "/config.json",
		   "{\"annotations\":{\"nerdctl/name\":\"db\"}}");
	EXPECT_STR(name_of("cri-containerd", ID), "cart-5d9c-x2/app");
	EXPECT_STR(found.name, "app");
	EXPECT_STR(found.pod, "cart-5d9c-x2");
	EXPECT_STR(found.space, "shop");
	EXPECT_STR(name_of("nerdctl", ID2), "db");
	/* The same below K3s' directory. */
	EXPECT(make("root/run/k3s/containerd") &&
	       run("mv root/run/containerd/* root/run/k3s/containerd"));
	EXPECT_STR(name_of("cri-containerd", ID), "cart-5d9c-x2/app");
}

TEST_IN_DIR(container_name_list)
{
	EXPECT(make(STORAGE));
	write_file(STORAGE "/containers.json",
		   "[{\"names\":[\"web\",\"alias\"],\"id\":\"" ID "\",\"metadata\":\"{}\"},"
		   "{\"id\":\"0\",\"names\":null},7]");
	write_file(STORAGE "/volatile-containers.json",
		   "[{\"id\":\"" ID2 "\",\"names\":[\"k8s_main_worker-0_batch_uid_1\"]}]");
	EXPECT_STR(name_of("libpod", ID), "web");
	EXPECT_STR(name_of("crio", ID2), "worker-0/main");
	EXPECT_STR(found.space, "batch");
}

TEST_IN_DIR(container_name_hostile_text)
{
	static const char *const broken[] = {
		"",
		"{",
		"null",
		"[\"Name\"]",
		"{\"Name\":[\"/web\"]}",
		"{\"Name\":{\"Name\":\"/web\"}}",
		"{\"Name\":\"/web\"",		     /* cut */
		"{\"Name\":\"/web\",\"Config\":{\"", /* cut */
		"{\"Name\":\"/web\" \"Driver\":1}",
		"{\"Name\":\"/\"}",
	};
	static char big[5 << 20];
	char want[CONTAINER_NAME];

	EXPECT(make(DOCKER));
	for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
		put_docker(broken[i]);
		EXPECT_STR(name_of("docker", ID), "");
	}
	put_docker("{\"Name\":\"/a\\u001b[31m\\nb\\u0000\\u202e;\xff\"}");
	EXPECT_STR(name_of("docker", ID), "a.[31m.b\xef\xbf\xbd\xef\xbf\xbd;\xef\xbf\xbd");
	/* Objects inside each other, deeper than the reader goes. */
	memset(big, '[', 100000);
	memcpy(big, "{\"A\":", 5);
	put_docker(big);
	EXPECT_STR(name_of("docker", ID), "");
	/* A long name is cut; a file of more than 4 MB is not read. */
	memset(big, 'n', sizeof(big));
	memcpy(big, "{\"Name\":\"", 9);
	strcpy(big + (4 << 20) - 2, "\"}");
	put_docker(big);
	memset(want, 'n', sizeof(want) - 1);
	want[sizeof(want) - 1] = 0;
	EXPECT_STR(name_of("docker", ID), want);
	strcpy(big + (4 << 20) - 2, "n\"}");
	put_docker(big);
	EXPECT_STR(name_of("docker", ID), "");
}

/* Other kinds of files, and links that lead elsewhere, cost the name only. */
static void check_hostile_files(void)
{
	struct container c = { .runtime = "docker", .id = ID };
	struct container_names *cn;

	write_file("outside.json", "{\"Name\":\"/outside\"}");
	EXPECT(make(DOCKER) &&
	       run("ln -s ../../../../../../outside.json " DOCKER "/config.v2.json"));
	EXPECT_STR(name_of("docker", ID), "");
	EXPECT(run("ln -sf $PWD/outside.json " DOCKER "/config.v2.json"));
	EXPECT_STR(name_of("docker", ID), "");
	EXPECT(run("ln -sf /../../..$PWD/outside.json " DOCKER "/config.v2.json"));
	EXPECT_STR(name_of("docker", ID), "");
	EXPECT(run("ln -sf config.v2.json " DOCKER "/config.v2.json"));
	EXPECT_STR(name_of("docker", ID), "");
	EXPECT(run("rm " DOCKER "/config.v2.json && mkfifo " DOCKER "/config.v2.json"));
	EXPECT_STR(name_of("docker", ID), "");
	EXPECT(run("rm " DOCKER "/config.v2.json && mkdir " DOCKER "/config.v2.json"));
	EXPECT_STR(name_of("docker", ID), "");
	/* A link inside of the root is followed, as /var/lib/docker may be one. */
	EXPECT(run("rmdir " DOCKER "/config.v2.json && mkdir root/data && "
		   "mv root/var/lib/docker/* root/data && rmdir root/var/lib/docker && "
		   "ln -s ../../../.././data/./ root/var/lib/docker"));
	put_docker("{\"Name\":\"/web\"}");
	write_file("root/data/containers/" ID "/config.v2.json", "{\"Name\":\"/web\"}");
	EXPECT_STR(name_of("docker", ID), "web");
	/* An id is a part of a path; LXC's is a name; there may be no root. */
	EXPECT_STR(name_of("docker", "../containers/" ID), "");
	EXPECT_STR(name_of("docker", ""), "");
	EXPECT_STR(name_of("lxc", "web\x1b"
				  "1"),
		   "web.1");
	cn = container_names_new(-1);
	EXPECT_STR(container_names_get(cn, &c)->name, "");
	container_names_free(cn);
	EXPECT_STR(container_names_get(NULL, &c)->name, "");
}

TEST_IN_DIR(container_name_hostile_files)
{
	check_hostile_files();
}

/* The same where openat2 is refused, as by systemd's DynamicUser=. */
TEST_IN_DIR(container_name_without_openat2)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	int status = -1;
	pid_t pid = fork();

	if (!pid) {
		if (!filter ||
		    seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(openat2), 0) ||
		    seccomp_load(filter))
			_exit(77);
		if (syscall(SYS_openat2, -1, "", NULL, 0) != -1 || errno != ENOSYS)
			_exit(76);
		check_hostile_files();
		_exit(test_errors ? 1 : 0);
	}
	waitpid(pid, &status, 0);
	seccomp_release(filter);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		SKIP("no seccomp filters");
	EXPECT_EQ(status, 0);
}

/* More containers than are remembered: each has its own name. */
TEST_IN_DIR(container_name_many)
{
	static char list[1 << 20];
	struct container_names *cn;
	struct container c = { .runtime = "libpod" };
	char want[32];
	size_t len = 1;

	strcpy(list, "[");
	for (int i = 0; i < 700; i++)
		len += (size_t)snprintf(list + len, sizeof(list) - len,
					"{\"id\":\"%064x\",\"names\":[\"name-%d\"]}%s", i, i,
					i < 699 ? "," : "]");
	EXPECT(make(STORAGE));
	write_file(STORAGE "/containers.json", list);
	cn = container_names_new(open(in_dir("root"), O_PATH | O_DIRECTORY | O_CLOEXEC));
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 700; i++) {
			snprintf(c.id, sizeof(c.id), "%064x", i);
			snprintf(want, sizeof(want), "name-%d", i);
			EXPECT_STR(container_names_get(cn, &c)->name, want);
		}
	}
	/* A name that is remembered needs no file. */
	EXPECT(run("rm " STORAGE "/containers.json"));
	EXPECT_STR(container_names_get(cn, &c)->name, want);
	container_names_free(cn);
}
