// The Compare page: two profiles beside each other, as one picture, and as a table.
import { h, clear, segmented, selectField } from "./dom.js";
import { cleanName, formatCount } from "./format.js";
import { makeFlame } from "./flame_draw.js";
import { pathOf } from "./flame_tree.js";
import { VirtualTable, button, muted, popover } from "./table.js";
import { dataKey, latest, functionCell, openFunctionMenu, pageNote, searchTest, parseSort, formatSort } from "./pages.js";
import { arrowed, changeClass, describeChange, flameKeys, isRoomy, nameFirst } from "./pages.js";

const COMPARE_FILTERS = { all: () => true, new: row => !row.a && row.b, gone: row => row.a && !row.b, changed: row => row.delta,
	significant: row => row.significant };

const changeName = row => row.delta ? row.a ? row.b ? "changed" : "✕ gone" : "N new" : "same";

/** Sends a file to the server as a new profile; the answer is how the server knows it. */
async function addProfile(ctx, parameters, body) {
	const profile = await ctx.api.post("profiles", parameters, body);

	await ctx.reloadMeta();
	return profile;
}

/** Opens a dropped file: on the Compare page as the side that is missing, else as what is shown. */
export async function openFile(ctx, file) {
	if (!file)
		return;
	try {
		const profile = await addProfile(ctx, { name: file.name }, file);

		ctx.toast(`Opened ${cleanName(file.name, 80)}`);
		if (ctx.state.page === "compare")
			ctx.set({ b: profile.id, z: null });
		else
			ctx.go("flamegraph", { a: profile.id, z: null, x: null, p: null });
	} catch (error) {
		ctx.error(error, () => openFile(ctx, file));
	}
}

/** What makes a comparison doubtful: [text]. */
export function compareWarnings(ctx, a, b, type) {
	const find = p => (p.types || []).find(t => t.type === type), ta = find(a), tb = find(b), warnings = [];
	const period = p => `${ctx.format(p.period, p.period_unit)} of ${p.period_type}`;

	if (a.id === b.id)
		warnings.push("Both sides are the same profile.");
	if (!tb || !ta)
		warnings.push(`${(ta ? b : a).name} has no values of the type “${type}”, but ${(ta ? b : a).types.map(t => t.type).join(", ")}.`);
	else if (ta.unit !== tb.unit)
		warnings.push(`The units differ: ${ta.unit} and ${tb.unit}.`);
	if (a.period && b.period && period(a) !== period(b))
		warnings.push(`The sampling periods differ: ${period(a)} and ${period(b)}. Compare shares, not values.`);
	if (a.duration_nanos && b.duration_nanos && Math.abs(Math.log(a.duration_nanos / b.duration_nanos)) > 0.1)
		warnings.push(`The durations differ: ${ctx.format(a.duration_nanos, "nanoseconds")} and ${ctx.format(b.duration_nanos, "nanoseconds")}. Compare shares, not values.`);
	if (a.file && b.file && a.file !== b.file)
		warnings.push(`The programs differ: ${a.file} and ${b.file}.`);
	return warnings;
}

/** The types of values that both have; of a profile that is not open nothing is known. */
function commonTypes(a, b) {
	const types = p => (p?.types || []).map(type => type.type);

	return a && b ? types(a).filter(type => types(b).includes(type)) : types(a || b);
}

function diffColumns(ctx, data) {
	const { unit, total_a: totalA, total_b: totalB } = data;
	const value = (key, title, get, hint) => ({ key, title, hint, unit, number: true, width: 92, get, text: row => ctx.format(get(row), unit) });
	const share = (key, title, get, total) => ({ key, title, hint: `Share of ${ctx.format(total, unit)}`, number: true, width: 84, get: row => total ? get(row) / total * 100 : 0,
		text: row => ctx.percent(get(row), total) });
	const points = row => (totalB ? row.b / totalB : 0) * 100 - (totalA ? row.a / totalA : 0) * 100;
	const relative = row => row.a ? (row.b - row.a) / row.a : row.b ? Infinity : 0;
	const number = (key, title, hint, digits) => ({ key, title, hint, number: true, width: 72, hide: !isRoomy(1200), get: row => row[key] ?? 0,
		text: row => row[key] === null || row[key] === undefined ? "" : Number(row[key]).toPrecision(digits) });

	return nameFirst([
		value("a", "A", row => row.a, "Value in A"), value("b", "B", row => row.b, "Value in B"),
		{ key: "delta", title: "Δ", hint: "B − A", unit, number: true, width: 112, get: row => row.delta, text: row => arrowed(ctx, row.delta, unit), mark: row => changeClass(row.delta) },
		{ key: "relative", title: "Δ %", number: true, width: 84, get: relative, hide: !isRoomy(800),
			text: row => row.a && row.b ? `${relative(row) > 0 ? "+" : relative(row) < 0 ? "−" : "±"}${(Math.abs(relative(row)) * 100).toFixed(1)}%` : "" },
		share("shareA", "Share A", row => row.a, totalA), share("shareB", "Share B", row => row.b, totalB),
		{ key: "points", title: "Δ share", hint: "In points of percent", number: true, width: 92, get: points, mark: row => changeClass(points(row)),
			text: row => Math.abs(points(row)) < 0.005 ? "±0" : `${points(row) > 0 ? "▲ +" : "▼ −"}${Math.abs(points(row)).toFixed(2)}` },
		number("z", "z", "How many standard deviations", 3), number("p", "p", "How often chance alone makes as much of a difference", 2),
		{ key: "verdict", title: "Verdict", hint: "★: more than chance; ?: not enough samples to tell", width: 100,
			get: row => changeName(row) + (row.significant ? " ★" : row.delta && row.few ? " ?" : "") },
		{ key: "name", title: "Function", get: row => row.function[1], render: (cell, row) => cell.append(...functionCell(ctx, row.function)) },
	]);
}

function mountCompare(el, ctx) {
	const views = segmented("View", [{ value: "side", text: "Side by side" }, { value: "merged", text: "Merged" }, { value: "table", text: "Table" }], "", value => ctx.set({ cv: value }));
	const bar = h("div", { class: "page-bar" }), notes = h("div", { class: "compare-notes" }), body = h("div", { class: "compare-body" });
	const status = h("p", { class: "compare-status", role: "status" }), run = latest(ctx, el);
	let key = "", search = null, table = null, flames = [], data = null, pickersKey = "", zoom, theme = ctx.theme;

	el.classList.add("fill");
	el.append(bar, notes, status, body);

	const profiles = () => ctx.meta.profiles || [];
	const idOf = name => name === "a" ? ctx.state.a || "0" : ctx.state.b;
	const profileOf = name => profiles().find(p => String(p.id) === idOf(name));

	// ---- which two

	async function take(name, parameters, content) {
		try {
			ctx.set({ [name]: (await addProfile(ctx, parameters, content)).id, z: null });
		} catch (error) {
			ctx.error(error, () => take(name, parameters, content));
		}
	}

	function opener(name) {
		return popover("Open…", (panel, close) => {
			const file = h("input", { type: "file", "aria-label": `File for side ${name.toUpperCase()}`, on: { change: () => {
				close();
				take(name, { name: file.files[0].name }, file.files[0]);
			} } });
			const url = h("input", { type: "url", placeholder: "http://host:6060/debug/pprof/profile", "aria-label": `Address for side ${name.toUpperCase()}` });
			panel.append(h("label", null, "A file", file), h("form", { on: { submit: event => {
				event.preventDefault();
				close();
				take(name, { url: url.value });
			} } }, h("label", null, "An address", url), h("button", { class: "btn" }, "Fetch")), h("p", { class: "muted" }, "Or drop a file anywhere on this page."));
		});
	}

	function picker(name) {
		const choices = profiles().map(p => ({ value: String(p.id), text: cleanName(p.name, 60) }));

		if (name === "b")
			choices.unshift({ value: "", text: "choose…" });
		return [selectField(name.toUpperCase(), choices, idOf(name) || "", value => ctx.set({ [name]: value || null, z: null })), opener(name)];
	}

	function swap() {
		if (ctx.state.b !== undefined)
			ctx.set({ a: ctx.state.b, b: ctx.state.a || "0" });
	}

	function showPickers() {
		const next = JSON.stringify([profiles().map(p => [p.id, p.name]), idOf("a"), idOf("b")]);

		if (next === pickersKey)
			return;
		pickersKey = next;
		clear(bar).append(...picker("a"), button("⇄", swap, { title: "Swap the sides (x)", "aria-label": "Swap the sides" }),
			...picker("b"), views);
	}

	// ---- views

	function clearViews() {
		flames.forEach(flame => flame.destroy());
		flames = [];
		table?.tools.remove();
		table?.destroy();
		table = data = null;
		clear(body);
		body.className = "compare-body";
		status.textContent = "";
	}

	/** Says how a function changed, in words. */
	function tell(fn, a, b, totalA, totalB, unit) {
		status.textContent = `${cleanName(fn[1], 120)}: ${describeChange(ctx, a, b, totalA, totalB, unit)}`;
	}

	/** A flame graph whose zoom is that of the URL, and so of the other one. */
	function addFlame(host, tree, label, hover) {
		const functionOf = node => tree.functions[tree.fn[node]];
		const zoomTo = node => {
			ctx.select(node > 0 ? functionOf(node) : null);
			ctx.set({ z: pathOf(tree, node) || null });
		};
		const flame = makeFlame(host, ctx, { label, onClick: node => node >= 0 && zoomTo(node), onHover: node => hover(node, node > 0 ? functionOf(node) : null),
			onMenu: (node, event) => openFunctionMenu(ctx, functionOf(node), event) });

		flame.setTree(tree);
		flameKeys(flame, ctx, zoomTo);
		flames.push(flame);
	}

	function showZoom() {
		const path = ctx.state.z ? ctx.state.z.split(".").map(Number) : null;

		zoom = ctx.state.z;
		flames.forEach(flame => flame.zoom(path));
	}

	function sideView(name, tree) {
		const side = profileOf(name), host = h("div", { class: "compare-flame" }), letter = name.toUpperCase(), { unit } = tree.header;

		body.append(h("section", { class: "compare-side", "aria-label": `Side ${letter}` },
			h("h2", null, `${letter} · ${cleanName(side?.name || "", 60)}`, h("small", { class: "muted" }, " " + ctx.format(tree.total[0], unit))), host));
		addFlame(host, tree, `Side ${letter}`, (node, fn) => {
			flames.forEach(other => other.highlight(fn && fn[0]));
			if (fn)
				status.textContent = `${letter}: ${cleanName(fn[1], 120)}: ${ctx.format(tree.total[node], unit)}, ${ctx.percent(tree.total[node], tree.total[0])}`;
		});
	}

	function mergedView(tree) {
		const host = h("div", { class: "compare-flame" });
		const hover = (node, fn) => node >= 0 && tell(fn || [0, "all"], tree.total[node], tree.totalB[node], tree.total[0], tree.totalB[0], tree.header.unit);

		body.append(h("p", { class: "muted compare-legend" }, h("span", { class: "legend-less" }, "▼ − less in B"), h("span", { class: "legend-same" }, "the same"),
			h("span", { class: "legend-more" }, "▲ + more in B"), "widths: both sides together"), host);
		addFlame(host, tree, "Both sides", hover);
		hover(0, null);
	}

	function tableView() {
		const filter = segmented("Rows", Object.keys(COMPARE_FILTERS).map(value => ({ value, text: value })), ctx.state.flt || "all", value => {
			ctx.set({ flt: value === "all" ? null : value }, { push: false });
			filter.set(value);
			showRows();
		});
		const head = h("div", { class: "page-bar" }, filter, h("span", { class: "muted count" }), data.note ? muted(data.note) : null);

		body.append(head);
		table = new VirtualTable(body, ctx, {
			label: "Changes", file: "diff", columns: diffColumns(ctx, data), rowKey: row => row.function[0], empty: "No such change.",
			sort: parseSort(ctx.state.srt, []), onSort: sort => ctx.set({ srt: formatSort(sort) }, { push: false }), 
			onSelect: row => {
				ctx.select(row.function);
				tell(row.function, row.a, row.b, data.total_a, data.total_b, data.unit);
			},
			onOpen: row => ctx.go("sandwich", { fn: row.function[0] }), onMenu: (row, event) => openFunctionMenu(ctx, row.function, event),
		});
		head.append(table.tools);
		showRows();
		tell([0, "all"], data.total_a, data.total_b, data.total_a, data.total_b, data.unit);
	}

	function showRows() {
		const test = searchTest(ctx), keep = COMPARE_FILTERS[ctx.state.flt] || COMPARE_FILTERS.all;
		const rows = data.rows.filter(row => keep(row) && (!test || test(row.function)));

		rows.sort((x, y) => Math.abs(y.delta) - Math.abs(x.delta));
		table.setRows(rows);
		body.querySelector(".count").textContent = `${formatCount(rows.length)} of ${formatCount(data.rows.length)} functions`;
	}

	function showNotes(more) {
		const a = profileOf("a"), b = profileOf("b"), type = ctx.sampleType()?.type;
		const list = [...(a && b ? compareWarnings(ctx, a, b, type) : []), ...more];

		clear(notes).append(...[...new Set(list)].map(text => h("p", { class: "compare-warning" }, "⚠ ", cleanName(text, 500))));
	}

	async function load(signal) {
		const a = idOf("a"), b = idOf("b"), si = ctx.sampleType()?.type, view = ctx.state.cv || "merged";
		let more = [];

		if (b === undefined) {
			clearViews();
			clear(notes);
			body.append(pageNote("Compare with what?", h("p", null, "Choose side B above: an open profile, a file, or an address. Or drop a file on this page.")));
			return;
		}
		const common = commonTypes(profileOf("a"), profileOf("b"));
		if (!common.includes(si)) {
			clearViews();
			showNotes([]);
			body.append(pageNote("Nothing to compare by", h("p", null, common.length ? "Both sides have:" : "The sides have no type of values in common."),
				h("p", { class: "page-bar" }, common.map(type => button(type, () => ctx.set({ si: type }))))));
			return;
		}
		if (view === "table") {
			const answer = await ctx.api.get("diff", { a, b, si }, { signal });
			clearViews();
			data = answer;
			more = data.warnings || [];
			tableView();
		} else if (view === "side") {
			const trees = await Promise.all([ctx.api.flame({ a, si }, { signal }), ctx.api.flame({ a: b, si }, { signal })]);
			clearViews();
			body.classList.add("two");
			sideView("a", trees[0]);
			sideView("b", trees[1]);
		} else {
			const tree = await ctx.api.flame({ a, b, si }, { signal });
			clearViews();
			more = tree.header.warnings || [];
			mergedView(tree);
		}
		showZoom();
		showNotes(more);
	}

	function update(state) {
		const next = dataKey(state, ["cv"]);

		showPickers();
		views.set(state.cv || "merged");
		if (next !== key) {
			key = next;
			search = ctx.search;
			run(load);
		} else if (search !== ctx.search) {
			search = ctx.search;
			if (table)
				showRows();
		}
		if (zoom !== state.z)
			showZoom();
		if (theme !== ctx.theme) {
			theme = ctx.theme;
			flames.forEach(flame => flame.restyle());
			table?.draw();
		}
	}

	return {
		update, keys: { x: swap }, get tree() { return flames[0]?.tree; },
		destroy() {
			run.stop();
			clearViews();
		},
	};
}

export const comparePage = { id: "compare", title: "Compare", mount: mountCompare };
