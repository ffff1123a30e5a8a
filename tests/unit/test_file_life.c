/* SPDX-License-Identifier: BSD-2-Clause */
#include "files/module.h"

#include "test.h"

static bool walk(struct module *m, const enum file_event *events, size_t n)
{
	uint32_t retry_ms;

	for (size_t i = 0; i < n; i++)
		if (!module_advance(m, events[i], &retry_ms))
			return false;
	return true;
}

#define WALK(m, ...)                                      \
	walk(m, (const enum file_event[]){ __VA_ARGS__ }, \
	     sizeof((const enum file_event[]){ __VA_ARGS__ }) / sizeof(enum file_event))

TEST(file_life_from_first_sample_to_eviction_and_back)
{
	struct module m = { .fd = -1 };

	EXPECT(WALK(&m, EVENT_ASKED, EVENT_OPENED, EVENT_SENT));
	EXPECT(m.state == FILE_CONVERTING && m.known == KNOWN_ID);
	EXPECT(WALK(&m, EVENT_PUT_BACK, EVENT_SENT, EVENT_PUBLISHED));
	EXPECT(m.state == FILE_PUBLISHED && m.known == KNOWN_TABLES);
	EXPECT(WALK(&m, EVENT_EVICTED, EVENT_STILL_OPEN, EVENT_NO_ROOM));
	EXPECT(m.state == FILE_FULL && m.known == KNOWN_TABLES); /* it only grows */
	EXPECT(WALK(&m, EVENT_STILL_OPEN, EVENT_SENT, EVENT_PUBLISHED, EVENT_EVICTED,
		    EVENT_ID_REUSED));
	EXPECT(m.state == FILE_RETIRED);
}

TEST(file_life_of_what_cannot_be_opened)
{
	struct module m = { .fd = -1 };
	uint32_t gone = 0, silent = 0, blocked = 0;

	EXPECT(WALK(&m, EVENT_ASKED) && module_advance(&m, EVENT_GONE, &gone));
	EXPECT(m.state == FILE_UNREACHABLE && m.known == KNOWN_PATH);
	EXPECT(WALK(&m, EVENT_ASKED) && module_advance(&m, EVENT_NO_ANSWER, &silent));
	EXPECT(module_advance(&m, EVENT_BLOCKED, &blocked));
	EXPECT(0 < gone && gone < blocked && blocked < silent);
	EXPECT(WALK(&m, EVENT_ASKED, EVENT_GIVEN_UP));
	EXPECT(m.state == FILE_FAILED && file_life_bpf(FILE_FAILED) == SF_MOD_NO_TABLE);
}

/* An answer that comes late, or twice, changes nothing. */
TEST(file_life_refuses_what_does_not_apply)
{
	static const enum file_state final[] = { FILE_NO_TABLES, FILE_NOT_ELF, FILE_FAILED };
	struct module m = { .fd = -1 };
	uint32_t retry_ms;

	EXPECT(!WALK(&m, EVENT_OPENED) && !WALK(&m, EVENT_PUBLISHED) && m.state == FILE_NEW);
	EXPECT(WALK(&m, EVENT_ASKED) && !WALK(&m, EVENT_ASKED) && !WALK(&m, EVENT_SENT) &&
	       m.state == FILE_OPENING);
	EXPECT(WALK(&m, EVENT_OPENED) && !WALK(&m, EVENT_OPENED) && !WALK(&m, EVENT_EVICTED) &&
	       m.state == FILE_OPEN);
	for (size_t i = 0; i < sizeof(final) / sizeof(final[0]); i++)
		for (int event = 0; event < FILE_EVENTS; event++) {
			m.state = final[i];
			EXPECT_EQ(module_advance(&m, event, &retry_ms), event == EVENT_ID_REUSED);
		}
	for (int event = 0; event < FILE_EVENTS; event++)
		EXPECT(!module_advance(&m, event, &retry_ms) || m.state != FILE_RETIRED);
}

/*
 * Every state can be reached; where BPF may ask again, the file is asked for or reopened; an event
 * that makes BPF wait leads there.
 */
TEST(file_life_is_complete)
{
	bool reached[FILE_STATES] = { [FILE_NEW] = true };
	enum file_state to;
	uint32_t retry_ms;

	for (int round = 0; round < FILE_STATES; round++)
		for (int from = 0; from < FILE_STATES; from++)
			for (int event = 0; reached[from] && event < FILE_EVENTS; event++)
				if (file_life_next(from, event, &to, &retry_ms)) {
					enum sf_module_state bpf = file_life_bpf(to);

					reached[to] = true;
					EXPECT(!retry_ms || bpf == SF_MOD_RETRY ||
					       bpf == SF_MOD_FULL);
				}
	for (int state = 0; state < FILE_STATES; state++) {
		enum sf_module_state bpf = file_life_bpf(state);

		EXPECT(reached[state]);
		if (bpf == SF_MOD_RETRY || bpf == SF_MOD_FULL) {
			EXPECT(file_life_next(state, EVENT_ASKED, &to, &retry_ms) &&
			       to == FILE_OPENING);
			EXPECT(file_life_next(state, EVENT_STILL_OPEN, &to, &retry_ms) &&
			       to == FILE_OPEN);
		}
		EXPECT_EQ(bpf == SF_MOD_READY, state == FILE_PUBLISHED);
	}
}
