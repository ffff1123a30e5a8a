/* SPDX-License-Identifier: BSD-2-Clause */
/* The profile on the screen: boxes, table, search, mouse and keys. */
/* ---- Layout: rows of boxes, as many as are wide enough to be seen ---- */

const ROW = 19, MIN = .7;
let rows = [], width = 0, height = 0, viewHeight = 0;

function layout() {
	const w = V.total[state.side], chain = [];
	rows = [];
	if (state.focus >= 0) {
		place(2, 0, width, 0, w);
		const callers = rows.slice(1).reverse();
		rows = [];
		place(1, 0, width, 0, w);
		rows = callers.concat(rows);
		fitHeight();
		return;
	}
	for (let p = V.parent[state.zoom]; p >= 0; p = V.parent[p])
		chain.unshift(p);
	chain.forEach((p, d) => { rows[d] = { x: [0], w: [width], node: [p] }; });
	place(state.zoom, 0, width, chain.length, w);
	fitHeight();
}

function fitHeight() {
	viewHeight = $('scroll').clientHeight;
	height = Math.max(rows.length * ROW + 2, printing ? 0 : viewHeight);
	$('space').style.height = height + 'px';
}

function place(i, x, wide, depth, w) {
	const row = rows[depth] || (rows[depth] = { x: [], w: [], node: [] });
	row.x.push(x);
	row.w.push(wide);
	row.node.push(i);
	if (!w[i])
		return;
	const list = children(i), unit = wide / w[i];
	let rest = 0;
	for (let k = 0; k < list.length; k++) {
		const c = list[k], cw = w[c] * unit;
		if (cw >= MIN) {
			if (rest)
				crumbs(x - rest, rest, depth + 1);
			rest = 0;
			place(c, x, cw, depth + 1, w);
		} else {
			rest += cw;
		}
		x += cw;
	}
	if (rest)
		crumbs(x - rest, rest, depth + 1);
}

/* A run of boxes that are too narrow to be drawn one by one; together they may be wide. */
function crumbs(x, wide, depth) {
	if (wide < MIN)
		return;
	const row = rows[depth] || (rows[depth] = { x: [], w: [], node: [] });
	row.x.push(x);
	row.w.push(wide);
	row.node.push(-1);
}

function rowTop(d) { return state.flip ? d * ROW + 1 : height - (d + 1) * ROW - 1; }

const canvas = $('canvas'), ctx = canvas.getContext('2d');

function paint() {
	const scale = printing ? 2 : window.devicePixelRatio || 1;
	const tall = printing ? Math.min(height, 8000) : viewHeight;
	const top = printing ? 0 : $('scroll').scrollTop;
	const wide = Math.round(width * scale), high = Math.round(tall * scale);
	if (canvas.width !== wide || canvas.height !== high) {
		canvas.width = wide;
		canvas.height = high;
		canvas.style.width = width + 'px';
		canvas.style.height = tall + 'px';
	}
	ctx.setTransform(scale, 0, 0, scale, 0, 0);
	ctx.clearRect(0, 0, width, tall);
	ctx.font = '12px ' + getComputedStyle(document.body).fontFamily;
	ctx.textBaseline = 'middle';
	const zoomDepth = rows.findIndex(r => r.node[0] === state.zoom);
	const night = dark.matches && !printing;
	for (let d = 0; d < rows.length; d++) {
		const y = rowTop(d) - top;
		if (y + ROW < 0 || y > tall)
			continue;
		const { x, w, node } = rows[d];
		for (let k = 0; k < x.length; k++)
			paintBox(node[k], x[k], y, w[k], d < zoomDepth, night);
	}
}

function paintBox(node, x, y, w, above, night) {
	const gap = w > 3 ? 1 : w > 1.5 ? .5 : 0, hit = node >= 0 && matches && matches(V.id[node]);
	ctx.globalAlpha = above ? .55 : matches && !hit ? .42 : 1;
	ctx.fillStyle = node < 0 ? (night ? '#45474c' : '#d8d4cc') :
		hit ? (night ? '#a021b8' : '#d65ce8') :
		colour(node);
	ctx.fillRect(x, y, w - gap, ROW - 1);
	if (w < 22 || node < 0)
		return;
	ctx.fillStyle = night ? '#f4f1ea' : '#1f1a14';
	if (above || (matches && !hit))
		ctx.globalAlpha = .8;
	const text = fit(label(V.id[node]), w - 9);
	if (text)
		ctx.fillText(text, x + 4, y + ROW / 2 - .5);
}

const widths = new Map();
function textWidth(s) {
	let w = widths.get(s);
	if (w === undefined) {
		if (widths.size > 20000)
			widths.clear();
		w = ctx.measureText(s).width;
		widths.set(s, w);
	}
	return w;
}

/* The longest prefix of s that fits, with an ellipsis if it was cut. */
function fit(s, room) {
	if (s.length > 400)
		s = s.slice(0, 400);
	if (textWidth(s) <= room)
		return s;
	let lo = 0, hi = Math.min(s.length, Math.ceil(room / 3));
	while (lo < hi) {
		const mid = (lo + hi + 1) >> 1;
		if (ctx.measureText(s.slice(0, mid) + '…').width <= room)
			lo = mid;
		else
			hi = mid - 1;
	}
	return lo >= 2 ? s.slice(0, lo) + '…' : '';
}

function redraw() {
	width = printing ? 1000 : $('scroll').clientWidth;
	if (!width)
		return;
	layout();
	paint();
	placeCursor();
	$('hover').style.display = 'none';
}

/* ---- Search ---- */

let matches = null, matchCache = [];

function setSearch(text) {
	state.search = text;
	let re = null, bad = false;
	if (text) {
		try {
			re = new RegExp(text, /[A-Z]/.test(text) ? '' : 'i');
		} catch (e) {
			bad = true;
		}
	}
	$('search').classList.toggle('bad', bad);
	matchCache = [];
	matches = !re ? null : id => {
		if (matchCache[id + 1] === undefined)
			matchCache[id + 1] = id >= 0 && re.test(fullName(id));
		return matchCache[id + 1];
	};
	countMatches();
}

/*
 * The share of the shown part that runs in or below a match. Only outermost matches count, so that
 * nothing counts twice.
 */
function countMatches() {
	const out = $('matched');
	if (!matches) {
		out.textContent = '';
		return;
	}
	const w = V.total[state.side], top = state.focus >= 0 ? 1 : state.zoom, todo = [top];
	let sum = 0;
	while (todo.length) {
		const i = todo.pop();
		if (matches(V.id[i])) {
			sum += w[i];
			continue;
		}
		for (let c = V.first[i]; c < V.first[i + 1]; c++)
			todo.push(V.child[c]);
	}
	out.textContent = percent(w[top] ? sum / w[top] : 0) + ' matched';
	out.title = amountLong(sum) + ' of ' + amountLong(w[top]);
	out.dataset.value = sum;
}

/* ---- Table: self and total of the shown functions ---- */

let functions = [], widest = [1, 1], tableSort = DIFF ? 'delta' : 'self', shownRows = [];

/*
 * Covers the zoomed part. In the callers view the boxes below a box are its callers, so the table
 * covers everything. A recursive function counts once per stack.
 */
function buildTable() {
	const whole = state.callers || state.focus >= 0;
	const source = whole ? trieView() : V, zoom = whole ? 0 : state.zoom;
	const sides = DIFF ? [0, 1] : [0];
	const self = sides.map(() => new Float64Array(NF));
	const total = sides.map(() => new Float64Array(NF));
	const open = new Int32Array(NF), ids = source.id, parents = source.parent;
	let path = [];
	for (let p = parents[zoom]; p >= 0; p = parents[p])
		path.unshift(p);
	path.forEach(p => { if (ids[p] >= 0 && ids[p] < NF) open[ids[p]]++; });
	const floor = path.length;
	/*
	 * Nodes are in preorder. `path` holds the nodes above the current one, which counts if its
	 * function is not in path yet.
	 */
	for (let i = zoom; i < source.n; i++) {
		while (path.length > floor && path[path.length - 1] !== parents[i]) {
			const id = ids[path.pop()];
			if (id >= 0 && id < NF)
				open[id]--;
		}
		if (i > zoom && path.length === floor)
			break;		/* after the zoomed part */
		const id = ids[i];
		path.push(i);
		if (id < 0 || id >= NF)
			continue;
		for (const s of sides) {
			self[s][id] += source.self[s][i];
			if (!open[id])
				total[s][id] += source.total[s][i];
		}
		open[id]++;
	}
	functions = [];
	for (let id = 0; id < NF; id++)
		if (total[0][id] || (DIFF && total[1][id]))
			functions.push({
				id, self: self[0][id], total: total[0][id],
				self1: DIFF ? self[1][id] : 0, total1: DIFF ? total[1][id] : 0,
			});
	widest = ['self', 'total'].map(key =>
		functions.reduce((most, f) => Math.max(most, f[key]), 1));
	sortTable();
}

let trieCache = null;
function trieView() {
	if (!trieCache) {
		const nodes = new Nodes(1);
		for (let i = 1; i < NN; i++)
			nodes.add(parent[i], frame[i]);
		trieCache = finishView(nodes, leafNode);
	}
	return trieCache;
}

const COLUMNS = DIFF ? [
	['name', 'Function', f => label(f.id)],
	['before', 'Before', f => per(f.self1, 1)],
	['after', 'After', f => per(f.self, 0)],
	['delta', '± Self', f => per(f.self, 0) - per(f.self1, 1)],
	['deltat', '± Total', f => per(f.total, 0) - per(f.total1, 1)],
] : [
	['name', 'Function', f => label(f.id)],
	['selfn', 'Self', f => f.self],
	['self', 'Self %', f => f.self],
	['total', 'Total %', f => f.total],
];

function sortTable() {
	const get = COLUMNS.find(c => c[0] === tableSort)[2];
	const shown = matches ? functions.filter(f => matches(f.id)) : functions;
	const magnitude = DIFF && tableSort.startsWith('delta');
	const key = new Map(shown.map(f => [f, magnitude ? Math.abs(get(f)) : get(f)]));
	shownRows = shown.slice().sort((a, b) => {
		const x = key.get(a), y = key.get(b);
		return tableSort === 'name' ? (x < y ? -1 : x > y ? 1 : 0) :
			y - x || b.total - a.total || a.id - b.id;
	});
	for (const b of $('thead').children) {
		if (b.dataset.key === tableSort)
			b.setAttribute('aria-sort',
				tableSort === 'name' ? 'ascending' : 'descending');
		else
			b.removeAttribute('aria-sort');
		b.textContent = b.dataset.title + (b.dataset.key === tableSort ? ' ▾' : '');
	}
	$('tspace').style.height = shownRows.length * 22 + 'px';
	paintTable();
}

function cell(text, cls) {
	const e = document.createElement('span');
	e.textContent = text;
	if (cls)
		e.className = cls;
	return e;
}

const direction = d => d > 5e-5 ? 'up' : d < -5e-5 ? 'down' : '';

function paintTable() {
	const body = $('tbody'), from = Math.max(0, Math.floor(body.scrollTop / 22) - 2);
	const to = Math.min(shownRows.length, from + Math.ceil(body.clientHeight / 22) + 5);
	const out = [$('tspace')];
	for (let k = from; k < to; k++) {
		const f = shownRows[k], tr = document.createElement('div');
		const name = cell('', ''), chip = cell('', 'chip');
		tr.className = 'tr' + (k & 1 ? ' odd' : '') +
			(matches && state.search ? ' hit' : '');
		tr.style.top = k * 22 + 'px';
		tr.dataset.id = f.id;
		const module = moduleOf(f.id);
		const [h, s, l] = frameColour(f.id, module ? textHash(module) : .5, .5);
		chip.style.background = DIFF ? diffColour(isChance(f.id) ? 0 :
			per(f.total, 0) - per(f.total1, 1)) :
			`hsl(${h} ${s}% ${l}%)`;
		name.append(chip, cell(label(f.id), 'name'));
		if (module)
			name.append(cell(module, 'module'));
		name.title = fullName(f.id) + (module ? '\n' + module : '');
		tr.append(name);
		if (DIFF) {
			const d = per(f.self, 0) - per(f.self1, 1);
			const dt = per(f.total, 0) - per(f.total1, 1);
			tr.append(cell(percent(per(f.self1, 1))), cell(percent(per(f.self, 0))),
				cell(points(d), direction(d)), cell(points(dt), direction(dt)));
		} else {
			const a = cell(percent(per(f.self, 0))), b = cell(percent(per(f.total, 0)));
			a.style.setProperty('--w', 100 * f.self / widest[0] + '%');
			b.style.setProperty('--w', 100 * f.total / widest[1] + '%');
			tr.append(cell(short(f.self)), a, b);
		}
		out.push(tr);
	}
	body.replaceChildren(...out);
}

/* ---- Pointing ---- */

function boxAt(px, py) {
	const d = Math.floor(((state.flip ? py : height - py) - 1) / ROW), row = rows[d];
	if (!row)
		return null;
	let lo = 0, hi = row.x.length;
	while (lo < hi) {
		const mid = (lo + hi) >> 1;
		if (row.x[mid] <= px)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo || px >= row.x[lo - 1] + row.w[lo - 1])
		return null;
	return { depth: d, k: lo - 1, node: row.node[lo - 1] };
}

function frameBox(el, depth, k) {
	el.style.display = 'block';
	el.style.left = rows[depth].x[k] - 1 + 'px';
	el.style.top = rowTop(depth) - 1 + 'px';
	el.style.width = Math.max(3, rows[depth].w[k] + 1) + 'px';
	el.style.height = ROW + 1 + 'px';
}

function lines(node) {
	const id = V.id[node], w = V.total[0][node], mod = moduleOf(id), out = [];
	out.push([KINDS[kind(id)] + (mod && mod !== '[kernel]' ? ' · ' + mod : ''), '']);
	if (DIFF) {
		const before = share(node, 1), after = share(node, 0);
		out.push(['before ' + percent(before) + ', after ' + percent(after) + ', ' +
			points(after - before) + ' %', 'strong']);
		out.push([amount(V.total[1][node]) + ' before, ' + amount(w) + ' after', '']);
		return out;
	}
	out.push([amountLong(w) + ', ' + percent(share(node, 0)), 'strong']);
	if (state.zoom && V.total[0][state.zoom])
		out.push([percent(w / V.total[0][state.zoom]) + ' of ' +
			label(V.id[state.zoom]), '']);
	if (!state.callers && state.focus < 0)
		out.push(['self ' + amountLong(V.self[0][node]) + ', ' +
			percent(per(V.self[0][node], 0)), '']);
	return out;
}

function say(node) {
	$('status').textContent = node < 0 ? $('about').textContent :
		fullName(V.id[node]) + ' — ' + lines(node).slice(1, 2).map(l => l[0]).join('');
}

function showTip(ev, node) {
	const tip = $('tip'), name = document.createElement('b');
	name.textContent = node < 0 ? 'narrower boxes: zoom in to see them' : label(V.id[node]);
	tip.replaceChildren(name, ...(node < 0 ? [] : lines(node).map(l => cell(l[0], l[1]))));
	tip.style.display = 'block';
	const r = tip.getBoundingClientRect();
	tip.style.left = Math.max(4, Math.min(ev.clientX + 14, innerWidth - r.width - 8)) + 'px';
	const above = ev.clientY + 20 + r.height > innerHeight;
	tip.style.top = (above ? Math.max(4, ev.clientY - r.height - 12) : ev.clientY + 18) + 'px';
}

function hideTip() {
	$('tip').style.display = $('hover').style.display = 'none';
	say(state.cursor);
}

function eventBox(ev) {
	const r = $('space').getBoundingClientRect();
	return boxAt(ev.clientX - r.left, ev.clientY - r.top);
}

function zoomTo(node) {
	if (node < 0)
		return;
	if (state.focus >= 0) {
		const id = V.id[node];
		focusOn(node && id >= 0 && id < NF ? id : -1);
		return;
	}
	state.zoom = node;
	mayReset();
	redraw();
	toRoots();
	countMatches();
	buildTable();
	remember();
}

/* Shows the sandwich of a frame; -1: leaves it. */
function focusOn(id) {
	state.focus = id;
	rebuild();
}

function mayReset() { $('reset').disabled = !state.zoom && state.focus < 0 && !state.to; }

/* The names from the root to a node, the kernel's and others with their suffix. */
function pathOf(node) {
	const path = [];
	for (; node > 0; node = V.parent[node])
		path.unshift(fullName(V.id[node]));
	return path;
}

function copyStack() {
	const node = state.cursor >= 0 ? state.cursor : state.zoom;
	const text = pathOf(node).join('\n'), field = document.createElement('textarea');
	if (!text)
		return;
	field.value = text;
	document.body.append(field);
	field.select();
	const done = document.execCommand('copy');
	field.remove();
	$('scroll').focus();
	$('status').textContent = done ? 'copied ' + (node ? pathOf(node).length : 0) + ' frames' :
		'the browser does not allow copying';
}

/* Scrolls to the roots, where the zoomed box is. */
function toRoots() { $('scroll').scrollTop = state.flip ? 0 : height; paint(); }

/* ---- Keyboard ---- */

function find(node) {
	for (let d = 0; d < rows.length; d++) {
		const k = rows[d].node.indexOf(node);
		if (k >= 0)
			return [d, k];
	}
	return null;
}

function placeCursor() {
	const at = state.cursor >= 0 ? find(state.cursor) : null;
	if (!at) {
		$('cursor').style.display = 'none';
		return;
	}
	frameBox($('cursor'), at[0], at[1]);
}

function moveCursor(dx, dy) {
	const at = state.cursor >= 0 ? find(state.cursor) : null;
	let node = -1;
	if (!at) {
		node = state.zoom;
	} else if (dx) {
		const row = rows[at[0]].node;
		for (let k = at[1] + dx; k >= 0 && k < row.length && node < 0; k += dx)
			node = row[k];
	} else if ((dy > 0) === state.flip) {
		const list = children(state.cursor), w = V.total[state.side];
		node = list.length ? list.reduce((a, b) => w[b] > w[a] ? b : a) : -1;
	} else {
		node = V.parent[state.cursor];
	}
	if (node < 0 || !find(node))
		return;
	state.cursor = node;
	placeCursor();
	say(node);
	const y = rowTop(find(node)[0]), s = $('scroll');
	if (y < s.scrollTop)
		s.scrollTop = y;
	else if (y + ROW > s.scrollTop + s.clientHeight)
		s.scrollTop = y + ROW - s.clientHeight;
}

const KEYS = [
	['/', 'search; also Ctrl-F', () => { $('search').focus(); $('search').select(); }],
	['i', 'icicle or flame', () => $('flip').click()],
	['c', 'callers: start at the leaves', () => $('callers').click()],
	['f', 'sandwich: the selected function, its callers and its callees', sandwich],
	['m', 'colour by kind or module', () => cycle('colour')],
	['y', 'copy the stack of the selected box', copyStack],
	['e', 'show or hide idle threads, which wait for work to arrive',
		() => hasIdle && $('idle').click()],
	['g', 'merge by name, process, all', () => cycle('group')],
	['s', 'sort by width or name', () => cycle('sort')],
	['t', 'graph, table or both', () => cycle('layout')],
	['w', 'widths: after or before', () => DIFF && cycle('side2')],
	['?', 'this help', () => { $('help').hidden = !$('help').hidden; }],
];

function sandwich() {
	const id = state.focus < 0 ? V.id[state.cursor >= 0 ? state.cursor : state.zoom] : -1;
	focusOn(id >= 0 && id < NF ? id : -1);
}

function cycle(id) {
	const s = $(id);
	do
		s.selectedIndex = (s.selectedIndex + 1) % s.options.length;
	while (s.options[s.selectedIndex].disabled);
	s.dispatchEvent(new Event('change'));
}

function escape() {
	if (!$('help').hidden)
		$('help').hidden = true;
	else if (state.to && document.activeElement === strip)
		setRange();
	else if (state.zoom || state.focus >= 0)
		zoomTo(0);
	else if (state.search)
		search('');
	else if (state.to)
		setRange();
	else
		state.cursor = -1, placeCursor(), hideTip();
}

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

function onKey(ev) {
	/* The names are on a canvas, where the browser's search does not find them. */
	if (ev.ctrlKey && !ev.altKey && !ev.shiftKey && ev.key === 'f') {
		$('search').focus();
		$('search').select();
		ev.preventDefault();
		return;
	}
	if (ev.ctrlKey || ev.altKey || ev.metaKey)
		return;
	if (ev.key === 'Escape') {
		if (document.activeElement === $('search'))
			search(''), $('scroll').focus();
		else
			escape();
		return;
	}
	if (/^(INPUT|SELECT)$/.test(document.activeElement.tagName)) {
		if (ev.key === 'Enter')
			$('scroll').focus();
		return;
	}
	const key = KEYS.find(k => k[0] === ev.key), arrow = ARROWS[ev.key];
	const focused = document.activeElement;
	if (key)
		key[2]();
	else if (arrow && arrow[0] && focused === strip)
		moveRange(arrow[0], ev.shiftKey);
	else if (arrow && focused !== $('tbody'))
		moveCursor(...arrow);
	else if (ev.key === 'Enter' && state.cursor >= 0 && focused.tagName !== 'BUTTON')
		zoomTo(state.cursor);
	else if (ev.key === 'Backspace')
		zoomTo(Math.max(0, V.parent[state.zoom]));
	else
		return;
	ev.preventDefault();
}

/* ---- Putting it together ---- */

function rebuild() {
	state.zoom = 0;
	state.cursor = -1;
	mayReset();
	matchCache = [];
	colours = [];
	if (state.focus >= 0)
		buildSandwich(state.focus);
	else
		buildView();
	redraw();
	toRoots();
	countMatches();
	buildTable();
	remember();
}

/* ---- The address: its fragment restores view, zoom and search ---- */

const CHOICES = { group: 'comm', sort: 'value', colour: 'kind', layout: 'both' };
const SWITCHES = ['callers', 'flip', 'idle'];
let restoring = true;

function remember() {
	if (restoring)
		return;
	const out = new URLSearchParams();
	for (const key in CHOICES)
		if (state[key] !== CHOICES[key])
			out.set(key, state[key]);
	for (const key of SWITCHES)
		if (state[key])
			out.set(key, 1);
	if (state.search)
		out.set('search', state.search);
	if (state.to)
		out.set('time', +timeAt(state.from).toFixed(6) + '-' +
			+timeAt(state.to).toFixed(6));
	if (state.focus >= 0)
		out.set('focus', fullName(state.focus) + '\n' + moduleOf(state.focus));
	else if (state.zoom)
		out.set('zoom', pathOf(state.zoom).join('\n'));
	const text = out.toString();
	if (text.length < 16384)
		history.replaceState(null, '', text ? '#' + text : location.pathname);
}

/* Zooms to the node of these names, or as far as there are such nodes. */
function zoomAlong(path) {
	let node = 0;
	for (const name of state.focus < 0 ? path : []) {
		const next = [...children(node)].find(c => fullName(V.id[c]) === name);
		if (next === undefined)
			break;
		node = next;
	}
	if (node)
		zoomTo(node);
}

/* Sets controls only to what they offer: the address may come from anyone. */
function restore() {
	const from = new URLSearchParams(location.hash.slice(1));
	for (const key in CHOICES) {
		const want = from.get(key);
		const option = [...$(key).options].find(o => o.value === want);
		if (option && !option.disabled)
			$(key).value = state[key] = want;
	}
	$('main').className = state.layout;
	for (const key of SWITCHES)
		if (from.get(key) === '1' && !$(key).hidden)
			$(key).click();
	const focus = from.get('focus'), zoom = from.get('zoom');
	for (let id = 0; focus && id < NF && state.focus < 0; id++)
		if (fullName(id) + '\n' + moduleOf(id) === focus)
			state.focus = id;
	const [, first, last] = (/^(\d+\.?\d*)-(\d+\.?\d*)$/.exec(from.get('time')) || [])
		.map(Number);
	if (T && last > first && last <= timeEnd() + T.width) {
		state.from = Math.min(T.slices - 1, Math.round(first / T.width));
		state.to = Math.min(T.slices, Math.max(state.from + 1,
			last >= timeEnd() ? T.slices : Math.round(last / T.width)));
		revalue();
		about();
	}
	rebuild();
	zoomAlong(zoom ? zoom.split('\n') : []);
	if (from.get('search'))
		search(from.get('search').slice(0, 1000));
	restoring = false;
}

function search(text) {
	$('search').value = text;
	setSearch(text);
	paint();
	sortTable();
	remember();
}

function about() {
	const out = [];
	$('title').textContent = DIFF ? 'sfbpf diff' : 'sfbpf';
	if (M.title)
		out.push(DIFF ? M.before + ' → ' + M.title : M.title);
	if (M.verdict)
		out.push(M.verdict);
	if (M.event)
		out.push(M.event + (M.hz ? ' at ' + +M.hz + ' Hz' : ''));
	if (M.host)
		out.push(M.host);
	if (M.duration)
		out.push(M.duration.toFixed(1) + ' s');
	if (state.to)
		out.push('only ' + rangeText());
	out.push(DIFF ? amount(TOTAL[1]) + ' → ' + amount(TOTAL[0]) : amount(TOTAL[0]));
	if (M.lost)
		out.push(grouped(M.lost) + ' lost');
	if (M.userStacks)
		out.push(percent(M.complete / M.userStacks) + ' of user stacks complete');
	if (M.start)
		out.push(new Date(M.start * 1000).toISOString()
			.replace('T', ' ').slice(0, 19) + ' UTC');
	$('about').textContent = out.join(' · ');
	$('about').title = out.join('\n');
	say(-1);
	const what = [M.title || M.host || 'flame graph', M.event].filter(Boolean).join(' · ');
	document.title = (DIFF ? 'diff: ' : '') + what + ' — sfbpf';
}

function legend() {
	const seen = new Set(), out = [];
	for (let i = 0; i < NF; i++)
		seen.add(fkind[i]);
	const add = (bg, text) => {
		const item = cell(''), chip = cell('', 'chip');
		chip.style.background = bg;
		item.append(chip, text);
		out.push(item);
	};
	if (DIFF) {
		add(diffColour(.05), 'more than before');
		add(diffColour(-.05), 'less');
		add(diffColour(0), REAL ? 'the same, or chance' : 'the same');
	} else {
		for (const k of [...seen].sort((a, b) => a - b)) {
			if (state.colour === 'module' && k !== NOTE && k !== GROUP)
				continue;
			const [h, s, l] = kindColour(k, .5, .5);
			add(`hsl(${h} ${s}% ${l}%)`, KINDS[k]);
		}
	}
	$('legend').replaceChildren(...out);
}

function restyle() {
	colours = [];
	legend();
	redraw();
	paintTable();
	paintStrip();
}

function bind() {
	const choose = (id, key, then) => $(id).addEventListener('change', () => {
		state[key] = key === 'side' ? +$(id).value : $(id).value;
		then();
	});
	const press = (id, key, then) => $(id).addEventListener('click', () => {
		state[key] = !state[key];
		$(id).setAttribute('aria-pressed', state[key]);
		then();
	});
	const resort = () => { V.sorted.fill(0); redraw(); countMatches(); };
	choose('group', 'group', rebuild);
	choose('sort', 'sort', () => { resort(); remember(); });
	choose('colour', 'colour', () => { restyle(); remember(); });
	choose('side2', 'side', resort);
	choose('layout', 'layout', () => {
		$('main').className = state.layout;
		redraw();
		toRoots();
		paintTable();
		remember();
	});
	press('callers', 'callers', rebuild);
	press('idle', 'idle', () => {
		idleHidden = !state.idle;
		revalue();
		sumSlices();
		paintStrip();
		trieCache = null;
		about();
		rebuild();
	});
	press('flip', 'flip', () => { redraw(); toRoots(); remember(); });
	$('sandwich').addEventListener('click', sandwich);
	$('reset').addEventListener('click', () => { zoomTo(0); setRange(); });
	$('helpbtn').addEventListener('click', () => { $('help').hidden = !$('help').hidden; });
	$('helpclose').addEventListener('click', () => { $('help').hidden = true; });
	let timer = 0;
	$('search').addEventListener('input', () => {
		clearTimeout(timer);
		timer = setTimeout(() => {
			setSearch($('search').value);
			paint();
			sortTable();
			remember();
		}, NN > 200000 ? 200 : 60);
	});
	const s = $('scroll');
	s.addEventListener('scroll', () => { paint(); hideTip(); });
	s.addEventListener('mousemove', ev => {
		const box = eventBox(ev);
		s.style.cursor = box && box.node >= 0 ? 'pointer' : '';
		if (!box)
			return hideTip();
		frameBox($('hover'), box.depth, box.k);
		showTip(ev, box.node);
		say(box.node);
	});
	s.addEventListener('mouseleave', hideTip);
	s.addEventListener('click', ev => {
		const box = eventBox(ev);
		if (box && box.node >= 0) {
			hideTip();
			state.cursor = box.node;
			zoomTo(box.node);
		}
	});
	$('tbody').addEventListener('scroll', paintTable);
	$('tbody').addEventListener('dblclick', ev => {
		const tr = ev.target.closest('.tr');
		if (tr)
			focusOn(+tr.dataset.id);
	});
	$('tbody').addEventListener('click', ev => {
		const tr = ev.target.closest('.tr');
		if (tr) {
			const name = fullName(+tr.dataset.id);
			const exact = '^' + name.replace(/[.*+?^${}()|[\]\\\/]/g, '\\$&') + '$';
			search(exact === state.search ? '' : exact);
		}
	});
	for (const [key, title] of COLUMNS) {
		const b = document.createElement('button');
		b.dataset.key = key;
		b.dataset.title = title;
		b.addEventListener('click', () => {
			tableSort = key;
			$('tbody').scrollTop = 0;
			sortTable();
		});
		$('thead').append(b);
	}
	document.addEventListener('keydown', onKey);
	dark.addEventListener('change', restyle);
	new ResizeObserver(() => {
		if (!printing) {
			redraw();
			paintTable();
		}
	}).observe($('scroll'));
	new ResizeObserver(paintTable).observe($('tbody'));
	addEventListener('beforeprint', () => { printing = true; restyle(); });
	addEventListener('afterprint', () => { printing = false; restyle(); });
}

const GESTURES = [
	['arrows', 'move'],
	['Enter', 'zoom to the selected box'],
	['Backspace', 'zoom out one level'],
	['double click', 'on a row of the table: its sandwich'],
	['Esc', 'everything; clears the search, then the range of time'],
];

const STRIP_GESTURES = [
	['drag on the strip', 'only this range of time; a click: all'],
	['arrows on it', 'move the range; with Shift: its end'],
];

function start() {
	const keys = KEYS.filter(k => (DIFF || k[0] !== 'w') && (hasIdle || k[0] !== 'e'));
	for (const [key, what] of [...keys, ...GESTURES, ...(T ? STRIP_GESTURES : [])]) {
		const dt = document.createElement('dt'), dd = document.createElement('dd');
		dt.textContent = key;
		dd.textContent = what;
		$('keys').append(dt, dd);
	}
	$('idle').hidden = !hasIdle;
	$('side2').hidden = !DIFF;
	$('group').value = state.group;
	$('group').options[2].disabled = !hasPids;
	if (innerWidth < 900)
		state.layout = $('layout').value = 'graph';
	$('main').className = state.layout;
	about();
	bind();
	legend();
	strip.hidden = !T;
	if (T) {
		sumSlices();
		bindStrip();
	}
	restore();
	document.documentElement.dataset.ready = Math.round(performance.now());
	document.documentElement.dataset.took = Math.round(performance.now() - started);
}

start();
