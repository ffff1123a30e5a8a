/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of GHC's functions: PACKAGE_MODULE_NAME_info, z-encoded. Without PACKAGE it is the program.
 * A name counts only if its module has a dot, its package a version, or it is one that GHC derived
 * ($wgo), as others could be names of C.
 */
#ifndef SFBPF_SYMTAB_HASKELL_NAMES_H
#define SFBPF_SYMTAB_HASKELL_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/* Whether the name ends like one. */
bool haskell_is_mangled(const char *raw);
/*
 * "GHC.Base.map" of base_GHCziBase_map_info. Returns the bytes in buf, without a NUL; 0: it is no
 * such name, or longer than cap.
 */
size_t haskell_demangle(const char *raw, char *buf, size_t cap);

#endif
