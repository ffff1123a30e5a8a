/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/deliver.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/num.h"
#include "base/text.h"

#define MAX_HEADERS 64
#define HEADER_BYTES 8192

/* ---- Where to ---- */

static const char *path_of(uint32_t kind, bool grpc)
{
	switch (kind) {
	case BODY_OTLP:
		return grpc ? "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export" : "/v1development/profiles";
	case BODY_PYROSCOPE:
		return "/push.v1.PusherService/Push";
	case BODY_PARCA:
		return "/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw";
	default:
		return "/";
	}
}

static bool is_grpc(const struct agent_config *cfg)
{
	return cfg->protocol == AGENT_OTLP_GRPC || cfg->protocol == AGENT_PARCA;
}

static bool fits_protocol(int protocol, uint32_t kind)
{
	switch (protocol) {
	case AGENT_OTLP_HTTP:
	case AGENT_OTLP_GRPC:
		return kind == BODY_OTLP;
	case AGENT_PYROSCOPE:
		return kind == BODY_PYROSCOPE;
	case AGENT_PARCA:
		return kind == BODY_PARCA;
	case AGENT_CLICKHOUSE:
		return kind == BODY_CH_STACKS || kind == BODY_CH_FILES || kind == BODY_CH_SAMPLES;
	default:
		return kind == BODY_FILE || kind == BODY_FILE_OFF_CPU;
	}
}

static size_t escape(char *dst, size_t cap, const char *s)
{
	size_t n = 0;

	for (; *s && n + 4 < cap; s++) {
		if ((*s | 32) >= 'a' && (*s | 32) <= 'z')
			dst[n++] = *s;
		else if ((*s >= '0' && *s <= '9') || *s == '_' || *s == '-' || *s == '.')
			dst[n++] = *s;
		else
			n += (size_t)snprintf(dst + n, cap - n, "%%%02X", (unsigned char)*s);
	}
	dst[n] = 0;
	return n;
}

static int clickhouse_url(const struct agent_config *cfg, const struct body *b, const char *base, int len, char *ret, size_t cap)
{
	const char *table = b->kind == BODY_CH_STACKS ? "sfbpf_stacks" : b->kind == BODY_CH_FILES ? "sfbpf_files" : "sfbpf_samples";
	char database[256], token[37];
	int n;

	escape(database, sizeof(database), cfg->database ? cfg->database : "default");
	body_id_text(b->id, token);
	n = snprintf(ret, cap, "%.*s/?database=%s&insert_deduplication_token=%s&query=INSERT%%20INTO%%20%s%%20FORMAT%%20JSONEachRow",
		     len, base, database, token, table);
	return n < (int)cap ? 0 : -EINVAL;
}

int deliver_url(const struct agent_config *cfg, const struct body *b, char *ret, size_t cap)
{
	const char *base = cfg->endpoint, *host = strstr(base, "://"), *path;
	size_t len = strlen(base);

	if (!host)
		return -EINVAL;
	while (len && base[len - 1] == '/')
		len--;
	path = strchr(host + 3, '/');
	if (cfg->protocol == AGENT_CLICKHOUSE)
		return clickhouse_url(cfg, b, base, (int)len, ret, cap);
	/* A path of its own is the receiver's, unless the variable says that it is the base of all signals. */
	if (cfg->protocol == AGENT_OTLP_HTTP && path && path[1] && !cfg->endpoint_is_base)
		return snprintf(ret, cap, "%s", base) < (int)cap ? 0 : -EINVAL;
	return snprintf(ret, cap, "%.*s%s", (int)len, base, path_of(b->kind, is_grpc(cfg))) < (int)cap ? 0 : -EINVAL;
}

/* ---- Headers ---- */

struct header_list {
	const char *at[MAX_HEADERS + 1];
	size_t n, used;
	char text[HEADER_BYTES];
};

static void header(struct header_list *l, const char *fmt, const char *a, const char *b)
{
	int len = snprintf(l->text + l->used, sizeof(l->text) - l->used, fmt, a, b);

	if (l->n >= MAX_HEADERS || len < 0 || (size_t)len >= sizeof(l->text) - l->used)
		return;
	l->at[l->n++] = l->text + l->used;
	l->at[l->n] = NULL;
	l->used += (size_t)len + 1;
}

/* The lines of a file of secrets, read anew for each request: tokens are renewed. False: it cannot be read. */
static bool each_line(const char *path, void (*fn)(struct header_list *l, const char *line), struct header_list *l)
{
	char line[4096];
	FILE *f = fopen(path, "re");

	if (!f)
		return false;
	while (fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\r\n")] = 0;
		if (*line && *line != '#')
			fn(l, line);
	}
	fclose(f);
	return true;
}

static void plain_header(struct header_list *l, const char *line)
{
	if (strchr(line, ':'))
		header(l, "%s%s", line, "");
}

static void token_header(struct header_list *l, const char *line)
{
	header(l, "Authorization: Bearer %s%s", line, "");
}

/* False with a text: a file of secrets cannot be read. */
static bool all_headers(struct header_list *l, const struct agent_config *cfg, const struct body *b, char *error, size_t cap)
{
	const char *unreadable = NULL;
	char id[37];

	if (is_grpc(cfg)) {
		header(l, "Content-Type: application/grpc%s%s", "", "");
		header(l, "TE: trailers%s%s", "", "");
		if (b->gzip)
			header(l, "grpc-encoding: gzip%s%s", "", "");
	} else {
		header(l, "Content-Type: %s%s", cfg->protocol == AGENT_CLICKHOUSE ? "application/x-ndjson" :
		       cfg->protocol == AGENT_PYROSCOPE ? "application/proto" : "application/x-protobuf", "");
		if (b->gzip)
			header(l, "Content-Encoding: gzip%s%s", "", "");
	}
	body_id_text(b->id, id);
	header(l, "Idempotency-Key: %s%s", id, "");
	for (size_t i = 0; i < cfg->headers.n; i++)
		header(l, "%s: %s", cfg->headers.list[i].name, cfg->headers.list[i].value);
	if (cfg->header_file && !each_line(cfg->header_file, plain_header, l))
		unreadable = cfg->header_file;
	if (cfg->token_file && !each_line(cfg->token_file, token_header, l))
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
	case 0:
		return DELIVER_OK;
	case 7: case 16:
		return DELIVER_CONFIG;
	case 3: case 5: case 6: case 9: case 11: case 12:
		return DELIVER_REFUSED;
	default:
		*ret_poison = status == 2 || status == 13 || status == 15;
		return DELIVER_RETRY;
	}
}

uint64_t deliver_rejected(const void *data, size_t len, char *why, size_t cap)
{
	struct bytes b = bytes_of(data, len, false);
	uint64_t rejected = 0;

	while (bytes_left(&b)) {
		uint64_t tag = bytes_uleb(&b);

		if (tag == (1 << 3 | 2)) {		/* partial_success: its fields follow */
			bytes_uleb(&b);
		} else if (tag == (1 << 3 | 0)) {	/* rejected_profiles */
			rejected = bytes_uleb(&b);
		} else if (tag == (2 << 3 | 2)) {	/* error_message */
			uint64_t n = bytes_uleb(&b);
			const uint8_t *s = n <= bytes_left(&b) ? bytes_take(&b, n) : NULL;

			if (!s)
				break;
			text_clean(why, cap, (const char *)s, n, 0);
		} else {
			break;
		}
	}
	return b.err ? 0 : rejected;
}

static void judge(const struct agent_config *cfg, const struct http_reply *r, struct delivery *ret)
{
	bool grpc = is_grpc(cfg);
	size_t skip = grpc ? 5 : 0;

	snprintf(ret->error, sizeof(ret->error), "%s", r->error);
	ret->seconds = r->seconds;
	ret->retry_after_s = r->retry_after_s;
	if (!r->answered) {
		ret->verdict = r->sent ? DELIVER_UNSURE : DELIVER_RETRY;
		return;
	}
	ret->status = r->grpc_status >= 0 ? r->grpc_status : (int)r->status;
	ret->verdict = r->grpc_status >= 0 ? judge_grpc(r->grpc_status, &ret->poison) : judge_http(r->status, &ret->poison);
	/* HTTP 200 without a gRPC status is no gRPC server. */
	if (grpc && r->grpc_status < 0 && ret->verdict == DELIVER_OK)
		ret->verdict = DELIVER_CONFIG;
	if (ret->verdict == DELIVER_OK && cfg->protocol <= AGENT_OTLP_GRPC && r->body_len > skip)
		ret->rejected = deliver_rejected(r->body + skip, r->body_len - skip, ret->error, sizeof(ret->error));
}

/* gRPC: one byte that says whether it is compressed, four of length, then the message. */
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

static void post(struct http *h, const struct agent_config *cfg, const struct body *b, struct delivery *ret)
{
	struct header_list headers = { .n = 0 };
	struct http_request req = { .headers = headers.at, .data = b->data, .len = b->len, .grpc = is_grpc(cfg) };
	struct http_reply reply;
	uint8_t *frame = NULL;
	char url[2048];

	if (deliver_url(cfg, b, url, sizeof(url))) {
		ret->verdict = DELIVER_CONFIG;
		snprintf(ret->error, sizeof(ret->error), "the endpoint is no URL");
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

/* ---- Files ---- */

static int write_file(int dir, const char *name, const struct body *b)
{
	char tmp[300];
	FILE *f;
	int fd, err = 0;

	snprintf(tmp, sizeof(tmp), ".%s.tmp", name);
	fd = openat(dir, tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	f = fd < 0 ? NULL : fdopen(fd, "w");
	if (!f)
		return -errno;
	if (fwrite(b->data, 1, b->len, f) != b->len || fflush(f) || fsync(fd))
		err = errno ? -errno : -EIO;
	if (fclose(f) && !err)
		err = -errno;
	if (!err && renameat(dir, tmp, dir, name))
		err = -errno;
	if (err)
		unlinkat(dir, tmp, 0);
	return err;
}

int deliver_file(const char *dir, const char *format, const char *host, const struct body *b)
{
	const struct out_format *f = out_format_named(format);
	char name[256], safe[128], id[37];
	int fd, err;

	escape(safe, sizeof(safe), host);
	body_id_text(b->id, id);
	snprintf(name, sizeof(name), "sfbpf-%s-%" PRIu64 "-%.8s%s%s", safe, (uint64_t)(b->time_ns / NUM_MS), id, b->kind == BODY_FILE_OFF_CPU ? ".off_cpu" : "",
		 f && f->suffixes[0] ? f->suffixes[0] : ".txt");
	if (mkdir(dir, 0700) && errno != EEXIST)
		return -errno;
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	err = write_file(fd, name, b);
	close(fd);
	return err;
}

void deliver(struct http *h, const struct agent_config *cfg, const char *host, const struct body *b, struct delivery *ret)
{
	const char *dir = cfg->endpoint;
	int err;

	*ret = (struct delivery){ .retry_after_s = -1 };
	if (!fits_protocol(cfg->protocol, b->kind)) {
		ret->verdict = DELIVER_OTHER_PROTOCOL;
		return;
	}
	if (cfg->protocol != AGENT_FILE) {
		post(h, cfg, b, ret);
		return;
	}
	if (!strncmp(dir, "file://", 7))
		dir += 7;
	err = deliver_file(dir, cfg->format, host, b);
	ret->verdict = err ? DELIVER_RETRY : DELIVER_OK;
	if (err)
		snprintf(ret->error, sizeof(ret->error), "%.200s: %s", dir, strerror(-err));
}
