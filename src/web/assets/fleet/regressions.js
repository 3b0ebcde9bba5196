// The Regressions page: what became slower, how sure that is, and what people say of it.
import { h, selectField, textButton } from "../dom.js";
import { cleanName, formatCount, formatPercent } from "../format.js";
import { openDialog } from "../dialog.js";
import { latest, pageNote } from "../pages.js";
import { addCondition, agoText, nameField, refill, timeText, viewerUrl } from "./selection.js";
import { rateText } from "./fleet_top.js";
import { plainTable } from "./storage.js";

const FINDING_STATES = ["new", "acknowledged", "expected", "fixed"],
	FINDING_KINDS = [["version", "versions"], ["window", "windows of time"]],
	MOST_FINDINGS = 500,
	MOST_NOTE = 1000;

const pointsText = share => `${share >= 0 ? "+" : "−"}${formatPercent(Math.abs(share), 1)}`;
const amountText = (cores, { unit, gauge }) => rateText(cores, { unit, per_second: !gauge });
const secondsOf = text => (text ? Date.parse(text) / 1000 : 0);

/** The two sides in the viewer, before and after, as a table of that function. */
function findingUrl(row, label) {
	const side = (version, from, to) => ({ service: row.service, type: row.type, query: version ? addCondition("", label, version) : undefined, from: secondsOf(from).toFixed(3), to: secondsOf(to).toFixed(3) });

	return viewerUrl("compare", side(row.old_version, row.old_from, row.old_to), side(row.new_version, row.new_from, row.new_to), { si: row.sample_type, cv: row.function ? "table" : undefined, q: row.function });
}

/** What was compared, as a finding that has no function. */
function comparedUrl(row, label) {
	const { old, new: now } = row;

	return findingUrl({ service: row.service, type: row.type, old_version: old.version, old_from: old.from, old_to: old.to, new_version: now.version, new_from: now.from, new_to: now.to }, label);
}

function kindText({ kind, old_version: old, new_version: now }) {
	if (kind !== "version")
		return "this window, the last";
	return old || now ? `${cleanName(old || "(none)", 40)} → ${cleanName(now || "(none)", 40)}` : "versions";
}

// ---- what people say of it

function openSaying(ctx, row, said) {
	const status = selectField("Status", FINDING_STATES.map(value => ({ value, text: value })), row.status, () => {}),
		note = h("textarea", { rows: 4, maxlength: MOST_NOTE, "aria-label": "Note", value: row.note || "" }),
		problem = h("p", { class: "bad", role: "alert" });

	openDialog({
		title: `What is ${cleanName(row.function, 60)}?`,
		class: "saying",
		body: [status, h("label", { class: "note-field" }, h("span", { class: "muted" }, "Note: why, or where it is written down"), note), problem],
		buttons: [{ label: "Save", primary: true, run: async () => {
			try {
				// A note that is empty is sent, too.
				Object.assign(row, await ctx.api.get(`regressions/${row.id}?${new URLSearchParams({ status: status.querySelector("select").value, note: note.value.trim() })}`, {}, { method: "PUT" }));
				said();
				ctx.announce(`${row.function} is ${row.status}`);
				return true;
			} catch (error) {
				problem.textContent = cleanName(error.message, 500);
				return false;
			}
		} }],
	});
}

function saidCell(ctx, row) {
	const button = textButton("", () => openSaying(ctx, row, show), "btn small"),
		who = h("span", { class: "muted" }),
		note = h("span", { class: "note" });

	function show() {
		button.textContent = `${row.status}…`;
		button.setAttribute("aria-label", `Status of ${cleanName(row.function, 80)}: ${row.status}`);
		who.textContent = row.status_at ? `${cleanName(row.status_by, 40)}, ${agoText(row.status_at)}` : "";
		note.textContent = (row.note || "").split("\n").map(line => cleanName(line, MOST_NOTE)).join("\n");
	}
	show();
	return h("div", { class: "said" }, button, who, note);
}

// ---- what was compared

/** What needs a look first. */
const RESULT_SIGNS = { failed: "▲", "not enough samples": "▲", compared: "●", "nothing to compare with": "–" };

function comparedCells(ctx, row, label) {
	const isBoth = row.old.profiles && row.new.profiles;

	return [
		h("a", { href: ctx.url("timeline", { service: row.service, type: row.type }) }, cleanName(row.service, 80)), cleanName(row.type, 40),
		kindText({ kind: row.kind, old_version: row.old.version, new_version: row.new.version }),
		h("span", {}, h("span", { "aria-hidden": "true" }, `${RESULT_SIGNS[row.result] || "▲"} `), cleanName(row.result, 60), row.why ? h("div", { class: "muted" }, cleanName(row.why, 300)) : ""),
		`${formatCount(Math.round(row.old.samples || 0))} → ${formatCount(Math.round(row.new.samples || 0))}`, formatCount(row.found), formatCount(row.faster),
		row.result === "compared" && row.detectable ? pointsText(row.detectable) : "–", agoText(row.at),
		isBoth ? h("a", { href: comparedUrl(row, label), "aria-label": `Compare ${cleanName(row.service, 80)} ${cleanName(row.type, 40)}, ${row.kind}` }, "Compare") : "",
	];
}

function comparedSection(ctx, answer, label) {
	const rank = row => Object.keys(RESULT_SIGNS).indexOf(row.result),
		list = [...answer.comparisons].sort((a, b) => rank(a) - rank(b) || b.found - a.found);
	const details = h("details", { class: "compared", open: Boolean(ctx.state.cmp) }, h("summary", {}, `All comparisons (${formatCount(list.length)})`),
		list.length
			? plainTable("Comparisons", ["Service", "Type", "Compared", "Result", "Samples#", "Slower#", "Faster#", "Would be seen#", "When", "More"], list.map(row => comparedCells(ctx, row, label)))
			: h("p", { class: "muted" }, "Nothing has been compared yet."));

	details.addEventListener("toggle", () => details.open !== Boolean(ctx.state.cmp) && ctx.set({ cmp: details.open ? 1 : null }, { push: false }));
	return details;
}

// ---- the page

const anyOf = choices => [{ value: "", text: "any" }, ...choices.map(([value, text]) => ({ value, text }))];

function mountRegressions(element, ctx) {
	const service = nameField(ctx, "Service", "service", "all services"),
		type = nameField(ctx, "Type", "type", "any"),
		kind = selectField("Of", anyOf(FINDING_KINDS), "", value => ctx.set({ kind: value || null })),
		status = selectField("Status", anyOf(FINDING_STATES.map(value => [value, value])), "", value => ctx.set({ status: value || null })),
		which = selectField("Show", [{ value: "", text: "what is there now" }, { value: "all", text: "what has gone, too" }], "", value => ctx.set({ which: value || null })),
		now = textButton("Compare now", () => run(async signal => load(signal, "POST")), "btn"),
		summary = h("p", { class: "muted", role: "status" }),
		body = h("div", { class: "sections" }),
		run = latest(ctx, body);
	let key = null,
		answer = null,
		label = "version";

	element.append(h("div", { class: "toolbar wrap" }, service, type, kind, status, which, now), h("div", { class: "sections" }, summary), body);

	const cellsOf = row => [
		h("div", {}, h("strong", {}, cleanName(row.function, 200)), row.current ? "" : h("span", { class: "muted" }, " gone")),
		h("div", {}, h("a", { href: ctx.url("timeline", { service: row.service, type: row.type, st: row.sample_type, fn: row.function }) }, cleanName(row.service, 80)), h("span", { class: "muted" }, ` ${cleanName(row.type, 40)}`)),
		kindText(row),
		h("div", {}, `${pointsText(row.change)}`, h("div", { class: "muted" }, `${pointsText(row.change_low)} to ${pointsText(row.change_high)}`)),
		h("div", {}, amountText(row.new_cores - row.old_cores, row), h("div", { class: "muted" }, `${amountText(row.old_cores, row)} → ${amountText(row.new_cores, row)}`)),
		`${formatCount(Math.round(row.old_samples))} → ${formatCount(Math.round(row.new_samples))}`,
		timeText(secondsOf(row.changed)),
		saidCell(ctx, row),
		h("a", { href: findingUrl(row, label), "aria-label": `Compare ${cleanName(row.function, 80)} of ${cleanName(row.service, 80)}` }, "Compare"),
	];

	function show() {
		const { results, regressions: list } = answer;

		summary.textContent = `${formatCount(answer.total)} listed${answer.total > list.length ? `, of which ${formatCount(list.length)} are shown` : ""}; ${formatCount(results.compared)} ${results.compared === 1 ? "comparison" : "comparisons"} made, ${formatCount(results["not enough samples"])} with not enough samples, ${formatCount(results["nothing to compare with"])} with nothing to compare with; all services looked at ${agoText(answer.looked)}`;
		refill(
			body,
			list.length
				? plainTable("Regressions", ["Function", "Service", "Compared", "Of its service#", "Takes more#", "Samples#", "Changed", "Status", "More"], list.map(cellsOf))
				: pageNote("Nothing became slower", h("p", {}, "No function takes more of its service than before, by more than chance and the limits of --regression-share and --regression-cores. Where there are not enough samples nothing can be told.")),
			comparedSection(ctx, answer, label)
		);
	}

	async function load(signal, method) {
		const { state } = ctx,
			wanted = { service: state.service, type: state.type, kind: state.kind, status: state.status, current: state.which ? undefined : true, comparisons: true, limit: MOST_FINDINGS };
		const [found, services, types, version] = await Promise.all([
			ctx.api.get("regressions", wanted, { signal, method }),
			ctx.api.get("services", { limit: 10000 }, { signal }),
			ctx.api.get("types", { service: state.service }, { signal }),
			ctx.versionLabel(),
		]);

		answer = found;
		label = version;
		service.setNames(services.services.map(item => item.name));
		type.setNames(types.types.map(item => item.name));
		show();
	}

	return {
		update(state) {
			const next = JSON.stringify([state.service, state.type, state.kind, state.status, state.which]);

			[service, type].forEach(field => field.update(state));
			kind.set(state.kind || "");
			status.set(state.status || "");
			which.set(state.which || "");
			if (next !== key) {
				key = next;
				run(load);
			}
		},
		get stats() {
			return { rows: answer?.regressions.length };
		},
		destroy: () => run.stop(),
	};
}

export const regressionsPage = { id: "regressions", title: "Regressions", mount: mountRegressions };
