// Frames in words: the line below the graph, the tooltip, what a screen reader says.
import { h, clear } from "./dom.js";
import { cleanName, formatCount, placeOf } from "./format.js";

const SHOW_MS = 80,
	GAP = 14;

/** Of what the percentages are, for both sides: all, what is shown, or the zoom. */
export function percentBase(ctx, tree, zoomNode) {
	const { pct } = ctx.state,
		header = tree.header,
		node = pct === "zoom" ? zoomNode || 0 : 0;

	if (pct === "zoom" || pct === "shown")
		return {
			a: tree.total[node],
			b: tree.totalB ? tree.totalB[node] : 0,
			name: pct === "zoom" ? "of the zoom" : "of what is shown",
		};
	return { a: header.total, b: header.total_b ?? header.total, name: "of the total" };
}

// Of a function that was called here as well, how much was not.
function inlinedText(tree, node) {
	const share = tree.inl[node];

	return share ? "inlined" + (share < 100 ? ` ${share}%` : "") : "";
}

function ratioText(a, b) {
	if (a === b)
		return "no change";
	return a === 0 ? "new" : b === 0 ? "gone" : `×${(b / a).toPrecision(2).replace(/\.?0+$/, "")}`;
}

// "25 → 50 samples, ×2; share 25 % → 25 %"
function bothSides(ctx, a, b, base, unit) {
	return `${ctx.format(a, unit)} → ${ctx.format(b, unit)}, ${ratioText(a, b)}; share ${ctx.percent(a, base.a)} → ${ctx.percent(b, base.b)}`;
}

/** @returns {{name: string, amount: string}} a frame in one line */
export function describeNode(ctx, tree, node, zoomNode) {
	const fn = tree.functions[tree.fn[node]],
		base = percentBase(ctx, tree, zoomNode),
		unit = tree.header.unit,
		place = placeOf(fn);
	const inlined = inlinedText(tree, node),
		name = cleanName(fn[1], 400) + (inlined && ` (${inlined})`) + (place ? `  ${place}` : "");

	if (tree.totalB)
		return { name, amount: bothSides(ctx, tree.total[node], tree.totalB[node], base, unit) };
	return {
		name,
		amount: `${ctx.format(tree.total[node], unit)} (${ctx.percent(tree.total[node], base.a)}) · self ${ctx.format(tree.self[node], unit)} (${ctx.percent(tree.self[node], base.a)})`,
	};
}

/** What is not one frame: narrow ones, or those that were not sent. */
export function describeFound(ctx, tree, lay, found, zoomNode) {
	const base = percentBase(ctx, tree, zoomNode),
		unit = tree.header.unit;

	if (found.lost) {
		const weight = lay.lost[found.node];

		return {
			name: `… smaller frames below ${cleanName(tree.functions[tree.fn[found.node]][1], 200)}`,
			amount: `${ctx.format(weight, unit)} (${ctx.percent(weight, base.a + base.b * (tree.totalB ? 1 : 0))}), click to fetch them`,
		};
	}
	if (!found.run)
		return describeNode(ctx, tree, found.node, zoomNode);
	const at = k => (lay.order ? lay.order[k] : k),
		last = at(found.run.to - 1),
		weight = lay.x[last] + lay.w[last] - lay.x[at(found.run.from)];

	return {
		name: `${formatCount(found.run.to - found.run.from)} frames too narrow to draw`,
		amount: `${ctx.format(weight, unit)} (${ctx.percent(weight, base.a)}), click to see them`,
	};
}

/** For a screen reader: "main.gz, 0.90s total, 22%, self 0, child 2 of 5, depth 4". */
export function announceNode(ctx, tree, node, zoomNode) {
	const fn = tree.functions[tree.fn[node]],
		base = percentBase(ctx, tree, zoomNode),
		unit = tree.header.unit,
		parent = tree.parent[node];
	const weight = tree.totalB
		? bothSides(ctx, tree.total[node], tree.totalB[node], base, unit)
		: `${ctx.format(tree.total[node], unit)} total, ${ctx.percent(tree.total[node], base.a)}, self ${ctx.format(tree.self[node], unit)}`;

	return `${cleanName(fn[1], 200)}, ${weight}, ${node ? `child ${node - tree.first[parent] + 1} of ${tree.nchild[parent]}, ` : ""}depth ${tree.depth[node]}`;
}

function tipRows(ctx, tree, node, zoomNode) {
	const unit = tree.header.unit,
		header = tree.header,
		parent = tree.parent[node],
		one = tree.totalB ? [] : [["Self", tree.self[node], header.total]];
	const rows = tree.totalB
		? [
				["Before", tree.total[node], header.total],
				["After", tree.totalB[node], header.total_b ?? header.total],
			]
		: [["Total", tree.total[node], header.total]];

	return [...rows, ...one]
		.map(([label, value, base]) =>
			h(
				"tr",
				{},
				h("th", { scope: "row" }, label),
				h("td", {}, ctx.format(value, unit)),
				h("td", {}, ctx.percent(value, base))
			)
		)
		.concat(
			node > 0 && !tree.totalB
				? h(
						"tr",
						{},
						h("th", { scope: "row" }, "of its caller"),
						h("td"),
						h("td", {}, ctx.percent(tree.total[node], tree.total[parent]))
					)
				: [],
			zoomNode > 0 && !tree.totalB
				? h(
						"tr",
						{},
						h("th", { scope: "row" }, "of the zoom"),
						h("td"),
						h("td", {}, ctx.percent(tree.total[node], tree.total[zoomNode]))
					)
				: []
		);
}

/** The tooltip: comes after a moment, can be entered with the pointer, goes on Esc. */
export function createFlameTip(ctx) {
	const element = h("div", { class: "tooltip", role: "tooltip", hidden: true });
	let timer = 0,
		inside = false,
		shown = "";

	function place(x, y) {
		const box = element.getBoundingClientRect();
		const left = x + GAP + box.width > innerWidth - 8 ? x - GAP - box.width : x + GAP;
		const top = y + GAP + box.height > innerHeight - 8 ? y - GAP - box.height : y + GAP;

		element.style.left = `${Math.max(8, left)}px`;
		element.style.top = `${Math.max(8, top)}px`;
	}

	function fill(tree, node, zoomNode) {
		const fn = tree.functions[tree.fn[node]],
			where = [placeOf(fn, true), cleanName(fn[4].replace(/^.*\//, ""), 100)].filter(Boolean).join(" · ");

		clear(element).append(
			h("p", { class: "name" }, cleanName(fn[1], 600)),
			where && h("p", { class: "muted place" }, where),
			h("table", {}, h("tbody", {}, tipRows(ctx, tree, node, zoomNode))),
			tree.inl[node] ? h("p", { class: "muted" }, inlinedText(tree, node)) : ""
		);
	}

	function hide() {
		clearTimeout(timer);
		inside = false;
		shown = "";
		element.hidden = true;
	}

	function show(tree, node, x, y, zoomNode) {
		const key = `${node}`;

		if (inside || (shown === key && !element.hidden))
			return;
		clearTimeout(timer);
		if (ctx.storage.get("tooltips") === "off")
			return;
		timer = setTimeout(() => {
			if (inside)
				return;
			shown = key;
			fill(tree, node, zoomNode || 0);
			element.hidden = false;
			place(x, y);
		}, SHOW_MS);
	}

	function onKey(event) {
		if (event.key === "Escape")
			hide();
	}
	element.addEventListener("pointerenter", () => {
		inside = true;
	});
	element.addEventListener("pointerleave", hide);
	document.addEventListener("keydown", onKey, true);
	document.querySelector("main").append(element);
	return {
		show,
		hide,
		/** The pointer is elsewhere: stays if it went into the tooltip. */
		leave() {
			clearTimeout(timer);
			timer = setTimeout(() => inside || hide(), SHOW_MS);
		},
		destroy() {
			hide();
			document.removeEventListener("keydown", onKey, true);
			element.remove();
		},
	};
}
