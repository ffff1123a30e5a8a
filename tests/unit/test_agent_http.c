/* SPDX-License-Identifier: BSD-2-Clause */
/* A resolver that does not answer delays neither the end of a request nor that of the agent. */
#include <curl/curl.h>
#include <netdb.h>
#include <stdatomic.h>
#include <unistd.h>

#include "agent/http.h"
#include "base/num.h"
#include "test.h"

#define GIVE_UP_MS 20000

static atomic_int asked, inside;
static atomic_bool release;

/* In the place of the C library's, also for libcurl. */
__attribute__((visibility("default"))) int getaddrinfo(const char *node, const char *service,
						       const struct addrinfo *hints,
						       struct addrinfo **ret)
{
	(void)node, (void)service, (void)hints, (void)ret;
	asked++;
	inside++;
	for (int i = 0; i < GIVE_UP_MS && !release; i++)
		usleep(1000);
	inside--;
	return EAI_AGAIN;
}

static bool stop(void *ctx)
{
	(void)ctx;
	return asked > 0;
}

static void expect_given_up(struct http *h, uint64_t timeout_ns)
{
	const struct http_get get = { .url = "http://nowhere.invalid/",
				      .timeout_ns = timeout_ns,
				      .most = 100 };
	struct http_answer answer;

	EXPECT(http_get(h, &get, &answer) != 0);
	EXPECT(*answer.error);
}

TEST(http_silent_resolver)
{
	const curl_version_info_data *curl = curl_version_info(CURLVERSION_NOW);
	struct http *stopped = http_new(stop, NULL), *late = http_new(NULL, NULL);

	EXPECT(stopped && late);
	if (curl->version_num < 0x075700 || LIBCURL_VERSION_NUM < 0x075700)
		SKIP("libcurl before 7.87 waits for the resolver");
	if (!(curl->features & CURL_VERSION_ASYNCHDNS) || curl->ares)
		SKIP("libcurl resolves names in another way");
	expect_given_up(stopped, GIVE_UP_MS * NUM_MS);
	EXPECT_EQ(inside, 1);
	expect_given_up(late, 50 * NUM_MS);
	EXPECT_EQ(inside, 2);
	http_free(stopped);
	http_free(late);
	release = true;
	while (inside)
		usleep(1000);
	usleep(100000); /* libcurl's threads free what they have */
}
