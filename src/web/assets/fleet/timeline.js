// The Timeline page: how much a selection uses over time, by a label; a window of it opens in the viewer, two are compared.
import { h, clear, icon, segmented, textButton } from "../dom.js";
import { cleanName, formatCount, formatValue } from "../format.js";
import { VirtualTable } from "../table.js";
import { latest, pageNote } from "../pages.js";
import { TimeChart, lineColor } from "./chart.js";
import { addCondition, askAgain, durationText, fitSpan, levelText, nameField, queryField, refill, selectionParams, spanField, timeText, usualType, valueField, viewerUrl, windowOf } from "./selection.js";
import { loadAnnotations, markText, marksOf, openAnnotate, openMarks } from "./marks.js";
import { comparisons, loadVersions } from "./versions.js";

const MOST_LINES = 20,
	MOST_PROFILES = 500,
	MOST_SUGGESTED = 50,
	NO_LABEL = "(none)",
	NO_LINES = "-"; // of "by": it is one line, although no service is chosen

/** Steps that people know; the chart has a point for two pixels at most. */
const STEPS = [1, 5, 10, 15, 30, 60, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 604800];

function seriesStep(from, to, pixels) {
	return STEPS.find(step => (to - from) / step <= pixels / 2) || STEPS[STEPS.length - 1];
}

/** "w=from,to" of the URL. */
function rangeOf(text) {
	const [from, to] = (text || "").split(",").map(Number);

	return from > 0 && to > from ? [from, to] : null;
}

const rangeText = range => (range ? range.map(time => Number(time.toFixed(3))).join(",") : null);

function spanText([from, to]) {
	const isDay = timeText(from).slice(0, 10) === timeText(to).slice(0, 10);

	return `${timeText(from)} – ${isDay ? timeText(to).slice(11) : timeText(to)} (${durationText(to - from)})`;
}

function mountTimeline(element, ctx) {
	const fields = {
		// One line of what was before is none of what comes.
		service: nameField(ctx, "Service", "service", "all services", value => ({ service: value || null, only: null })),
		type: nameField(ctx, "Type", "type", "", value => ({ type: value || null, st: null, only: null })),
		by: nameField(ctx, "By", "by", "nothing", value => ({ by: value || (ctx.state.service ? null : NO_LINES), only: null })),
		value: valueField(ctx),
		span: spanField(ctx, () => spanOf(ctx.state)),
		query: queryField(ctx),
	};
	const mode = segmented("Chart", [{ value: "area", text: "Stacked" }, { value: "lines", text: "Lines" }, { value: "table", text: "Table" }], "area", value => ctx.set({ mode: value === "area" ? null : value }));
	const suggested = h("datalist", { id: "functions" }),
		fn = h("input", { type: "text", class: "query", placeholder: "Function to overlay", "aria-label": "Function to overlay, by its whole name", spellcheck: "false", list: "functions" });
	const note = h("p", { class: "chart-note muted", role: "status" }),
		plot = h("div", { class: "plot" }),
		legend = h("ul", { class: "chart-legend", "aria-label": "Lines" }),
		actions = h("div", { class: "page-bar window-bar", role: "group", "aria-label": "Window" }),
		single = h("section", { class: "single", "aria-label": "Profiles in the window" });
	const run = latest(ctx, plot),
		runList = latest(ctx, single),
		runNames = latest(ctx, actions),
		runSuggest = latest(ctx, suggested);
	const at = h("li", { class: "at" });
	let chart = null,
		table = null,
		legendItems = [],
		legendKey = "",
		data = null,
		key = "",
		listKey = "",
		namesKey = "",
		knownKey = null,
		list = null,
		types = [],
		services = [],
		firsts = new Map(),
		hasNames = false,
		theme = ctx.theme,
		cursor = -1;

	element.classList.add("timeline");
	element.append(
		h("div", { class: "toolbar wrap" }, fields.service, fields.type, fields.value, fields.by, fields.query, fields.span),
		h("div", { class: "toolbar wrap" }, mode, fn, suggested, note),
		plot, legend, actions, single
	);
	fn.addEventListener("focus", suggest);
	fn.addEventListener("change", () => ctx.set({ fn: fn.value.trim() || null }));

	// ---- what is chosen

	const typeOf = state => state.type || usualType(types) || "";
	/** What is shown if the URL does not say: all that there is of a young store, else the last day. */
	function spanOf(state) {
		return fitSpan(firsts.get(typeOf(state)) || 0);
	}
	const byOf = state => (state.by === NO_LINES ? "" : (state.by ?? (state.service ? "" : "service")));
	const lineName = line => line.name || NO_LABEL;
	/** The line that is shown alone; what no line is called does not count. */
	const onlyOf = state => (byOf(state) && (!data || data.lines.some(line => lineName(line) === state.only)) ? state.only : undefined);
	const selection = (state, range) => {
		const params = { ...selectionParams(state, spanOf(state)), type: typeOf(state) };

		return range ? { ...params, from: range[0].toFixed(3), to: range[1].toFixed(3) } : params;
	};
	/** The selection as it is seen: with the one line that is shown. */
	const seen = (state, range) => {
		const params = selection(state, range),
			by = byOf(state),
			only = onlyOf(state),
			value = only === NO_LABEL ? "" : only;

		if (only === undefined)
			return params;
		return value && (by === "service" || by === "type") ? { ...params, [by]: value } : { ...params, query: addCondition(params.query, by, value) };
	};
	// Windows are rarely of the same length and load: what is summed up is compared by shares.
	const openUrl = (page, a, b) => viewerUrl(page, a, b, { si: ctx.state.st, cn: b && data?.lines[0]?.per_second ? "total" : undefined });
	const shownRange = state => {
		const { from, to } = windowOf(state, spanOf(state));

		return rangeOf(state.w) || [from, to];
	};
	const format = level => (data?.lines[0] ? levelText(level, data.lines[0].unit, data.lines[0].per_second) : String(level));

	async function loadNames(signal) {
		const { service, query } = ctx.state,
			wanted = namesKey;
		const [all, found, labels] = await Promise.all([
			ctx.api.get("services", { limit: 10000 }, { signal }),
			ctx.api.get("types", { service, query }, { signal }),
			ctx.api.get("labels", { service, query }, { signal }),
		]);

		types = found.types.map(type => type.name);
		firsts = new Map(found.types.map(type => [type.name, Date.parse(type.first) / 1000]));
		hasNames = true;
		knownKey = wanted;
		services = all.services.map(item => item.name);
		fields.service.setNames(services);
		fields.type.setNames(types);
		fields.by.setNames(["service", ...labels.labels.map(label => label.name)]);
		update(ctx.state);
	}

	/** The heaviest functions of what is shown, for who is about to name one. */
	function suggest() {
		const wanted = key;

		if (suggested.dataset.key === wanted || !typeOf(ctx.state))
			return;
		suggested.dataset.key = wanted;
		runSuggest(async signal => {
			const { rows } = await ctx.api.get("top", { ...selection(ctx.state), sample_type: ctx.state.st, sort: "cum", limit: MOST_SUGGESTED }, { signal }).catch(() => ({ rows: [] }));

			if (!signal.aborted)
				suggested.replaceChildren(...rows.map(row => h("option", { value: row.function })));
		});
	}

	// ---- the chart

	async function load(signal) {
		const { state } = ctx,
			{ from, to } = windowOf(state, spanOf(state)),
			type = typeOf(state);

		if (!type) {
			showNothing();
			return;
		}
		const start = performance.now(),
			step = seriesStep(from, to, Math.max(200, plot.clientWidth || 800)),
			params = { ...selection(state), step: `${step}s`, levels: true, sample_type: state.st };
		const [series, overlay, versions, annotations] = await Promise.all([
			ctx.api.get("series", { ...params, by: byOf(state), limit: MOST_LINES }, { signal }),
			state.fn ? ctx.api.get("series", { ...params, function: state.fn }, { signal }) : null,
			state.service ? loadVersions(ctx, state.service, signal) : null,
			loadAnnotations(ctx, { from, to, service: state.service }, signal),
		]);

		data = {
			from, to, step: series.step, total: series.total, leftOut: series.left_out?.why || "",
			lines: series.lines.map((line, i) => ({ ...line, color: i })),
			overlay: overlay?.lines.find(line => line.points.some(point => point[3])) || null,
			versions, annotations,
			marks: marksOf(annotations, versions, from, to),
			queryMs: performance.now() - start,
		};
		show();
		// What now is has moved on.
		showActions(state);
	}

	function shownLines() {
		const only = onlyOf(ctx.state);

		return only === undefined ? data.lines : data.lines.filter(line => lineName(line) === only);
	}

	function show() {
		const { state } = ctx;

		note.textContent = "";
		if (!data.lines.length) {
			showNothing();
			return;
		}
		const lines = shownLines();

		if (state.mode === "table") {
			showTable(lines);
		} else {
			if (!chart)
				clearPlot();
			chart = chart || new TimeChart(plot, {
				label: "Values over time", theme: () => ctx.theme, format, announce: ctx.announce,
				onWindow: (kind, range, isMore) => ctx.set(kind === "base" ? { b: rangeText(range) } : { w: rangeText(range) }, { push: !isMore }),
				onCursor: i => {
					cursor = i;
					showLegend();
				},
				onMarks: marks => openMarks(ctx, marks, data.annotations.may_drop, () => run(load)),
			});
			chart.setRanges({ window: rangeOf(state.w), base: rangeOf(state.b) });
			chart.setData({ ...data, lines, isStacked: state.mode !== "lines" });
			data.drawMs = chart.drawMs;
		}
		note.textContent = data.leftOut ? `⚠ ${cleanName(data.leftOut, 400)}` : data.total > data.lines.length ? `The ${data.lines.length} highest of ${formatCount(data.total)} lines.` : state.fn && !data.overlay ? "No samples have this function." : data.annotations.more ? `The ${formatCount(data.annotations.list.length)} newest annotations.` : "";
		showLegend();
	}

	function clearPlot() {
		chart?.destroy();
		table?.destroy();
		chart = table = null;
		clear(plot);
	}

	function showNothing() {
		clearPlot();
		clear(legend);
		legendKey = "";
		plot.append(pageNote("Nothing to show", h("p", {}, types.length ? "No profiles came in that fit, in this time." : "There are no profiles of this selection.")));
	}

	/** The chart for those who cannot see it. */
	function showTable(lines) {
		const hasMarks = data.marks.length > 0,
			names = JSON.stringify([hasMarks, lines.map(line => [line.name, line.unit])]),
			rows = new Map(),
			rowAt = time => rows.get(time) || rows.set(time, { time, levels: [], marks: [] }).get(time);

		lines.forEach((line, k) => line.points.forEach(point => {
			rowAt(point[0]).levels[k] = point[3];
		}));
		for (const mark of data.marks)
			rowAt(Math.floor(Math.max(mark.time, data.from) / data.step) * data.step).marks.push(markText(mark));
		if (table?.names !== names) {
			clearPlot();
			table = new VirtualTable(plot.appendChild(h("div", { class: "fill-body" })), ctx, tableOptions(lines, hasMarks));
			table.names = names;
		}
		table.setRows([...rows.values()]);
	}

	function tableOptions(lines, hasMarks) {
		return {
			label: "Values over time", file: "timeline", sort: [{ key: "time", down: true }], rowKey: row => row.time,
			columns: [
				{ key: "time", title: "Time", min: 170, get: row => row.time, text: row => timeText(row.time) },
				...lines.map((line, k) => ({ key: `line${k}`, title: cleanName(line.name, 40) || "Value", number: true, width: 120, get: row => row.levels[k] ?? 0, text: row => (row.levels[k] === undefined ? "" : levelText(row.levels[k], line.unit, line.per_second)) })),
				...(hasMarks ? [{ key: "marks", title: "Marks", min: 200, get: row => row.marks.join("; ") }] : []),
			],
		};
	}

	function legendItem(line) {
		const item = {
			swatch: h("i", { class: line === data.overlay ? "swatch dashed" : "swatch", "aria-hidden": "true" }),
			number: h("span", { class: "num" }),
		};
		const name = line === data.overlay ? ctx.state.fn : line.name,
			parts = [item.swatch, h("span", { class: "name" }, cleanName(name, 80) || (byOf(ctx.state) ? NO_LABEL : "all")), item.number];

		if (line === data.overlay)
			item.element = h("li", { class: "legend-item" }, parts);
		else
			item.element = h("li", {}, (item.button = textButton(parts, () => ctx.set({ only: onlyOf(ctx.state) === lineName(line) ? null : lineName(line) }), "legend-item")));
		return item;
	}

	/** What each line has where the cursor is, else at last. What has the focus keeps it. */
	function showLegend() {
		const only = onlyOf(ctx.state),
			time = cursor >= 0 && chart ? chart.timeAt(cursor) : null,
			lines = [...data.lines, ...(data.overlay ? [data.overlay] : [])],
			next = JSON.stringify([lines.map(line => line.name), byOf(ctx.state), data.overlay && ctx.state.fn]);

		if (next !== legendKey) {
			legendKey = next;
			legendItems = lines.map(legendItem);
			refill(legend, at, ...legendItems.map(item => item.element));
		}
		at.textContent = time === null ? "Latest" : timeText(time);
		lines.forEach((line, i) => {
			const { swatch, number, button } = legendItems[i],
				points = time === null ? line.points.slice(-1) : line.points.filter(point => Math.abs(point[0] - time) < data.step / 2);

			number.textContent = points.length ? levelText(points[0][3], line.unit, line.per_second) : "–";
			if (!button)
				return;
			swatch.style.background = lineColor(ctx.theme, line.color);
			button.setAttribute("aria-pressed", String(only === lineName(line)));
			button.title = only === lineName(line) ? "Show all" : "Show only this";
		});
	}

	// ---- what can be done with the window

	function showActions(state) {
		const window = rangeOf(state.w),
			base = rangeOf(state.b),
			shown = shownRange(state);
		const link = (page, text, className = "btn") => h("a", { class: className, href: openUrl(page, seen(state, shown)) }, text);

		refill(
			actions,
			h("span", {}, h("strong", {}, window ? "Window " : "All "), spanText(shown)),
			link("flamegraph", "Flame graph", "btn primary"), link("top", "Top"), link("graph", "Graph"),
			base && h("a", { class: "btn", href: openUrl("compare", seen(state, base), seen(state, shown)) }, "Compare with the baseline"),
			textButton(["Compare…", icon("down")], openComparisons, "btn", { "aria-haspopup": "menu", "aria-expanded": "false" }),
			h("a", { class: "btn", href: ctx.url("live", { st: state.st }) }, "Live"),
			data?.annotations.may_add && textButton("Annotate…", annotate, "btn", { "aria-haspopup": "dialog" }),
			window && [textButton("Zoom in", zoomIn, "btn"), textButton("Make it the baseline", makeBase, "btn"), textButton("Clear", clearWindows, "btn quiet")],
			base && [h("span", { class: "base-text" }, h("strong", {}, "Baseline "), spanText(base)), window ? null : textButton("Clear", clearWindows, "btn quiet")],
			!base && !window && h("span", { class: "muted" }, "Drag over the chart to choose a window, with Shift a baseline.")
		);
	}

	/** Of the window, or of the cursor, or of now. */
	function annotate() {
		if (data?.annotations.may_add)
			openAnnotate(ctx, rangeOf(ctx.state.w) || [cursor >= 0 && chart ? chart.timeAt(cursor) : Date.now() / 1000], services, () => run(load));
	}

	function openComparisons(event) {
		const { state } = ctx,
			versions = data?.versions,
			// One line of them is one version only.
			all = versions?.label === byOf(state) ? selection : seen;

		ctx.menu(event, comparisons({
			range: shownRange(state), base: rangeOf(state.b), versions,
			params: range => seen(state, range), versionParams: range => all(state, range), url: (a, b) => openUrl("compare", a, b),
		}), "Compare");
	}

	function zoomIn() {
		const window = rangeOf(ctx.state.w);

		if (window)
			ctx.set({ from: window[0].toFixed(3), to: window[1].toFixed(3), w: null });
	}

	function zoomOut() {
		const { from, to } = windowOf(ctx.state, spanOf(ctx.state)),
			half = (to - from) / 2,
			end = Math.min(to + half, Date.now() / 1000);

		ctx.set({ from: (from - half).toFixed(3), to: end.toFixed(3) });
	}

	function makeBase() {
		if (ctx.state.w)
			ctx.set({ b: ctx.state.w, w: null });
	}

	function clearWindows() {
		ctx.set({ w: null, b: null });
		chart?.element.focus({ preventScroll: true });
	}

	const openPage = page => location.assign(openUrl(page, seen(ctx.state, shownRange(ctx.state))));

	function compare() {
		const base = rangeOf(ctx.state.b);

		if (base)
			location.assign(openUrl("compare", seen(ctx.state, base), seen(ctx.state, shownRange(ctx.state))));
		else
			ctx.toast("Choose a baseline first: drag with Shift, or press B");
	}

	// ---- single profiles

	async function loadList(signal) {
		const found = await ctx.api.get("profiles", { ...seen(ctx.state, rangeOf(ctx.state.w)), limit: MOST_PROFILES }, { signal });
		const labelText = row => row.labels.map(label => `${label.key}=${label.value}`).join(", ");
		const rows = found.profiles.reverse();
		const open = row => openUrl("flamegraph", { id: row.id });

		list?.destroy();
		clear(single).append(h("h2", {}, `${formatCount(rows.length)}${found.more ? " newest" : ""} profiles in the window`));
		list = new VirtualTable(single, ctx, {
			label: "Profiles in the window", file: "profiles", rowKey: row => row.id, sort: [{ key: "created", down: true }], empty: "None.",
			onOpen: row => location.assign(open(row)),
			columns: [
				{ key: "created", title: "Time", width: 180, get: row => Date.parse(row.created), render: (cell, row) => cell.append(h("a", { class: "row-link", href: open(row) }, timeText(Date.parse(row.created) / 1000))) },
				{ key: "service", title: "Service", width: 160, get: row => row.service, text: row => cleanName(row.service, 120) },
				{ key: "labels", title: "Labels", min: 160, get: labelText, text: row => cleanName(labelText(row), 400) },
				{ key: "samples", title: "Samples", width: 90, number: true, get: row => row.samples, text: row => formatCount(row.samples) },
				{ key: "bytes", title: "Stored", width: 90, number: true, get: row => row.bytes, text: row => formatValue(row.bytes, "bytes") },
			],
		});
		list.setRows(rows);
	}

	function closeList() {
		runList.stop();
		list?.destroy();
		list = null;
		clear(single);
	}

	// ---- state

	function updateFields(state) {
		for (const field of [fields.service, fields.span, fields.query])
			field.update(state);
		fields.type.update({ type: typeOf(state) });
		fields.by.update({ by: byOf(state) });
		fields.value.update({ type: typeOf(state), st: state.st });
		mode.set(state.mode || "area");
		if (document.activeElement !== fn)
			fn.value = state.fn || "";
	}

	function update(state) {
		const names = JSON.stringify([state.service, state.query]),
			next = JSON.stringify([state.service, typeOf(state), state.query, state.from || spanOf(state), state.to, byOf(state), state.st, state.fn]),
			nextList = state.w ? JSON.stringify([next, state.w, state.only]) : "";

		updateFields(state);
		if (names !== namesKey) {
			namesKey = names;
			runNames(loadNames);
			return;
		}
		// Since when there are profiles says what is shown.
		if (names !== knownKey && !state.from)
			return;
		if (!types.length && !state.type) {
			if (hasNames)
				showNothing();
			return;
		}
		showActions(state);
		if (next !== key) {
			key = next;
			run(load);
		} else if (data) {
			show();
		}
		if (theme !== ctx.theme) {
			theme = ctx.theme;
			chart?.draw();
		}
		if (nextList !== listKey) {
			listKey = nextList;
			nextList ? runList(loadList) : closeList();
		}
	}

	/** What now is has moved on; and as long as there is nothing, something may come. */
	function again() {
		if (!types.length)
			runNames(loadNames);
		else if (data && windowOf(ctx.state, spanOf(ctx.state)).isLive && !ctx.state.w)
			run(load);
		if (!fields.span.contains(document.activeElement))
			fields.span.update(ctx.state);
	}
	const stop = askAgain(plot, () => hasNames && !types.length, again);

	return {
		update,
		keys: {
			b: makeBase, c: compare, Enter: () => (document.activeElement === chart?.element ? openPage("flamegraph") : false),
			n: annotate, "+": zoomIn, "-": zoomOut, Escape: clearWindows,
		},
		keyHelp: [
			["ArrowLeft ArrowRight Home End", "Move along the chart"], ["Shift+ArrowLeft Shift+ArrowRight", "Choose a window"], ["b", "Make the window the baseline"],
			["c", "Compare the window with the baseline"], ["Enter", "Flame graph of the window"], ["+ -", "Zoom into the window, and out"], ["n", "Annotate the window, or the time of the cursor"], ["Escape", "Clear window and baseline"],
		],
		get stats() {
			return { marks: data?.marks.length, lines: data?.lines.length, points: data?.lines.reduce((sum, line) => sum + line.points.length, 0), queryMs: data?.queryMs, drawMs: chart?.drawMs, rect: chart?.element.getBoundingClientRect().toJSON() };
		},
		destroy() {
			stop();
			run.stop();
			runNames.stop();
			runSuggest.stop();
			closeList();
			clearPlot();
		},
	};
}

export const timelinePage = { id: "timeline", title: "Timeline", mount: mountTimeline };
