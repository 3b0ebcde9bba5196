// The Labels page: what values labels have, as filters and as groups.
import { h, svg, clear, iconButton } from "./dom.js";
import { cleanName, formatCount, formatValue, quoteRegexp } from "./format.js";
import { button, muted } from "./table.js";
import { dataKey, latest, pageNote } from "./pages.js";

const SHOWN_VALUES = 10, MORE_VALUES = 200, MOST_BINS = 40;

// "=" and "," have a meaning of their own in tagfocus.
const quoteLabel = text => quoteRegexp(text).replace(/,/g, "\\x2c").replace(/=/g, "\\x3d");

/** tagfocus as parts that must all match: "^key:(?:a|b)$,…". Parts that are not ours are kept as they are. */
function parseFocus(text) {
	return text && !text.includes("=") ? text.split(",").map(part => {
		const found = /^\^((?:[^:\\]|\\.)*):\(\?:(.*)\)\$$/.exec(part);
		return found ? { key: found[1], values: found[2].match(/(?:[^|\\]|\\.)+/g) || [] } : { other: part };
	}) : [];
}

const formatFocus = parts => parts.map(part => part.other || `^${part.key}:(?:${part.values.join("|")})$`).join(",");

/** Adds a value to tagfocus or takes it away: values of one key are alternatives, keys must all match. */
export function toggleFocus(text, key, value) {
	const parts = parseFocus(text), [k, v] = [quoteLabel(key), quoteLabel(value)];
	const part = parts.find(p => p.key === k);

	if (!part)
		parts.push({ key: k, values: [v] });
	else if (part.values.includes(v))
		part.values = part.values.filter(other => other !== v);
	else
		part.values.push(v);
	return formatFocus(parts.filter(p => p.other || p.values.length));
}

const isFocused = (text, key, value) =>
	parseFocus(text || "").some(part => part.key === quoteLabel(key) && part.values.includes(quoteLabel(value)));

// tagignore has one regexp, of which any part must match.
const ignoreTerm = (key, value) => `^${quoteLabel(key)}:${quoteLabel(value)}$`;
const ignoreTerms = text => text && !text.includes("=") ? text.split(/\|(?=\^)/) : [];
const isIgnored = (text, key, value) => ignoreTerms(text).includes(ignoreTerm(key, value));

/** Adds a value to tagignore or takes it away. */
export function toggleIgnore(text, key, value) {
	const term = ignoreTerm(key, value), terms = ignoreTerms(text);

	return (terms.includes(term) ? terms.filter(other => other !== term) : [...terms, term]).join("|");
}

/** Values in steps that grow: [{low, high, weight}], at most 40. */
export function logBins(values) {
	const positive = values.filter(v => v.value > 0), rest = values.filter(v => v.value <= 0);
	const bins = [], logs = positive.map(v => Math.log2(v.value));

	if (rest.length)
		bins.push({ low: Math.min(...rest.map(v => v.value)), high: 0, weight: rest.reduce((sum, v) => sum + v.weight, 0) });
	if (!positive.length)
		return bins;
	const least = Math.floor(Math.min(...logs)), span = Math.max(...logs) - least;
	const perStep = [4, 2, 1, 0.5, 0.25].find(n => span * n < MOST_BINS - 1) || 0.125;
	const first = bins.length;

	positive.forEach((v, i) => {
		const at = first + Math.floor((logs[i] - least) * perStep + 1e-9);
		while (bins.length <= at) {
			const step = (bins.length - first) / perStep;
			bins.push({ low: Math.ceil(2 ** (least + step)), high: Math.ceil(2 ** (least + step + 1 / perStep)) - 1, weight: 0 });
		}
		bins[at].weight += v.weight;
	});
	return bins.filter(bin => bin.high >= bin.low || bin.weight);
}

function mountLabels(el, ctx) {
	const groups = h("div", { class: "label-groups" }), cards = h("div", { class: "label-cards" }), run = latest(ctx, el);
	let data = null, key = "", all = new Set(), total = 0, unit = "";

	el.classList.add("scrolls");
	el.append(groups, cards);

	const keysOf = name => (ctx.state[name] || "").split(",").filter(Boolean);
	const without = (list, key) => list.filter(other => other !== key);
	const setKeys = (name, keys) => ctx.filter(name, keys.length ? keys.join(",") : null);

	function groupChip(name, list, index) {
		const label = cleanName(list[index], 60);
		const move = to => setKeys(name, without(list, list[index]).toSpliced(to, 0, list[index]));
		return h("li", { class: "chip", draggable: "true", on: { dragstart: event => event.dataTransfer.setData("text/kiln-label", list[index]) } },
			index > 0 ? iconButton("previous", `${label}: further out`, () => move(index - 1)) : null, `${index + 1}. ${label}`,
			index < list.length - 1 ? iconButton("next", `${label}: further in`, () => move(index + 1)) : null,
			iconButton("close", `Do not group by ${label}`, () => setKeys(name, without(list, list[index]))));
	}

	/** The keys that frames are made of, outermost first; a key can be dropped here. */
	function groupList(name, title) {
		const list = keysOf(name);
		const drop = event => {
			const key = event.dataTransfer.getData("text/kiln-label"), at = [...event.currentTarget.querySelectorAll("li")].findIndex(item => item.contains(event.target));
			if (key)
				setKeys(name, at < 0 ? [...without(list, key), key] : without(list, key).toSpliced(at, 0, key));
		};
		return h("div", { class: "label-group", on: { drop } }, h("strong", null, title),
			list.length ? h("ol", { class: "chips", "aria-label": title }, list.map((_, i) => groupChip(name, list, i))) : muted("nothing"));
	}

	function valueRow(entry, item) {
		const text = String(item.value), state = ctx.state, shown = cleanName(entry.is_number ? formatValue(Number(item.value), entry.unit, ctx.state.unit) : text || "(empty)", 200);
		const range = entry.is_number ? rangeText(entry, item.value, item.value) : "";
		const is = (name, test) => range ? state[name] === range : test(state[name], entry.key, text);
		const switchTo = (name, toggle) => ctx.filter(name, (range ? state[name] !== range && range : toggle(state[name], entry.key, text)) || null);
		const focus = () => switchTo("tf", toggleFocus), ignore = () => switchTo("ti", toggleIgnore);
		const share = total ? Math.abs(item.weight / total) : 0;

		return h("li", null,
			h("button", { type: "button", class: "label-value-row", "aria-pressed": String(is("tf", isFocused)), title: "Keep only these samples; Alt and click: leave them out",
				on: { click: event => event.altKey ? ignore() : focus() } },
			h("span", { class: "label-bar", style: { width: `${Math.min(100, share * 100)}%` }, "aria-hidden": "true" }),
			h("span", { class: "label-text" }, shown), h("span", { class: "num" }, ctx.format(item.weight, unit)), h("span", { class: "num muted" }, ctx.percent(item.weight, total))),
			button("≠", ignore, { class: "btn small", "aria-pressed": String(is("ti", isIgnored)), "aria-label": `Leave out ${entry.key} ${shown}`, title: "Leave these samples out" }));
	}

	const rangeText = (entry, low, high) => {
		const u = /^[a-z]+$/i.test(entry.unit || "") ? entry.unit : "";
		return `${entry.key}=${low}${u}${low === high ? "" : `:${high}${u}`}`;
	};

	/** Bars of the bins; dragging over them keeps what is inside. */
	function histogram(entry) {
		const bins = logBins(entry.values.map(item => ({ value: Number(item.value), weight: item.weight }))), most = Math.max(...bins.map(bin => bin.weight), 1);
		const bars = bins.map((bin, i) => svg("rect", { x: i, width: 0.92, y: 40 - 40 * bin.weight / most, height: 40 * bin.weight / most }));
		const picture = svg("svg", { class: "histogram", viewBox: `0 0 ${bins.length} 40`, preserveAspectRatio: "none", "aria-hidden": "true" },
			svg("rect", { class: "back", x: 0, y: 0, width: bins.length, height: 40 }), bars);
		const value = v => formatValue(v, entry.unit), said = muted(`${value(bins[0].low)} – ${value(bins[bins.length - 1].high)}, logarithmic`);
		const option = (name, initial) => h("select", { "aria-label": `${entry.key}: ${name}` }, bins.map((bin, i) => h("option", { value: i, selected: i === initial }, value(name === "from" ? bin.low : bin.high))));
		const from = option("from", 0), to = option("to", bins.length - 1);
		let start = -1;

		const at = event => {
			const { left, width } = picture.getBoundingClientRect();
			return Math.max(0, Math.min(bins.length - 1, Math.floor((event.clientX - left) / width * bins.length)));
		};
		const mark = (a, b) => {
			bars.forEach((bar, i) => bar.classList.toggle("out", i < Math.min(a, b) || i > Math.max(a, b)));
			[from.value, to.value] = [Math.min(a, b), Math.max(a, b)];
		};
		const apply = name => ctx.filter(name, rangeText(entry, bins[Math.min(from.value, to.value)].low, bins[Math.max(from.value, to.value)].high));
		for (const select of [from, to])
			select.addEventListener("change", () => mark(Number(from.value), Number(to.value)));
		picture.addEventListener("pointerdown", event => {
			start = at(event);
			picture.setPointerCapture(event.pointerId);
			mark(start, start);
		});
		picture.addEventListener("pointermove", event => {
			const bin = bins[at(event)];
			said.textContent = `${value(bin.low)} – ${value(bin.high)}: ${ctx.format(bin.weight, unit)}, ${ctx.percent(bin.weight, total)}`;
			if (start >= 0)
				mark(start, at(event));
		});
		picture.addEventListener("pointerup", event => {
			mark(start, at(event));
			start = -1;
			apply("tf");
		});
		return [picture, said, h("div", { class: "page-bar" }, from, "–", to, button("Keep", () => apply("tf")),
			button("Leave out", () => apply("ti")))];
	}

	function card(entry) {
		const limit = all.has(entry.key) ? MORE_VALUES : SHOWN_VALUES, hidden = entry.values.length - limit + (entry.more || 0);
		const group = (name, text) => {
			const list = keysOf(name), isOn = list.includes(entry.key);
			return button(`Group ${text}`, () => setKeys(name, isOn ? without(list, entry.key) : [...list, entry.key]),
				{ class: "btn small", "aria-pressed": String(isOn), "aria-label": `Group ${text}: ${entry.key}` });
		};
		return h("section", { class: "label-card", "aria-label": entry.key },
			h("header", { draggable: "true", on: { dragstart: event => event.dataTransfer.setData("text/kiln-label", entry.key) } },
				h("h2", null, cleanName(entry.key, 80)), muted(`Values: ${formatCount(entry.values.length + (entry.more || 0))}, on ${ctx.percent(entry.total, total)}`),
				group("tr", "at root"), group("tl", "at leaf")),
			entry.is_number && entry.values.length > 1 ? histogram(entry) : null,
			h("ul", { class: "label-values" }, entry.values.slice(0, limit).map(item => valueRow(entry, item))),
			hidden > 0 ? limit === SHOWN_VALUES ? button(`${formatCount(hidden)} more`, () => {
				all.add(entry.key);
				show();
			}, { class: "link" }) : muted(`${formatCount(hidden)} lighter ones`) : null);
	}

	function show() {
		clear(groups).append(groupList("tr", "Group at the root by"),
			groupList("tl", "Group at the leaves by"));
		clear(cards).append(...data.keys.length ? data.keys.map(card) : [pageNote("No labels", h("p", null, "The samples here have no labels. Programs set them, in Go with pprof.Do."))]);
	}

	async function load(signal) {
		data = await ctx.api.get("labels", {}, { signal });
		({ unit, total } = data);
		show();
	}

	function update(state) {
		const next = dataKey(state);

		if (next === key)
			return;
		key = next;
		run(load);
	}

	return { update, keys: {}, destroy: () => run.stop() };
}

export const labelsPage = { id: "labels", title: "Labels", mount: mountLabels };
