// Settings: options of the reports, preferences of this browser, and named views.
import { h, textButton } from "./dom.js";
import { openDialog } from "./dialog.js";
import { CHIP_NAMES, isSingleFile, stateUrl } from "./state.js";

// Filters have their chips, and the sample type its own control.
const NOT_SETTINGS = ["si", "f", "i", "h", "s", "sf", "prunefrom", "tf", "ti", "ts", "th", "tr", "tl"];

function isOn(text) {
	return ["t", "true", "1", "yes", "y"].includes(String(text).toLowerCase());
}

function optionInput(option, value) {
	const id = "option-" + option.key;

	if (option.type === "bool")
		return h("input", { id, type: "checkbox", checked: isOn(value ?? option.initial) });
	if (option.type === "choice")
		return h(
			"select",
			{ id },
			["", ...option.choices].map(choice =>
				h(
					"option",
					{ value: choice, selected: choice === (value ?? "") },
					choice || `default (${option.initial || "automatic"})`
				)
			)
		);
	return h("input", {
		id,
		type: "text",
		value: value ?? "",
		placeholder: String(option.initial ?? ""),
		spellcheck: "false",
		autocomplete: "off",
	});
}

function optionValue(option, input) {
	if (option.type !== "bool")
		return input.value || null;
	return input.checked === isOn(option.initial) ? null : input.checked ? "t" : "f";
}

function optionRows(ctx, rows) {
	const options = (ctx.meta.options || []).filter(option => option.key && !NOT_SETTINGS.includes(option.key));

	return options.map(option => {
		const input = optionInput(option, ctx.state[option.key]);

		rows.push([option, input]);
		return h(
			"div",
			{ class: "row" },
			h("label", { for: input.id }, CHIP_NAMES[option.key] || option.name.replace(/_/g, " ")),
			input,
			h("p", { class: "muted" }, String(option.help || "").split("\n")[0])
		);
	});
}

function preference(ctx, id, text, help) {
	const input = h("input", {
		id,
		type: "checkbox",
		checked: ctx.storage.get(id) !== "off",
		on: {
			change: () => {
				ctx.storage.set(id, input.checked ? null : "off");
				ctx.refresh();
			},
		},
	});

	return preferenceRow(input, text, help);
}

function preferenceRow(input, text, help) {
	return h("div", { class: "row" }, h("label", { for: input.id }, text), input, h("p", { class: "muted" }, help));
}

function rowHeight(ctx) {
	const heights = [
		["14", "low"],
		["18", "normal"],
		["24", "high"],
	];
	const current = ctx.storage.get("row") || "18";
	const input = h(
		"select",
		{
			id: "row",
			on: {
				change: () => {
					ctx.storage.set("row", input.value === "18" ? null : input.value);
					ctx.refresh();
				},
			},
		},
		heights.map(([value, text]) => h("option", { value, selected: value === current }, `${text}, ${value} pixels`))
	);

	return preferenceRow(input, "Rows of the flame graph", "How high a frame is.");
}

async function saveView(ctx, name) {
	const { page, z, x, ...rest } = ctx.state;

	await ctx.api.post("saveconfig", { ...rest, config: name });
	await ctx.reloadMeta();
	ctx.toast(`Saved as “${name}”`);
}

async function deleteView(ctx, name) {
	await ctx.api.post("deleteconfig", { config: name });
	await ctx.reloadMeta();
	ctx.toast(`Deleted “${name}”`);
}

function viewRows(ctx, close) {
	const configs = ctx.meta.configs || [];

	return configs.map(config =>
		h(
			"li",
			{},
			h(
				"a",
				{
					class: "link",
					href:
						stateUrl(ctx.state).replace(/\?.*/, "") +
						"?" +
						String(config.query || "").replace(/^\?/, ""),
				},
				config.name
			),
			config.name !== "Default" &&
				textButton("Delete", () => deleteView(ctx, config.name).then(close, ctx.error))
		)
	);
}

function namedViews(ctx, close) {
	const name = h("input", { type: "text", id: "view-name", placeholder: "name", autocomplete: "off" });
	const save = () => name.value.trim() && saveView(ctx, name.value.trim()).then(close, ctx.error);

	return h(
		"section",
		{},
		h("h3", {}, "Saved views"),
		ctx.meta.configs_error && h("p", { class: "bad" }, ctx.meta.configs_error),
		h("ul", { class: "views" }, viewRows(ctx, close)),
		h(
			"div",
			{ class: "row" },
			h("label", { for: "view-name" }, "Save this view as"),
			name,
			textButton("Save", save, "btn")
		)
	);
}

/** @param {any} ctx */
export function openSettings(ctx) {
	const rows = [];
	const close = () => dialog.close();
	const apply = () =>
		ctx.filters(Object.fromEntries(rows.map(([option, input]) => [option.key, optionValue(option, input)])));
	const dialog = openDialog({
		title: "Settings",
		class: "settings",
		body: [
			h(
				"section",
				{},
				h("h3", {}, "This browser"),
				preference(ctx, "keys", "Single-letter keys", "Keys such as f or 1 work without Ctrl."),
				preference(
					ctx,
					"tooltips",
					"Tooltips",
					"Details beside the pointer; the line below the graph has them anyway."
				),
				rowHeight(ctx)
			),
			!isSingleFile() && namedViews(ctx, close),
			h("section", {}, h("h3", {}, "Report options"), optionRows(ctx, rows)),
		],
		buttons: [{ label: "Cancel" }, { label: "Apply", primary: true, run: apply }],
	});
}
