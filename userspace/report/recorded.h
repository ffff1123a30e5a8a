/* SPDX-License-Identifier: BSD-2-Clause */
/* Recordings (out/recording.h) in report and diff. */
#ifndef SFBPF_REPORT_RECORDED_H
#define SFBPF_REPORT_RECORDED_H

#include "report/stacks_io.h"

/*
 * The file itself, or if it is a recording, JSON of it in memory, which the caller closes. NULL,
 * and *err: 0 or -errno; -EINVAL: damaged, see *why.
 */
FILE *recorded_as_json(FILE *f, struct read_error *why, int *err);
/* Whether the file can be read again and is a recording. */
bool recorded_is(const char *path);
/* Writes what record would have written of the recording (v->exact). 0, or an exit code. */
int recorded_write(struct view *v, const char *path);

#endif
