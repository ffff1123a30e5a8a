/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls library.go for ever. */
int main(void)
{
	for (;;)
		go_work(20000);
}
