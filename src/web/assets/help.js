// The help: every key, and what the picture means.
import { h } from "./dom.js";
import { openDialog } from "./dialog.js";
import { KEY_TABLE, keyText } from "./keys.js";

function keyGroups() {
	const groups = new Map();

	for (const [keys, , text, group] of KEY_TABLE) {
		if (!groups.has(group))
			groups.set(group, []);
		groups.get(group).push([keys, text]);
	}
	return [...groups].map(([name, rows]) =>
		h(
			"section",
			{},
			h("h3", {}, name),
			h(
				"dl",
				{ class: "keys" },
				rows.map(([keys, text]) => [
					h(
						"dt",
						{},
						keys.split(" ").map(key => h("kbd", {}, keyText(key)))
					),
					h("dd", {}, text),
				])
			)
		)
	);
}

function legendRow(palette, color, text, mark) {
	return h("li", {}, h("span", { class: "swatch", style: { background: color, color: palette.text } }, mark || ""), text);
}

function legend(palette) {
	return h(
		"section",
		{ class: "wide" },
		h("h3", {}, "What the flame graph shows"),
		h(
			"ul",
			{ class: "legend" },
			legendRow(
				palette,
				palette.group("main"),
				"A frame: as wide as the time (or bytes, or counts) spent in it and in what it calls. The colour is that of its package."
			),
			legendRow(
				palette,
				palette.group("main"),
				"An open space below a frame, at its right, is its self weight."
			),
			legendRow(palette, palette.run, "Grey: many frames too narrow to draw. Zoom in, and they are there."),
			legendRow(
				palette,
				palette.lost,
				"A mark “…”: frames that were not sent yet; zooming in fetches them.",
				"…"
			),
			legendRow(
				palette,
				palette.group("inlined"),
				"A dotted upper edge: the function was inlined, at least in part; there was no call.",
				"┈"
			),
			legendRow(
				palette,
				palette.change(1),
				"In a comparison: more than before, “+” and rising lines; N is new.",
				"+"
			),
			legendRow(palette, palette.change(-1), "Less than before, “−” and falling lines; ✕ is gone.", "−")
		),
		h(
			"p",
			{ class: "muted" },
			"Click: zoom to a frame. Double click: its callers and callees. Right click or long press: all else one can do. ",
			"Drag on the ruler: zoom to a range. Ctrl and wheel, or two fingers: zoom at the pointer."
		)
	);
}

/** @param {any} ctx */
export function openHelp(ctx) {
	openDialog({
		title: "Help",
		class: "help",
		body: h(
			"div",
			{ class: "columns" },
			keyGroups(),
			legend(ctx.palette),
			h(
				"p",
				{ class: "muted wide" },
				`kiln ${ctx.meta.version || ""}. Single-letter keys can be switched off in the settings.`
			)
		),
	});
}
