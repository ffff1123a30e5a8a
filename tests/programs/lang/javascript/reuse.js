// SPDX-License-Identifier: BSD-2-Clause
// reuse.js SECONDS: makes functions top_K, mid_K and leaf_K, runs them for 30 ms so that they are
// optimised into one, drops them and goes on with the next K. Their memory is used again.
'use strict';
const end = Date.now() + 1000 * Number(process.argv[2]);
let sink = 0;

for (let k = 0; Date.now() < end; k++) {
	const make = new Function(`
		function leaf_${k}(n) {
			let s = n;
			for (let i = 0; i < 1000; i++)
				s = (s * 31 + i) | 0;
			return s;
		}
		function mid_${k}(n) {
			let s = 0;
			for (let i = 0; i < 10; i++)
				s ^= leaf_${k}(n + i);
			return s;
		}
		return function top_${k}() {
			const end = Date.now() + 30;
			let s = 0;
			while (Date.now() < end)
				for (let i = 0; i < 20; i++)
					s ^= mid_${k}(i);
			return s;
		};`);
	sink ^= make()();
	if (k % 5 === 0)
		globalThis.gc();
}
