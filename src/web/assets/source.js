// The Source page: where in a function its cost is, by line and by instruction.
import { h, clear, segmented } from "./dom.js";
import { cleanName, isAddress, placeOf, shortName } from "./format.js";
import { VirtualTable, button, muted } from "./table.js";
import { syntaxPieces } from "./syntax.js";
import { functionMap, listPage, pageNote, valueColumns } from "./pages.js";
import { editorLink, whyLink } from "./inspector.js";

const COLD_RUN = 12, COLD_MARGIN = 3, JUMP_LANES = 6;
const ASM_JUMP = /^(?:j\w+|b(?:\.\w+)?|[ct]bn?z|loop\w*)\s(?:[^<]*,)?\s*(?:0x)?([0-9a-f]+)\b/, ASM_END = /^(?:j|ret|b\s|b\.|[ct]bn?z|ud2|hlt)/;
const ASM_PADDING = /^(?:nop|int3|xchg\s+%?ax,\s*%?ax$|(?:data16 |cs )+nop)/;

const isHotLine = line => line.flat || line.cum || line.cumB;
const isHot = row => row.kind === "line" && isHotLine(row);

/** The lines of a function in two profiles: those of A with what B has for them. */
function bothLines(a, b) {
	const lines = new Map((b?.lines || []).map(line => [line.n, { ...line, flat: 0, cum: 0, asm: [], flatB: line.flat, cumB: line.cum }]));

	for (const line of a?.lines || [])
		lines.set(line.n, { ...line, flatB: lines.get(line.n)?.flatB, cumB: lines.get(line.n)?.cumB });
	return { ...b, ...a, lines: [...lines.values()].sort((x, y) => x.n - y.n) };
}

/** Lines as rows: gaps are told, long runs without samples are folded unless opened. */
function sourceRows(entry, opened) {
	const rows = [], state = { comment: false };
	let cold = [], before = 0;

	const flush = isLast => {
		const margin = rows.length ? COLD_MARGIN : 0, tail = isLast ? 0 : COLD_MARGIN;
		if (cold.length <= COLD_RUN || opened.has(cold[0].n)) {
			rows.push(...cold);
		} else {
			const hidden = cold.slice(margin, cold.length - tail);
			rows.push(...cold.slice(0, margin), { kind: "fold", key: cold[0].n, from: hidden[0].n, to: hidden[hidden.length - 1].n },
				...cold.slice(cold.length - tail));
		}
		cold = [];
	};
	for (const line of entry.lines) {
		const text = line.text.replace(/\t/g, "    ");
		const row = { kind: "line", ...line, asm: line.asm || [], text, pieces: syntaxPieces(text, entry.file, state) };
		if (before && line.n > before + 1) {
			flush(false);
			rows.push({ kind: "gap", from: before + 1, to: line.n - 1 });
		}
		before = line.n;
		if (isHot(row)) {
			flush(false);
			rows.push(row);
		} else {
			cold.push(row);
		}
	}
	flush(true);
	return rows;
}

/** Instructions as rows, padding between them in one. */
function asmRows(list, opened) {
	const rows = [];

	for (const item of list) {
		const isPadding = ASM_PADDING.test(item.text.trim()) && !item.flat && !item.cum, last = rows[rows.length - 1];
		const row = { kind: "asm", ...item, flat: item.flat || 0, cum: item.cum || 0 };
		if (isPadding && !opened.has(row.address)) {
			if (last && last.kind === "padding")
				last.members.push(row);
			else
				rows.push({ kind: "padding", key: row.address, members: [row] });
		} else {
			rows.push(row);
		}
	}
	return rows.flatMap(row => row.kind === "padding" && row.members.length < 2 ? row.members : [row]);
}

const addressOrder = (a, b) => a.address.length - b.address.length || (a.address < b.address ? -1 : a.address > b.address ? 1 : 0);

// GNU's objdump leaves the 0x out.
const jumpTarget = row => ASM_JUMP.exec(row.text || "")?.[1].replace(/^/, "0x");

/** Basic blocks begin at targets of jumps, and behind jumps. */
function markBlocks(list) {
	const targets = new Set(list.map(jumpTarget));

	return list.map((item, i) => ({ ...item, block: i > 0 && (targets.has(item.address) || ASM_END.test(list[i - 1].text)) }));
}

/** Arrows from jumps to where they go, as a text for each row; short ones are nearest to the code. */
export function jumpArrows(rows) {
	const places = new Map(rows.map((row, i) => [row.address, i])), lanes = Array.from({ length: JUMP_LANES }, () => []);
	const cells = rows.map(() => Array(JUMP_LANES + 1).fill(" ")), jumps = [];

	rows.forEach((row, from) => {
		const to = places.get(jumpTarget(row));
		if (to !== undefined && to !== from)
			jumps.push({ to, low: Math.min(from, to), high: Math.max(from, to) });
	});
	jumps.sort((a, b) => a.high - a.low - b.high + b.low);
	for (const { to, low, high } of jumps) {
		const lane = lanes.findIndex(list => list.every(other => other.low > high || other.high < low)), at = JUMP_LANES - 1 - lane;
		if (lane < 0)
			continue;
		lanes[lane].push({ low, high });
		for (let i = low + 1; i < high; i++)
			cells[i][at] = "│";
		for (const i of [low, high]) {
			for (let k = at + 1; k <= JUMP_LANES; k++)
				cells[i][k] = cells[i][k].replace(" ", "─");
			cells[i][at] = i === low ? "╭" : "╰";
			if (i === to)
				cells[i][JUMP_LANES] = "▸";
		}
	}
	return cells.map(line => line.join(""));
}

/** All instructions of a function by address; each knows the row of its line. */
function allAsm(rows) {
	const found = new Map();

	for (const row of rows)
		for (const item of row.asm || [])
			if (!found.has(item.address))
				found.set(item.address, { ...item, source: row });
	return markBlocks([...found.values()].sort(addressOrder));
}

function mountSource(el, ctx) {
	const main = h("div", { class: "side-main" });
	const title = h("h2", { class: "page-title" }), notes = h("div"), where = h("div", { class: "sites" }), panes = h("div", { class: "panes" });
	const asm = segmented("Assembly", [{ value: "off", text: "Source" }, { value: "beside", text: "Beside" }, { value: "inline", text: "Inline" }], "",
		value => ctx.set({ asm: value }, { push: false }));
	const syntax = segmented("Assembly syntax", [{ value: "", text: "AT&T" }, { value: "1", text: "Intel" }], "", value => ctx.set({ intel: value || null }));
	const calls = segmented("Calls", [{ value: "", text: "All calls" }, { value: "1", text: "Zoomed frame only" }], "",
		value => ctx.set({ zf: value || null }));
	const bar = h("div", { class: "page-bar" }, muted("Assembly"), asm, syntax, calls,
		button("↑ Hot line", () => nextHot(-1), { title: "Previous line with samples (N)" }), button("↓ Hot line", () => nextHot(1), { title: "Next line with samples (n)" }));
	const opened = new Set();
	let source = null, machine = null, rows = [], answer = null, answerB = null, shape = "", top = null, linked = new Set();
	let sites = null, sitesKey = "", asked = "";

	main.append(bar, title, where, notes, panes);

	const isOnly = () => ctx.state.zf && ctx.state.z;
	const asmMode = () => ctx.state.asm || (ctx.state.page === "disasm" ? "beside" : "off");

	/** The site of the URL, if it is one of the function that is shown: a caller and a line, or "called". */
	const chosenSite = () => ctx.state.site?.startsWith(asked) ? ctx.state.site.slice(asked.length) : undefined;

	/** Where the function was inlined, and what each place has of it. The table stays while the places do: it may have the focus. */
	function showSites() {
		const { rows: list, more, ...all } = answer.sites, key = JSON.stringify([asked, answer.sites, top.unit, ctx.state.unit, !!answerB]);

		if (key !== sitesKey) {
			const name = site => site.caller ? `inlined into ${shortName(site.caller[1])} at ${placeOf([0, "", site.file, site.line]) || "an unknown line"}` : "not inlined";
			const columns = (key, title, hint) => valueColumns(ctx, key, title + (answerB ? " A" : ""), hint, top.unit, all.cum, row => row[key]);

			sitesKey = key;
			sites?.destroy();
			sites = list.length ? new VirtualTable(where, ctx, {
				label: "Where it was inlined", fixed: true, rowKey: row => row.key,
				columns: [columns("flat", "Self", "Spent in it there")[0], ...columns("cum", "Total", "Spent in it and all that it calls"),
					{ key: "text", title: "Place", get: row => row.text }],
				onSelect: row => ctx.set({ site: row.key ? asked + row.key : null }),
			}) : null;
			sites?.setRows([{ ...all, text: `all places${more ? `, ${more} smaller ones of them not listed` : ""}` },
				...list.map(site => ({ ...site, key: site.caller ? `${site.caller[0]}:${site.line}` : "called", text: name(site) }))]);
		}
		sites?.show(sites.view.find(row => row.key === chosenSite()) || null, true);
	}

	/** With two sides, those of both; of instructions only A is known. */
	function costColumns(entry, hasB) {
		const most = names => entry.lines.reduce((max, line) => names.reduce((m, name) => Math.max(m, Math.abs(line[name] || 0)), max), 0);
		const cost = (name, text, total) => ({ key: name, title: text, number: true, width: 76, get: row => row[name] || 0,
			text: row => row[name] ? ctx.format(row[name], top.unit) : "", bar: row => total ? Math.abs(row[name] || 0) / total : 0 });
		return [["flat", "Self"], ["cum", "Total"]].flatMap(([name, text]) => {
			const total = most([name, name + "B"]);
			return hasB ? [cost(name, text + " A", total), cost(name + "B", text + " B", total)] : [cost(name, text, total)];
		});
	}

	function fold(cell, text, row) {
		cell.append(button(text, () => {
			opened.add(row.key);
			showFunction();
		}, { class: "link" }));
	}

	function drawAsm(cell, row) {
		const [mnemonic, ...rest] = row.text.trim().split(/\s+/);
		cell.append(h("b", { class: "key" }, mnemonic.padEnd(8)), cleanName(rest.join(" "), 300));
		if (row.inlined && row.inlined.length)
			cell.append(muted("  ; inlined: ", cleanName(row.inlined.join(" ← "), 300)));
	}

	function drawSource(cell, row) {
		if (row.kind === "line")
			cell.append(...row.pieces.map(([kind, text]) => kind ? h("span", { class: kind }, cleanName(text)) : cleanName(text)));
		else if (row.kind === "asm")
			drawAsm(cell, row);
		else if (row.kind === "fold")
			fold(cell, `▸ ${row.to - row.from + 1} lines without samples (${row.from}–${row.to})`, row);
		else if (row.kind === "padding")
			fold(cell, `▸ ${row.members.length} instructions of padding`, row);
		else
			cell.append(muted(`⋯ lines ${row.from}–${row.to}`));
	}

	const rowClass = row => `${row.kind}${row.block ? " block" : ""}${linked.has(row) || linked.has(row.address) ? " linked" : ""}`;
	const plainText = row => row.text || (row.from ? `lines ${row.from}-${row.to}` : "");
	const longest = items => 60 + 7.3 * items.reduce((n, row) => Math.max(n, Math.min(300, (row.text || "").length)), 40);

	function sourceTable(entry, isInline) {
		const shown = isInline ? rows.flatMap(row => [row, ...asmRows(row.asm || [], opened)]) : rows;

		source = new VirtualTable(panes, ctx, {
			label: `Source of ${entry.function[1]}`, file: "source", fixed: true, rowClass, empty: "No lines are known.",
			columns: [{ key: "n", title: isInline ? "Line, address" : "Line", number: true, width: isInline ? 120 : 64,
				get: row => row.n || row.address || "" }, ...costColumns(entry, !!answerB),
			{ key: "text", title: "Source", width: longest(shown), get: plainText, render: drawSource, mark: () => "code" }],
			onSelect: row => link(row.kind === "line" ? row : null, null),
		});
		source.setRows(shown);
	}

	function machineTable(entry) {
		const shown = asmRows(allAsm(rows), opened), arrows = jumpArrows(shown);

		shown.forEach((row, i) => { row.arrows = arrows[i]; });
		machine = new VirtualTable(panes, ctx, {
			label: `Instructions of ${entry.function[1]}`, file: "disasm", fixed: true, rowClass,
			empty: ctx.meta.home ? "No instructions: the server does not have the binary, which kiln debuginfo upload sends." : "No instructions: the binary is not here, or another one.",
			columns: [{ key: "address", title: "Address", number: true, width: 104, get: row => row.address || row.key || "" }, ...costColumns(entry),
				{ key: "jumps", title: "Jumps", hint: "Enter follows a jump", width: 72, get: row => row.arrows, mark: () => "code jumps",
					render: (cell, row) => cell.append(h("span", { "aria-hidden": "true" }, row.arrows)) },
				{ key: "text", title: "Instruction", min: 300, get: plainText, render: drawSource, mark: () => "code" },
				{ key: "line", title: "Line", width: 120, get: row => row.line ? `${(row.file || "").replace(/^.*\//, "")}:${row.line}` : "" }],
			onSelect: row => link(row.source || null, row),
			onOpen: row => {
				const target = machine.view.find(other => other.address === jumpTarget(row));
				if (target)
					machine.select(target, true);
			},
		});
		machine.setRows(shown);
	}

	/** Marks a line and its instructions in both panes. */
	function link(row, from) {
		linked = new Set(row ? [row, ...row.asm.map(item => item.address)] : []);
		if (from && row)
			source.show(row, true);
		else
			source.draw();
		if (!machine)
			return;
		const first = !from && machine.view.find(item => linked.has(item.address));
		if (first)
			machine.show(first, true);
		else
			machine.draw();
	}

	function nextHot(step) {
		const items = source ? source.view : [];
		let at = source?.selected ? items.indexOf(source.selected) : step > 0 ? -1 : items.length;

		for (at += step; items[at] && !isHot(items[at]);)
			at += step;
		if (!items[at])
			return;
		source.select(items[at], true);
		ctx.announce(`Line ${items[at].n}: self ${ctx.format(items[at].flat, top.unit)}, total ${ctx.format(items[at].cum, top.unit)}`);
	}

	/** Of a server that is not this person's: what whoever runs it can do. */
	const serverHint = () => h("p", null, "A server shows sources from below the directories that it is started with: ", h("code", null, "kiln serve --source-path /src"),
		", or ", h("code", null, "/build=/src"), " if its names begin with another one.");

	/** A name without a file is one of a symbol table. */
	const linesHint = entry => ctx.meta.home && entry.build_id ? h("p", null, "Lines are known once the server has the debug info: ",
		h("code", null, `kiln debuginfo upload --to ${new URL(ctx.meta.home, location.href).origin} ${cleanName(entry.binary)}`)) : null;

	function missingNote(entry) {
		const field = (name, label, hint) => h("label", { class: "field" }, h("span", null, label),
			h("input", { type: "text", name, value: ctx.state[name] || "", placeholder: hint, spellcheck: "false" }));
		const form = h("form", { class: "page-bar", on: { submit: event => {
			event.preventDefault();
			ctx.set({ source_path: form.elements.source_path.value || null, trim_path: form.elements.trim_path.value || null });
		} } }, field("source_path", "Look in", "/folder:/other/folder"), field("trim_path", "Cut off from names", "/build/root"), h("button", { class: "btn primary" }, "Try again"));

		return pageNote("The source is not here", h("p", null, "Wanted: ", h("code", null, cleanName(entry.file || "(no file name in the profile)"))),
			entry.tried?.length ? [h("p", null, "Looked for:"), h("ul", null, entry.tried.map(path => h("li", null, h("code", null, cleanName(path)))))] : null,
			entry.binary ? h("p", null, "Binary: ", h("code", null, cleanName(entry.binary)), entry.build_id ? [", build ID ", h("code", null, cleanName(entry.build_id))] : null) : null,
			!entry.file ? linesHint(entry) : ctx.meta.home ? serverHint() : form);
	}

	function showFunction() {
		const find = list => list.find(item => String(item.function[0]) === ctx.state.fn) || list[0], mode = shape = asmMode();
		const own = find(answer.functions), entry = answerB ? bothLines(own, find(answerB.functions)) : own;

		source?.destroy();
		machine?.destroy();
		source = machine = null;
		clear(notes);
		clear(title);
		title.hidden = !entry?.function;
		asm.set(mode);
		panes.classList.toggle("two", mode === "beside");
		showSites();
		if (!entry?.function) {
			notes.append(isOnly() ? pageNote("Not called there", h("p", null, "The zoomed frame does not call this function."))
				: pageNote("No source is known", h("p", null, "The profile has no lines for this function, and its binary gives none. ", whyLink(ctx))));
			return;
		}
		const site = sites?.selected, [, self, total] = site ? [0, site.flat, site.cum]
			: !isOnly() && top.rows.find(row => row[0] === entry.function[0]) || [0, entry.flat, entry.cum];
		title.append(shortName(entry.function[1]), site?.key ? `, ${site.text}` : "", h("small", { class: "muted" }, ` ${cleanName(entry.file || "", 300)} · self ${ctx.format(self, top.unit)}, total ` +
			`${ctx.format(total, top.unit)} (${ctx.percent(total, top.total)})` + (self === entry.flat ? "" : "; its lines count what is inlined into them as self"), " ", editorLink(ctx, entry.file, entry.lines.find(isHotLine)?.n) || ""));
		rows = sourceRows(entry, opened);
		if (!entry.path_found)
			notes.append(missingNote(entry));
		if (ctx.meta.home && mode !== "off" && answer.warnings.length)
			notes.append(pageNote("Not all instructions are here", answer.warnings.map(line => h("p", null, cleanName(line, 400)))));
		sourceTable(entry, mode === "inline");
		if (mode === "beside")
			machineTable(entry);
	}

	/** What is heaviest of all that has a name. */
	function firstOf({ rows: list, functions }) {
		const names = functionMap(functions);

		return (list.find(([id]) => !isAddress(names.get(id)[1])) || list[0])[0];
	}

	async function load(functions, signal) {
		const { fn = firstOf(functions), source_path, trim_path, z, rc, b } = ctx.state;

		asked = fn + ":";
		const ask = side => ctx.api.get("source", { fn, site: chosenSite(), source_path, trim_path, ...isOnly() ? { root: z, rc } : null, ...side }, { signal });

		[answer, answerB] = await Promise.all([ask(), b === undefined ? null : ask({ a: b })]);
		top = functions;
		opened.clear();
		showFunction();
	}

	const page = listPage(el, ctx, main, load, () => {
		if (answer && shape !== asmMode())
			showFunction();
	});

	return {
		keys: { n: () => nextHot(1), N: () => nextHot(-1) },
		update(state) {
			syntax.set(state.intel || "");
			calls.set(state.zf || "");
			calls.hidden = !state.z || !!state.g;
			page.update(state);
		},
		destroy() {
			page.destroy();
			source?.destroy();
			machine?.destroy();
			sites?.destroy();
		},
	};
}

export const sourcePage = { id: "source", title: "Source", mount: mountSource };
