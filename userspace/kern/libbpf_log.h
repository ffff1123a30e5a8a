/* SPDX-License-Identifier: BSD-2-Clause */
/* libbpf's messages: hidden, or shown on stderr, and its warnings searched for refused programs. */
#ifndef SFBPF_KERN_LIBBPF_LOG_H
#define SFBPF_KERN_LIBBPF_LOG_H

#include <stdbool.h>

#include "kern/refusal.h"

void libbpf_log_show(bool show);
/* The warnings of this thread go to *r, too, which is emptied. NULL: no more. */
void libbpf_log_into(struct refusal *r);

#endif
