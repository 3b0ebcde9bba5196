// The Live page: what a selection does now, as a flame graph or a table. The server sends what changes of it, by a stream
// of events; where that does not get through, it is asked again and again.
import { h, clear, copyText, segmented, textButton } from "../dom.js";
import { queryText, send } from "../request.js";
import { cleanName, exactPattern, formatPercent, formatValue } from "../format.js";
import { VirtualTable } from "../table.js";
import { decodeFlame, findPath, pathOf } from "../flame_tree.js";
import { makeFlame } from "../flame_draw.js";
import { LEAST_SENT, flameKeys, functionMap, isRoomy, latest, openFunctionMenu, pageNote, valueColumns } from "../pages.js";
import { apiUrl } from "./fleet_api.js";
import { LiveBoxes } from "./live_tree.js";
import { nameField, queryField, timeText, usualType, valueField, viewerUrl } from "./selection.js";

const LIVE_MS = 2000,
	FIRST_MS = 1000, // that the first picture may take to come by itself
	SILENT_MS = 4000, // a stream says something at once: if not, a proxy keeps it back
	AGAIN_MS = 30000,
	LIVE_WINDOWS = [["10s", 10, "10 s"], ["1m", 60, "1 min"], ["5m", 300, "5 min"], ["start", 0, "Since start"]],
	USUAL_WINDOW = LIVE_WINDOWS[1];

const windowFor = state => LIVE_WINDOWS.find(([name]) => name === state.win) || USUAL_WINDOW;

/**
 * Hears of news by a stream of events. `onNews` gets them; `onSilence` is called when they do not come, and it is time to
 * ask instead: until the next `onNews`. `first` is a promise: has something come soon?
 */
function openStream(url, onNews, onSilence) {
	let source = null,
		timer = 0,
		again = 0,
		settle;
	const first = new Promise(resolve => (settle = resolve));

	const isSilent = () => {
		clearTimeout(timer);
		settle(false);
		onSilence();
	};

	function connect() {
		source = new EventSource(url);
		timer = setTimeout(isSilent, SILENT_MS);
		source.addEventListener("update", event => {
			clearTimeout(timer);
			onNews(JSON.parse(event.data));
			settle(true);
		});
		// Who asks is told the same, and the page shows it.
		source.addEventListener("problem", isSilent);
		source.addEventListener("error", () => {
			isSilent();
			// Refused: a browser does not come again by itself.
			if (source.readyState === EventSource.CLOSED) {
				clearTimeout(again);
				again = setTimeout(connect, AGAIN_MS);
			}
		});
	}

	setTimeout(() => settle(false), FIRST_MS);
	connect();
	return {
		first,
		close() {
			clearTimeout(timer);
			clearTimeout(again);
			settle(false);
			source.close();
		},
	};
}

/** What a function's menu has: the viewer, on what is shown. */
function liveActions(ctx, fn, params) {
	const open = (page, more) => location.assign(viewerUrl(page, params, null, { si: ctx.state.st, ...more }));

	return [
		{ label: "Sandwich: callers and callees", run: () => open("sandwich", { fn: fn[1] }) },
		{ label: "Flame graph of its stacks", run: () => open("flamegraph", { f: exactPattern(fn) }) },
		{ label: "Copy name", run: () => copyText(fn[1]).then(() => ctx.toast("Name copied")) },
	];
}

function liveColumns(view, { unit, total }) {
	return [
		{ key: "name", title: "Function", min: 200, get: row => row.f[1], text: row => cleanName(row.f[1], 300) },
		...valueColumns(view, "self", "Self", "Spent in the function itself", unit, total, row => row.self, !isRoomy(600)),
		...valueColumns(view, "total", "Total", "Spent in it and all that it calls", unit, total, row => row.total, !isRoomy(800)),
	];
}

function mountLive(element, ctx) {
	const fields = {
		service: nameField(ctx, "Service", "service", "all services", value => ({ service: value || null, z: null })),
		type: nameField(ctx, "Type", "type", "", value => ({ type: value || null, st: null, z: null })),
		value: valueField(ctx),
		query: queryField(ctx),
	};
	const opened = (Date.now() / 1000).toFixed(3);
	const windows = segmented("Window", LIVE_WINDOWS.map(([value, seconds, text]) => ({ value, text, title: seconds ? `What came in the last ${text}` : "All that has come since the page was opened" })), USUAL_WINDOW[0], setWindow),
		mode = segmented("View", [{ value: "flame", text: "Flame" }, { value: "top", text: "Top" }], "flame", value => ctx.set({ mode: value === "flame" ? null : value })),
		pause = textButton("Pause", togglePause, "btn", { title: "Pause or go on (p)" }),
		open = h("a", { class: "btn" }, "Open in the viewer"),
		note = h("span", { class: "muted count" }),
		body = h("div", { class: "live-body" }),
		what = h("span", { class: "what" }, ""),
		amount = h("span", { class: "amount" }, "");
	const run = latest(ctx, element),
		runNames = latest(ctx, body);
	// As ctx, for what is shared with the viewer.
	const view = Object.create(ctx, {
		format: { value: formatValue },
		percent: { value: formatPercent },
		actions: { value: fn => liveActions(ctx, fn, shown) },
		// Where the keys have gone to.
		announce: { value: text => {
			ctx.announce(text);
			tell(Math.max(0, flame.selected));
		} },
	});
	let types = null,
		namesKey = null,
		key = null,
		flame = null,
		table = null,
		tableUnit = "",
		shown = {},
		hovered = "",
		zoom = null,
		hasFailed = false,
		isGone = false,
		theme = ctx.theme,
		timer = 0,
		stream = null,
		first = null,
		streamKey = "",
		isAsking = true,
		isLoading = false,
		turn = 0,
		nevents = 0,
		news = null,
		stats = {};

	element.classList.add("fill");
	element.append(
		h("div", { class: "toolbar wrap" }, fields.service, fields.type, fields.value, fields.query),
		h("div", { class: "toolbar wrap" }, windows, mode, pause, open, note),
		body,
		h("div", { class: "details" }, what, amount)
	);

	/** That of "since start" is in the URL, so that it shows the same to who opens it. */
	function setWindow(value) {
		ctx.set({ win: value === USUAL_WINDOW[0] ? null : value, since: value === "start" ? opened : null });
	}

	const typeOf = state => state.type || usualType(types || []) || "";

	/** Paused is a time in the URL: it shows the same to who opens it. */
	function togglePause() {
		ctx.set({ at: ctx.state.at ? null : Number(shown.to || Date.now() / 1000).toFixed(3) });
		ctx.announce(ctx.state.at ? "Paused" : "Live");
	}

	// ---- what is drawn

	function clearBody() {
		flame?.destroy();
		table?.destroy();
		flame = table = null;
		clear(body);
		what.textContent = amount.textContent = "";
	}

	const functionOf = node => flame.tree.functions[flame.tree.fn[node]];

	function tell(node) {
		const { tree } = flame;

		what.textContent = node ? cleanName(functionOf(node)[1], 300) : "all";
		amount.textContent = `${formatValue(tree.total[node], tree.header.unit)}, ${formatPercent(tree.total[node], tree.total[0])}; self ${formatValue(tree.self[node], tree.header.unit)}`;
	}

	function makeChart() {
		const zoomTo = node => ctx.set({ z: node > 0 ? pathOf(flame.tree, node) : null });

		clearBody();
		flame = makeFlame(body.appendChild(h("div", { class: "live-flame" })), view, {
			label: "Live flame graph",
			onClick: node => node >= 0 && zoomTo(node),
			onHover: node => {
				hovered = node > 0 ? pathOf(flame.tree, node) : "";
				tell(Math.max(0, node));
			},
			onMenu: (node, event) => openFunctionMenu(view, functionOf(node), event),
		});
		flameKeys(flame, view, zoomTo);
	}

	/** A new tree in the place of the old: zoom, selection and pointer stay on the same path of functions. */
	function showFlame(tree) {
		if (!flame)
			makeChart();
		const selected = flame.tree && flame.selected > 0 ? pathOf(flame.tree, flame.selected) : "",
			found = findPath(tree, selected);

		flame.setTree(tree);
		flame.select(selected && found.complete ? found.node : -1);
		showZoom();
		tell(findPath(tree, hovered || selected).node);
		stats = { total: tree.total[0], nodes: tree.n };
	}

	/** A path that is not there for now is kept, and as much of it shown as there is. */
	function showZoom() {
		zoom = ctx.state.z;
		if (flame?.tree)
			flame.zoomTo(findPath(flame.tree, zoom || "").node, false);
	}

	function showTop(answer) {
		const functions = functionMap(answer.functions);

		if (!table || tableUnit !== answer.unit) {
			clearBody();
			tableUnit = answer.unit;
			table = new VirtualTable(body, ctx, {
				label: "Functions", file: "live", rowKey: row => row.f[0], sort: [{ key: "self", down: true }], columns: liveColumns(view, answer),
				onOpen: row => liveActions(ctx, row.f, shown)[0].run(), onMenu: (row, event) => openFunctionMenu(view, row.f, event),
			});
		}
		// Shares are of the total of now.
		table.o.columns = liveColumns(view, answer);
		table.setRows(answer.rows.map(([id, self, total]) => ({ f: functions.get(id), self, total })));
		stats = { total: answer.total, rows: answer.rows.length };
	}

	// ---- what is asked for

	/** As the viewer has it; null if nothing has come in. */
	async function ask(params, signal) {
		const isTop = ctx.state.mode === "top",
			query = queryText({ a: queryText(params), si: ctx.state.st, min: isTop ? undefined : LEAST_SENT });

		if (!(await ctx.api.get("profiles", { ...params, limit: 1 }, { signal })).profiles.length)
			return null;
		const response = await send(`ui/api/v1/${isTop ? "top" : "flame"}?${query}`, { signal, credentials: "same-origin" });

		return isTop ? response.json() : decodeFlame(await response.arrayBuffer());
	}

	const windowText = ([, seconds, text]) => seconds ? text : `time since ${timeText(Number(ctx.state.since || opened))}`;

	/** From when to when, in seconds. */
	function windowOf(state) {
		const [, seconds] = windowFor(state),
			to = Number(state.at) || news?.to || Date.now() / 1000;

		return [seconds ? to - seconds : Math.min(to, Number(state.since || opened)), to];
	}

	const paramsOf = (state, from, to) => ({ service: state.service, type: typeOf(state), query: state.query, from: from.toFixed(3), to: to.toFixed(3) });

	/** What is there of a window; null: nothing. */
	function show(params, answer) {
		const { state } = ctx,
			text = windowText(windowFor(state)),
			time = timeText(Number(params.to)),
			start = performance.now();

		if (answer) {
			shown = params;
			state.mode === "top" ? showTop(answer) : showFlame(answer);
			open.href = viewerUrl("flamegraph", params, null, { si: state.st });
			open.removeAttribute("aria-disabled");
		} else if (!flame && !table) {
			clear(body).append(pageNote("Nothing came in", h("p", {}, `No profiles of the ${windowFor(state)[1] ? "last " : ""}${text} have come in. Programs that push once a minute need a longer window.`)));
		}
		note.textContent = answer ? `${formatValue(stats.total, answer.unit ?? answer.header?.unit)} in the ${text} to ${time}` : shown.to ? `Nothing in the ${text} to ${time}; this is of ${timeText(Number(shown.to))}` : "";
		stats.ticks = (stats.ticks || 0) + 1;
		stats.tickMs = performance.now() - start;
	}

	async function load(signal) {
		// What comes by itself need not be asked for.
		if (await first)
			return;
		signal.throwIfAborted();
		const { state } = ctx,
			params = paramsOf(state, ...windowOf(state));

		hasFailed = true;
		const answer = await ask(params, signal);

		hasFailed = false;
		show(params, answer);
	}

	// ---- when it is asked for

	const isLive = () => Boolean(!document.hidden && key && !ctx.state.at && typeOf(ctx.state));

	async function reload() {
		const mine = ++turn;

		isLoading = true;
		await run(load);
		if (mine === turn)
			isLoading = false;
	}

	/** Draws what an event has changed. */
	function hear(boxes, event) {
		const seconds = text => Date.parse(text) / 1000;

		isAsking = false;
		hasFailed = false;
		first = null;
		nevents++;
		news = { to: seconds(event.to) };
		if (event.newest)
			boxes.apply(event);
		if (!isLive())
			return;
		// Whatever was asked for is older.
		run(async () => show(paramsOf(ctx.state, seconds(event.from), news.to), event.newest ? (ctx.state.mode === "top" ? boxes.top() : boxes.tree()) : null));
	}

	function streamUrl(state) {
		const [, seconds] = windowFor(state);

		return apiUrl("live", {
			service: state.service, type: typeOf(state), query: state.query, window: seconds ? `${seconds}s` : null, since: seconds ? null : state.since || opened,
			view: state.mode === "top" ? "top" : null, sample_type: state.st,
		});
	}

	/** A stream of what is chosen, as long as somebody looks. */
	function listen() {
		const url = isLive() && !isGone ? streamUrl(ctx.state) : "",
			boxes = new LiveBoxes();

		if (url === streamKey)
			return;
		streamKey = url;
		stream?.close();
		stream = first = null;
		news = null;
		isAsking = true;
		if (url) {
			stream = openStream(url, event => hear(boxes, event), () => {
				isAsking = true;
				first = null;
				news = null;
			});
			first = stream.first;
		}
	}

	async function loadNames(signal) {
		const { service, query } = ctx.state;
		const [services, found] = await Promise.all([ctx.api.get("services", { limit: 10000 }, { signal }), ctx.api.get("types", { service, query }, { signal })]);

		types = found.types.map(type => type.name);
		fields.service.setNames(services.services.map(item => item.name));
		fields.type.setNames(types);
		update(ctx.state);
	}

	function update(state) {
		const names = JSON.stringify([state.service, state.query]),
			isTop = state.mode === "top",
			next = JSON.stringify([names, typeOf(state), state.st, state.win, state.since, state.mode, state.at]);

		fields.service.update(state);
		fields.query.update(state);
		fields.type.update({ type: typeOf(state) });
		fields.value.update({ type: typeOf(state), st: state.st });
		windows.set(windowFor(state)[0]);
		mode.set(isTop ? "top" : "flame");
		pause.textContent = state.at ? "Go on" : "Pause";
		pause.setAttribute("aria-pressed", String(Boolean(state.at)));
		if (names !== namesKey) {
			namesKey = names;
			runNames(loadNames);
			return;
		}
		if (!types)
			return;
		if (!typeOf(state)) {
			clearBody();
			body.append(pageNote("No profiles yet", h("p", {}, "There are none of this selection. See kiln-serve(1) for how to push or scrape them.")));
		} else if (next !== key) {
			// What is there is of something else.
			if (isTop ? flame : table)
				clearBody();
			key = next;
			news = null;
			listen();
			reload();
		} else if (zoom !== state.z) {
			showZoom();
		}
		if (theme !== ctx.theme) {
			theme = ctx.theme;
			flame?.restyle();
		}
		listen();
	}

	async function tick() {
		listen();
		if (isAsking && isLive() && !hasFailed && !isLoading)
			await reload();
		if (!isGone)
			timer = setTimeout(tick, LIVE_MS);
	}

	open.setAttribute("aria-disabled", "true");
	document.addEventListener("visibilitychange", listen);
	timer = setTimeout(tick, LIVE_MS);
	return {
		update,
		keys: { p: togglePause, 0: () => ctx.set({ z: null }), Escape: () => ctx.set({ z: null }) },
		keyHelp: [["p", "Pause, or go on"], ["ArrowUp ArrowDown ArrowLeft ArrowRight", "Move in the flame graph"], ["Enter", "Zoom into the frame"], ["0 Escape", "Show all again"]],
		get stats() {
			return { ...stats, nevents, isAsking, zoom: flame?.tree && flame.zoomNode > 0 ? functionOf(flame.zoomNode)[1] : null };
		},
		destroy() {
			isGone = true;
			clearTimeout(timer);
			document.removeEventListener("visibilitychange", listen);
			listen();
			run.stop();
			runNames.stop();
			clearBody();
		},
	};
}

export const livePage = { id: "live", title: "Live", mount: mountLive };
