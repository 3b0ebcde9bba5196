// The flame graph for those who cannot see it: a tree grid with the frame in focus, its siblings and
// its children. The picture follows it, and it follows the picture.
import { h, clear } from "./dom.js";
import { cleanName } from "./format.js";
import { percentBase } from "./flame_tip.js";

const MOST_ROWS = 50;

// Of many siblings those around the one in focus.
function around(first, count, node) {
	const from = Math.max(first, Math.min(node - (MOST_ROWS >> 1), first + count - MOST_ROWS)),
		to = Math.min(first + count, from + MOST_ROWS);

	return Array.from({ length: to - from }, (_, i) => from + i);
}

/**
 * @param {HTMLElement} host
 * @param {any} ctx
 * @param {(node: number) => void} moved a row got the focus
 */
export function createFlameGrid(host, ctx, moved) {
	const body = h("div", { role: "rowgroup" });
	const grid = h(
		"div",
		{ class: "twin sr-only", role: "treegrid", "aria-label": "Call tree", "aria-readonly": "true" },
		h(
			"div",
			{ role: "rowgroup" },
			h(
				"div",
				{ role: "row" },
				["Function", "Total", "Share", "Self"].map(text => h("span", { role: "columnheader" }, text))
			)
		),
		body
	);
	let current = -1,
		owner = null;

	function row(tree, node, focused, base) {
		const fn = tree.functions[tree.fn[node]],
			parent = tree.parent[node],
			weight = tree.total[node],
			unit = tree.header.unit;
		const texts = [
			cleanName(fn[1], 200),
			tree.totalB
				? `${ctx.format(weight, unit)} to ${ctx.format(tree.totalB[node], unit)}`
				: ctx.format(weight, unit),
			ctx.percent(weight, base.a),
			ctx.format(tree.self[node], unit),
		];

		return h(
			"div",
			{
				role: "row",
				tabindex: focused ? 0 : -1,
				"data-node": node,
				"aria-level": tree.depth[node] + 1,
				"aria-selected": focused ? "true" : "false",
				"aria-posinset": node ? node - tree.first[parent] + 1 : 1,
				"aria-setsize": node ? tree.nchild[parent] : 1,
				"aria-expanded": tree.nchild[node] ? String(focused) : null,
				on: { focus: () => node !== current && moved(node) },
			},
			texts.map(text => h("span", { role: "gridcell" }, text))
		);
	}

	function update(tree, node, zoomNode) {
		if (node === current && tree === owner)
			return;
		const had = grid.contains(document.activeElement),
			parent = tree.parent[node],
			base = percentBase(ctx, tree, zoomNode);
		const siblings = node > 0 ? around(tree.first[parent], tree.nchild[parent], node) : [0],
			children = around(tree.first[node], tree.nchild[node], tree.first[node]);

		current = node;
		owner = tree;
		clear(body).append(
			...siblings.flatMap(i =>
				i === node
					? [row(tree, i, true, base), ...children.map(child => row(tree, child, false, base))]
					: [row(tree, i, false, base)]
			)
		);
		if (had)
			focus();
	}

	function focus() {
		body.querySelector("[tabindex='0']")?.focus({ preventScroll: true });
	}
	// First, so that it stays in view: what has the focus must not make the graph scroll.
	host.prepend(grid);
	return { update, focus, element: grid };
}
