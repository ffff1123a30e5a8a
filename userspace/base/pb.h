/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes and reads Protocol Buffers (the wire format of proto3) in memory. As in proto3, fields of
 * value 0 and empty strings are left out. Lengths are minimal varints, because not every decoder
 * accepts padded ones. A failed allocation is sticky: write everything, then check err once.
 *
 * A message is read field by field through a view, whose error is sticky.
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
	int err; /* 0 or -ENOMEM */
};

void pb_free(struct pb *pb); /* also for a zeroed struct */
void pb_u64(struct pb *pb, uint32_t field, uint64_t value);
void pb_fixed64(struct pb *pb, uint32_t field, uint64_t value);
void pb_bytes(struct pb *pb, uint32_t field, const void *data, size_t len);
void pb_str(struct pb *pb, uint32_t field, const char *s);
/* Writes an element of a repeated field: empty elements count */
void pb_bytes_always(struct pb *pb, uint32_t field, const void *data, size_t len);
void pb_packed(struct pb *pb, uint32_t field, const uint64_t *values, size_t n);
/* These write no tag: they are for parts of a packed field, or complete fields. */
void pb_varint(struct pb *pb, uint64_t value);
void pb_raw(struct pb *pb, const void *data, size_t len);

/*
 * A nested message. Everything written between the two calls belongs to it. It is written even if
 * it is empty.
 */
size_t pb_begin(struct pb *pb, uint32_t field);
void pb_end(struct pb *pb, size_t begun);

struct pb_field {
	uint32_t number;
	uint64_t value; /* value of a number; 0 for other types */
	/* Content of a string, message or packed numbers; empty for other types */
	struct bytes bytes;
};

/*
 * The next field of the message. false: at its end, or damaged, with msg->err set. Groups count as
 * damage, because no known producer writes them.
 */
bool pb_next(struct bytes *msg, struct pb_field *ret);
/*
 * The next number of a repeated field, packed or not. false: after the last one, or damaged, with
 * field->bytes.err set.
 */
bool pb_next_number(struct pb_field *field, uint64_t *ret);

#endif
