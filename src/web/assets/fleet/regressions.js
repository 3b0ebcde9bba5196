// The Regressions page: what became slower, how sure that is, and what people say of it.
import { h, clear, selectField, textButton } from "../dom.js";
import { cleanName, formatCount, formatPercent } from "../format.js";
import { latest, pageNote } from "../pages.js";
import { agoText, nameField, timeText, viewerUrl } from "./selection.js";
import { rateText } from "./fleet_top.js";
import { plainTable } from "./storage.js";

const FINDING_STATES = ["new", "acknowledged", "expected", "fixed"];

const pointsText = share => `${share >= 0 ? "+" : "−"}${formatPercent(Math.abs(share), 1)}`;
const secondsOf = text => (text ? Date.parse(text) / 1000 : 0);

/** The two sides in the viewer: before and after. */
function findingUrl(row) {
	const side = (version, from, to) => ({ service: row.service, type: row.type, query: version ? `version=${JSON.stringify(version)}` : undefined, from: secondsOf(from).toFixed(3), to: secondsOf(to).toFixed(3) });

	return viewerUrl("compare", side(row.old_version, row.old_from, row.old_to), side(row.new_version, row.new_from, row.new_to));
}

function mountRegressions(element, ctx) {
	const service = nameField(ctx, "Service", "service", "all services"),
		status = selectField("Status", [{ value: "", text: "any" }, ...FINDING_STATES.map(value => ({ value, text: value }))], "", value => ctx.set({ status: value || null })),
		which = selectField("Show", [{ value: "", text: "what is there now" }, { value: "all", text: "what has gone, too" }], "", value => ctx.set({ which: value || null })),
		now = textButton("Compare now", () => run(async signal => load(signal, "POST")), "btn"),
		summary = h("p", { class: "muted", role: "status" }),
		body = h("div", { class: "sections" }),
		run = latest(ctx, body);
	let key = null,
		answer = null;

	element.append(h("div", { class: "toolbar wrap" }, service, status, which, now), h("div", { class: "sections" }, summary), body);

	function statusField(row) {
		const select = h("select", { "aria-label": `Status of ${cleanName(row.function, 80)}` }, FINDING_STATES.map(value => h("option", { value, selected: value === row.status }, value)));

		select.addEventListener("change", async () => {
			try {
				const said = await ctx.api.get(`regressions/${row.id}`, { status: select.value }, { method: "PUT" });

				Object.assign(row, said);
				ctx.announce(`${row.function} is ${said.status}`);
				show();
			} catch (error) {
				select.value = row.status;
				ctx.error(error);
			}
		});
		return h("div", { class: "said" }, select, row.status_at ? h("span", { class: "muted" }, `${cleanName(row.status_by, 40)}, ${agoText(row.status_at)}`) : "");
	}

	const cellsOf = row => [
		h("div", {}, h("strong", {}, cleanName(row.function, 200)), row.current ? "" : h("span", { class: "muted" }, " gone")),
		h("div", {}, h("a", { href: ctx.url("timeline", { service: row.service, type: row.type }) }, cleanName(row.service, 80)), h("span", { class: "muted" }, ` ${cleanName(row.type, 40)}`)),
		row.kind === "version" ? `${cleanName(row.old_version, 40)} → ${cleanName(row.new_version, 40)}` : "this window, the last",
		h("div", {}, `${pointsText(row.change)}`, h("div", { class: "muted" }, `${pointsText(row.change_low)} to ${pointsText(row.change_high)}`)),
		h("div", {}, rateText(row.new_cores - row.old_cores, row.unit), h("div", { class: "muted" }, `${rateText(row.old_cores, row.unit)} → ${rateText(row.new_cores, row.unit)}`)),
		`${formatCount(Math.round(row.old_samples))} → ${formatCount(Math.round(row.new_samples))}`,
		timeText(secondsOf(row.changed)),
		statusField(row),
		h("a", { href: findingUrl(row) }, "Compare"),
	];

	function show() {
		const { results } = answer;

		summary.textContent = `${formatCount(answer.total)} listed; ${formatCount(results.compared)} comparisons made, ${formatCount(results["not enough samples"])} with not enough samples, ${formatCount(results["nothing to compare with"])} with nothing to compare with; all services looked at ${agoText(answer.looked)}`;
		clear(body).append(
			answer.regressions.length
				? plainTable("Regressions", ["Function", "Service", "Compared", "Of its service#", "Takes more#", "Samples#", "Changed", "Status", "More"], answer.regressions.map(cellsOf))
				: pageNote("Nothing became slower", h("p", {}, "No function takes more of its service than before, by more than chance and the limits of --regression-share and --regression-cores. Where there are not enough samples nothing can be told."))
		);
	}

	async function load(signal, method) {
		const { state } = ctx;

		answer = await ctx.api.get("regressions", { service: state.service, status: state.status, current: state.which ? undefined : true, limit: 500 }, { signal, method });
		service.setNames((await ctx.api.get("services", {}, { signal })).services.map(item => item.name));
		show();
	}

	return {
		update(state) {
			const next = JSON.stringify([state.service, state.status, state.which]);

			service.update(state);
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
