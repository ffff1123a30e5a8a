// SPDX-License-Identifier: BSD-2-Clause
// texts.js WAY SECONDS: functions of scripts whose text is put together or cut out, or of many
// scripts that are all met in one sample. The thread is called WAY.
'use strict';
const vm = require('vm');

const [way, seconds] = process.argv.slice(2);
globalThis.end = Date.now() + 1000 * Number(seconds);
globalThis.sink = 0;
process.title = way;

const body = `
function leaf(n) {
	let s = n;
	for (let i = 0; i < 3000; i++) s = (s * 31 + i) | 0;
	return s;
}

function top() {
	while (Date.now() < end)
		for (let i = 0; i < 100; i++) sink ^= leaf(i);
}
top();
`;
const header = '// Longer than the strings that V8 copies rather than cuts\n';

if (way === 'many') {
	const leaf = body.slice(body.indexOf('f'), body.indexOf('\n\n'));
	globalThis.step0 = vm.runInThisContext(`(${leaf})`);
	for (let i = 1; i <= 12; i++) {
		const text = `(function step${i}(n) {\n\n\treturn step${i - 1}(n) + 1;\n})`;
		globalThis[`step${i}`] = (0, eval)(text);
	}
	while (Date.now() < end)
		sink ^= step12(1);
} else {
	let text = '(function () {' + body + '})();';
	if (way === 'cut')
		text = (header + text).slice(header.length);
	new vm.Script(text, { filename: 'text.js' }).runInThisContext();
}
