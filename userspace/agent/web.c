/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/web.h"

#include <stdlib.h>

#include "agent/guests.h"

bool web_begin(struct web_reply *r)
{
	*r = (struct web_reply){ 0 };
	r->body = open_memstream(&r->text, &r->len);
	return r->body != NULL;
}

enum MHD_Result web_send(struct web_reply *r, struct MHD_Connection *c, int status,
			 const struct web_header *headers)
{
	enum MHD_Result sent;
	struct MHD_Response *response = NULL;

	if (!fclose(r->body))
		response = MHD_create_response_from_buffer(r->len, r->text, MHD_RESPMEM_MUST_FREE);
	if (!response) {
		free(r->text);
		return MHD_NO;
	}
	for (; headers->name; headers++)
		MHD_add_response_header(response, headers->name, headers->value);
	sent = MHD_queue_response(c, (unsigned int)status, response);
	MHD_destroy_response(response);
	return sent;
}

void web_on_connection(void *guests, struct MHD_Connection *c, void **guest,
		       enum MHD_ConnectionNotificationCode what)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
	int fd;

	if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
		guests_go(guests, *guest);
		return;
	}
	if (!info)
		return;
	fd = info->connect_fd;
	/* The result of the next call takes the place of this one's since libmicrohttpd 1.0. */
	info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	*guest = info ? guests_come(guests, fd, info->client_addr) : NULL;
	if (!*guest)
		shutdown(fd, SHUT_RDWR);
}
