/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/http.h"

#include <curl/curl.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/ca_file.h"
#include "base/clock.h"
#include "base/num.h"
#include "base/text.h"
#include "base/vec.h"

#define THREADS_MOST 64 /* threads of this process; with this many, libcurl leaves none behind */

struct http {
	CURL *curl;
	bool (*stop)(void *ctx);
	void *stop_ctx;
	bool fresh; /* no connection is reused for gRPC without TLS */
	struct http_reply *reply;
};

struct http *http_new(bool (*stop)(void *ctx), void *ctx)
{
	struct http *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->stop = stop;
	h->stop_ctx = ctx;
	h->curl = curl_easy_init();
	/*
	 * A second request on a plaintext HTTP/2 connection fails in curl 7 with error 16 (curl
	 * issue 10634).
	 */
	h->fresh = curl_version_info(CURLVERSION_NOW)->version_num < 0x080000;
	if (!h->curl) {
		free(h);
		return NULL;
	}
	return h;
}

void http_free(struct http *h)
{
	if (!h)
		return;
	curl_easy_cleanup(h->curl);
	free(h);
}

static size_t on_body(char *data, size_t size, size_t n, void *ctx)
{
	struct http_reply *r = ctx;
	size_t room = sizeof(r->body) - 1 - r->body_len, take = size * n < room ? size * n : room;

	memcpy(r->body + r->body_len, data, take);
	r->body_len += take;
	r->body[r->body_len] = 0;
	return size * n; /* the rest is ignored; the timeout ends an endless body */
}

/* The value of header `name` in line, or NULL. */
static const char *value_of(const char *line, size_t len, const char *name, char *buf, size_t cap)
{
	size_t n = strlen(name);

	if (len <= n + 1 || strncasecmp(line, name, n) || line[n] != ':')
		return NULL;
	line += n + 1;
	len -= n + 1;
	while (len && (*line == ' ' || *line == '\t')) {
		line++;
		len--;
	}
	while (len && (line[len - 1] == '\r' || line[len - 1] == '\n'))
		len--;
	snprintf(buf, cap, "%.*s", (int)len, line);
	return buf;
}

static double retry_after(const char *v)
{
	char *end;
	double s = strtod(v, &end);
	time_t at;

	if (end != v && !*end && s >= 0)
		return s;
	at = curl_getdate(v, NULL); /* an HTTP date */
	s = at < 0 ? -1 : difftime(at, time(NULL));
	return at >= 0 && s < 0 ? 0 : s;
}

/* A value that is not a number counts as UNKNOWN. */
static int grpc_status(const char *v)
{
	uint64_t n;

	return num_u64(v, 0, INT_MAX, &n) ? GRPC_UNKNOWN : (int)n;
}

/* Called for headers and, with HTTP/2, trailers. */
static size_t on_header(char *data, size_t size, size_t n, void *ctx)
{
	struct http_reply *r = ctx;
	size_t len = size * n;
	char buf[200];
	const char *v;

	if ((v = value_of(data, len, "grpc-status", buf, sizeof(buf))))
		r->grpc_status = grpc_status(v);
	else if ((v = value_of(data, len, "grpc-message", buf, sizeof(buf))))
		text_clean(r->error, sizeof(r->error), v, strlen(v), 0);
	else if ((v = value_of(data, len, "retry-after", buf, sizeof(buf))))
		r->retry_after_s = retry_after(v);
	else if ((v = value_of(data, len, "grpc-retry-pushback-ms", buf, sizeof(buf))))
		r->retry_after_s = atof(v) / 1000;
	return len;
}

/* Why a request failed: libcurl's words, which may quote the server, and what this system lacks. */
static void set_error(char *ret, size_t cap, CURLcode rc, const char *words, const char *ca_file)
{
	const char *missing = NULL;
	char clean[CURL_ERROR_SIZE];

	if (!*words)
		words = curl_easy_strerror(rc);
	text_clean(clean, sizeof(clean), words, strlen(words), 0);
	if (!ca_file && (rc == CURLE_PEER_FAILED_VERIFICATION || rc == CURLE_SSL_CACERT_BADFILE))
		missing = ca_file_missing();
	snprintf(ret, cap, "%s%s%s", clean, missing ? "; " : "", missing ? missing : "");
}

static int on_progress(void *ctx, curl_off_t dltotal, curl_off_t dlnow, curl_off_t ultotal,
		       curl_off_t ulnow)
{
	const struct http *h = ctx;

	(void)dltotal, (void)dlnow, (void)ultotal, (void)ulnow;
	return h->stop && h->stop(h->stop_ctx);
}

static void set_server(CURL *c, bool insecure, const char *ca_file)
{
	curl_easy_setopt(c, CURLOPT_SSL_VERIFYPEER, insecure ? 0L : 1L);
	curl_easy_setopt(c, CURLOPT_SSL_VERIFYHOST, insecure ? 0L : 2L);
	if (ca_file)
		curl_easy_setopt(c, CURLOPT_CAINFO, ca_file);
}

static void set_tls(CURL *c, const struct agent_config *cfg)
{
	set_server(c, cfg->insecure, cfg->ca_file);
	if (cfg->cert_file) {
		curl_easy_setopt(c, CURLOPT_SSLCERT, cfg->cert_file);
		curl_easy_setopt(c, CURLOPT_SSLKEY, cfg->key_file);
	}
}

/* No proxy for this machine, even if http_proxy is set. */
static void no_proxy_here(CURL *c, const char *url)
{
	const char *host = strstr(url, "://") + 3;

	if (!strncmp(host, "127.", 4) || !strncmp(host, "localhost", 9) ||
	    !strncmp(host, "[::1]", 5))
		curl_easy_setopt(c, CURLOPT_NOPROXY, "*");
}

static void set_protocol(struct http *h, const struct agent_config *cfg,
			 const struct http_request *req)
{
	bool tls = !strncmp(req->url, "https:", 6);

	if (req->grpc)
		curl_easy_setopt(h->curl, CURLOPT_HTTP_VERSION,
				 tls ? CURL_HTTP_VERSION_2TLS
				     : CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE);
	else
		curl_easy_setopt(h->curl, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
	/*
	 * libcurl repeats a request if a reused connection closes without an answer. The server may
	 * already have accepted the first request.
	 */
	if ((req->grpc && !tls && h->fresh) || cfg->unsure == AGENT_UNSURE_DROP) {
		curl_easy_setopt(h->curl, CURLOPT_FRESH_CONNECT, 1L);
		curl_easy_setopt(h->curl, CURLOPT_FORBID_REUSE, 1L);
	}
	no_proxy_here(h->curl, req->url);
}

/*
 * libcurl resolves names in a thread. When a request is given up, it waits for that thread: as long
 * as the resolver does, which may be half a minute, without asking whether to stop. With
 * CURLOPT_QUICK_EXIT it leaves the thread behind, which ends, and frees what it has, when the
 * resolver is done. This is set for all requests, because one that was given up may be waiting
 * already when this process is to end. If a resolver is never done, the number of threads limits
 * how many are left behind. libcurl before 7.87 waits.
 */
static void set_quick_exit(CURL *c)
{
#if LIBCURL_VERSION_NUM >= 0x075700
	struct stat task; /* its links are . and .. and one for each thread */
	bool many = !stat("/proc/self/task", &task) && task.st_nlink >= THREADS_MOST;

	curl_easy_setopt(c, CURLOPT_QUICK_EXIT, many ? 0L : 1L);
#else
	(void)c;
#endif
}

/* Sets the options of every request. */
static void set_common(struct http *h, const char *url, uint64_t timeout_ns, char *error)
{
	CURL *c = h->curl;

	curl_easy_reset(c); /* keeps connections and TLS sessions */
	curl_easy_setopt(c, CURLOPT_URL, url);
	curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
	set_quick_exit(c);
	curl_easy_setopt(c, CURLOPT_ERRORBUFFER, error);
	curl_easy_setopt(c, CURLOPT_USERAGENT, "sfbpf-agent/" SFBPF_VERSION);
	curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, (long)(timeout_ns / NUM_MS));
	curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, on_progress);
	curl_easy_setopt(c, CURLOPT_XFERINFODATA, h);
#if LIBCURL_VERSION_NUM >= 0x075500
	curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
#else
	curl_easy_setopt(c, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
}

static struct curl_slist *headers_of(const char *const *at)
{
	/* Avoids the "100 Continue" round trip. */
	struct curl_slist *list = curl_slist_append(NULL, "Expect:");

	for (size_t i = 0; at && at[i] && list; i++) {
		struct curl_slist *longer = curl_slist_append(list, at[i]);

		if (!longer)
			break;
		list = longer;
	}
	return list;
}

static void set_request(struct http *h, const struct agent_config *cfg,
			const struct http_request *req, struct http_reply *ret,
			struct curl_slist *headers, char *error)
{
	CURL *c = h->curl;

	set_common(h, req->url, cfg->timeout_ns, error);
	curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, (long)(cfg->connect_timeout_ns / NUM_MS));
	curl_easy_setopt(c, CURLOPT_POST, 1L);
	curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)req->len);
	curl_easy_setopt(c, CURLOPT_POSTFIELDS, req->data);
	curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(c, CURLOPT_WRITEDATA, ret);
	curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(c, CURLOPT_HEADERDATA, ret);
	set_protocol(h, cfg, req);
	set_tls(c, cfg);
}

void http_post(struct http *h, const struct agent_config *cfg, const struct http_request *req,
	       struct http_reply *ret)
{
	uint64_t start = clock_ns(CLOCK_MONOTONIC);
	char error[CURL_ERROR_SIZE] = "";
	struct curl_slist *headers = headers_of(req->headers);
	curl_off_t sent = 0;
	CURLcode rc;

	*ret = (struct http_reply){ .grpc_status = -1, .retry_after_s = -1 };
	set_request(h, cfg, req, ret, headers, error);
	rc = curl_easy_perform(h->curl);
	curl_easy_getinfo(h->curl, CURLINFO_RESPONSE_CODE, &ret->status);
	curl_easy_getinfo(h->curl, CURLINFO_SIZE_UPLOAD_T, &sent);
	ret->sent = sent >= (curl_off_t)req->len && req->len;
	/*
	 * The HTTP status is the answer even if the body stalls after it. The gRPC status comes
	 * last.
	 */
	ret->answered = req->grpc ? ret->grpc_status >= 0 || (rc == CURLE_OK && ret->status != 200)
				  : ret->status >= 200;
	if (rc != CURLE_OK)
		set_error(ret->error, sizeof(ret->error), rc, error, cfg->ca_file);
	else if (!*ret->error && ret->status >= 300)
		text_clean(ret->error, sizeof(ret->error), ret->body,
			   ret->body_len < 200 ? ret->body_len : 200, 0);
	ret->seconds = (double)(clock_ns(CLOCK_MONOTONIC) - start) / 1e9;
	curl_slist_free_all(headers);
}

/* ---- Requests whose answer is wanted ---- */

struct getting {
	CURL *curl;
	const struct http_get *get;
	struct http_answer *answer;
	size_t cap;
	bool too_long;
};

static size_t on_data(char *data, size_t size, size_t n, void *ctx)
{
	struct getting *g = ctx;
	struct http_answer *a = g->answer;
	size_t len = size * n;
	long status = 0;

	if (g->get->take && !curl_easy_getinfo(g->curl, CURLINFO_RESPONSE_CODE, &status) &&
	    status == 200)
		return g->get->take(g->get->ctx, data, len) ? len : 0;
	g->too_long = len > g->get->most - a->len;
	if (g->too_long || vec_reserve(&a->data, &g->cap, a->len + len, 1))
		return 0; /* ends the request */
	memcpy(a->data + a->len, data, len);
	a->len += len;
	return len;
}

int http_get(struct http *h, const struct http_get *get, struct http_answer *ret)
{
	struct getting g = { .curl = h->curl, .get = get, .answer = ret };
	char error[CURL_ERROR_SIZE] = "", *bearer = NULL;
	struct curl_slist *headers = headers_of(get->headers), *longer = headers;
	CURL *c = h->curl;
	CURLcode rc = CURLE_OUT_OF_MEMORY;

	*ret = (struct http_answer){ 0 };
	set_common(h, get->url, get->timeout_ns, error);
	if (get->proxy)
		no_proxy_here(c, get->url);
	else
		curl_easy_setopt(c, CURLOPT_NOPROXY, "*");
	if (get->post)
		curl_easy_setopt(c, CURLOPT_POSTFIELDS, get->post);
	curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_data);
	curl_easy_setopt(c, CURLOPT_WRITEDATA, &g);
	set_server(c, get->insecure, get->ca_file);
	if (get->token && *get->token)
		longer = asprintf(&bearer, "Authorization: Bearer %s", get->token) > 0
				 ? curl_slist_append(headers, bearer)
				 : NULL;
	if (longer) {
		headers = longer;
		curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers);
		rc = curl_easy_perform(c);
	}
	curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &ret->status);
	if (g.too_long)
		snprintf(ret->error, sizeof(ret->error), "the answer is too long");
	else if (rc != CURLE_OK)
		set_error(ret->error, sizeof(ret->error), rc, error, get->ca_file);
	curl_easy_reset(c); /* it refers to what ends here */
	curl_slist_free_all(headers);
	free(bearer);
	return rc == CURLE_OK ? 0 : -EIO;
}
