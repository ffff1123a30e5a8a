/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Perl 5.32 to 5.42 with threads, x86-64: from the symbols that perl and libperl export for
 * extensions. The layout of its objects follows from the version, which is among them.
 */
#include <string.h>

#include "languages/lang.h"

static const struct version {
	uint16_t first, last; /* stable releases have even numbers */
	struct sf_perl layout;
} versions[] = {
	{ 32, 32, { .cop = 224, .stack = 240 } },
	{ 34, 34, { .cop = 208, .stack = 224 } },
	{ 36, 42, { .cop = 208, .stack = 224, .aux_in_body = 1 } },
};

static bool byte_of(const struct lang_file *f, const char *name, uint8_t *ret)
{
	struct elf_dynsym_value sym;
	struct elf_blob b = { 0 };
	bool ok = false;

	if (elf_dynsym_find(&f->syms, name, &sym) && lang_bytes(f, sym.addr, 1, &b)) {
		*ret = bytes_u8(&b.view);
		ok = !b.view.err;
	}
	elf_blob_free(&b);
	return ok;
}

static const struct version *version_of(const struct lang_file *f, uint16_t *ret)
{
	uint8_t major, minor;

	if (!byte_of(f, "PL_revision", &major) || !byte_of(f, "PL_version", &minor) || major != 5)
		return NULL;
	*ret = (uint16_t)(major << 8 | minor);
	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++)
		if (minor >= versions[i].first && minor <= versions[i].last && minor % 2 == 0)
			return &versions[i];
	return NULL;
}

static bool perl_describe(const struct lang_file *f, struct sf_lang *ret)
{
	struct elf_dynsym_value loop, key;
	const struct version *v;

	if (f->img->machine != EM_X86_64 ||
	    !elf_dynsym_find(&f->syms, "Perl_runops_standard", &loop) ||
	    !elf_dynsym_find(&f->syms, "PL_thr_key", &key)) /* this perl has no threads */
		return false;
	v = version_of(f, &ret->version);
	if (!v)
		return false;
	ret->nloops = lang_loops(f, loop.addr, ret->loops);
	ret->perl = v->layout;
	ret->perl.musl = f->syms.musl;
	ret->perl.key = lang_address(f, loop.addr, key.addr);
	return true;
}

static bool perl_sound(const struct sf_lang *l)
{
	const struct sf_perl *perl = &l->perl;

	return l->nloops && perl->cop >= 16 && perl->stack >= 16 && perl->cop <= 1024 &&
	       perl->stack <= 1024;
}

/* ---- Code ---- */

/* "(eval 12)", which a place may follow, is not a file. Its number differs each time: none. */
static bool is_eval(const uint8_t *file, uint16_t len)
{
	static const char eval[] = "(eval ";

	return len > sizeof(eval) && !memcmp(file, eval, sizeof(eval) - 1);
}

/* "Package::sub". The package is in lines. */
static void perl_parts(const struct sf_code *rec, struct lang_parts *ret)
{
	static const char *const others[] = { NULL, NULL, "main", "require", "eval" };
	static const char anon[] = "__ANON__", eval[] = "eval";
	size_t n = 0, package = rec->lines_len < SF_CODE_TEXT ? rec->lines_len : SF_CODE_TEXT;
	uint32_t kind = rec->version <= SF_PERL_EVAL ? rec->version : SF_PERL_SUB;
	uint8_t *text = ret->room;

	if (kind == SF_PERL_SUB) {
		memcpy(text, package ? (const void *)rec->lines : anon,
		       package ? package : strlen(anon));
		n = package ? package : strlen(anon);
		text[n++] = ':';
		text[n++] = ':';
	}
	if (others[kind]) {
		n = strlen(others[kind]);
		memcpy(text, others[kind], n);
	} else if (rec->name_len) {
		memcpy(text + n, rec->name, rec->name_len);
		n += rec->name_len;
	} else { /* deleted since */
		memcpy(text + n, anon, strlen(anon));
		n += strlen(anon);
	}
	ret->name = (struct lang_text){ text, n, SF_CODE_UTF8 };
	ret->file = (struct lang_text){ rec->file, rec->file_len, SF_CODE_UTF8 };
	if (is_eval(rec->file, rec->file_len) || (kind == SF_PERL_EVAL && !rec->file_len))
		ret->file = (struct lang_text){ (const uint8_t *)eval, strlen(eval), SF_CODE_UTF8 };
	ret->lines = rec->lines;
	ret->lines_len = 0;
}

const struct language perl_language = {
	.describe = perl_describe,
	.sound = perl_sound,
	.parts = perl_parts,
};
