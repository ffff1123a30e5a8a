/* SPDX-License-Identifier: BSD-2-Clause */
/* What the HTTP servers have in common: the one of the agent's pages, and `serve`. */
#ifndef SFBPF_AGENT_WEB_H
#define SFBPF_AGENT_WEB_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct web_header {
	const char *name, *value;
};

struct web_reply {
	FILE *body;
	char *text; /* what was written to body */
	size_t len;
};

/* Opens r->body. False: out of memory. */
bool web_begin(struct web_reply *r);
/* Sends the reply, whose body it closes. headers: up to one without a name. */
enum MHD_Result web_send(struct web_reply *r, struct MHD_Connection *c, int status,
			 const struct web_header *headers);
/* Enters and removes guests: a callback for MHD_OPTION_NOTIFY_CONNECTION with a struct guests. */
void web_on_connection(void *guests, struct MHD_Connection *c, void **guest,
		       enum MHD_ConnectionNotificationCode what);

#endif
