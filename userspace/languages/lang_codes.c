/* SPDX-License-Identifier: BSD-2-Clause */
#include "languages/lang_codes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/idmap.h"
#include "base/slots.h"
#include "base/strpool.h"
#include "base/text.h"
#include "base/user_account.h"
#include "base/vec.h"

/*
 * The kernel forgets its ids before it has made as many new ones as it can hold, so an id in use is
 * among this many last ones.
 */
#define IDS	  (4u * SF_MAX_CODES)
#define BYTES_MAX (64u << 20) /* bytes of all code; more of it is unknown */
/*
 * Bytes of code that is kept; with what finds it, it takes twice as much. A user other than root
 * may hold as much as is left for others: the first one half of KEPT_MAX, the next one a quarter.
 */
#define KEPT_MAX  (BYTES_MAX / 2)
#define USERS_MAX 4096 /* users with an account; all others together have one */
#define CLEAN_MAX (4 * SF_CODE_TEXT)

struct known_id {
	uint32_t id, number;
};

struct code {
	uint32_t name, file, first_line, lines_len;
	uint64_t hash;
	uint8_t *lines;
	uint8_t language, version;
};

struct lang_codes {
	struct known_id *ids; /* indexed by id modulo IDS */
	struct strpool *strings;
	struct code *codes; /* indexed by number - 1 */
	size_t n, cap, lines_bytes;
	struct slots slots;
	struct idmap users;		       /* user_account -> index into kept_by */
	uint64_t kept, kept_by[USERS_MAX + 1]; /* bytes of code: of all users, and by user */
};

struct lang_codes *lang_codes_new(void)
{
	struct lang_codes *lc = calloc(1, sizeof(*lc));

	if (!lc)
		return NULL;
	lc->ids = calloc(IDS, sizeof(*lc->ids));
	lc->strings = strpool_new();
	if (lc->ids && lc->strings)
		return lc;
	lang_codes_free(lc);
	return NULL;
}

static void free_codes(struct lang_codes *lc)
{
	for (size_t i = 0; i < lc->n; i++)
		free(lc->codes[i].lines);
	free(lc->codes);
	strpool_free(lc->strings);
	slots_free(&lc->slots);
	idmap_free(&lc->users);
}

void lang_codes_free(struct lang_codes *lc)
{
	if (!lc)
		return;
	free_codes(lc);
	free(lc->ids);
	free(lc);
}

void lang_codes_reset(struct lang_codes *lc)
{
	struct known_id *ids = lc->ids;
	struct strpool *fresh = strpool_new();

	if (!fresh)
		return;
	free_codes(lc);
	memset(ids, 0, IDS * sizeof(*ids));
	*lc = (struct lang_codes){ .ids = ids, .strings = fresh };
}

size_t lang_codes_bytes(const struct lang_codes *lc)
{
	return sizeof(*lc) + IDS * sizeof(*lc->ids) + strpool_bytes(lc->strings) +
	       lc->cap * sizeof(*lc->codes) + lc->lines_bytes + slots_bytes(&lc->slots);
}

/* The bytes of code that are kept for a user. */
static uint64_t *kept_by(struct lang_codes *lc, uint32_t owner)
{
	uint32_t account = user_account(owner), id;

	if (lc->users.n < USERS_MAX ? idmap_get(&lc->users, account, 0, &id) != 0
				    : !idmap_find(&lc->users, account, 0, &id))
		id = USERS_MAX;
	return &lc->kept_by[id];
}

/* Whether more code may be kept for a user. */
static bool may_keep(struct lang_codes *lc, uint32_t owner)
{
	return lang_codes_bytes(lc) < BYTES_MAX && lc->kept < KEPT_MAX &&
	       (!owner || *kept_by(lc, owner) <= KEPT_MAX - lc->kept);
}

/* ---- Texts ---- */

/* Interns a text of units of 1, 2 or 4 bytes as clean UTF-8. 0 or -ENOMEM. */
static int intern_text(struct lang_codes *lc, const struct lang_text *t, uint32_t *ret)
{
	struct bytes b = bytes_of(t->data, t->len, __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
	char utf8[CLEAN_MAX], clean[CLEAN_MAX + 1];
	size_t n = 0;

	if (t->unit == SF_CODE_UTF8) {
		n = text_clean(clean, sizeof(clean), (const char *)t->data, t->len, 0);
		return strpool_intern(lc->strings, clean, n, ret);
	}
	while (bytes_left(&b) >= t->unit && n + TEXT_CHAR_MAX <= sizeof(utf8))
		n += text_encode(utf8 + n, t->unit == 1	  ? bytes_u8(&b)
					   : t->unit == 2 ? bytes_u16(&b)
							  : bytes_u32(&b));
	n = text_clean(clean, sizeof(clean), utf8, n, 0);
	return strpool_intern(lc->strings, clean, n, ret);
}

/* Interns the names of a record, and sets what else its language says. 0 or -ENOMEM. */
static int intern(struct lang_codes *lc, const struct sf_code *rec, struct code *c)
{
	struct lang_parts p;

	lang_parts(rec, &p);
	c->lines = (uint8_t *)p.lines; /* copied if it is kept */
	c->lines_len = (uint32_t)p.lines_len;
	return intern_text(lc, &p.name, &c->name) || intern_text(lc, &p.file, &c->file) ? -ENOMEM
											: 0;
}

/* ---- Code ---- */

static uint64_t hash_of(const void *ctx, size_t i)
{
	return ((const struct lang_codes *)ctx)->codes[i].hash;
}

static bool same(const struct code *a, const struct code *b)
{
	return a->hash == b->hash && a->name == b->name && a->file == b->file &&
	       a->first_line == b->first_line && a->language == b->language &&
	       a->version == b->version && a->lines_len == b->lines_len &&
	       (!a->lines_len || !memcmp(a->lines, b->lines, a->lines_len));
}

/* The number of the code, which is added if it is new. LANG_CODE_UNKNOWN: no room. */
static uint32_t number_of(struct lang_codes *lc, struct code *c)
{
	uint8_t *lines = NULL;
	size_t at;

	c->hash = hash_mix((uint64_t)c->name << 32 | c->file,
			   (uint64_t)c->first_line << 32 | c->lines_len);
	c->hash = hash_mix(c->hash, hash_bytes(c->lines, c->lines_len) ^ c->language);
	if (slots_reserve(&lc->slots, lc->n, hash_of, lc))
		return LANG_CODE_UNKNOWN;
	slots_each(&lc->slots, c->hash, at)
		if (same(&lc->codes[lc->slots.ids[at] - 1], c))
			return lc->slots.ids[at];
	if (lc->n >= UINT32_MAX - 1 ||
	    vec_reserve(&lc->codes, &lc->cap, lc->n + 1, sizeof(*lc->codes)) ||
	    (c->lines_len && !(lines = malloc(c->lines_len))))
		return LANG_CODE_UNKNOWN;
	if (lines)
		memcpy(lines, c->lines, c->lines_len);
	c->lines = lines;
	lc->lines_bytes += c->lines_len;
	lc->codes[lc->n] = *c;
	lc->slots.ids[at] = (uint32_t)++lc->n;
	return (uint32_t)lc->n;
}

static bool is_unit(uint8_t unit)
{
	return unit == SF_CODE_UTF8 || unit == 1 || unit == 2 || unit == 4;
}

bool lang_codes_add(struct lang_codes *lc, const struct sf_code *rec, size_t len)
{
	struct known_id *known = &lc->ids[rec->id % IDS];
	struct code c = { .first_line = rec->first_line,
			  .language = rec->language,
			  .version = rec->version };
	size_t n;

	if (len < sizeof(*rec) - SF_CODE_LINES || rec->name_len > SF_CODE_TEXT ||
	    rec->file_len > SF_CODE_TEXT || rec->lines_len > SF_CODE_LINES ||
	    len < sizeof(*rec) - SF_CODE_LINES + rec->lines_len || !is_unit(rec->name_unit) ||
	    !is_unit(rec->file_unit) || rec->language == SF_LANG_NONE ||
	    rec->language >= SF_LANG_MAX)
		return false;
	*known = (struct known_id){ rec->id, LANG_CODE_UNKNOWN };
	if (!may_keep(lc, rec->owner))
		return true;
	n = lc->n;
	if (!intern(lc, rec, &c))
		known->number = number_of(lc, &c);
	if (lc->n > n) {
		n = sizeof(c) + rec->name_len + rec->file_len + rec->lines_len;
		lc->kept += n;
		*kept_by(lc, rec->owner) += n;
	}
	return true;
}

uint64_t lang_codes_word(const struct lang_codes *lc, uint64_t word)
{
	uint32_t id = SF_FRAME_CODE(word);
	const struct known_id *known = &lc->ids[id % IDS];
	uint32_t number = id && known->id == id ? known->number : LANG_CODE_UNKNOWN;

	return SF_FRAME_LANG_WORD(SF_FRAME_LANGUAGE(word), number,
				  number ? SF_FRAME_POSITION(word) : 0);
}

bool lang_codes_get(const struct lang_codes *lc, uint32_t number, struct lang_code *ret)
{
	const struct code *c;

	if (number == LANG_CODE_UNKNOWN || number > lc->n)
		return false;
	c = &lc->codes[number - 1];
	*ret = (struct lang_code){
		.language = c->language,
		.version = c->version,
		.first_line = c->first_line,
		.name = strpool_str(lc->strings, c->name),
		.file = strpool_str(lc->strings, c->file),
		.lines = c->lines,
		.lines_len = c->lines_len,
	};
	return true;
}
