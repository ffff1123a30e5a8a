/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/json.h"

#include <math.h>
#include <stdlib.h>

#include "test.h"

TEST(json_nests_and_separates)
{
	char *out = NULL;
	size_t len;
	FILE *f = open_memstream(&out, &len);
	struct json j = json_on(f);

	json_object(&j, NULL);
	json_u64(&j, "a", UINT64_MAX);
	json_array(&j, "b");
	json_i64(&j, NULL, -5);
	json_object(&j, NULL);
	json_object_end(&j);
	json_array(&j, NULL);
	json_array_end(&j);
	json_bool(&j, NULL, true);
	json_array_end(&j);
	json_str(&j, "c", NULL);
	json_double(&j, "d", 1.2345, 2);
	json_double(&j, "e", -0.5, 3);
	json_double(&j, "f", NAN, 3);
	json_double(&j, "g", 0.999, 2);
	json_double(&j, "h", 1e300, 2);
	json_double(&j, "i", 7, 0);
	json_object_end(&j);
	fclose(f);
	EXPECT(out && strncmp(out,
			      "{\"a\":18446744073709551615,\"b\":[-5,{},[],true],\"c\":null,"
			      "\"d\":1.23,\"e\":-0.500,\"f\":null,\"g\":1.00,\"h\":1000",
			      90) == 0);
	EXPECT(out && strstr(out, ",\"i\":7}"));
	free(out);
}

TEST(json_escapes)
{
	static const struct {
		const char *in, *want;
	} cases[] = {
		{ "a\"b\\c", "\"a\\\"b\\\\c\"" },   { "\x1b\n\t\x7f", "\"\\u001b\\n\\t\\u007f\"" },
		{ "</script>", "\"<\\/script>\"" }, { "a/b", "\"a/b\"" },
		{ "\xc3\xa9", "\"\xc3\xa9\"" },	    { "\xff\xc0\xaf", "\"\\ufffd\\ufffd\\ufffd\"" },
		{ "\xe2\x80\xa8", "\"\\u2028\"" },  { "", "\"\"" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *out = NULL;
		size_t len;
		FILE *f = open_memstream(&out, &len);
		struct json j = json_on(f);

		json_str(&j, NULL, cases[i].in);
		fclose(f);
		EXPECT_STR(out, cases[i].want);
		free(out);
	}
}
