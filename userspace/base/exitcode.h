/* SPDX-License-Identifier: BSD-2-Clause */
/* Exit statuses, for scripts; listed in --help. */
#ifndef SFBPF_BASE_EXITCODE_H
#define SFBPF_BASE_EXITCODE_H

enum exitcode {
	EXIT_OK = 0,
	EXIT_FAILED = 1,      /* an error at run time */
	EXIT_USAGE = 2,	      /* an error in the command line */
	EXIT_PERMISSION = 3,  /* a capability is missing */
	EXIT_UNSUPPORTED = 4, /* the kernel lacks a feature */
};

#endif
