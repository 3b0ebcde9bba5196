// Marks of the timeline: versions where they first came, and annotations, which people and their deployments make.
import { h, textButton } from "../dom.js";
import { cleanName } from "../format.js";
import { openDialog } from "../dialog.js";
import { nameField, refill, timeText } from "./selection.js";

const MOST_MARKS = 200,
	MOST_VERSION_MARKS = 12,
	FLAG_PIXELS = 28,
	FLAG_SIGNS = { version: "◆", annotation: "▼", several: "≡" };

/** The annotations of a time, and what the person may do: {list, may_add, may_drop, more}, none if they cannot be had. */
export async function loadAnnotations(ctx, { from, to, service }, signal) {
	const answer = await ctx.api.get("annotations", { from: from.toFixed(3), to: to.toFixed(3), service, limit: MOST_MARKS }, { signal }).catch(error => {
		if (error.name === "AbortError" || error.gone)
			throw error;
		return { annotations: [] };
	});
	const seconds = time => time && Date.parse(time) / 1000;

	return { ...answer, list: answer.annotations.map(item => ({ ...item, kind: "annotation", time: seconds(item.time), end: seconds(item.end) })) };
}

/** What a chart shows of both, in order of time. */
export function marksOf(annotations, versions, from, to) {
	const news = (versions?.list || []).map(version => ({ kind: "version", time: version.first, text: version.name, service: "", tags: [], who: "" }));

	return [...news.filter(({ time }) => time > from && time < to).slice(-MOST_VERSION_MARKS), ...annotations.list].sort((a, b) => a.time - b.time);
}

/** All that a mark says, on one line. */
export function markText(mark) {
	const about = mark.kind === "version" ? "first seen" : [mark.service && cleanName(mark.service, 80), ...mark.tags.map(tag => cleanName(tag, 40)), mark.who && `by ${cleanName(mark.who, 40)}`].filter(Boolean).join(", ");

	return `${mark.kind === "version" ? "version " : ""}${cleanName(mark.text, 500)}${about && ` (${about})`}`;
}

const whenText = mark => timeText(mark.time) + (mark.end ? ` – ${timeText(mark.end)}` : "");

/** A row of flags above a chart; those that would lie upon one another are one. */
export class FlagRow {
	/** open(marks) is called for those of a flag that somebody chose. */
	constructor(host, open) {
		this.open = open;
		this.marks = [];
		this.key = "";
		this.element = h("div", { class: "flags", role: "group", "aria-label": "Marks", hidden: true });
		host.append(this.element);
	}

	destroy() {
		this.element.remove();
	}

	set(marks) {
		this.marks = marks;
		this.element.hidden = !marks.length;
	}

	/** xOf(time) is where a time is; they stay between left and right. */
	place(xOf, left, right) {
		const flags = [];

		for (const mark of this.marks) {
			const x = Math.min(right - FLAG_PIXELS, Math.max(left, xOf(mark.time))),
				last = flags[flags.length - 1];

			if (last && x - last.x < FLAG_PIXELS)
				last.marks.push(mark);
			else
				flags.push({ x, marks: [mark] });
		}
		const key = JSON.stringify(flags);

		if (key === this.key)
			return;
		this.key = key;
		refill(this.element, ...flags.map((flag, i) => this.makeFlag(flag, (flags[i + 1]?.x ?? right) - flag.x - 3, right)));
	}

	makeFlag({ x, marks }, room, right) {
		const kind = marks.length > 1 ? "several" : marks[0].kind,
			text = marks.length > 1 ? String(marks.length) : cleanName(marks[0].text, 500),
			label = (marks.length > 1 ? `${marks.length} marks: ` : "") + marks.map(mark => `${whenText(mark)}: ${markText(mark)}`).join("; ");
		const tip = h("div", { class: "flag-tip", "aria-hidden": "true" }, marks.slice(0, 8).map(mark => h("p", {}, h("span", { class: "muted" }, whenText(mark)), ` ${markText(mark)}`)), marks.length > 8 ? h("p", { class: "muted" }, `and ${marks.length - 8} more`) : null),
			item = h("div", { class: "flag-item", style: { left: `${x}px` } },
				textButton([h("span", { "aria-hidden": "true" }, FLAG_SIGNS[kind]), h("span", { class: "name" }, text)], () => this.open(marks), `flag ${kind}`, { "aria-label": label, style: { maxWidth: `${Math.max(FLAG_PIXELS - 3, room)}px` } }), tip);

		// At the right there is room to the left.
		item.classList.toggle("at-end", x > right / 2);
		item.addEventListener("keydown", event => {
			if (event.key === "Escape" && !item.classList.contains("dismissed")) {
				event.stopPropagation();
				item.classList.add("dismissed");
			}
		});
		for (const type of ["pointerleave", "focusout"])
			item.addEventListener(type, () => item.classList.remove("dismissed"));
		return item;
	}
}

// ---- dialogs

/** Those of a flag, with a button to drop each that may be dropped. */
export function openMarks(ctx, marks, mayDrop, changed) {
	const problem = h("p", { class: "bad", role: "alert" }),
		row = mark => {
			const item = h("li", {}, h("span", { class: "muted" }, whenText(mark)), h("span", { class: "said-text" }, markText(mark)),
				mayDrop && mark.kind === "annotation" ? textButton("Drop", () => drop(mark, item), "btn small", { "aria-label": `Drop ${markText(mark)}` }) : null);

			return item;
		};

	async function drop(mark, item) {
		try {
			await ctx.api.get("annotations", { id: mark.id }, { method: "DELETE" });
			item.remove();
			opened.element.querySelector("header button").focus();
			ctx.announce("Dropped");
			changed();
		} catch (error) {
			problem.textContent = cleanName(error.message, 500);
		}
	}
	const opened = openDialog({ title: marks.length === 1 ? "Mark" : `${marks.length} marks`, class: "marks", body: [h("ul", {}, marks.map(row)), problem] });
}

/** For an input of the browser: a time in the person's own zone. */
const inputTime = seconds => timeText(seconds).replace(" ", "T");

/** Asks for an annotation of a time, [from, to] or [from]; saved() is called when it is stored. */
export function openAnnotate(ctx, [from, to], services, saved) {
	const chosen = { service: ctx.state.service || null },
		service = nameField({ get state() { return chosen; }, set: changes => Object.assign(chosen, changes) }, "Service", "service", "all services"),
		text = h("input", { type: "text", maxlength: 500, autofocus: true, placeholder: "deployed 1.2" }),
		tags = h("input", { type: "text", maxlength: 300, placeholder: "deploy, eu" }),
		start = h("input", { type: "datetime-local", step: 1, value: inputTime(from) }),
		end = h("input", { type: "datetime-local", step: 1, value: to ? inputTime(to) : "" }),
		problem = h("p", { class: "bad", role: "alert" }),
		field = (label, input) => h("label", { class: "note-field" }, h("span", { class: "muted" }, label), input),
		secondsOf = input => (input.value ? new Date(input.value).getTime() / 1000 : undefined);

	async function save() {
		try {
			await ctx.api.post("annotations", { text: text.value, tags: tags.value, time: secondsOf(start), end: secondsOf(end), service: chosen.service });
			ctx.announce("Saved");
			saved();
			return true;
		} catch (error) {
			problem.textContent = cleanName(error.message, 500);
			return false;
		}
	}
	service.setNames(services);
	openDialog({
		title: "Annotate",
		class: "saying",
		body: [field("Text", text), service, field("Time", start), field("Until, if it lasted", end), field("Tags", tags), problem],
		buttons: [{ label: "Save", primary: true, run: save }],
	});
}
