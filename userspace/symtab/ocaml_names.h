/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of OCaml's functions, as ocamlopt makes symbols of them: "caml", the compilation unit, a
 * separator, the function, "_" and a number. The separator is "__" up to OCaml 5.0, "." from 5.1
 * on, and "$" where assemblers do not accept that. The unit of List in a library Stdlib is
 * Stdlib__List. Other characters are $xx with "__" and ".", else $$xx.
 */
#ifndef SFBPF_SYMTAB_OCAML_NAMES_H
#define SFBPF_SYMTAB_OCAML_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/* Whether the name begins like one. */
bool ocaml_is_mangled(const char *raw);
/*
 * "Stdlib.List.map" of camlStdlib__List__map_236. Anonymous functions keep their number:
 * "Stdlib.List.fun_561". Returns the bytes in buf, without a NUL; 0: it is no such name, or longer
 * than cap.
 */
size_t ocaml_demangle(const char *raw, char *buf, size_t cap);

#endif
