/* SPDX-License-Identifier: BSD-2-Clause */
#include "kern/refusal.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

#define BEGINS "-- BEGIN PROG LOAD LOG --"
#define ENDS   "-- END PROG LOAD LOG --"

static bool starts(const char *s, const char *with)
{
	return !strncmp(s, with, strlen(with));
}

/* "prog 'NAME': WHAT" is cut in two. Returns WHAT, or NULL if this is something else. */
static char *after_program(char *line, const char **ret_name)
{
	char *end;

	if (!starts(line, "prog '"))
		return NULL;
	line += strlen("prog '");
	end = strstr(line, "': ");
	if (!end)
		return NULL;
	*end = 0;
	*ret_name = line;
	return end + strlen("': ");
}

/* What libbpf says after an error that it has already described. */
static bool says_nothing(const char *line)
{
	return starts(line, "failed to load object") || starts(line, "failed to load BPF skeleton");
}

static void take_warning(struct refusal *r, char *line)
{
	static const char failed[] = "BPF program load failed: ";
	const char *name;
	char *what;

	if (starts(line, "libbpf: "))
		line += strlen("libbpf: ");
	what = after_program(line, &name);
	if (what && starts(what, failed)) {
		*r = (struct refusal){ 0 };
		text_clean(r->program, sizeof(r->program), name, strlen(name), 0);
		what += strlen(failed);
		text_clean(r->error, sizeof(r->error), what, strlen(what), 0);
	} else if (what && starts(what, BEGINS)) {
		r->in_log = true;
	} else if (!what && !r->program[0] && *line && !says_nothing(line)) {
		text_clean(r->reason, sizeof(r->reason), line, strlen(line), 0);
	}
}

/* "12857: (79) r8 = *(u64 *)(r2 +0)", "12850: R0=scalar()", "from 17 to 20: R0=0" */
static bool is_instruction(const char *line)
{
	size_t digits = strspn(line, "0123456789");

	return (digits && line[digits] == ':') || starts(line, "from ");
}

/* What follows the verifier's reason; "subprog N (NAME) ..." since 7.3. */
static bool is_statistics(const char *line)
{
	return starts(line, "processed ") || starts(line, "verification time ") ||
	       starts(line, "stack depth ") || starts(line, "subprog ");
}

static void take_log(struct refusal *r, const char *line)
{
	char clean[REFUSAL_LINE] = "";

	if (starts(line, ENDS)) {
		r->in_log = false;
		return;
	}
	text_clean(clean, sizeof(clean), line, strlen(line), 0);
	if (!clean[0])
		return;
	memcpy(r->last[r->lines++ % REFUSAL_LINES], clean, sizeof(clean));
	if (starts(clean, "; "))
		memcpy(r->source, clean, sizeof(clean));
	else if (!is_instruction(clean) && !is_statistics(clean))
		memcpy(r->reason, clean, sizeof(clean));
}

static void end_line(struct refusal *r)
{
	char line[REFUSAL_LINE];

	memcpy(line, r->line, r->len);
	line[r->len] = 0;
	r->len = 0;
	if (r->in_log)
		take_log(r, line);
	else
		take_warning(r, line);
}

void refusal_take(struct refusal *r, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (text[i] == '\n')
			end_line(r);
		else if (r->len < sizeof(r->line) - 1)
			r->line[r->len++] = text[i];
	}
}

void refusal_take_log(struct refusal *r, const char *log)
{
	r->in_log = true;
	refusal_take(r, log, strlen(log));
	if (r->len)
		end_line(r);
	r->in_log = false;
}

const char *refusal_line(const struct refusal *r, size_t i)
{
	size_t kept = r->lines < REFUSAL_LINES ? r->lines : REFUSAL_LINES;

	return i < kept ? r->last[(r->lines - kept + i) % REFUSAL_LINES] : NULL;
}

void refusal_text(const struct refusal *r, char *ret, size_t cap)
{
	const char *reason = r->reason[0] ? r->reason : "no reason in libbpf's log";

	if (r->program[0])
		snprintf(ret, cap, "%s: %s", r->program, reason);
	else
		snprintf(ret, cap, "%s", reason);
}
