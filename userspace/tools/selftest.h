/* SPDX-License-Identifier: BSD-2-Clause */
/* A recording of ourselves: a thread burns CPU at the end of a chain of calls whose return addresses it wrote down. */
#ifndef SFBPF_TOOLS_SELFTEST_H
#define SFBPF_TOOLS_SELFTEST_H

struct selftest {
	int exit_code;		/* not 0: it could not be tried, text says why */
	char text[512];		/* else the commonest reason why a stack was not right */
	unsigned int early;	/* samples from before the tables of its files were there */
	unsigned int judged;	/* the rest */
	unsigned int known;	/* of those: complete, and with the chain in it */
};

/* btf: see struct collector_opts. Takes about 0.4 s, on a very busy machine up to 3 s. */
void selftest_run(struct selftest *ret, const char *btf);

#endif
