// The Tree page: the call tree as rows that open, from the top or from the bottom.
import { h, segmented } from "./dom.js";
import { findPath } from "./flame_tree.js";
import { VirtualTable, button } from "./table.js";
import { dataKey, latest, functionCell, openFunctionMenu, searchTest, isRoomy, LEAST_SENT } from "./pages.js";
import { valueColumns, changeColumns, placeColumns, parseSort, formatSort } from "./pages.js";

/** The function ids from below the root to a row, as `z` and `root` want them. */
function treePath(row) {
	const path = [];

	for (; row; row = row.from)
		if (row.f && !row.isMore)
			path.unshift(row.f[0]);
	return path;
}

function treeRow(tree, node, from) {
	return { tree, node, from, f: tree.functions[tree.fn[node]], self: tree.self[node], total: tree.total[node],
		selfB: tree.selfB ? tree.selfB[node] : 0, totalB: tree.totalB ? tree.totalB[node] : 0 };
}

/** The children that were sent, and one row for all that were cut off. */
function treeChildren(tree, node, from) {
	const rows = [], lost = tree.lost[node], lostB = tree.lostB ? tree.lostB[node] : 0;

	for (let i = 0; i < tree.nchild[node]; i++)
		rows.push(treeRow(tree, tree.first[node] + i, from));
	if (lost || lostB)
		rows.push({ isMore: true, from, f: [0, "…", "", 0, "", 0], self: 0, selfB: 0, total: lost, totalB: lostB, known: new Set(rows.map(row => row.f[0])) });
	return rows;
}

function treeColumns(ctx, { header }, table, isMatch) {
	const { unit, total } = header, parentTotal = row => row.from ? row.from.total : total;
	const values = header.total_b === undefined ? [
		...valueColumns(ctx, "total", "Total", "Spent here and below", unit, total, row => row.total),
		...valueColumns(ctx, "self", "Self", "Spent here itself", unit, total, row => row.self, !isRoomy(800)),
		{ key: "parent", title: "% parent", hint: "Share of the row above it", number: true, width: 84, hide: !isRoomy(900),
			get: row => parentTotal(row) ? row.total / parentTotal(row) * 100 : 0, text: row => ctx.percent(row.total, parentTotal(row)) },
	] : [
		...changeColumns(ctx, "total", "Total", unit, row => row.total, row => row.totalB),
		...changeColumns(ctx, "self", "Self", unit, row => row.self, row => row.selfB, !isRoomy(1000)),
	];
	return [
		{ key: "name", title: "Function", get: row => row.f[1], render: (cell, row) => table().twisty(cell, row,
			...row.isMore ? [h("em", { class: "muted" }, "smaller ones, not loaded")] : isMatch(row.f)
				? [h("mark", null, functionCell(ctx, row.f))] : functionCell(ctx, row.f)) },
		...values, ...placeColumns(),
	];
}

function mountTree(el, ctx) {
	const direction = segmented("Direction", [
		{ value: "", text: "Top-down" },
		{ value: "callers", text: "Bottom-up" },
	], ctx.state.dir || "", value => ctx.set({ dir: value || null }));
	const heaviest = button("Heaviest path", () => table?.expandHeaviest(), { title: "Open the heaviest path (*)" });
	const bar = h("div", { class: "page-bar" }, direction, heaviest), run = latest(ctx, el);
	let table = null, key = "", shape = "", search = null, test = null;

	el.classList.add("fill");
	el.append(bar);

	const parameters = ({ b, dir, rc } = ctx.state) => ({ b, dir, rc, min: LEAST_SENT });

	async function children(row) {
		if (!row.isMore && (row.tree.nchild[row.node] || !row.tree.lost[row.node]))
			return treeChildren(row.tree, row.node, row);
		const at = row.isMore ? row.from : row, path = treePath(at);
		const tree = await ctx.api.flame({ ...parameters(), ...path.length ? { root: path.join(".") } : { min: 0.00001 } });
		const { node, complete } = findPath(tree, path.join("."));
		if (!complete)
			throw new Error("The server did not send this part of the tree.");
		return treeChildren(tree, node, at).filter(child => !row.isMore || !row.known.has(child.f[0]));
	}

	function makeTable(tree) {
		const wanted = `${tree.header.unit} ${tree.header.total} ${tree.header.total_b} ${ctx.state.unit || ""}`;

		if (shape === wanted)
			return;
		shape = wanted;
		table?.tools.remove();
		table?.destroy();
		table = new VirtualTable(el, ctx, {
			label: "Call tree", file: "tree", columns: treeColumns(ctx, tree, () => table, fn => !!test && test(fn)),
			sort: parseSort(ctx.state.srt, [{ key: tree.totalB ? "totalD" : "total", down: true }]),
			children: row => children(row).catch(error => {
				table.expanded.delete(row);
				ctx.error(error, () => table.expand(row, true));
				return null;
			}),
			expandable: row => row.isMore || row.tree.nchild[row.node] > 0 || row.tree.lost[row.node] > 0,
			weight: row => row.isMore ? 0 : row.total + row.totalB,
			onSort: sort => ctx.set({ srt: formatSort(sort) }, { push: false }),
			onSelect: row => !row.isMore && ctx.select(row.f),
			onOpen: row => row.isMore ? table.expand(row, true) : ctx.go("flamegraph", { z: treePath(row).join(".") }),
			onMenu: (row, event) => !row.isMore && openFunctionMenu(ctx, row.f, event),
		});
		bar.append(table.tools);
	}

	function update(state) {
		const next = dataKey(state, ["dir", "rc"]) + (state.unit || "");

		direction.set(state.dir || "");
		if (next === key && search === ctx.search) {
			table?.later();
			return;
		}
		const reload = next !== key;
		key = next;
		search = ctx.search;
		run(async signal => {
			test = searchTest(ctx);
			if (!reload) {
				table?.draw();
				return;
			}
			const tree = await ctx.api.flame(parameters(), { signal });
			makeTable(tree);
			table.setRows(treeChildren(tree, 0, null));
			if (table.view.length === 1)
				table.expand(table.view[0], true);
		});
	}

	return {
		update, keys: { "*": () => table?.expandHeaviest() },
		destroy() {
			run.stop();
			table?.destroy();
		},
	};
}

export const treePage = { id: "tree", title: "Tree", mount: mountTree };
