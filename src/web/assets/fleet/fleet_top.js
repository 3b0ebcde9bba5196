// The Fleet top page: the functions that take most over all services, in cores; or packages, modules, what they do.
import { h, clear, selectField } from "../dom.js";
import { cleanName, exactPattern, formatCount, formatPercent, unitSeconds } from "../format.js";
import { latest, pageNote } from "../pages.js";
import { addCondition, askAgain, coresText, levelText, nameField, queryField, refill, selectionParams, spanField, timeText, usualType, valueField, viewerUrl, windowOf } from "./selection.js";
import { plainTable } from "./storage.js";

const TOP_SPAN = "1d",
	TOP_ROWS = 100,
	TOP_SERVICES = 30,
	TYPING_MS = 250,
	HOURS_A_MONTH = 730;
const TOP_GROUPS = [["", "functions"], ["package", "packages"], ["module", "modules"], ["category", "what they do"], ["owner", "owners"]];
const TOP_ORDERS = [["cores", "what they take"], ["services", "number of services"], ["trend", "growth"], ["cum", "with what they call"]];

const topChoices = list => list.map(([value, text]) => ({ value, text }));
const isCores = ({ unit, per_second: isPerSecond }) => isPerSecond && unitSeconds(unit) > 0;
/** Of times the API has cores, whatever their unit. */
export const rateText = (rate, what) => (isCores(what) ? coresText(rate) : levelText(rate, what.unit, what.per_second));

/** What the answer lacks, if anything. */
const leftOutText = answer => (answer.left_out ? `; ⚠ ${cleanName(answer.left_out.why, 400)}` : "");

function growthText(row, what) {
	const part = row.cores - row.trend / 2, // what it took at first; nothing, but for what rounding leaves
		isNew = part < row.trend / 1e6;

	if (Math.abs(row.trend) < 1e-9 || Math.abs(row.trend) < row.cores / 100)
		return "steady";
	return `${row.trend > 0 ? "▲" : "▼"} ${rateText(Math.abs(row.trend), what)}${isNew ? " (new)" : part > 0 ? ` (${row.trend > 0 ? "+" : "−"}${formatPercent(Math.abs(row.trend), part)})` : ""}`;
}

/** What so many cores cost; the money is that of the price. */
function costText(cores, price) {
	const cost = cores * price * HOURS_A_MONTH;

	return cost >= 100 ? formatCount(Math.round(cost)) : cost.toFixed(2);
}

/** The heaviest; others if services that have it are of others. */
function ownerCell({ owner, owners, other_owners: others = [] }) {
	const name = cleanName(owner, 80);

	if (owners < 2)
		return name;
	return h("details", {}, h("summary", {}, `${name} + ${formatCount(owners - 1)}`),
		h("ul", { class: "row-list" }, others.map(other => h("li", {}, cleanName(other, 80)))),
		owners - 1 > others.length ? h("p", { class: "muted" }, `and ${formatCount(owners - 1 - others.length)} more`) : "");
}

function mountFleetTop(element, ctx) {
	const span = spanField(ctx, TOP_SPAN),
		service = nameField(ctx, "Service", "service", "all services"),
		type = nameField(ctx, "Type", "type", "", value => ({ type: value || null, st: null })),
		value = valueField(ctx),
		each = nameField(ctx, "For each", "by", "nothing"),
		query = queryField(ctx),
		group = selectField("Show", topChoices(TOP_GROUPS), "", choice => ctx.set({ group: choice || null, f: null })),
		order = selectField("By", topChoices(TOP_ORDERS), "cores", choice => ctx.set({ sort: choice === "cores" ? null : choice })),
		filter = h("input", { type: "search", class: "query", placeholder: "Search", "aria-label": "Search functions" }),
		price = h("input", { type: "number", class: "price", min: 0, step: "any", placeholder: "price", title: "What a core costs for an hour: then there is what functions cost in a month" }),
		priceField = h("label", { class: "field" }, h("span", { class: "muted" }, "Core hour"), price),
		count = h("p", { class: "muted", role: "status" }),
		body = h("div", { class: "sections" }),
		run = latest(ctx, body);
	let key = null,
		answer = null,
		isEmpty = false,
		hasOwners = false,
		shownPrice = "",
		typing = 0;

	element.append(h("div", { class: "toolbar wrap" }, service, type, value, span, group, each, order, priceField, filter, query), h("div", { class: "sections" }, count), body);
	price.addEventListener("change", () => ctx.set({ price: Number(price.value) > 0 ? price.value : null }));
	filter.addEventListener("input", () => {
		clearTimeout(typing);
		typing = setTimeout(() => ctx.set({ q: filter.value || null }, { push: false }), TYPING_MS);
	});

	const selection = () => ({ ...selectionParams(ctx.state, TOP_SPAN), type: ctx.state.type || type.usual }),
		params = () => ({ ...selection(), sample_type: ctx.state.st, group: ctx.state.group, fresh: false });

	/** What a row is of, for the viewer. */
	function rowSelection(row) {
		const { by } = ctx.state,
			found = selection();

		if (!by)
			return found;
		return by === "service" ? { ...found, service: row.by } : { ...found, query: addCondition(found.query, by, row.by) };
	}

	/** A function between its callers and callees, and all stacks that have it: over all that the row is of. */
	function nameCell(row) {
		const name = cleanName(row.function, 200) || "(no name)",
			open = (page, more) => viewerUrl(page, rowSelection(row), null, { si: ctx.state.st, ...more });

		if (ctx.state.group || !row.function)
			return name;
		return h("div", { class: "fn-cell" },
			h("a", { class: "row-link", href: open("sandwich", { fn: row.function }), title: "Callers and callees" }, name),
			h("a", { class: "link-more", href: open("flamegraph", { f: exactPattern([0, row.function, "", 0, "", 0]) }), "aria-label": `Flame graph of ${name}` }, "Flame"));
	}

	/** Which services have it: asked for when somebody wants to know. */
	function servicesOf(row) {
		const list = h("div", {}),
			details = h("details", { open: ctx.state.f === row.function }, h("summary", {}, formatCount(row.services)), list);

		async function load() {
			const found = await ctx.api.get("top", { ...params(), function: row.function, by: "service", sort: "cores", limit: TOP_SERVICES });

			clear(list).append(
				h("ul", { class: "row-list" }, found.rows.map(item => h("li", {}, h("a", { href: ctx.url("timeline", { service: item.by, type: params().type, st: ctx.state.st, fn: ctx.state.group ? undefined : row.function }) }, cleanName(item.by, 80) || "(no name)"), ` ${rateText(item.cores, found)}`))),
				row.services > found.rows.length ? h("p", { class: "muted" }, `and ${formatCount(row.services - found.rows.length)} more`) : ""
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
		const { rows } = answer,
			what = (TOP_GROUPS.find(([choice]) => choice === state.group) || TOP_GROUPS[0])[1],
			isFunctions = !state.group,
			isOwned = isFunctions && hasOwners,
			isPriced = Number(state.price) > 0 && isCores(answer),
			verbs = answer.per_second ? ["takes", "take"] : ["has", "have"];
		const heads = [what[0].toUpperCase() + what.slice(1), ...(state.by ? [cleanName(state.by, 40)] : []), answer.per_second ? "Takes#" : "In use#", "Of all#", ...(isPriced ? ["A month#"] : []), ...(isFunctions ? ["With what it calls#"] : []), "Growth#", "Services", ...(isOwned ? ["Owner"] : []), ...(isFunctions ? ["Module"] : [])];

		shownPrice = state.price;
		priceField.hidden = !isCores(answer);
		count.textContent = `${formatCount(answer.services)} ${answer.services === 1 ? `service ${verbs[0]}` : `services ${verbs[1]}`} ${rateText(answer.cores, answer)}${isPriced ? `, ${costText(answer.cores, state.price)} a month` : ""}; ${formatCount(answer.profiles)} profiles from ${timeText(Date.parse(answer.from) / 1000)} to ${timeText(Date.parse(answer.to) / 1000)}; ${formatCount(rows.length)} of ${formatCount(answer.found)} rows${state.q ? ` with this text, of ${formatCount(answer.functions)}` : ""}${leftOutText(answer)}`;
		refill(
			body,
			rows.length
				? plainTable("Fleet top", heads, rows.map(row => [
						nameCell(row), ...(state.by ? [cleanName(row.by, 80) || "(none)"] : []), rateText(row.cores, answer), formatPercent(row.share || 0, 1), ...(isPriced ? [costText(row.cores, state.price)] : []),
						...(isFunctions ? [formatPercent(row.cum, answer.total)] : []),
						growthText(row, answer), state.by ? formatCount(row.services) : servicesOf(row), ...(isOwned ? [ownerCell(row)] : []), ...(isFunctions ? [cleanName(row.module.replace(/^.*\//, ""), 60)] : []),
					]))
				: pageNote("Nothing found", h("p", {}, state.q ? "No name has this text." : "No profiles of this time have it."))
		);
	}

	async function load(signal) {
		const [{ types }, { services }, label, stats] = await Promise.all([
			ctx.api.get("types", { service: ctx.state.service, query: ctx.state.query }, { signal }),
			ctx.api.get("services", { limit: 10000 }, { signal }),
			ctx.versionLabel(),
			ctx.api.get("stats", {}, { signal }),
		]);

		hasOwners = stats.owners > 0;
		showGroups(ctx.state);
		service.setNames(services.map(item => item.name));
		each.setNames(["service", label]);
		type.setNames(types.map(item => item.name));
		type.usual = usualType(types.map(item => item.name));
		showTypes(ctx.state);
		if (!types.length) {
			isEmpty = true;
			count.textContent = "";
			clear(body).append(pageNote("No profiles yet", h("p", {}, "See kiln-serve(1) for how to push or scrape them.")));
			return;
		}
		answer = await ctx.api.get("top", { ...params(), by: ctx.state.by, search: ctx.state.q, sort: ctx.state.sort || "cores", limit: TOP_ROWS }, { signal });
		isEmpty = !answer.rows.length && !ctx.state.q;
		show(ctx.state);
	}

	/** It is as of now, unless somebody said until when, or looks at a row. */
	const stop = askAgain(body, () => isEmpty, () => !ctx.state.f && windowOf(ctx.state, TOP_SPAN).isLive && run(load));

	/** Owners are offered if there are rules for them. */
	function showGroups(state) {
		const select = group.querySelector("select"),
			choices = TOP_GROUPS.filter(([choice]) => choice !== "owner" || hasOwners || state.group === choice);

		if (select.options.length !== choices.length)
			select.replaceChildren(...choices.map(([choice, text]) => h("option", { value: choice }, text)));
		group.set(state.group || "");
	}

	function showTypes(state) {
		type.update({ type: state.type || type.usual });
		value.update({ type: state.type || type.usual, st: state.st });
	}

	return {
		update(state) {
			const next = JSON.stringify([state.service, state.type, state.st, state.query, state.from, state.to, state.group, state.by, state.sort, state.q]);

			[service, span, query, each].forEach(field => field.update(state));
			showTypes(state);
			showGroups(state);
			order.set(state.sort || "cores");
			if (document.activeElement !== price)
				price.value = state.price || "";
			if (document.activeElement !== filter)
				filter.value = state.q || "";
			if (next !== key) {
				key = next;
				isEmpty = false;
				run(load);
			} else if (answer && shownPrice !== state.price) {
				show(state);
			}
		},
		get stats() {
			return { rows: answer?.rows.length };
		},
		destroy() {
			stop();
			clearTimeout(typing);
			run.stop();
		},
	};
}

export const fleetTopPage = { id: "fleet_top", title: "Fleet top", mount: mountFleetTop };
