// Draws a call tree on a canvas, and finds what is under the pointer. Only what can be seen is looked
// at: a level is entered by binary search, and frames narrower than a pixel are passed in leaps, so
// the work of a picture depends on its size, not on that of the tree.
import { h } from "./dom.js";
import { groupOf } from "./colors.js";
import { findPath, layoutFlame, pathOf } from "./flame_tree.js";
import { shortName, tailName } from "./format.js";

const MIN_WIDTH = 1.5,
	MIN_MARK = 3,
	MIN_LABEL = 22,
	PADDING = 4,
	ZOOM_MS = 160,
	CLICK_SLOP = 4,
	LONG_PRESS_MS = 500,
	MOST_FRAMES = 600;
// By the height of a row, that of its text.
const ROW_HEIGHTS = { 14: 11, 18: 12, 24: 14 },
	FONT = 'px system-ui, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif';

/** The first place in [from, to) of a level whose node ends right of x. */
function firstEnding(lay, from, to, x) {
	while (from < to) {
		const mid = (from + to) >>> 1,
			node = lay.order ? lay.order[mid] : mid;

		if (lay.x[node] + lay.w[node] > x)
			to = mid;
		else
			from = mid + 1;
	}
	return from;
}

// The first place in [from, to) whose node begins at x or right of it; likely it is near.
function firstBeginning(lay, from, to, x) {
	const { order, x: left } = lay;
	let step = 1,
		low = from;

	while (low + step < to && left[order ? order[low + step] : low + step] < x) {
		low += step;
		step *= 2;
	}
	let high = Math.min(to, low + step);

	while (low < high) {
		const mid = (low + high) >>> 1;

		if (left[order ? order[mid] : mid] < x)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/**
 * Calls visit(node, left, right, from, to) in pixels for what of a level is in view: frames, and with
 * node = -1 runs of frames [from, to) too narrow to be drawn.
 */
export function walkLevel(tree, lay, level, view, width, least, visit) {
	const scale = width / (view.x1 - view.x0),
		{ x, w, order } = lay,
		end = tree.levels[level + 1];
	let k = firstEnding(lay, tree.levels[level], end, view.x0);

	while (k < end) {
		const node = order ? order[k] : k,
			left = (x[node] - view.x0) * scale,
			right = left + w[node] * scale;

		if (left >= width)
			break;
		if (right - left >= least) {
			visit(node, left, right, k, k + 1);
			k++;
			continue;
		}
		const from = k;
		let edge = right;

		// Pixel by pixel; of those that begin in a pixel only the last can be wide.
		while (k < end) {
			const at = order ? order[k] : k,
				start = (x[at] - view.x0) * scale;

			if (start >= width || start - edge >= 1 || w[at] * scale >= least)
				break;
			const next = firstBeginning(lay, k + 1, end, view.x0 + (Math.floor(start) + 1) / scale),
				last = order ? order[next - 1] : next - 1;

			if (next - 1 > k && w[last] * scale >= least) {
				edge = (x[last] - view.x0) * scale;
				k = next - 1;
			} else {
				edge = (x[last] + w[last] - view.x0) * scale;
				k = next;
			}
		}
		visit(-1, left, edge, from, k);
	}
}

// Text is measured letter by letter, once per letter: fast, and near enough.
class LetterWidths {
	constructor(pen) {
		this.pen = pen;
		this.known = new Map();
	}

	of(letter) {
		let width = this.known.get(letter);

		if (width === undefined)
			this.known.set(letter, (width = this.pen.measureText(letter).width));
		return width;
	}

	measure(text) {
		let sum = 0;

		for (const letter of text)
			sum += this.of(letter);
		return sum;
	}

	/** As much of a text as fits, with an ellipsis; empty if that says nothing. */
	cut(text, room) {
		let sum = this.of("…"),
			n = 0;

		for (const letter of text) {
			sum += this.of(letter);
			if (sum > room)
				break;
			n += letter.length;
		}
		return n > 1 ? text.slice(0, n) + "…" : "";
	}
}

/** The labels of functions, made when they are first seen: [short, its width, last part, its width]. */
class FrameLabels {
	constructor(functions, letters) {
		this.functions = functions;
		this.letters = letters;
		this.made = new Array(functions.length);
	}

	fit(fn, room, sign) {
		let label = this.made[fn];

		if (!label) {
			const short = shortName(this.functions[fn][1]).slice(0, 400),
				tail = tailName(short);

			label = this.made[fn] = [short, this.letters.measure(short), tail, this.letters.measure(tail)];
		}
		const rest = room - (sign ? this.letters.measure(sign) : 0);

		if (label[1] <= rest)
			return sign + label[0];
		if (label[3] <= rest)
			return sign + label[2];
		const cut = this.letters.cut(label[2], rest);

		return cut && sign + cut;
	}
}

function hatch(pen, palette, rising) {
	const tile = document.createElement("canvas"),
		ink = tile.getContext("2d");

	tile.width = tile.height = 7;
	ink.strokeStyle = palette.theme === "dark" ? "rgb(255 255 255 / .2)" : "rgb(0 0 0 / .16)";
	ink.beginPath();
	for (const shift of [-7, 0, 7]) {
		ink.moveTo(shift, rising ? 7 : 0);
		ink.lineTo(shift + 7, rising ? 0 : 7);
	}
	ink.stroke();
	return pen.createPattern(tile, "repeat");
}

/** How much more or less the second side is, from -1 (gone) to 1 (new). */
export function changeOf(tree, node) {
	const a = tree.total[node],
		b = tree.totalB[node];

	return a + b ? (b - a) / (a + b) : 0;
}

// Gone, less, as before, more, new: 0 to 4.
function changeStep(ratio) {
	return ratio >= 1 ? 4 : ratio <= -1 ? 0 : ratio > 0.02 ? 3 : ratio < -0.02 ? 1 : 2;
}

const CHANGE_SIGNS = ["✕ ", "− ", "", "+ ", "N "],
	CHANGES = ["gone", "less", "as before", "more", "new"],
	SHARES = ["mostly in callees", "in part its own", "mostly its own"];

function selfShare(tree, node) {
	const both = column => tree[column][node] + (tree[column + "B"]?.[node] || 0);

	return both("self") / (both("total") || 1);
}

/** The way in which a tree is coloured: some trees have no changes. */
export function colorMode(tree, mode) {
	return ["package", "module", "kind", "self", "label"].includes(mode) ? mode : tree.totalB ? "change" : "package";
}

// By node, the function whose group it is in: its own, or the label above it.
function groupOwners(tree, mode) {
	if (mode !== "label")
		return tree.fn;
	const owner = new Uint32Array(tree.n);

	for (let i = 1; i < tree.n; i++)
		owner[i] = tree.functions[tree.fn[i]][5] & 4 ? tree.fn[i] : owner[tree.parent[i]];
	return owner;
}

/** What the colours of a tree mean: of(node) names the group of a node, color(group) is its colour. */
export function nodeGroups(tree, palette, mode) {
	if (mode === "change")
		return {
			of: node => CHANGES[changeStep(changeOf(tree, node))],
			color: group => palette.change((CHANGES.indexOf(group) - 2) / 2),
		};
	if (mode === "self")
		return {
			of: node => SHARES[Math.min(2, Math.floor(selfShare(tree, node) * 3))],
			color: group => palette.share(SHARES.indexOf(group) / 2),
		};
	const owner = groupOwners(tree, mode),
		made = [];

	return {
		of: node => (made[owner[node]] ??= groupOf(tree.functions[owner[node]], mode) || "(none)"),
		color: group => palette.group(group === "(none)" ? "" : group),
	};
}

/** The colour of a node as a function of it, for a way to colour. */
export function nodeColors(tree, palette, wanted) {
	const mode = colorMode(tree, wanted);

	if (mode === "change")
		return node => (node ? palette.change(changeOf(tree, node)) : palette.root);
	if (mode === "self")
		return node => (node ? palette.share(selfShare(tree, node)) : palette.root);
	const groups = nodeGroups(tree, palette, mode),
		made = new Map([["", palette.root]]);

	return node => {
		const group = node ? groups.of(node) : "";
		let color = made.get(group);

		if (!color)
			made.set(group, (color = groups.color(group)));
		return color;
	};
}

/** @typedef {{up?: boolean, hideRoot?: boolean, scale?: number, width?: string, label?: string, mode?: string, order?: string, focusable?: boolean,
 *   onClick?: Function, onDouble?: Function, onHover?: Function, onZoom?: Function, onMenu?: Function, onView?: Function, onScroll?: Function}} ChartOptions */

class FlameChart {
	/** @param {HTMLElement} host scrolls @param {any} ctx @param {ChartOptions} options */
	constructor(host, ctx, options) {
		Object.assign(this, {
			host,
			ctx,
			options,
			tree: null,
			lay: null,
			view: { x0: 0, x1: 1 },
			zoomNode: 0,
			selected: -1,
			hover: -1,
			hoverFn: -1,
			matches: null,
			matchCount: null,
			runs: [],
			frames: [],
			width: 0,
			height: 0,
			visibleHeight: 0,
		});
		this.canvas = h("canvas", { role: "img", "aria-label": options.label || "Flame graph" });
		this.room = h("div", { class: "room", "aria-hidden": "true" });
		this.pen = this.canvas.getContext("2d");
		this.setRows();
		host.classList.add("flame-host");
		host.append(this.canvas, this.room);
		this.observer = new ResizeObserver(() => this.resize());
		this.observer.observe(host);
		host.addEventListener(
			"scroll",
			(this.onScroll = () => {
				this.requestDraw();
				this.options.onScroll?.();
			}),
			{ passive: true }
		);
		this.gestures = new ChartGestures(this);
		this.resize();
	}

	destroy() {
		this.observer.disconnect();
		cancelAnimationFrame(this.drawing);
		cancelAnimationFrame(this.animation);
		this.host.removeEventListener("scroll", this.onScroll);
		this.canvas.remove();
		this.room.remove();
	}

	// ---- what is shown

	// As the settings have it.
	setRows() {
		const row = Number(this.ctx.storage.get("row"));

		this.row = row in ROW_HEIGHTS ? row : 18;
		this.font = ROW_HEIGHTS[this.row] + FONT;
		this.letters = new LetterWidths(this.pen);
	}

	setTree(tree, options) {
		const keep = options?.keepView;

		Object.assign(this.options, options);
		this.setRows();
		this.tree = tree;
		this.lay = layoutFlame(tree, this.options.order, this.options.width);
		this.labels = new FrameLabels(tree.functions, this.letters);
		this.zoomNode = 0;
		this.hover = this.hoverFn = this.selected = -1;
		this.matches = this.matchCount = null;
		cancelAnimationFrame(this.animation);
		if (!keep)
			this.view = this.allView();
		this.restyle();
		this.resize();
		if (this.options.up && !keep)
			this.host.scrollTop = this.height;
	}

	/** Other colours: theme, mode, or the one group that is not faded. */
	restyle(mode, group) {
		if (mode !== undefined)
			Object.assign(this.options, { mode, group });
		const palette = this.ctx.palette;

		this.palette = palette;
		this.rising = hatch(this.pen, palette, true);
		this.falling = hatch(this.pen, palette, false);
		if (this.tree) {
			this.colorOf = nodeColors(this.tree, palette, this.options.mode);
			this.setGroup(this.options.group);
		}
		this.requestDraw();
	}

	// All but this group of nodes are faded.
	setGroup(group) {
		const { tree } = this,
			groups = group && nodeGroups(tree, this.palette, colorMode(tree, this.options.mode));

		this.dimmed = group ? tree.fn.map((_, node) => (groups.of(node) === group ? 0 : 1)) : null;
	}

	allView() {
		return { x0: 0, x1: this.options.scale || this.lay?.w[0] || 1 };
	}

	get isZoomed() {
		const all = this.allView(),
			slack = (all.x1 - all.x0) * 1e-9;

		return this.view.x0 > all.x0 + slack || this.view.x1 < all.x1 - slack;
	}

	viewOf(node) {
		return node > 0 ? { x0: this.lay.x[node], x1: this.lay.x[node] + (this.lay.w[node] || 1) } : this.allView();
	}

	/** Zooms to a node; its callers stay, faded. */
	zoomTo(node, animate = true) {
		this.zoomNode = node;
		this.setView(this.viewOf(node), animate);
	}

	setView(view, animate) {
		cancelAnimationFrame(this.animation);
		if (!animate || matchMedia("(prefers-reduced-motion: reduce)").matches || document.hidden) {
			this.view = view;
			this.requestDraw();
			return;
		}
		const from = this.view,
			start = performance.now();
		const step = now => {
			const t = Math.min(1, Math.max(0, (now - start) / ZOOM_MS)),
				eased = 1 - (1 - t) ** 3;

			this.view =
				t < 1
					? { x0: from.x0 + (view.x0 - from.x0) * eased, x1: from.x1 + (view.x1 - from.x1) * eased }
					: view;
			this.paint();
			if (t < 1)
				this.animation = requestAnimationFrame(step);
		};

		this.animation = requestAnimationFrame(step);
	}

	// A view that stays inside, and not narrower than numbers can tell apart.
	clampView(x0, x1) {
		const all = this.allView(),
			size = Math.min(Math.max(x1 - x0, (all.x1 - all.x0) * 1e-9), all.x1 - all.x0);
		const left = Math.min(Math.max(x0, all.x0), all.x1 - size);

		return { x0: left, x1: left + size };
	}

	/** Zooms at a pixel; factor above 1 shows less. */
	zoomAt(px, factor) {
		const { x0, x1 } = this.view,
			at = x0 + ((x1 - x0) * px) / this.width,
			size = (x1 - x0) / factor;

		this.setView(this.clampView(at - (size * px) / this.width, at + size * (1 - px / this.width)), false);
		this.options.onView?.(this.view);
	}

	pan(px) {
		const by = (px * (this.view.x1 - this.view.x0)) / this.width;

		this.setView(this.clampView(this.view.x0 + by, this.view.x1 + by), false);
		this.options.onView?.(this.view);
	}

	/** The frames found, as a byte per node of the tree. */
	setMatches(matches) {
		this.matches = matches;
		this.matchCount = null;
		if (matches) {
			const { n } = this.tree,
				order = this.lay.order,
				count = new Uint32Array(n + 1);

			for (let k = 0; k < n; k++)
				count[k + 1] = count[k] + matches[order ? order[k] : k];
			this.matchCount = count;
		}
		this.requestDraw();
	}

	select(node) {
		if (this.selected !== node) {
			this.selected = node;
			this.requestDraw();
		}
	}

	setHover(node) {
		const fn = node > 0 ? this.tree.fn[node] : -1;

		if (this.hover === node && this.hoverFn === fn)
			return;
		this.hover = node;
		this.hoverFn = fn;
		this.canvas.classList.toggle("pointing", node >= 0);
		this.requestDraw();
	}

	/** Scrolls so that a node's row can be seen. */
	reveal(node) {
		const top = this.rowTop(this.tree.depth[node]);

		if (top < this.host.scrollTop)
			this.host.scrollTop = top - this.row;
		else if (top + this.row > this.host.scrollTop + this.visibleHeight)
			this.host.scrollTop = top + 2 * this.row - this.visibleHeight;
	}

	// ---- what other pages use

	/** @param {number[] | null} ids path of function ids */
	zoom(ids) {
		this.zoomTo(ids?.length && this.tree ? findPath(this.tree, ids.join(".")).node : 0);
	}

	get zoomPath() {
		return this.tree && this.zoomNode > 0 ? pathOf(this.tree, this.zoomNode).split(".").map(Number) : [];
	}

	highlight(id) {
		this.hoverFn = id === null || !this.tree ? -1 : this.tree.functions.findIndex(fn => fn[0] === id);
		this.requestDraw();
	}

	// ---- geometry

	resize() {
		const dpr = window.devicePixelRatio || 1,
			width = this.host.clientWidth,
			visible = this.host.clientHeight,
			bottom = this.host.scrollTop + this.visibleHeight;
		const levels = this.tree ? this.tree.levels.length - 1 - (this.options.hideRoot ? 1 : 0) : 1;

		// One row more, for what was cut off below the last.
		this.height = (levels + 1) * this.row + 2;
		if (width !== this.width || visible !== this.visibleHeight || dpr !== this.dpr) {
			Object.assign(this, { width, visibleHeight: visible, dpr });
			this.canvas.width = Math.max(1, Math.round(width * dpr));
			this.canvas.height = Math.max(1, Math.round(visible * dpr));
			this.canvas.style.width = `${width}px`;
			this.canvas.style.height = `${visible}px`;
		}
		this.room.style.height = `${Math.max(0, this.height - visible)}px`;
		// What grows from the bottom stays where it is if the place above it shrinks.
		if (this.options.up && bottom > 0)
			this.host.scrollTop = bottom - visible;
		this.paint();
	}

	// From the top of all rows.
	rowTop(depth) {
		const row = depth - (this.options.hideRoot ? 1 : 0);

		return this.options.up ? Math.max(this.height, this.visibleHeight) - (row + 1) * this.row : row * this.row;
	}

	levelAt(y) {
		const row = this.options.up
			? Math.floor((Math.max(this.height, this.visibleHeight) - y - 1) / this.row)
			: Math.floor(y / this.row);

		return row + (this.options.hideRoot ? 1 : 0);
	}

	visibleLevels() {
		const top = this.host.scrollTop,
			a = this.levelAt(top),
			b = this.levelAt(top + this.visibleHeight);

		return [
			Math.max(this.options.hideRoot ? 1 : 0, Math.min(a, b) - 1),
			Math.min(this.tree.levels.length - 2, Math.max(a, b)),
		];
	}

	/** What is at a place of the window: {node}, or {run} of narrow frames, or {node, lost: true}. */
	find(clientX, clientY) {
		const box = this.canvas.getBoundingClientRect(),
			px = clientX - box.left,
			py = clientY - box.top;

		if (!this.tree || px < 0 || py < 0 || px >= this.width || py >= this.visibleHeight)
			return null;
		const level = this.levelAt(py + this.host.scrollTop),
			value = this.view.x0 + ((this.view.x1 - this.view.x0) * px) / this.width;

		return this.findInLevel(level, value, px) || this.findLost(level, value);
	}

	findInLevel(level, value, px) {
		const { tree, lay } = this;

		if (level < (this.options.hideRoot ? 1 : 0) || level + 1 >= tree.levels.length)
			return null;
		const run = this.runs.find(r => r.level === level && px >= r.left - 1 && px <= r.right + 1);
		const k = firstEnding(lay, tree.levels[level], tree.levels[level + 1], value),
			node = k < tree.levels[level + 1] ? (lay.order ? lay.order[k] : k) : -1;
		const inside = node >= 0 && lay.x[node] <= value;

		if (inside && (lay.w[node] * this.width) / (this.view.x1 - this.view.x0) >= MIN_WIDTH)
			return { node };
		if (run && run.to - run.from === 1)
			return { node: lay.order ? lay.order[run.from] : run.from };
		return run ? { node: -1, run } : inside ? { node } : null;
	}

	// What was cut off lies below its node.
	findLost(level, value) {
		const above = level > 0 && level < this.tree.levels.length ? this.findInLevel(level - 1, value, -9) : null;
		const node = above ? above.node : -1;

		if (node < 0 || value < this.lay.childEnd[node] || value >= this.lay.childEnd[node] + this.lay.lost[node])
			return null;
		return { node, lost: true };
	}

	/** Where a node is in the window. */
	rectOf(node) {
		const box = this.canvas.getBoundingClientRect(),
			scale = this.width / (this.view.x1 - this.view.x0),
			left = (this.lay.x[node] - this.view.x0) * scale;
		const right = left + this.lay.w[node] * scale,
			x = Math.max(0, left),
			top = this.rowTop(this.tree.depth[node]) - this.host.scrollTop;

		return { x: box.left + x, y: box.top + top, width: Math.min(this.width, right) - x, height: this.row - 1 };
	}

	// ---- drawing

	requestDraw() {
		this.drawing ||= requestAnimationFrame(() => this.paint());
	}

	paint() {
		cancelAnimationFrame(this.drawing);
		this.drawing = 0;
		if (!this.tree || !this.palette || this.width === 0)
			return;
		const start = performance.now();

		this.paintAll();
		this.options.onPaint?.();
		this.frames.push(performance.now() - start);
		if (this.frames.length > MOST_FRAMES)
			this.frames.shift();
	}

	paintAll() {
		const { pen, palette } = this,
			[first, last] = this.visibleLevels();

		pen.setTransform(this.dpr, 0, 0, this.dpr, 0, 0);
		pen.fillStyle = palette.gap;
		pen.fillRect(0, 0, this.width, this.visibleHeight);
		pen.font = this.font;
		pen.textBaseline = "middle";
		Object.assign(this, { runs: [], shown: [], dots: [], hatches: [], boxes: new Map() });
		for (let level = first; level <= last; level++)
			this.placeLevel(level, this.rowTop(level) - this.host.scrollTop);
		this.paintBoxes();
		this.paintTexts();
		this.paintOutlines();
	}

	// Boxes are gathered by colour, as changing it costs more than a box.
	addBox(color, left, width, y) {
		const list = this.boxes.get(color);

		if (list)
			list.push(left, width, y);
		else
			this.boxes.set(color, [left, width, y]);
	}

	paintBoxes() {
		const { pen } = this;

		for (const [color, list] of this.boxes) {
			pen.fillStyle = color;
			for (let i = 0; i < list.length; i += 3)
				pen.fillRect(list[i], list[i + 2], list[i + 1], this.row - 1);
		}
		for (let i = 0; i < this.hatches.length; i += 4) {
			pen.fillStyle = this.hatches[i];
			pen.fillRect(this.hatches[i + 1], this.hatches[i + 3], this.hatches[i + 2], this.row - 1);
		}
		pen.fillStyle = this.palette.fadedText;
		for (let i = 0; i < this.dots.length; i += 2)
			pen.fillText("…", this.dots[i], this.dots[i + 1]);
	}

	placeLevel(level, y) {
		const { tree, lay, palette, view, matches, shown } = this,
			zoomDepth = tree.depth[this.zoomNode];
		const below = this.options.up ? y - this.row : y + this.row,
			scale = this.width / (view.x1 - view.x0),
			{ dimmed } = this,
			fadedColor = matches || dimmed ? palette.lost : palette.root;

		walkLevel(tree, lay, level, view, this.width, MIN_WIDTH, (node, left, right, from, to) => {
			if (node < 0) {
				this.placeRun(level, y, left, right, from, to);
				return;
			}
			const l = left > 0 ? Math.round(left) : 0,
				r = right < this.width ? Math.round(right) : this.width,
				faded =
					matches || dimmed
						? (matches && !matches[node]) || (dimmed && dimmed[node])
						: level < zoomDepth;

			if (r - l >= MIN_MARK)
				shown.push(node, l, r, y, faded ? 1 : 0);
			this.addBox(faded ? fadedColor : this.colorOf(node), l, r - l > 2 ? r - l - 1 : Math.max(1, r - l), y);
			if (tree.totalB && !faded)
				this.placeHatch(node, l, r, y);
			if (lay.lost[node] > 0)
				this.placeLost((lay.childEnd[node] - view.x0) * scale, lay.lost[node] * scale, below);
		});
	}

	placeRun(level, y, left, right, from, to) {
		const { palette, matchCount } = this,
			l = Math.max(0, left);

		this.runs.push({ level, left, right, from, to });
		this.addBox(
			matchCount?.[to] > matchCount?.[from]
				? palette.match
				: matchCount || this.dimmed
					? palette.lost
					: palette.run,
			Math.floor(l),
			Math.max(1, Math.round(Math.min(right, this.width) - l)),
			y
		);
	}

	placeLost(left, size, y) {
		const l = Math.max(0, Math.round(left)),
			r = Math.min(this.width, Math.round(left + size));

		if (r - l < 2)
			return;
		this.addBox(this.palette.lost, l, r - l - 1, y);
		if (r - l > 14)
			this.dots.push(l + (r - l) / 2 - 5, y + this.row / 2 - 3);
	}

	placeHatch(node, l, r, y) {
		const ratio = changeOf(this.tree, node);

		if (node > 0 && Math.abs(ratio) > 0.02 && r - l >= 6)
			this.hatches.push(ratio > 0 ? this.rising : this.falling, l, r - l - 1, y);
	}

	paintTexts() {
		const { pen, tree, palette, shown, labels } = this,
			dotted = [];

		for (let i = 0; i < shown.length; i += 5) {
			const node = shown[i],
				l = shown[i + 1],
				r = shown[i + 2],
				y = shown[i + 3];

			if (tree.inl[node] && r - l > 3)
				dotted.push(l, r, y);
			if (r - l < MIN_LABEL)
				continue;
			const sign = tree.totalB && node ? CHANGE_SIGNS[changeStep(changeOf(tree, node))] : "",
				text = labels.fit(tree.fn[node], r - l - 2 * PADDING, sign);

			if (!text)
				continue;
			pen.fillStyle = shown[i + 4] ? palette.fadedText : palette.text;
			pen.fillText(text, l + PADDING, y + this.row / 2);
		}
		this.paintInlined(dotted);
	}

	// A dotted upper edge: there was no call.
	paintInlined(edges) {
		const { pen } = this;

		if (edges.length === 0)
			return;
		pen.setLineDash([2, 2]);
		pen.strokeStyle = this.palette.text;
		pen.lineWidth = 1;
		pen.beginPath();
		for (let i = 0; i < edges.length; i += 3) {
			pen.moveTo(edges[i], edges[i + 2] + 0.5);
			pen.lineTo(edges[i + 1] - 1, edges[i + 2] + 0.5);
		}
		pen.globalAlpha = 0.55;
		pen.stroke();
		pen.globalAlpha = 1;
		pen.setLineDash([]);
	}

	paintOutlines() {
		const { pen, shown, tree } = this;

		pen.strokeStyle = this.palette.outline;
		pen.lineWidth = 1;
		pen.beginPath();
		for (let i = 0; this.hoverFn > 0 && i < shown.length; i += 5)
			if (tree.fn[shown[i]] === this.hoverFn)
				pen.rect(
					shown[i + 1] + 0.5,
					shown[i + 3] + 0.5,
					Math.max(1, shown[i + 2] - shown[i + 1] - 2),
					this.row - 2
				);
		pen.stroke();
		for (let i = 0; i < shown.length; i += 5)
			if (shown[i] === this.selected) {
				pen.lineWidth = 2;
				pen.strokeRect(
					shown[i + 1] + 1,
					shown[i + 3] + 1,
					Math.max(1, shown[i + 2] - shown[i + 1] - 3),
					this.row - 3
				);
			}
	}
}

// Mouse, touch and pen on a chart.
class ChartGestures {
	constructor(chart) {
		this.chart = chart;
		this.fingers = new Map();
		this.pressed = [];
		const on = (type, run, options) => chart.canvas.addEventListener(type, run, options);

		on("pointerdown", event => this.down(event));
		on("pointermove", event => this.move(event));
		on("pointerup", event => this.up(event));
		on("pointercancel", event => this.forget(event));
		on("pointerleave", event => this.leave(event));
		on("dblclick", event => this.double(event));
		on("contextmenu", event => this.menu(event));
		on("wheel", event => this.wheel(event), { passive: false });
	}

	down(event) {
		this.fingers.set(event.pointerId, { x: event.clientX, y: event.clientY });
		this.start = { x: event.clientX, y: event.clientY, scroll: this.chart.host.scrollTop };
		this.moved = this.fingers.size > 1 || event.button !== 0;
		this.lastX = event.clientX;
		if (event.button === 0)
			this.pressed = [this.pressed[1], this.functionAt(event)];
		clearTimeout(this.press);
		if (event.pointerType !== "mouse" && this.fingers.size === 1)
			this.press = setTimeout(() => {
				this.moved = true;
				this.menu(event);
			}, LONG_PRESS_MS);
	}

	move(event) {
		const finger = this.fingers.get(event.pointerId);

		if (!finger) {
			this.hover(event);
			return;
		}
		if (this.fingers.size === 2)
			this.pinch(event);
		else if (this.moved || Math.hypot(event.clientX - this.start.x, event.clientY - this.start.y) > CLICK_SLOP)
			this.drag(event);
		finger.x = event.clientX;
		finger.y = event.clientY;
	}

	drag(event) {
		const { chart } = this;

		clearTimeout(this.press);
		if (!this.moved && event.pointerType === "mouse")
			chart.canvas.setPointerCapture(event.pointerId);
		this.moved = true;
		if (!(event.buttons & 1))
			return;
		chart.canvas.classList.add("moving");
		if (chart.isZoomed)
			chart.pan(this.lastX - event.clientX);
		this.lastX = event.clientX;
		if (event.pointerType === "mouse")
			chart.host.scrollTop = this.start.scroll + this.start.y - event.clientY;
	}

	pinch(event) {
		const [a, b] = [...this.fingers.values()],
			before = Math.abs(a.x - b.x),
			moving = this.fingers.get(event.pointerId),
			other = moving === a ? b : a;
		const after = Math.abs(event.clientX - other.x),
			box = this.chart.canvas.getBoundingClientRect();

		this.moved = true;
		if (before > 8 && after > 8)
			this.chart.zoomAt((event.clientX + other.x) / 2 - box.left, after / before);
	}

	up(event) {
		const wasClick = !this.moved && this.fingers.has(event.pointerId);

		this.forget(event);
		if (wasClick)
			this.click(event);
	}

	forget(event) {
		clearTimeout(this.press);
		this.fingers.delete(event.pointerId);
		this.chart.canvas.classList.remove("moving");
	}

	click(event) {
		const { chart } = this,
			found = chart.find(event.clientX, event.clientY);

		if (!found)
			return;
		if (chart.options.onClick) {
			chart.options.onClick(found.node, event, found);
		} else if (found.node >= 0) {
			chart.zoomTo(found.node);
			chart.options.onZoom?.(chart.zoomPath);
		}
	}

	functionAt(event) {
		const { chart } = this,
			found = chart.find(event.clientX, event.clientY);

		return found && found.node > 0 ? chart.tree.functions[chart.tree.fn[found.node]] : null;
	}

	// Means what was there before the first of its clicks zoomed; by now it may be another tree.
	double(event) {
		const [first] = this.pressed;

		event.preventDefault();
		if (first)
			this.chart.options.onDouble?.(first);
	}

	hover(event) {
		const found = this.chart.find(event.clientX, event.clientY);

		this.chart.setHover(found && !found.lost ? found.node : -1);
		this.chart.options.onHover?.(found ? found.node : -1, event, found);
	}

	leave(event) {
		if (this.fingers.size)
			return;
		this.chart.setHover(-1);
		this.chart.options.onHover?.(-1, event, null);
	}

	menu(event) {
		const found = this.chart.find(event.clientX, event.clientY);

		if (event.type === "contextmenu")
			event.preventDefault();
		if (found && found.node >= 0)
			this.chart.options.onMenu?.(found.node, event);
	}

	wheel(event) {
		const { chart } = this;

		if (event.ctrlKey || event.metaKey) {
			event.preventDefault();
			chart.zoomAt(
				event.clientX - chart.canvas.getBoundingClientRect().left,
				Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.004))
			);
		} else if ((event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) && chart.isZoomed) {
			event.preventDefault();
			chart.pan(event.deltaX || event.deltaY);
		}
	}
}

/** A chart in an element that has a height; see ChartOptions. */
export function makeFlame(host, ctx, options) {
	return new FlameChart(host, ctx, { order: "size", ...options });
}
