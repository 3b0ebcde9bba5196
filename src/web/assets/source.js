// The Source page: where in a function its cost is, by line and by instruction.
import { h, clear, segmented } from "./dom.js";
import { cleanName, shortName } from "./format.js";
import { VirtualTable, button, muted } from "./table.js";
import { syntaxPieces } from "./syntax.js";
import { listPage, pageNote } from "./pages.js";

const COLD_RUN = 12, COLD_MARGIN = 3;
const ASM_JUMP = /^(?:j\w+|b(?:\.\w+)?|[ct]bn?z|loop\w*)\s.*?\b(0x[0-9a-f]+)/, ASM_END = /^(?:j|ret|b\s|b\.|[ct]bn?z|ud2|hlt)/;
const ASM_PADDING = /^(?:nop|int3|xchg\s+%?ax,\s*%?ax$|(?:data16 |cs )+nop)/;

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
		const row = { kind: "line", n: line.n, flat: line.flat || 0, cum: line.cum || 0, asm: line.asm || [], text, pieces: syntaxPieces(text, entry.file, state) };
		if (before && line.n > before + 1) {
			flush(false);
			rows.push({ kind: "gap", from: before + 1, to: line.n - 1 });
		}
		before = line.n;
		if (row.flat || row.cum) {
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

/** Basic blocks begin at targets of jumps, and behind jumps. */
function markBlocks(list) {
	const targets = new Set(list.map(item => ASM_JUMP.exec(item.text)?.[1]));

	return list.map((item, i) => ({ ...item, block: i > 0 && (targets.has(item.address) || ASM_END.test(list[i - 1].text)) }));
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
	const title = h("h2", { class: "page-title" }), notes = h("div"), panes = h("div", { class: "panes" });
	const asm = segmented("Assembly", [{ value: "off", text: "Source" }, { value: "beside", text: "Beside" }, { value: "inline", text: "Inline" }], "",
		value => ctx.set({ asm: value }, { push: false }));
	const syntax = segmented("Assembly syntax", [{ value: "", text: "AT&T" }, { value: "1", text: "Intel" }], "", value => ctx.set({ intel: value || null }));
	const bar = h("div", { class: "page-bar" }, muted("Assembly"), asm, syntax,
		button("↑ Hot line", () => nextHot(-1), { title: "Previous line with samples (N)" }), button("↓ Hot line", () => nextHot(1), { title: "Next line with samples (n)" }));
	const opened = new Set();
	let source = null, machine = null, rows = [], answer = null, shape = "", top = null, linked = new Set();

	main.append(bar, title, notes, panes);

	const asmMode = () => ctx.state.asm || (ctx.state.page === "disasm" ? "beside" : "off");

	function costColumns(entry) {
		const cost = (name, text, total) => ({ key: name, title: text, number: true, width: 76, get: row => row[name] || 0,
			text: row => row[name] ? ctx.format(row[name], top.unit) : "", bar: row => total ? Math.abs(row[name] || 0) / total : 0 });
		const most = name => entry.lines.reduce((max, line) => Math.max(max, Math.abs(line[name] || 0)), 0);
		return [cost("flat", "Self", most("flat")), cost("cum", "Total", most("cum"))];
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
				get: row => row.n || row.address || "" }, ...costColumns(entry),
			{ key: "text", title: "Source", width: longest(shown), get: plainText, render: drawSource, mark: () => "code" }],
			onSelect: row => link(row.kind === "line" ? row : null, null),
		});
		source.setRows(shown);
	}

	function machineTable(entry) {
		machine = new VirtualTable(panes, ctx, {
			label: `Instructions of ${entry.function[1]}`, file: "disasm", fixed: true, rowClass,
			empty: "No instructions: the binary was not found, or it is not the one that was profiled.",
			columns: [{ key: "address", title: "Address", number: true, width: 104, get: row => row.address || row.key || "" }, ...costColumns(entry),
				{ key: "text", title: "Instruction", min: 300, get: plainText, render: drawSource, mark: () => "code" },
				{ key: "line", title: "Line", width: 120, get: row => row.line ? `${(row.file || "").replace(/^.*\//, "")}:${row.line}` : "" }],
			onSelect: row => link(row.source || null, row),
		});
		machine.setRows(asmRows(allAsm(rows), opened));
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
		const items = source ? source.view : [], isHot = row => row.kind === "line" && (row.flat || row.cum);
		let at = source?.selected ? items.indexOf(source.selected) : step > 0 ? -1 : items.length;

		for (at += step; items[at] && !isHot(items[at]);)
			at += step;
		if (!items[at])
			return;
		source.select(items[at], true);
		ctx.announce(`Line ${items[at].n}: self ${ctx.format(items[at].flat, top.unit)}, total ${ctx.format(items[at].cum, top.unit)}`);
	}

	function missingNote(entry) {
		const field = (name, label, hint) => h("label", { class: "field" }, h("span", null, label),
			h("input", { type: "text", name, value: ctx.state[name] || "", placeholder: hint, spellcheck: "false" }));
		const form = h("form", { class: "page-bar", on: { submit: event => {
			event.preventDefault();
			ctx.set({ source_path: form.elements.source_path.value || null, trim_path: form.elements.trim_path.value || null });
		} } }, field("source_path", "Look in", "/folder:/other/folder"), field("trim_path", "Cut off from names", "/build/root"), h("button", { class: "btn primary" }, "Try again"));

		return pageNote("The source is not here", h("p", null, "Wanted: ", h("code", null, cleanName(entry.file || "(no file name in the profile)"))),
			entry.tried?.length ? [h("p", null, "Looked for:"), h("ul", null, entry.tried.map(path => h("li", null, h("code", null, cleanName(path)))))] : null,
			entry.file ? form : null);
	}

	function showFunction() {
		const entry = answer.functions.find(item => String(item.function[0]) === ctx.state.fn) || answer.functions[0], mode = shape = asmMode();

		source?.destroy();
		machine?.destroy();
		source = machine = null;
		clear(notes);
		clear(title);
		asm.set(mode);
		panes.classList.toggle("two", mode === "beside");
		if (!entry) {
			notes.append(pageNote("No source is known", h("p", null, "The profile has no lines for this function, and its binary gives none.")));
			return;
		}
		const [, self, total] = top.rows.find(row => row[0] === entry.function[0]) || [0, entry.flat, entry.cum];
		title.append(shortName(entry.function[1]), h("small", { class: "muted" }, ` ${cleanName(entry.file || "", 300)} · self ${ctx.format(self, top.unit)}, total ` +
			`${ctx.format(total, top.unit)} (${ctx.percent(total, top.total)})` + (self === entry.flat ? "" : "; its lines count what is inlined into them as self")));
		rows = sourceRows(entry, opened);
		if (!entry.path_found)
			notes.append(missingNote(entry));
		sourceTable(entry, mode === "inline");
		if (mode === "beside")
			machineTable(entry);
	}

	async function load(functions, signal) {
		const { fn, source_path, trim_path } = ctx.state;

		top = functions;
		answer = await ctx.api.get("source", { fn: fn || top.rows[0][0], source_path, trim_path }, { signal });
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
			page.update(state);
		},
		destroy() {
			page.destroy();
			source?.destroy();
			machine?.destroy();
		},
	};
}

export const sourcePage = { id: "source", title: "Source", mount: mountSource };
