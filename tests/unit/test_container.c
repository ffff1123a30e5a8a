/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/container.h"

#include "test.h"

#define ID   "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define TASK "0123456789abcdef0123456789abcdef"

TEST(container_paths)
{
	static const struct {
		const char *path, *runtime, *id;
	} cases[] = {
		{ "/system.slice/docker-" ID ".scope", "docker", ID },
		{ "/docker/" ID, "docker", ID },
		{ "/docker/" ID "/system.slice/cron.service", "docker", ID },
		{ "/docker/" TASK TASK "/docker/" ID, "docker", ID },
		{ "/kubepods.slice/kubepods-burstable.slice/"
		  "kubepods-burstable-pod0f0b4c1e_0000_4c5a_9f11_000000000000.slice/"
		  "cri-containerd-" ID ".scope",
		  "cri-containerd", ID },
		{ "/kubepods.slice/kubepods-pod12.slice/crio-" ID ".scope", "crio", ID },
		{ "/kubepods.slice/kubepods-pod12.slice/crio-" ID ".scope/container", "crio", ID },
		{ "/kubepods/burstable/pod0f0b4c1e-0000-4c5a-9f11-000000000000/" ID, "container",
		  ID },
		{ "/system.slice/containerd.service/"
		  "kubepods-burstable-pod12.slice:cri-containerd:" ID,
		  "cri-containerd", ID },
		{ "/machine.slice/libpod-" ID ".scope", "libpod", ID },
		{ "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID
		  ".scope/container",
		  "libpod", ID },
		{ "/machine.slice/libpod-conmon-" ID ".scope", NULL, NULL },
		{ "/ecs/" TASK "/" ID, "container", ID },
		{ "/ecs/" TASK "/" TASK "-1234567890", "container", TASK "-1234567890" },
		{ "/lxc.payload.web1/system.slice/nginx.service", "lxc", "web1" },
		{ "/../../docker/" ID, "docker", ID },
		{ "/system.slice/nginx.service", NULL, NULL },
		{ "/user.slice/user-1000.slice/session-3.scope", NULL, NULL },
		/* systemd-run: not hex from its start */
		{ "/system.slice/run-r0123456789abcdef0123456789abcdef.scope", NULL, NULL },
		{ "/", NULL, NULL },
		{ "", NULL, NULL },
		{ "/docker-" ID "x", NULL, NULL },
		{ "/" ID ID ID, NULL, NULL },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct container c = { 0 };
		bool found = container_of_path(cases[i].path, &c);

		if (found != (cases[i].id != NULL))
			printf("  %s: %s %s\n", cases[i].path, c.runtime, c.id);
		EXPECT_EQ(found, cases[i].id != NULL);
		if (!found || !cases[i].id)
			continue;
		EXPECT_STR(c.runtime, cases[i].runtime);
		EXPECT_STR(c.id, cases[i].id);
	}
}
