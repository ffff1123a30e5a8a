/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is in use at the same time and does not fit takes turns. A file that was refused for TURN_WAIT_MS may take the place of the least
 * used ones, one file at a time, in the order of base/share.h. Each keeps its place for TURN_MS at least. What a turn
 * costs is a load, so that a pause follows which is PAUSE_FACTOR times as long.
 */
#include "base/share.h"
#include "kern/tables_internal.h"

#define TURN_MS 3000u
#define TURN_WAIT_MS 2000u	/* what is not in use leaves in that time without a turn */
#define TURN_LEAST_MS 250u
#define PAUSE_FACTOR 10u
#define WAITS_MS 2500u		/* seen or refused so recently: it still waits */
#define NEXT_MS (2 * TURN_MS)	/* in that time everybody's turn has been over: it needs more than there is to be had */

static uint64_t *owners_turn(struct tables *t, uint32_t at)
{
	uint32_t owner = t->modules[at].owner;

	return &t->turns.owners[owner ? 1 + owner % (TURN_OWNERS - 1) : 0];
}

static struct share_waiter waiter(struct tables *t, uint32_t at)
{
	return (struct share_waiter){ t->modules[at].id, *owners_turn(t, at), t->places[at].waits_ms };
}

static bool waits(const struct place *p, uint64_t now)
{
	return p->waits_ms && now - p->waits_ms >= TURN_WAIT_MS && now - p->last_ms < WAITS_MS;
}

/* To the end of the line. */
static void had_turn(struct tables *t, uint32_t id, uint64_t now)
{
	uint32_t at = SF_MODULE_PLACE(id);

	*owners_turn(t, at) = now;
	if (t->places[at].waits_ms)
		t->places[at].waits_ms = now;
}

static uint32_t who_is_next(struct tables *t, uint64_t now)
{
	struct share_waiter best = { 0 };

	for (uint32_t at = 1; at < SF_MAX_MODULES; at++) {
		struct share_waiter w;

		if (!waits(&t->places[at], now))
			continue;
		w = waiter(t, at);
		if (!best.id || share_before(&w, &best))
			best = w;
	}
	return best.id;
}

bool tables_turn(struct tables *t, uint64_t now)
{
	struct turns *tu = &t->turns;
	uint32_t next;

	/* It may have gone while it was converted. */
	if (tu->having && tables_wanted(t, tu->having))
		return tu->having == t->loading;
	if (now < tu->pause_ms || !waits(&t->places[SF_MODULE_PLACE(t->loading)], now))
		return false;
	next = who_is_next(t, now);
	if (next != tu->next) {
		tu->next = next;
		tu->next_ms = now;
	} else if (now - tu->next_ms > NEXT_MS) {
		had_turn(t, next, now);
		tu->next = 0;
		return false;
	}
	return next == t->loading;
}

void tables_turn_begin(struct tables *t, uint64_t now)
{
	if (t->turns.having == t->loading)
		return;
	t->turns.having = t->loading;
	t->turns.having_ms = now;
	t->turns.next = 0;
	t->turns.count++;
}

void tables_turn_end(struct tables *t, uint32_t module)
{
	struct turns *tu = &t->turns;
	uint64_t now = tables_now_ms(), pause;

	if (tu->having != module)
		return;
	pause = (now - tu->having_ms) * PAUSE_FACTOR;
	tu->pause_ms = now + (pause > TURN_LEAST_MS ? pause : TURN_LEAST_MS);
	had_turn(t, tu->having, now);
	tu->having = 0;
}

void tables_wait(struct tables *t, uint32_t module)
{
	struct place *p = &t->places[SF_MODULE_PLACE(module)];

	if (!p->waits_ms)
		p->waits_ms = tables_now_ms();
}

bool tables_fresh(const struct place *p, uint64_t now)
{
	return now - p->since_ms < TURN_MS;
}
