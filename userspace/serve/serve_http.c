/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/serve_http.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/guests.h"
#include "agent/listen.h"
#include "agent/web.h"

#define CONNECTIONS (2 * GUESTS_MAX) /* guests who were sent away stay for a moment */
#define ASK_S	    5		     /* time for a question, and for each part of an answer */
#define THREADS	    3
#define HEAD_BYTES  16384
#define COOKIE	    "sfbpf-token"

struct serve_http {
	struct serve_config config;
	struct guests guests;
	struct MHD_Daemon *daemon;
};

struct serve_query {
	struct MHD_Connection *connection;
};

const char *serve_parameter(const struct serve_query *q, const char *name)
{
	return MHD_lookup_connection_value(q->connection, MHD_GET_ARGUMENT_KIND, name);
}

/* ---- Who may ask ---- */

/* The time depends on the length of `said` only. */
static bool same_token(const char *want, const char *said)
{
	size_t n = strlen(want), m = strlen(said);
	unsigned int differ = n != m;

	for (size_t i = 0; i < m; i++)
		differ |= (unsigned char)said[i] ^ (unsigned char)want[n ? i % n : 0];
	return !differ;
}

static bool has_token(const struct serve_http *h, struct MHD_Connection *c)
{
	const char *bearer = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Authorization"),
		   *cookie = MHD_lookup_connection_value(c, MHD_COOKIE_KIND, COOKIE);

	if (bearer && !strncasecmp(bearer, "Bearer ", 7))
		return same_token(h->config.token, bearer + 7);
	return cookie && same_token(h->config.token, cookie);
}

static bool own_host(const struct serve_http *h, const char *said)
{
	return said && listen_own_host(said, h->config.host);
}

/* ---- What is sent ---- */

static enum MHD_Result send_reply(struct web_reply *r, struct MHD_Connection *c, int status,
				  const struct serve_answer *a, struct web_header more)
{
	char policy[400], file[200];
	struct web_header headers[10] = {
		{ "Content-Type", a->type ? a->type : "text/plain; charset=utf-8" },
		{ "Cache-Control", "no-store" },
		{ "X-Content-Type-Options", "nosniff" },
		{ "X-Frame-Options", "SAMEORIGIN" },
		{ "Referrer-Policy", "no-referrer" },
		{ "Cross-Origin-Resource-Policy", "same-origin" },
		more,
	};
	size_t n = more.name ? 7 : 6;

	if (a->nonce) {
		snprintf(policy, sizeof(policy),
			 "default-src 'none'; script-src 'nonce-%s'; style-src 'nonce-%s'; "
			 "connect-src 'self'; frame-src 'self'; frame-ancestors 'self'; "
			 "base-uri 'none'; form-action 'none'",
			 a->nonce, a->nonce);
		headers[n++] = (struct web_header){ "Content-Security-Policy", policy };
	}
	if (a->file) {
		snprintf(file, sizeof(file), "attachment; filename=\"%s\"", a->file);
		headers[n++] = (struct web_header){ "Content-Disposition", file };
	}
	return web_send(r, c, status, headers);
}

static enum MHD_Result send_text(struct MHD_Connection *c, int status, const char *text,
				 const char *header, const char *value)
{
	struct web_reply r;

	if (!web_begin(&r))
		return MHD_NO;
	fputs(text, r.body);
	return send_reply(&r, c, status, &(struct serve_answer){ 0 },
			  (struct web_header){ header, value });
}

/* The token in the address becomes a cookie, so that it is not in the addresses of pages. */
static enum MHD_Result take_token(const struct serve_http *h, struct MHD_Connection *c)
{
	char cookie[400];
	const struct web_header headers[] = { { "Set-Cookie", cookie },
					      { "Location", "/" },
					      { "Cache-Control", "no-store" },
					      { "Referrer-Policy", "no-referrer" },
					      { 0 } };
	struct web_reply r;

	snprintf(cookie, sizeof(cookie), COOKIE "=%s; HttpOnly; SameSite=Strict; Path=/",
		 h->config.token);
	return web_begin(&r) ? web_send(&r, c, MHD_HTTP_SEE_OTHER, headers) : MHD_NO;
}

static struct guest *guest_of(struct MHD_Connection *c)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

static enum MHD_Result send_page(struct serve_http *h, struct MHD_Connection *c, const char *name)
{
	struct serve_query q = { c };
	struct serve_answer a = { 0 };
	struct web_reply r;
	int status;

	if (!web_begin(&r))
		return MHD_NO;
	a.body = r.body;
	guests_answer(&h->guests, guest_of(c));
	status = h->config.page(h->config.ctx, name, &q, &a);
	return send_reply(&r, c, status, &a, (struct web_header){ 0 });
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *c, const char *url,
				  const char *method, const char *version, const char *data,
				  size_t *data_size, void **state)
{
	static int seen;
	struct serve_http *h = cls;
	const char *token;

	(void)version, (void)data;
	if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
		return *data_size ? MHD_NO
				  : send_text(c, MHD_HTTP_METHOD_NOT_ALLOWED, "GET and HEAD only\n",
					      "Allow", "GET, HEAD");
	if (!*state) { /* the first of two calls */
		*state = &seen;
		return MHD_YES;
	}
	if (*data_size)
		return MHD_NO; /* a body */
	if (!h->config.token) {
		if (!own_host(h, MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Host")))
			return send_text(c, MHD_HTTP_FORBIDDEN, "another host\n", NULL, NULL);
		return send_page(h, c, url);
	}
	token = MHD_lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, "token");
	if (token && same_token(h->config.token, token))
		return take_token(h, c);
	if (!has_token(h, c))
		return send_text(c, MHD_HTTP_UNAUTHORIZED,
				 "a token is needed: /?token=TOKEN, or 'Authorization: Bearer'\n",
				 "WWW-Authenticate", "Bearer");
	return send_page(h, c, url);
}

static void on_completed(void *cls, struct MHD_Connection *c, void **state,
			 enum MHD_RequestTerminationCode why)
{
	struct serve_http *h = cls;

	(void)state, (void)why;
	guests_answered(&h->guests, guest_of(c));
}

struct serve_http *serve_http_start(const struct serve_config *config)
{
	struct serve_http *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->config = *config;
	guests_init(&h->guests, GUESTS_MAX, ASK_S * 1000);
	h->daemon = MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD, 0, NULL, NULL, on_request, h,
				     MHD_OPTION_LISTEN_SOCKET, config->fd,
				     MHD_OPTION_CONNECTION_LIMIT, (unsigned int)CONNECTIONS,
				     MHD_OPTION_CONNECTION_TIMEOUT, (unsigned int)ASK_S,
				     MHD_OPTION_THREAD_POOL_SIZE, (unsigned int)THREADS,
				     MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEAD_BYTES,
				     MHD_OPTION_NOTIFY_CONNECTION, web_on_connection, &h->guests,
				     MHD_OPTION_NOTIFY_COMPLETED, on_completed, h,
				     MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
	if (!h->daemon) {
		free(h);
		return NULL;
	}
	return h;
}

void serve_http_look(struct serve_http *h)
{
	guests_look(&h->guests);
}

void serve_http_stop(struct serve_http *h)
{
	MHD_stop_daemon(h->daemon);
	free(h);
}
