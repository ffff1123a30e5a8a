/* SPDX-License-Identifier: BSD-2-Clause */
/* report --annotate: the instructions of one function, with the samples of a recording. */
#ifndef SFBPF_REPORT_REPORT_CODE_H
#define SFBPF_REPORT_REPORT_CODE_H

/* path: JSON that `record` wrote; "-": standard input. The exit code. */
int report_code(const char *function, const char *path);

#endif
