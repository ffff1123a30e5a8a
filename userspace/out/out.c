/* SPDX-License-Identifier: BSD-2-Clause */
#include "out/out.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "prof/stackset.h"
#include "prof/wait_notes.h"

bool out_is_clock(const struct out_meta *meta)
{
	return meta->hz > 0 && meta->event &&
	       (strstr(meta->event, "clock") || strstr(meta->event, "cycles"));
}

uint64_t out_value(const struct out_report *r, const struct profile_stack *s)
{
	return r->opts.usec || r->opts.unit ? s->weight : s->count;
}

uint64_t out_shown(const struct out_report *r, uint64_t sum)
{
	return r->opts.usec ? sum / 1000 : sum;
}

bool out_incomplete(const struct out_report *r, const struct profile_stack *s)
{
	return !r->opts.kernel_only && (s->flags & SF_SAMPLE_USER) && !profile_at_root(s->stop);
}

enum out_by out_by_named(const char *name)
{
	return !strcmp(name, "process")	    ? OUT_BY_PROCESS
	       : !strcmp(name, "thread")    ? OUT_BY_THREAD
	       : !strcmp(name, "container") ? OUT_BY_CONTAINER
					    : OUT_BY_DEFAULT;
}

int out_wait_note(const struct out_report *r, size_t i)
{
	const uint32_t *ids = profile_symbols(r->profile, i, r->symbols);
	struct profile_stack s;

	profile_stack(r->profile, i, &s);
	return ids ? (int)wait_note_of(&s, ids, r->symbols) : -ENOMEM;
}

void out_thread_text(char ret[OUT_THREAD_TEXT], const char *comm, uint32_t tid)
{
	char clean[OUT_THREAD_TEXT - 16];

	text_clean(clean, sizeof(clean), comm, strlen(comm), 0);
	snprintf(ret, OUT_THREAD_TEXT, tid ? "%s (%u)" : "%s", *clean ? clean : "[unknown]", tid);
}

const char *out_group_frame(const struct out_report *r, uint32_t group)
{
	static char text[1024];

	if (!r->opts.groups)
		return NULL;
	snprintf(text, sizeof(text), "[%s]",
		 group < r->opts.ngroups ? r->opts.groups[group] : "unknown");
	return text;
}

bool out_state_at_root(const struct out_report *r)
{
	return r->opts.wall == OUT_WALL_ROOT;
}

const char *out_state_frame(const struct out_report *r, size_t i)
{
	struct profile_stack s;
	int note;

	profile_stack(r->profile, i, &s);
	if (r->timeline) /* its marks say it */
		return NULL;
	if (!r->opts.wall && s.state == SF_OFF_R)
		return STACK_RUNNABLE;
	if (!r->opts.wall && !r->opts.mark_idle)
		return NULL;
	note = out_wait_note(r, i);
	if (note < 0)
		return NULL;
	return r->opts.wall || wait_note_is_idle((enum wait_note)note)
		       ? wait_note_text((enum wait_note)note)
		       : NULL;
}

int out_name_threads(const struct out_report *r)
{
	struct profile *const profiles[] = { r->profile, r->wakers };
	struct thread_names names = { 0 };
	int err = 0;

	for (size_t i = 0; i < 2 && !err; i++)
		if (profiles[i])
			err = profile_thread_names(profiles[i], &names);
	for (size_t i = 0; i < 2 && !err; i++)
		if (profiles[i])
			profile_common_names(profiles[i], &names);
	thread_names_free(&names);
	return err;
}

int out_finish(FILE *f)
{
	/*
	 * stdio does not store error numbers. Writers stop at the first failure, so errno is still
	 * from that write.
	 */
	if (fflush(f) || ferror(f))
		return errno ? -errno : -EIO;
	return 0;
}
