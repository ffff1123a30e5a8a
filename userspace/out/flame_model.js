/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The profile and what is derived from it: data, merged views, colours, numbers. flame.html
 * contains this file, then flame_strip.js and flame_view.js.
 */
'use strict';
/*
 * Names in the data are foreign bytes. They are put on the page only as textContent and as canvas
 * text.
 */
const started = performance.now();
const $ = id => document.getElementById(id);
const D = JSON.parse($('data').textContent);
const M = D.meta, S = D.strings, DIFF = M.before !== null;
const USER = 0, KERNEL = 1, INLINED = 2, JIT = 3, NOTE = 4, NONAME = 5, GROUP = 6, LANGUAGE = 7;
/*
 * Name, module, names without a module (folded), hue, saturation in dark and in light colours.
 * out_svg.c has the same colours.
 */
const LANGUAGES = [
	['Python', '[python]', /\.py(:\d+)?\)$/, 48, 62, 86],
	['Java', '[java]', /\.java:\d+\)$/, 245, 36, 60],
	['Ruby', '[ruby]', /\.rb(:\d+)?\)$/, 352, 46, 64],
	['JavaScript', '[javascript]', /\.[cm]?js(:\d+)?\)$/, 64, 50, 70],
	['PHP', '[php]', /\.(php|inc|phtml)(:\d+)?\)$/, 286, 40, 58],
	['Perl', '[perl]', /\.(pl|pm|t)(:\d+)?\)$/, 172, 40, 58],
];
const KINDS = ['user', 'kernel', 'inlined', 'JIT', 'incomplete', 'no symbol',
	'process, thread, state', ...LANGUAGES.map(l => l[0])];
const SUFFIX = ['', '_[k]', '_[i]', '_[j]'];

/* ---- The data ---- */

function digits(text) {
	const value = new Uint8Array(128);
	[...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'].forEach((c, i) => {
		value[c.charCodeAt(0)] = i;
	});
	let at = 0;
	return () => {
		let v = 0, unit = 1, d;
		do {
			d = value[text.charCodeAt(at++) & 127];
			v += (d & 31) * unit;
			unit *= 32;
		} while (d & 32 && at < text.length);
		return v;
	};
}

/* Frames: name, module, kind. Display ids from NF on are groups: NF + key. */
let next = digits(D.frames);
const NF = next();
const fname = new Int32Array(NF), fmod = new Int32Array(NF), fkind = new Uint8Array(NF);
for (let i = 0; i < NF; i++) {
	fname[i] = next();
	fmod[i] = next();
	fkind[i] = next();
	const lang = fkind[i] !== USER ? -1 :
		LANGUAGES.findIndex(l => S[fmod[i]] === l[1] || l[2].test(S[fname[i]]));
	if (lang >= 0)
		fkind[i] = LANGUAGE + lang;
	else if (fkind[i] === USER && S[fname[i]].startsWith('[') && S[fname[i]] !== '[vdso]')
		fkind[i] = NONAME;
	else if (fkind[i] === NOTE && !S[fname[i]].startsWith('[incomplete:'))
		fkind[i] = GROUP;	/* off-CPU: a state, or a waker's name */
}

/* By frame, whether its change is real; null: unknown */
const REAL = D.real ? new Uint8Array(NF) : null;
if (REAL) {
	next = digits(D.real);
	for (let i = 0; i < NF; i++)
		REAL[i] = next();
}

/* The trie in preorder: a node's descendants follow it. */
const NN = D.nodes, NL = D.leaves;
const parent = new Int32Array(NN), frame = new Int32Array(NN);
const leafNode = new Int32Array(NL), leafGroup = new Int32Array(NL);
const leafValue = [new Float64Array(NL), new Float64Array(DIFF ? NL : 0)];
{
	let node = 0, used = 1;
	next = digits(D.tree);
	for (let leaf = 0; leaf < NL;) {
		for (let up = next(); up; up--)
			node = parent[node];
		for (let down = next(); down; down--) {
			parent[used] = node;
			frame[used] = next();
			node = used++;
		}
		for (let n = next(); n; n--, leaf++) {
			leafNode[leaf] = node;
			leafGroup[leaf] = next();
			leafValue[0][leaf] = next();
			if (DIFF)
				leafValue[1][leaf] = next();
		}
	}
	D.tree = D.frames = null;
}

/*
 * Times: T.slice and T.count from T.first[l] on are the slices of leaf l, and its value in each. A
 * value says where its cells end. null: unknown
 */
const T = D.times && !DIFF ? readTimes(D.times) : null;

function readTimes({ slices, width, cells }) {
	const first = new Int32Array(NL + 1), slice = [], count = [];
	next = digits(cells);
	for (let l = 0; l < NL; l++) {
		for (let rest = leafValue[0][l], at = 0; rest > 0;) {
			slice.push(at += next());
			count.push(rest > 1 ? next() : 1);
			rest -= count[count.length - 1];
		}
		first[l + 1] = slice.length;
	}
	D.times = null;
	return { slices, width, first, slice, count };
}

/* Wall clock: leaves that wait for work to arrive. They are left out until they are asked for. */
const idle = new Uint8Array(NN);
const allValue = leafValue.map(values => values.slice());
for (let n = 1; n < NN; n++)
	idle[n] = idle[parent[n]] ||
		(fkind[frame[n]] === GROUP && S[fname[frame[n]]].startsWith('[idle: '));
const TOTAL = [0, 0];
let hasIdle = leafNode.some(n => idle[n]), idleHidden = true;
const leafHidden = l => idleHidden && idle[leafNode[l]];

/* focus: the frame in the middle of the sandwich view; -1: another view. to 0: no range of time */
const state = {
	group: 'comm', callers: false, idle: false, flip: false,
	sort: 'value', colour: 'kind', side: 0, layout: 'both',
	zoom: 0, focus: -1, cursor: -1, search: '', from: 0, to: 0,
};

/* The values of leaves, without hidden ones and without samples outside of the range of time. */
function revalue() {
	leafValue.forEach((values, side) => {
		values.set(allValue[side]);
		for (let l = 0; state.to && l < NL; l++) {
			values[l] = 0;
			for (let c = T.first[l]; c < T.first[l + 1]; c++)
				if (T.slice[c] >= state.from && T.slice[c] < state.to)
					values[l] += T.count[c];
		}
		for (let l = 0; l < values.length; l++)
			if (leafHidden(l))
				values[l] = 0;
		TOTAL[side] = values.reduce((a, b) => a + b, 0);
	});
}
revalue();
if (hasIdle && !TOTAL[0] && !TOTAL[1]) {	/* there is nothing else */
	hasIdle = idleHidden = false;
	revalue();
}

const hasPids = !DIFF && D.groups.some((v, i) => i & 1 && v);

/* Groups are (comm, pid); a view merges them by one of the two. */
function groupKeys(by) {
	const n = D.groups.length / 2, key = new Int32Array(n);
	const names = [], index = new Map(), weight = new Float64Array(n);
	for (let l = 0; l < NL; l++)
		weight[leafGroup[l]] += leafValue[0][l] + (DIFF ? leafValue[1][l] : 0);
	const best = [];
	for (let g = 0; g < n; g++) {
		const comm = D.groups[2 * g], pid = D.groups[2 * g + 1];
		const what = by === 'comm' ? comm : pid;
		if (!index.has(what)) {
			index.set(what, names.length);
			best.push(-1);
			names.push('');
		}
		const k = key[g] = index.get(what);
		if (weight[g] > best[k]) {
			best[k] = weight[g];
			names[k] = S[comm] + (by !== 'comm' && pid ? ' (' + pid + ')' : '');
		}
	}
	return { key, names };
}

/* ---- Views: the drawn trees. Node 0 is the root. ---- */

let V;			/* the view */
let G = null;		/* its groups, or null */

function label(id) { return id < 0 ? 'all' : id < NF ? S[fname[id]] : G.names[id - NF]; }
function kind(id) { return id < 0 || id >= NF ? GROUP : fkind[id]; }
function fullName(id) {
	return id >= 0 && id < NF ? S[fname[id]] + (SUFFIX[fkind[id]] || '') : label(id);
}
function moduleOf(id) { return id >= 0 && id < NF ? S[fmod[id]] : ''; }

/* Leaves in the order of their group's key, so that each group can be built separately. */
function leavesByKey() {
	const order = new Int32Array(NL);
	if (!G) {
		for (let l = 0; l < NL; l++)
			order[l] = l;
		return order;
	}
	const start = new Int32Array(G.names.length + 1);
	for (let l = 0; l < NL; l++)
		start[G.key[leafGroup[l]] + 1]++;
	for (let k = 0; k < G.names.length; k++)
		start[k + 1] += start[k];
	for (let l = 0; l < NL; l++)
		order[start[G.key[leafGroup[l]]]++] = l;
	return order;
}

/* Nodes under construction: parent and display id of each. */
class Nodes {
	constructor(room) {
		this.parent = new Int32Array(room);
		this.id = new Int32Array(room);
		this.parent[0] = this.id[0] = -1;
		this.n = 1;
		this.table = null;
	}
	add(p, id) {
		if (this.n === this.parent.length)
			for (const key of ['parent', 'id']) {
				const more = new Int32Array(this.n * 2);
				more.set(this[key]);
				this[key] = more;
			}
		this.parent[this.n] = p;
		this.id[this.n] = id;
		return this.n++;
	}
	/* Looks up a node by (parent, id) and creates it if needed. */
	child(p, id) {
		if (!this.table || this.n * 2 > this.table.length)
			this.rehash();
		let h = hash(p, id) & this.mask;
		for (let v; (v = this.table[h]); h = (h + 1) & this.mask)
			if (this.parent[v] === p && this.id[v] === id)
				return v;
		return this.table[h] = this.add(p, id);
	}
	rehash() {
		this.table = new Int32Array(this.table ? this.table.length * 4 : 1 << 16);
		this.mask = this.table.length - 1;
		for (let v = 1; v < this.n; v++) {
			let h = hash(this.parent[v], this.id[v]) & this.mask;
			while (this.table[h])
				h = (h + 1) & this.mask;
			this.table[h] = v;
		}
	}
}

function hash(p, id) {
	let h = Math.imul(p + 1, 0x9e3779b1) ^ Math.imul(id + 2, 0x85ebca6b);
	h ^= h >>> 15;
	h = Math.imul(h, 0x2c1b3c6d);
	return h ^ h >>> 13;
}

function buildView() {
	G = state.group === 'all' ? null : groupKeys(state.group);
	const nodes = new Nodes(NN + 1024), order = leavesByKey();
	const at = new Int32Array(NL);		/* the node that gets a leaf's value */
	const place = state.callers ? callersPlacer(nodes) : rootsPlacer(nodes);
	let top = 0, current = -1;
	for (let i = 0; i < NL; i++) {
		const l = order[i], key = G ? G.key[leafGroup[l]] : 0;
		if (!leafValue[0][l] && !(DIFF && leafValue[1][l]))
			continue;
		if (G && key !== current)
			top = nodes.add(0, NF + key);
		current = key;
		at[l] = place(leafNode[l], top, key);
	}
	V = finishView(nodes, at);
}

/*
 * The stacks through a frame: node 1 is the frame with what it called, node 2 the frame with what
 * called it. A recursive frame counts once per stack, at its outermost call.
 */
function buildSandwich(f) {
	G = state.group === 'all' ? null : groupKeys(state.group);
	const nodes = new Nodes(1024), path = new Int32Array(65536);
	const down = new Int32Array(NL), up = new Int32Array(NL);
	nodes.add(0, f);
	nodes.add(0, f);
	for (let l = 0; l < NL; l++) {
		let n = 0, k = -1;
		for (let i = leafNode[l]; i; i = parent[i]) {
			if (frame[i] === f)
				k = n;
			path[n++] = frame[i];
		}
		if (k < 0 || !(leafValue[0][l] || (DIFF && leafValue[1][l])))
			continue;
		let v = 1;
		for (let i = k - 1; i >= 0; i--)
			v = nodes.child(v, path[i]);
		down[l] = v;
		v = 2;
		for (let i = k + 1; i < n; i++)
			v = nodes.child(v, path[i]);
		up[l] = G ? nodes.child(v, NF + G.key[leafGroup[l]]) : v;
	}
	V = finishView(nodes, down, up);
}

/* Leaves of a key are in the trie's preorder, so the new nodes are in preorder too. */
function rootsPlacer(nodes) {
	const seen = new Int32Array(NN).fill(-1), made = new Int32Array(NN);
	const path = new Int32Array(65536);
	return (n, top, key) => {
		let d = 0, v = top;
		for (; n && seen[n] !== key; n = parent[n])
			path[d++] = n;
		if (n)
			v = made[n];
		while (d--) {
			v = nodes.add(v, frame[path[d]]);
			seen[path[d]] = key;
			made[path[d]] = v;
		}
		return v;
	};
}

/* The same callers are reached from several leaves, so existing nodes are looked up. */
function callersPlacer(nodes) {
	return (n, top) => {
		let v = top;
		for (; n; n = parent[n])
			v = nodes.child(v, frame[n]);
		return v;
	};
}

/* places: by leaf, the node that gets its value, once for each tree in nodes */
function finishView(nodes, ...places) {
	const n = nodes.n, v = { n, parent: nodes.parent, id: nodes.id, self: [], total: [] };
	for (let side = 0; side < (DIFF ? 2 : 1); side++) {
		const self = new Float64Array(n);
		for (const at of places)
			for (let l = 0; l < NL; l++)
				self[at[l]] += leafValue[side][l];
		const total = self.slice();
		for (let i = n - 1; i > 0; i--)
			total[v.parent[i]] += total[i];
		v.self.push(self);
		v.total.push(total);
	}
	v.first = new Int32Array(n + 1);
	for (let i = 1; i < n; i++)
		v.first[v.parent[i] + 1]++;
	for (let i = 0; i < n; i++)
		v.first[i + 1] += v.first[i];
	const fill = v.first.slice();
	v.child = new Int32Array(n);
	for (let i = 1; i < n; i++)
		v.child[fill[v.parent[i]]++] = i;
	v.sorted = new Uint8Array(n);
	return v;
}

/* The children of a node, sorted on first use. */
function children(i) {
	const list = V.child.subarray(V.first[i], V.first[i + 1]);
	if (!V.sorted[i] && list.length > 1) {
		const w = V.total[state.side];
		if (state.sort === 'name')
			list.sort((a, b) => {
				const x = label(V.id[a]), y = label(V.id[b]);
				return x < y ? -1 : x > y ? 1 : a - b;
			});
		else
			list.sort((a, b) => w[b] - w[a] || a - b);
		V.sorted[i] = 1;
	}
	return list;
}

/* ---- Colours ---- */

const dark = matchMedia('(prefers-color-scheme: dark)');
let printing = false, colours = [];

function textHash(s) {
	let h = 2166136261;
	for (let i = 0; i < s.length; i++)
		h = Math.imul(h ^ s.charCodeAt(i), 16777619);
	return ((h ^ h >>> 15) >>> 0) / 4294967296;
}

/*
 * Hue and saturation show the kind. Shades distinguish neighbours: the hue varies by module, the
 * lightness by name.
 */
function kindColour(k, byModule, byName) {
	const d = dark.matches && !printing;
	const l = (light, night, span) => (d ? night : light) + (byName - .5) * span;
	if (state.colour === 'module' && k !== NOTE && k !== GROUP)
		return [byModule * 1440 % 360, d ? 38 : 60, l(75, 38, 7)];
	switch (k) {
	/* Yellow is brighter than red. */
	case USER: return [18 + byModule * 30, d ? 58 : 88, l(69, 39 - byModule * 9, 8)];
	case KERNEL: return [208 + byModule * 16, d ? 42 : 62, l(75, 40, 7)];
	case INLINED: return [168 + byModule * 14, d ? 38 : 46, l(70, 32, 7)];
	case JIT: return [92 + byModule * 24, d ? 36 : 50, l(69, 31, 7)];
	case NOTE: return [345, d ? 30 : 52, l(83, 37, 2)];
	case NONAME: return [40, d ? 14 : 24, l(79, 36, 6)];
	case GROUP: return [40, d ? 3 : 6, l(86, 27, 3)];
	default: {
		const [, , , hue, dark, light] = LANGUAGES[k - LANGUAGE];
		return [hue + byName * 8, d ? dark : light, l(66, 36, 8)];
	}
	}
}

/* What a thread of the wall clock did: hue, saturation, lightness by day and by night */
const STATES = [
	['[running]', 128, 40, 70, 32],
	['[runnable]', 44, 85, 66, 36],
	['[blocked: ', 280, 36, 79, 38],
];

function frameColour(id, byModule, byName) {
	const k = kind(id), state = k === GROUP && STATES.find(s => label(id).startsWith(s[0]));
	if (!state)
		return kindColour(k, byModule, byName);
	return [state[1], state[2], dark.matches && !printing ? state[4] : state[3]];
}

/*
 * Red: more than before, blue: less. The change as a part of all before, on a logarithmic scale
 * that shows a tenth of a percent.
 */
function diffColour(delta) {
	const d = dark.matches && !printing;
	const much = Math.min(1, Math.log1p(Math.abs(delta) * 400) / Math.log1p(40));
	if (much < .02)
		return d ? '#3a3c40' : '#e9e7e2';
	return d ? `hsl(${delta > 0 ? 4 : 214} ${30 + 45 * much}% ${25 + 21 * much}%)` :
		`hsl(${delta > 0 ? 6 : 214} ${60 + 25 * much}% ${90 - 25 * much}%)`;
}

/* Whether the change of a frame may be chance */
function isChance(id) { return REAL && id >= 0 && id < NF && !REAL[id]; }

function colour(node) {
	const id = V.id[node];
	if (DIFF)
		return diffColour(isChance(id) ? 0 : share(node, 0) - share(node, 1));
	if (!colours[id + 1]) {
		const name = textHash(label(id)), mod = moduleOf(id);
		const [h, s, l] = frameColour(id, mod ? textHash(mod) : name * 7 % 1, name);
		colours[id + 1] = `hsl(${h.toFixed(0)} ${s}% ${l.toFixed(1)}%)`;
	}
	return colours[id + 1];
}

/* ---- Numbers ---- */

/* A part of all; in a comparison of all before, in the unit of the verdict */
function per(v, side) {
	return TOTAL[side] ? v / TOTAL[side] * (DIFF && !side ? M.ratio : 1) : 0;
}
function share(node, side) { return per(V.total[side][node], side); }
function percent(x) { return (100 * x).toFixed(2) + ' %'; }
function points(x) {
	return (x > 5e-5 ? '+' : x < -5e-5 ? '\u2212' : '') + Math.abs(100 * x).toFixed(2);
}
function seconds(s) {
	return s >= 100 ? s.toFixed(0) + ' s' :
		s >= 1 ? s.toFixed(2) + ' s' :
		s >= 1e-3 ? (s * 1e3).toFixed(1) + ' ms' :
		(s * 1e6).toFixed(1) + ' µs';
}
function grouped(n) { return Math.round(n).toString().replace(/\B(?=(\d{3})+$)/g, '\u2009'); }
function bytes(n) {
	return n < 1e3 ? n + ' B' :
		n < 1e6 ? (n / 1e3).toFixed(1) + ' kB' :
		n < 1e9 ? (n / 1e6).toFixed(2) + ' MB' :
		(n / 1e9).toFixed(2) + ' GB';
}
function amount(v) {
	if (M.unit === 'nanoseconds')
		return seconds(v / 1e9);
	if (M.unit === 'microseconds')
		return seconds(v / 1e6);
	if (M.unit === 'bytes')
		return bytes(v);
	return grouped(v) + (M.unit === 'count' ? '' : v === 1 ? ' sample' : ' samples');
}
function amountLong(v) {
	return amount(v) + (M.hz && M.unit === 'samples' ? ' (' + seconds(v / M.hz) + ' CPU)' : '');
}
function short(v) {
	if (M.unit !== 'samples' && M.unit !== 'count')
		return amount(v);
	return v < 1e6 ? grouped(v) :
		v < 1e9 ? (v / 1e6).toFixed(2) + ' M' :
		(v / 1e9).toFixed(2) + ' G';
}
