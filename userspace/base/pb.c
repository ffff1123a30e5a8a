/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/pb.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

enum wire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_LEN = 2, WIRE_FIXED32 = 5 };

#define VARINT_MAX 10

void pb_free(struct pb *pb)
{
	free(pb->buf);
	*pb = (struct pb){ 0 };
}

/* Returns room for n bytes at the end; NULL with err set: out of memory. */
static uint8_t *room(struct pb *pb, size_t n)
{
	if (pb->err || n > SIZE_MAX - pb->len || vec_reserve(&pb->buf, &pb->cap, pb->len + n, 1)) {
		pb->err = -ENOMEM;
		return NULL;
	}
	return pb->buf + pb->len;
}

static size_t varint_len(uint64_t v)
{
	size_t n = 1;

	while (v >>= 7)
		n++;
	return n;
}

static size_t varint_put(uint8_t *at, uint64_t v)
{
	size_t n = 0;

	for (; v >= 0x80; v >>= 7)
		at[n++] = (uint8_t)(v | 0x80);
	at[n++] = (uint8_t)v;
	return n;
}

static void varint(struct pb *pb, uint64_t v)
{
	uint8_t *at = room(pb, VARINT_MAX);

	if (at)
		pb->len += varint_put(at, v);
}

void pb_varint(struct pb *pb, uint64_t value)
{
	varint(pb, value);
}

void pb_raw(struct pb *pb, const void *data, size_t len)
{
	uint8_t *at = room(pb, len);

	if (at && len)
		memcpy(at, data, len);
	if (at)
		pb->len += len;
}

static void tag(struct pb *pb, uint32_t field, enum wire_type type)
{
	varint(pb, (uint64_t)field << 3 | type);
}

void pb_u64(struct pb *pb, uint32_t field, uint64_t value)
{
	if (!value)
		return;
	tag(pb, field, WIRE_VARINT);
	varint(pb, value);
}

void pb_fixed64(struct pb *pb, uint32_t field, uint64_t value)
{
	uint8_t *at;

	if (!value)
		return;
	tag(pb, field, WIRE_FIXED64);
	at = room(pb, 8);
	for (unsigned int i = 0; at && i < 8; i++)
		at[i] = (uint8_t)(value >> 8 * i);
	if (at)
		pb->len += 8;
}

void pb_bytes_always(struct pb *pb, uint32_t field, const void *data, size_t len)
{
	tag(pb, field, WIRE_LEN);
	varint(pb, len);
	pb_raw(pb, data, len);
}

void pb_bytes(struct pb *pb, uint32_t field, const void *data, size_t len)
{
	if (len)
		pb_bytes_always(pb, field, data, len);
}

void pb_str(struct pb *pb, uint32_t field, const char *s)
{
	pb_bytes(pb, field, s, strlen(s));
}

void pb_packed(struct pb *pb, uint32_t field, const uint64_t *values, size_t n)
{
	size_t len = 0;

	if (!n)
		return;
	for (size_t i = 0; i < n; i++)
		len += varint_len(values[i]);
	tag(pb, field, WIRE_LEN);
	varint(pb, len);
	for (size_t i = 0; i < n; i++)
		varint(pb, values[i]);
}

size_t pb_begin(struct pb *pb, uint32_t field)
{
	tag(pb, field, WIRE_LEN);
	return pb->len;
}

/* Inserts the length before the content, which is moved: most messages have a few dozen bytes. */
void pb_end(struct pb *pb, size_t begun)
{
	uint8_t *at = room(pb, VARINT_MAX);
	size_t len, n;

	if (!at)
		return;
	len = pb->len - begun;
	n = varint_len(len);
	memmove(pb->buf + begun + n, pb->buf + begun, len);
	varint_put(pb->buf + begun, len);
	pb->len += n;
}

bool pb_next(struct bytes *msg, struct pb_field *ret)
{
	uint64_t key, len;

	if (!bytes_left(msg))
		return false;
	key = bytes_uleb(msg);
	*ret = (struct pb_field){ .number = (uint32_t)(key >> 3) };
	if (key >> 3 == 0 || key >> 32)
		msg->err = true;
	switch (key & 7) {
	case WIRE_VARINT:
		ret->value = bytes_uleb(msg);
		break;
	case WIRE_FIXED64:
		ret->value = bytes_u64(msg);
		break;
	case WIRE_FIXED32:
		ret->value = bytes_u32(msg);
		break;
	case WIRE_LEN:
		len = bytes_uleb(msg);
		ret->bytes = bytes_sub(msg, msg->pos, len);
		bytes_skip(msg, len);
		break;
	default:
		msg->err = true;
	}
	return !msg->err;
}

bool pb_next_number(struct pb_field *field, uint64_t *ret)
{
	bool packed = field->bytes.base != NULL;

	if (packed) {
		if (!bytes_left(&field->bytes))
			return false;
		*ret = bytes_uleb(&field->bytes);
		return !field->bytes.err;
	}
	if (!field->number)
		return false;
	*ret = field->value;
	field->number = 0; /* there is only one number */
	return true;
}
