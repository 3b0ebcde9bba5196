// What the page shows, as the parameters of its URL: every visible state is in it, and every URL
// opens the state again. Unknown parameters are kept.

/** Parameters that change the data; they go with every request. */
export const FILTER_KEYS = [
	"f",
	"i",
	"h",
	"s",
	"sf",
	"prunefrom",
	"tf",
	"ti",
	"ts",
	"th",
	"tr",
	"tl",
	"si",
	"g",
	"n",
	"nf",
	"ef",
	"trim",
	"unit",
	"compact",
	"rel",
	"calltree",
	"dropneg",
	"norm",
	"sort",
	"mean",
	"intel",
	"noinlines",
	"showcolumns",
	"tm",
];

/** Those of them that a person sets to see less, in the order of their chips. */
export const CHIP_NAMES = {
	f: "focus",
	i: "ignore",
	h: "hide",
	s: "show",
	sf: "show from",
	prunefrom: "prune from",
	tf: "label",
	ti: "not label",
	ts: "show labels",
	th: "hide labels",
	tm: "time",
	tr: "group by",
	tl: "leaf by",
	g: "granularity",
	noinlines: "no inlines",
	norm: "normalized",
	dropneg: "drop negative",
	mean: "mean",
	calltree: "call tree",
	unit: "unit",
	rel: "relative",
};

/** "1.25-3.5", seconds of tm, tb and x, as [1.25, 3.5]; or null. */
export function parseTimeRange(text) {
	const found = /^([\d.]+)-([\d.]+)$/.exec(text || ""),
		range = found && [Number(found[1]), Number(found[2])];

	return range && range[0] < range[1] ? range : null;
}

/** Microseconds are as fine as it gets. */
export const timeRangeText = (from, to) => `${Number(Math.max(0, from).toFixed(6))}-${Number(to.toFixed(6))}`;

// What zoom and selection mean only within the same data.
const PLACE_KEYS = ["z", "x"];

const PAGE_IDS = ["flamegraph", "top", "tree", "sandwich", "graph", "peek", "source", "disasm", "labels", "compare", "timeline"];

/** Pages in one file have no server to name them: there the state is behind the #. */
export function isSingleFile() {
	return Boolean(/** @type {any} */ (window).__KILN_DATA__);
}

/** @returns {Readonly<Record<string, string>>} page and parameters */
export function parseState(location, pages = PAGE_IDS) {
	const where = isSingleFile() ? location.hash.slice(1) : location.pathname.replace(/^.*\//, "") + location.search;
	const at = where.indexOf("?");
	const page = at < 0 ? where : where.slice(0, at);
	const state = Object.create(null);

	for (const [key, value] of new URLSearchParams(at < 0 ? "" : where.slice(at)))
		if (value !== "")
			state[key] = value;
	state.page = pages.includes(page) ? page : pages[0];
	return Object.freeze(state);
}

/** The URL of a state, relative to the page's own. */
export function stateUrl(state) {
	const query = new URLSearchParams();

	for (const key of Object.keys(state))
		if (key !== "page")
			query.append(key, state[key]);
	const text = query.toString().replace(/%2C/g, ",").replace(/%2F/g, "/").replace(/%3A/g, ":");

	return (isSingleFile() ? "#" : "") + state.page + (text && "?" + text);
}

function mergeState(state, changes) {
	const next = Object.assign(Object.create(null), state);

	for (const key of Object.keys(changes)) {
		const value = changes[key];

		if (value === null || value === undefined || value === "" || value === false)
			delete next[key];
		else
			next[key] = String(value);
	}
	return Object.freeze(next);
}

function filtersOf(state) {
	return FILTER_KEYS.filter(key => key in state).map(key => [key, state[key]]);
}

/** Whether two states ask for the same data. */
export function sameFilters(a, b) {
	return a.a === b.a && a.b === b.b && JSON.stringify(filtersOf(a)) === JSON.stringify(filtersOf(b));
}

/**
 * Holds the state, keeps it in the URL and the history, and can undo filters.
 * @param {(state: any, before: any) => void} changed
 * @param {string[]} [pages] names of the pages; the first is where people begin
 */
export function createStore(changed, pages) {
	let state = parseState(location, pages);
	let undone = [],
		done = [];

	function apply(next, push) {
		const before = state;
		const url = stateUrl(next);

		if (url === stateUrl(before))
			return;
		state = next;
		history[push ? "pushState" : "replaceState"](null, "", url);
		changed(state, before);
	}

	function set(changes, options) {
		const next = mergeState(state, changes);
		const moved = !sameFilters(next, state) && !PLACE_KEYS.some(key => key in changes);

		// The range of other data is another one; the path of the zoom may still be there.
		apply(moved ? mergeState(next, { x: null }) : next, !options || options.push !== false);
	}

	function filter(changes) {
		done.push(filtersOf(state));
		undone = [];
		set(changes);
	}

	// Takes the filters of the other stack's top, and remembers these.
	function swap(from, to) {
		const filters = from.pop();

		if (!filters)
			return false;
		to.push(filtersOf(state));
		const changes = Object.fromEntries(FILTER_KEYS.map(key => [key, null]));

		set(Object.assign(changes, Object.fromEntries(filters)));
		return true;
	}

	window.addEventListener("popstate", () => {
		const before = state;

		state = parseState(location, pages);
		changed(state, before);
	});
	return {
		get state() {
			return state;
		},
		set,
		filter,
		undo: () => swap(done, undone),
		redo: () => swap(undone, done),
		get canUndo() {
			return done.length > 0;
		},
		get canRedo() {
			return undone.length > 0;
		},
	};
}

/** Preferences of this person; private windows may refuse to keep them. */
export const storage = {
	get(key) {
		try {
			return localStorage.getItem("kiln." + key);
		} catch {
			return null;
		}
	},
	set(key, value) {
		try {
			if (value === null)
				localStorage.removeItem("kiln." + key);
			else
				localStorage.setItem("kiln." + key, value);
		} catch {
			// Then it lasts as long as the page.
		}
	},
};
