// The Timeline page, of profiles whose samples have times: a heat map to choose a part of the time by, and one to compare it
// with; and stacks in order of time.
import { createHeat, secondsText } from "./heat.js";
import { createLanes } from "./lanes.js";

const ASK_MS = 120;

export function mount(element, ctx, kit) {
	const { h, clear, parseTimeRange, timeRangeText } = kit,
		profile = ctx.profile;

	if (!profile?.ticks) {
		element.append(kit.pageNote("No time axis", h("p", null, "The samples of this profile do not say when they were taken. Those of perf.data do, and those with a label timestamp.")));
		return { update() {}, destroy() {} };
	}

	const note = h("span", { class: "muted count" }),
		clearButton = kit.textButton("Whole time", clearTimes, "btn small", { title: "Show all of the time again (Escape)" }),
		baseButton = kit.textButton("Make it the baseline", makeBase, "btn small", { title: "Compare another time with this (b)" }),
		compareButton = kit.textButton("Compare with the baseline", compare, "btn small", { title: "What changed from A to B (c)" }),
		what = h("span", { class: "what" }),
		table = h("details", { class: "times-table" }, h("summary", null, "As a table"), h("div", { class: "times-rows" })),
		heat = createHeat(kit, ctx, { onRange: (from, to) => ctx.filter("tm", timeRangeText(from, to)), onBase: setBase, onClear: clearTimes, tell: text => (what.textContent = text) }),
		span = profile.span_nanos / 1e9 || 1e-3,
		threads = h("span", { class: "muted count" }),
		filterButton = kit.textButton("Only this time", () => ctx.filters({ tm: timeRangeText(...lanes.window), x: null }), "btn small", { title: "Make what the chart shows a filter of all views" }),
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
	element.append(h("div", { class: "toolbar wrap" }, h("h2", null, "Samples over time"), note, h("span", { class: "spacer" }), what, baseButton, compareButton, clearButton), h("div", { class: "heat-box" }, heat.canvas), table, lower);

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

				return h("tr", null, h("td", null, kit.textButton(secondsText(from), () => ctx.filter("tm", timeRangeText(from, from + data.step / 1e9)), "link", { title: "Choose this time" })), h("td", { class: "num" }, ctx.format(sum, data.unit)));
			}))));
	}

	// ---- two times

	function clearTimes() {
		ctx.filters({ tm: null, tb: null });
	}

	function compare() {
		ctx.go("compare", { b: null, z: null, x: null });
	}

	/** The baseline of a window that is chosen is what it is compared with. */
	function setBase(from, to) {
		const tb = timeRangeText(from, to);

		if (ctx.state.tm) {
			ctx.go("compare", { tb, b: null, z: null, x: null });
			return;
		}
		ctx.set({ tb });
		ctx.announce(`Baseline ${secondsText(from)} to ${secondsText(to)}. Choose what to compare it with.`);
	}

	function makeBase() {
		const range = parseTimeRange(ctx.state.tm);

		if (!range)
			return;
		ctx.filters({ tm: null, tb: timeRangeText(...range), x: null });
		ctx.announce("This is the baseline. Choose what to compare it with.");
	}

	async function load(signal) {
		data = await ctx.api.get("heat", { tm: null }, { signal });
		heat.setData(data);
		showTable();
	}

	// ---- stacks

	/** What the chart shows is in the URL; all that is chosen is not. */
	function setWindow(from, to) {
		const base = parseTimeRange(ctx.state.tm) || [0, span],
			isAll = !to || (from <= base[0] && to >= base[1] - 1e-6 && !ctx.state.tm) || timeRangeText(from, to) === ctx.state.tm;

		ctx.set({ x: isAll ? null : timeRangeText(from, to) }, { push: false });
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
			threads.textContent = `${answer.lanes.length} ${answer.lanes.length === 1 ? "thread" : "threads"}${answer.more_lanes ? `, the busiest of ${answer.lanes.length + answer.more_lanes}` : ""}${answer.is_cut ? "; zoom in to see all of it" : ""}`;
		});
	}

	function showWindow(state) {
		const range = parseTimeRange(state.x) || parseTimeRange(state.tm) || [0, span];

		lanes.setWindow(range[0], Math.min(span, range[1]), false);
		filterButton.disabled = !state.x;
		lanesKey ? askSoon() : ask(state);
	}

	// ---- both

	const timesText = ([from, to]) => `${secondsText(from)} to ${secondsText(to)}`;

	function tellRange(state) {
		const range = parseTimeRange(state.tm),
			base = parseTimeRange(state.tb);

		heat.setRange(range, base);
		clearButton.hidden = !range && !base;
		baseButton.hidden = !range;
		compareButton.hidden = !range || !base;
		note.textContent = [
			range && `${timesText(range)}: all views show this time`, base && `baseline ${timesText(base)}`, base && !range && "drag over what to compare it with",
			!range && !base && `${secondsText(profile.span_nanos / 1e9, 0.1)}, ${profile.ticks.toLocaleString("en")} samples`, !base && (range ? "drag with Shift over what to compare it with" : "drag to choose a part, with Shift a baseline"),
		].filter(Boolean).join("; ");
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
		keys: { b: () => (ctx.state.tm ? makeBase() : false), c: () => (ctx.state.tm && ctx.state.tb ? compare() : false), Escape: () => (ctx.state.tm || ctx.state.tb ? clearTimes() : false) },
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
