/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The account of a run as one JSON object on one line. Keys are never changed; new ones may be
 * added.
 */
#include "base/json.h"
#include "languages/lang.h"
#include "out/out.h"

static void put_account(struct json *j, const struct profile_account *a)
{
	json_u64(j, "samples_without_user", a->samples_without_user);
	json_object(j, "user_stacks");
	json_u64(j, "total", a->user_total);
	json_u64(j, "complete", a->stops[SF_STOP_COMPLETE]);
	json_u64(j, "bridged", a->stops[SF_STOP_BRIDGED]);
	json_object(j, "incomplete");
	for (unsigned int i = 0; i < SF_STOP_MAX; i++)
		if (!profile_at_root((uint8_t)i))
			json_u64(j, profile_stop_name((uint8_t)i), a->stops[i]);
	json_object_end(j);
	json_object_end(j);
	json_object(j, "frames");
	json_u64(j, "total", a->frames);
	json_u64(j, "sframe", a->sframe);
	json_u64(j, "eh_frame", a->eh_frame);
	json_u64(j, "code", a->code);
	json_u64(j, "fp", a->fp);
	json_u64(j, "jit", a->jit);
	for (uint32_t i = SF_LANG_NONE + 1; i < SF_LANG_MAX; i++)
		json_u64(j, lang_name(i), a->languages[i].frames);
	json_object_end(j);
}

static void put_languages(struct json *j, const struct profile_account *a)
{
	json_object(j, "languages");
	for (uint32_t i = SF_LANG_NONE + 1; i < SF_LANG_MAX; i++) {
		const struct profile_language *l = &a->languages[i];

		json_object(j, lang_name(i));
		json_u64(j, "stacks", l->stacks);
		json_u64(j, "complete", l->stops[SF_STOP_COMPLETE]);
		json_u64(j, "frames", l->frames);
		json_u64(j, "unnamed", l->unnamed);
		json_object(j, "incomplete");
		for (unsigned int k = 0; k < SF_STOP_MAX; k++)
			if (k != SF_STOP_COMPLETE && l->stops[k])
				json_u64(j, profile_stop_name((uint8_t)k), l->stops[k]);
		json_object_end(j);
		json_object_end(j);
	}
	json_object_end(j);
}

static void put_offcpu(struct json *j, const struct run_stats *st)
{
	static const char letters[] = SF_OFF_LETTERS;

	json_object(j, "off_cpu");
	json_object(j, "ms");
	for (unsigned int i = 0; i < SF_OFF_STATES; i++)
		json_double(j, (char[2]){ letters[i] }, (double)st->off_ns[i] / 1e6, 3);
	json_object_end(j);
	json_double(j, "sampled_ms", (double)st->off_sampled_ns / 1e6, 3);
	json_double(j, "lost_ms", (double)st->off_lost_ns / 1e6, 3);
	json_u64(j, "generations", st->off_generations);
	json_object_end(j);
}

int out_stats(const struct run_stats *st, FILE *f)
{
	struct json j = json_on(f);

	json_object(&j, NULL);
	json_u64(&j, "schema", 1);
	json_double(&j, "duration_s", st->duration_s, 3);
	json_u64(&j, "samples", st->samples);
	put_account(&j, &st->account);
	put_languages(&j, &st->account);
	json_object(&j, "lost");
	for (unsigned int i = 0; i < SF_LOST_MAX; i++)
		json_u64(&j, profile_lost_name(i), st->lost[i]);
	json_object_end(&j);
	if (st->offcpu)
		put_offcpu(&j, st);
	json_object(&j, "tables");
	json_u64(&j, "modules", st->tables.modules);
	json_u64(&j, "rows", st->tables.rows);
	json_u64(&j, "rules", st->tables.rules);
	json_u64(&j, "bytes", st->tables.bytes);
	json_double(&j, "build_ms", st->tables.build_ms, 3);
	json_u64(&j, "evicted", st->tables.evicted);
	json_u64(&j, "recycled", st->tables.recycled);
	json_u64(&j, "full", st->tables.full);
	json_object_end(&j);
	json_object(&j, "needs");
	json_u64(&j, "sent", st->needs);
	json_u64(&j, "dropped", st->needs_dropped);
	json_u64(&j, "refused", st->needs_refused);
	json_object_end(&j);
	json_object(&j, "parsers");
	json_u64(&j, "died", st->parsers.died);
	json_u64(&j, "late", st->parsers.late);
	json_u64(&j, "failed", st->parsers.failed);
	json_u64(&j, "deferred", st->parsers.deferred);
	json_u64(&j, "cut", st->parsers.cut);
	json_u64(&j, "mangled", st->parsers.mangled);
	json_u64(&j, "changed", st->parsers.changed);
	json_object_end(&j);
	json_object(&j, "bpf");
	for (size_t i = 0; i < st->nprograms; i++) {
		json_object(&j, st->programs[i].name);
		json_u64(&j, "run_cnt", st->programs[i].run_cnt);
		json_u64(&j, "run_ns", st->programs[i].run_ns);
		json_u64(&j, "verified_insns", st->programs[i].verified_insns);
		json_u64(&j, "verifier_states", st->programs[i].verifier_states);
		json_u64(&j, "code_bytes", st->programs[i].code_bytes);
		json_object_end(&j);
	}
	json_object_end(&j);
	json_object(&j, "self");
	json_double(&j, "cpu_ms", st->self.cpu_ms, 3);
	json_u64(&j, "rss_peak_kb", st->self.rss_peak_kb);
	json_object_end(&j);
	json_object_end(&j);
	json_newline(&j);
	return out_finish(f);
}
