/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The dictionary of an OTLP request: tables of mappings, locations, functions, links, strings,
 * attributes and stacks. Element 0 of each table is empty. No table has an element twice, or one
 * that nothing refers to. Errors are sticky: write everything, then check err once.
 */
#ifndef SFBPF_AGENT_OTLP_DICT_H
#define SFBPF_AGENT_OTLP_DICT_H

#include "agent/body.h"
#include "agent/kernel_map.h"
#include "base/idmap.h"
#include "base/pb.h"
#include "base/strpool.h"

enum { OTLP_DICT_TABLES = 8 }; /* index: the dictionary's field number, from 1 */

struct file_code {
	const struct module_code *code;
	uint32_t n;
	/* The mappings of these segments in the request of that number; 0: none yet */
	uint32_t request, mapping[MODULE_MAX_CODE];
};

struct otlp_dict {
	const struct encode_input *in;
	struct kernel_map kernel; /* the kernel's map in this window */
	/*
	 * texts: of attributes; mapped: mappings as text; stacks are interned as their packed
	 * location indices, which contain no 0 byte
	 */
	struct strpool *strings, *texts, *mapped, *stacks;
	size_t string_bytes;
	struct pb tables[OTLP_DICT_TABLES];
	struct idmap functions, locations, attributes, files, links;
	struct file_code *code; /* index: id in files */
	size_t code_cap;
	struct pb packed; /* scratch */
	uint32_t request; /* number */
	int err;	  /* 0 or -ENOMEM */
};

void otlp_dict_begin(struct otlp_dict *d, const struct encode_input *in); /* d is zeroed */
void otlp_dict_free(struct otlp_dict *d);
void otlp_dict_reset(struct otlp_dict *d); /* empties it for the next request */
uint32_t otlp_string(struct otlp_dict *d, const char *s);
/* The value is text, or number if text is NULL. */
uint32_t otlp_attribute(struct otlp_dict *d, const char *key, const char *text, uint64_t number);
uint32_t otlp_stack(struct otlp_dict *d, const struct body_stack *st);
/* The link of a span of the window. */
uint32_t otlp_link(struct otlp_dict *d, uint32_t link);
/* Writes field `field`, an AnyValue: text, or number if text is NULL. */
void otlp_any(struct pb *pb, uint32_t field, const char *text, uint64_t number);
/* A path of a process, clean and redacted as configured. */
void otlp_path(const struct otlp_dict *d, const char *path, char *ret, size_t cap);
size_t otlp_dict_size(const struct otlp_dict *d);
void otlp_dict_put(struct otlp_dict *d, struct pb *pb); /* the fields of the dictionary */

#endif
