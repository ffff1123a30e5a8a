// SPDX-License-Identifier: BSD-2-Clause
// The page of `sfbpf serve`: a range of time, a service and a host select what /flame shows.
'use strict';
const $ = id => document.getElementById(id);
const state = {
	span: 3600000,
	until: 0,
	zoom: null,
	service: '',
	host: '',
	kind: '0',
	compare: '',
	marked: null,
};
let shown = null; // the last summary: of the span, not of the range within it
let asked = 0;

const range = () => state.zoom || [state.until - state.span, state.until];

function query(since, until) {
	const q = new URLSearchParams({ since: Math.round(since), until: Math.round(until) });
	if (state.service) q.set('service', state.service);
	if (state.host) q.set('host', state.host);
	if (state.kind === '1') q.set('off_cpu', '1');
	return q;
}

function earlier([since, until]) {
	if (!state.compare) return null;
	if (state.compare === 'marked') return state.marked;
	const ago = state.compare === 'range' ? until - since : Number(state.compare);
	return [since - ago, until - ago];
}

// Asks until all windows have been read; null: another question came, or there is no answer.
async function ask(path, turn) {
	for (;;) {
		const r = await fetch(path).catch(() => null);
		if (turn !== asked) return null;
		if (!r) {
			$('status').textContent = 'no answer';
			return null;
		}
		if (r.status === 200) return r;
		const text = await r.text();
		if (r.status !== 202) {
			$('status').textContent = text.trim();
			return null;
		}
		const done = JSON.parse(text);
		$('status').textContent = `reading ${done.read} of ${done.of} windows`;
	}
}

const clock = ms => new Date(ms).toLocaleString([], { dateStyle: 'short', timeStyle: 'medium' });
const amount = s =>
	s >= 3600
		? (s / 3600).toFixed(1) + ' h'
		: s >= 60
			? (s / 60).toFixed(1) + ' min'
			: s.toFixed(1) + ' s';

function showServices(sum) {
	const rows = [{ name: '', amount: sum.amount }, ...sum.services].map(s => {
		const b = document.createElement('button'),
			name = document.createElement('span'),
			share = document.createElement('span');
		name.className = 'name';
		name.textContent = s.name || 'all services';
		share.textContent = s.name
			? ((100 * s.amount) / (sum.amount || 1)).toFixed(1) + ' %'
			: amount(s.amount);
		b.title = `${s.name || 'all'}: ${amount(s.amount)}`;
		b.dataset.name = s.name;
		b.setAttribute('aria-pressed', String(s.name === state.service));
		b.append(name, share);
		b.addEventListener('click', () => {
			state.service = s.name;
			refresh();
		});
		return b;
	});
	$('services').replaceChildren(...rows);
	const hosts = ['', ...sum.hosts];
	if (state.host && !sum.hosts.includes(state.host)) hosts.push(state.host);
	if (!state.host)
		$('host').replaceChildren(
			...hosts.map(h => new Option(h || 'all hosts', h, false, h === state.host)),
		);
}

function draw() {
	const c = $('canvas'),
		scale = devicePixelRatio || 1,
		w = c.clientWidth,
		h = c.clientHeight,
		g = c.getContext('2d');
	const style = getComputedStyle(document.documentElement),
		colour = name => style.getPropertyValue(name).trim();
	c.width = w * scale;
	c.height = h * scale;
	g.scale(scale, scale);
	if (!shown) return;
	const most = Math.max(...shown.steps, 1e-9),
		n = shown.steps.length,
		x = ms => ((ms - shown.since) / (shown.until - shown.since)) * w;
	const bars = (list, fill) => {
		g.fillStyle = fill;
		list.forEach((v, i) =>
			g.fillRect(
				(i * w) / n,
				h - 14 - (v / most) * (h - 18),
				w / n - 0.5,
				(v / most) * (h - 18),
			),
		);
	};
	bars(shown.steps, colour('--bar'));
	bars(state.service ? shown.selectedSteps : shown.steps, colour('--rule'));
	g.fillStyle = colour('--soft');
	g.font = '11px system-ui';
	for (let i = 0; i < 6; i++)
		g.fillText(
			clock(shown.since + ((shown.until - shown.since) * i) / 6),
			(i * w) / 6 + 2,
			h - 3,
		);
	const box = (r, stroke) => {
		if (r) {
			g.strokeStyle = stroke;
			g.lineWidth = 2;
			g.strokeRect(x(r[0]), 1, Math.max(2, x(r[1]) - x(r[0])), h - 15);
		}
	};
	box(earlier(range()), colour('--soft'));
	box(state.zoom, colour('--accent'));
}

async function refresh() {
	const turn = ++asked,
		r = range(),
		before = earlier(r);
	$('range').textContent = `${clock(r[0])} – ${clock(r[1])}`;
	$('status').textContent = '…';
	const all = await ask('/summary?' + query(state.until - state.span, state.until), turn);
	if (!all) return;
	const sum = await all.json();
	let part = sum;
	if (state.zoom) {
		const zoomed = await ask('/summary?' + query(...r), turn);
		if (!zoomed) return;
		part = await zoomed.json();
	}
	if (turn !== asked) return;
	shown = sum;
	showServices(part);
	draw();
	const q = query(...r);
	$('pprof').href = '/pprof?' + q;
	if (before) {
		q.set('before_since', Math.round(before[0]));
		q.set('before_until', Math.round(before[1]));
	}
	// The range itself has been read by now.
	if (before && !(await ask('/summary?' + query(...before), turn))) return;
	$('flame').src = '/flame?' + q;
	$('status').textContent =
		`${part.windows} windows, ${amount(part.amount)}` +
		(part.unread ? `, ${part.unread} damaged` : '');
	remember();
}

// The address holds the choice.
function remember() {
	const q = new URLSearchParams({
		span: state.span,
		until: state.until,
		service: state.service,
		host: state.host,
		kind: state.kind,
		compare: state.compare,
	});
	if (state.zoom) q.set('zoom', state.zoom.map(Math.round).join('-'));
	history.replaceState(null, '', '#' + q);
}

function recall() {
	const q = new URLSearchParams(location.hash.slice(1));
	const pick = (id, name) => {
		if ([...$(id).options].some(o => o.value === q.get(name) && !o.disabled)) {
			$(id).value = q.get(name);
			return q.get(name);
		}
		return $(id).value;
	};
	state.span = Number(pick('span', 'span'));
	state.until = Number(q.get('until')) || Date.now();
	state.service = q.get('service') || '';
	state.host = q.get('host') || '';
	state.kind = pick('kind', 'kind');
	state.compare = pick('compare', 'compare');
	const zoom = (q.get('zoom') || '').split('-').map(Number);
	state.zoom = zoom.length === 2 && zoom[0] > 0 && zoom[1] > zoom[0] ? zoom : null;
}

for (const id of ['host', 'kind', 'compare'])
	$(id).addEventListener('change', () => {
		state[id] = $(id).value;
		refresh();
	});
$('span').addEventListener('change', () => {
	state.span = Number($('span').value);
	state.zoom = null;
	refresh();
});
$('now').addEventListener('click', () => {
	state.until = Date.now();
	state.zoom = null;
	refresh();
});
$('mark').addEventListener('click', () => {
	state.marked = range();
	const o = $('compare').querySelector('[value=marked]');
	o.disabled = false;
	o.textContent = 'marked: ' + clock(state.marked[0]);
});

let from = null;
const at = e => shown.since + (e.offsetX / $('canvas').clientWidth) * (shown.until - shown.since);
$('canvas').addEventListener('mousedown', e => {
	if (shown) {
		from = at(e);
		state.zoom = null;
	}
});
$('canvas').addEventListener('mousemove', e => {
	if (from !== null && shown) {
		state.zoom = [Math.min(from, at(e)), Math.max(from, at(e))];
		draw();
	}
});
addEventListener('mouseup', () => {
	if (from === null) return;
	from = null;
	// A click shows all of it.
	if (state.zoom && state.zoom[1] - state.zoom[0] < state.span / 500) state.zoom = null;
	refresh();
});
addEventListener('resize', draw);
recall();
refresh();
