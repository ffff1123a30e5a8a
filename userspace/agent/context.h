/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a process says about itself in its context (paths/process_context.h). The payload is a
 * protobuf message, opentelemetry.proto.processcontext.v1development.ProcessContext.
 */
#ifndef SFBPF_AGENT_CONTEXT_H
#define SFBPF_AGENT_CONTEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/target.h"

/*
 * Takes the names of the service from hostile bytes; texts that are too long are cut. A service
 * name that the SDK made up because its owner gave none ("unknown_service:java") is left out.
 * *ret_threads: its threads publish the span that they work for (bpf/core/trace_link.bpf.h). false:
 * damaged, *ret is unset.
 */
bool context_parse(const void *data, size_t len, struct target *ret, bool *ret_threads);

#endif
