// Which profiles a page is about: service, type, conditions, window of time; as parameters of the URL that go with
// people from page to page.
import { h, selectField } from "../dom.js";
import { cleanName, formatValue, unitSeconds } from "../format.js";
import { queryText } from "../request.js";

/** How often pages that show what happens now ask again; and those that have nothing to show yet. */
export const REFRESH_MS = 30000;
const WAIT_MS = 1500;

/** Has a page ask again, unless what it loads into `host` is on its way. Returns what ends that. */
export function askAgain(host, isEmpty, ask) {
	const may = () => !document.hidden && !host.hasAttribute("aria-busy"),
		timers = [setInterval(() => may() && ask(), REFRESH_MS), setInterval(() => may() && isEmpty() && ask(), WAIT_MS)];

	return () => timers.forEach(clearInterval);
}

/** Parameters that mean the same on every page. */
export const SELECTION_KEYS = ["service", "type", "query", "from", "to"];

/** The part of a state that goes to other pages. */
export function carried(state) {
	return Object.fromEntries(SELECTION_KEYS.filter(key => key in state).map(key => [key, state[key]]));
}

/** Windows that end now. */
export const SPANS = [
	["5m", "Last 5 minutes"],
	["15m", "Last 15 minutes"],
	["1h", "Last hour"],
	["6h", "Last 6 hours"],
	["1d", "Last 24 hours"],
	["7d", "Last 7 days"],
	["30d", "Last 30 days"],
	["90d", "Last 90 days"],
];

const UNIT_SECONDS = { s: 1, m: 60, h: 3600, d: 86400, w: 604800 };

/** The shortest window that has all since then, in seconds; a day at most. */
export function fitSpan(oldest, now = Date.now() / 1000) {
	const isLong = ([value]) => value === "1d" || now - parseTime("now-" + value, now) >= now - oldest;

	return SPANS.find(isLong)[0];
}

/** Seconds since 1970 of "now-1h", "1700000000.5" or RFC 3339; NaN if it is none of these. */
export function parseTime(text, now = Date.now() / 1000) {
	const relative = /^now(?:-(\d+)([smhdw]))?$/.exec(text || "");

	if (relative)
		return now - (relative[1] ? Number(relative[1]) * UNIT_SECONDS[relative[2]] : 0);
	return /^\d+(\.\d+)?$/.test(text || "") ? Number(text) : Date.parse(text) / 1000;
}

/** The window of a state in seconds since 1970: {from, to, isLive}; it is live if it ends now. */
export function windowOf(state, span = "1h") {
	const now = Date.now() / 1000,
		isLive = !state.to || state.to.startsWith("now");
	const to = state.to ? parseTime(state.to, now) : now,
		from = parseTime(state.from || "now-" + span, now);

	return { from: Number.isFinite(from) ? from : now - 3600, to: Number.isFinite(to) ? to : now, isLive };
}

/** What requests need of a state: the parameters of a selection, with times in seconds. */
export function selectionParams(state, span) {
	const { from, to } = windowOf(state, span);

	return { service: state.service, type: state.type, query: state.query, from: from.toFixed(3), to: to.toFixed(3) };
}

/** A time in the person's own zone; short: only what is needed within a day. */
export function timeText(seconds, isShort) {
	const date = new Date(seconds * 1000),
		two = n => String(n).padStart(2, "0");
	const clock = `${two(date.getHours())}:${two(date.getMinutes())}`;

	return isShort ? clock : `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${clock}:${two(date.getSeconds())}`;
}

const AGES = [
	[90, 1, "s"],
	[5400, 60, "min"],
	[172800, 3600, "h"],
	[Infinity, 86400, "d"],
];

/** "3 min ago" of RFC 3339 or of seconds; "never" of null. */
export function agoText(time, now = Date.now() / 1000) {
	const seconds = typeof time === "string" ? Date.parse(time) / 1000 : time;

	if (!seconds)
		return "never";
	const age = Math.max(0, now - seconds),
		[, unit, name] = AGES.find(row => age < row[0]);

	return age < 2 ? "now" : `${Math.round(age / unit)} ${name} ago`;
}

/** "20 min", "1.5 h", "30 d" */
export function durationText(seconds) {
	const [, unit, name] = AGES.find(row => seconds < row[0]);

	return `${Number((seconds / unit).toFixed(1))} ${name}`;
}

/** A select of windows that end now; another one is shown as it is. `span` is the usual one, or tells which that is now. */
export function spanField(ctx, span = "1h") {
	const usual = () => (typeof span === "function" ? span() : span);
	const element = selectField("Time", [], "", value => {
		if (value !== "other")
			ctx.set({ from: value === span ? null : "now-" + value, to: null });
	});
	const select = element.querySelector("select");

	element.update = state => {
		const relative = /^now-(\w+)$/.exec(state.from || "now-" + usual())?.[1],
			isKnown = relative && (!state.to || state.to === "now") && SPANS.some(([value]) => value === relative);
		const { from, to } = windowOf(state, usual());
		const other = isKnown ? [] : [["other", `${timeText(from)} – ${timeText(to, to - from < 86400)}`]];

		select.replaceChildren(...[...SPANS, ...other].map(([value, text]) => h("option", { value }, text)));
		select.value = isKnown ? relative : "other";
	};
	return element;
}

/**
 * A select of names; the one of the state is there even if nobody has it. `all`: the text for none; `change`: what
 * becomes of the state with another one.
 */
export function nameField(ctx, label, key, all, change = value => ({ [key]: value || null })) {
	const element = selectField(label, [], "", value => ctx.set(change(value)));
	const select = element.querySelector("select");
	let names = [];

	element.setNames = next => {
		names = next;
		element.update(ctx.state);
	};
	element.update = state => {
		const value = state[key] || "",
			shown = value && !names.includes(value) ? [value, ...names] : names;

		select.replaceChildren(...(all ? [h("option", { value: "" }, all)] : []), ...shown.map(name => h("option", { value: name }, cleanName(name, 60))));
		select.value = value;
	};
	return element;
}

/** A field for conditions such as version=~"1.*". */
export function queryField(ctx) {
	const input = h("input", {
		type: "search",
		class: "query",
		placeholder: 'Labels: version=~"1.*", region="eu"',
		"aria-label": "Conditions over labels",
		spellcheck: "false",
		autocomplete: "off",
	});

	input.addEventListener("change", () => ctx.set({ query: input.value.trim() || null }));
	input.update = state => {
		if (document.activeElement !== input)
			input.value = state.query || "";
	};
	return input;
}

/** Types of values of well-known profiles, the usual one first. */
const SAMPLE_TYPES = [
	[/heap|alloc|mem/i, ["inuse_space", "inuse_objects", "alloc_space", "alloc_objects"]],
	[/cpu|profile/i, ["cpu", "samples"]],
	[/mutex|block|lock|contention/i, ["delay", "contentions"]],
];

/** A select of what is counted, `st` of the URL; it is hidden where there is nothing to choose. */
export function valueField(ctx) {
	const element = selectField("Value", [], "", value => ctx.set({ st: value || null })),
		select = element.querySelector("select");

	element.update = ({ type, st }) => {
		const known = SAMPLE_TYPES.find(([pattern]) => pattern.test(type || ""))?.[1] || [];

		element.hidden = !known.length && !st;
		select.replaceChildren(...[...new Set([...known, ...(st ? [st] : [])])].map(name => h("option", { value: name === known[0] ? "" : name }, cleanName(name, 40))));
		select.value = st && st !== known[0] ? st : "";
	};
	return element;
}

/** A condition more; a name or value may be anything. */
export function addCondition(query, name, value) {
	const rest = (query || "").trim().replace(/^\{(.*)\}$/s, "$1").trim().replace(/,$/, "");

	return `${rest && rest + ", "}${/^\w+$/.test(name) ? name : JSON.stringify(name)}=${JSON.stringify(value)}`;
}

/**
 * The address of a page of the viewer (/ui/) for a selection, as selectionParams makes it, or {id}; with a second one
 * the two are compared: the first is before, the second after. `more`: other parameters of that page.
 */
export function viewerUrl(page, a, b, more) {
	return `ui/${page}?${queryText({ a: queryText(a), b: b && queryText(b), ...more })}`;
}

/**
 * Puts new content in the place of the old; what had the focus has it again: the control at the same place if it has
 * the same name, else one with that name.
 */
export function refill(host, ...content) {
	const controls = () => [...host.querySelectorAll("a, button, select, input, summary, [tabindex]")],
		nameOf = element => element?.getAttribute("aria-label") || element?.textContent,
		active = host.contains(document.activeElement) ? document.activeElement : null,
		at = active ? controls().indexOf(active) : -1,
		{ scrollTop } = host;

	host.replaceChildren(...content.flat().filter(Boolean));
	host.scrollTop = scrollTop;
	if (!active)
		return;
	const list = controls();

	(nameOf(list[at]) === nameOf(active) ? list[at] : list.find(element => nameOf(element) === nameOf(active)) || list[at])?.focus({ preventScroll: true });
}

export function coresText(cores) {
	const digits = cores >= 100 ? 0 : cores >= 10 ? 1 : cores >= 0.1 || !(cores > 0) ? 2 : Math.min(6, 1 - Math.floor(Math.log10(cores))),
		text = cores.toFixed(digits);

	return `${text} ${text === "1.00" ? "core" : "cores"}`;
}

/** What is measured at a time, as the level of a series: CPU time per second is cores, whatever its unit. */
export function levelText(level, unit, isPerSecond) {
	if (isPerSecond && unitSeconds(unit))
		return coresText(level * unitSeconds(unit));
	return formatValue(level, unit) + (isPerSecond ? "/s" : "");
}

/** The type that is meant if nobody says: cpu, if there is one. */
export function usualType(names) {
	return names.find(name => name === "cpu") || names.find(name => /cpu/i.test(name)) || names[0];
}
