/* SPDX-License-Identifier: BSD-2-Clause */
#include "symtab/elf_code.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/full_io.h"

#define LONGEST 15 /* bytes of an x86-64 instruction */

#ifdef HAVE_ZYDIS
#include <Zydis/Zydis.h>

void elf_code_decode(const uint8_t *code, uint32_t size, uint64_t addr, struct elf_instruction *ret,
		     uint32_t *ret_n)
{
	static const ZydisFormatterProperty paddings[] = {
		ZYDIS_FORMATTER_PROP_ADDR_PADDING_ABSOLUTE,
		ZYDIS_FORMATTER_PROP_DISP_PADDING,
		ZYDIS_FORMATTER_PROP_IMM_PADDING,
	};
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction in;
	ZydisFormatter formatter;
	ZydisDecoder decoder;
	uint32_t n = 0;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	ZydisFormatterInit(&formatter, ZYDIS_FORMATTER_STYLE_ATT);
	for (size_t i = 0; i < sizeof(paddings) / sizeof(paddings[0]); i++)
		ZydisFormatterSetProperty(&formatter, paddings[i], ZYDIS_PADDING_DISABLED);
	for (uint32_t at = 0; at < size; at += ret[n++].len) {
		struct elf_instruction *i = &ret[n];

		*i = (struct elf_instruction){ .at = at, .len = 1 };
		if (ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code + at, size - at, &in, op)) &&
		    ZYAN_SUCCESS(ZydisFormatterFormatInstruction(&formatter, &in, op,
								 in.operand_count_visible, i->text,
								 sizeof(i->text), addr + at,
								 ZYAN_NULL)))
			i->len = in.length;
		else
			snprintf(i->text, sizeof(i->text), "(bad)");
	}
	*ret_n = n;
}

static bool can_decode(const struct elf_image *img)
{
	return img->machine == EM_X86_64;
}
#else
void elf_code_decode(const uint8_t *code, uint32_t size, uint64_t addr, struct elf_instruction *ret,
		     uint32_t *ret_n)
{
	(void)code;
	(void)size;
	(void)addr;
	(void)ret;
	*ret_n = 0;
}

static bool can_decode(const struct elf_image *img)
{
	(void)img;
	return false;
}
#endif

int elf_code_read(const struct elf_image *img, const struct elf_code *what,
		  struct elf_instruction **ret, uint32_t *ret_n)
{
	static uint8_t code[ELF_CODE_MOST];
	int err;

	if (!can_decode(img))
		return -ENOTSUP;
	if (!what->size || what->size > sizeof(code) || what->off > img->size ||
	    what->size > img->size - what->off)
		return -ENOENT;
	err = pread_full(img->fd, code, what->size, what->off);
	if (err)
		return err;
	*ret = malloc(what->size * sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	elf_code_decode(code, what->size, what->addr, *ret, ret_n);
	return 0;
}

bool elf_code_sound(const struct elf_instruction *v, uint32_t n, uint32_t size)
{
	uint32_t at = 0;

	for (uint32_t i = 0; i < n; i++) {
		size_t text = strnlen(v[i].text, sizeof(v[i].text));

		if (v[i].at != at || !v[i].len || v[i].len > LONGEST || v[i].len > size - at ||
		    text == sizeof(v[i].text))
			return false;
		for (size_t k = 0; k < text; k++)
			if (v[i].text[k] < ' ' || v[i].text[k] > '~')
				return false;
		at += v[i].len;
	}
	return at == size;
}
