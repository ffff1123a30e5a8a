/* SPDX-License-Identifier: BSD-2-Clause */
#include "languages/lang.h"

#include <string.h>

static const struct {
	const char *name, *frame_type;
	const struct language *ops;
} languages[SF_LANG_MAX] = {
	[SF_LANG_NONE] = { "?", "?", NULL },
#define LANGUAGE(number, id, name, frame_type) [number] = { #name, frame_type, &name##_language },
#include "border/languages.def"
#undef LANGUAGE
};

const char *lang_name(uint32_t language)
{
	return languages[language < SF_LANG_MAX ? language : 0].name;
}

const char *lang_frame_type(uint32_t language)
{
	return languages[language < SF_LANG_MAX ? language : 0].frame_type;
}

bool lang_describe(const struct elf_image *img, const struct lang_functions *functions,
		   struct sf_lang *ret)
{
	struct lang_file f = { .img = img, .functions = functions };

	if (!elf_dynsym_open(&f.syms, img))
		return false;
	for (uint32_t i = SF_LANG_NONE + 1; i < SF_LANG_MAX; i++) {
		*ret = (struct sf_lang){ .language = (uint8_t)i };
		if (languages[i].ops->describe(&f, ret) && lang_sound(ret))
			return true;
	}
	return false;
}

bool lang_starts_stacks(const struct elf_image *img)
{
	struct elf_dynsym_value sym;
	struct elf_dynsym syms;

	return elf_dynsym_open(&syms, img) && elf_dynsym_find(&syms, "PyInit__greenlet", &sym);
}

bool lang_sound(const struct sf_lang *l)
{
	if (l->language == SF_LANG_NONE || l->language >= SF_LANG_MAX || l->nloops > SF_LANG_LOOPS)
		return false;
	return languages[l->language].ops->sound(l);
}

void lang_parts(const struct sf_code *rec, struct lang_parts *ret)
{
	const struct language *ops = languages[rec->language].ops;

	if (ops->parts)
		ops->parts(rec, ret);
	else
		lang_plain_parts(rec, ret);
}

uint32_t lang_line(const struct lang_code *c, uint32_t position)
{
	const struct language *ops = languages[c->language].ops;

	return ops->line ? ops->line(c, position) : position;
}

const char *lang_place(const struct lang_code *c, char room[LANG_PLACE_MAX])
{
	const struct language *ops = languages[c->language].ops;

	return ops->place ? ops->place(c, room) : lang_file_base(c);
}

bool lang_names_class(const struct lang_code *c)
{
	return languages[c->language].ops->names_class;
}
