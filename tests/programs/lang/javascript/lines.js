// SPDX-License-Identifier: BSD-2-Clause
// A chain whose calls are on lines of their own, for the positions of bytecode.
'use strict';

const end = Date.now() + 1000 * Number(process.argv[2]);

function leaf() {
	let x = 0;

	while (x >= 0) {
		x = (x * 31 + 1) & 0xffff;
		if (Date.now() >=
			end)
			break;
	}
	return x;
}

function middle(n) {
	if (n)
		return 1 +
			middle(n - 1);
	const sum = 1;
	return sum +
		leaf();
}

function first() {
	return [1, 2].map(
		function each(x) {
			return x + // not the line of the call

				middle(2);
		});
}

if (end > 0)
	first();
