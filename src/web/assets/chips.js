// The state bar: where one is, which filters are on, of what the percentages are.
import { h, clear, icon, iconButton, segmented, textButton } from "./dom.js";
import { openMenu } from "./menu.js";
import { CHIP_NAMES } from "./state.js";
import { cleanName } from "./format.js";

const EDITABLE = ["f", "i", "h", "s", "sf", "prunefrom", "tf", "ti", "ts", "th", "tr", "tl", "tm"];
const FILTER_HELP = {
	f: "only stacks with a matching function",
	i: "no stacks with one",
	h: "frames that match are taken out",
	s: "only frames that match",
	sf: "stacks start at the first match",
	prunefrom: "nothing below a match",
	tf: "only samples with a matching label",
	ti: "no samples with one",
	ts: "labels to show",
	th: "labels not to show",
	tr: "label keys as frames at the root",
	tl: "label keys as frames at the leaf",
	tm: "seconds from the start, as 1.5-3",
};

/** `^main\.run$` reads better as main.run. */
export function readableRegexp(text) {
	return text
		.split("|")
		.map(part => {
			const inner = /^\^(.*)\$$/.exec(part)?.[1];

			return inner !== undefined && !/(^|[^\\])[.+*?()[\]{}^$]/.test(inner)
				? inner.replace(/\\(.)/g, "$1")
				: part;
		})
		.join(" | ");
}

function chipText(key, value) {
	if (EDITABLE.includes(key) || key === "g" || key === "unit")
		return cleanName(readableRegexp(value), 60);
	return value === "f" || value === "false" || value === "0" ? "off" : "";
}

function editChip(ctx, key, value, place, restore) {
	let done = false;
	const finish = apply => {
		if (done)
			return;
		done = true;
		restore();
		if (apply && input.value.trim() !== value)
			ctx.filter(key, input.value.trim() || null);
	};
	const input = h("input", {
		type: "text",
		class: "chip-input",
		value,
		"aria-label": `${CHIP_NAMES[key]}: ${FILTER_HELP[key] || ""}`,
		placeholder: FILTER_HELP[key],
		spellcheck: "false",
		autocomplete: "off",
		on: {
			keydown: event =>
				(event.key === "Enter" || event.key === "Escape") &&
				(event.stopPropagation(), finish(event.key === "Enter")),
			blur: () => finish(true),
		},
	});

	place.replaceWith(h("span", { class: "chip editing" }, h("span", { class: "chip-key" }, CHIP_NAMES[key] + ":"), input));
	input.focus();
	input.select();
}

function chip(ctx, key, redraw) {
	const value = ctx.state[key],
		text = chipText(key, value),
		name = CHIP_NAMES[key];
	const label = [h("span", { class: "chip-key" }, text ? name + ":" : name), text && " " + text];
	const element = h(
		"span",
		{ class: "chip", role: "listitem", "data-key": key },
		EDITABLE.includes(key)
			? textButton(label, () => editChip(ctx, key, value, element, redraw), "chip-edit", {
					title: `Edit: ${FILTER_HELP[key]}`,
				})
			: h("span", { class: "chip-edit" }, label),
		iconButton("close", `Remove ${name} ${text}`, () => ctx.filter(key, null), { class: "chip-close" })
	);

	return element;
}

function addFilter(ctx, event, chips, redraw) {
	openMenu(
		event,
		EDITABLE.filter(key => !(key in ctx.state) && (key !== "tm" || ctx.profile?.ticks)).map(key => ({
			label: `${CHIP_NAMES[key]} – ${FILTER_HELP[key]}`,
			run: () => {
				const place = h("span");

				chips.append(place);
				editChip(ctx, key, "", place, redraw);
			},
		})),
		"Add a filter"
	);
}

function crumb(item, last) {
	const text = cleanName(item.text, 60);

	return h(
		"li",
		{},
		last
			? h("span", { "aria-current": "location", title: cleanName(item.title || item.text) }, text)
			: textButton(text, item.run, "crumb", { title: cleanName(item.title || item.text) })
	);
}

// Long paths keep their ends.
function shortPath(items) {
	return items.length > 7
		? [
				...items.slice(0, 2),
				{ text: "…", title: `${items.length - 6} more`, run: items[items.length - 5].run },
				...items.slice(-4),
			]
		: items;
}

/** @param {any} ctx */
export function createStateBar(ctx) {
	const path = h("ol", { class: "crumbs" }),
		chips = h("div", { class: "chips", role: "list", "aria-label": "Filters" });
	const undo = iconButton("undo", "Undo the last filter (Ctrl Z)", () => ctx.undo());
	const redo = iconButton("redo", "Redo (Ctrl Shift Z)", () => ctx.redo());
	const add = textButton([icon("plus"), "Filter"], event => addFilter(ctx, event, chips, update), "btn small quiet", {
		"aria-haspopup": "menu",
		"aria-expanded": "false",
	});
	const base = segmented(
		"Percentages of",
		[
			{ value: "total", text: "total", title: "of all samples" },
			{ value: "shown", text: "shown", title: "of what the filters leave" },
			{ value: "zoom", text: "zoom", title: "of the frame zoomed to" },
		],
		"total",
		value => ctx.set({ pct: value === "total" ? null : value }, { push: false })
	);

	function update() {
		const keys = Object.keys(CHIP_NAMES).filter(key => key in ctx.state);

		clear(chips).append(...keys.map(key => chip(ctx, key, update)));
		chips.hidden = keys.length === 0;
		undo.disabled = !ctx.canUndo;
		redo.disabled = !ctx.canRedo;
		base.set(ctx.state.pct || "total");
	}

	function crumbs(items) {
		const shown = shortPath(items);

		clear(path).append(...shown.map((item, i) => crumb(item, i === shown.length - 1)));
	}
	update();
	return {
		element: h(
			"div",
			{ class: "statebar", role: "region", "aria-label": "What is shown" },
			h("nav", { "aria-label": "Zoom path" }, path),
			chips,
			add,
			h("span", { class: "spacer" }),
			h("span", { class: "base" }, h("span", { class: "muted" }, "% of"), base),
			undo,
			redo
		),
		update,
		crumbs,
	};
}
