// The Services page: what pushes profiles, of which types, how much it uses and when it was last seen.
import { h, clear, svg, textButton } from "../dom.js";
import { cleanName, formatCount } from "../format.js";
import { VirtualTable } from "../table.js";
import { formatSort, isRoomy, latest, pageNote, parseSort } from "../pages.js";
import { REFRESH_MS, agoText, levelText, queryField, timeText } from "./selection.js";

const TREND_HOURS = 24,
	TREND_WIDTH = 96,
	TREND_HEIGHT = 18,
	STALE_SECONDS = 600,
	VERSIONS_AT_A_TIME = 4;

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
		// A point alone is seen, too.
		path += isDown || levels[i + 1] !== null ? "" : "h1";
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

function rowOf(type, service, active, line, now) {
	const trend = trendOf(line, now),
		level = trend.findLast(value => value !== null) ?? null;

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
	};
}

/** Newest versions, asked for when a row is first seen, a few at a time. */
function versionsOf(ctx, redraw) {
	const known = new Map(),
		waiting = [];
	let running = 0;

	async function work(service) {
		running++;
		try {
			const { values } = await ctx.api.get("labels/version", { service, limit: 1000 });
			const newest = values.filter(value => value.name).sort((a, b) => Date.parse(b.first) - Date.parse(a.first))[0];

			known.set(service, newest ? newest.name : "");
		} catch {
			known.delete(service); // it is asked for again when the row is seen again
		}
		running--;
		redraw();
		next();
	}
	function next() {
		while (running < VERSIONS_AT_A_TIME && waiting.length)
			work(waiting.shift());
	}
	return service => {
		if (!known.has(service)) {
			known.set(service, "…");
			waiting.push(service);
			next();
		}
		return known.get(service);
	};
}

function serviceColumns(ctx, versionOf) {
	const isStale = row => Date.now() / 1000 - row.last > STALE_SECONDS;

	return [
		{
			key: "service", title: "Service", min: 160, get: row => row.service,
			render: (cell, row) => cell.append(h("a", { class: "row-link", href: ctx.url("timeline", { service: row.service, type: row.type }), on: { click: event => follow(ctx, event, row) } }, cleanName(row.service, 120) || "(no name)")),
		},
		{ key: "type", title: "Type", width: isRoomy(700) ? 110 : 76, get: row => row.type, text: row => cleanName(row.type, 60) },
		{ key: "last", title: "Last seen", width: 100, number: true, get: row => row.last, text: row => agoText(row.last), mark: row => isStale(row) ? "stale-text" : "" },
		{ key: "instances", title: "Instances", hint: "Sets of labels with profiles in the last hour", width: 92, number: true, get: row => row.instances, hide: !isRoomy(800) },
		{ key: "level", title: "Uses", hint: "In the last hour: cores of CPU, bytes per second, or what it has in use", width: 120, number: true, get: row => row.level ?? -1, text: row => row.text },
		{
			key: "trend", title: "24 hours", width: TREND_WIDTH + 24, hide: !isRoomy(900), get: row => (row.trend.findLast(v => v !== null) ?? 0) - (row.trend.find(v => v !== null) ?? 0),
			render: (cell, row) => cell.append(sparkline(row.trend, `Trend of 24 hours, now ${row.text || "nothing"}`)),
		},
		{ key: "version", title: "Newest version", width: 130, hide: !isRoomy(1000), get: row => versionOf(row.service), text: row => cleanName(versionOf(row.service), 60) },
		{ key: "profiles", title: "Profiles", width: 96, number: true, get: row => row.profiles, text: row => formatCount(row.profiles), hide: !isRoomy(1150) },
		{ key: "first", title: "First seen", width: 160, number: true, get: row => row.first, text: row => row.first ? timeText(row.first) : "", hide: true },
	];
}

function follow(ctx, event, row) {
	if (event.ctrlKey || event.metaKey || event.shiftKey || event.button)
		return;
	event.preventDefault();
	ctx.go("timeline", { service: row.service, type: row.type });
}

/** What has been pushed and never came in. */
function refusalNote(ctx, totals) {
	const count = totals.reduce((sum, row) => sum + row.count, 0);

	return count
		? h("a", { class: "badge warn", href: ctx.url("storage"), title: totals.map(row => `${row.limit}: ${row.count}`).join(", ") }, `${formatCount(count)} refused`)
		: null;
}

async function loadServices(ctx, state, signal) {
	const now = Date.now() / 1000,
		query = state.query;
	const [{ types }, refusals] = await Promise.all([
		ctx.api.get("types", { query }, { signal }),
		ctx.api.get("refusals", {}, { signal }).catch(() => ({ totals: [] })),
	]);
	const parts = await Promise.all(
		types.map(async ({ name: type }) => {
			const [all, active, series] = await Promise.all([
				ctx.api.get("services", { query, type, limit: 10000 }, { signal }),
				ctx.api.get("services", { query, type, from: "now-1h", limit: 10000 }, { signal }),
				// Some types have values that do not add up, or none at all.
				ctx.api.get("series", { query, type, by: "service", from: `now-${TREND_HOURS}h`, step: "1h", levels: true, limit: 1000 }, { signal }).catch(error => {
					if (error.name === "AbortError" || error.gone)
						throw error;
					return { lines: [] };
				}),
			]);
			const find = (list, name) => list.find(item => item.name === name);

			return all.services.map(service => rowOf(type, service, find(active.services, service.name), find(series.lines, service.name), now));
		})
	);

	return { rows: parts.flat(), refusals };
}

function mountServices(element, ctx) {
	const query = queryField(ctx),
		filter = h("input", { type: "search", class: "query", placeholder: "Search services", "aria-label": "Search services" }),
		count = h("span", { class: "muted count", role: "status" }),
		bar = h("div", { class: "toolbar wrap" }, filter, query, count, h("span", { class: "spacer" })),
		body = h("div", { class: "fill-body" }),
		run = latest(ctx, body);
	const versionOf = versionsOf(ctx, () => table?.later());
	let table = null,
		rows = null,
		key = null,
		notes = [],
		timer = 0;

	element.classList.add("fill");
	element.append(bar, body);
	filter.addEventListener("input", () => ctx.set({ q: filter.value || null }, { push: false }));

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
				label: "Services", file: "services", columns: serviceColumns(ctx, versionOf), rowKey: row => `${row.service}\0${row.type}`,
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
		notes = [refusalNote(ctx, found.refusals.totals)].filter(Boolean);
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

	timer = setInterval(() => !document.hidden && rows && run(load), REFRESH_MS);
	return {
		update,
		get stats() {
			return { rows: rows?.length };
		},
		destroy() {
			clearInterval(timer);
			run.stop();
			table?.destroy();
		},
	};
}

export const servicesPage = { id: "services", title: "Services", mount: mountServices };
