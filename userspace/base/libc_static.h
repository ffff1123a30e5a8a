/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a program with glibc inside (STATIC=1) must not do on a system with another C library, or
 * with another version of it: load modules of name services or character sets, and read locales.
 * Their files belong to that other library, and a program that takes them crashes.
 *
 * Names come from /etc/passwd, /etc/group, /etc/hosts and DNS. The locale is C or UTF-8, as LC_ALL,
 * LC_CTYPE or LANG say, without any file. The linker replaces the C library's functions for
 * characters with these (--wrap in the Makefile), in libncursesw, too.
 */
#ifndef SFBPF_BASE_LIBC_STATIC_H
#define SFBPF_BASE_LIBC_STATIC_H

/* Call it before the first name is looked up. Does nothing with shared libraries. */
#ifdef SFBPF_STATIC
void libc_static_init(void);
#else
static inline void libc_static_init(void)
{
}
#endif

#endif
