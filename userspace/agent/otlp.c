/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * OTLP profiles, opentelemetry-proto 1.10 and 1.11 ("v1development", alpha):
 * ExportProfilesServiceRequest. Each target has a ResourceProfiles with one Profile; each request
 * has one dictionary. A window is split into as many requests as its size needs.
 *
 * Receivers require more than the specification: element 0 of every table is present and empty
 * (also of link_table); resource attributes use plain key and string_value; resource, scope and
 * period_type are present; each sample has one value. Blocked time has an empty period_type, by
 * which receivers distinguish it from CPU time.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/identity.h"
#include "agent/otlp_dict.h"
#include "agent/receiver.h"
#include "base/bytes.h"
#include "base/text.h"
#include "base/vec.h"

/* Field numbers, by message. */
enum {
	REQUEST_RESOURCE_PROFILES = 1,
	REQUEST_DICTIONARY = 2,
	RESOURCE_PROFILES_RESOURCE = 1,
	RESOURCE_PROFILES_SCOPE_PROFILES = 2,
	RESOURCE_PROFILES_SCHEMA = 3,
	SCOPE_PROFILES_SCOPE = 1,
	SCOPE_PROFILES_PROFILES = 2,
	SCOPE_PROFILES_SCHEMA = 3,
	RESOURCE_ATTRIBUTES = 1,
	SCOPE_NAME = 1,
	SCOPE_VERSION = 2,
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLES = 2,
	PROFILE_TIME = 3,
	PROFILE_DURATION = 4,
	PROFILE_PERIOD_TYPE = 5,
	PROFILE_PERIOD = 6,
	PROFILE_ID = 7,
	VALUE_TYPE_TYPE = 1,
	VALUE_TYPE_UNIT = 2,
	SAMPLE_STACK = 1,
	SAMPLE_ATTRIBUTES = 2,
	SAMPLE_LINK = 3,
	SAMPLE_VALUES = 4,
	KEY_VALUE_KEY = 1,
	KEY_VALUE_VALUE = 2,
};

/* The semantic conventions that the names of attributes follow. */
static const char schema_url[] = "https://opentelemetry.io/schemas/1.37.0";

struct process {
	uint32_t attributes[3]; /* a sample's: pid, and name and path of its executable */
	uint32_t n;
};

struct otlp {
	const struct encode_input *in;
	body_fn fn;
	void *ctx;
	struct otlp_dict dict;	 /* the request's dictionary */
	struct pb resources;	 /* finished ResourceProfiles */
	struct idmap process_of; /* pid -> index into processes, in this request */
	struct process *processes;
	size_t processes_cap;
	/*
	 * Samples of the current Profile: (stack << 32 | attribute of comm, link << 32 | index of
	 * process + 1)
	 */
	struct idmap samples;
	uint64_t *values;
	size_t values_cap;
	uint64_t request_samples;
	uint8_t id[16];
	uint32_t nprofiles;
	int err;
};

/* ---- Profiles ---- */

static void put_type(struct pb *pb, uint32_t field, uint32_t type, uint32_t unit)
{
	size_t at = pb_begin(pb, field);

	pb_u64(pb, VALUE_TYPE_TYPE, type);
	pb_u64(pb, VALUE_TYPE_UNIT, unit);
	pb_end(pb, at);
}

static void put_label(void *ctx, const char *name, const char *value)
{
	struct pb *pb = ctx;
	size_t at = pb_begin(pb, RESOURCE_ATTRIBUTES);

	pb_str(pb, KEY_VALUE_KEY, name);
	otlp_any(pb, KEY_VALUE_VALUE, value, 0);
	pb_end(pb, at);
}

static void put_samples(struct otlp *o)
{
	struct pb *pb = &o->resources;

	for (size_t i = 0; i < o->samples.n; i++) {
		uint64_t attributes[4] = { o->samples.keys[i].a & UINT32_MAX };
		size_t n = 1, at = pb_begin(pb, PROFILE_SAMPLES);

		uint32_t process = (uint32_t)o->samples.keys[i].b;

		if (process) {
			const struct process *p = &o->processes[process - 1];

			while (n <= p->n) {
				attributes[n] = p->attributes[n - 1];
				n++;
			}
		}
		pb_u64(pb, SAMPLE_STACK, o->samples.keys[i].a >> 32);
		pb_packed(pb, SAMPLE_ATTRIBUTES, attributes, n);
		pb_u64(pb, SAMPLE_LINK, o->samples.keys[i].b >> 32);
		pb_packed(pb, SAMPLE_VALUES, &o->values[i], 1);
		pb_end(pb, at);
	}
}

/* Writes the period and its type. The period of -c counts events: of the clocks, nanoseconds. */
static void put_types(struct otlp *o, enum window_kind kind)
{
	const struct out_meta *meta = o->in->meta;
	bool clock = out_is_clock(meta) || (o->in->period && strstr(meta->event, "clock"));
	struct pb *pb = &o->resources;
	uint64_t period = o->in->period;

	if (kind == WINDOW_OFF_CPU)
		put_type(pb, PROFILE_PERIOD_TYPE, 0, 0);
	else if (clock)
		put_type(pb, PROFILE_PERIOD_TYPE, otlp_string(&o->dict, "cpu"),
			 otlp_string(&o->dict, "nanoseconds"));
	else
		put_type(pb, PROFILE_PERIOD_TYPE, otlp_string(&o->dict, meta->event),
			 otlp_string(&o->dict, "count"));
	if (!period && clock)
		period = (uint64_t)(1e9 / o->in->window->hz + 0.5);
	pb_u64(pb, PROFILE_PERIOD, kind == WINDOW_CPU ? period : 0);
}

static void put_profile(struct otlp *o, enum window_kind kind)
{
	const struct window *w = o->in->window;
	struct pb *pb = &o->resources;
	uint8_t id[16];
	size_t at = pb_begin(pb, SCOPE_PROFILES_PROFILES);

	if (kind == WINDOW_OFF_CPU)
		put_type(pb, PROFILE_SAMPLE_TYPE, otlp_string(&o->dict, "off_cpu"),
			 otlp_string(&o->dict, "nanoseconds"));
	else
		put_type(pb, PROFILE_SAMPLE_TYPE, otlp_string(&o->dict, "samples"),
			 otlp_string(&o->dict, "count"));
	put_samples(o);
	pb_fixed64(pb, PROFILE_TIME, w->start_unix_ns);
	pb_u64(pb, PROFILE_DURATION, w->duration_ns);
	put_types(o, kind);
	memcpy(id, o->id, sizeof(id));
	id[14] ^= (uint8_t)(o->nprofiles >> 8);
	id[15] ^= (uint8_t)o->nprofiles++;
	pb_bytes(pb, PROFILE_ID, id, sizeof(id));
	pb_end(pb, at);
}

static void put_identity(const struct otlp *o, struct pb *pb)
{
	const struct identity *id = o->in->identity;
	const struct {
		const char *name, *value;
	} list[] = {
		{ "host.id", id ? id->host_id : "" },
		{ "host.arch", id ? id->arch : "" },
		{ "os.type", "linux" },
		{ "os.name", id ? id->os_name : "" },
		{ "os.version", id ? id->os_version : "" },
		{ "os.description", id ? id->os_description : "" },
	};

	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++)
		if (*list[i].value && !body_configured(o->in->cfg, list[i].name))
			put_label(pb, list[i].name, list[i].value);
}

static void end_group(struct otlp *o, const struct window_group *g)
{
	const struct target *t = targets_at(o->in->window->targets, g->target);
	struct pb *pb = &o->resources;
	size_t rp, sp, at;

	if (!o->samples.n)
		return;
	rp = pb_begin(pb, REQUEST_RESOURCE_PROFILES);
	at = pb_begin(pb, RESOURCE_PROFILES_RESOURCE);
	put_identity(o, pb);
	body_labels(o->in, t, put_label, pb);
	pb_end(pb, at);
	sp = pb_begin(pb, RESOURCE_PROFILES_SCOPE_PROFILES);
	at = pb_begin(pb, SCOPE_PROFILES_SCOPE);
	pb_str(pb, SCOPE_NAME, "sfbpf");
	pb_str(pb, SCOPE_VERSION, SFBPF_VERSION);
	pb_end(pb, at);
	put_profile(o, g->kind);
	pb_str(pb, SCOPE_PROFILES_SCHEMA, schema_url);
	pb_end(pb, sp);
	pb_str(pb, RESOURCE_PROFILES_SCHEMA, schema_url);
	pb_end(pb, rp);
	idmap_free(&o->samples);
	o->samples = (struct idmap){ 0 };
}

/*
 * The executable of a process that still runs. In another PID namespace, the pids of samples are
 * other processes.
 */
static void add_executable(struct otlp *o, struct process *p, uint32_t pid)
{
	char link[64], target[4096], path[4096], *name;
	ssize_t len;

	snprintf(link, sizeof(link), "/proc/%u/exe", pid);
	len = o->in->foreign_pids ? 0 : readlink(link, target, sizeof(target) - 1);
	if (len <= 0)
		return;
	target[len] = 0;
	target[text_path_len(target)] = 0;
	otlp_path(&o->dict, target, path, sizeof(path));
	name = strrchr(path, '/');
	p->attributes[p->n++] = otlp_attribute(&o->dict, "process.executable.name",
					       name ? name + 1 : path, 0);
	p->attributes[p->n++] = otlp_attribute(&o->dict, "process.executable.path", path, 0);
}

/* The index of the process plus 1; 0: it is not known. */
static uint32_t process_id(struct otlp *o, uint32_t pid)
{
	size_t before = o->process_of.n;
	struct process *p;
	uint32_t id;

	if (!pid)
		return 0;
	if (idmap_get(&o->process_of, pid, 0, &id) ||
	    vec_reserve(&o->processes, &o->processes_cap, o->process_of.n, sizeof(*p))) {
		o->err = -ENOMEM;
		return 0;
	}
	if (id == before) {
		p = &o->processes[id];
		*p = (struct process){ .n = 1 };
		p->attributes[0] = otlp_attribute(&o->dict, "process.pid", NULL, pid);
		add_executable(o, p, pid);
	}
	return id + 1;
}

static void add_sample(struct otlp *o, enum window_kind kind, const struct body_stack *st)
{
	char comm[64];
	uint32_t stack, comm_attr, id;
	uint64_t origin;
	size_t before = o->samples.n;

	text_clean(comm, sizeof(comm), *st->s.comm ? st->s.comm : "[unknown]",
		   *st->s.comm ? strlen(st->s.comm) : 9, 0);
	stack = otlp_stack(&o->dict, st);
	comm_attr = otlp_attribute(&o->dict, "thread.name", comm, 0);
	origin = process_id(o, st->s.pid);
	if (st->s.link)
		origin |= (uint64_t)otlp_link(&o->dict, st->s.link) << 32;
	if (idmap_get(&o->samples, (uint64_t)stack << 32 | comm_attr, origin, &id) ||
	    vec_reserve(&o->values, &o->values_cap, o->samples.n, sizeof(*o->values))) {
		o->err = -ENOMEM;
		return;
	}
	if (id == before)
		o->values[id] = 0;
	o->values[id] += window_value(kind, &st->s);
	o->request_samples += st->s.count;
}

/* ---- Requests ---- */

static void begin_request(struct otlp *o)
{
	otlp_dict_reset(&o->dict);
	o->resources.len = 0;
	idmap_reset(&o->process_of);
	o->request_samples = o->nprofiles = 0;
	body_new_id(o->id);
}

static size_t estimate(const struct otlp *o)
{
	return o->resources.len + otlp_dict_size(&o->dict) + 24 * o->samples.n;
}

static int end_request(struct otlp *o)
{
	struct pb *pb = &o->resources;
	uint8_t *data;
	size_t at;

	if (!o->err)
		o->err = o->dict.err;
	if (o->err || !o->nprofiles)
		return o->err;
	at = pb_begin(pb, REQUEST_DICTIONARY);
	otlp_dict_put(&o->dict, pb);
	pb_end(pb, at);
	if (pb->err || o->dict.err)
		return -ENOMEM;
	data = pb->buf;
	at = pb->len;
	*pb = (struct pb){ 0 };
	return body_emit(o->in, BODY_OTLP, o->in->cfg->gzip, data, at, o->request_samples, o->id,
			 o->fn, o->ctx);
}

static int encode(struct otlp *o)
{
	const struct window *w = o->in->window;
	struct body_stack st = { 0 };
	int rc = 0;

	begin_request(o);
	for (size_t g = 0; g < w->ngroups && !rc && !o->err; g++) {
		const struct window_group *group = &w->groups[g];

		for (size_t i = 0; i < profile_count(group->profile) && !rc && !o->err; i++) {
			if (o->dict.err || body_stack(o->in, group->profile, i, &st)) {
				o->err = -ENOMEM;
				break;
			}
			add_sample(o, group->kind, &st);
			if (estimate(o) < o->in->cfg->request_bytes)
				continue;
			end_group(o, group);
			rc = end_request(o);
			begin_request(o);
		}
		end_group(o, group);
	}
	free(st.frames.list);
	return rc ? rc : end_request(o);
}

static int encode_window(const struct encode_input *in, body_fn fn, void *ctx)
{
	struct otlp o = { .in = in, .fn = fn, .ctx = ctx };
	int rc;

	otlp_dict_begin(&o.dict, in);
	rc = o.dict.err ? o.dict.err : encode(&o);
	otlp_dict_free(&o.dict);
	pb_free(&o.resources);
	idmap_free(&o.process_of);
	idmap_free(&o.samples);
	free(o.processes);
	free(o.values);
	return rc;
}

/* ExportProfilesServiceResponse. */
static uint64_t otlp_rejected(const void *data, size_t len, char *why, size_t cap)
{
	struct bytes b = bytes_of(data, len, false);
	uint64_t rejected = 0;

	while (bytes_left(&b)) {
		uint64_t tag = bytes_uleb(&b);

		if (tag == (1 << 3 | 2)) { /* partial_success: skip its length, its fields follow */
			bytes_uleb(&b);
		} else if (tag == (1 << 3 | 0)) { /* rejected_profiles */
			rejected = bytes_uleb(&b);
		} else if (tag == (2 << 3 | 2)) { /* error_message */
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

const struct receiver receiver_otlphttp = {
	.endpoint = "http://127.0.0.1:4318",
	.bodies = BODY_BIT(BODY_OTLP),
	.processes = true,
	.encode = encode_window,
	.path_in_endpoint = true,
	.content_type = "application/x-protobuf",
	.path = "/v1development/profiles",
	.rejected = otlp_rejected,
};

const struct receiver receiver_otlpgrpc = {
	.endpoint = "http://127.0.0.1:4317",
	.bodies = BODY_BIT(BODY_OTLP),
	.processes = true,
	.encode = encode_window,
	.grpc = true,
	.path = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export",
	.rejected = otlp_rejected,
};
