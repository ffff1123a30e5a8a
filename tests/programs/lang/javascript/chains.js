// SPDX-License-Identifier: BSD-2-Clause
// chains.js CASE SECONDS [NAME]: gets to a leaf by a known chain of calls and stays there. Prints
// the chain first: "CHAIN a;b;c", root to leaf, the functions of this file only. The thread is
// called NAME, or CASE.
'use strict';
const fs = require('fs');
const worker = require('worker_threads');

const [which, seconds, title] = worker.isMainThread ? process.argv.slice(2) : worker.workerData;
const end = Date.now() + 1000 * Number(seconds);
let sink = 0;

if (worker.isMainThread)
	process.title = title || which;

function announce(...names) {
	fs.writeSync(1, 'CHAIN ' + ['(anonymous)', ...names].join(';') + '\n');
}

function spin() {
	while (Date.now() < end)
		for (let i = 0; i < 20000; i++)
			sink = (sink * 31 + i) | 0;
}

function recurse(depth) {
	if (depth > 0)
		return recurse(depth - 1) + 1;
	spin();
	return 0;
}

class Shape {
	constructor(n) {
		this.n = n;
		if (n > 3)
			this.area();
	}

	area() {
		return Shape.measure(this);
	}

	static measure(shape) {
		spin();
		return shape.n;
	}
}

class Circle extends Shape {
	area() {
		return super.area();
	}
}

class Field {
	n = spin();
}

function staticBlock() {
	return class {
		static {
			new Field();
		}
	};
}

function* generate() {
	yield 1;
	spin();
	yield 2;
}

function drain(it) {
	let sum = 0;
	for (const v of it)
		sum += v;
	return sum;
}

async function later() {
	await null;
	spin();
}

function outer() {
	const inferred = () => {
		const deeper = function () {
			spin();
		};
		deeper();
	};
	inferred();
}

const held = {
	method() {
		spin();
	},
	get value() {
		this.method();
		return 1;
	},
};

/* Names that the program computes */
const word = 'word';
class Computed {
	*[Symbol.iterator]() {
		yield this[word + 's']();
	}

	[word + 's']() {
		return `${this}`;
	}

	[Symbol.toPrimitive]() {
		return Object.prototype.toString.call(this);
	}

	get [Symbol.toStringTag]() {
		spin();
		return word;
	}
}

/* Hot code: called often enough for each compiler. The caller says when to stop. */
function hotLeaf(n) {
	let s = n;
	for (let i = 0; i < 3000; i++)
		s = (s * 31 + i) | 0;
	return s;
}

function hotMiddle(n) {
	let s = 0;
	for (let i = 0; i < 30; i++)
		s ^= hotLeaf(n + i);
	return s;
}

function hotTop() {
	while (Date.now() < end)
		for (let i = 0; i < 100; i++)
			sink ^= hotMiddle(i);
}

/* Functions that compilers inline: methods, closures and callbacks. */
class Cell {
	constructor(n) {
		this.n = n;
	}

	weigh(by) {
		const fold = from => {
			let s = from;
			for (let i = 0; i < 2000; i++)
				s = (s * 31 + i * by) | 0;
			return s;
		};
		return fold(this.n) + 1;
	}
}

function inlinedMiddle(cell, n) {
	return cell.weigh(n) ^ n;
}

function inlinedTop() {
	const cells = [new Cell(1), new Cell(2), new Cell(3)];
	while (Date.now() < end)
		for (let i = 0; i < 100; i++)
			cells.forEach(function visit(cell) {
				sink ^= inlinedMiddle(cell, i);
			});
}

/* A recursion, of which some levels are inlined in others. */
function nest(depth, n) {
	return depth ? nest(depth - 1, n + 1) + 1 : hotLeaf(n);
}

function nestTop() {
	while (Date.now() < end)
		for (let i = 0; i < 100; i++)
			sink ^= nest(12, i);
}

/* Calls whose arguments take long code, before jumps back: they are not those of rare cases. */
function slowLeaf(n) {
	for (let i = 0; i < 200000; i++)
		sink = (sink * 31 + i) | 0;
	return n;
}

function mutual(n) {
	const even = m => m ? odd(m - 1) : slowLeaf(n);
	const odd = m => m ? even(m - 1) : slowLeaf(m);
	return even(n);
}

function mutualTop() {
	while (Date.now() < end)
		mutual(9);
}

function product(n) {
	return n > 1n ? n * product(n - 1n) : slowLeaf(1n);
}

function productTop() {
	while (Date.now() < end)
		product(8n);
}

/* A loop that is unrolled: the copies of its call have one position. */
const trapped = new Proxy({}, {
	get(target, key) {
		return slowLeaf(key.length);
	}
});
const reader = {
	read() {
		return trapped.x;
	}
};

function unrolledTop(read) {
	for (;;)
		read();
}

/* Inlined functions that call builtins without a frame. */
const copies = [0, 1].map(() => JSON.parse('"' + 'k'.repeat(500) + '"'));
const objects = Array.from({ length: 200 }, (_, i) => ({ i, a: null, b: null }));

function frameless(n) {
	let s = n;
	for (let i = 0; i < 50; i++)
		s += (copies[0] === copies[1]) + objects.indexOf(copies);
	return s;
}

function framelessMiddle(n) {
	return frameless(n) + 1;
}

function framelessTop() {
	while (Date.now() < end)
		for (let i = 0; i < 100; i++)
			sink ^= framelessMiddle(i);
}

/* Young objects in old ones: the write barriers are at the end of the optimised code. */
let young;

function barrier(to, from) {
	for (let i = 0; i < 10; i++) {
		to.a = from;
		to.b = from;
	}
}

function barrierMiddle(n) {
	barrier(objects[n & 127], young[n & 63]);
}

function barrierTop() {
	while (Date.now() < end)
		for (let i = 0; i < 10000; i++)
			barrierMiddle(i);
}

/* The collector moves the old ones first. */
function barrierBegin() {
	const until = Date.now() + 300;
	let waste = [];
	while (Date.now() < until)
		waste = waste.length < 10000 ? waste.concat([waste.length]) : [];
	young = objects.map(({ i }) => ({ i }));
	sink ^= waste.length;
}

function garbage() {
	let keep = [];
	while (Date.now() < end) {
		for (let i = 0; i < 1000; i++)
			keep.push({ i, text: 'x' + i, more: [i, i + 1] });
		if (keep.length > 200000)
			keep = keep.slice(150000);
	}
	sink += keep.length;
}

function match() {
	const text = 'ab'.repeat(2000) + 'c';
	while (Date.now() < end)
		for (let i = 0; i < 20; i++)
			sink += /(a|b)*?d/.test(text) ? 1 : 0;
}

function block() {
	const word = new Int32Array(new SharedArrayBuffer(4));
	while (Date.now() < end)
		Atomics.wait(word, 0, 0, 50);
}

function many() {
	/* Enough variables that their names are in a table. */
	const names = Array.from({ length: 100 }, (_, i) => 'v' + i);
	const make = new Function('spin', `${names.map(n => `let ${n} = 1;`).join('')}
		return function crowded() { spin(); return () => [${names}]; };`);
	make(spin)();
}

function main() {
	switch (which) {
	case 'recurse':
		announce('main', ...Array(61).fill('recurse'), 'spin');
		return recurse(60);
	case 'sort':
		announce('main', 'compare', 'spin');
		return [3, 1, 2].sort(function compare(a, b) {
			spin();
			return a - b;
		});
	case 'reviver':
		announce('main', 'revive', 'spin');
		return JSON.parse('{"a":[1,2]}', function revive(k, v) {
			spin();
			return v;
		});
	case 'classes':
		announce('main', 'Circle', 'Shape', 'area', 'area', 'measure', 'spin');
		return new Circle(5);
	case 'fields':
		announce('main', 'staticBlock', '<static_initializer>', 'Field',
			'<instance_members_initializer>', 'spin');
		return staticBlock();
	case 'closures':
		announce('main', 'outer', 'inferred', 'deeper', 'spin');
		return outer();
	case 'callbacks':
		announce('main', 'each', 'mapper', 'reducer', 'spin');
		return [1].forEach(function each(x) {
			return [x].map(function mapper(y) {
				return [y, 2].reduce(function reducer() {
					spin();
				});
			});
		});
	case 'generator':
		announce('main', 'drain', 'generate', 'spin');
		return drain(generate());
	case 'computed':
		announce('main', 'drain', '[Symbol.iterator]', 'words', '[Symbol.toPrimitive]',
			'get [Symbol.toStringTag]', 'spin');
		return drain(new Computed());
	case 'accessor':
		announce('main', 'get value', 'method', 'spin');
		return held.value;
	case 'replace':
		announce('main', 'replacer', 'spin');
		return 'abc'.replace(/b/, function replacer() {
			spin();
			return '';
		});
	case 'apply':
		announce('main', 'spin');
		return Reflect.apply(spin.bind(null), null, []);
	case 'hot':
		announce('main', 'hotTop', 'hotMiddle', 'hotLeaf');
		return hotTop();
	case 'inlined':
		announce('main', 'inlinedTop', 'visit', 'inlinedMiddle', 'weigh', 'fold');
		return inlinedTop();
	case 'nested':
		announce('main', 'nestTop', ...Array(13).fill('nest'), 'hotLeaf');
		return nestTop();
	case 'mutual':
		announce('main', 'mutualTop', 'mutual', ...Array(5).fill(['even', 'odd']).flat(),
			'slowLeaf');
		return mutualTop();
	case 'product':
		announce('main', 'productTop', ...Array(8).fill('product'), 'slowLeaf');
		return productTop();
	case 'unrolled':
		announce('main', 'unrolledTop', 'read', 'get', 'slowLeaf');
		return unrolledTop(reader.read);
	case 'frameless':
		announce('main', 'framelessTop', 'framelessMiddle', 'frameless');
		return framelessTop();
	case 'barrier':
		barrierBegin();
		announce('main', 'barrierTop', 'barrierMiddle', 'barrier');
		return barrierTop();
	case 'garbage':
		announce('main', 'garbage');
		return garbage();
	case 'regexp':
		announce('main', 'match');
		return match();
	case 'wait':
		announce('main', 'block');
		return block();
	default:
		throw new Error(which);
	}
}

/* Those that begin with a stack of their own. */
const roots = {
	async() {
		fs.writeSync(1, 'CHAIN later;spin\n');
		later();
	},
	timer() {
		fs.writeSync(1, 'CHAIN tick;spin\n');
		setTimeout(function tick() {
			spin();
		}, 1);
	},
	many() {
		fs.writeSync(1, 'CHAIN (anonymous);many;spin\n');
		return 0;
	},
	worker() {
		new worker.Worker(__filename, { workerData: ['recurse', seconds] });
	},
};

if (which === 'many')
	roots.many(), many();
else if (roots[which])
	roots[which]();
else
	main();
