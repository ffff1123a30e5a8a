/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * php_embed: runs PHP in a shared library, as FrankenPHP and Apache's module do. The library's
 * header files are not needed for this.
 */
int php_embed_init(int argc, char **argv);
int zend_eval_string(const char *code, void *result, const char *name);

/* As the program uses the variable, it has a copy of it, in place of the library's own. */
extern volatile char executor_globals[];

int main(void)
{
	static char name[] = "php_embed";
	char *argv[] = { name, 0 };

	php_embed_init(1, argv);
	executor_globals[0] = executor_globals[0];
	return zend_eval_string("function emb_leaf() { $x = 0;"
				"	for ($i = 0; $i < 100000; $i++) $x += $i; return $x; }"
				"function emb_mid() { return emb_leaf() + 1; }"
				"$end = time() + 60; while (time() < $end) emb_mid();",
				0, "embedded");
}
