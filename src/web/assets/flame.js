// The flame page: toolbar, ruler, minimap, chart, details; keeps what is shown in the URL.
import { h, clear, icon, iconButton, segmented, selectField, textButton } from "./dom.js";
import { isAbort } from "./request.js";
import { CHIP_NAMES, FILTER_KEYS, isSingleFile } from "./state.js";
import { cleanName, formatCount, formatValue, scaleValue } from "./format.js";
import { openMenu } from "./menu.js";
import { colorMode, makeFlame, nodeColors, nodeGroups, walkLevel } from "./flame_draw.js";
import { commonNodes, findPath, layoutFlame, pathNodes, pathOf, weightOf } from "./flame_tree.js";
import { announceNode, createFlameTip, describeFound, describeNode, percentBase } from "./flame_tip.js";
import { createFlameGrid } from "./flame_grid.js";
import { readableRegexp } from "./chips.js";
import { whyLink } from "./inspector.js";

// Frames of a smaller share are not sent; if then much is missing of a zoom, more is asked for.
const LEAST_SHARE = 0.0005,
	FEW_NODES = 3000,
	MUCH_CUT = 0.02,
	FINER = 4,
	FINEST = 1e-7,
	SETTLE_MS = 220,
	ZOOM_WAIT_MS = 180,
	MAP_ROW = 2,
	MOST_MATCHES = 20000,
	RUN_FRAMES = 40,
	LEGEND_ROWS = 14;
const COLOR_MODES = [
	{ value: "package", text: "package" },
	{ value: "module", text: "module" },
	{ value: "kind", text: "kind of code" },
	{ value: "self", text: "self share" },
	{ value: "label", text: "label" },
	{ value: "change", text: "change" },
];

function sizedPen(canvas) {
	const dpr = devicePixelRatio || 1,
		width = canvas.clientWidth,
		height = canvas.clientHeight,
		pen = canvas.getContext("2d");
	const w = Math.max(1, Math.round(width * dpr)),
		hh = Math.max(1, Math.round(height * dpr));

	// Setting the size is slow, and clears.
	if (canvas.width !== w || canvas.height !== hh)
		Object.assign(canvas, { width: w, height: hh });
	pen.setTransform(dpr, 0, 0, dpr, 0, 0);
	pen.clearRect(0, 0, width, height);
	return { pen, width, height };
}

// 1, 2 or 5 times a power of ten, in the unit that will be shown.
function tickStep(range, most, unit, to) {
	const [shown, name] = scaleValue(range, unit, to),
		rough = shown / most,
		power = 10 ** Math.floor(Math.log10(rough));

	return { step: (([1, 2, 5, 10].map(f => f * power).find(step => step >= rough) || rough) * range) / shown, name };
}

function isThin(tree) {
	return !isSingleFile() && tree.n < FEW_NODES && tree.header.cut?.weight > MUCH_CUT * tree.total[0];
}

class FlamePage {
	constructor(el, ctx) {
		Object.assign(this, {
			el,
			ctx,
			base: null,
			detail: null,
			cursorPath: "",
			dataKey: "",
			looks: "",
			placeKey: "",
			ready: false,
			cursor: -1,
			searched: null,
			matchList: null,
			matchAt: -1,
		});
		this.build();
		this.keys = this.keyTable();
	}

	get stats() {
		return { nodes: this.tree ? this.tree.n : 0, frames: this.chart.frames };
	}

	get tree() {
		return this.chart.tree;
	}

	// ---- parts

	build() {
		const { el, ctx } = this;

		this.makeToolbar();
		this.banner = h("div", { class: "banner", role: "note", hidden: true });
		this.ruler = h("canvas", { "aria-hidden": "true" });
		this.map = h("canvas", { "aria-hidden": "true" });
		this.mapRow = h(
			"div",
			{ class: "minimap", hidden: true },
			this.map,
			textButton("Reset zoom", () => this.reset(), "btn small", { title: "Show all (0)" })
		);
		this.host = h("div", { class: "chart" });
		this.overlay = h("div", { class: "empty", hidden: true });
		this.stage = h(
			"div",
			{ class: "stage" },
			h("div", { class: "ruler" }, this.ruler),
			this.overlay,
			this.host,
			this.mapRow
		);
		this.what = h("span", { class: "what" });
		this.amount = h("span", { class: "amount" });
		this.legend = h("div", { class: "colors", role: "group", "aria-label": "Colours", hidden: true });
		el.append(this.toolbar, this.legend, this.banner, this.stage, h("div", { class: "details" }, this.what, this.amount));
		this.tip = createFlameTip(ctx);
		this.chart = makeFlame(this.host, ctx, {
			label: "Flame graph",
			onHover: (node, event, found) => this.hovered(found, event),
			onClick: (node, event, found) => this.clicked(found, event),
			onDouble: fn => this.sandwich(fn),
			onMenu: (node, event) => this.menu(node, event),
			onView: () => this.settle(),
			onPaint: () => this.paintAround(),
			onScroll: () => this.tip.hide(),
		});
		this.grid = createFlameGrid(this.host, ctx, node => this.moveTo(node, true));
		this.listenRuler();
		this.listenMap();
	}

	makeToolbar() {
		const { ctx } = this,
			toggle = (key, value) => ctx.set({ [key]: value });

		this.order = segmented(
			"Order of siblings",
			[
				{ value: "size", text: "by size" },
				{ value: "name", text: "by name" },
				!isSingleFile() && { value: "address", text: "by address", title: "By module and address" },
			].filter(Boolean),
			"size",
			value => toggle("ord", value === "size" ? null : value)
		);
		this.direction = segmented(
			"Direction",
			[
				{ value: "callees", text: "callees", title: "From the root to what it calls" },
				{ value: "callers", text: "callers", title: "From the leaves to their callers" },
			],
			"callees",
			value => ctx.set({ dir: value === "callers" ? "callers" : null, z: null, x: null })
		);
		this.orientation = segmented(
			"Orientation",
			[
				{ value: "down", text: "icicle", title: "Root at the top" },
				{ value: "up", text: "flame", title: "Root at the bottom" },
			],
			"down",
			value => toggle("up", value === "up" ? 1 : null)
		);
		this.colors = selectField("Colour by", COLOR_MODES, "package", value =>
			ctx.set({ col: value === colorMode(this.base || {}) ? null : value, only: null })
		);
		this.legendButton = textButton("Legend", () => this.toggleLegend(), "btn small quiet toggle");
		this.chips = h("span", { class: "frame-chips" });
		this.count = h("span", { class: "muted count" });
		this.toolbar = h(
			"div",
			{ class: "toolbar", role: "toolbar", "aria-label": "Flame graph" },
			this.order,
			this.direction,
			this.orientation,
			this.colors,
			this.legendButton,
			textButton(["Frames", icon("down")], event => this.openFrames(event), "btn small", {
				"aria-haspopup": "menu",
				"aria-expanded": "false",
			}),
			this.chips,
			h("span", { class: "spacer" }),
			this.count
		);
	}

	destroy() {
		clearTimeout(this.settleTimer);
		this.loading?.abort();
		this.detailing?.abort();
		this.chart.destroy();
		this.tip.destroy();
	}

	focus() {
		this.grid.focus();
	}

	// ---- data

	update(state) {
		const { ctx } = this,
			key = JSON.stringify([
				...[...FILTER_KEYS, "a", "b", "dir", "rc", "inl", "addr", "p"].map(name => state[name] || ""),
				state.ord === "address",
			]);
		const looks = JSON.stringify([state.ord, state.up, ctx.storage.get("row")]),
			style = JSON.stringify([state.col, state.only, ctx.theme]);

		this.showControls(state);
		if (key !== this.dataKey) {
			this.dataKey = key;
			this.load();
		} else if (this.base) {
			if (looks !== this.looks)
				this.relook(state);
			if (style !== this.style)
				this.restyle(state);
			this.applyPlace();
			this.applySearch();
			this.showPointed();
		}
		Object.assign(this, { looks, style });
		this.showLegend();
	}

	showControls(state) {
		this.order.set(state.ord || "size");
		this.direction.set(state.dir === "callers" ? "callers" : "callees");
		this.orientation.set(state.up ? "up" : "down");
		this.stage.classList.toggle("rises", Boolean(state.up));
		this.colors.set(colorMode(this.base || {}, state.col));
		for (const [mode, has] of [
			["label", state.tr || state.tl || state.col === "label"],
			["change", this.base?.totalB],
		])
			this.colors.querySelector(`[value=${mode}]`).hidden = !has;
		const chips = [
			["p", "starts at: ", cleanName(readableRegexp(state.p || ""), 60)],
			["rc", "recursion: ", state.rc === "2" ? "all collapsed" : "collapsed"],
			["inl", "inlined: ", "apart"],
			["addr", "addresses: ", "expanded"],
		].filter(chip => state[chip[0]]);

		if (this.chipKey !== chips.join())
			clear(this.chips).append(...chips.map(chip => this.makeChip(...chip)));
		this.chipKey = chips.join();
	}

	makeChip(key, name, text) {
		return h(
			"span",
			{ class: "chip", "data-key": key },
			h("span", { class: "chip-edit" }, h("span", { class: "chip-key" }, name), text),
			iconButton(
				"close",
				`Remove ${name}${text}`,
				() => this.ctx.set({ [key]: null, ...(key !== "rc" && { z: null, x: null }) }),
				{ class: "chip-close" }
			)
		);
	}

	// How frames are told apart.
	openFrames(event) {
		const { ctx } = this,
			{ rc, inl, addr } = ctx.state;
		const item = (label, checked, changes, key) => ({
			label,
			key,
			checked: Boolean(checked),
			many: true,
			run: () => ctx.set(changes),
		});

		this.tip.hide();
		openMenu(
			event,
			[
				item("Collapse direct recursion", rc === "1", { rc: rc === "1" ? null : 1 }, "r"),
				!isSingleFile() && item("Collapse indirect recursion, too", rc === "2", { rc: rc === "2" ? null : 2 }),
				!isSingleFile() &&
					item("Separate inlined from called", inl, { inl: inl ? null : 1, z: null, x: null }),
				ctx.meta.profiles.some(p => p.has_unnamed) &&
					!isSingleFile() &&
					item("Expand addresses without names", addr, { addr: addr ? null : 1, z: null, x: null }),
			].filter(Boolean),
			"Frames"
		);
	}

	async params() {
		const { state, api, groups } = this.ctx,
			{ dir, rc, inl, b } = state,
			params = { min: LEAST_SHARE, dir, rc, inl, b, group: groups, ord: state.ord === "address" ? "address" : "" };

		if (!state.p)
			return params;
		const found = await api.get("search", { q: state.p, re: 1, group: groups }, { signal: this.loading.signal });

		if (!found.ids.length)
			throw new Error(`No function matches ${state.p}`);
		return { ...params, pivot: found.ids[0] };
	}

	async load() {
		this.loading?.abort();
		this.detailing?.abort();
		this.loading = new AbortController();
		const { signal } = this.loading;

		this.ready = false;
		if (!this.base)
			this.showSkeleton();
		try {
			const tree = await this.ctx.api.flame(await this.params(), { signal });

			if (!signal.aborted)
				this.loaded(tree);
		} catch (error) {
			if (isAbort(error))
				return;
			this.ready = true;
			if (!this.base)
				this.showMessage("The profile cannot be shown", error.message);
			this.ctx.error(error, () => {
				this.dataKey = "";
				this.update(this.ctx.state);
			});
		}
	}

	async finer(tree, params, signal) {
		for (let { min } = params; isThin(tree) && min > FINEST;)
			tree = await this.ctx.api.flame({ ...params, min: (min /= FINER) }, { signal });
		return tree;
	}

	loaded(tree) {
		const { ctx } = this,
			header = tree.header;

		this.base = tree;
		this.detail = null;
		this.placeKey = "";
		this.ready = true;
		this.showControls(ctx.state);
		ctx.learn(tree.functions);
		ctx.setTotal({ total: header.total, unit: header.unit, type: header.type });
		this.showTree(tree, false);
		this.showLegend();
		this.showBanner(header.warnings || []);
		if (tree.n === 1 && !(tree.total[0] > 0) && !(tree.totalB?.[0] > 0))
			this.showEmpty();
		else
			this.overlay.hidden = true;
		this.applyPlace(true);
		this.applySearch();
		ctx.recount();
		this.showPointed();
		ctx.announce(`Flame graph: ${this.summary()}`);
	}

	summary() {
		const tree = this.base,
			cut = tree.header.cut?.nodes || 0;

		return `${formatCount(tree.n - 1)} frames · ${tree.levels.length - 2} levels${cut ? ` · ${formatCount(cut)} smaller ones on zoom` : ""}`;
	}

	// Another tree in the chart; what was selected is found again by its path.
	showTree(tree, keepView) {
		const { chart, ctx } = this;

		if (chart.tree === tree)
			return;
		chart.setTree(tree, {
			keepView,
			order: ctx.state.ord === "name" ? "name" : "size",
			up: Boolean(ctx.state.up),
			mode: ctx.state.col || "auto",
			group: ctx.state.only,
		});
		chart.canvas.setAttribute(
			"aria-label",
			`Flame graph of ${ctx.profile?.name || "the profile"}: ${this.summary()}`
		);
		const at = this.cursorPath ? findPath(tree, this.cursorPath) : null;

		this.cursor = at?.complete ? at.node : 0;
		chart.select(at?.complete ? at.node : -1);
		this.grid.update(tree, this.cursor, chart.zoomNode);
		this.searched = this.mapPicture = null;
		this.baseLay = tree === this.base ? chart.lay : null;
	}

	relook(state) {
		const { chart } = this,
			tree = chart.tree;

		chart.tree = null;
		chart.options.up = Boolean(state.up);
		this.showTree(tree, false);
		this.placeKey = "";
	}

	restyle(state) {
		this.chart.restyle(state.col || "auto", state.only);
		this.mapPicture = null;
	}

	// ---- where in the tree

	/** Makes the chart show the place in the URL: z is a path of functions, x a range within it. */
	applyPlace(first) {
		const { z = "", x = "" } = this.ctx.state,
			key = `${z} ${x}`;

		if (key === this.placeKey || !this.base)
			return;
		this.placeKey = key;
		const inDetail = this.detail && (z === this.detail.path || z.startsWith(this.detail.path + ".")),
			tree = inDetail ? this.detail.tree : this.base;

		if (tree !== this.chart.tree) {
			const from = findPath(tree, this.detail?.path || "").node;

			this.showTree(tree, true);
			this.chart.setView(this.chart.viewOf(from), false);
		}
		const place = findPath(tree, z);

		if (!this.cursorPath) {
			this.cursor = place.node;
			this.grid.update(tree, place.node, place.node);
		}
		this.zoomChart(place.node, place.complete ? x : "", !first);
		this.showCrumbs(place.node);
		this.fetchDetail(z, place);
		this.count.title = this.summary();
		this.count.textContent = `${formatCount(this.base.n - 1)} frames${this.base.header.cut?.nodes ? "+" : ""}`;
	}

	zoomChart(node, x, animate) {
		const { chart } = this,
			range = /^(-?[\d.e-]+?)-([\d.e-]+)$/.exec(x),
			whole = chart.viewOf(node),
			size = whole.x1 - whole.x0;

		chart.zoomNode = node;
		this.zoomStart = performance.now();
		const view = range
			? chart.clampView(whole.x0 + Number(range[1]) * size, whole.x0 + Number(range[2]) * size)
			: whole;

		if (view.x0 !== chart.view.x0 || view.x1 !== chart.view.x1)
			chart.setView(view, animate && !this.settling);
		else
			chart.requestDraw();
		chart.reveal(node);
	}

	showCrumbs(node) {
		const { tree } = this.chart,
			label = i => tree.functions[tree.fn[i]][1];

		this.ctx.crumbs([
			{ text: "all", run: () => this.reset() },
			...pathNodes(tree, node).map(i => ({ text: label(i), run: () => this.zoomTo(i) })),
		]);
	}

	// What was cut off inside the zoom is asked for.
	async fetchDetail(z, place) {
		const cut = this.chart.tree.header.cut?.nodes > 0;

		this.detailing?.abort();
		if (!z || isSingleFile() || this.detail?.path === z || (place.complete && !cut))
			return;
		this.detailing = new AbortController();
		const { signal } = this.detailing;

		try {
			const params = { ...(await this.params()), root: z };
			const tree = await this.finer(await this.ctx.api.flame(params, { signal }), params, signal);

			await new Promise(done =>
				setTimeout(done, Math.max(0, ZOOM_WAIT_MS - (performance.now() - this.zoomStart)))
			);
			if (signal.aborted || (this.ctx.state.z || "") !== z)
				return;
			this.detail = { path: z, tree };
			this.showTree(tree, true);
			this.placeKey = "";
			this.chart.setView(this.chart.viewOf(findPath(tree, z).node), false);
			this.applyPlace(true);
			this.applySearch();
		} catch (error) {
			// Names in old addresses may be gone; then what is there is shown.
			if (!isAbort(error) && !place.complete)
				this.ctx.toast(`The zoomed frame is not in this data: ${error.message}`);
			else if (!isAbort(error))
				this.ctx.error(error);
		}
	}

	zoomTo(node) {
		this.ctx.set({ z: node > 0 ? pathOf(this.chart.tree, node) : null, x: null });
	}

	reset() {
		this.ctx.set({ z: null, x: null });
	}

	/** The view was moved freely: the deepest frame around it is the zoom, the range goes with it. */
	settle() {
		clearTimeout(this.settleTimer);
		this.settleTimer = setTimeout(() => {
			const { chart } = this,
				{ tree, lay, view } = chart,
				slack = (view.x1 - view.x0) * 1e-6;
			let node = 0;

			for (let child = tree.first[0], end = child + tree.nchild[0]; child < end;)
				if (lay.x[child] <= view.x0 + slack && lay.x[child] + lay.w[child] >= view.x1 - slack) {
					node = child;
					child = tree.first[node];
					end = child + tree.nchild[node];
				} else {
					child++;
				}
			const whole = chart.viewOf(node),
				size = whole.x1 - whole.x0,
				a = (view.x0 - whole.x0) / size,
				b = (view.x1 - whole.x0) / size;
			const x =
				a < 1e-6 && b > 1 - 1e-6 ? null : `${Number(Math.max(0, a).toFixed(9))}-${Number(b.toFixed(9))}`;

			this.settling = true;
			this.ctx.set({ z: node > 0 ? pathOf(tree, node) : null, x }, { push: false });
			this.settling = false;
		}, SETTLE_MS);
	}

	// ---- pointer

	hovered(found, event) {
		this.pointed = found;
		this.showPointed();
		if (!found || found.run || found.lost || event.pointerType === "touch")
			this.tip.leave();
		else
			this.tip.show(this.tree, found.node, event.clientX, event.clientY, this.chart.zoomNode);
	}

	showPointed() {
		const { ctx, chart } = this,
			found = this.pointed || (this.cursor >= 0 ? { node: this.cursor } : null);

		if (!this.tree || !found)
			return;
		const text =
			found.node < 0 || found.lost
				? describeFound(ctx, this.tree, chart.lay, found, chart.zoomNode)
				: describeNode(ctx, this.tree, found.node, chart.zoomNode);

		this.what.textContent = text.name;
		this.what.title = text.name;
		this.amount.textContent = text.amount;
	}

	// Into a run of narrow frames, so far that some dozens fill the width.
	zoomToRun(run, event) {
		const { chart } = this,
			{ lay, view } = chart,
			at = k => (lay.order ? lay.order[k] : k),
			from = lay.x[at(run.from)],
			last = at(run.to - 1),
			to = lay.x[last] + lay.w[last];
		const size = Math.min(to - from, (RUN_FRAMES * (to - from)) / (run.to - run.from)),
			here =
				view.x0 +
				((event.clientX - chart.canvas.getBoundingClientRect().left) * (view.x1 - view.x0)) / chart.width;
		const left = Math.min(Math.max(here - size / 2, from), to - size);

		chart.setView(chart.clampView(left, left + size), true);
		setTimeout(() => this.settle(), ZOOM_WAIT_MS);
	}

	clicked(found, event) {
		this.tip.hide();
		if (found.run) {
			this.zoomToRun(found.run, event);
			return;
		}
		this.moveTo(found.node);
		this.zoomTo(found.node);
		this.grid.focus();
	}

	sandwich(fn) {
		this.ctx
			.actions(fn)
			.find(action => action.key === "w")
			?.run();
	}

	functionOf(node) {
		return this.tree.functions[this.tree.fn[node]];
	}

	menu(node, event) {
		const { ctx } = this;

		this.tip.hide();
		this.moveTo(node);
		openMenu(event, [
			{ title: cleanName(this.functionOf(node)[1], 80) },
			...(node > 0
				? ctx.actions(this.functionOf(node))
				: [{ label: "Show all", key: "0", run: () => this.reset() }]),
		]);
	}

	// ---- the frame in focus

	moveTo(node, byKey) {
		const { ctx, chart, tree } = this,
			fn = this.functionOf(node);

		this.cursor = node;
		this.cursorPath = pathOf(tree, node);
		chart.select(node);
		this.grid.update(tree, node, chart.zoomNode);
		if (byKey) {
			this.pointed = null;
			ctx.announce(announceNode(ctx, tree, node, chart.zoomNode));
		}
		this.showPointed();
		ctx.select(node > 0 ? fn : null, node > 0 ? this.frameFacts(node) : null);
		if (byKey)
			this.makeVisible(node);
	}

	frameFacts(node) {
		const { tree } = this;

		return {
			total: tree.total[node],
			self: tree.self[node],
			parent: tree.total[tree.parent[node]],
			zoom: () => this.chart.zoomNode && this.tree.total[this.chart.zoomNode],
			unit: tree.header.unit,
			path: this.cursorPath,
			stack: () =>
				pathNodes(tree, node)
					.map(i => tree.functions[tree.fn[i]][1])
					.join("\n"),
		};
	}

	// Frames that are out of view or too narrow come with their caller.
	makeVisible(node) {
		const { chart } = this,
			{ view, lay } = chart,
			scale = chart.width / (view.x1 - view.x0),
			right = lay.x[node] + lay.w[node];

		chart.reveal(node);
		if (lay.w[node] * scale < 4 || right <= view.x0 || lay.x[node] >= view.x1) {
			const target =
				(lay.w[node] * chart.width) / Math.max(lay.w[this.tree.parent[node]], 1e-300) < 4
					? node
					: this.tree.parent[node];

			this.ctx.set({ z: target > 0 ? pathOf(this.tree, target) : null, x: null }, { push: false });
			return;
		}
		const box = chart.rectOf(node);

		this.tip.hide();
		this.tip.show(this.tree, node, box.x + Math.min(box.width, 40), box.y + box.height, chart.zoomNode);
	}

	sibling(step) {
		const { tree, chart } = this,
			{ order, x } = chart.lay,
			node = Math.max(0, this.cursor),
			parent = tree.parent[node],
			first = tree.first[parent];

		if (node === 0)
			return;
		const siblings = Array.from({ length: tree.nchild[parent] }, (_, i) => first + i);

		if (order)
			siblings.sort((a, b) => x[a] - x[b]);
		const at = siblings.indexOf(node),
			to =
				step === -Infinity
					? 0
					: step === Infinity
						? siblings.length - 1
						: Math.min(Math.max(at + step, 0), siblings.length - 1);

		this.moveTo(siblings[to], true);
	}

	vertical(step) {
		const node = Math.max(0, this.cursor),
			{ tree } = this;

		if (step < 0)
			this.moveTo(tree.parent[node], true);
		else if (tree.nchild[node])
			this.moveTo(tree.first[node], true);
		else
			this.ctx.announce(tree.lost[node] ? "Enter fetches what is below" : "No callees");
	}

	keyTable() {
		const { ctx } = this;
		const inPage = run => event => {
			const active = document.activeElement;

			if (!this.tree || (active && active !== document.body && !active.closest("main")))
				return false;
			run(event);
		};
		const down = () => (ctx.state.up ? -1 : 1);

		return Object.fromEntries(
			Object.entries({
				ArrowUp: () => this.vertical(-down()),
				ArrowDown: () => this.vertical(down()),
				ArrowLeft: () => this.sibling(-1),
				ArrowRight: () => this.sibling(1),
				Home: () => this.sibling(-Infinity),
				End: () => this.sibling(Infinity),
				Enter: () => this.zoomTo(Math.max(0, this.cursor)),
				Backspace: () => this.zoomTo(this.tree.parent[this.chart.zoomNode]),
				0: () => this.reset(),
				"+": () => this.zoomKey(1.5),
				"=": () => this.zoomKey(1.5),
				"-": () => this.zoomKey(1 / 1.5),
				"Shift+ArrowLeft": () => this.chart.pan(-this.chart.width * 0.15),
				"Shift+ArrowRight": () => this.chart.pan(this.chart.width * 0.15),
				"Shift+ArrowUp": () => {
					this.host.scrollTop -= 3 * this.chart.row;
				},
				"Shift+ArrowDown": () => {
					this.host.scrollTop += 3 * this.chart.row;
				},
				m: () => this.menuKey(),
				ContextMenu: () => this.menuKey(),
				"Shift+F10": () => this.menuKey(),
			}).map(([key, run]) => [key, inPage(run)])
		);
	}

	zoomKey(factor) {
		const box = this.cursor > 0 ? this.chart.rectOf(this.cursor) : null,
			left = this.chart.canvas.getBoundingClientRect().left;
		const at = box && box.width > 0 ? box.x + box.width / 2 - left : this.chart.width / 2;

		this.chart.zoomAt(Math.min(Math.max(at, 0), this.chart.width), factor);
	}

	menuKey() {
		const node = Math.max(0, this.cursor),
			box = this.chart.rectOf(node);

		this.menu(node, { clientX: Math.max(box.x, 8) + 8, clientY: box.y + box.height, target: this.host });
	}

	nodeAt(x, y) {
		const found = this.chart.find(x, y);

		return found && !found.lost ? found.node : -1;
	}

	rectOf(node) {
		return this.tree ? this.chart.rectOf(node) : null;
	}

	// ---- search

	applySearch() {
		const { search } = this.ctx,
			{ tree } = this;

		if (search === this.searched || !tree)
			return;
		this.searched = search;
		this.setMatches(search && Uint8Array.from(tree.fn, fn => (fn && search.ids.has(tree.functions[fn][0]) ? 1 : 0)));
		if (search?.in === "label")
			this.matchLabels(search, tree);
	}

	setMatches(matches) {
		this.matchList = this.mapPicture = null;
		this.matchAt = -1;
		this.chart.setMatches(matches);
	}

	/** Of the functions that samples with a label go through, the frames that they do: those in a tree of them alone. */
	async matchLabels({ q, re, in: where }, tree) {
		const { searched, detail } = this,
			root = tree === detail?.tree ? detail.path : "";
		const part = await this.ctx.api
			.flame({ ...(await this.params()), min: 0, root, q, re: re ? 1 : 0, in: where })
			.catch(error => this.ctx.error(error));

		if (part && searched === this.searched && tree === this.tree) {
			this.setMatches(commonNodes(tree, part));
			this.ctx.recount();
		}
	}

	countFrames() {
		this.applySearch();
		return this.chart.matchCount ? this.chart.matchCount[this.tree.n] : -1;
	}

	searchNext(step) {
		const { chart, tree } = this;

		if (!chart.matches)
			return;
		if (!this.matchList) {
			const nodes = [];

			for (let i = 1; i < tree.n && nodes.length < MOST_MATCHES; i++)
				if (chart.matches[i])
					nodes.push(i);
			this.matchList = nodes.sort((a, b) => chart.lay.w[b] - chart.lay.w[a]);
		}
		const n = this.matchList.length;

		if (n === 0) {
			this.ctx.toast("The matches are among the smaller frames: use them as focus to see them");
			return;
		}
		this.matchAt = this.matchAt < 0 ? (step > 0 ? 0 : n - 1) : (this.matchAt + step + n) % n;
		const path = pathOf(tree, this.matchList[this.matchAt]),
			list = this.matchList,
			at = this.matchAt;

		this.moveTo(list[at], true);
		// A zoom on the way may have brought another tree.
		if (this.tree !== tree)
			((this.matchList = null), (this.cursorPath = path));
		this.ctx.announce(`Match ${at + 1} of ${n}: ${announceNode(this.ctx, this.tree, this.cursor, chart.zoomNode)}`);
	}

	// ---- ruler and minimap

	paintAround() {
		const { chart } = this;

		if (this.mapRow.hidden === chart.isZoomed)
			this.mapRow.hidden = !chart.isZoomed;
		this.paintRuler();
		if (chart.isZoomed)
			this.paintMap();
	}

	paintRuler() {
		const { chart, ctx } = this,
			{ view, tree } = chart,
			{ pen, width, height } = sizedPen(this.ruler);

		if (!(chart.lay.w[0] > 0))
			return;
		pen.font = "11px system-ui, sans-serif";
		pen.textBaseline = "middle";
		pen.fillStyle = chart.palette.fadedText;
		const whole = chart.viewOf(chart.zoomNode),
			{ step, name } = tickStep(view.x1 - view.x0, Math.max(2, width / 110), tree.header.unit, ctx.state.unit),
			scale = chart.width / (view.x1 - view.x0);

		for (let i = Math.ceil((view.x0 - whole.x0) / step); whole.x0 + i * step < view.x1; i++) {
			const px = Math.round((whole.x0 + i * step - view.x0) * scale);

			pen.fillRect(px, 0, 1, 5);
			if (px < width - 40)
				pen.fillText(formatValue(i * step, tree.header.unit, name), px + 4, 11);
		}
		if (this.range) {
			pen.globalAlpha = 0.25;
			pen.fillStyle = chart.palette.focus;
			pen.fillRect(Math.min(...this.range), 0, Math.abs(this.range[0] - this.range[1]), height);
			pen.globalAlpha = 1;
		}
	}

	listenRuler() {
		const at = event =>
			Math.min(Math.max(event.clientX - this.ruler.getBoundingClientRect().left, 0), this.chart.width);

		this.ruler.addEventListener("pointerdown", event => {
			this.range = [at(event), at(event)];
			this.ruler.setPointerCapture(event.pointerId);
		});
		this.ruler.addEventListener("pointermove", event => {
			if (this.range) {
				this.range[1] = at(event);
				this.paintRuler();
			}
		});
		this.ruler.addEventListener("pointerup", () => {
			const range = this.range,
				{ view, width } = this.chart,
				scale = (view.x1 - view.x0) / width;

			this.range = null;
			this.paintRuler();
			if (!range || Math.abs(range[0] - range[1]) < 4)
				return;
			this.chart.setView(
				this.chart.clampView(view.x0 + Math.min(...range) * scale, view.x0 + Math.max(...range) * scale),
				true
			);
			setTimeout(() => this.settle(), ZOOM_WAIT_MS);
		});
	}

	// All of the tree, small; drawn once and then copied.
	makeMap(width, height) {
		const { chart, base } = this,
			lay = (this.baseLay ||= layoutFlame(base, chart.options.order)),
			picture = document.createElement("canvas"),
			pen = picture.getContext("2d");
		const color = nodeColors(base, chart.palette, chart.options.mode),
			levels = Math.min(base.levels.length - 1, Math.floor(height / MAP_ROW));

		picture.width = Math.max(1, width);
		picture.height = Math.max(1, height);
		for (let level = 0; level < levels; level++)
			walkLevel(base, lay, level, { x0: 0, x1: lay.w[0] }, width, MIN_MAP, (node, left, right) => {
				pen.fillStyle = node < 0 ? chart.palette.run : color(node);
				pen.fillRect(
					left,
					chart.options.up ? height - (level + 1) * MAP_ROW : level * MAP_ROW,
					Math.max(1, right - left),
					MAP_ROW
				);
			});
		return picture;
	}

	// Where the view is in all of the tree, of which the chart may have but a part.
	mapView() {
		const { chart, base, baseLay } = this,
			{ view } = chart;

		if (chart.tree === base)
			return view;
		const at = findPath(base, pathOf(chart.tree, chart.zoomNode)),
			whole = chart.viewOf(chart.zoomNode),
			left = baseLay.x[at.node],
			scale = baseLay.w[at.node] / (whole.x1 - whole.x0);

		return at.complete
			? { x0: left + (view.x0 - whole.x0) * scale, x1: left + (view.x1 - whole.x0) * scale }
			: { x0: left, x1: left + baseLay.w[at.node] };
	}

	paintMap() {
		const { chart } = this,
			{ pen, width, height } = sizedPen(this.map);

		if (
			!this.mapPicture ||
			this.mapPicture.width !== width ||
			this.mapTree !== this.base ||
			this.mapPalette !== chart.palette
		) {
			this.mapPicture = this.makeMap(width, height);
			Object.assign(this, { mapTree: this.base, mapPalette: chart.palette });
		}
		const view = this.mapView(),
			scale = width / this.baseLay.w[0],
			left = view.x0 * scale,
			size = Math.max(2, (view.x1 - view.x0) * scale);

		pen.globalAlpha = 0.35;
		pen.drawImage(this.mapPicture, 0, 0);
		pen.globalAlpha = 1;
		pen.drawImage(this.mapPicture, left, 0, size, height, left, 0, size, height);
		pen.strokeStyle = chart.palette.focus;
		pen.lineWidth = 2;
		pen.strokeRect(left + 1, 1, Math.max(1, size - 2), height - 2);
	}

	listenMap() {
		const centre = event => {
			const { chart } = this,
				box = this.map.getBoundingClientRect(),
				view = this.mapView(),
				all = this.baseLay.w[0],
				size = (view.x1 - view.x0) / all,
				at = (event.clientX - box.left) / box.width;
			const left = Math.min(Math.max(at - size / 2, 0), 1 - size);

			if (chart.tree !== this.base)
				this.ctx.set({ z: null, x: `${left}-${left + size}` }, { push: false });
			chart.setView(chart.clampView(left * all, (left + size) * all), false);
			this.settle();
		};

		this.map.addEventListener("pointerdown", event => {
			this.map.setPointerCapture(event.pointerId);
			centre(event);
		});
		this.map.addEventListener("pointermove", event => event.buttons & 1 && centre(event));
	}

	// ---- messages

	/** The share of code that has no names, or nothing. */
	unnamedShare() {
		const { base } = this,
			isUnnamed = base.functions.map(fn => fn[5] & 2);
		let weight = 0;

		for (let i = 1; i < base.n; i++)
			if (isUnnamed[base.fn[i]])
				weight += base.self[i] + (base.selfB?.[i] || 0);
		return weight ? `${this.ctx.percent(weight, weightOf(base, 0))} without names` : "";
	}

	showBanner(warnings) {
		const { ctx } = this,
			unnamed = this.unnamedShare(),
			lines = [...(ctx.profile?.missing || []), ...warnings].map(line => cleanName(String(line), 400));

		if (unnamed)
			lines[0] = [unnamed, ...lines.slice(0, 1)].join(". ");

		this.banner.hidden = lines.length === 0 || this.bannerClosed === lines.join();
		clear(this.banner).append(
			icon("warn"),
			lines.length > 1
				? h(
						"details",
						{ class: "text" },
						h("summary", {}, `${lines[0]} (${lines.length - 1} more)`),
						lines.slice(1, 50).map(line => h("p", {}, line))
					)
				: h("p", { class: "text" }, lines[0]),
			unnamed && ctx.groups
				? textButton("Expand addresses", () => ctx.set({ addr: 1, z: null, x: null }))
				: "",
			(unnamed && whyLink(ctx)) || "",
			iconButton("close", "Close this note", () => {
				this.bannerClosed = lines.join();
				this.banner.hidden = true;
			})
		);
	}

	showMessage(title, ...body) {
		clear(this.overlay).append(h("h2", {}, title), ...body);
		this.overlay.className = "empty";
		this.overlay.hidden = false;
	}

	// Rows that get shorter, as the graph's will.
	showSkeleton() {
		clear(this.overlay).append(
			...[100, 98, 82, 74, 51, 33, 12].map(width => h("span", { style: { width: `${width}%` } }))
		);
		this.overlay.className = "skeleton";
		this.overlay.hidden = false;
	}

	/** Nothing is left: which filter took it away? */
	async showEmpty() {
		const { ctx } = this,
			active = Object.keys(CHIP_NAMES).filter(key => key in ctx.state && key !== "unit" && key !== "g");

		if (active.length === 0) {
			const { samples, types = [] } = ctx.profile || {},
				shown = ctx.sampleType();

			this.showMessage(
				samples ? `All samples are 0 in ${cleanName(shown?.type || "this type", 60)}` : "This profile has no samples",
				h(
					"p",
					{ class: "muted" },
					samples
						? `There are ${formatCount(samples)} samples; they may weigh something in another type.`
						: "It was read without an error, but there is nothing in it."
				),
				h(
					"div",
					{ class: "actions" },
					samples > 0 &&
						types
							.filter(type => type !== shown)
							.slice(0, 12)
							.map(({ type }) => textButton(cleanName(type, 60), () => ctx.set({ si: type }), "btn"))
				)
			);
			return;
		}
		const list = h("div", { class: "actions" });

		this.showMessage(
			"No samples are left by the filters",
			h("p", { class: "muted" }, "Without one of these there would be:"),
			list,
			textButton(
				"Remove all filters",
				() => ctx.filters(Object.fromEntries(active.map(key => [key, null]))),
				"btn"
			)
		);
		for (const key of active) {
			const tree = await ctx.api.flame({ min: 1, [key]: "" }).catch(() => null),
				weight = tree ? tree.total[0] + (tree.totalB?.[0] || 0) : 0;

			if (weight > 0)
				list.append(
					textButton(
						[
							`Remove ${CHIP_NAMES[key]}: ${cleanName(readableRegexp(ctx.state[key] || ""), 60)}`,
							h("span", { class: "muted" }, ctx.format(weight, tree.header.unit)),
						],
						() => ctx.filter(key, null),
						"btn"
					)
				);
		}
		if (!list.children.length)
			list.append(h("p", { class: "muted" }, "No single filter is to blame: together they leave nothing."));
	}

	// ---- colours

	toggleLegend() {
		const { ctx } = this;

		ctx.storage.set("legend", this.legend.hidden ? "on" : null);
		ctx.set({ only: null }, { push: false });
		this.showLegend();
	}

	/** The groups that have a colour, heaviest first; a click on one fades all others. */
	showLegend() {
		const { base, ctx, legend } = this,
			{ only, col } = ctx.state,
			shows = Boolean(base && (only || ctx.storage.get("legend")));
		const key = JSON.stringify([col, only, ctx.theme, ctx.state.pct]);

		this.legendButton.setAttribute("aria-pressed", String(shows));
		legend.hidden = !shows;
		if (!shows || (key === this.legendKey && base === this.legendTree))
			return;
		Object.assign(this, { legendKey: key, legendTree: base });
		const groups = nodeGroups(base, ctx.palette, colorMode(base, col)),
			weights = new Map(only && [[only, 0]]),
			all = percentBase(ctx, base, 0),
			sum = all.a + (base.totalB ? all.b : 0);

		for (let i = 1; i < base.n; i++) {
			const own = base.self[i] + base.lost[i] + (base.selfB ? base.selfB[i] + base.lostB[i] : 0),
				group = groups.of(i);

			weights.set(group, (weights.get(group) || 0) + own);
		}
		const rows = [...weights].sort((a, b) => b[1] - a[1]),
			shown = rows.filter(([group], i) => i < LEGEND_ROWS || group === only),
			focused = [...legend.children].indexOf(document.activeElement);

		clear(legend).append(
			...shown.map(([group, weight]) =>
				this.legendEntry(group, groups.color(group), ctx.percent(weight, sum))
			),
			h("span", { class: "muted" }, rows.length > shown.length ? `and ${rows.length - shown.length} more` : "")
		);
		legend.children[focused]?.focus();
	}

	legendEntry(group, background, share) {
		const { ctx } = this,
			isOnly = ctx.state.only === group;

		return textButton(
			[
				h("span", { class: "swatch", style: { background } }),
				cleanName(group, 40),
				h("span", { class: "muted" }, share),
			],
			() => ctx.set({ only: isOnly ? null : group }, { push: false }),
			"btn small quiet toggle",
			{ "aria-pressed": String(isOnly), title: `Fade all but ${cleanName(group)}` }
		);
	}
}

const MIN_MAP = 1;

/** The page for app.js. */
export const flamePage = {
	id: "flamegraph",
	title: "Flame",
	mount: (el, ctx) => new FlamePage(el, ctx),
};
