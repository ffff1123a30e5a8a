/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/receiver.h"

static const struct receiver *const all[AGENT_PROTOCOLS] = {
#define RECEIVER(id, name) [AGENT_##id] = &receiver_##name,
#include "agent/receivers.def"
#undef RECEIVER
};

const struct receiver *receiver_at(enum agent_protocol protocol)
{
	return all[protocol];
}

void receiver_dropped(const struct body *b)
{
	for (int i = 0; i < AGENT_PROTOCOLS; i++)
		if (all[i]->dropped && (all[i]->bodies & BODY_BIT(b->kind)))
			all[i]->dropped(b);
}
