// The Peek page: pprof's text of a function's callers and callees, in which names can be followed.
import { h, clear, copyText } from "./dom.js";
import { cleanName } from "./format.js";
import { button, muted } from "./table.js";
import { dataKey, latest, pageNote } from "./pages.js";

const PEEK_LINES = 4000;

/** One line: the name behind the bar is a button. */
function peekLine(line, follow) {
	const found = /^(.*\|\s+)(\S.*?)( \((?:partial-)?inline\))?$/.exec(line);

	if (!found)
		return [line.split("\t").map(part => cleanName(part, 2000)).join("\t")];
	return [found[1], button(cleanName(found[2], 500), () => follow(found[2]), { class: "link" }), found[3] || ""];
}

function mountPeek(el, ctx) {
	const input = h("input", { type: "search", "aria-label": "Regular expression", spellcheck: "false", autocomplete: "off", placeholder: "regexp of function names" });
	const form = h("form", { class: "page-bar", on: { submit: event => {
		event.preventDefault();
		ctx.filters({ f: input.value || null, fn: null });
	} } }, h("label", { class: "field" }, muted("Functions"), input),
	h("button", { class: "btn" }, "Show"),
	button("Copy as text", () => copyText(text).then(() => ctx.toast("Text copied"))));
	const output = h("pre", { class: "peek", tabindex: "0", "aria-label": "Callers and callees" }), run = latest(ctx, el);
	let key = "", text = "";

	el.classList.add("fill");
	el.append(form, output);

	const follow = name => ctx.set({ fn: name, f: null });

	function show(from) {
		const lines = text.split("\n"), part = lines.slice(from, from + PEEK_LINES);

		output.append(...part.flatMap((line, i) => [...i || from ? ["\n"] : [], ...peekLine(line, follow)]));
		if (from + PEEK_LINES >= lines.length)
			return;
		const more = button(`${lines.length - from - PEEK_LINES} more lines`, () => {
			more.remove();
			show(from + PEEK_LINES);
		});
		output.append(more);
	}

	async function load(signal) {
		try {
			text = await ctx.api.text("peek", ctx.state.f ? {} : ctx.state.fn ? { fn: ctx.state.fn } : { f: "." }, { signal });
		} catch (error) {
			if (error.status !== 400)
				throw error;
			clear(output).append(pageNote("Nothing to show", h("p", null, error.message)));
			return;
		}
		clear(output);
		show(0);
	}

	function update(state) {
		const next = dataKey(state, ["fn"]);

		if (document.activeElement !== input)
			input.value = state.f || "";
		if (next === key)
			return;
		key = next;
		run(load);
	}

	return { update, keys: {}, destroy: () => run.stop() };
}

export const peekPage = { id: "peek", title: "Peek", mount: mountPeek };
