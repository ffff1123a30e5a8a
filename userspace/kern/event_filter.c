/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A filter is a tree of comparisons. Each leaf takes one test, or one for each 8 bytes of a text.
 * The leaves are written in the order of the text; a test leads to a later one, or to the result:
 *
 *   a && b    a: yes -> b, no -> fail         b: yes -> pass, no -> fail
 *   a || b    a: yes -> pass, no -> b         b: yes -> pass, no -> fail
 *   !a        yes and no change places
 */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kern/tracepoint.h"

#define NODES	  64
#define TEXT_MOST 64 /* bytes of a text that is compared */

enum kind { LEAF, NOT, AND, OR };

struct node {
	enum kind kind;
	int left, right; /* NOT: left only */
	/* LEAF: the tests, all of which must hold */
	struct sf_event_test tests[TEXT_MOST / 8 + 1];
	int n; /* tests of the node and those below it */
};

struct parser {
	const struct tracepoint *t;
	const char *at;
	struct node nodes[NODES];
	int n, depth;
	char *why;
	size_t cap;
};

static int parse_or(struct parser *p);

static int fail(struct parser *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static int fail(struct parser *p, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	if (!*p->why)
		vsnprintf(p->why, p->cap, fmt, args);
	va_end(args);
	return -1;
}

static int new_node(struct parser *p, enum kind kind, int left, int right)
{
	struct node *n;

	if (p->n == NODES)
		return fail(p, "it is too long");
	n = &p->nodes[p->n];
	*n = (struct node){ .kind = kind, .left = left, .right = right };
	if (kind != LEAF)
		n->n = p->nodes[left].n + (kind == NOT ? 0 : p->nodes[right].n);
	return p->n++;
}

static bool skip(struct parser *p, const char *token)
{
	while (isspace((unsigned char)*p->at))
		p->at++;
	if (strncmp(p->at, token, strlen(token)))
		return false;
	p->at += strlen(token);
	return true;
}

/* Each 8 bytes of the text are a number. A text that ends with * is the beginning of the field. */
static int compare_text(struct parser *p, const struct tracepoint_field *f, struct node *n,
			const char *text, size_t len, bool glob)
{
	bool prefix = glob && len && text[len - 1] == '*';
	char bytes[TEXT_MOST + 8] = "";
	size_t most = f->dynamic ? TEXT_MOST : f->size;

	len -= prefix;
	if (prefix && !len)
		return fail(p, "'*' alone selects nothing");
	if (glob && memchr(text, '*', len))
		return fail(p, "'*' can stand at the end of a text only");
	if (len >= TEXT_MOST || len >= most)
		return fail(p, "the text for '%s' is too long", f->name);
	memcpy(bytes, text, len);
	len += !prefix; /* the NUL */
	for (size_t i = 0; i < len; i += 8) {
		struct sf_event_test *t = &n->tests[n->n++];

		t->at = (uint16_t)(f->at + (f->dynamic ? 0 : i));
		t->skip = f->dynamic ? (uint8_t)i : 0;
		t->size = (uint8_t)(len - i < 8 ? len - i : 8);
		t->flags = f->dynamic ? SF_TEST_DYNAMIC : 0;
		memcpy(&t->value, bytes + i, t->size);
	}
	return 0;
}

static int parse_text(struct parser *p, const struct tracepoint_field *f, struct node *n, bool glob)
{
	char quote = *p->at == '"' || *p->at == '\'' ? *p->at++ : 0;
	size_t len = quote ? strcspn(p->at, (const char[]){ quote, 0 }) : strcspn(p->at, " \t)&|");
	const char *text = p->at;

	p->at += len;
	if (quote && !*p->at)
		return fail(p, "a quote is not closed");
	p->at += quote != 0;
	return compare_text(p, f, n, text, len, glob);
}

static int parse_number(struct parser *p, const struct tracepoint_field *f, struct node *n,
			enum sf_test_op op)
{
	struct sf_event_test *t = &n->tests[0];
	char *end;

	errno = 0;
	t->value = *p->at == '-' ? (uint64_t)strtoll(p->at, &end, 0) : strtoull(p->at, &end, 0);
	if (end == p->at || errno)
		return fail(p, "'%.20s' is not a number", p->at);
	if (f->size > 8)
		return fail(p, "'%s' is not a number", f->name);
	p->at = end;
	t->at = f->at;
	t->size = (uint8_t)f->size;
	t->op = (uint8_t)op;
	t->flags = f->is_signed ? SF_TEST_SIGNED : 0;
	n->n = 1;
	return 0;
}

struct comparison {
	const char *text;
	enum sf_test_op op;
	bool negated;
};

static const struct comparison *parse_comparison(struct parser *p)
{
	static const struct comparison all[] = {
		{ "==", SF_TEST_EQ, false },  { "!=", SF_TEST_EQ, true },
		{ "<=", SF_TEST_MORE, true }, { ">=", SF_TEST_LESS, true },
		{ "<", SF_TEST_LESS, false }, { ">", SF_TEST_MORE, false },
		{ "&", SF_TEST_AND, false },  { "~", SF_TEST_EQ, false },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (skip(p, all[i].text))
			return &all[i];
	return NULL;
}

static int parse_leaf(struct parser *p)
{
	const struct tracepoint_field *f;
	const struct comparison *op;
	size_t len = 0;
	int node, err;

	skip(p, "");
	while (isalnum((unsigned char)p->at[len]) || p->at[len] == '_')
		len++;
	f = tracepoint_field(p->t, p->at, len);
	if (!f)
		return fail(p, "there is no field '%.*s'", (int)len, p->at);
	p->at += len;
	op = parse_comparison(p);
	node = op ? new_node(p, LEAF, 0, 0)
		  : fail(p, "no operator (== != < <= > >= & ~) follows '%s'", f->name);
	if (node < 0)
		return -1;
	skip(p, "");
	if (f->text && op->op != SF_TEST_EQ)
		return fail(p, "a text can be compared by ==, != and ~ only");
	err = f->text ? parse_text(p, f, &p->nodes[node], *op->text == '~')
		      : parse_number(p, f, &p->nodes[node], op->op);
	if (err)
		return -1;
	return op->negated ? new_node(p, NOT, node, 0) : node;
}

static int parse_unary(struct parser *p)
{
	int node;

	if (++p->depth > NODES)
		return fail(p, "it is too long");
	if (skip(p, "!")) {
		node = parse_unary(p);
		node = node < 0 ? node : new_node(p, NOT, node, 0);
	} else if (skip(p, "(")) {
		node = parse_or(p);
		if (node >= 0 && !skip(p, ")"))
			node = fail(p, "')' is missing");
	} else {
		node = parse_leaf(p);
	}
	p->depth--;
	return node;
}

/* Parts with an operator between them */
static int parse_parts(struct parser *p, int (*part)(struct parser *p), const char *token,
		       enum kind kind)
{
	int node = part(p);

	while (node >= 0 && skip(p, token)) {
		int right = part(p);

		node = right < 0 ? right : new_node(p, kind, node, right);
	}
	return node;
}

static int parse_and(struct parser *p)
{
	return parse_parts(p, parse_unary, "&&", AND);
}

static int parse_or(struct parser *p)
{
	return parse_parts(p, parse_and, "||", OR);
}

/* Writes the tests of a node from place `at` on. */
static void emit(const struct parser *p, int node, int at, int yes, int no,
		 struct sf_event_filter *ret)
{
	const struct node *n = &p->nodes[node];
	int middle = at + p->nodes[n->left].n;

	switch (n->kind) {
	case NOT:
		emit(p, n->left, at, no, yes, ret);
		return;
	case AND:
		emit(p, n->left, at, middle, no, ret);
		emit(p, n->right, middle, yes, no, ret);
		return;
	case OR:
		emit(p, n->left, at, yes, middle, ret);
		emit(p, n->right, middle, yes, no, ret);
		return;
	default:
		for (int i = 0; i < n->n; i++) {
			ret->tests[at + i] = n->tests[i];
			ret->tests[at + i].yes = (uint8_t)(i + 1 < n->n ? at + i + 1 : yes);
			ret->tests[at + i].no = (uint8_t)no;
		}
	}
}

int event_filter_compile(const struct tracepoint *t, const char *text, struct sf_event_filter *ret,
			 char *why, size_t cap)
{
	struct parser *p = calloc(1, sizeof(*p));
	int root = -1;

	*why = 0;
	*ret = (struct sf_event_filter){ 0 };
	if (!p)
		return -ENOMEM;
	p->t = t;
	p->at = text;
	p->why = why;
	p->cap = cap;
	root = parse_or(p);
	skip(p, "");
	if (root >= 0 && *p->at)
		root = fail(p, "'%.20s' is not expected", p->at);
	if (root >= 0 && p->nodes[root].n > SF_EVENT_TESTS)
		root = fail(p, "it has more than %d comparisons", SF_EVENT_TESTS);
	if (root >= 0)
		emit(p, root, 0, SF_TEST_PASS, SF_TEST_FAIL, ret);
	free(p);
	return root < 0 ? -EINVAL : 0;
}
