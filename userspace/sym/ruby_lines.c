/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The index is a succinct bit vector, one bit for each instruction word, with counts of the bits
 * before a block. The count of bits up to a position is the number of its entry, from 1 on.
 *
 *   6 words for positions 0..53: 9 counts of 7 bits each, one for each position
 *   blocks of 80 bytes for 512 positions each: u32 count before the block, 4 bytes of padding, a
 *   word with 7 counts of 9 bits, before the 2nd to 8th word of the block; 8 words of bits
 */
#include "sym/ruby_lines.h"

#include "base/bytes.h"

#define FIRST	    54 /* positions in the first part */
#define EACH	    9
#define BLOCK	    512
#define BLOCK_BYTES 80

static uint64_t word_at(const struct bytes *b, uint64_t pos)
{
	struct bytes at = *b;

	bytes_seek(&at, pos);
	return bytes_u64(&at);
}

static uint64_t entry_of(const struct bytes *index, uint32_t position)
{
	uint32_t in, word;
	uint64_t block, before, bits;

	if (position < FIRST)
		return word_at(index, position / EACH * 8) >> (position % EACH * 7) & 0x7f;
	position -= FIRST;
	block = FIRST / EACH * 8 + (uint64_t)position / BLOCK * BLOCK_BYTES;
	in = position % BLOCK;
	word = in / 64;
	before = word ? word_at(index, block + 8) >> ((word - 1) * 9) & 0x1ff : 0;
	bits = word_at(index, block + 16 + 8 * word) << (63 - in % 64);
	return (uint32_t)word_at(index, block) + before + (uint64_t)__builtin_popcountll(bits);
}

uint32_t ruby_line(const uint8_t *table, size_t len, uint8_t version, uint32_t position)
{
	struct bytes b = bytes_of(table, len, __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__), index;
	uint64_t size = version == 7 || version == 0 ? 8 : 12, n = bytes_u32(&b), entry;

	index = bytes_sub(&b, 4 + n * size, len > 4 + n * size ? len - 4 - n * size : 0);
	entry = entry_of(&index, position);
	if (b.err || index.err || !entry || entry > n)
		return 0;
	return (uint32_t)word_at(&b, 4 + (entry - 1) * size);
}
