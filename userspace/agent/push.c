/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pprof for receivers that accept it by target: push.v1.PushRequest of Pyroscope and
 * WriteRawRequest of Parca. Both contain series, each with labels and profiles. Labels are named as
 * in Prometheus. In both, a profile is named "process_cpu" or "off_cpu".
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/receiver.h"
#include "base/pb.h"

enum { /* field numbers */
       PUSH_SERIES = 1,
       PUSH_SERIES_LABELS = 1,
       PUSH_SERIES_SAMPLES = 2,
       PUSH_SAMPLE_PROFILE = 1,
       PUSH_SAMPLE_ID = 2,
       RAW_SERIES = 2,
       RAW_SERIES_LABELS = 1,
       RAW_SERIES_SAMPLES = 2,
       RAW_LABELS = 1,
       RAW_SAMPLE_PROFILE = 1,
       LABEL_NAME = 1,
       LABEL_VALUE = 2,
};

struct push {
	const struct encode_input *in;
	bool parca;
	struct pb pb;
	uint64_t samples;
	uint8_t id[16];
	body_fn fn;
	void *ctx;
};

static void put_label(struct push *p, const char *name, const char *value)
{
	size_t at = pb_begin(&p->pb, p->parca ? RAW_LABELS : PUSH_SERIES_LABELS);
	char clean[256];
	size_t n = 0;

	/* Label names are [a-zA-Z_][a-zA-Z0-9_]* */
	for (; *name && n < sizeof(clean) - 1; name++, n++)
		clean[n] = isalnum((unsigned char)*name) && (n || !isdigit((unsigned char)*name))
				   ? *name
				   : '_';
	clean[n] = 0;
	pb_str(&p->pb, LABEL_NAME, clean);
	pb_str(&p->pb, LABEL_VALUE, value);
	pb_end(&p->pb, at);
}

static void on_label(void *ctx, const char *name, const char *value)
{
	put_label(ctx, name, value);
}

static int pprof(const struct encode_input *in, const struct window_group *g, char **ret,
		 size_t *ret_len)
{
	struct run_stats stats;
	struct out_meta meta;
	struct out_report r = body_report(in, g->kind, g->profile, &stats, &meta);
	FILE *f = open_memstream(ret, ret_len);
	int err;

	r.opts.only_comm = true;
	err = f ? out_pprof(&r, f) : -ENOMEM;
	if (f && fclose(f) && !err)
		err = -ENOMEM;
	return err;
}

static int flush(struct push *p)
{
	uint8_t *data = p->pb.buf;
	size_t len = p->pb.len;
	uint64_t samples = p->samples;

	if (p->pb.err || !len)
		return p->pb.err;
	p->pb = (struct pb){ 0 };
	p->samples = 0;
	/* Not compressed as a whole: the profiles in it are. */
	return body_emit(p->in, p->parca ? BODY_PARCA : BODY_PYROSCOPE, false, data, len, samples,
			 p->id, p->fn, p->ctx);
}

static int add_series(struct push *p, const struct window_group *g)
{
	const struct target *t = targets_at(p->in->window->targets, g->target);
	char *data = NULL, id[37];
	size_t len = 0, series, at;
	int err = pprof(p->in, g, &data, &len);

	if (!err && p->pb.len && p->pb.len + len > p->in->cfg->request_bytes)
		err = flush(p);
	if (!err) {
		if (!p->pb.len)
			body_new_id(p->id);
		series = pb_begin(&p->pb, p->parca ? RAW_SERIES : PUSH_SERIES);
		at = p->parca ? pb_begin(&p->pb, RAW_SERIES_LABELS) : 0;
		put_label(p, "__name__", g->kind == WINDOW_OFF_CPU ? "off_cpu" : "process_cpu");
		body_labels(p->in, t, on_label, p);
		if (p->parca)
			pb_end(&p->pb, at);
		at = pb_begin(&p->pb, p->parca ? RAW_SERIES_SAMPLES : PUSH_SERIES_SAMPLES);
		pb_bytes(&p->pb, p->parca ? RAW_SAMPLE_PROFILE : PUSH_SAMPLE_PROFILE, data, len);
		body_id_text(p->id, id);
		if (!p->parca)
			pb_str(&p->pb, PUSH_SAMPLE_ID, id);
		pb_end(&p->pb, at);
		pb_end(&p->pb, series);
		p->samples += profile_samples(g->profile);
	}
	free(data);
	return err;
}

static int push(const struct encode_input *in, bool parca, body_fn fn, void *ctx)
{
	struct push p = { .in = in, .parca = parca, .fn = fn, .ctx = ctx };
	int err = 0;

	for (size_t i = 0; i < in->window->ngroups && !err; i++)
		err = add_series(&p, &in->window->groups[i]);
	if (!err)
		err = flush(&p);
	pb_free(&p.pb);
	return err;
}

static int encode_pyroscope(const struct encode_input *in, body_fn fn, void *ctx)
{
	return push(in, false, fn, ctx);
}

static int encode_parca(const struct encode_input *in, body_fn fn, void *ctx)
{
	return push(in, true, fn, ctx);
}

const struct receiver receiver_pyroscope = {
	.endpoint = "http://127.0.0.1:4040",
	.bodies = BODY_BIT(BODY_PYROSCOPE),
	.encode = encode_pyroscope,
	.content_type = "application/proto",
	.path = "/push.v1.PusherService/Push",
};

const struct receiver receiver_parca = {
	.endpoint = "http://127.0.0.1:7070",
	.bodies = BODY_BIT(BODY_PARCA),
	.encode = encode_parca,
	.grpc = true,
	.path = "/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw",
};
