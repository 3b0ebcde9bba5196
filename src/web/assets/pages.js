// What the pages with tables have in common.
import { h } from "./dom.js";
import { cleanName, placeOf, shortName } from "./format.js";
import { isSingleFile } from "./state.js";
import { VirtualTable } from "./table.js";

// Parameters that change what is seen of the data, not the data.
const VIEW_PARAMETERS = new Set(["page", "q", "re", "z", "ord", "up", "col", "pct", "cv", "srt", "cols", "grp", "dir", "fn", "asm",
	"n", "side", "rc", "flt", "in", "inl", "addr", "only", "site"]);

/** Which data a page needs: the same key, the same answers. */
export function dataKey(state, also = []) {
	return JSON.stringify(Object.keys(state).filter(key => !VIEW_PARAMETERS.has(key) || also.includes(key)).sort()
		.map(key => [key, state[key]]));
}

/**
 * Runs one piece of work at a time: a new one aborts the old, errors go to the page's bar, and its success takes
 * its own error away, not that of others.
 * @returns {((work: (signal: AbortSignal) => Promise<any>) => Promise<void>) & {stop(): void}}
 */
export function latest(ctx, host) {
	let control = null, note = null;
	const run = async work => {
		const mine = new AbortController();

		note?.remove();
		control?.abort();
		control = mine;
		host.setAttribute("aria-busy", "true");
		try {
			await work(mine.signal);
			if (control === mine)
				ctx.error(null, null, run);
		} catch (error) {
			if (control === mine && isSingleFile() && error.status === 404)
				host.prepend(note = pageNote("Not in this file", h("p", null, "To see this, open the profile with ", h("code", null, "kiln -http=: profile"), ".")));
			else if (control === mine && error.name !== "AbortError")
				ctx.error(error, () => run(work), run);
		} finally {
			if (control === mine)
				host.removeAttribute("aria-busy");
		}
	};
	run.stop = () => {
		control?.abort();
		control = null;
		host.removeAttribute("aria-busy");
	};
	return run;
}

/** The name of a function with the colour of its package. */
export function functionCell(ctx, fn, text = cleanName(fn[1] || "(no name)", 500)) {
	return [h("i", { class: "swatch", style: { background: ctx.color(fn) }, "aria-hidden": "true" }),
		h("span", { title: fn[1].length > 20 ? cleanName(fn[1], 2000) : null }, text)];
}

/** Whether the page is so wide. */
export const isRoomy = pixels => document.getElementById("main").clientWidth >= pixels;

export const openFunctionMenu = (ctx, fn, event) => ctx.menu(event, ctx.actions(fn));

/** "+1.20s", "-3ms", "±0": the sign is always there. */
export function signed(ctx, value, unit) {
	return value ? (value > 0 ? "+" : "−") + ctx.format(Math.abs(value), unit) : "±0";
}

/** "▲ +1.20s": with a sign that needs no colour. */
const arrowed = (ctx, value, unit) => (value > 0 ? "▲ " : value < 0 ? "▼ " : "") + signed(ctx, value, unit);

export const changeClass = value => value > 0 ? "more" : value < 0 ? "less" : "";

/** "25 → 50 samples, ×2.0; share 25% → 25%, ±0" */
export function describeChange(ctx, a, b, totalA, totalB, { unit, type }) {
	const times = a > 0 && b > 0 ? `×${(b / a).toFixed(b / a < 10 ? 1 : 0)}` : a > 0 ? "gone" : b > 0 ? "new" : "";
	const shareA = totalA ? a / totalA * 100 : 0, shareB = totalB ? b / totalB * 100 : 0, points = shareB - shareA;
	const change = Math.abs(points) < 0.005 ? "±0" : `${points > 0 ? "+" : "−"}${Math.abs(points).toFixed(2)} points`;

	return `${ctx.format(a, unit)} → ${ctx.format(b, unit)}${unit === "count" ? " " + type : ""}${times && ", " + times}; ` +
		`share ${ctx.percent(a, totalA)} → ${ctx.percent(b, totalB)}, ${change}`;
}

/** On a narrow page the name of a function comes first, else it could not be seen. */
export const nameFirst = columns => isRoomy(600) ? columns
	: [...columns.filter(c => c.key === "name").map(c => ({ ...c, width: 170 })), ...columns.filter(c => c.key !== "name")];

/** Columns for numbers: a value and its share. `get` reads the row. */
export function valueColumns(ctx, key, title, hint, unit, total, get, hideShare) {
	return [
		{ key, title, hint, unit, number: true, width: 92, get, text: row => ctx.format(get(row), unit) },
		{ key: key + "%", title: title + " %", hint: `${hint}, as a share of ${ctx.format(total, unit)}`, number: true, width: 92, hide: hideShare,
			get: row => total ? get(row) / total * 100 : 0, text: row => ctx.percent(get(row), total),
			bar: row => total ? Math.abs(get(row) / total) : 0 },
	];
}

/** Columns for two sides and what changed. */
export function changeColumns(ctx, key, title, unit, getA, getB, hide) {
	const delta = row => getB(row) - getA(row);
	const value = get => row => ctx.format(get(row), unit);

	return [
		{ key: key + "A", title: (title + " A").trim(), unit, number: true, width: 92, get: getA, text: value(getA), hide },
		{ key: key + "B", title: (title + " B").trim(), unit, number: true, width: 92, get: getB, text: value(getB), hide },
		{ key: key + "D", title: ("Δ " + title).trim(), hint: "B − A", unit, number: true, width: 112, get: delta, text: row => arrowed(ctx, delta(row), unit),
			mark: row => changeClass(delta(row)) },
	];
}

/** Where a function is: columns that tell it of row.f. */
export const placeColumns = () => [
	{ key: "module", title: "Module", width: 130, get: row => row.f[4].replace(/^.*\//, ""), hide: !isRoomy(1150) },
	{ key: "place", title: "File:line", width: 150, get: row => placeOf(row.f, false), hide: !isRoomy(1300) },
];

/** "self:d,name:a" in the URL. */
export const parseSort = (text, initial) => text
	? text.split(",").map(part => ({ key: part.replace(/:.$/, ""), down: part.endsWith(":d") })) : initial;
export const formatSort = sort => sort.map(({ key, down }) => `${key}:${down ? "d" : "a"}`).join(",");

/** What the search finds: a test for functions, or null if nothing is searched. */
export function searchTest(ctx) {
	const ids = ctx.state.q && ctx.search ? ctx.search.ids : null;

	return ids && (fn => ids.has(fn[0]));
}

/** What share of all a frame must have to be sent: as on the flame page, so that one answer serves both. */
export const LEAST_SENT = 0.0005;

/** Functions of an answer by id. */
export const functionMap = functions => new Map(functions.map(fn => [fn[0], fn]));

// The functions of a `top` answer by weight, as the list at the left of a page.
function functionList(host, ctx, top, pick) {
	const functions = functionMap(top.functions), test = searchTest(ctx);
	const rows = top.rows.map(([id, self, total]) => ({ f: functions.get(id), self, total })).filter(row => !test || test(row.f));
	const name = { key: "name", title: "Function", min: 100, get: row => row.f[1], render: (cell, row) => cell.append(...functionCell(ctx, row.f, shortName(row.f[1]))) };
	const share = (key, title, hint) => ({ ...valueColumns(ctx, key, title, hint, top.unit, top.total, row => row[key])[1], title, width: 76 });
	const list = new VirtualTable(host, ctx, {
		label: "Functions", sort: [{ key: "self%", down: true }], empty: "No function matches.",
		columns: [share("self", "Self", "Spent in the function itself"), share("total", "Total", "Spent in it and all that it calls"), name],
		onSelect: row => pick(row.f), onMenu: (row, event) => openFunctionMenu(ctx, row.f, event),
	});

	list.setRows(rows);
	return list;
}

// What is shown of the function list's data.
const SHOWN = ["fn", "site"];

/**
 * A page with a list of functions at the left. load(top, signal) shows the function of the URL in `main`,
 * redraw() is for all other changes.
 */
export function listPage(el, ctx, main, load, redraw) {
	const side = h("div", { class: "side" }), run = latest(ctx, main), runList = latest(ctx, side);
	let list = null, top = null, key = "", listKey = "", search = null;

	const pick = fn => {
		ctx.select(fn);
		if (String(fn[0]) !== ctx.state.fn)
			ctx.set({ fn: fn[0] });
	};
	const mark = () => list.show(list.view.find(row => String(row.f[0]) === ctx.state.fn || row.f[1] === ctx.state.fn) || null, true);
	const showList = () => {
		search = ctx.search;
		list?.destroy();
		list = functionList(side, ctx, top, pick);
		mark();
	};
	const loadAll = async signal => {
		top = await ctx.api.get("top", {}, { signal });
		if (!ctx.state.fn && ctx.selected)
			ctx.set({ fn: ctx.selected[0] }, { push: false });
		key = dataKey(ctx.state, SHOWN);
		showList();
		if (top.rows.length)
			run(inner => load(top, inner));
		else
			main.append(pageNote("No functions", h("p", null, "Nothing is left of the profile.")));
	};
	const update = state => {
		const nextList = dataKey(state), next = dataKey(state, SHOWN);

		if (nextList !== listKey) {
			listKey = nextList;
			runList(loadAll);
			return;
		}
		if (!list)
			return;
		if (search !== ctx.search)
			showList();
		if (next === key) {
			list.later();
			redraw();
			return;
		}
		key = next;
		mark();
		run(inner => load(top, inner));
	};
	const destroy = () => {
		run.stop();
		runList.stop();
		list?.destroy();
	};

	el.classList.add("with-side");
	el.append(side, main);
	return { update, pick, destroy };
}

/** Arrows, Enter and the menu key on a flame graph: parent and child, neighbours. */
export function flameKeys(flame, ctx, activate) {
	const here = () => Math.max(0, flame.selected);
	const functionOf = node => flame.tree.functions[flame.tree.fn[node]];
	const go = node => {
		const { tree } = flame, fn = functionOf(node);

		flame.select(node);
		flame.reveal(node);
		ctx.announce(`${cleanName(fn[1], 200)}, ${ctx.format(tree.total[node], tree.header.unit)}, ${ctx.percent(tree.total[node], tree.total[0])}` +
			(tree.totalB ? `, before; now ${ctx.format(tree.totalB[node], tree.header.unit)}` : ""));
	};
	const beside = step => {
		const { parent, first, nchild } = flame.tree, at = here(), p = parent[at], next = at + step;

		if (at && next >= first[p] && next < first[p] + nchild[p])
			go(next);
	};
	const [child, up] = flame.options.up ? ["ArrowUp", "ArrowDown"] : ["ArrowDown", "ArrowUp"];
	const keys = {
		[child]: () => flame.tree.nchild[here()] && go(flame.tree.first[here()]), [up]: () => go(flame.tree.parent[here()]),
		ArrowLeft: () => beside(-1), ArrowRight: () => beside(1), Enter: () => activate(here()),
		ContextMenu: event => openFunctionMenu(ctx, functionOf(here()), event),
	};

	for (const [name, value] of Object.entries({ tabindex: 0, role: "application", "aria-roledescription": "flame graph" }))
		flame.canvas.setAttribute(name, value);
	flame.canvas.addEventListener("keydown", event => {
		if (!keys[event.key] || event.ctrlKey || event.altKey || event.metaKey)
			return;
		event.preventDefault();
		event.stopPropagation();
		keys[event.key](event);
	});
}

/** A message in the place of a page, with what can be done about it. */
export function pageNote(title, ...content) {
	return h("div", { class: "page-note", role: "status" }, h("h2", null, title), content);
}
