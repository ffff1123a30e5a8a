/* SPDX-License-Identifier: BSD-2-Clause */
/* A request's worth of a window as it goes over the wire, and the encoders that make it. */
#ifndef SFBPF_AGENT_BODY_H
#define SFBPF_AGENT_BODY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/config.h"
#include "agent/window.h"
#include "elf/module.h"
#include "out/out.h"
#include "sym/symbolizer.h"

/* Stored in the spool: append only. */
enum body_kind {
	BODY_OTLP = 1, BODY_PYROSCOPE, BODY_PARCA, BODY_CH_STACKS, BODY_CH_FILES, BODY_CH_SAMPLES, BODY_FILE, BODY_FILE_OFF_CPU, BODY_KINDS
};

struct body {
	uint32_t kind;		/* enum body_kind */
	bool gzip;		/* data is compressed */
	uint8_t id[16];		/* random, stays with the body: what a receiver knows a repetition by */
	uint64_t time_ns;	/* start of the window, Unix */
	uint64_t samples;	/* and blocks that ended: those that are in it, and in no other body */
	uint8_t *data;		/* malloc'ed */
	size_t len;
};

struct encode_input {
	const struct agent_config *cfg;
	const char *host;
	struct window *window;		/* closed */
	struct symbolizer *symbols;
	const struct modules *modules;
	const struct out_meta *meta;
	const struct run_stats *stats;
};

/* Takes over b->data. 0 or -errno, which ends the encoding. */
typedef int (*body_fn)(void *ctx, struct body *b);

/* All bodies of a window for the configured protocol. 0 or -errno. */
int body_encode(const struct encode_input *in, body_fn fn, void *ctx);
/* data (which is freed or taken over) as a body: compressed if asked for, with an id. */
int body_emit(const struct encode_input *in, enum body_kind kind, bool gzip, uint8_t *data, size_t len, uint64_t samples,
	      const uint8_t *id, body_fn fn, void *ctx);
void body_new_id(uint8_t id[16]);
void body_id_text(const uint8_t id[16], char ret[37]);	/* as a UUID */

/* The encoders. */
int body_otlp(const struct encode_input *in, body_fn fn, void *ctx);
int body_pyroscope(const struct encode_input *in, body_fn fn, void *ctx);
int body_parca(const struct encode_input *in, body_fn fn, void *ctx);
int body_clickhouse(const struct encode_input *in, body_fn fn, void *ctx);
int body_file(const struct encode_input *in, body_fn fn, void *ctx);
/* All of a kind that the window has, as a file in cfg->format. Its data is the caller's to free. 0 or -errno. */
int body_format(const struct encode_input *in, enum window_kind kind, struct body *ret);
bool body_has(const struct encode_input *in, enum window_kind kind);
/* What outputs are told of a profile of that kind. */
struct out_report body_report(const struct encode_input *in, enum window_kind kind, struct profile *p, struct run_stats *stats,
			      struct out_meta *meta);

/* A stack the way all bodies show it, leaf first: kernel part, user part, and the note of an incomplete one. */
struct body_stack {
	struct profile_stack s;
	struct profile_frames frames;	/* .list is the caller's to free */
	char note[48];		/* root frame "[incomplete:...]"; "": the stack is complete */
};
int body_stack(const struct encode_input *in, struct profile *p, size_t i, struct body_stack *st);	/* 0 or -ENOMEM */

/* Resource labels of a target: fn(ctx, name, value) for each, by OpenTelemetry's names. The configured ones win. */
void body_labels(const struct encode_input *in, const struct target *t, void (*fn)(void *ctx, const char *name, const char *value),
		 void *ctx);

#endif
