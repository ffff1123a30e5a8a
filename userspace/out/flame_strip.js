/* SPDX-License-Identifier: BSD-2-Clause */
/* The strip of time above the graph: CPU use over the recording, and the chosen range of it. */
const strip = $('strip'), stripCtx = $('stripcanvas').getContext('2d');
/* Samples of all leaves by slice, without hidden ones */
const sliceSum = new Float64Array(T ? T.slices : 0);

function sumSlices() {
	sliceSum.fill(0);
	for (let l = 0; T && l < NL; l++)
		if (!leafHidden(l))
			for (let c = T.first[l]; c < T.first[l + 1]; c++)
				sliceSum[T.slice[c]] += T.count[c];
}

/* Recordings end within the last slice. */
const timeEnd = () => !T ? 0 : M.duration > (T.slices - 1) * T.width ?
	Math.min(M.duration, T.slices * T.width) : T.slices * T.width;
const timeAt = slice => Math.min(slice * T.width, timeEnd());
function clock(s) { return s.toFixed(timeEnd() < 1 ? 3 : timeEnd() < 100 ? 2 : 0) + ' s'; }
function rangeText() { return clock(timeAt(state.from)) + ' – ' + clock(timeAt(state.to)); }

/* Slices from .. to - 1; no arguments: all of the recording. */
function setRange(from = 0, to = 0) {
	if (state.from === from && state.to === to)
		return;
	const path = pathOf(state.zoom);
	state.from = from;
	state.to = to;
	revalue();
	trieCache = null;
	about();
	rebuild();
	zoomAlong(path);
	paintStrip();
}

/*
 * Samples per second, by slice: the average of a run of slices that lasts ten sampling periods,
 * because one or two samples say little.
 */
function sliceRates() {
	const rates = new Float64Array(T.slices);
	const n = M.hz ? Math.ceil(10 / (M.hz * T.width)) : 1;
	for (let i = 0; i < T.slices; i += n) {
		const sum = sliceSum.subarray(i, i + n).reduce((a, b) => a + b, 0);
		const long = timeAt(Math.min(i + n, T.slices)) - timeAt(i);
		rates.fill(sum / Math.max(long, n * T.width / 2), i, i + n);
	}
	return rates;
}

function paintStrip() {
	const wide = $('stripcanvas').clientWidth, tall = $('stripcanvas').clientHeight;
	if (!T || !wide)
		return;
	const scale = window.devicePixelRatio || 1, c = stripCtx;
	const style = getComputedStyle(document.documentElement);
	const rates = sliceRates(), end = timeEnd();
	const most = rates.reduce((a, b) => Math.max(a, b), 0) || 1;
	const [from, to] = dragged || [state.from, state.to];
	$('stripcanvas').width = Math.round(wide * scale);
	$('stripcanvas').height = Math.round(tall * scale);
	c.setTransform(scale, 0, 0, scale, 0, 0);
	c.clearRect(0, 0, wide, tall);
	const at = slice => timeAt(slice) / end * wide;
	if (to) {
		c.fillStyle = style.getPropertyValue('--bar');
		c.fillRect(at(from), 0, at(to) - at(from), tall);
	}
	c.fillStyle = style.getPropertyValue('--rule');
	for (let i = 0; i < T.slices; i++) {
		const x = at(i), w = at(i + 1) - x, h = rates[i] / most * (tall - 3);
		c.globalAlpha = to && (i < from || i >= to) ? .35 : 1;
		if (h)
			c.fillRect(x, tall - Math.max(h, 1), w > 3 ? w - 1 : w, tall);
	}
	c.globalAlpha = 1;
	c.fillStyle = style.getPropertyValue('--accent');
	for (const edge of to ? [from, to] : [])
		c.fillRect(Math.min(wide - 2, Math.max(0, at(edge) - 1)), 0, 2, tall);
	sayStrip(from, to, most);
}

function sayStrip(from, to, most) {
	const cpus = M.hz ? most / M.hz : 0;
	const text = !to ? 'drag to choose a range' :
		clock(timeAt(from)) + ' – ' + clock(timeAt(to));
	$('stripmost').textContent = M.hz ? 'up to ' + cpus.toFixed(cpus < 10 ? 1 : 0) + ' CPUs' :
		'up to ' + short(most) + ' samples/s';
	$('striprange').textContent = text;
	$('stripend').textContent = clock(timeEnd());
	strip.setAttribute('aria-valuetext', to ? text : 'all ' + clock(timeEnd()));
	strip.setAttribute('aria-valuemax', T.slices - 1);
	strip.setAttribute('aria-valuenow', from);
}

/* ---- Choosing: drag, or arrows ---- */

let dragged = null;	/* while the pointer is down: the range that it would choose */

function sliceOf(ev) {
	const r = $('stripcanvas').getBoundingClientRect();
	const s = (ev.clientX - r.left) / r.width * timeEnd() / T.width;
	return Math.min(T.slices - 1, Math.max(0, Math.floor(s)));
}

function bindStrip() {
	let start = null;
	strip.addEventListener('pointerdown', ev => {
		if (ev.button)
			return;
		start = { x: ev.clientX, slice: sliceOf(ev) };
		strip.setPointerCapture(ev.pointerId);
	});
	strip.addEventListener('pointermove', ev => {
		if (!start || (!dragged && Math.abs(ev.clientX - start.x) < 4))
			return;
		const at = sliceOf(ev);
		dragged = [Math.min(at, start.slice), Math.max(at, start.slice) + 1];
		paintStrip();
	});
	const end = choose => {
		const range = dragged;
		if (!start)
			return;
		start = dragged = null;
		if (choose)
			setRange(...(range || []));
		paintStrip();
	};
	strip.addEventListener('pointerup', () => end(true));
	strip.addEventListener('pointercancel', () => end(false));
	new ResizeObserver(paintStrip).observe(strip);
}

/* Moves the range; with `end` its end only. Without a range, the first or last tenth is chosen. */
function moveRange(dx, end) {
	let { from, to } = state;
	if (!to) {
		const n = Math.ceil(T.slices / 10);
		setRange(...(dx > 0 ? [0, n] : [T.slices - n, T.slices]));
		return;
	}
	if (from + dx < 0 && !end || to + dx > T.slices || (end && to + dx <= from))
		return;
	setRange(end ? from : from + dx, to + dx);
}
