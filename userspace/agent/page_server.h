/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Serves the pages of the agent over HTTP: GET only, one request per connection. One thread serves
 * all clients in one poll loop. A connection lasts one second at most, from accept to the last byte
 * of the reply, however slowly the client writes or reads. At most PAGE_SERVER_CLIENTS connections
 * are open; another one closes the oldest of the address that has the most. So no client delays
 * another, and the memory used by clients is bounded.
 *
 * All replies together take PAGE_SERVER_CPU_PCT of a CPU in the long run. Beyond that, an address
 * that asks more than PAGE_SERVER_RATE times a second is hung up on.
 */
#ifndef SFBPF_AGENT_PAGE_SERVER_H
#define SFBPF_AGENT_PAGE_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define PAGE_SERVER_CLIENTS   32
#define PAGE_SERVER_CLIENT_MS 1000
#define PAGE_SERVER_CPU_PCT   5
#define PAGE_SERVER_RATE      5

struct page_server;

/* Writes the page at path (without the query) to body. Returns 200, 404 or 503. */
typedef int (*page_answer)(void *ctx, const char *path, FILE *body);

/* address: "HOST:PORT" or "PORT" (on 127.0.0.1). NULL, with a message, on failure. */
struct page_server *page_server_listen(const char *address, char *err, size_t cap);
/* The thread calls on_thread first. 0 or -errno. */
int page_server_start(struct page_server *s, page_answer answer, void *ctx,
		      void (*on_thread)(void));
uint64_t page_server_cpu_ns(const struct page_server *s); /* CPU time of its thread */
void page_server_stop(struct page_server *s);		  /* s may be NULL */

#endif
