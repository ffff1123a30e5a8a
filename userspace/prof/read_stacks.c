/* SPDX-License-Identifier: BSD-2-Clause */
#include "prof/read_stacks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/vec.h"

int read_stacks_slurp(FILE *f, uint8_t **ret, size_t *ret_len)
{
	uint8_t *buf = NULL;
	size_t len = 0, cap = 0, n;
	struct stat st;

	/* One allocation for a file; a byte more to meet its end. */
	if (!fstat(fileno(f), &st) && S_ISREG(st.st_mode) && st.st_size > 0 &&
	    (uint64_t)st.st_size < READ_STACKS_MAX &&
	    vec_reserve(&buf, &cap, (size_t)st.st_size + 1, 1))
		return -ENOMEM;
	do {
		if (len > READ_STACKS_MAX) {
			free(buf);
			return -EFBIG;
		}
		if (len == cap && vec_reserve(&buf, &cap, len + 65536, 1)) {
			free(buf);
			return -ENOMEM;
		}
		n = fread(buf + len, 1, cap - len, f);
		len += n;
	} while (n);
	if (ferror(f)) {
		free(buf);
		return errno ? -errno : -EIO;
	}
	*ret = buf;
	*ret_len = len;
	return 0;
}

static bool starts_with(struct bytes b, const char *s)
{
	const uint8_t *at = bytes_take(&b, strlen(s));

	return at && memcmp(at, s, strlen(s)) == 0;
}

int read_stacks(FILE *f, struct stackset *ss, enum stack_side side, struct stacks_meta *meta,
		struct read_error *why)
{
	struct bytes text;
	uint8_t *buf;
	size_t len;
	int err;

	*meta = (struct stacks_meta){ 0 };
	*why = (struct read_error){ 0 };
	errno = 0;
	err = read_stacks_slurp(f, &buf, &len);
	if (err)
		return err;
	text = bytes_of(buf, len, false);
	meta->bytes = len;
	if (starts_with(text, "{\"meta\":")) {
		err = read_json(text, ss, side, meta, why);
	} else if (starts_with(text, "\x1f\x8b")) {
		err = read_pprof(text, ss, side, meta, why);
	} else if (starts_with(text, "<!DOCTYPE") || starts_with(text, "\x7f"
								       "ELF")) {
		snprintf(why->text, sizeof(why->text),
			 "neither folded lines nor JSON nor pprof written by sfbpf record");
		err = -EINVAL;
	} else {
		err = read_folded(text, ss, side, meta, why);
	}
	free(buf);
	if (err == -EOVERFLOW) {
		snprintf(why->text, sizeof(why->text), "its counts add up to more than 2^64 - 1");
		err = -EINVAL;
	}
	return err;
}
