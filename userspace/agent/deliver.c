/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/deliver.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/headers.h"
#include "agent/receiver.h"

/* ---- The URL ---- */

int deliver_url(const struct agent_config *cfg, const struct body *b, char *ret, size_t cap)
{
	const struct receiver *r = receiver_at(cfg->protocol);
	const char *base = cfg->endpoint, *host = strstr(base, "://"), *path;
	size_t len = strlen(base);

	if (!host)
		return -EINVAL;
	while (len && base[len - 1] == '/')
		len--;
	path = strchr(host + 3, '/');
	if (r->url)
		return r->url(cfg, b, base, (int)len, ret, cap);
	if (r->path_in_endpoint && path && path[1] && !cfg->endpoint_is_base)
		return snprintf(ret, cap, "%s", base) < (int)cap ? 0 : -EINVAL;
	return snprintf(ret, cap, "%.*s%s", (int)len, base, r->path) < (int)cap ? 0 : -EINVAL;
}

/* ---- Headers ---- */

/* False, with a message: a file of secrets cannot be read. */
static bool all_headers(struct header_list *l, const struct agent_config *cfg, const struct body *b,
			char *error, size_t cap)
{
	const char *unreadable = NULL;
	char id[37];

	if (receiver_at(cfg->protocol)->grpc) {
		headers_add(l, "Content-Type: application/grpc");
		headers_add(l, "TE: trailers");
		if (b->gzip)
			headers_add(l, "grpc-encoding: gzip");
	} else {
		headers_add(l, "Content-Type: %s", receiver_at(cfg->protocol)->content_type);
		if (b->gzip)
			headers_add(l, "Content-Encoding: gzip");
	}
	body_id_text(b->id, id);
	headers_add(l, "Idempotency-Key: %s", id);
	for (size_t i = 0; i < cfg->headers.n; i++)
		headers_add(l, "%s: %s", cfg->headers.list[i].name, cfg->headers.list[i].value);
	if (cfg->header_file && !headers_read(l, cfg->header_file))
		unreadable = cfg->header_file;
	if (cfg->token_file && !headers_read_token(l, cfg->token_file))
		unreadable = cfg->token_file;
	if (unreadable)
		snprintf(error, cap, "%.150s: %s", unreadable, strerror(errno));
	return !unreadable;
}

/* ---- Answers ---- */

static enum verdict judge_http(long status, bool *ret_poison)
{
	if (status >= 200 && status < 300)
		return DELIVER_OK;
	if (status == 401 || status == 403 || status == 404 || status == 407 || status < 400)
		return DELIVER_CONFIG;
	if (status == 408 || status == 429 || status >= 500) {
		*ret_poison = status == 500;
		return DELIVER_RETRY;
	}
	return DELIVER_REFUSED;
}

static enum verdict judge_grpc(int status, bool *ret_poison)
{
	switch (status) {
	case GRPC_OK:
		return DELIVER_OK;
	case GRPC_PERMISSION_DENIED:
	case GRPC_UNAUTHENTICATED:
		return DELIVER_CONFIG;
	case GRPC_INVALID_ARGUMENT:
	case GRPC_NOT_FOUND:
	case GRPC_ALREADY_EXISTS:
	case GRPC_FAILED_PRECONDITION:
	case GRPC_OUT_OF_RANGE:
	case GRPC_UNIMPLEMENTED:
		return DELIVER_REFUSED;
	default:
		*ret_poison = status == GRPC_UNKNOWN || status == GRPC_INTERNAL ||
			      status == GRPC_DATA_LOSS;
		return DELIVER_RETRY;
	}
}

static void judge(const struct agent_config *cfg, const struct http_reply *r, struct delivery *ret)
{
	const struct receiver *to = receiver_at(cfg->protocol);
	size_t skip = to->grpc ? 5 : 0;

	snprintf(ret->error, sizeof(ret->error), "%s", r->error);
	ret->seconds = r->seconds;
	ret->retry_after_s = r->retry_after_s;
	if (!r->answered) {
		ret->verdict = r->sent ? DELIVER_UNSURE : DELIVER_RETRY;
		return;
	}
	if (to->grpc && r->grpc_status >= 0) {
		snprintf(ret->code, sizeof(ret->code), "grpc-%d", r->grpc_status);
		ret->verdict = judge_grpc(r->grpc_status, &ret->poison);
	} else {
		snprintf(ret->code, sizeof(ret->code), "%d", (int)r->status);
		ret->verdict = judge_http(r->status, &ret->poison);
	}
	/* A server that sends HTTP 200 without a gRPC status does not speak gRPC. */
	if (to->grpc && r->grpc_status < 0 && ret->verdict == DELIVER_OK)
		ret->verdict = DELIVER_CONFIG;
	if (ret->verdict == DELIVER_OK && to->rejected && r->body_len > skip)
		ret->rejected = to->rejected(r->body + skip, r->body_len - skip, ret->error,
					     sizeof(ret->error));
}

/* gRPC framing: a byte (1: compressed), four bytes of length, then the message. */
static uint8_t *grpc_frame(const struct body *b)
{
	uint8_t *frame = malloc(b->len + 5);
	uint32_t len = htobe32((uint32_t)b->len);

	if (!frame)
		return NULL;
	frame[0] = b->gzip;
	memcpy(frame + 1, &len, 4);
	memcpy(frame + 5, b->data, b->len);
	return frame;
}

static void post(struct http *h, const struct agent_config *cfg, const struct body *b,
		 struct delivery *ret)
{
	struct header_list headers = { .n = 0 };
	struct http_request req = { .headers = headers.at,
				    .data = b->data,
				    .len = b->len,
				    .grpc = receiver_at(cfg->protocol)->grpc };
	struct http_reply reply;
	uint8_t *frame = NULL;
	char url[2048];

	if (deliver_url(cfg, b, url, sizeof(url))) {
		ret->verdict = DELIVER_CONFIG;
		snprintf(ret->error, sizeof(ret->error),
			 "the endpoint is not a URL, or it is too long");
		return;
	}
	if (!all_headers(&headers, cfg, b, ret->error, sizeof(ret->error))) {
		ret->verdict = DELIVER_CONFIG;
		return;
	}
	req.url = url;
	if (req.grpc) {
		frame = grpc_frame(b);
		if (!frame) {
			ret->verdict = DELIVER_RETRY;
			snprintf(ret->error, sizeof(ret->error), "out of memory");
			return;
		}
		req.data = frame;
		req.len += 5;
	}
	http_post(h, cfg, &req, &reply);
	free(frame);
	judge(cfg, &reply, ret);
}

void deliver(struct http *h, const struct agent_config *cfg, const char *host, const struct body *b,
	     struct delivery *ret)
{
	const struct receiver *r = receiver_at(cfg->protocol);
	int err;

	*ret = (struct delivery){ .retry_after_s = -1, .code = "none" };
	if (!(r->bodies & BODY_BIT(b->kind))) {
		ret->verdict = DELIVER_OTHER_PROTOCOL;
		return;
	}
	if (!r->write) {
		post(h, cfg, b, ret);
		return;
	}
	err = r->write(cfg, host, b);
	ret->verdict = err ? DELIVER_RETRY : DELIVER_OK;
	snprintf(ret->code, sizeof(ret->code), "%s", err ? "not_written" : "written");
	if (err)
		snprintf(ret->error, sizeof(ret->error), "%.200s: %s", cfg->endpoint,
			 strerror(-err));
}
