// The Fleet top page: the functions that take most over all services, in cores; or packages, modules, what they do.
import { h, clear, selectField } from "../dom.js";
import { cleanName, formatCount, formatPercent } from "../format.js";
import { latest, pageNote } from "../pages.js";
import { levelText, nameField, queryField, selectionParams, spanField, timeText, usualType } from "./selection.js";
import { plainTable } from "./storage.js";

const TOP_SPAN = "1d",
	TOP_ROWS = 100,
	TOP_SERVICES = 30;
const TOP_GROUPS = [["", "functions"], ["package", "packages"], ["module", "modules"], ["category", "what they do"]];
const TOP_ORDERS = [["cores", "what they take"], ["services", "number of services"], ["trend", "growth"], ["cum", "with what they call"]];

const topChoices = list => list.map(([value, text]) => ({ value, text }));
// The API has cores of times, which levelText wants in nanoseconds.
export const rateText = (rate, unit) => levelText(unit === "nanoseconds" ? rate * 1e9 : rate, unit, true);

function growthText(row, unit) {
	const part = row.cores - row.trend / 2;

	if (Math.abs(row.trend) < 1e-9 || Math.abs(row.trend) < row.cores / 100)
		return "steady";
	return `${row.trend > 0 ? "▲" : "▼"} ${rateText(Math.abs(row.trend), unit)}${part > 0 ? ` (${row.trend > 0 ? "+" : "−"}${formatPercent(Math.abs(row.trend), part)})` : ""}`;
}

function mountFleetTop(element, ctx) {
	const span = spanField(ctx, TOP_SPAN),
		type = nameField(ctx, "Type", "type", ""),
		query = queryField(ctx),
		group = selectField("Show", topChoices(TOP_GROUPS), "", value => ctx.set({ group: value || null, f: null })),
		order = selectField("By", topChoices(TOP_ORDERS), "cores", value => ctx.set({ sort: value === "cores" ? null : value })),
		filter = h("input", { type: "search", class: "query", placeholder: "Search", "aria-label": "Search functions" }),
		count = h("p", { class: "muted", role: "status" }),
		body = h("div", { class: "sections" }),
		run = latest(ctx, body);
	let key = null,
		answer = null;

	element.append(h("div", { class: "toolbar wrap" }, type, span, group, order, filter, query), h("div", { class: "sections" }, count), body);
	filter.addEventListener("input", () => ctx.set({ q: filter.value || null }, { push: false }));

	const params = () => ({ ...selectionParams(ctx.state, TOP_SPAN), type: ctx.state.type || type.usual, group: ctx.state.group, fresh: false });

	/** Which services have it: asked for when somebody wants to know. */
	function servicesOf(row) {
		const list = h("div", {}),
			details = h("details", { open: ctx.state.f === row.function }, h("summary", {}, formatCount(row.services)), list);

		async function load() {
			const { rows, unit } = await ctx.api.get("top", { ...params(), function: row.function, by: "service", sort: "cores", limit: TOP_SERVICES });

			clear(list).append(
				h("ul", { class: "row-services" }, rows.map(item => h("li", {}, h("a", { href: ctx.url("timeline", { service: item.by, type: params().type }) }, cleanName(item.by, 80) || "(no name)"), ` ${rateText(item.cores, unit)}`))),
				row.services > rows.length ? h("p", { class: "muted" }, `and ${formatCount(row.services - rows.length)} more`) : ""
			);
		}
		details.addEventListener("toggle", () => {
			if (details.open && !list.firstChild)
				load().catch(error => ctx.error(error));
			if (details.open !== (ctx.state.f === row.function))
				ctx.set({ f: details.open ? row.function : null }, { push: false });
		});
		return details;
	}

	function show(state) {
		const wanted = (state.q || "").toLowerCase(),
			rows = answer.rows.filter(row => !wanted || row.function.toLowerCase().includes(wanted)),
			what = TOP_GROUPS.find(([value]) => value === (state.group || ""))[1];
		const heads = [what[0].toUpperCase() + what.slice(1), "Takes#", "Of all#", ...(state.group ? [] : ["With what it calls#"]), "Growth", "Services", ...(state.group ? [] : ["Module"])];

		count.textContent = `${formatCount(answer.services)} services take ${rateText(answer.cores, answer.unit)}; ${formatCount(answer.profiles)} profiles from ${timeText(Date.parse(answer.from) / 1000)} to ${timeText(Date.parse(answer.to) / 1000)}; ${formatCount(rows.length)} of ${formatCount(answer.functions)} rows`;
		clear(body).append(
			rows.length
				? plainTable("Fleet top", heads, rows.map(row => [
						cleanName(row.function, 200), rateText(row.cores, answer.unit), formatPercent(row.share || 0, 1),
						...(state.group ? [] : [formatPercent(row.cum, answer.total)]),
						growthText(row, answer.unit), servicesOf(row), ...(state.group ? [] : [cleanName(row.module.replace(/^.*\//, ""), 60)]),
					]))
				: pageNote("Nothing found", h("p", {}, "No profiles of this time have it. The last minutes are left out."))
		);
	}

	async function load(signal) {
		const { types } = await ctx.api.get("types", { query: ctx.state.query }, { signal });

		type.setNames(types.map(item => item.name));
		type.usual = usualType(types.map(item => item.name));
		type.update({ type: ctx.state.type || type.usual });
		if (!types.length) {
			clear(body).append(pageNote("No profiles yet", h("p", {}, "See kiln-serve(1) for how to push or scrape them.")));
			return;
		}
		answer = await ctx.api.get("top", { ...params(), sort: ctx.state.sort || "cores", limit: TOP_ROWS }, { signal });
		show(ctx.state);
	}

	return {
		update(state) {
			const next = JSON.stringify([state.service, state.type, state.query, state.from, state.to, state.group, state.sort]);

			[span, query].forEach(field => field.update(state));
			type.update({ type: state.type || type.usual });
			group.set(state.group || "");
			order.set(state.sort || "cores");
			if (document.activeElement !== filter)
				filter.value = state.q || "";
			if (next !== key) {
				key = next;
				answer = null;
				run(load);
			} else if (answer && (state.q || "") !== this.shown) {
				show(state);
			}
			this.shown = state.q || "";
		},
		get stats() {
			return { rows: answer?.rows.length };
		},
		destroy: () => run.stop(),
	};
}

export const fleetTopPage = { id: "fleet_top", title: "Fleet top", mount: mountFleetTop };
