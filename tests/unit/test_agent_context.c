/* SPDX-License-Identifier: BSD-2-Clause */
/* What processes say about themselves: the message, when it is read, and what becomes of it. */
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "agent/context.h"
#include "agent/window.h"
#include "base/pb.h"
#include "elf_reader.h"
#include "paths/process_context.h"

static void put(struct pb *pb, const char *key, const char *value)
{
	size_t attribute = pb_begin(pb, 1), any;

	pb_str(pb, 1, key);
	any = pb_begin(pb, 2);
	pb_str(pb, 1, value);
	pb_end(pb, any);
	pb_end(pb, attribute);
}

static struct pb message(const char *service)
{
	struct pb pb = { 0 };
	size_t resource = pb_begin(&pb, 1);

	put(&pb, "telemetry.sdk.name", "sdk");
	put(&pb, "service.name", service);
	put(&pb, "service.namespace", "shop");
	put(&pb, "service.version", "1.2");
	put(&pb, "service.instance.id", "i-1");
	put(&pb, "deployment.environment.name", "production");
	pb_end(&pb, resource);
	resource = pb_begin(&pb, 2); /* an attribute beside the resource */
	pb_str(&pb, 1, "service.name");
	pb_end(&pb, resource);
	return pb;
}

static bool has_threads(const char *key, const char *schema)
{
	struct pb pb = message("cart");
	size_t pair = pb_begin(&pb, 2), value;
	struct target t;
	bool threads;

	pb_str(&pb, 1, key);
	value = pb_begin(&pb, 2);
	pb_str(&pb, 1, schema);
	pb_end(&pb, value);
	pb_end(&pb, pair);
	EXPECT(context_parse(pb.buf, pb.len, &t, &threads));
	pb_free(&pb);
	return threads;
}

TEST(context_of_threads)
{
	EXPECT(has_threads("threadlocal.schema_version", "tls_v1"));
	EXPECT(has_threads("threadlocal.schema_version", "tlsdesc_v1_dev"));
	EXPECT(!has_threads("threadlocal.schema_version", "go_pprof_labels_v1"));
	EXPECT(!has_threads("threadlocal.schema_version", ""));
	EXPECT(!has_threads("threadlocal.schema", "tls_v1"));
}

static bool threads;

static const char *service_in(const char *service)
{
	static struct target t;
	struct pb pb = message(service);

	EXPECT(context_parse(pb.buf, pb.len, &t, &threads));
	pb_free(&pb);
	return t.service;
}

TEST(context_texts)
{
	struct pb pb = message("cart");
	char lengthy[300];
	struct target t;

	EXPECT(context_parse(pb.buf, pb.len, &t, &threads));
	EXPECT_STR(t.service, "cart");
	EXPECT_STR(t.space, "shop");
	EXPECT_STR(t.version, "1.2");
	EXPECT_STR(t.instance, "i-1");
	EXPECT_STR(t.environment, "production");
	EXPECT_STR(t.unit, "");
	pb_free(&pb);
	EXPECT(context_parse("", 0, &t, &threads));
	EXPECT_STR(t.service, "");
	memset(lengthy, 'x', sizeof(lengthy) - 1);
	lengthy[sizeof(lengthy) - 1] = 0;
	EXPECT_EQ(strlen(service_in(lengthy)), TARGET_TEXT - 1);
	EXPECT_STR(service_in("a\x1b[31m\n\xff"), "a.[31m.\xef\xbf\xbd");
	/* What an SDK writes if the owner gave no name is no name. */
	EXPECT_STR(service_in("unknown_service"), "");
	EXPECT_STR(service_in("unknown_service:java"), "");
	EXPECT_STR(service_in("unknown_services"), "unknown_services");
}

static bool is_text(const char *s)
{
	return memchr(s, 0, TARGET_TEXT) != NULL;
}

static void expect_bounded(const uint8_t *data, size_t len)
{
	/* On the heap, so that a sanitizer sees a read beyond the end. */
	uint8_t *copy = malloc(len ? len : 1);
	struct target t;

	memcpy(copy, data, len);
	if (context_parse(copy, len, &t, &threads))
		EXPECT(is_text(t.service) && is_text(t.space) && is_text(t.version) &&
		       is_text(t.instance) && is_text(t.environment));
	free(copy);
}

TEST(context_damage)
{
	struct pb pb = message("cart");
	static uint8_t endless[PROCESS_CONTEXT_MOST];
	struct target t;
	uint32_t random = 1;

	for (size_t len = 1; len < pb.len; len++)
		expect_bounded(pb.buf, len);
	EXPECT(!context_parse(pb.buf, pb.len - 1, &t, &threads));
	for (int i = 0; i < 20000; i++) {
		uint8_t copy[512];

		memcpy(copy, pb.buf, pb.len);
		for (int k = 0; k < 4; k++) {
			random = random * 1664525 + 1013904223;
			copy[(random >> 8) % pb.len] = (uint8_t)(random >> 24);
		}
		expect_bounded(copy, pb.len);
	}
	memset(endless, 0x80, sizeof(endless));
	EXPECT(!context_parse(endless, sizeof(endless), &t, &threads));
	endless[0] = 0x0a; /* a resource of an endless length */
	EXPECT(!context_parse(endless, sizeof(endless), &t, &threads));
	EXPECT(!context_parse("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, &t, &threads));
	EXPECT(!context_parse("\x0a\xff\xff\xff\xff\x0f", 6, &t, &threads));
	EXPECT(!context_parse("\x0b\x0c", 2, &t, &threads)); /* groups */
	EXPECT(!context_parse("\x0a\x04\x0a\x7f\x0a\x01", 6, &t, &threads));
	memset(endless, 0x0a, sizeof(endless)); /* lengths within lengths */
	expect_bounded(endless, sizeof(endless));
	pb_free(&pb);
}

/* ---- A process that publishes: this one ---- */

struct published {
	char signature[8];
	uint32_t version, size;
	uint64_t published_ns, payload;
};

static struct published *map_context(void)
{
	int fd = memfd_create("OTEL_CTX", MFD_CLOEXEC);
	struct published *p;

	EXPECT(fd >= 0 && !ftruncate(fd, 4096));
	p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	close(fd);
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	return p;
}

static void publish(struct published *p, const char *service)
{
	static uint64_t time;
	struct pb pb = message(service);

	memcpy(p + 1, pb.buf, pb.len);
	p->version = 2;
	p->size = (uint32_t)pb.len;
	p->payload = (uintptr_t)(p + 1);
	p->published_ns = ++time;
	memcpy(p->signature, "OTEL_CTX", 8);
	pb_free(&pb);
}

/* The name, after a window at that second. */
static const char *asked(struct contexts *c, uint64_t second)
{
	const struct target *t;

	contexts_see(c, (uint32_t)getpid(), second * NUM_S);
	contexts_ask(c, second * NUM_S);
	t = contexts_of(c, (uint32_t)getpid());
	return t ? t->service : "-";
}

TEST(context_of_process)
{
	struct test_paths t = open_paths(path_worker_main);
	struct contexts *c = contexts_new(t.o, NULL);
	struct published *p = map_context();

	EXPECT_STR(asked(c, 1000), "-"); /* nothing is published yet */
	EXPECT(!contexts_any(c));
	publish(p, "cart");
	EXPECT_STR(asked(c, 1030), "-");
	EXPECT_STR(asked(c, 1061), "cart");
	EXPECT(contexts_any(c));
	publish(p, "basket");
	EXPECT_STR(asked(c, 1090), "cart"); /* once a minute */
	EXPECT_STR(asked(c, 1122), "basket");
	EXPECT_EQ(contexts_totals(c).read, 2);
	EXPECT_EQ(contexts_totals(c).failed, 0);
	/* What cannot be read leaves the name. */
	p->published_ns = 0;
	EXPECT_STR(asked(c, 1183), "basket");
	p->published_ns = 9;
	p->version = 3;
	EXPECT_STR(asked(c, 1244), "basket");
	p->version = 2;
	p->size = PROCESS_CONTEXT_MOST + 1;
	EXPECT_STR(asked(c, 1305), "basket");
	p->size = 100;
	p->payload = 16;
	EXPECT_STR(asked(c, 1366), "basket");
	p->payload = UINT64_MAX;
	EXPECT_STR(asked(c, 1427), "basket");
	p->payload = (uintptr_t)p; /* the header is no message */
	EXPECT_STR(asked(c, 1488), "basket");
	EXPECT_EQ(contexts_totals(c).read, 2);
	EXPECT_EQ(contexts_totals(c).failed, 6);
	/* It is gone, and comes at another address. */
	munmap(p, 4096);
	EXPECT_STR(asked(c, 1549), "-");
	p = map_context();
	publish(p, "again");
	EXPECT_STR(asked(c, 1610), "again");
	EXPECT_EQ(contexts_totals(c).failed, 6);
	munmap(p, 4096);
	contexts_free(c);
	close_paths(&t);
}

/* A process without a context is asked after 1, 2, 4, 8, 8 minutes; a process that ended never. */
TEST(context_none)
{
	static const int minutes[] = { 1, 2, 4, 8, 8 };
	struct test_paths t = open_paths(path_worker_main);
	struct contexts *c = contexts_new(t.o, NULL);
	struct published *p;
	uint64_t second = 1000;

	EXPECT_STR(asked(c, second), "-");
	for (size_t i = 0; i < sizeof(minutes) / sizeof(minutes[0]); i++) {
		second += (uint64_t)minutes[i] * 60;
		p = map_context();
		publish(p, "early");
		EXPECT_STR(asked(c, second - 1), "-");
		munmap(p, 4096);
		EXPECT_STR(asked(c, second), "-");
	}
	contexts_see(c, 0x7ffffff0, second * NUM_S);
	contexts_ask(c, second * NUM_S);
	EXPECT(!contexts_of(c, 0x7ffffff0));
	EXPECT_EQ(contexts_totals(c).failed, 0);
	contexts_free(c);
	close_paths(&t);
}

TEST(context_forgotten)
{
	struct test_paths t = open_paths(path_worker_main);
	struct contexts *c = contexts_new(t.o, NULL);
	struct published *p = map_context();

	publish(p, "cart");
	EXPECT_STR(asked(c, 1000), "cart");
	for (uint32_t pid = 0x70000000; pid < 0x70000000 + 3000; pid++)
		contexts_see(c, pid, 1000 * NUM_S);
	contexts_ask(c, 1000 * NUM_S);
	contexts_trim(c, 1010 * NUM_S); /* the others are gone */
	EXPECT(contexts_of(c, (uint32_t)getpid()) != NULL);
	for (uint32_t pid = 0x70000000; pid < 0x70000000 + 3000; pid++)
		contexts_see(c, pid, 1000 * NUM_S);
	contexts_ask(c, 1000 * NUM_S);
	contexts_trim(c, 2000 * NUM_S);
	EXPECT(!contexts_any(c));
	EXPECT_STR(asked(c, 2001), "cart");
	munmap(p, 4096);
	contexts_free(c);
	close_paths(&t);
}

static void mute(int sock, int mem)
{
	(void)sock;
	(void)mem;
	for (;;)
		pause();
}

/* It may hold the lock of its mappings for ever. */
TEST(context_silence)
{
	struct test_paths t = open_paths(mute);
	struct contexts *c = contexts_new(t.o, NULL);

	EXPECT_STR(asked(c, 1000), "-");
	EXPECT_EQ(contexts_totals(c).failed, 1);
	EXPECT_EQ(t.allowance->totals.late, 1);
	EXPECT_STR(asked(c, 1030), "-");
	EXPECT_EQ(contexts_totals(c).failed, 1);
	EXPECT_STR(asked(c, 1061), "-"); /* it is not asked: it was silent a moment ago */
	EXPECT_EQ(contexts_totals(c).failed, 2);
	EXPECT_EQ(t.allowance->totals.late, 1);
	contexts_free(c);
	close_paths(&t);
}

/* A process of that user with what this one maps. */
static pid_t start_as(uid_t uid)
{
	int said[2];
	pid_t pid;
	char c;

	EXPECT(!pipe(said));
	pid = fork();
	if (!pid) {
		if (uid != getuid() && (setgid(uid) || setuid(uid)))
			_exit(1);
		prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
		if (write(said[1], "", 1) == 1)
			pause();
		_exit(1);
	}
	EXPECT_EQ(read(said[0], &c, 1), 1);
	close(said[0]);
	close(said[1]);
	return pid;
}

static const char *service_of(struct contexts *c, pid_t pid)
{
	const struct target *t = contexts_of(c, (uint32_t)pid);

	return t ? t->service : "-";
}

/* A user who has spent his time waits, and nobody else does. */
TEST(context_turns)
{
	enum { MANY = 30, SPENDER = 60500, OTHER = SPENDER + 255 * 64 };
	struct test_paths t = open_paths(path_worker_main);
	struct contexts *c = contexts_new(t.o, NULL);
	struct published *p = map_context();
	pid_t spender[MANY], other;

	if (geteuid())
		SKIP("other users need root");
	publish(p, "cart");
	for (int i = 0; i < MANY; i++) {
		spender[i] = start_as(SPENDER);
		contexts_see(c, (uint32_t)spender[i], NUM_S);
	}
	other = start_as(OTHER);
	contexts_see(c, (uint32_t)other, NUM_S);
	allowance_spend(t.allowance, SPENDER, 100 * NUM_S);
	EXPECT_STR(asked(c, 1), "cart");
	EXPECT_STR(service_of(c, other), "cart");
	EXPECT_STR(service_of(c, spender[0]), "-");
	EXPECT_EQ(t.allowance->totals.deferred, 1); /* not asked once for each of them */
	allowance_init(t.allowance);
	contexts_ask(c, 2 * NUM_S);
	for (int i = 0; i < MANY; i++) {
		EXPECT_STR(service_of(c, spender[i]), "cart");
		kill(spender[i], SIGKILL);
	}
	kill(other, SIGKILL);
	munmap(p, 4096);
	contexts_free(c);
	close_paths(&t);
}

/* One who waits for time is asked once, however long he waits. */
TEST(context_asked_once)
{
	struct test_paths t = open_paths(path_worker_main);
	struct contexts *c = contexts_new(t.o, NULL);
	struct published *p = map_context();

	publish(p, "cart");
	allowance_spend(t.allowance, getuid(), 100 * NUM_S);
	for (uint64_t minute = 0; minute < 5; minute++)
		EXPECT_STR(asked(c, 1000 + minute * 61), "-");
	EXPECT_EQ(t.allowance->totals.deferred, 5);
	allowance_init(t.allowance);
	EXPECT_STR(asked(c, 1000 + 5 * 61), "cart");
	EXPECT_EQ(contexts_totals(c).read, 1);
	munmap(p, 4096);
	contexts_free(c);
	close_paths(&t);
}

/* Processes that ended take no places, also while others wait to be asked. */
TEST(context_room)
{
	struct test_paths t = open_paths(path_worker_main);
	struct contexts *c = contexts_new(t.o, NULL);
	struct published *p = map_context();
	pid_t waits;

	publish(p, "cart");
	waits = start_as(getuid());
	allowance_spend(t.allowance, getuid(), 100 * NUM_S);
	contexts_see(c, (uint32_t)waits, 1000 * NUM_S);
	for (uint32_t pid = 0x70000000; pid < 0x70000000 + 20000; pid++)
		contexts_see(c, pid, 1000 * NUM_S);
	contexts_ask(c, 1000 * NUM_S);
	EXPECT_EQ(t.allowance->totals.deferred, 1);
	for (uint32_t pid = 0x70000000; pid < 0x70000000 + 20000; pid++)
		contexts_see(c, pid, 1001 * NUM_S);
	contexts_trim(c, 1001 * NUM_S);
	allowance_init(t.allowance);
	EXPECT_STR(asked(c, 1002), "cart");
	if (!geteuid()) /* others may not read its memory */
		EXPECT_STR(service_of(c, waits), "cart");
	kill(waits, SIGKILL);
	munmap(p, 4096);
	contexts_free(c);
	close_paths(&t);
}

/* ---- Windows ---- */

static const struct window_group *group_of(const struct window *w, const char *service)
{
	for (size_t i = 0; i < w->ngroups; i++)
		if (!strcmp(targets_at(w->targets, w->groups[i].target)->service, service))
			return &w->groups[i];
	return NULL;
}

static uint64_t samples_of(const struct window *w, const char *service)
{
	const struct window_group *g = group_of(w, service);

	return g ? profile_samples(g->profile) : 0;
}

TEST(context_names_target)
{
	struct sf_sample rec = { .type = SF_REC_SAMPLE, .comm = "app", .weight = 1 };
	struct test_paths t = open_paths(path_worker_main);
	struct targets *targets = targets_new("dflt", NULL);
	struct contexts *c = contexts_new(t.o, NULL);
	struct published *p = map_context();
	struct target known = { .service = "n5" };
	struct window w;

	publish(p, "cart");
	rec.flags = SF_SAMPLE_USER;
	window_open(&w, targets, 0, 19);
	for (int i = 0; i < 7; i++) {
		rec.pid = i < 3 ? (uint32_t)getpid() : 1;
		window_add(&w, &rec);
	}
	window_ask(&w, NULL, true);
	window_name(&w, NULL);
	EXPECT_EQ(samples_of(&w, "dflt"), 7);
	window_ask(&w, c, true);
	window_name(&w, c);
	EXPECT_EQ(w.ngroups, 2);
	EXPECT_EQ(w.samples, 7);
	EXPECT_EQ(samples_of(&w, "cart"), 3);
	EXPECT_EQ(samples_of(&w, "dflt"), 4);
	EXPECT_STR(targets_at(targets, group_of(&w, "cart")->target)->version, "1.2");
	window_free(&w);
	/* Only so many targets are for names; the rest is for cgroups. */
	for (int i = 0; i < 3000; i++) {
		struct target names = { 0 };

		snprintf(names.service, sizeof(names.service), "n%d", i);
		if (!targets_with(targets, 0, &names))
			break;
		EXPECT(i < 1024);
	}
	EXPECT(targets_with(targets, 0, &known) != 0); /* those that there are stay in use */
	munmap(p, 4096);
	contexts_free(c);
	targets_free(targets);
	close_paths(&t);
}
