// Versions of a service, and what a window can be compared with: what was before it, or another version.
import { h, selectField } from "../dom.js";
import { cleanName } from "../format.js";
import { openDialog } from "../dialog.js";
import { addCondition } from "./selection.js";

const MOST_VERSIONS = 1000,
	MOST_PAIRS = 4,
	EARLIER = [[3600, "1 hour"], [86400, "1 day"], [604800, "1 week"]];

/** {label, list: [{name, first, last}]} in seconds, those that came last at the end; null if it cannot be told. */
export async function loadVersions(ctx, service, signal) {
	const label = await ctx.versionLabel();
	const answer = await ctx.api.get(`labels/${encodeURIComponent(label)}`, { service, limit: MOST_VERSIONS }, { signal }).catch(() => null);
	const list = (answer?.values || []).filter(value => value.name && value.first)
		.map(({ name, first, last }) => ({ name, first: Date.parse(first) / 1000, last: Date.parse(last || first) / 1000 }));

	return answer && { label, list: list.sort((a, b) => a.first - b.first || a.last - b.last) };
}

/** A version within the window; if it is not there, for as long before its end. */
function versionRange({ first, last }, [from, to]) {
	const inside = [Math.max(from, first), Math.min(to, last + 1)];

	return inside[0] < inside[1] ? inside : [Math.max(first, last + 1 - (to - from)), last + 1];
}

/** Two of all versions; the last two are chosen. */
function openVersions(versions, open) {
	const { list } = versions,
		choices = [...list].reverse().map(({ name }) => ({ value: name, text: cleanName(name, 60) })),
		chosen = { a: list.at(-2).name, b: list.at(-1).name },
		field = (label, side) => selectField(label, choices, chosen[side], value => (chosen[side] = value)),
		find = side => list.find(({ name }) => name === chosen[side]);

	openDialog({
		title: "Compare two versions",
		body: [h("div", { class: "page-bar" }, field("Before", "a"), field("After", "b"))],
		buttons: [{ label: "Compare", primary: true, run: () => open(find("a"), find("b")) }],
	});
}

/**
 * The items of a menu. range: the window; base: the baseline or null; versions: as above or null; params(range) is the
 * selection of a window, versionParams(range) that without a version, url(a, b) where two of them are compared.
 */
export function comparisons({ range, base, versions, params, versionParams, url }) {
	const open = (a, b) => location.assign(url(a, b)),
		side = version => {
			const found = versionParams(versionRange(version, range));

			return { ...found, query: addCondition(found.query, versions.label, version.name) };
		},
		openPair = (a, b) => open(side(a), side(b)),
		list = versions?.list || [],
		pairs = list.slice(1).map((version, i) => [list[i], version]).slice(-MOST_PAIRS).reverse();

	return [
		base && { label: "With the baseline", key: "c", run: () => open(params(base), params(range)) },
		...EARLIER.map(([seconds, text]) => ({ label: `With ${text} earlier`, run: () => open(params(range.map(time => time - seconds)), params(range)) })),
		pairs.length ? { separator: true } : null,
		...pairs.map(([a, b], i) => ({ label: `${i ? "Version" : "Newest version"} ${cleanName(b.name, 30)} with ${cleanName(a.name, 30)} before it`, run: () => openPair(a, b) })),
		pairs.length ? { label: "Two versions…", run: () => openVersions(versions, openPair) } : null,
	].filter(Boolean);
}
