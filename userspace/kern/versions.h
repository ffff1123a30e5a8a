/* SPDX-License-Identifier: BSD-2-Clause */
/* What built this binary, and what it runs with. */
#ifndef SFBPF_KERN_VERSIONS_H
#define SFBPF_KERN_VERSIONS_H

const char *versions_cc(void);	       /* the first line of `cc --version` */
const char *versions_clang(void);      /* the BPF programs': `clang --version` */
const char *versions_libbpf(void);     /* "1.5", the one whose headers were used */
const char *versions_libbpf_now(void); /* "1.5", the one that is loaded */

#endif
