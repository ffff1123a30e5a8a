/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/body.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/gzip.h"
#include "base/hash.h"

/* Level 6 takes twice the CPU time and saves only 3 %. */
enum { GZIP_LEVEL = 1 };

void body_new_id(uint8_t id[16])
{
	uint64_t words[2];

	if (getrandom(words, sizeof(words), GRND_NONBLOCK) != sizeof(words)) {
		words[0] = hash_mix(clock_ns(CLOCK_REALTIME), (uint64_t)(uintptr_t)id);
		words[1] = hash_mix(words[0], clock_ns(CLOCK_MONOTONIC));
	}
	memcpy(id, words, sizeof(words));
	id[6] = (uint8_t)((id[6] & 0x0f) | 0x40); /* RFC 9562: version 4 */
	id[8] = (uint8_t)((id[8] & 0x3f) | 0x80);
}

void body_id_text(const uint8_t id[16], char ret[37])
{
	char *at = ret;

	for (int i = 0; i < 16; i++)
		at += sprintf(at, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
			      id[i]);
}

size_t body_escape(char *dst, size_t cap, const char *s)
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

int body_emit(const struct encode_input *in, enum body_kind kind, bool gzip, uint8_t *data,
	      size_t len, uint64_t samples, const uint8_t *id, body_fn fn, void *ctx)
{
	struct body b = { .kind = kind,
			  .time_ns = in->window->start_unix_ns,
			  .samples = samples,
			  .data = data,
			  .len = len };
	uint8_t *packed;
	size_t packed_len;

	if (id)
		memcpy(b.id, id, sizeof(b.id));
	else
		body_new_id(b.id);
	if (gzip && !gzip_bytes(data, len, GZIP_LEVEL, &packed, &packed_len)) {
		free(data);
		b.data = packed;
		b.len = packed_len;
		b.gzip = true;
	}
	return fn(ctx, &b);
}

int body_stack(const struct encode_input *in, struct profile *p, size_t i, struct body_stack *st)
{
	int err = profile_frames(p, i, in->symbols, true, true, &st->frames);

	profile_stack(p, i, &st->s);
	st->note[0] = 0;
	if ((st->s.flags & SF_SAMPLE_USER) && !profile_at_root(st->s.stop))
		snprintf(st->note, sizeof(st->note), "[incomplete:%s]",
			 profile_stop_name(st->s.stop));
	return err;
}

bool body_configured(const struct agent_config *cfg, const char *name)
{
	for (size_t i = 0; i < cfg->labels.n; i++)
		if (!strcmp(cfg->labels.list[i].name, name))
			return true;
	return false;
}

/* What is known of the target's pod. */
static void body_pod_labels(const struct encode_input *in, const struct pod_names *names,
			    void (*fn)(void *ctx, const char *name, const char *value), void *ctx)
{
	const struct agent_pairs *keys = &in->cfg->pod_keys;

	if (!names)
		return;
	const struct {
		const char *name, *value;
	} own[] = {
		{ "k8s.pod.name", names->pod },
		{ "k8s.namespace.name", names->space },
		{ "k8s.container.name", names->container },
		{ "k8s.node.name", names->node },
	};

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (*own[i].value && !body_configured(in->cfg, own[i].name))
			fn(ctx, own[i].name, own[i].value);
	for (size_t i = 0; i < keys->n && i < POD_LABELS; i++)
		if (*names->labels[i] && !body_configured(in->cfg, keys->list[i].name))
			fn(ctx, keys->list[i].name, names->labels[i]);
}

void body_labels(const struct encode_input *in, const struct target *t,
		 void (*fn)(void *ctx, const char *name, const char *value), void *ctx)
{
	const struct {
		const char *name, *value;
	} own[] = {
		{ "service.name", t->service },
		{ "service.namespace", t->space },
		{ "service.version", t->version },
		{ "service.instance.id", t->instance },
		{ "deployment.environment.name", t->environment },
		{ "host.name", in->host },
		{ "systemd.unit", t->unit },
		{ "container.id", t->container },
		{ "container.name", t->container_name },
		{ "k8s.pod.uid", t->pod },
	};

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (*own[i].value && !body_configured(in->cfg, own[i].name))
			fn(ctx, own[i].name, own[i].value);
	body_pod_labels(in, targets_names(in->window->targets, t), fn, ctx);
	for (size_t i = 0; i < in->cfg->labels.n; i++)
		fn(ctx, in->cfg->labels.list[i].name, in->cfg->labels.list[i].value);
}

bool body_has(const struct encode_input *in, enum window_kind kind)
{
	for (size_t g = 0; g < in->window->ngroups; g++)
		if (in->window->groups[g].kind == kind &&
		    profile_count(in->window->groups[g].profile))
			return true;
	return false;
}

struct out_report body_report(const struct encode_input *in, enum window_kind kind,
			      struct profile *p, struct run_stats *stats, struct out_meta *meta)
{
	bool off = kind == WINDOW_OFF_CPU;

	*stats = *in->stats;
	*meta = *in->meta;
	stats->offcpu = off;
	if (off) {
		stats->samples = in->window->blocks;
		meta->event = "off-cpu";
		meta->hz = 0;
	}
	return (struct out_report){
		.profile = p,
		.symbols = in->symbols,
		.modules = in->modules,
		.meta = meta,
		.stats = stats,
		.opts = { .redact = in->cfg->redact,
			  .any_process = !in->cfg->label_pid,
			  .usec = off,
			  .gzip_level = GZIP_LEVEL },
	};
}
