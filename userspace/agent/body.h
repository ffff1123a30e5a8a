/* SPDX-License-Identifier: BSD-2-Clause */
/* One request body: a window, or a part of it, as it is sent. */
#ifndef SFBPF_AGENT_BODY_H
#define SFBPF_AGENT_BODY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/config.h"
#include "agent/window.h"
#include "files/module.h"
#include "out/out.h"
#include "sym/symbolizer.h"

/*
 * The values are stored in the spool: append before BODY_KINDS. Bodies that a receiver need not
 * tell apart can have one value.
 */
enum body_kind {
	BODY_OTLP = 1,
	BODY_PYROSCOPE,
	BODY_PARCA,
	BODY_CH_STACKS,
	BODY_CH_FILES,
	BODY_CH_SAMPLES,
	BODY_FILE,
	BODY_FILE_OFF_CPU,
	BODY_KINDS
};

struct body {
	uint32_t kind; /* enum body_kind */
	bool gzip;     /* data is compressed */
	/* random, kept across retries, so that a receiver can recognize a duplicate */
	uint8_t id[16];
	uint64_t time_ns; /* start of the window, Unix */
	/* Samples, or blocks that ended, in this body. Each is in exactly one body. */
	uint64_t samples;
	uint8_t *data; /* malloc'ed */
	size_t len;
};

struct encode_input {
	const struct agent_config *cfg;
	const char *host;
	struct window *window; /* closed */
	struct symbolizer *symbols;
	const struct modules *modules;
	const struct out_meta *meta;
	const struct run_stats *stats;
	const struct identity *identity; /* NULL: not known */
	uint64_t period;		 /* events per sample; 0: sampled at a frequency */
	bool foreign_pids;		 /* samples have pids of another PID namespace */
};

/* Takes over b->data. 0, or -errno, which stops the encoding. */
typedef int (*body_fn)(void *ctx, struct body *b);

/* Makes a body of data, which it frees or passes on. gzip: compress it. id NULL: a new one. */
int body_emit(const struct encode_input *in, enum body_kind kind, bool gzip, uint8_t *data,
	      size_t len, uint64_t samples, const uint8_t *id, body_fn fn, void *ctx);
void body_new_id(uint8_t id[16]);
void body_id_text(const uint8_t id[16], char ret[37]); /* writes the id as a UUID */
/* Escapes s for a URL or a file name. Text that does not fit is cut off. */
size_t body_escape(char *dst, size_t cap, const char *s);

bool body_has(const struct encode_input *in, enum window_kind kind);
/* The report that out_format.write needs for a profile of that kind. */
struct out_report body_report(const struct encode_input *in, enum window_kind kind,
			      struct profile *p, struct run_stats *stats, struct out_meta *meta);

/* A stack as all bodies show it, leaf first: kernel part, user part, note if incomplete. */
struct body_stack {
	struct profile_stack s;
	struct profile_frames frames; /* the caller frees .list */
	/* Root frame "[incomplete:...]"; "": the stack is complete */
	char note[48];
};
/* 0 or -ENOMEM */
int body_stack(const struct encode_input *in, struct profile *p, size_t i, struct body_stack *st);

/* Whether [labels] has that name. */
bool body_configured(const struct agent_config *cfg, const char *name);
/*
 * Calls fn(ctx, name, value) for each resource label of a target, named as in OpenTelemetry.
 * Configured labels take precedence.
 */
void body_labels(const struct encode_input *in, const struct target *t,
		 void (*fn)(void *ctx, const char *name, const char *value), void *ctx);

#endif
