/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/serve_http.h"

#include <microhttpd.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/page_server.h"
#include "tools/serve_guests.h"

#define CONNECTIONS (2 * GUESTS) /* guests who were sent away stay for a moment */
#define IDLE_S	    5
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
	return said && page_server_own_host(said, h->config.host);
}

/* ---- What is sent ---- */

static void add_headers(struct MHD_Response *r, const struct serve_answer *a)
{
	char policy[400], file[200];

	MHD_add_response_header(r, "Content-Type", a->type);
	MHD_add_response_header(r, "Cache-Control", "no-store");
	MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
	MHD_add_response_header(r, "X-Frame-Options", "SAMEORIGIN");
	MHD_add_response_header(r, "Referrer-Policy", "no-referrer");
	MHD_add_response_header(r, "Cross-Origin-Resource-Policy", "same-origin");
	if (a->nonce) {
		snprintf(policy, sizeof(policy),
			 "default-src 'none'; script-src 'nonce-%s'; style-src 'nonce-%s'; "
			 "connect-src 'self'; frame-src 'self'; frame-ancestors 'self'; "
			 "base-uri 'none'; form-action 'none'",
			 a->nonce, a->nonce);
		MHD_add_response_header(r, "Content-Security-Policy", policy);
	}
	if (a->file) {
		snprintf(file, sizeof(file), "attachment; filename=\"%s\"", a->file);
		MHD_add_response_header(r, "Content-Disposition", file);
	}
}

static enum MHD_Result send_text(struct MHD_Connection *c, unsigned int status, const char *text,
				 const char *header, const char *value)
{
	struct serve_answer a = { .type = "text/plain; charset=utf-8" };
	struct MHD_Response *r = MHD_create_response_from_buffer(strlen(text), (void *)text,
								 MHD_RESPMEM_MUST_COPY);
	enum MHD_Result sent;

	if (!r)
		return MHD_NO;
	add_headers(r, &a);
	if (header)
		MHD_add_response_header(r, header, value);
	sent = MHD_queue_response(c, status, r);
	MHD_destroy_response(r);
	return sent;
}

/* The token in the address becomes a cookie, so that it is not in the addresses of pages. */
static enum MHD_Result take_token(const struct serve_http *h, struct MHD_Connection *c)
{
	char cookie[400];

	snprintf(cookie, sizeof(cookie), COOKIE "=%s; HttpOnly; SameSite=Strict; Path=/",
		 h->config.token);
	struct MHD_Response *r = MHD_create_response_from_buffer(0, "", MHD_RESPMEM_PERSISTENT);
	enum MHD_Result sent;

	if (!r)
		return MHD_NO;
	MHD_add_response_header(r, "Set-Cookie", cookie);
	MHD_add_response_header(r, "Location", "/");
	MHD_add_response_header(r, "Cache-Control", "no-store");
	MHD_add_response_header(r, "Referrer-Policy", "no-referrer");
	sent = MHD_queue_response(c, MHD_HTTP_SEE_OTHER, r);
	MHD_destroy_response(r);
	return sent;
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
	struct serve_answer a = { .type = "text/plain; charset=utf-8" };
	struct MHD_Response *r;
	enum MHD_Result sent;
	char *body = NULL;
	size_t len = 0;
	int status;

	a.body = open_memstream(&body, &len);
	if (!a.body)
		return MHD_NO;
	guests_answer(&h->guests, guest_of(c));
	status = h->config.page(h->config.ctx, name, &q, &a);
	if (fclose(a.body)) {
		free(body);
		return MHD_NO;
	}
	r = MHD_create_response_from_buffer(len, body, MHD_RESPMEM_MUST_FREE);
	if (!r) {
		free(body);
		return MHD_NO;
	}
	add_headers(r, &a);
	sent = MHD_queue_response(c, (unsigned int)status, r);
	MHD_destroy_response(r);
	return sent;
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

static void on_connection(void *cls, struct MHD_Connection *c, void **guest,
			  enum MHD_ConnectionNotificationCode what)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct serve_http *h = cls;
	int fd;

	if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
		guests_go(&h->guests, *guest);
		return;
	}
	if (!info)
		return;
	fd = info->connect_fd;
	/* The result of the next call takes the place of this one's since libmicrohttpd 1.0. */
	info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	*guest = info ? guests_come(&h->guests, fd, info->client_addr) : NULL;
	if (!*guest)
		shutdown(fd, SHUT_RDWR);
}

static void no_log(void *cls, const char *format, va_list args)
{
	(void)cls, (void)format, (void)args;
}

struct serve_http *serve_http_start(const struct serve_config *config)
{
	struct serve_http *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->config = *config;
	guests_init(&h->guests);
	h->daemon = MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_ERROR_LOG, 0, NULL,
				     NULL, on_request, h, MHD_OPTION_EXTERNAL_LOGGER, no_log, NULL,
				     MHD_OPTION_LISTEN_SOCKET, config->fd,
				     MHD_OPTION_CONNECTION_LIMIT, (unsigned int)CONNECTIONS,
				     MHD_OPTION_CONNECTION_TIMEOUT, (unsigned int)IDLE_S,
				     MHD_OPTION_THREAD_POOL_SIZE, (unsigned int)THREADS,
				     MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEAD_BYTES,
				     MHD_OPTION_NOTIFY_CONNECTION, on_connection, h,
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
