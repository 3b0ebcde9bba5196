// A chart of values over time: lines or a stack of areas, with a window and a baseline that people drag or move by keys.
import { h } from "../dom.js";
import { oklch } from "../colors.js";
import { isBinaryUnit } from "../format.js";
import { FlagRow } from "./marks.js";
import { timeText } from "./selection.js";

const LEFT = 92,
	RIGHT = 12,
	TOP = 12,
	BOTTOM = 24,
	GOLDEN_ANGLE = 137.508,
	LEAST_DRAG = 4;

/** A colour for the i-th line: neighbours differ in hue, and all can be seen on the theme's ground. */
export function lineColor(theme, i) {
	return oklch(theme === "dark" ? 0.74 : 0.58, 0.13, (30 + i * GOLDEN_ANGLE) % 360);
}

const STEPS_OF_TIME = [1, 5, 15, 30, 60, 300, 900, 1800, 3600, 10800, 21600, 43200, 86400, 172800, 604800, 1209600, 2592000];

/** Times for the axis, at whole hours and days of the person's own zone. */
export function timeTicks(from, to, most) {
	const step = STEPS_OF_TIME.find(seconds => (to - from) / seconds <= most) || STEPS_OF_TIME[STEPS_OF_TIME.length - 1],
		shift = new Date(from * 1000).getTimezoneOffset() * 60,
		ticks = [];

	for (let time = Math.ceil((from - shift) / step) * step + shift; time <= to; time += step)
		ticks.push(time);
	return { ticks, step };
}

/** Round values up to at least `most`: 0, 0.5, 1, 1.5. What is `binary` is round in KiB, MiB, GiB. */
export function valueTicks(most, count, isBinary) {
	const rough = most / count || 1,
		unit = isBinary ? 1024 ** Math.max(0, Math.floor(Math.log2(rough) / 10)) : 1,
		power = unit * 10 ** Math.floor(Math.log10(rough / unit)),
		step = [1, 2, 2.5, 5, 10].map(factor => factor * power).find(value => value >= rough * 0.999),
		ticks = [];

	for (let i = 0; i * step < most + step * 0.999; i++)
		ticks.push(i * step);
	return ticks;
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

function tickText(time, step) {
	const date = new Date(time * 1000),
		isMidnight = !date.getHours() && !date.getMinutes() && !date.getSeconds();

	return step >= 86400 || isMidnight ? `${MONTHS[date.getMonth()]} ${date.getDate()}` : timeText(time, true) + (step < 60 ? `:${String(date.getSeconds()).padStart(2, "0")}` : "");
}

/** Levels of a line at each step of the window; NaN where there are none. */
function spread(line, first, step, n) {
	const values = new Float64Array(n).fill(NaN);

	for (const [time, , , level] of line.points) {
		const i = Math.round((time - first) / step);

		if (i >= 0 && i < n)
			values[i] = level;
	}
	return values;
}

export class TimeChart {
	/**
	 * @param {HTMLElement} host
	 * @param {{label: string, theme: () => string, format: (level: number) => string, announce: (text: string) => void,
	 *   onWindow: (kind: "window" | "base", range: [number, number] | null, isMore?: boolean) => void, onCursor: (i: number) => void, onMarks: (marks: any[]) => void}} options
	 * `isMore`: it is the window of before, made larger or smaller.
	 */
	constructor(host, options) {
		this.options = options;
		this.data = null;
		this.width = this.height = 0;
		this.cursor = -1;
		this.ranges = { window: null, base: null };
		this.canvas = h("canvas", { role: "img", "aria-label": options.label });
		this.marks = { window: h("div", { class: "brush" }), base: h("div", { class: "brush base" }) };
		this.line = h("div", { class: "cursor", hidden: true });
		this.element = h(
			"div",
			{ class: "time-chart", tabindex: 0, role: "application", "aria-roledescription": "timeline", "aria-label": `${options.label}. Arrows move, Shift with arrows selects, B makes it the baseline, Escape clears` },
			this.canvas, this.marks.base, this.marks.window, this.line
		);
		this.flags = new FlagRow(host, options.onMarks);
		host.append(this.element);
		this.watch = new ResizeObserver(() => this.later());
		this.watch.observe(this.element);
		this.listen();
	}

	destroy() {
		this.watch.disconnect();
		cancelAnimationFrame(this.frame);
		this.flags.destroy();
		this.element.remove();
	}

	// ---- data

	/** {from, to, step, lines: [{name, unit, points}], isStacked, overlay: line | null, marks, as marksOf makes them}; levels are all of one unit. */
	setData(data) {
		const first = Math.floor(data.from / data.step) * data.step,
			n = Math.max(1, Math.floor((data.to - first) / data.step) + 1);

		this.data = { ...data, first, n };
		this.values = data.lines.map(line => spread(line, first, data.step, n));
		this.overlay = data.overlay ? spread(data.overlay, first, data.step, n) : null;
		this.sums = new Float64Array(n);
		this.hasAny = new Uint8Array(n);
		for (const values of this.values)
			for (let i = 0; i < n; i++) {
				this.sums[i] += values[i] || 0;
				this.hasAny[i] |= Number(!Number.isNaN(values[i]));
			}
		this.cursor = Math.min(this.cursor, n - 1);
		this.flags.set(data.marks);
		this.draw();
	}

	/** {window: [from, to] | null, base} in seconds. */
	setRanges(ranges) {
		this.ranges = ranges;
		this.placeMarks();
	}

	most() {
		let most = 0;

		for (const values of this.data.isStacked ? [this.sums] : this.values)
			for (const value of values)
				if (value > most)
					most = value;
		for (const value of this.overlay || [])
			if (value > most)
				most = value;
		return most;
	}

	// ---- places

	xOf(time) {
		return LEFT + ((time - this.data.from) / (this.data.to - this.data.from || 1)) * (this.width - LEFT - RIGHT);
	}

	timeOf(x) {
		const part = (x - LEFT) / Math.max(1, this.width - LEFT - RIGHT);

		return this.data.from + Math.min(1, Math.max(0, part)) * (this.data.to - this.data.from);
	}

	/** A point stands for the step that begins with it. */
	timeAt(i) {
		return this.data.first + i * this.data.step;
	}

	indexOf(time) {
		return Math.min(this.data.n - 1, Math.max(0, Math.floor((time - this.data.first) / this.data.step)));
	}

	// ---- drawing

	later() {
		cancelAnimationFrame(this.frame);
		this.frame = requestAnimationFrame(() => this.draw());
	}

	draw() {
		const start = performance.now();

		this.width = this.element.clientWidth;
		this.height = this.element.clientHeight;
		if (!this.data || !this.width)
			return;
		const ratio = devicePixelRatio || 1,
			{ width, height, canvas } = this;

		canvas.width = Math.round(width * ratio);
		canvas.height = Math.round(height * ratio);
		const g = canvas.getContext("2d"),
			style = getComputedStyle(this.element);

		g.scale(ratio, ratio);
		g.font = "11px system-ui, sans-serif";
		this.colors = { line: style.getPropertyValue("--line"), text: style.getPropertyValue("--muted"), strong: style.getPropertyValue("--text"), warn: style.getPropertyValue("--match") };
		this.drawAxes(g);
		g.save();
		g.beginPath();
		g.rect(LEFT, 0, width - LEFT - RIGHT, height - BOTTOM + 1);
		g.clip();
		if (this.data.isStacked)
			this.drawAreas(g);
		else
			this.values.forEach((values, k) => this.drawLine(g, values, lineColor(this.options.theme(), this.data.lines[k].color), 1.5));
		if (this.overlay)
			this.drawLine(g, this.overlay, this.colors.strong, 2, [5, 3]);
		this.drawMarks(g);
		g.restore();
		this.placeMarks();
		this.drawMs = performance.now() - start;
	}

	drawAxes(g) {
		const { width, height, data } = this,
			bottom = height - BOTTOM,
			values = valueTicks(this.most(), Math.max(2, Math.floor((bottom - TOP) / 44)), isBinaryUnit(data.lines[0]?.unit));

		this.ceiling = values[values.length - 1] || 1;
		g.textBaseline = "middle";
		g.textAlign = "right";
		for (const value of values) {
			const y = this.yOf(value);

			g.fillStyle = this.colors.line;
			g.fillRect(LEFT, Math.round(y), width - LEFT - RIGHT, 1);
			g.fillStyle = this.colors.text;
			g.fillText(this.options.format(value), LEFT - 8, y);
		}
		const { ticks, step } = timeTicks(data.from, data.to, Math.max(2, Math.floor((width - LEFT - RIGHT) / 84)));

		g.textAlign = "center";
		for (const time of ticks) {
			const x = this.xOf(time);

			g.fillStyle = this.colors.line;
			g.fillRect(Math.round(x), bottom, 1, 5);
			g.fillStyle = this.colors.text;
			if (x > LEFT + 16 && x < width - RIGHT - 14)
				g.fillText(tickText(time, step), x, bottom + 14);
		}
	}

	yOf(value) {
		return this.height - BOTTOM - (value / this.ceiling) * (this.height - BOTTOM - TOP);
	}

	drawLine(g, values, color, thick, dashes) {
		let isDown = false;

		g.beginPath();
		for (let i = 0; i < values.length; i++) {
			if (Number.isNaN(values[i])) {
				isDown = false;
				continue;
			}
			const x = this.xOf(this.timeAt(i) + this.data.step / 2),
				y = this.yOf(values[i]);

			// What has no neighbours is a dash.
			if (!isDown && (i + 1 === values.length || Number.isNaN(values[i + 1]))) {
				g.moveTo(x - 1.5, y);
				g.lineTo(x + 1.5, y);
			} else {
				g[isDown ? "lineTo" : "moveTo"](x, y);
			}
			isDown = true;
		}
		g.strokeStyle = color;
		g.lineWidth = thick;
		g.lineJoin = "round";
		g.setLineDash(dashes || []);
		g.stroke();
		g.setLineDash([]);
	}

	drawAreas(g) {
		const { n, step } = this.data,
			below = new Float64Array(n);
		const centre = i => this.xOf(this.timeAt(i) + step / 2);

		this.values.forEach((values, k) => {
			const color = lineColor(this.options.theme(), this.data.lines[k].color);

			// Each stretch of steps that anybody has a value for: where nothing came in there is a gap.
			for (let first = 0; first < n; first++) {
				if (!this.hasAny[first])
					continue;
				let last = first;

				while (last + 1 < n && this.hasAny[last + 1])
					last++;
				this.drawArea(g, values, below, first, last, centre, color);
				first = last;
			}
			for (let i = 0; i < n; i++)
				below[i] += values[i] || 0;
		});
	}

	drawArea(g, values, below, first, last, centre, color) {
		// A lone step would have no width.
		const left = i => (first === last ? centre(i) - 1.5 : centre(i)),
			right = i => (first === last ? centre(i) + 1.5 : centre(i));

		g.beginPath();
		g.moveTo(left(first), this.yOf(below[first]));
		for (let i = first; i <= last; i++)
			g.lineTo(i === last ? right(i) : left(i), this.yOf(below[i] + (values[i] || 0)));
		if (first === last)
			g.lineTo(left(first), this.yOf(below[first] + (values[first] || 0)));
		for (let i = last; i >= first; i--)
			g.lineTo(i === last ? right(i) : left(i), this.yOf(below[i]));
		g.closePath();
		g.globalAlpha = 0.72;
		g.fillStyle = color;
		g.fill();
		g.globalAlpha = 1;
		g.strokeStyle = color;
		g.lineWidth = 1;
		g.stroke();
	}

	/** Lines below the flags, and how long it was. */
	drawMarks(g) {
		g.strokeStyle = g.fillStyle = this.colors.warn;
		g.lineWidth = 1;
		for (const { kind, time, end } of this.data.marks) {
			const x = Math.round(this.xOf(time)) + 0.5;

			g.setLineDash(kind === "version" ? [3, 3] : []);
			g.beginPath();
			g.moveTo(x, 0);
			g.lineTo(x, this.height - BOTTOM);
			g.stroke();
			if (!end)
				continue;
			g.globalAlpha = 0.14;
			g.fillRect(x, 0, this.xOf(end) - x, this.height - BOTTOM);
			g.globalAlpha = 1;
		}
		g.setLineDash([]);
	}

	placeMarks() {
		if (!this.data || !this.width)
			return;
		for (const kind of ["window", "base"]) {
			const range = this.dragged?.kind === kind ? this.dragged.range : this.ranges[kind],
				{ style } = this.marks[kind];

			this.marks[kind].hidden = !range;
			if (!range)
				continue;
			const [a, b] = range.map(time => Math.min(this.width - RIGHT, Math.max(LEFT, this.xOf(time))));

			style.left = `${a}px`;
			style.width = `${Math.max(1, b - a)}px`;
		}
		this.flags.place(time => this.xOf(time), LEFT, this.width - RIGHT);
		this.line.hidden = this.cursor < 0;
		if (this.cursor >= 0)
			this.line.style.left = `${this.xOf(this.timeAt(this.cursor) + this.data.step / 2)}px`;
	}

	// ---- people

	setCursor(i, isSaid) {
		this.cursor = i;
		this.placeMarks();
		this.options.onCursor(i);
		if (isSaid)
			this.options.announce(`${timeText(this.timeAt(i))}: ${this.options.format(this.sums[i])}`);
	}

	listen() {
		const { element } = this;
		const place = event => event.clientX - element.getBoundingClientRect().left;

		element.addEventListener("pointerdown", event => {
			if (event.button || !this.data)
				return;
			element.setPointerCapture(event.pointerId);
			this.dragged = { kind: event.shiftKey ? "base" : "window", from: place(event), range: null };
		});
		element.addEventListener("pointermove", event => {
			if (!this.data)
				return;
			const x = place(event),
				{ dragged } = this;

			if (dragged && Math.abs(x - dragged.from) >= LEAST_DRAG)
				dragged.range = [this.timeOf(Math.min(x, dragged.from)), this.timeOf(Math.max(x, dragged.from))];
			this.setCursor(this.indexOf(this.timeOf(x)));
		});
		element.addEventListener("pointerup", event => this.endDrag(event));
		element.addEventListener("pointercancel", () => {
			this.dragged = null;
			this.placeMarks();
		});
		element.addEventListener("pointerleave", () => !this.dragged && document.activeElement !== element && this.setCursor(-1));
		element.addEventListener("blur", () => this.setCursor(-1));
		element.addEventListener("keydown", event => this.key(event));
	}

	endDrag() {
		const { dragged } = this;

		this.dragged = null;
		if (dragged)
			this.options.onWindow(dragged.kind, dragged.range);
	}

	key(event) {
		const move = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 }[event.key],
			isEnd = event.key === "Home" || event.key === "End";

		if (!this.data || event.ctrlKey || event.altKey || event.metaKey || !(move || isEnd))
			return;
		event.preventDefault();
		event.stopPropagation();
		const at = this.cursor < 0 ? (move > 0 ? -1 : this.data.n) : this.cursor,
			next = isEnd ? (event.key === "Home" ? 0 : this.data.n - 1) : Math.min(this.data.n - 1, Math.max(0, at + move));

		if (event.shiftKey)
			this.extend(Math.min(this.data.n - 1, Math.max(0, at)), next);
		else
			this.anchor = undefined;
		this.setCursor(next, !event.shiftKey);
	}

	/** The window from where Shift was first held down to here. */
	extend(at, next) {
		const isMore = this.anchor !== undefined && Boolean(this.ranges.window);

		if (!isMore)
			this.anchor = at;
		const from = Math.min(this.anchor, next),
			to = Math.max(this.anchor, next) + 1;

		this.options.onWindow("window", [Math.max(this.data.from, this.timeAt(from)), Math.min(this.data.to, this.timeAt(to))], isMore);
	}
}
