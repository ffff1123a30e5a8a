/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/stages.h"

#include <string.h>

#include "base/complain.h"
#include "base/exitcode.h"

static int sample(const struct stages *st, void *tool, struct session *s)
{
	int err = 0, wait_ms;

	while (!err && (wait_ms = st->wait(tool)) >= 0) {
		err = session_poll(s, wait_ms);
		if (!err)
			err = st->tick(tool);
	}
	return err;
}

int stages_run(const struct stages *st, void *tool, struct session *s,
	       const struct collector_opts *opts)
{
	int err;

	if (st->early_signals)
		session_signals();
	if ((err = st->prepare(tool)) || (err = session_open(s, opts)) ||
	    (err = st->opened(tool)) || (err = session_start(s)))
		return err;
	if (!st->early_signals)
		session_signals();
	err = st->begin(tool);
	if (err)
		return err;
	err = st->end(tool, sample(st, tool, s));
	return err < 0 ? complain(EXIT_FAILED, "reading samples: %s", strerror(-err)) : err;
}
