/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libFuzzer target: recordings (out/recording.h). Built by scripts/fuzz.sh. The input is the
 * message, which is packed first. Promises: an error says where, unless memory ran out, and what
 * was read can be written in all formats.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/gzip.h"
#include "out/recording.h"
#include "out/recording_fields.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool cond)
{
	if (!cond)
		abort();
}

static void write_all(const struct recording *rec)
{
	const struct out_format *format;
	FILE *f = fopen("/dev/null", "w");

	require(f);
	for (size_t i = 0; (format = out_format_at(i)); i++) {
		struct out_report r = out_report_for(&rec->report, format);

		if (r.timeline || !format->timeline)
			require(format->write(&r, f) != -EFAULT);
	}
	fclose(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct recording rec;
	struct read_error why;
	uint8_t *packed, *file;
	size_t len;
	int err;

	require(!gzip_bytes(data, size, 1, &packed, &len));
	file = malloc(len + RECORDING_MAGIC_LEN);
	require(file);
	memcpy(file, RECORDING_MAGIC, RECORDING_MAGIC_LEN);
	memcpy(file + RECORDING_MAGIC_LEN, packed, len);
	err = recording_read(bytes_of(file, len + RECORDING_MAGIC_LEN, false), &rec, &why);
	require(!err || (err == -EINVAL && *why.text));
	if (!err)
		write_all(&rec);
	recording_free(&rec);
	free(packed);
	free(file);
	return 0;
}
