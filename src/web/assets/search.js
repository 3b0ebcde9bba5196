// The search box. The server looks, so that highlight, filter and command line agree on regexps.
import { h, icon, iconButton, selectField, textButton } from "./dom.js";
import { isAbort } from "./request.js";
import { isSingleFile } from "./state.js";
import { formatCount, quoteRegexp } from "./format.js";

const PAUSE_MS = 25;

// Where to look, and what of a function that is; labels are of samples, and known to the server alone.
const SCOPES = { name: 1, file: 2, module: 4, label: 0 };

/** In one file there is no server: the tree that is here is searched instead. */
export function searchTree(tree, q, isRegexp, scope) {
	const smart = q === q.toLowerCase() ? "i" : "";
	const pattern = new RegExp(
		isRegexp ? q.replace(/^\(\?i\)/, "") : quoteRegexp(q),
		isRegexp ? (/^\(\?i\)/.test(q) ? "i" : "") : smart
	);
	const hit = tree.functions.map((fn, i) => i > 0 && pattern.test(fn[SCOPES[scope] || 1]));
	const inside = new Uint8Array(tree.n),
		ids = tree.functions.filter((_, i) => hit[i]).map(fn => fn[0]);
	let total = 0,
		self = 0;

	for (let i = 1; i < tree.n; i++) {
		const own = hit[tree.fn[i]],
			above = inside[tree.parent[i]];

		if (own && !above)
			total += tree.total[i];
		if (own)
			self += tree.self[i];
		inside[i] = own || above ? 1 : 0;
	}
	return { functions: ids.length, ids, total, self, of: tree.header.total };
}

function resultText(ctx, found, frames) {
	const unit = ctx.sampleType()?.unit;
	const parts = [`${formatCount(found.functions)} function${found.functions === 1 ? "" : "s"}`];

	if (frames >= 0)
		parts.push(`${formatCount(frames)} frame${frames === 1 ? "" : "s"}`);
	parts.push(
		`total ${ctx.percent(found.total, found.of)} (${ctx.format(found.total, unit)})`,
		`self ${ctx.percent(found.self, found.of)}`
	);
	return parts.join(" · ");
}

/**
 * @param {any} ctx
 * @param {(found: any) => void} changed is called with null or {q, re, in, ids: Set, functions, total, self, of}
 */
export function createSearch(ctx, changed) {
	let running = null,
		timer = 0,
		found = null,
		key = "",
		waits = false;
	const input = h("input", {
		type: "search",
		placeholder: "Search",
		"aria-label": "Search functions",
		spellcheck: "false",
		autocomplete: "off",
		"aria-describedby": "search-result",
	});
	const regexp = textButton(".*", () => ctx.set({ re: ctx.state.re ? null : 1 }, { push: false }), "regexp", {
		title: "Regular expression",
		"aria-label": "Regular expression",
	});
	const result = h("output", { id: "search-result" });
	const scope = selectField(
		"in",
		Object.keys(SCOPES)
			.filter(value => SCOPES[value] || !isSingleFile())
			.map(value => ({ value, text: value })),
		"name",
		value => ctx.set({ in: value === "name" ? null : value }, { push: false })
	);
	const hide = textButton("Hide", () => useAs("h"));
	const uses = h(
		"span",
		{ class: "uses" },
		h("span", { class: "muted" }, "Use as"),
		textButton("Focus", () => useAs("f")),
		textButton("Ignore", () => useAs("i")),
		hide
	);
	const row = h(
		"div",
		{ class: "searchbar", role: "region", "aria-label": "Search result", hidden: true },
		scope,
		result,
		iconButton("previous", "Previous match (Shift Enter)", () => ctx.searchNext(-1)),
		iconButton("next", "Next match (Enter)", () => ctx.searchNext(1)),
		uses,
		h("span", { class: "spacer" }),
		iconButton("close", "Clear the search (Esc)", () => clearSearch())
	);

	const none = { q: null, re: null, in: null };

	function useAs(filterKey) {
		if (found.tagfocus) {
			ctx.addFilter("t" + filterKey, found.tagfocus, none);
			return;
		}
		const pattern = ctx.state.re ? ctx.state.q : (/[A-Z]/.test(ctx.state.q) ? "" : "(?i)") + quoteRegexp(ctx.state.q);

		ctx.addFilter(filterKey, pattern, none);
	}

	function clearSearch() {
		ctx.set(none, { push: false });
		ctx.focusPage();
	}

	function show(text, isBad) {
		row.hidden = !text;
		result.textContent = text;
		row.classList.toggle("bad", Boolean(isBad));
		input.toggleAttribute("aria-invalid", Boolean(isBad));
		// Not all that is found in labels can be said by a filter, which has the server's "" then.
		uses.hidden = Boolean(isBad) || !found?.functions || found.tagfocus === "";
		hide.hidden = "tagfocus" in (found || {});
	}

	function accept(next, frames) {
		found = next;
		changed(found);
		show(
			found
				? found.functions
					? resultText(ctx, found, frames ?? ctx.countFrames())
					: `Nothing matches “${found.q}”`
				: ""
		);
	}

	async function ask(q, re, where) {
		running = new AbortController();
		const { signal } = running;

		try {
			const answer = isSingleFile()
				? searchTree(await ctx.api.flame({}), q, re, where)
				: await ctx.api.get("search", { q, re: re ? 1 : 0, in: where, group: ctx.groups }, { signal });

			if (signal.aborted)
				return;
			accept({ ...answer, q, re, in: where, ids: new Set(answer.ids) });
		} catch (error) {
			if (isAbort(error))
				return;
			found = null;
			changed(null);
			show(error.message, true);
		}
		waits = false;
	}

	/** The URL may have another search, or the data is other data. */
	function update(dataKey) {
		const { q = "", re, in: where } = ctx.state,
			next = JSON.stringify([q, re, where, ctx.groups, dataKey]);

		if (document.activeElement !== input || !q)
			input.value = q;
		regexp.setAttribute("aria-pressed", String(Boolean(re)));
		scope.set(where || "name");
		if (next === key)
			return;
		key = next;
		clearTimeout(timer);
		running?.abort();
		waits = Boolean(q);
		if (q) {
			timer = setTimeout(() => ask(q, Boolean(re), where), PAUSE_MS);
		} else if (found || !row.hidden) {
			accept(null);
		}
	}

	input.addEventListener("input", () => ctx.set({ q: input.value || null }, { push: false }));
	input.addEventListener("keydown", event => {
		if (event.key === "Escape")
			clearSearch();
		else if (event.key === "Enter")
			ctx.searchNext(event.shiftKey ? -1 : 1);
		else
			return;
		event.preventDefault();
		event.stopPropagation();
	});
	return {
		form: h(
			"form",
			{ class: "search", role: "search", on: { submit: event => event.preventDefault() } },
			icon("search"),
			input,
			regexp
		),
		row,
		update,
		input,
		isBusy: () => waits,
		/** The frames of a page are there now. */
		recount: () => found && found.functions && show(resultText(ctx, found, ctx.countFrames())),
		focus() {
			input.focus();
			input.select();
		},
	};
}
