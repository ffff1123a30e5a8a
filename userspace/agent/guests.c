/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/guests.h"

#include "agent/listen.h"
#include "base/clock.h"

void guests_init(struct guests *g, size_t most, uint64_t ask_ms)
{
	*g = (struct guests){ .lock = PTHREAD_MUTEX_INITIALIZER, .most = most, .ask_ms = ask_ms };
}

static void send_away(struct guest *guest)
{
	guest->sent_away = true;
	shutdown(guest->fd, SHUT_RDWR);
}

static bool stays(const struct guest *guest)
{
	return guest->here && !guest->sent_away;
}

/* How many of the same address are in the same state. */
static size_t like(const struct guests *g, const struct guest *one)
{
	size_t n = 0;

	for (size_t i = 0; i < 2 * g->most; i++)
		n += stays(&g->all[i]) && g->all[i].peer == one->peer &&
		     g->all[i].answered == one->answered;
	return n;
}

/* Whether a is sent away rather than b. */
static bool rather(const struct guests *g, const struct guest *a, const struct guest *b)
{
	size_t n = like(g, a), m = like(g, b);

	if (a->answered != b->answered)
		return b->answered;
	return n == m ? a->until < b->until : n > m;
}

static void make_room(struct guests *g)
{
	struct guest *worst = NULL;
	size_t n = 0;

	for (size_t i = 0; i < 2 * g->most; i++) {
		struct guest *one = &g->all[i];

		if (!stays(one))
			continue;
		n++;
		if (!worst || rather(g, one, worst))
			worst = one;
	}
	if (n >= g->most)
		send_away(worst);
}

struct guest *guests_come(struct guests *g, int fd, const struct sockaddr *from)
{
	struct guest *free = NULL;

	pthread_mutex_lock(&g->lock);
	make_room(g);
	for (size_t i = 0; i < 2 * g->most && !free; i++)
		free = g->all[i].here ? NULL : &g->all[i];
	if (free)
		*free = (struct guest){
			.here = true,
			.fd = fd,
			.peer = listen_peer(from),
			.until = clock_ns(CLOCK_MONOTONIC) + g->ask_ms * NUM_MS,
		};
	pthread_mutex_unlock(&g->lock);
	return free;
}

static void set(struct guests *g, struct guest *guest, bool answered, uint64_t ms)
{
	if (!guest)
		return;
	pthread_mutex_lock(&g->lock);
	guest->answered = answered;
	guest->until = clock_ns(CLOCK_MONOTONIC) + ms * NUM_MS;
	pthread_mutex_unlock(&g->lock);
}

void guests_answer(struct guests *g, struct guest *guest)
{
	set(g, guest, true, GUEST_ANSWER_MS);
}

void guests_answered(struct guests *g, struct guest *guest)
{
	set(g, guest, false, g->ask_ms);
}

void guests_go(struct guests *g, struct guest *guest)
{
	if (!guest)
		return;
	pthread_mutex_lock(&g->lock);
	guest->here = false;
	pthread_mutex_unlock(&g->lock);
}

uint64_t guests_look(struct guests *g)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC), next = UINT64_MAX;

	pthread_mutex_lock(&g->lock);
	for (size_t i = 0; i < 2 * g->most; i++) {
		struct guest *one = &g->all[i];

		if (stays(one) && one->until <= now)
			send_away(one);
		else if (stays(one) && one->until < next)
			next = one->until;
	}
	pthread_mutex_unlock(&g->lock);
	return next;
}
