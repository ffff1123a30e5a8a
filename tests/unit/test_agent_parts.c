/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The agent's smaller parts: configuration, names of cgroups, redaction, the CPU budget, URLs and
 * answers.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/budget.h"
#include "agent/config.h"
#include "agent/deliver.h"
#include "agent/receiver.h"
#include "agent/target.h"
#include "base/num.h"
#include "base/redact.h"
#include "test.h"

static struct agent_config *read_config(const char *text, struct agent_config_error *err)
{
	struct agent_config *c = agent_config_new();
	char path[] = "/tmp/sfbpf-ini-XXXXXX";
	int fd = mkstemp(path), rc;

	EXPECT(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
	*err = (struct agent_config_error){ 0 };
	rc = agent_config_file(c, path, err);
	if (!rc)
		rc = agent_config_check(c, err);
	unlink(path);
	if (!rc)
		return c;
	agent_config_free(c);
	return NULL;
}

TEST(config_file)
{
	struct agent_config_error err;
	struct agent_config *c = read_config("[agent]\ninterval = 5s\nsymbols=host\n"
					     "[labels]\nteam = a b\n"
					     "[delivery]\nprotocol = clickhouse\n"
					     "endpoint = https://ch.example:8443/\ngzip = no\n"
					     "[headers]\nX-A = 1\n"
					     "[spool]\nspool-size = 1M\n",
					     &err);

	EXPECT_STR(err.text, "");
	if (!c)
		return;
	EXPECT_EQ(c->interval_ns, 5 * NUM_S);
	EXPECT_EQ(c->symbols, AGENT_SYMBOLS_HOST);
	EXPECT_EQ(c->protocol, AGENT_CLICKHOUSE);
	EXPECT(!c->gzip);
	EXPECT_EQ(c->labels.n, 1);
	EXPECT_STR(c->labels.list[0].value, "a b");
	EXPECT_STR(c->headers.list[0].name, "X-A");
	EXPECT_EQ(c->spool_bytes, 1 << 20);
	EXPECT_EQ(c->request_bytes, 512 << 10); /* half of the spool at most */
	agent_config_free(c);
}

TEST(config_says_what_is_wrong)
{
	static const struct {
		const char *text, *want;
	} bad[] = {
		{ "[agent]\ninterval = 12abc\n",
		  ":2: [agent] interval: interval: '12abc' is not a time from 0.1s to 3600s" },
		{ "[agent]\nnonsense = 1\n", ":2: [agent] nonsense: no such key" },
		{ "[delivery]\nprotocol = smoke\n", "'smoke'" },
		{ "[delivery]\nendpoint = ftp://x\n", "http://HOST" },
		{ "[delivery]\nendpoint = http://user:pw@x\n", "token-file or header-file" },
		{ "[delivery]\ncert-file = /etc/passwd\n", "belong together" },
		{ "[delivery]\nprotocol = file\n", "needs an endpoint" },
		{ "[delivery]\ngzip = perhaps\n", "yes or no" },
		{ "interval\n", ":1:" },
		{ "[delivery]\ntoken-file = /does/not/exist\n", "No such file" },
		{ "[delivery]\nendpoint = http://h:99999\n", "its port is wrong" },
		{ "[delivery]\nendpoint = http://h:0\n", "its port is wrong" },
		{ "[delivery]\nendpoint = http://a b:1\n", "its host is wrong" },
		{ "[delivery]\nprotocol = file\nendpoint = http://x\n", "not a directory" },
		{ "[metrics]\nmetrics-address = here:99999\n", "PORT from 0 to 65535" },
		{ "[metrics]\nmetrics-address = a b:1\n", "PORT from 0 to 65535" },
		{ "[agent]\nuser = nobody-of-that-name\n", "there is no user" },
		{ "[labels]\n9x = 1\n", ":2: [labels] 9x: a label's name" },
		{ "[labels]\na b = 1\n", "a label's name" },
		{ "[labels]\na = \xff\n", "UTF-8" },
		{ "[headers]\na(b = 1\n", "a header's name" },
		{ "[labels]\na = 1\na = 2\n", ":3: [labels] a: given twice" },
		{ "[agent]\ninterval = 1s\n[log]\n[agent]\ninterval = 1s\n",
		  ":5: [agent] interval: given twice" },
		{ "[delivery]\nformat = pprof\n", "format is for protocol file" },
		{ "[delivery]\ndatabase = x\n", "database is for" },
		{ "[agent]\nsymbols = none\n[delivery]\nprotocol = parca\n",
		  "symbols = none is for" },
		{ "[delivery]\nca-file = /etc/passwd\n", "begins with https" },
		{ "[delivery]\nendpoint = https://x\nca-file = /etc/passwd\ninsecure = yes\n",
		  "contradict" },
		{ "[delivery]\ntoken-file = /etc/passwd\n[headers]\nauthorization = x\n",
		  "contradict" },
		{ "[delivery]\nretry-min = 2s\nretry-max = 1s\n", "less than retry-min" },
		{ "[delivery]\nrequest-size = 1M\n[spool]\nspool-size = 1M\n",
		  "half of spool-size" },
		{ "[kubernetes]\nkubelet = node:10250\n", "kubelet: 'node:10250' is not" },
		{ "[kubernetes]\nkubelet = https://h:99999\n",
		  "kubelet: 'https://h:99999' is not a URL: its port" },
		{ "[kubernetes]\nkubelet = https://h/pods\n", "must not have a path" },
		{ "[kubernetes]\nkubelet = https://u:p@h\n", "must not have a path, user" },
		{ "[kubernetes]\npod-labels = app\n", "nothing without kubelet" },
		{ "[kubernetes]\nkubelet = http://h\nkubelet-token-file = /etc/passwd\n",
		  "begins with https" },
		{ "[kubernetes]\nkubelet = https://h\nkubelet-token-file = /does/not/exist\n",
		  "kubelet-token-file: /does/not/exist: No such file" },
		{ "[kubernetes]\nkubelet = https://h\nkubelet-insecure = yes\n"
		  "kubelet-ca-file = /etc/passwd\n",
		  "contradict" },
		{ "[kubernetes]\nkubelet = https://h\npod-labels = app,a=b\n",
		  "'a=b' is not the key" },
		{ "[kubernetes]\nkubelet = https://h\npod-labels = a,b,c,d,e,f,g,h,i\n",
		  "more than 8" },
		{ "[kubernetes]\nkubelet = https://h\nservice-label = a b\n",
		  "service-label: 'a b' is not" },
		{ "[kubernetes]\nkubelet = https://h\nkubelet-interval = 1ms\n",
		  "'1ms' is not a time from 0.1s to 3600s" },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct agent_config_error err;
		struct agent_config *c = read_config(bad[i].text, &err);

		EXPECT(!c);
		agent_config_free(c);
		if (!strstr(err.text, bad[i].want))
			EXPECT_STR(err.text, bad[i].want);
	}
}

TEST(config_accepts)
{
	static const char *const good[] = {
		"[delivery]\nendpoint = http://[::1]:4318/x\n",
		"[delivery]\nprotocol = file\nendpoint = file:///tmp\nformat = folded\n",
		"[metrics]\nmetrics-address = [::]:9419\n",
		"[metrics]\nmetrics-address = none\n",
		"[agent]\nuser = nobody\n",
		"[labels]\napp.kubernetes.io/name = \xc3\xa4\n[headers]\nX-Scope-OrgID = 1\n",
		"[spool]\nspool-size = 64K\nspool-age = 1h30m\n",
		"[kubernetes]\nkubelet = off\npod-labels = app\n",
		("[kubernetes]\nkubelet = https://[::1]:10250/\nkubelet-token-file = /etc/passwd\n"
		 "kubelet-ca-file = /etc/passwd\npod-labels = app, app.kubernetes.io/part-of\n"),
	};

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		struct agent_config_error err;
		struct agent_config *c = read_config(good[i], &err);

		EXPECT_STR(err.text, "");
		EXPECT(c != NULL);
		agent_config_free(c);
	}
}

TEST(config_limits_that_were_not_given)
{
	struct agent_config_error err;
	struct agent_config *c = read_config("[delivery]\nretry-max = 200ms\n", &err);

	EXPECT(c && c->retry_max_ns == 200 * NUM_MS && c->retry_min_ns == 200 * NUM_MS);
	agent_config_free(c);
	c = agent_config_new();
	EXPECT(c && agent_config_file(c, "/tmp", &err));
	EXPECT_STR(err.text, "/tmp: Is a directory");
	agent_config_free(c);
}

TEST(cgroup_paths)
{
	static const struct {
		const char *path, *service, *container, *pod;
	} cases[] = {
		{ "/", "dflt", "", "" },
		{ "/system.slice/nginx.service", "nginx", "", "" },
		{ "/system.slice/system-getty.slice/getty@tty1.service", "getty@tty1", "", "" },
		{ "/system.slice/"
		  "docker-0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef.scope",
		  "unknown_service",
		  "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", "" },
		{ "/docker/0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
		  "unknown_service",
		  "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", "" },
		{ "/kubepods.slice/kubepods-burstable.slice/"
		  "kubepods-burstable-pod0a1b2c3d_1111_2222_3333_444455556666.slice/"
		  "cri-containerd-"
		  "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef.scope",
		  "unknown_service",
		  "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
		  "0a1b2c3d-1111-2222-3333-444455556666" },
		{ "/kubepods/besteffort/pod0a1b2c3d-1111-2222-3333-444455556666/"
		  "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
		  "unknown_service",
		  "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
		  "0a1b2c3d-1111-2222-3333-444455556666" },
		{ "/kubelet.slice/kubelet-kubepods.slice/"
		  "kubelet-kubepods-pod0a1b2c3d_1111_2222_3333_444455556666.slice/"
		  "cri-containerd-"
		  "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef.scope",
		  "unknown_service",
		  "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
		  "0a1b2c3d-1111-2222-3333-444455556666" },
		{ "/system.slice/kubepods-pod0a1b2c3d_1111_2222_3333_444455556666.slice"
		  ":cri-containerd:"
		  "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
		  "unknown_service",
		  "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
		  "0a1b2c3d-1111-2222-3333-444455556666" },
		{ "/user.slice/user-1000.slice/session-2.scope", "user-1000", "", "" },
		{ "/user.slice/user-1000.slice/user@1000.service/app.slice/foo.service", "foo", "",
		  "" },
		{ "/something", "something", "", "" },
		{ "//odd//", "odd", "", "" },
		{ "/a\nb\x1b[31m.service", "a.b.[31m", "", "" },
	};
	struct target t;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		target_parse(cases[i].path, "dflt", &t);
		EXPECT_STR(t.service, cases[i].service);
		EXPECT_STR(t.container, cases[i].container);
		EXPECT_STR(t.pod, cases[i].pod);
	}
}

/* Makes a cgroup that can be looked up by its id. 0: none can be made. */
static uint64_t make_cgroup(struct targets *t, char path[64])
{
	static const char *const roots[] = { "/sys/fs/cgroup/unified", "/sys/fs/cgroup" };
	struct stat st;

	for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++) {
		snprintf(path, 64, "%s/sfbpf-unit-%d", roots[i], (int)getpid());
		if (mkdir(path, 0755))
			continue;
		if (!stat(path, &st) && targets_of(t, st.st_ino))
			return st.st_ino;
		rmdir(path);
	}
	return 0;
}

/* When there are too many cgroups, those that are known keep their targets. */
TEST(cgroups_full)
{
	struct targets *t = targets_new("dflt", NULL);
	char path[64];
	uint64_t known = make_cgroup(t, path);
	uint32_t target = targets_of(t, known);

	for (uint64_t i = 0; i < 20000; i++)
		EXPECT(!targets_of(t, (1ull << 60) + i));
	EXPECT_EQ(targets_of(t, known), target);
	targets_free(t);
	if (!known)
		SKIP("no cgroup can be made and looked up");
	rmdir(path);
}

TEST(redaction)
{
	static const struct {
		enum redact which;
		const char *in, *out;
	} cases[] = {
		{ REDACT_NONE, "/home/ann/x.js", "/home/ann/x.js" },
		{ REDACT_HOME, "/home/ann/secret/x.js", "~/x.js" },
		{ REDACT_HOME, "/usr/lib/libc.so.6", "/usr/lib/libc.so.6" },
		{ REDACT_HOME, "JS:*parse file:///home/ann/app/x.js:10:2",
		  "JS:*parse file:///home/ann/app/x.js:10:2" },
		{ REDACT_HOME, "JS:*parse /home/ann/app/x.js:10:2", "JS:*parse ~/x.js:10:2" },
		{ REDACT_ALL, "/usr/lib/libc.so.6", "libc.so.6" },
		{ REDACT_ALL, "f (/opt/a/b.py:3)", "f (b.py:3)" },
		{ REDACT_ALL, "operator/ and/or", "operator/ and/or" },
	};
	char buf[200], tiny[4];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		redact_paths(cases[i].which, cases[i].in, buf, sizeof(buf));
		if (i != 3)
			EXPECT_STR(buf, cases[i].out);
		else
			EXPECT(!strstr(buf, "ann"));
	}
	redact_paths(REDACT_ALL, "/usr/lib/libc.so.6", tiny, sizeof(tiny));
	EXPECT_STR(tiny, "lib");
}

TEST(budget)
{
	struct budget b = { .limit_pct = 1, .want_hz = 19, .hz = 19 };

	EXPECT_EQ(budget_step(&b, 90 * NUM_MS, 10 * NUM_S), 19);
	EXPECT_EQ(budget_step(&b, 110 * NUM_MS, 10 * NUM_S), 19); /* once is no trend */
	EXPECT_EQ(budget_step(&b, 110 * NUM_MS, 10 * NUM_S), 12);
	EXPECT_EQ(budget_step(&b, 110 * NUM_MS, 10 * NUM_S), 12);
	EXPECT_EQ(budget_step(&b, 110 * NUM_MS, 10 * NUM_S), 8);
	for (int i = 0; i < 40; i++)
		budget_step(&b, 900 * NUM_MS, 10 * NUM_S);
	EXPECT_EQ(b.hz, 1);
	for (int i = 0; i < 5; i++)
		EXPECT_EQ(budget_step(&b, 40 * NUM_MS, 10 * NUM_S), 1);
	EXPECT_EQ(budget_step(&b, 40 * NUM_MS, 10 * NUM_S), 2);
	for (int i = 0; i < 100; i++)
		budget_step(&b, 10 * NUM_MS, 10 * NUM_S);
	EXPECT_EQ(b.hz, 19);
}

static void expect_url(int protocol, const char *endpoint, bool base, uint32_t kind,
		       const char *want)
{
	struct agent_config c = { .protocol = protocol,
				  .endpoint = (char *)(uintptr_t)endpoint,
				  .endpoint_is_base = base };
	struct body b = { .kind = kind };
	char url[1024] = "";

	EXPECT_EQ(deliver_url(&c, &b, url, sizeof(url)), 0);
	EXPECT_STR(url, want);
}

TEST(urls)
{
	expect_url(AGENT_OTLP_HTTP, "http://c:4318", false, BODY_OTLP,
		   "http://c:4318/v1development/profiles");
	expect_url(AGENT_OTLP_HTTP, "http://c:4318/", false, BODY_OTLP,
		   "http://c:4318/v1development/profiles");
	expect_url(AGENT_OTLP_HTTP, "https://c/api/org/v1/profiles", false, BODY_OTLP,
		   "https://c/api/org/v1/profiles");
	expect_url(AGENT_OTLP_HTTP, "https://c/otlp", true, BODY_OTLP,
		   "https://c/otlp/v1development/profiles");
	expect_url(AGENT_OTLP_GRPC, "http://c:4317", false, BODY_OTLP,
		   "http://c:4317/opentelemetry.proto.collector.profiles.v1development."
		   "ProfilesService/Export");
	expect_url(AGENT_PYROSCOPE, "http://p:4040/", false, BODY_PYROSCOPE,
		   "http://p:4040/push.v1.PusherService/Push");
	expect_url(AGENT_CLICKHOUSE, "http://c:8123", false, BODY_CH_STACKS,
		   "http://c:8123/?database=default&"
		   "insert_deduplication_token=00000000-0000-0000-0000-000000000000&"
		   "deduplicate_blocks_in_dependent_materialized_views=1&"
		   "query=INSERT%20INTO%20sfbpf_stacks%20FORMAT%20JSONEachRow");
}

TEST(partial_success)
{
	static const uint8_t reply[] = { 0x0a, 7, 0x08, 5, 0x12, 3, 'w', 'h', 'y' };
	static const uint8_t lies[] = { 0x0a, 7, 0x08, 5, 0x12, 200, 'w' };
	char why[32] = "";

	EXPECT_EQ(receiver_otlphttp.rejected(reply, sizeof(reply), why, sizeof(why)), 5);
	EXPECT_STR(why, "why");
	receiver_otlphttp.rejected(lies, sizeof(lies), why, sizeof(why));
	EXPECT_EQ(receiver_otlphttp.rejected("", 0, why, sizeof(why)), 0);
	EXPECT_EQ(receiver_otlphttp.rejected("garbage", 7, why, sizeof(why)), 0);
}
