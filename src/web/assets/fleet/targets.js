// The Targets page: what is scraped, whether it answers, and a profile of it now.
import { h, clear, segmented, selectField, textButton } from "../dom.js";
import { cleanName, formatCount } from "../format.js";
import { openDialog } from "../dialog.js";
import { VirtualTable } from "../table.js";
import { formatSort, isRoomy, latest, pageNote, parseSort } from "../pages.js";
import { agoText, refill, timeText, viewerUrl } from "./selection.js";

const LOOK_MS = 5000,
	CAPTURE_LOOK_MS = 500,
	CAPTURE_TYPES = ["cpu", "heap", "goroutine", "mutex", "block", "allocs"];

const STATE_SIGNS = { up: "●", ok: "●", down: "▲", failing: "▲", new: "○", absent: "–", running: "◐", resting: "◌" };

/** A state as a sign, a word and a colour: never the colour alone. */
function stateText(state) {
	return h("span", { class: `state ${state}` }, h("span", { "aria-hidden": "true" }, (STATE_SIGNS[state] || "○") + " "), state);
}

const labelsText = labels => labels.map(label => `${label.key}=${label.value}`).join(", ");

/** What is said of a problem where there is little room: which URL it was is said elsewhere. */
const reasonOf = problem => problem.replace(/^(?:\w+: )?Get "[^"]*": (?:dial tcp \S+: )?/, "");

/** Why it is down, or which of its profiles fail. */
function problemOf(target) {
	return target.problem || target.profiles.filter(profile => profile.problem).map(profile => `${profile.type}: ${profile.problem}`).join("; ");
}

// ---- a profile now

/** Asks how far it is until it is there; `show` hears each answer. */
async function watchCapture(ctx, id, signal, show) {
	for (;;) {
		const capture = await ctx.api.get(`capture/${encodeURIComponent(id)}`, {}, { signal });

		show(capture);
		if (!["waiting", "running"].includes(capture.state))
			return;
		await new Promise(resolve => setTimeout(resolve, CAPTURE_LOOK_MS));
		if (signal.aborted)
			return;
	}
}

function showCapture(host, capture) {
	const all = capture.seconds || 1,
		done = capture.state === "done" ? 1 : Math.min(1, Math.max(0, 1 - capture.left / all)),
		texts = {
			waiting: capture.problem || "Waiting for its turn.",
			running: `Profiling: ${Math.ceil(capture.left)} s left.`,
			done: "Done.",
			empty: "It is there, and empty: nothing ran in that time.",
			failed: `Failed: ${capture.problem}`,
		};

	clear(host).append(
		h("p", { role: "status" }, cleanName(texts[capture.state] || capture.state, 500)),
		h("progress", { max: 1, value: done, "aria-label": "Progress" }, `${Math.round(done * 100)} %`),
		capture.profile ? h("p", {}, h("a", { class: "btn primary", href: viewerUrl("flamegraph", { id: capture.profile }) }, "Open the profile")) : ""
	);
}

function openCapture(ctx, target) {
	const types = [...new Set([...target.profiles.map(profile => profile.type), ...CAPTURE_TYPES])],
		seconds = h("input", { type: "number", min: 1, max: 300, value: "10", "aria-label": "Seconds" }),
		progress = h("div", { class: "capture" }),
		scope = new AbortController();
	let type = types.includes("cpu") ? "cpu" : types[0],
		isRunning = false;
	const typeField = selectField("Type", types.map(name => ({ value: name, text: cleanName(name, 40) })), type, value => {
		type = value;
	});
	const start = async () => {
		if (isRunning) {
			ctx.announce("One is being taken");
			return;
		}
		isRunning = true;
		opened.element.querySelector(".btn.primary").setAttribute("aria-disabled", "true");
		clear(progress).append(h("p", { role: "status" }, "Asking the target…"));
		try {
			const capture = await ctx.api.post("capture", { target: target.target, type, seconds: Math.round(Number(seconds.value)) || 10 }, { signal: scope.signal });

			showCapture(progress, capture);
			await watchCapture(ctx, capture.id, scope.signal, answer => showCapture(progress, answer));
		} catch (error) {
			if (error.name !== "AbortError")
				clear(progress).append(h("p", { class: "bad", role: "alert" }, cleanName(error.message, 500)));
		}
		isRunning = false;
		opened.element.querySelector(".btn.primary").removeAttribute("aria-disabled");
	};

	const opened = openDialog({
		title: `Profile ${cleanName(target.target, 60)} now`,
		body: [h("div", { class: "page-bar" }, typeField, h("label", { class: "field" }, "Seconds", seconds)), progress],
		buttons: [{ label: "Profile now", primary: true, run: () => { start(); return false; } }],
		closed: () => scope.abort(),
	});
}

// ---- details

function openTarget(ctx, target) {
	const row = profile => h("tr", {}, h("th", { scope: "row" }, cleanName(profile.type, 60)), h("td", {}, stateText(profile.state)), h("td", { class: "num" }, profile.last ? agoText(profile.last) : "never"),
		h("td", { class: "num" }, `${formatCount(profile.ok)} / ${formatCount(profile.failed)}`), h("td", {}, cleanName(profile.problem, 300)));

	openDialog({
		title: cleanName(target.target, 80),
		body: [
			h("dl", { class: "facts" }, [["Service", target.service], ["Labels", labelsText(target.labels) || "none"], ["State", `${target.state}${target.since ? ` since ${timeText(Date.parse(target.since) / 1000)}` : ""}`], ["Problem", problemOf(target) || "none"]]
				.map(([name, text]) => [h("dt", {}, name), h("dd", {}, cleanName(text, 1000))])),
			h("table", { class: "plain" }, h("thead", {}, h("tr", {}, ["Profile", "State", "Last", "Stored / failed", "Problem"].map(text => h("th", { scope: "col" }, text)))), h("tbody", {}, target.profiles.map(row))),
		],
		buttons: [{ label: "Profile now…", primary: true, run: () => { setTimeout(() => openCapture(ctx, target)); } }],
	});
}

// ---- the page

/** What is in the table's row now: its buttons stay as long as they look the same. */
const rowAt = event => event.target.closest("tr").row;

function targetColumns(ctx) {
	return [
		{ key: "state", title: "State", width: 76, get: row => row.state, render: (cell, row) => cell.append(stateText(row.state)) },
		{ key: "target", title: "Target", min: 140, get: row => row.target, render: (cell, row) => cell.append(textButton(cleanName(row.target, 120), event => openTarget(ctx, rowAt(event)), "link row-link")) },
		{ key: "service", title: "Service", width: 150, get: row => row.service, hide: !isRoomy(600) },
		{ key: "job", title: "Job", width: 110, get: row => row.job, hide: !isRoomy(900) },
		{ key: "labels", title: "Labels", width: 180, get: row => labelsText(row.labels), hide: !isRoomy(1200) },
		{ key: "last", title: "Last", width: 92, hide: !isRoomy(420), number: true, get: row => Date.parse(row.last) || 0, text: row => agoText(row.last) },
		{ key: "problem", title: "Problem", width: isRoomy(1000) ? 280 : 160, get: problemOf, text: row => reasonOf(problemOf(row)), hide: !isRoomy(700) },
		{ key: "now", title: "Action", width: 104, get: () => "", render: (cell, row) => cell.append(textButton("Profile…", event => openCapture(ctx, rowAt(event)), "btn small in-row", { "aria-label": `Profile ${cleanName(row.target, 60)} now` })) },
	];
}

const EMPTY_TARGETS = () => pageNote(
	"Nothing is scraped",
	h("p", {}, "Programs push profiles by themselves, or the server asks them for some. In its configuration file:"),
	h("pre", { tabindex: 0 }, "scrape:\n  - job: web\n    interval: 1m\n    targets: [\"web-1:6060\", \"web-2:6060\"]"),
	h("p", {}, "See kiln-serve(5).")
);

/** What is wrong with jobs, and which of their targets are none and why: a list that opens. */
function jobProblems(ctx, jobs) {
	const leftOut = job => {
		const count = job.left_out.length + job.more_left_out,
			details = h("details", { class: "left-out", open: ctx.state.left === job.job }, h("summary", {}, cleanName(`${job.job}: ${formatCount(count)} left out`, 120)),
				h("ul", {}, job.left_out.map(text => h("li", {}, cleanName(text, 500))), job.more_left_out ? h("li", { class: "muted" }, `and ${formatCount(job.more_left_out)} more`) : null));

		details.addEventListener("toggle", () => details.open !== (ctx.state.left === job.job) && ctx.set({ left: details.open ? job.job : null }, { push: false }));
		return h("div", { class: "banner" }, details);
	};

	return jobs.flatMap(job => [
		job.problem && h("p", { class: "banner" }, h("span", { class: "text" }, cleanName(`${job.job}: ${job.problem}`, 500))),
		job.left_out?.length && leftOut(job),
	]).filter(Boolean);
}

function mountTargets(element, ctx) {
	const count = h("span", { class: "muted count", role: "status" }),
		filter = h("input", { type: "search", class: "query", placeholder: "Search targets", "aria-label": "Search targets" }),
		states = segmented("State", ["all", "up", "down"].map(value => ({ value, text: value })), "all", value => ctx.set({ state: value === "all" ? null : value })),
		bar = h("div", { class: "toolbar wrap" }, filter, states, count, h("span", { class: "spacer" })),
		problems = h("div", { class: "problems" }),
		body = h("div", { class: "fill-body" }),
		run = latest(ctx, body);
	let table = null,
		jobs = null,
		problemsKey = "",
		timer = 0;

	element.classList.add("fill");
	element.append(bar, problems, body);
	filter.addEventListener("input", () => ctx.set({ q: filter.value || null }, { push: false }));

	function clearTable() {
		table?.tools.remove();
		table?.destroy();
		table = null;
		clear(body);
	}

	/** Those that are the same stay: somebody may be reading them. */
	function showProblems(state) {
		const next = JSON.stringify([state.left, jobs.map(job => [job.job, job.problem, job.left_out, job.more_left_out])]);

		if (next === problemsKey)
			return;
		problemsKey = next;
		refill(problems, ...jobProblems(ctx, jobs));
	}

	function show(state) {
		const all = jobs.flatMap(job => job.targets.map(target => ({ ...target, job: job.job }))),
			wanted = (state.q || "").toLowerCase(),
			shown = all.filter(row => (!state.state || row.state === state.state) && [row.target, row.service, row.job, labelsText(row.labels)].some(text => text.toLowerCase().includes(wanted)));

		count.textContent = `${formatCount(all.filter(row => row.state === "up").length)} up, ${formatCount(all.filter(row => row.state === "down").length)} down, ${formatCount(all.length)} in all`;
		showProblems(state);
		if (!all.length) {
			clearTable();
			body.append(jobs.length ? pageNote("No targets", h("p", {}, "The jobs have found none yet.")) : EMPTY_TARGETS());
			return;
		}
		if (!table) {
			clearTable();
			table = new VirtualTable(body, ctx, {
				label: "Targets", file: "targets", columns: targetColumns(ctx), rowKey: row => `${row.job}\0${row.target}`, empty: "No such target.",
				sort: parseSort(state.srt, [{ key: "state", down: false }, { key: "target", down: false }]),
				onSort: sort => ctx.set({ srt: formatSort(sort) }, { push: false }), onOpen: row => openTarget(ctx, row),
			});
			bar.append(table.tools);
		}
		table.setRows(shown);
	}

	const load = async signal => {
		({ jobs } = await ctx.api.get("targets", {}, { signal }));
		show(ctx.state);
	};

	function update(state) {
		states.set(state.state || "all");
		if (document.activeElement !== filter)
			filter.value = state.q || "";
		if (jobs)
			show(state);
	}

	run(load);
	timer = setInterval(() => !document.hidden && jobs && !document.querySelector("dialog[open]") && run(load), LOOK_MS);
	return {
		update,
		destroy() {
			clearInterval(timer);
			run.stop();
			clearTable();
		},
	};
}

export const targetsPage = { id: "targets", title: "Targets", mount: mountTargets };
