// The Compare page: two profiles beside each other, as one picture, and as a table.
import { h, clear, segmented, selectField } from "./dom.js";
import { cleanName, formatCount, formatValue } from "./format.js";
import { makeFlame } from "./flame_draw.js";
import { pathOf } from "./flame_tree.js";
import { parseTimeRange, timeRangeText } from "./state.js";
import { VirtualTable, button, muted, popover } from "./table.js";
import { dataKey, latest, functionCell, openFunctionMenu, pageNote, searchTest, parseSort, formatSort } from "./pages.js";
import { changeClass, changeColumns, describeChange, flameKeys, isRoomy, nameFirst, valueColumns } from "./pages.js";

const COMPARE_FILTERS = { all: () => true, new: row => !row.a && row.b, gone: row => row.a && !row.b, changed: row => row.a !== row.b,
	significant: row => row.significant };

/** How values of both sides are made comparable: factors for A and B. */
const NORMAL = [
	["", "none", () => [1, 1]],
	["a", "B to the total of A (-normalize)", (a, b) => [1, a.total / b.total]],
	["b", "A to the total of B", (a, b) => [b.total / a.total, 1]],
	["total", "per total", (a, b) => [100 / a.total, 100 / b.total]],
	["second", "per second", (a, b) => [1e9 / a.duration_nanos, 1e9 / b.duration_nanos]],
];
/** How wide frames are, by what each has in A and in B. The last: all that is more and all that is less, as pprof has it. */
const WIDTHS = [["", "max(A, B)", Math.max], ["a", "A", a => a], ["b", "B", (a, b) => b], ["sum", "A + B", (a, b) => a + b], ["change", "|+| + |−|", (a, b) => Math.abs(a - b)]];
const choicesOf = list => list.map(([value, text]) => ({ value, text }));
const choiceOf = (list, name) => list.find(([value]) => value === name) || list[0];

/** A tree whose sides are multiplied. */
function scaleTree(tree, [a, b]) {
	const scaled = { ...tree, header: { ...tree.header, total: tree.header.total * a, total_b: tree.header.total_b * b } };

	for (const name of ["self", "total", "lost"]) {
		scaled[name] = tree[name].map(value => value * a);
		scaled[name + "B"] = tree[name + "B"]?.map(value => value * b);
	}
	return scaled;
}

/** Widths of frames that hold their children, and of what is cut off below them. */
function diffWidths({ n, parent, self, selfB, total, totalB, lost, lostB }, [name, , join]) {
	const w = new Float64Array(n), cut = lost.map((value, i) => join(value, lostB[i]));

	// Children come after their parent.
	for (let i = n - 1; i >= 0; i--) {
		w[i] = name ? w[i] + cut[i] + join(self[i], selfB[i]) : Math.max(w[i] + cut[i], total[i], totalB[i]);
		if (i)
			w[parent[i]] += w[i];
	}
	return [w, cut];
}

/** What differs by less than factors are exact is the same. */
const scaleRow = (row, a, b) => ({ ...row, a, b: Math.abs(b - a) > 1e-9 * a ? b : a });
const deltaOf = row => row.b - row.a;

const changeName = row => deltaOf(row) ? row.a ? row.b ? "changed" : "✕ gone" : "N new" : "same";

/** Has the server open one more profile, and goes on with its number. A file that has both sides fills both. */
async function addProfile(ctx, path, parameters, content, use) {
	try {
		const { id, before, after } = await ctx.api.post(path, parameters, content);

		await ctx.reloadMeta();
		if (after)
			ctx.go("compare", { a: before.id, b: after.id, z: null });
		else
			use(id);
	} catch (error) {
		ctx.error(error, () => addProfile(ctx, path, parameters, content, use));
	}
}

/** Opens a dropped file: on the Compare page as the side that is missing, else as what is shown. */
export const openFile = (ctx, file) => addProfile(ctx, "profiles", { name: file.name, sides: 1 }, file, id => {
	ctx.toast(`Opened ${cleanName(file.name, 80)}`);
	if (ctx.state.page === "compare")
		ctx.set({ b: id, z: null });
	else
		ctx.go("flamegraph", { a: id, z: null, x: null, p: null });
});

/** What makes a comparison doubtful: [text]. */
function compareWarnings(a, b, type) {
	const find = p => p.types.find(t => t.type === type), lacking = [a, b].find(p => !find(p)), warnings = [];
	const differ = (what, get) => {
		const x = get(a), y = get(b);
		if (x && y && x !== y)
			warnings.push(`The ${what} differ: ${x} and ${y}.`);
	};

	if (a.id === b.id && !a.times)
		warnings.push("Both sides are the same profile.");
	if (a.id === b.id && a.times && Math.max(a.times[0], b.times[0]) < Math.min(a.times[1], b.times[1]))
		warnings.push("The two times overlap.");
	if (lacking)
		warnings.push(`${lacking.name} has no values of the type “${type}”, but ${lacking.types.map(t => t.type).join(", ")}.`);
	differ("units", p => find(p)?.unit);
	differ("sampling periods", p => p.period && `${formatValue(p.period, p.period_unit)} of ${p.period_type}`);
	if (Math.abs(Math.log(a.duration_nanos / b.duration_nanos)) > 0.1)
		differ("durations", p => p.duration_nanos && formatValue(p.duration_nanos, "nanoseconds"));
	differ("programs", p => p.file);
	differ("build IDs of the binaries", p => p.build_id);
	return warnings;
}

/** The types of values that both have; of a profile that is not open nothing is known. */
function commonTypes(a, b) {
	const types = p => (p?.types || []).map(type => type.type);

	return a && b ? types(a).filter(type => types(b).includes(type)) : types(a || b);
}

function diffColumns(ctx, data) {
	const { unit, total_a: totalA, total_b: totalB } = data;
	const share = (side, total) => ({ ...valueColumns(ctx, side, "Share " + side.toUpperCase(), "Value", unit, total, row => row[side])[1], title: "Share " + side.toUpperCase(), width: 84 });
	const points = row => (totalB ? row.b / totalB : 0) * 100 - (totalA ? row.a / totalA : 0) * 100;
	const relative = row => row.a ? (row.b - row.a) / row.a : row.b ? Infinity : 0;

	return nameFirst([
		...changeColumns(ctx, "", "", unit, row => row.a, row => row.b),
		{ key: "relative", title: "Δ %", number: true, width: 84, get: relative, hide: !isRoomy(800),
			text: row => row.a && row.b ? `${relative(row) > 0 ? "+" : relative(row) < 0 ? "−" : "±"}${(Math.abs(relative(row)) * 100).toFixed(1)}%` : "" },
		share("a", totalA), share("b", totalB),
		{ key: "points", title: "Δ share", hint: "In points of percent", number: true, width: 92, get: points, mark: row => changeClass(points(row)),
			text: row => Math.abs(points(row)) < 0.005 ? "±0" : `${points(row) > 0 ? "▲ +" : "▼ −"}${Math.abs(points(row)).toFixed(2)}` },
		{ key: "z", title: "z", hint: "How many standard deviations from chance", number: true, width: 72, hide: !isRoomy(1000), get: row => row.z, text: row => row.z.toFixed(1) },
		{ key: "verdict", title: "Verdict", hint: "★: more than chance; ?: not enough samples to tell", width: 100,
			get: row => changeName(row) + (row.significant ? " ★" : deltaOf(row) && row.few ? " ?" : "") },
		{ key: "name", title: "Function", get: row => row.function[1], render: (cell, row) => cell.append(...functionCell(ctx, row.function)) },
	]);
}

function mountCompare(el, ctx) {
	const views = segmented("View", [{ value: "side", text: "Side by side" }, { value: "merged", text: "Merged" }, { value: "table", text: "Table" }], "", value => ctx.set({ cv: value }));
	const bar = h("div", { class: "page-bar" }), notes = h("div", { class: "compare-notes" }), body = h("div", { class: "compare-body" });
	const status = h("p", { class: "compare-status", role: "status" }), run = latest(ctx, el);
	// As ctx, but with values as the normalisation has them.
	const view = Object.create(ctx);
	let key = "", search = null, table = null, flames = [], data = null, pickersKey = "", zoom, theme = ctx.theme;

	el.classList.add("fill");
	el.append(bar, notes, status, body);

	const profiles = () => ctx.meta.profiles || [];
	// With a baseline the sides are two times, of one profile unless b is another.
	const idOf = name => name === "a" ? ctx.state.a || "0" : ctx.state.b ?? (ctx.state.tb && idOf("a"));
	const profileOf = name => {
		const profile = profiles().find(p => String(p.id) === idOf(name)), { tb, tm } = ctx.state;
		const times = profile?.ticks && tb ? parseTimeRange(name === "a" ? tb : tm) || [0, profile.span_nanos / 1e9] : null;

		return times ? { ...profile, times, duration_nanos: (times[1] - times[0]) * 1e9 } : profile;
	};
	const timesText = name => {
		const times = profileOf(name)?.times;

		return times ? times.map(time => `${Number(time.toFixed(3))} s`).join(" to ") : "";
	};

	// ---- which two

	const take = (name, parameters, content) => addProfile(ctx, "profiles", { ...parameters, sides: 1 }, content, id => ctx.set({ [name]: id, z: null }));

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
			} } }, h("label", null, "An address", url), h("button", { class: "btn" }, "Fetch")), h("p", { class: "muted" }, "Or drop a file anywhere on this page. Folded stacks with two counts fill both sides."));
		});
	}

	function picker(name) {
		const choices = profiles().map(p => ({ value: String(p.id), text: cleanName(p.name, 60) }));

		if (name === "b")
			choices.unshift({ value: "", text: "choose…" });
		return [selectField(name.toUpperCase(), choices, idOf(name) || "", value => ctx.set({ [name]: value || null, z: null })),
			...ctx.meta.home ? [] : [opener(name)]];
	}

	function swap() {
		const { a, b, tb, tm } = ctx.state;

		if (b !== undefined || tb)
			ctx.set({ ...b !== undefined && { a: b, b: a || "0" }, ...tb && { tb: tm || timeRangeText(...profileOf("b").times), tm: tb } });
	}

	/** Which times are compared; they are chosen in the timeline. */
	function timesNote() {
		return h("span", { class: "compare-times" }, ["a", "b"].map(name => h("span", null, h("strong", null, name.toUpperCase()), ` ${timesText(name)}`)),
			button("Timeline", () => ctx.go("timeline", { z: null })), button("Whole time", () => ctx.filters({ tb: null, tm: null, z: null })));
	}

	/** B less A as a profile of its own: with the numbers that the command line has for it. */
	function subtractor() {
		return popover("As pprof", (panel, close) => {
			const norm = h("input", { type: "checkbox" });
			const open = mode => () => {
				close();
				addProfile(ctx, "subtract", { a: idOf("a"), b: idOf("b"), mode, norm: norm.checked }, "", id => ctx.go("top", { a: id, b: null, z: null }));
			};
			panel.append(muted("B less A as a profile, by"), button("-diff_base", open("diff_base")), button("-base", open("base")),
				h("label", null, norm, "-normalize"));
		});
	}

	// The last, per second, needs to know how long.
	const normals = () => ["a", "b"].every(name => profileOf(name)?.duration_nanos > 0) ? NORMAL : NORMAL.slice(0, -1);

	function normalise(totalA, totalB) {
		const [name, , make] = choiceOf(normals(), ctx.state.cn);

		view.format = name === "total" ? value => ctx.percent(value, 100) : name === "second" ? (value, unit) => ctx.format(value, unit) + "/s" : ctx.format;
		return make({ ...profileOf("a"), total: totalA }, { ...profileOf("b"), total: totalB }).map(factor => Number.isFinite(factor) ? factor : 1);
	}

	function showPickers() {
		const next = JSON.stringify([profiles().map(p => [p.id, p.name]), idOf("a"), idOf("b"), ctx.state.cn, timesText("a"), timesText("b")]);

		if (next === pickersKey)
			return;
		pickersKey = next;
		clear(bar).append(...picker("a"), button("⇄", swap, { title: "Swap the sides (x)", "aria-label": "Swap the sides" }),
			...picker("b"), views, ...idOf("b") === undefined ? []
			: [selectField("Normalise", choicesOf(normals()), choiceOf(normals(), ctx.state.cn)[0], value => ctx.set({ cn: value || null })), ...ctx.meta.home || timesText("a") ? [] : [subtractor()]], ...timesText("a") ? [timesNote()] : []);
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
	function tell(fn, a, b, totalA, totalB, what) {
		status.textContent = `${cleanName(fn[1], 120)}: ${describeChange(view, a, b, totalA, totalB, what)}`;
	}

	/** A flame graph whose zoom is that of the URL, and so of the other one. */
	function addFlame(host, tree, label, hover) {
		const functionOf = node => tree.functions[tree.fn[node]];
		const zoomTo = node => {
			ctx.select(node > 0 ? functionOf(node) : null);
			ctx.set({ z: pathOf(tree, node) || null });
		};
		const flame = makeFlame(host, view, { label, onClick: node => node >= 0 && zoomTo(node), onHover: node => hover(node, node > 0 ? functionOf(node) : null),
			onMenu: (node, event) => openFunctionMenu(ctx, functionOf(node), event) });

		flame.setTree(tree);
		flameKeys(flame, view, zoomTo);
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
			h("h2", null, `${letter} · ${cleanName(side?.name || "", 60)}${timesText(name) && ", " + timesText(name)}`, h("small", { class: "muted" }, " " + view.format(tree.total[0], unit))), host));
		addFlame(host, tree, `Side ${letter}`, (node, fn) => {
			flames.forEach(other => other.highlight(fn && fn[0]));
			if (fn)
				status.textContent = `${letter}: ${cleanName(fn[1], 120)}: ${view.format(tree.total[node], unit)}, ${ctx.percent(tree.total[node], tree.total[0])}`;
		});
	}

	function mergedView(tree) {
		const host = h("div", { class: "compare-flame" }), way = choiceOf(WIDTHS, ctx.state.cw);
		const width = selectField("Width", choicesOf(WIDTHS), way[0], value => ctx.set({ cw: value || null }, { push: false }));
		const hover = (node, fn) => node >= 0 && tell(fn || [0, "all"], tree.total[node], tree.totalB[node], tree.total[0], tree.totalB[0], tree.header);

		body.append(h("p", { class: "muted compare-legend" }, h("span", { class: "less" }, "▼ − less in B"), h("span", { class: "more" }, "▲ + more in B"), h("span", null, "N new in B"), h("span", null, "✕ gone in B"), width), host);
		addFlame(host, { ...tree, widths: diffWidths(tree, way) }, "Both sides", hover);
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
			label: "Changes", file: "diff", columns: diffColumns(view, data), rowKey: row => row.function[0], empty: "No such change.",
			sort: parseSort(ctx.state.srt, []), onSort: sort => ctx.set({ srt: formatSort(sort) }, { push: false }), 
			onSelect: row => {
				ctx.select(row.function);
				tell(row.function, row.a, row.b, data.total_a, data.total_b, data);
			},
			onOpen: row => ctx.go("sandwich", { fn: row.function[0] }), onMenu: (row, event) => openFunctionMenu(ctx, row.function, event),
		});
		head.append(table.tools);
		showRows();
		tell([0, "all"], data.total_a, data.total_b, data.total_a, data.total_b, data);
	}

	function showRows() {
		const test = searchTest(ctx), keep = COMPARE_FILTERS[ctx.state.flt] || COMPARE_FILTERS.all;
		const rows = data.rows.filter(row => keep(row) && (!test || test(row.function)));

		rows.sort((x, y) => Math.abs(deltaOf(y)) - Math.abs(deltaOf(x)));
		table.setRows(rows);
		body.querySelector(".count").textContent = `${formatCount(rows.length)} of ${formatCount(data.rows.length)} functions`;
	}

	/** How the warning can be done away with. */
	function waysOut(text) {
		if (!text.startsWith("The durations") || ctx.state.cn)
			return [];
		return normals().slice(-2).map(([value, name]) => button(`Compare ${name}`, () => ctx.set({ cn: value }), { class: "link" }));
	}

	function showNotes(more) {
		const a = profileOf("a"), b = profileOf("b"), type = ctx.sampleType()?.type;
		const list = [...(a && b ? compareWarnings(a, b, type) : []), ...more];

		clear(notes).append(...[...new Set(list)].map(text => h("p", { class: "compare-warning" }, "⚠ ", cleanName(text, 500), ...waysOut(text))));
	}

	async function load(signal) {
		const a = idOf("a"), b = idOf("b"), si = ctx.sampleType()?.type, view = ctx.state.cv || "merged", { tb, tm } = ctx.state;
		let more = [];

		if (b === undefined) {
			clearViews();
			clear(notes);
			body.append(pageNote("Compare with what?", h("p", null, ctx.meta.home ? ["Choose a second window, with Shift, in the ", h("a", { href: `${ctx.meta.home}timeline?${idOf("a")}` }, "timeline"), "."]
				: "Choose side B above, or drop a file on this page."),
				ctx.profile?.ticks ? h("p", null, "Or two times of this profile: drag in the ", button("Timeline", () => ctx.go("timeline")), ", and then with Shift.") : null));
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
			const answer = await ctx.api.get("diff", { a, b, tb, si, per: choiceOf(normals(), ctx.state.cn)[0] }, { signal });
			const [fa, fb] = normalise(answer.total_a, answer.total_b);
			clearViews();
			data = { ...answer, total_a: answer.total_a * fa, total_b: answer.total_b * fb,
				rows: answer.rows.map(row => scaleRow(row, row.a * fa, row.b * fb)) };
			more = data.warnings || [];
			tableView();
		} else if (view === "side") {
			const trees = await Promise.all([ctx.api.flame({ a, si, tm: tb || tm }, { signal }), ctx.api.flame({ a: b, si }, { signal })]);
			const [fa, fb] = normalise(trees[0].total[0], trees[1].total[0]);
			clearViews();
			body.classList.add("two");
			sideView("a", scaleTree(trees[0], [fa, 1]));
			sideView("b", scaleTree(trees[1], [fb, 1]));
		} else {
			const tree = await ctx.api.flame({ a, b, tb, si }, { signal });
			const factors = normalise(tree.total[0], tree.totalB[0]);
			clearViews();
			more = tree.header.warnings || [];
			mergedView(scaleTree(tree, factors));
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
