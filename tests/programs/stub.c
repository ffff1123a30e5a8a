/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One function, in a file made to be copied: manyfiles gives each copy a name of its own. Its text
 * can be mapped flat, because file offsets and addresses are the same (build.sh).
 */
void stub_00000000(void (*fn)(long), long arg);

void stub_00000000(void (*fn)(long), long arg)
{
	fn(arg);
	__asm__ volatile("");
}
