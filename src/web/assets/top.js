// The Top page: every function with what it costs.
import { h, selectField } from "./dom.js";
import { formatCount, packageOf } from "./format.js";
import { VirtualTable } from "./table.js";
import { dataKey, latest, functionCell, openFunctionMenu, searchTest, functionMap, isRoomy, nameFirst, LEAST_SENT } from "./pages.js";
import { valueColumns, changeColumns, placeColumns, parseSort, formatSort } from "./pages.js";

const GROUPS = {
	package: fn => packageOf(fn[1]) || "(no package)",
	module: fn => fn[4] || "(no module)",
	file: fn => fn[2] || "(no file)",
};

/**
 * The total of each group, in which a stack counts once: a node adds its total unless the group is above it already.
 * @returns {Map<string, number>}
 */
export function groupTotals(tree, groupOf, totals) {
	const groups = tree.functions.map(groupOf), above = new Map(), sums = new Map(), stack = [0];

	while (stack.length) {
		const node = stack.pop();

		if (node < 0) {
			const group = groups[tree.fn[~node]];
			above.set(group, above.get(group) - 1);
			continue;
		}
		if (node > 0) {
			const group = groups[tree.fn[node]], n = above.get(group) || 0;
			if (!n)
				sums.set(group, (sums.get(group) || 0) + totals[node]);
			above.set(group, n + 1);
			stack.push(~node);
		}
		for (let i = 0; i < tree.nchild[node]; i++)
			stack.push(tree.first[node] + i);
	}
	return sums;
}

/** The type that counts what the shown one weighs: samples of a time, objects of space. */
function countType(ctx) {
	const shown = ctx.sampleType(), counts = ctx.profile.types.filter(type => type.unit === "count");

	return shown?.unit === "count" ? null : counts.find(type => type.type.startsWith(shown?.type.replace(/_.*/, "_"))) || counts[0];
}

function topColumns(ctx, data, hasSides, table) {
	const { unit, total } = data, count = countType(ctx), name = {
		key: "name", title: "Function", get: row => row.name || row.f[1],
		render: (cell, row) => row.members ? table().twisty(cell, row, h("strong", null, row.name), ` (${formatCount(row.members.length)})`)
			: row.level ? table().twisty(cell, row, ...functionCell(ctx, row.f)) : cell.append(...functionCell(ctx, row.f)),
	};
	const values = hasSides ? [
		...changeColumns(ctx, "self", "Self", unit, row => row.self, row => row.selfB),
		...changeColumns(ctx, "total", "Total", unit, row => row.total, row => row.totalB),
	] : [
		...valueColumns(ctx, "self", "Self", "Spent in the function itself", unit, total, row => row.self),
		{ key: "sum", title: "Running sum", hint: "Of Self down to here; when sorted by Self", number: true, width: 104,
			get: row => row.sum, text: row => row.sum === null ? "" : ctx.percent(row.sum, total), hide: !isRoomy(800) },
		...valueColumns(ctx, "total", "Total", "Spent in the function and all that it calls", unit, total, row => row.total),
		...count ? [{ key: "samples", title: count.type === "samples" ? "Samples" : count.type, hint: "That have the function in their stack", number: true, width: 92, hide: true,
			get: row => row.samples ?? "", text: row => row.samples === undefined ? "" : ctx.format(row.samples, "count") }] : [],
	];
	return nameFirst([...values, name, ...placeColumns().map(column => ({ ...column, get: row => row.f ? column.get(row) : "" })),
		{ key: "inline", title: "Inlined", width: 90, get: row => row.inline || "", hide: !isRoomy(1500) }]);
}

function topRows(data) {
	const functions = functionMap(data.functions);

	return data.rows.map(([id, self, total, inline, selfB = 0, totalB = 0]) => ({
		f: functions.get(id), self, total, selfB, totalB, sum: null,
		inline: typeof inline === "string" ? inline.replace(/[()]/g, "") : inline ? "inlined" : "",
	}));
}

/** Rows of groups, which open into their functions. */
function topGroups(rows, groupOf, tree) {
	const groups = new Map();
	const totals = groupTotals(tree, groupOf, tree.total), totalsB = tree.totalB ? groupTotals(tree, groupOf, tree.totalB) : new Map();

	for (const row of rows) {
		const name = groupOf(row.f);
		if (!groups.has(name))
			groups.set(name, { name, f: null, self: 0, selfB: 0, total: totals.get(name) || 0, totalB: totalsB.get(name) || 0, sum: null, members: [] });
		const group = groups.get(name);
		group.self += row.self;
		group.selfB += row.selfB;
		group.members.push(row);
	}
	// What the tree does not show of a group is in its own values at least.
	for (const group of groups.values())
		group.total = Math.max(group.total, group.self);
	return [...groups.values()];
}

function addRunningSum(rows, sort) {
	const bySelf = sort.length && /^self%?$/.test(sort[0].key) && sort[0].down;
	let sum = 0;

	for (const row of rows)
		row.sum = bySelf && (row.level || 1) === 1 ? sum += row.self : null;
}

function mountTop(el, ctx) {
	const count = h("span", { class: "muted", role: "status" });
	const group = selectField("Group by", [{ value: "", text: "nothing" }, ...Object.keys(GROUPS).map(value => ({ value, text: value }))],
		ctx.state.grp || "", value => ctx.set({ grp: value || null }));
	const bar = h("div", { class: "page-bar" }, group, count), run = latest(ctx, el);
	let table = null, data = null, key = "", shape = "", filter = "", search = null, rows = [];

	el.classList.add("fill");
	el.append(bar);

	const wantsSamples = state => !!state.cols?.split(",").includes("samples");

	/** A table of groups is a tree, and two sides have other columns. */
	function makeTable(hasSides, grouped) {
		const wanted = `${hasSides} ${grouped} ${data.unit} ${data.total} ${ctx.state.unit || ""}`;

		if (shape === wanted)
			return;
		shape = wanted;
		table?.tools.remove();
		table?.destroy();
		const tree = { children: row => row.members, expandable: row => !!row.members, weight: row => row.total };
		table = new VirtualTable(el, ctx, {
			label: "Functions", file: "top", columns: topColumns(ctx, data, hasSides, () => table),
			sort: parseSort(ctx.state.srt, [{ key: hasSides ? "selfD" : "self", down: true }]),
			shown: ctx.state.cols ? ctx.state.cols.split(",") : null, empty: "No function matches.",
			rowKey: row => row.f ? row.f[0] : row.name, onOrder: addRunningSum,
			onSort: sort => ctx.set({ srt: formatSort(sort) }, { push: false }),
			onColumns: columns => ctx.set({ cols: columns.join(",") }, { push: false }),
			onSelect: row => row.f && ctx.select(row.f),
			onOpen: row => row.f ? ctx.go("sandwich", { fn: row.f[0] }) : table.expand(row, !table.expanded.has(row)),
			onMenu: (row, event) => row.f && openFunctionMenu(ctx, row.f, event),
			...grouped ? tree : null,
		});
		bar.append(table.tools);
	}

	async function show(signal) {
		const { grp, b } = ctx.state, test = searchTest(ctx);
		const found = test ? rows.filter(row => test(row.f)) : rows;
		const groupOf = GROUPS[grp];

		makeTable(!!b, !!groupOf);
		if (wantsSamples(ctx.state) && !b && countType(ctx)) {
			const counted = await ctx.api.get("top", { si: countType(ctx).type }, { signal }), samples = new Map(counted.rows.map(([id, , total]) => [id, total]));
			for (const row of rows)
				row.samples = samples.get(row.f[0]);
		}
		table.setRows(groupOf ? topGroups(found, groupOf, await ctx.api.flame({ min: LEAST_SENT, b }, { signal })) : found);
		count.textContent = found.length === rows.length ? `${formatCount(rows.length)} functions, ${ctx.format(data.total, data.unit)} in all`
			: `${formatCount(found.length)} of ${formatCount(rows.length)} functions`;
	}

	function update(state) {
		const nextKey = dataKey(state), nextFilter = [state.grp, state.unit, wantsSamples(state)].join();

		if (nextKey === key && nextFilter === filter && search === ctx.search) {
			const selected = table && ctx.selected && table.view.find(row => row.f && row.f[0] === ctx.selected[0]);
			if (selected && selected !== table.selected)
				table.show(selected, true);
			else
				table?.later();
			return;
		}
		const reload = nextKey !== key;
		key = nextKey;
		filter = nextFilter;
		search = ctx.search;
		group.set(state.grp || "");
		run(async signal => {
			if (reload || !data) {
				data = await ctx.api.get("top", state.b ? { b: state.b } : {}, { signal });
				rows = topRows(data);
			}
			await show(signal);
		});
	}

	return {
		update, keys: {},
		destroy() {
			run.stop();
			table?.destroy();
		},
	};
}

export const topPage = { id: "top", title: "Top", mount: mountTop };
