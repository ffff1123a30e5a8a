/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Demangles the linker's symbols: C++ (Itanium ABI), Rust (v0, and legacy without its hash), D,
 * OCaml and Haskell (symtab/ocaml_names.h, symtab/haskell_names.h). Other names stay as they are.
 * Those of Ada and Nim are in the symbol table as shown (symtab/source_names.c).
 *
 * The result is the qualified name with template arguments but without parameter list and return
 * type: `std::vector<int>::push_back`, not `void std::vector<int>::push_back(int&&)`. Overloads
 * therefore share one name: a profile is read by function, and lines stay short.
 */
#ifndef SFBPF_SYMTAB_SYM_NAMES_H
#define SFBPF_SYMTAB_SYM_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of a shown name, with its NUL; longer names are cut */
#define SYM_NAME_MAX 1024

/* Decides by how the name begins and ends. Other names need no worker. */
bool sym_is_mangled(const char *raw);
/*
 * Writes raw (NUL-terminated), demangled, to buf as clean text (base/text.h). What follows a space
 * is a mark of the symbol table (symtab/elf_symtab.h), and stays. Returns the bytes written,
 * without the NUL.
 *
 * libiberty may take exponential time over a name before it writes a byte. So call this only in a
 * process that can be killed: elf_reader_demangle uses a worker.
 */
size_t sym_demangle(const char *raw, char *buf, size_t cap);

#endif
