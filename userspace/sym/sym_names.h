/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From a linker's symbol to what people read: C++ (Itanium ABI) and Rust (v0, and legacy without its hash) are
 * demangled, the rest is left as it is. What stays is the qualified name with template arguments but
 * without the parameter list and return type: `std::vector<int>::push_back`, not `void std::vector<int>::push_back(int&&)`.
 * Overloads therefore share one name; a profile is read by function, and lines stay short enough to read.
 */
#ifndef SFBPF_SYM_SYM_NAMES_H
#define SFBPF_SYM_SYM_NAMES_H

#include <stddef.h>

#define SYM_NAME_MAX 1024	/* bytes of a name that is shown, with its NUL; longer ones are cut */

/* raw (NUL-terminated) into buf, clean (base/text.h). Returns the bytes written, without the NUL. */
size_t sym_demangle(const char *raw, char *buf, size_t cap);

#endif
