// The Services page: what pushes profiles, of which types, how much it uses and when it was last seen.
import { h, clear, svg, textButton } from "../dom.js";
import { openDialog } from "../dialog.js";
import { cleanName, formatCount, shortName, unitSeconds } from "../format.js";
import { VirtualTable } from "../table.js";
import { formatSort, isRoomy, latest, pageNote, parseSort } from "../pages.js";
import { REFRESH_MS, agoText, askAgain, levelText, queryField, timeText } from "./selection.js";
import { plainTable } from "./storage.js";
import { loadVersions } from "./versions.js";

const TREND_HOURS = 24,
	TREND_WIDTH = 96,
	TREND_HEIGHT = 18,
	STALE_SECONDS = 600,
	ASKED_AT_A_TIME = 4,
	KEPT_MS = 300000,
	RESORT_MS = 300,
	MOST_SERIES = 1000,
	MOST_SERVICES = 10000;

/** A small picture of levels, with the same in words. */
function sparkline(levels, text) {
	const most = Math.max(...levels.filter(level => level !== null), 0) || 1,
		step = TREND_WIDTH / Math.max(1, levels.length - 1);
	let path = "",
		isDown = false;

	levels.forEach((level, i) => {
		if (level === null) {
			isDown = false;
			return;
		}
		path += `${isDown ? "L" : "M"}${(i * step).toFixed(1)} ${(TREND_HEIGHT - 2 - (level / most) * (TREND_HEIGHT - 4)).toFixed(1)}`;
		// A point alone is seen, too, and within the picture.
		path += isDown || (levels[i + 1] ?? null) !== null ? "" : i + 1 < levels.length ? "h1" : "h-2";
		isDown = true;
	});
	return svg(
		"svg",
		{ class: "spark", viewBox: `0 0 ${TREND_WIDTH} ${TREND_HEIGHT}`, width: TREND_WIDTH, height: TREND_HEIGHT, role: "img", "aria-label": text },
		svg("path", { d: path })
	);
}

/** Levels of each hour of the last day; null where nothing is known. */
function trendOf(line, now) {
	const levels = new Array(TREND_HOURS + 1).fill(null),
		first = Math.floor(now / 3600) - TREND_HOURS;

	for (const [time, , , level] of line?.points || []) {
		const i = Math.round(time / 3600) - first;

		if (i >= 0 && i <= TREND_HOURS)
			levels[i] = level;
	}
	return levels;
}

/** What it uses, of the last hour that is known. The level of an hour is of all of it: who began within it has used it in less. */
function levelOf(trend, service, line, now) {
	const i = trend.findLastIndex(value => value !== null),
		hour = (Math.floor(now / 3600) - TREND_HOURS + i) * 3600,
		end = Math.min(now, hour + 3600),
		first = service.first ? Date.parse(service.first) / 1000 : 0;

	if (i < 0)
		return null;
	return line.per_second && first > hour && first < end ? (trend[i] * (end - hour)) / (end - first) : trend[i];
}

function rowOf(type, service, active, line, now, refused) {
	const trend = trendOf(line, now),
		level = levelOf(trend, service, line, now);

	return {
		service: service.name,
		type,
		last: service.last ? Date.parse(service.last) / 1000 : 0,
		first: service.first ? Date.parse(service.first) / 1000 : 0,
		instances: active?.series || 0,
		profiles: service.profiles,
		level,
		text: level === null ? "" : levelText(level, line.unit, line.per_second),
		trend,
		unit: line?.unit || "",
		refused: refused || null,
	};
}

// ---- what was refused

/** "3 format, 1 max-body" */
const reasonsText = refused => refused.reasons.map(({ reason, count }) => `${formatCount(count)} ${cleanName(reason, 60)}`).join(", ");

const REASON_HINTS = { format: "it is no profile that can be read", error: "it could not be stored" };

function openRefused(service, refused) {
	openDialog({
		title: `Refused of ${cleanName(service, 80)}`,
		body: [
			plainTable("Reasons", ["Reason", "Count#"], refused.reasons.map(({ reason, count }) => [h("span", {}, cleanName(reason, 60), REASON_HINTS[reason] ? h("span", { class: "muted" }, ` (${REASON_HINTS[reason]})`) : ""), formatCount(count)])),
			h("dl", { class: "facts" }, [["Last", `${timeText(Date.parse(refused.last) / 1000)} (${agoText(refused.last)})`], ["Why", cleanName(refused.why, 500)], ["First", timeText(Date.parse(refused.first) / 1000)]].map(([name, text]) => [h("dt", {}, name), h("dd", {}, text)])),
			h("p", { class: "muted" }, "Since the server started, of all types. A reason is a limit, by the name of its option (kiln-serve(5)), or format, or error."),
		],
	});
}

/** How often, with the reasons below the mouse and, for all, behind it. */
function refusedCell(cell, { service, refused }) {
	if (!refused)
		cell.append("0");
	else
		cell.append(textButton(formatCount(refused.count), event => { const { row } = event.target.closest("tr"); openRefused(row.service, row.refused); }, "link refused",
			{ title: reasonsText(refused), "aria-label": `${formatCount(refused.count)} refused of ${cleanName(service, 80)}: ${reasonsText(refused)}`, "aria-haspopup": "dialog" }));
}

/**
 * What takes a request for each row: asked for when a row is first seen, a few at a time, and again after a while.
 * ask(row) is a promise of a text, keyOf(row) what it depends on. The returned function has it, or undefined.
 */
function askedFor(keyOf, ask, redraw) {
	const known = new Map(),
		waiting = [];
	let running = 0;

	async function work(row) {
		const entry = known.get(keyOf(row));

		running++;
		try {
			entry.text = await ask(row);
		} catch {
			entry.text ??= "";
			entry.asked -= KEPT_MS - REFRESH_MS; // it is asked for again, but not at once
		}
		running--;
		redraw();
		next();
	}
	function next() {
		while (running < ASKED_AT_A_TIME && waiting.length)
			work(waiting.shift());
	}
	return row => {
		const key = keyOf(row),
			entry = known.get(key);

		if (!entry || Date.now() - entry.asked > KEPT_MS) {
			known.set(key, { text: entry?.text, asked: Date.now() });
			waiting.push(row);
			next();
		}
		return entry?.text;
	};
}

const newestVersion = ctx => async ({ service, type }) => (type ? ((await loadVersions(ctx, service))?.list.at(-1)?.name ?? "") : "");

const heaviest = ctx => async ({ service, type }) =>
	(type ? ((await ctx.api.get("top", { service, type, from: "now-6h", limit: 1, fresh: false })).rows[0]?.function ?? "") : "");

/** 1.10 comes after 1.9. */
const versionOrder = text => (text || "").replace(/\d+/g, digits => digits.padStart(12, "0"));

function serviceColumns(ctx, versionOf, functionOf) {
	const isStale = row => Date.now() / 1000 - row.last > STALE_SECONDS;

	return [
		{
			key: "service", title: "Service", min: 160, get: row => row.service,
			render: (cell, row) => cell.append(h("a", { class: "row-link", href: ctx.url("timeline", { service: row.service, type: row.type }), on: { click: event => follow(ctx, event) } }, cleanName(row.service, 120) || "(no name)")),
		},
		{ key: "type", title: "Type", width: isRoomy(700) ? 110 : 76, get: row => row.type, text: row => cleanName(row.type, 60) },
		{ key: "last", title: "Last seen", width: 100, number: true, get: row => row.last, text: row => agoText(row.last), mark: row => isStale(row) ? "stale-text" : "" },
		{ key: "instances", title: "Instances", hint: "Sets of labels with profiles in the last hour", width: 92, number: true, get: row => row.instances, hide: !isRoomy(800) },
		{ key: "level", title: "Uses", hint: "In the last hour: cores of CPU, bytes per second, or what it has in use", width: 120, number: true, get: row => (row.level === null ? -1 : row.level * (unitSeconds(row.unit) * 1e9 || 1)), text: row => row.text },
		{
			key: "trend", title: "24 hours", width: TREND_WIDTH + 24, hide: !isRoomy(900), get: row => (row.trend.findLast(v => v !== null) ?? 0) - (row.trend.find(v => v !== null) ?? 0),
			render: (cell, row) => cell.append(sparkline(row.trend, `Trend of 24 hours, now ${row.text || "nothing"}`)),
		},
		{ key: "version", title: "Newest version", width: 130, hide: !isRoomy(1000), get: row => versionOrder(versionOf(row)), text: row => cleanName(versionOf(row) ?? "…", 60) },
		{ key: "function", title: "Top function", hint: "What takes most by itself, in the last six hours", width: 180, hide: !isRoomy(1250), get: row => functionOf(row) || "", text: row => shortName(functionOf(row) ?? "…") },
		{ key: "profiles", title: "Profiles", width: 96, number: true, get: row => row.profiles, text: row => formatCount(row.profiles), hide: !isRoomy(1150) },
		{ key: "refused", title: "Refused", hint: "Profiles of the service that were not stored, since the server started", width: 84, number: true, hide: !isRoomy(760), get: row => row.refused?.count || 0, render: refusedCell },
		{ key: "first", title: "First seen", width: 160, number: true, get: row => row.first, text: row => row.first ? timeText(row.first) : "", hide: true },
	];
}

function follow(ctx, event) {
	const { row } = event.target.closest("tr");

	if (event.ctrlKey || event.metaKey || event.shiftKey || event.button)
		return;
	event.preventDefault();
	ctx.go("timeline", { service: row.service, type: row.type || null });
}

/** What has been pushed and never came in. */
function refusalNote(ctx, totals) {
	const count = totals.reduce((sum, row) => sum + row.count, 0);

	return count
		? h("a", { class: "badge warn", href: ctx.url("storage"), title: totals.map(row => `${row.limit}: ${row.count}`).join(", ") }, `${formatCount(count)} refused by limits`)
		: null;
}

async function loadServices(ctx, state, signal) {
	const now = Date.now() / 1000,
		query = state.query;
	const [{ types }, refusals] = await Promise.all([
		ctx.api.get("types", { query }, { signal }),
		ctx.api.get("refusals", {}, { signal }).catch(() => ({ totals: [], services: [] })),
	]);
	const refused = new Map(refusals.services.map(item => [item.service, item]));
	const parts = await Promise.all(
		types.map(async ({ name: type }) => {
			const [all, active, series] = await Promise.all([
				ctx.api.get("services", { query, type, limit: MOST_SERVICES }, { signal }),
				ctx.api.get("services", { query, type, from: "now-1h", limit: MOST_SERVICES }, { signal }),
				// Some types have values that do not add up, or none at all.
				ctx.api.get("series", { query, type, by: "service", from: `now-${TREND_HOURS}h`, step: "1h", levels: true, limit: MOST_SERIES }, { signal }).catch(error => {
					if (error.name === "AbortError" || error.gone)
						throw error;
					return { lines: [] };
				}),
			]);
			const byName = list => new Map(list.map(item => [item.name, item])),
				recent = byName(active.services),
				lines = byName(series.lines);

			return {
				rows: all.services.map(service => rowOf(type, service, recent.get(service.name), lines.get(service.name), now, refused.get(service.name))),
				cut: [all.total > all.services.length && `${formatCount(all.services.length)} of ${formatCount(all.total)} services with ${type}`, series.total > series.lines.length && `the ${formatCount(series.lines.length)} with most ${type} have figures`],
			};
		})
	);

	const rows = parts.flatMap(part => part.rows),
		stored = new Set(rows.map(row => row.service));
	// Of these nothing was ever stored.
	const lost = query ? [] : refusals.services.filter(item => item.service !== null && !stored.has(item.service)).map(item => rowOf("", { name: item.service, profiles: 0 }, null, null, now, item));

	return { rows: [...rows, ...lost], cut: parts.flatMap(part => part.cut).filter(Boolean), refusals };
}

function mountServices(element, ctx) {
	const query = queryField(ctx),
		filter = h("input", { type: "search", class: "query", placeholder: "Search services", "aria-label": "Search services" }),
		count = h("span", { class: "muted count", role: "status" }),
		bar = h("div", { class: "toolbar wrap" }, filter, query, count, h("span", { class: "spacer" })),
		body = h("div", { class: "fill-body" }),
		run = latest(ctx, body);
	const versionOf = askedFor(row => row.service, newestVersion(ctx), () => redraw()),
		functionOf = askedFor(row => `${row.service}\0${row.type}`, heaviest(ctx), () => redraw());
	let table = null,
		sorting = 0,
		rows = null,
		key = null,
		notes = [];

	element.classList.add("fill");
	element.append(bar, body);
	filter.addEventListener("input", () => ctx.set({ q: filter.value || null }, { push: false }));

	/** More is known: that may be what the rows are sorted by. */
	function redraw() {
		if (!table?.sort.some(({ key: column }) => column === "version" || column === "function"))
			table?.later();
		else if (!sorting)
			sorting = setTimeout(() => {
				sorting = 0;
				table?.order();
			}, RESORT_MS);
	}

	function showNothing(state) {
		clear(body).append(
			state.query || state.q
				? pageNote("No such service", h("p", {}, "Nothing has been pushed with these names and labels."), textButton("Show all", () => ctx.set({ query: null, q: null }), "btn"))
				: pageNote(
						"No profiles yet",
						h("p", {}, "Push one, or have the server scrape your programs:"),
						h("pre", { tabindex: 0 }, `curl --data-binary @cpu.pb.gz '${location.origin}/api/0/profiles?service=web&type=cpu'\nLD_PRELOAD=libkiln.so KILN_PUSH_URL=${location.origin} ./program`),
						h("p", {}, "See kiln-serve(1) and kiln-agent(7).")
					)
		);
	}

	function show(state) {
		const wanted = (state.q || "").toLowerCase(),
			shown = rows.filter(row => !wanted || row.service.toLowerCase().includes(wanted) || row.type.toLowerCase().includes(wanted));

		const services = new Set(shown.map(row => row.service)).size;

		count.textContent = `${formatCount(services)} ${services === 1 ? "service" : "services"}, ${formatCount(shown.length)} rows`;
		if (!shown.length) {
			table?.tools.remove();
			table?.destroy();
			table = null;
			showNothing(state);
			return;
		}
		if (!table) {
			clear(body);
			table = new VirtualTable(body, ctx, {
				label: "Services", file: "services", columns: serviceColumns(ctx, versionOf, functionOf), rowKey: row => `${row.service}\0${row.type}`,
				sort: parseSort(state.srt, [{ key: "service", down: false }]),
				onSort: sort => ctx.set({ srt: formatSort(sort) }, { push: false }),
				onOpen: row => ctx.go("timeline", { service: row.service, type: row.type }),
			});
			bar.append(table.tools);
		}
		table.setRows(shown);
	}

	const load = async signal => {
		const found = await loadServices(ctx, ctx.state, signal);

		rows = found.rows;
		notes.forEach(note => note.remove());
		notes = [refusalNote(ctx, found.refusals.totals), found.cut.length && h("span", { class: "badge warn" }, cleanName(`Only ${found.cut.join("; ")}`, 200))].filter(Boolean);
		count.after(...notes);
		show(ctx.state);
	};

	function update(state) {
		query.update(state);
		if (document.activeElement !== filter)
			filter.value = state.q || "";
		if (key !== (state.query || "")) {
			key = state.query || "";
			run(load);
		} else if (rows) {
			show(state);
		}
	}

	const stop = askAgain(body, () => rows?.length === 0, () => rows && run(load));

	return {
		update,
		get stats() {
			return { rows: rows?.length };
		},
		destroy() {
			stop();
			clearTimeout(sorting);
			run.stop();
			table?.destroy();
		},
	};
}

export const servicesPage = { id: "services", title: "Services", mount: mountServices };
