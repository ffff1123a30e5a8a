/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/num.h"
#include "tools/session.h"

#define EVERY_NS (500 * NUM_MS)
#define PAUSE	 100 /* the line takes at most one part in PAUSE of the time */

static double complete_share(const struct profile_account *a)
{
	return 100.0 * (double)a->stops[SF_STOP_COMPLETE] / (double)a->user_total;
}

void progress_begin(struct progress *p, const struct common_opts *o, const char *command,
		    uint64_t duration_ns)
{
	const struct collector_opts *c = &o->collect;
	char what[320] = "measuring blocked time", end[64] = "until Ctrl-C";

	p->sums = !o->quiet;
	p->on = p->sums && isatty(STDERR_FILENO);
	if (!p->on)
		return;
	if (!c->offcpu && c->hz)
		snprintf(what, sizeof(what), "sampling %s at %" PRIu64 " Hz", c->events->text,
			 c->hz);
	else if (!c->offcpu && c->period > 1)
		snprintf(what, sizeof(what), "sampling one in %" PRIu64 " %s", c->period,
			 c->events->text);
	else if (!c->offcpu)
		snprintf(what, sizeof(what), "sampling each %s", c->events->text);
	if (duration_ns)
		snprintf(end, sizeof(end), "for %g s, or until Ctrl-C", (double)duration_ns / 1e9);
	else if (command)
		snprintf(end, sizeof(end), "until %.30s ends", command);
	complain(0, "%s of %s %s", what,
		 common_opts_filter(o) ? "the selected processes"
		 : command	       ? "the command"
				       : "all processes",
		 end);
}

void progress_tick(struct progress *p, struct session *s)
{
	uint64_t now = session_now();
	struct run_stats st;

	if (!p->on || now < p->next_ns)
		return;
	p->shown = true;
	session_stats(s, s->profile, &st);
	fprintf(stderr, "\r%.1f s", st.duration_s);
	if (!collector_offcpu(s->collector) && st.account.user_total)
		fprintf(stderr, ", %" PRIu64 " samples, %" PRIu64 " lost, %.1f %% complete",
			st.samples, run_lost(&st), complete_share(&st.account));
	fputs("\033[K", stderr);
	/* Counting the complete stacks of a large profile takes long. */
	p->next_ns = session_now() + EVERY_NS + PAUSE * (session_now() - now);
}

void progress_clear(struct progress *p)
{
	if (p->shown)
		fputs("\r\033[K", stderr);
	p->shown = false;
}

void progress_wrote(const struct progress *p, const char *wrote, const struct run_stats *st,
		    const char *things)
{
	const struct profile_account *a = &st->account;
	uint8_t worst = SF_STOP_COMPLETE;
	char share[64] = "";

	if (!p->sums)
		return;
	for (uint8_t i = 0; i < SF_STOP_MAX; i++)
		if (!profile_at_root(i) && a->stops[i] &&
		    (worst == SF_STOP_COMPLETE || a->stops[i] > a->stops[worst]))
			worst = i;
	if (a->user_total)
		snprintf(share, sizeof(share), ", %.1f %% of the user stacks complete",
			 complete_share(a));
	complain(0, "%s: %" PRIu64 " %s in %.1f s, %" PRIu64 " lost%s", wrote, st->samples, things,
		 st->duration_s, run_lost(st), share);
	if (p->on && worst != SF_STOP_COMPLETE)
		complain(0, "most incomplete stacks: %s (%" PRIu64 "): %s",
			 profile_stop_name(worst), a->stops[worst], profile_stop_help(worst));
}
