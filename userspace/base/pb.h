/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes and reads Protocol Buffers (the wire format of proto3) in memory. Fields of value 0 and empty strings are left
 * out, as proto3 does; lengths are minimal varints, because not every decoder takes padded ones. A failed
 * allocation is sticky: write everything, then look at err once.
 *
 * Reading goes field by field over a view of a message, with its sticky error.
 */
#ifndef SFBPF_BASE_PB_H
#define SFBPF_BASE_PB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

struct pb {
	uint8_t *buf;
	size_t len, cap;
	int err;		/* 0 or -ENOMEM */
};

void pb_free(struct pb *pb);	/* also on a zeroed one */
void pb_u64(struct pb *pb, uint32_t field, uint64_t value);
void pb_fixed64(struct pb *pb, uint32_t field, uint64_t value);
void pb_bytes(struct pb *pb, uint32_t field, const void *data, size_t len);
void pb_str(struct pb *pb, uint32_t field, const char *s);
void pb_bytes_always(struct pb *pb, uint32_t field, const void *data, size_t len);	/* elements of a repeated field: empty ones count */
void pb_packed(struct pb *pb, uint32_t field, const uint64_t *values, size_t n);
/* Without a tag: a part of a packed field; bytes that are fields already. */
void pb_varint(struct pb *pb, uint64_t value);
void pb_raw(struct pb *pb, const void *data, size_t len);

/* A message in a message: what is written between the two belongs to it. It is written even if it stays empty. */
size_t pb_begin(struct pb *pb, uint32_t field);
void pb_end(struct pb *pb, size_t begun);

struct pb_field {
	uint32_t number;
	uint64_t value;		/* of a number; 0 if the field is none */
	struct bytes bytes;	/* of a string, message or packed numbers; empty if the field is none */
};

/* The message's next field; false at its end, and with msg->err set where it is damaged. Groups are damage: nobody writes them. */
bool pb_next(struct bytes *msg, struct pb_field *ret);
/* The next number of a repeated field, whether packed or not; false behind the last one, and with field->bytes.err set on damage. */
bool pb_next_number(struct pb_field *field, uint64_t *ret);

#endif
