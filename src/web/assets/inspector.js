// The panel at the right: all about the selected function, and what one can do with it.
import { h, clear, iconButton, textButton } from "./dom.js";
import { isAbort, send } from "./request.js";
import { functionFacts } from "./flame_tree.js";
import { isSingleFile } from "./state.js";
import { cleanName, formatCount, formatValue, placeOf, shortName, sourceUrl } from "./format.js";

/** A link that opens a line in an editor or at a forge; null if -source_url does not say how. */
export function editorLink(ctx, file, line) {
	const template = ctx.meta.source_url;

	if (!template || !file)
		return null;
	const href = sourceUrl(template, file, line),
		[, scheme, host] = /^([\w-]+):(?:\/\/([^/]*))?/.exec(href),
		isPage = /^https?$/.test(scheme);

	return h(
		"a",
		{ class: "link editor", href, target: isPage ? "_blank" : null, rel: "noopener noreferrer" },
		isPage ? `Open at ${host}` : `Open in ${scheme}`
	);
}

/** On a server: where it says why frames have no names; else null. */
export function whyLink({ meta, state }) {
	return meta.home ? h("a", { href: `${meta.home}storage?${state.a}&why=1` }, "Why no names?") : null;
}

// A sum of many profiles has the comments of all.
const SHOWN_COMMENTS = 8;

// Asked for once per selection.
const reasons = {};

/** The reason itself, of the binary that the frame is of. */
async function tellWhy(host, fn, { meta, state: { a } }) {
	reasons[a] ??= send(`${meta.home}api/1/unnamed?${a}`).then(response => response.json()).catch(() => null);
	const found = (await reasons[a])?.binaries.find(({ file }) => file === fn[4] || file.endsWith("/" + fn[4]));

	if (found)
		host.before(h("p", { class: "muted" }, cleanName(found.why, 400)));
}

function meter(label, value, total, ctx, unit) {
	const share = total ? Math.min(1, Math.abs(value / total)) : 0;

	return h(
		"div",
		{ class: "meter" },
		h("span", {}, label),
		h("span", { class: "num" }, ctx.format(value, unit)),
		h("span", { class: "num muted" }, ctx.percent(value, total)),
		h("span", { class: "bar", "aria-hidden": "true" }, h("span", { style: { width: `${share * 100}%` } }))
	);
}

function relatives(title, rows, functions, ctx, info) {
	if (!rows?.length)
		return null;
	return h(
		"section",
		{},
		h("h3", {}, title),
		h(
			"ul",
			{ class: "relatives" },
			rows.map(([id, weight]) => {
				const fn = functions.get(id) || ctx.functionById(id) || [id, `function ${id}`, "", 0, "", 0];

				return h(
					"li",
					{},
					h("span", {
						class: "swatch",
						"aria-hidden": "true",
						style: { background: ctx.color(fn) },
					}),
					textButton(shortName(fn[1]), () => ctx.select(fn), "link", { title: cleanName(fn[1]) }),
					h("span", { class: "num" }, ctx.format(weight, info.unit)),
					h("span", { class: "num muted" }, ctx.percent(weight, info.cum))
				);
			})
		)
	);
}

function labelRows(labels, ctx, info) {
	return (labels || [])
		.filter(label => label.values?.length)
		.map(label =>
			h(
				"section",
				{},
				h("h3", {}, "Label " + cleanName(label.key, 60)),
				h(
					"ul",
					{ class: "relatives" },
					label.values.map(([value, weight]) =>
						h(
							"li",
							{},
							h(
								"span",
								{ class: "label-value", title: cleanName(String(value)) },
								cleanName(String(value), 80)
							),
							h("span", { class: "num" }, ctx.format(weight, info.unit)),
							h("span", { class: "num muted" }, ctx.percent(weight, info.cum))
						)
					)
				)
			)
		);
}

function nameBlock(fn, ctx) {
	const place = placeOf(fn, true),
		badges = [];

	if (fn[5] & 1)
		badges.push("inlined");
	if (fn[5] & 2)
		badges.push(fn[5] & 8 ? "addresses without names" : "no name in the profile");
	if (fn[5] & 4)
		badges.push("label");
	const why = fn[5] & 2 ? whyLink(ctx) : null;

	if (why)
		tellWhy(why, fn, ctx);
	return h(
		"div",
		{ class: "name-block" },
		h(
			"p",
			{ class: "name" },
			h("span", { class: "swatch", "aria-hidden": "true", style: { background: ctx.color(fn) } }),
			cleanName(fn[1])
		),
		place && h("p", { class: "muted place", title: place }, place),
		editorLink(ctx, fn[2], fn[3]),
		fn[4] && h("p", { class: "muted place" }, cleanName(fn[4], 300)),
		badges.length
			? h(
					"p",
					{},
					badges.map(text => h("span", { class: "badge" }, text))
				)
			: null,
		why
	);
}

function frameBlock(frame, ctx) {
	if (!frame)
		return null;
	const base = ctx.total?.total;

	return h(
		"section",
		{},
		h("h3", {}, "This frame"),
		meter("Total", frame.total, base, ctx, frame.unit),
		meter("Self", frame.self, base, ctx, frame.unit),
		h(
			"p",
			{ class: "muted" },
			[
				frame.parent && `${ctx.percent(frame.total, frame.parent)} of its caller`,
				frame.zoom() && `${ctx.percent(frame.total, frame.zoom())} of the zoom`,
			]
				.filter(Boolean)
				.join(" · ")
		)
	);
}

function functionBlock(info, ctx) {
	const base = info.total ?? ctx.total?.total,
		functions = new Map((info.functions || []).map(fn => [fn[0], fn]));

	return [
		h(
			"section",
			{},
			h("h3", {}, "Everywhere"),
			meter("Total", info.cum, base, ctx, info.unit),
			meter("Self", info.flat, base, ctx, info.unit),
			info.samples !== undefined &&
				h("p", { class: "muted" }, `${formatCount(info.samples)} sample${info.samples === 1 ? "" : "s"}`)
		),
		relatives("Callers", info.callers, functions, ctx, info),
		relatives("Callees", info.callees, functions, ctx, info),
		labelRows(info.labels, ctx, info),
	];
}

function actionBlock(fn, ctx) {
	return h(
		"section",
		{},
		h("h3", {}, "Actions"),
		h(
			"div",
			{ class: "actions" },
			ctx
				.actions(fn)
				.filter(action => !action.separator && !action.url)
				.map(action => textButton([action.label, action.key && h("kbd", {}, action.key)], action.run))
		)
	);
}

/** Facts about the profile, as [what, text]. */
export function profileFacts(ctx) {
	const p = ctx.profile || {},
		type = ctx.sampleType();

	return [
		["Profile", p.name],
		["Program", p.file],
		["Type", type && `${type.type} in ${type.unit}`],
		["Time", p.time],
		["Duration", p.duration_nanos ? formatValue(p.duration_nanos, "nanoseconds") : ""],
		["Samples", p.samples !== undefined ? formatCount(p.samples) : ""],
		["Total", ctx.total ? ctx.format(ctx.total.total, ctx.total.unit) : ""],
		[
			"Period",
			p.period && p.period_type
				? `${formatValue(p.period, p.period_unit)} ${p.period_type}`
				: "",
		],
	].filter(fact => fact[1]);
}

/** The facts as a list. */
export function factList(ctx) {
	const comments = (ctx.profile?.comments || []).map(text => h("p", { class: "muted place" }, cleanName(text, 500))),
		more = comments.splice(SHOWN_COMMENTS);

	return [
		h(
			"dl",
			{ class: "facts" },
			profileFacts(ctx).map(([what, text]) => [h("dt", {}, what), h("dd", {}, cleanName(String(text), 300))])
		),
		comments,
		more.length ? h("details", {}, h("summary", { class: "muted" }, `${formatCount(more.length)} more`), more) : null,
	];
}

function emptyBlock(ctx) {
	return [
		h("p", { class: "muted" }, "Select a function to see its callers, callees and labels."),
		h("section", {}, h("h3", {}, "This profile"), factList(ctx)),
	];
}

/** @param {any} ctx */
export function createInspector(ctx) {
	const body = h("div", { class: "inspector-body", tabindex: 0, role: "group", "aria-label": "Details" });
	const element = h(
		"aside",
		{ class: "inspector", "aria-label": "Inspector" },
		h(
			"header",
			{},
			h("h2", {}, "Inspector"),
			iconButton("close", "Hide the inspector (i)", () => ctx.toggleInspector())
		),
		body
	);
	let running = null,
		shown = "";

	function draw(fn, info, note) {
		clear(body).append(
			...[
				nameBlock(fn, ctx),
				frameBlock(ctx.selectedFrame, ctx),
				info && functionBlock(info, ctx),
				note && h("p", { class: "muted" }, note),
				actionBlock(fn, ctx),
			]
				.flat(4)
				.filter(Boolean)
		);
	}

	async function load(fn) {
		running = new AbortController();
		const { signal } = running;

		try {
			const info = isSingleFile()
				? functionFacts(await ctx.api.flame({}), fn[0])
				: await ctx.api.get("function", { id: fn[0] }, { signal });

			info.unit = info.unit || ctx.total?.unit;
			draw(fn, info);
		} catch (error) {
			if (!isAbort(error))
				draw(fn, null, error.message);
		}
	}

	/** @param {string} dataKey what the data depends on */
	function update(dataKey) {
		const fn = ctx.selected,
			next = JSON.stringify([fn && fn[0], ctx.selectedFrame?.path, dataKey, Boolean(ctx.total), ctx.theme]);

		if (element.hidden || next === shown)
			return;
		shown = next;
		running?.abort();
		if (!fn) {
			clear(body).append(...emptyBlock(ctx).flat(3).filter(Boolean));
			return;
		}
		// The root and label frames are no functions.
		const known = fn[0] !== 0 && !(fn[5] & 12) && fn[1] !== "root";

		if (!body.querySelector(".name") || !known)
			draw(fn, null);
		if (known)
			load(fn);
	}
	return { element, update };
}
