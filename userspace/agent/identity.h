/* SPDX-License-Identifier: BSD-2-Clause */
/* What identifies this machine, for OTLP's resource attributes. */
#ifndef SFBPF_AGENT_IDENTITY_H
#define SFBPF_AGENT_IDENTITY_H

/* Clean text; "": unknown. */
struct identity {
	char host_id[64]; /* /etc/machine-id */
	char arch[16];	  /* host.arch: amd64, arm64 */
	char os_name[64], os_version[64], os_description[200];
};

/* etc: /etc, except in tests. */
void identity_read(struct identity *ret, const char *etc);

#endif
