// The Storage page: how much there is and how long it is kept, what was refused and why, and which frames have no names.
import { h, clear } from "../dom.js";
import { cleanName, formatCount, formatPercent, formatValue } from "../format.js";
import { latest } from "../pages.js";
import { agoText, nameField, queryField, selectionParams, spanField, timeText, usualType } from "./selection.js";

const MOST_REFUSALS = 100,
	COLUMN_WIDTH = 96,
	NAMES_SPAN = "1d";

const seconds = text => (text ? Date.parse(text) / 1000 : 0);
const bytes = n => formatValue(n, "bytes");

/** A table of a few rows: heads, [[cell…]…]; numbers are told by their head's sign, "#". */
export function plainTable(label, heads, rows) {
	const isNumber = heads.map(head => head.endsWith("#")),
		cell = (content, i) => h(i ? "td" : "th", { class: isNumber[i] ? "num" : null, scope: i ? null : "row" }, content);

	return h(
		"div",
		{ class: "table-host", tabindex: 0, role: "region", "aria-label": label },
		// Words stay whole; a narrow page scrolls it.
		h("table", { class: "plain", style: { minWidth: `${heads.length * COLUMN_WIDTH}px` } },
			h("thead", {}, h("tr", {}, heads.map((head, i) => h("th", { scope: "col", class: isNumber[i] ? "num" : null }, head.replace(/#$/, ""))))),
			h("tbody", {}, rows.map(row => h("tr", {}, row.map(cell)))))
	);
}

function statsSection(stats) {
	const cards = [
		["On disk", bytes(stats.bytes_on_disk), `${bytes(stats.free_bytes)} free`],
		["Profiles", formatCount(stats.profiles), `${formatCount(stats.samples)} samples`],
		["Services", formatCount(stats.services), `${formatCount(stats.series)} series`],
		["From", stats.oldest ? timeText(seconds(stats.oldest)).slice(0, 10) : "–", stats.newest ? `newest ${agoText(stats.newest)}` : "nothing yet"],
		["Memory of the store", bytes(stats.memory), `${formatCount(stats.waiting)} waiting to be written`],
		["Stored since the start", formatCount(stats.puts), `started ${agoText(stats.started)}`],
		["Removed since the start", formatCount(stats.deleted), `${formatCount(stats.thinned)} became sums`],
	];

	return [
		stats.full ? h("p", { class: "banner" }, h("span", { class: "text" }, "The disk is full: profiles are refused. Raise --max-disk, lower --min-free, or keep less.")) : null,
		h("dl", { class: "cards" }, cards.map(([name, value, more]) => h("div", {}, h("dt", {}, name), h("dd", {}, h("strong", {}, value), h("span", { class: "muted" }, more))))),
	];
}

const ageText = age => (age === null || age === undefined ? "as all" : age === "0" ? "for ever" : age);

function keepSection(keep) {
	const row = (name, ages) => [name, ageText(ages.raw), ageText(ages.minute), ageText(ages.hour), ageText(ages.day)];

	return [
		h("h2", {}, "How long it is kept"),
		plainTable("How long it is kept", ["Service", "Profiles", "Sums of minutes", "Of hours", "Of days"], [row("all", keep.all), ...keep.services.map(rule => row(cleanName(rule.service, 80) + (rule.stored ? "" : " (by option)"), rule))]),
	];
}

function refusalSection({ totals, latest: newest }) {
	if (!totals.length)
		return [h("h2", {}, "Refusals"), h("p", { class: "muted" }, "Nothing has been refused since the server started.")];
	return [
		h("h2", {}, "Refusals"),
		plainTable("Refusals by limit", ["Limit", "Count#", "First", "Last"], totals.map(row => [cleanName(row.limit, 60), formatCount(row.count), timeText(seconds(row.first)), agoText(row.last)])),
		h("h3", {}, "The latest"),
		plainTable("The latest refusals", ["Time", "Limit", "Status#", "Client", "Who", "What", "Why"], newest.slice(0, MOST_REFUSALS).map(row =>
			[timeText(seconds(row.time)), cleanName(row.limit, 60), String(row.status), cleanName(row.client, 60), cleanName(row.who, 60), cleanName(row.what, 200), cleanName(row.why, 400)])),
	];
}

function unnamedSection(answer) {
	if (!answer.binaries.length)
		return [h("p", { class: "muted" }, "All frames of this selection have names.")];
	const looked = item => (item.looked.length ? h("details", {}, h("summary", {}, "Where"), h("ul", {}, item.looked.map(place => h("li", {}, cleanName(`${place.where}: ${place.result}`, 400))))) : "");

	return [
		h("p", {}, `${formatPercent(answer.unnamed_share, 1)} of all samples end in a frame that has no name.`),
		plainTable("Binaries without names", ["Binary", "Build id", "Share#", "Addresses#", "Why", "Looked", "What to do"], answer.binaries.map(item => [
			cleanName(item.file, 120) || "(no file)", h("code", {}, cleanName(item.build_id, 20) || "–"), formatPercent(item.flat_share, 1), `${formatCount(item.unnamed)} of ${formatCount(item.addresses)}`, cleanName(item.why, 400), looked(item), item.fix ? h("code", {}, cleanName(item.fix, 300)) : "–",
		])),
		answer.total > answer.binaries.length ? h("p", { class: "muted" }, `${formatCount(answer.total - answer.binaries.length)} more.`) : null,
	];
}

function mountStorage(element, ctx) {
	const main = h("div", { class: "sections" }),
		names = h("section", { class: "sections" }),
		unnamed = h("div", {}),
		service = nameField(ctx, "Service", "service", "all services"),
		type = nameField(ctx, "Type", "type", ""),
		span = spanField(ctx, NAMES_SPAN),
		query = queryField(ctx),
		run = latest(ctx, main),
		runNames = latest(ctx, unnamed);
	let key = null,
		types = [];

	names.append(h("h2", {}, "Why has a frame no name?"), h("div", { class: "page-bar" }, service, type, span, query), unnamed);
	// Who asks why finds that first.
	element.append(...(ctx.state.why ? [names, main] : [main, names]));

	async function load(signal) {
		const [stats, keep, refusals, services] = await Promise.all(["stats", "keep", "refusals", "services"].map(path => ctx.api.get(path, path === "services" ? { limit: 10000 } : {}, { signal })));

		clear(main).append(...[statsSection(stats), keepSection(keep), refusalSection(refusals)].flat().filter(Boolean));
		service.setNames(services.services.map(item => item.name));
	}

	async function loadUnnamed(signal) {
		const { state } = ctx;

		types = (await ctx.api.get("types", { service: state.service, query: state.query }, { signal })).types.map(item => item.name);
		type.setNames(types);
		const wanted = state.type || usualType(types);

		type.update({ type: wanted });
		if (!wanted) {
			clear(unnamed).append(h("p", { class: "muted" }, "There are no profiles."));
			return;
		}
		try {
			clear(unnamed).append(...unnamedSection(await ctx.api.get("unnamed", { ...selectionParams(state, NAMES_SPAN), type: wanted }, { signal })).filter(Boolean));
		} catch (error) {
			if (error.status !== 404)
				throw error;
			clear(unnamed).append(h("p", { class: "muted" }, "Nothing is known of this selection in this time."));
		}
	}

	function update(state) {
		const next = JSON.stringify([state.service, state.type, state.query, state.from, state.to]);

		[service, span, query].forEach(field => field.update(state));
		type.update({ type: state.type || usualType(types) });
		if (next === key)
			return;
		if (key === null)
			run(load);
		key = next;
		runNames(loadUnnamed);
	}

	return {
		update,
		destroy() {
			run.stop();
			runNames.stop();
		},
	};
}

export const storagePage = { id: "storage", title: "Storage", mount: mountStorage };
