// The Timeline page, of profiles whose samples have times: a heat map to choose a part of the time by, and stacks in order of
// time.
import { createHeat, secondsText } from "./heat.js";
import { createLanes } from "./lanes.js";

const ASK_MS = 120;

/** "1.25-3.5" as [1.25, 3.5], or null. */
export function parseRange(text) {
	const found = /^([\d.]+)-([\d.]+)$/.exec(text || ""),
		range = found && [Number(found[1]), Number(found[2])];

	return range && range[0] < range[1] ? range : null;
}

/** Microseconds are as fine as it gets. */
export const rangeText = (from, to) => `${Number(Math.max(0, from).toFixed(6))}-${Number(to.toFixed(6))}`;

export function mount(element, ctx, kit) {
	const { h, clear } = kit,
		profile = ctx.profile;

	if (!profile?.ticks) {
		element.append(kit.pageNote("No time axis", h("p", null, "The samples of this profile do not say when they were taken. Those of perf.data do, and those with a label timestamp.")));
		return { update() {}, destroy() {} };
	}

	const note = h("span", { class: "muted count" }),
		clearButton = kit.textButton("Whole time", () => ctx.filter("tm", null), "btn small", { title: "Show all of the time again (Escape)" }),
		what = h("span", { class: "what" }),
		table = h("details", { class: "times-table" }, h("summary", null, "As a table"), h("div", { class: "times-rows" })),
		heat = createHeat(kit, ctx, { onRange: (from, to) => ctx.filter("tm", rangeText(from, to)), onClear: () => ctx.filter("tm", null), tell: text => (what.textContent = text) }),
		span = profile.span_nanos / 1e9 || 1e-3,
		threads = h("span", { class: "muted count" }),
		filterButton = kit.textButton("Only this time", () => ctx.filters({ tm: rangeText(...lanes.window), x: null }), "btn small", { title: "Make what the chart shows a filter of all views" }),
		what2 = h("span", { class: "what" }),
		amount = h("span", { class: "amount" }),
		lanes = createLanes(kit, ctx, { span, onWindow: setWindow, onSelect: fn => ctx.select(fn), tell: (name, text) => ([what2.textContent, amount.textContent] = [name, text]) }),
		lower = h("section", { class: "times-lower", "aria-label": "Stacks over time" },
			h("div", { class: "toolbar wrap" }, h("h2", null, "Stacks over time"), threads, h("span", { class: "spacer" }), zoomButton("−", "Zoom out (-)", 0.5), zoomButton("+", "Zoom in (+)", 2), filterButton),
			lanes.host, h("div", { class: "details" }, what2, amount)),
		run = kit.latest(ctx, element),
		runLanes = kit.latest(ctx, lower);
	let key = "",
		lanesKey = "",
		theme = ctx.theme,
		timer = 0,
		data = null;

	function zoomButton(text, title, factor) {
		return kit.textButton(text, () => lanes.zoom(factor), "btn small", { title, "aria-label": title.replace(/ \(.*/, "") });
	}

	element.classList.add("fill");
	element.append(h("div", { class: "toolbar wrap" }, h("h2", null, "Samples over time"), note, h("span", { class: "spacer" }), what, clearButton), h("div", { class: "heat-box" }, heat.canvas), table, lower);

	const resized = new ResizeObserver(() => {
		heat.draw();
		lanes.draw();
		askSoon();
	});

	resized.observe(heat.canvas);
	resized.observe(lanes.host);
	table.addEventListener("toggle", showTable);

	/** Each column of the heat map, with what it has in all. */
	function showTable() {
		const rows = clear(table.lastChild);

		if (!table.open || !data)
			return;
		rows.append(h("table", null, h("thead", null, h("tr", null, h("th", { scope: "col" }, "From"), h("th", { scope: "col", class: "num" }, data.type))),
			h("tbody", null, Array.from({ length: data.columns }, (_, column) => {
				const sum = data.cells.slice(column * data.rows, (column + 1) * data.rows).reduce((a, b) => a + b, 0),
					from = (column * data.step) / 1e9;

				return h("tr", null, h("td", null, kit.textButton(secondsText(from), () => ctx.filter("tm", rangeText(from, from + data.step / 1e9)), "link", { title: "Choose this time" })), h("td", { class: "num" }, ctx.format(sum, data.unit)));
			}))));
	}

	async function load(signal) {
		data = await ctx.api.get("heat", { tm: null }, { signal });
		heat.setData(data);
		showTable();
	}

	// ---- stacks

	/** What the chart shows is in the URL; all that is chosen is not. */
	function setWindow(from, to) {
		const base = parseRange(ctx.state.tm) || [0, span],
			isAll = !to || (from <= base[0] && to >= base[1] - 1e-6 && !ctx.state.tm) || rangeText(from, to) === ctx.state.tm;

		ctx.set({ x: isAll ? null : rangeText(from, to) }, { push: false });
	}

	/** While the window moves, what is there is drawn. */
	function askSoon() {
		clearTimeout(timer);
		timer = setTimeout(() => ask(ctx.state), ASK_MS);
	}

	function ask(state) {
		const tm = state.x || state.tm,
			next = JSON.stringify([key, tm, lanes.columns]);

		if (next === lanesKey || lanes.columns <= 16)
			return;
		lanesKey = next;
		runLanes(async signal => {
			const answer = await ctx.api.get("chart", { tm, columns: lanes.columns }, { signal });

			lanes.setData(answer);
			threads.textContent = `${answer.lanes.length} threads${answer.more_lanes ? `, the busiest of ${answer.lanes.length + answer.more_lanes}` : ""}${answer.is_cut ? "; zoom in to see all of it" : ""}`;
		});
	}

	function showWindow(state) {
		const range = parseRange(state.x) || parseRange(state.tm) || [0, span];

		lanes.setWindow(range[0], Math.min(span, range[1]), false);
		filterButton.disabled = !state.x;
		lanesKey ? askSoon() : ask(state);
	}

	// ---- both

	function tellRange(state) {
		const range = parseRange(state.tm);

		heat.setRange(range);
		clearButton.hidden = !range;
		note.textContent = range ? `${secondsText(range[0])} to ${secondsText(range[1])}: all views show this time` : `${secondsText(profile.span_nanos / 1e9, 0.1)}, ${profile.ticks.toLocaleString("en")} samples; drag to choose a part`;
	}

	function update(state) {
		const next = JSON.stringify([...kit.FILTER_KEYS, "a"].filter(name => name !== "tm").map(name => state[name] || ""));

		tellRange(state);
		if (next !== key) {
			key = next;
			run(load);
		}
		showWindow(state);
		if (theme !== ctx.theme) {
			theme = ctx.theme;
			heat.draw();
			lanes.draw();
		}
	}

	return {
		update,
		focus: () => heat.canvas.focus(),
		keys: { Escape: () => (ctx.state.tm ? (ctx.filter("tm", null), undefined) : false) },
		get stats() {
			return { total: data ? data.cells.reduce((a, b) => a + b, 0) : 0, columns: data?.columns, rows: data?.rows, ...lanes.stats };
		},
		destroy() {
			run.stop();
			runLanes.stop();
			clearTimeout(timer);
			lanes.destroy();
			resized.disconnect();
		},
	};
}
