// table.js - a table or tree of any length, of which only the rows in view are elements.
import { h, clear, copyText } from "./dom.js";
import { cleanName } from "./format.js";

const ROW_HEIGHT = 26;
const MAX_ROW_ELEMENTS = 76; // with the header and both spacers below 80
const MAX_BODY_HEIGHT = 8e6; // browsers stop at 17 to 33 million pixels
const OVERSCAN = 3;
const DEEPEST_INDENT = 40;

/**
 * get is for sorting, CSV and JSON, text for people; render fills the cell itself; bar is 0..1, mark a class.
 * The column without a width takes what is left.
 * @typedef {{key: string, title: string, get: (row: any) => any, hint?: string, number?: boolean, width?: number, min?: number, hide?: boolean, unit?: string,
 *   text?: (row: any) => string, bar?: (row: any) => number, render?: (cell: HTMLElement, row: any) => void, mark?: (row: any) => string}} Column
 */

let tableCount = 0;

/** A button that opens a panel below it; Escape and a click elsewhere close it. */
export function popover(label, fill) {
	const panel = h("div", { class: "pop-panel" });
	const button = h("summary", { class: "btn" }, label);
	const box = h("details", { class: "pop" }, button, panel);
	const away = event => box.contains(event.target) || close();
	const close = () => { box.open = false; };

	box.addEventListener("toggle", () => {
		document[box.open ? "addEventListener" : "removeEventListener"]("pointerdown", away);
		if (!box.open)
			return;
		clear(panel);
		fill(panel, close);
		panel.classList.toggle("pop-left", box.getBoundingClientRect().left > innerWidth / 2);
	});
	box.addEventListener("keydown", event => {
		if (event.key !== "Escape" || !box.open)
			return;
		event.stopPropagation();
		close();
		button.focus();
	});
	return box;
}

/** Text that stands back. */
export const muted = (...content) => h("span", { class: "muted" }, content);

/** A plain button with a text. */
export function button(text, run, properties) {
	return h("button", { type: "button", class: "btn", on: { click: run }, ...properties }, text);
}

/** Gives the person a file that was made here. */
export function saveFile(name, type, content) {
	const url = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
	h("a", { href: url, download: name }).click();
	setTimeout(() => URL.revokeObjectURL(url), 10000);
}

const cellText = (column, row) => column.text ? column.text(row) : String(column.get(row) ?? "");

const tableFormats = {
	csv(columns, rows) {
		const quote = value => /[",\n\r]/.test(value) ? `"${value.replace(/"/g, '""')}"` : value;
		// What is text must not become a formula.
		const value = (column, row) => String(column.get(row) ?? "").replace(column.number ? /^$/ : /^[=+@-]/, "'$&");
		return [columns.map(c => c.unit ? `${c.title} (${c.unit})` : c.title), ...rows.map(row => columns.map(c => value(c, row)))]
			.map(line => line.map(quote).join(",")).join("\n") + "\n";
	},
	json: (columns, rows) =>
		JSON.stringify(rows.map(row => Object.fromEntries(columns.map(c => [c.key, c.get(row) ?? null]))), null, 1) + "\n",
	markdown(columns, rows) {
		const line = cells => `| ${cells.map(text => text.replace(/\|/g, "\\|").replace(/\s+/g, " ")).join(" | ")} |\n`;
		return line(columns.map(c => c.title)) + line(columns.map(c => c.number ? "--:" : "---")) +
			rows.map(row => line(columns.map(c => cellText(c, row)))).join("");
	},
};

/**
 * o: {label, columns, sort: [{key, down}], fixed (not sortable), file (name of a saved CSV),
 *  children(row) -> rows or a promise of them, expandable(row), (a tree if given)
 *  onSelect(row), onOpen(row) (Enter, double click), onMenu(row, event), onSort(sort), onOrder(rows, sort),
 *  onColumns(keys), shown: keys of the shown columns, rowClass(row), rowKey(row), empty: text}
 */
export class VirtualTable {
	constructor(host, ctx, o) {
		Object.assign(this, { ctx, o, rows: [], view: [], sort: o.sort || [], selected: null, expanded: new Set(), pool: [] });
		this.id = "vt" + ++tableCount;
		this.shown = new Set(o.shown || o.columns.filter(c => !c.hide).map(c => c.key));
		const space = () => h("tbody", { "aria-hidden": "true" }, h("tr", null, h("td", { class: "vt-space" })));
		this.top = space();
		this.body = h("tbody");
		this.bottom = space();
		this.head = h("tr", { "aria-rowindex": "1" });
		this.cols = h("colgroup");
		this.table = h("table", { role: o.children ? "treegrid" : "grid", tabindex: "0", "aria-label": o.label },
			this.cols, h("thead", null, this.head), this.top, this.body, this.bottom);
		this.empty = h("p", { class: "vt-empty muted", hidden: true }, o.empty || "Nothing to show.");
		this.scroll = h("div", { class: "vt" }, this.table, this.empty);
		this.tools = h("div", { class: "vt-tools" }, this.columnChooser(), this.copyMenu());
		host.append(this.scroll);
		this.listen();
		this.build();
	}

	listen() {
		const { scroll, table } = this;
		scroll.addEventListener("scroll", () => this.later(), { passive: true });
		this.watch = new ResizeObserver(() => this.later());
		this.watch.observe(scroll);
		table.addEventListener("keydown", event => this.key(event));
		table.addEventListener("click", event => this.click(event));
		table.addEventListener("dblclick", event => {
			const row = this.rowOf(event.target);
			if (row)
				this.o.onOpen?.(row);
		});
		table.addEventListener("contextmenu", event => {
			const row = this.rowOf(event.target);
			if (!row || !this.o.onMenu)
				return;
			event.preventDefault();
			this.select(row);
			this.o.onMenu(row, event);
		});
	}

	destroy() {
		this.watch.disconnect();
		cancelAnimationFrame(this.frame);
		this.scroll.remove();
	}

	get columns() {
		return this.o.columns.filter(c => this.shown.has(c.key));
	}

	/** New rows; the selection and what is open stay where rowKey says it is the same row. */
	setRows(rows) {
		const key = this.o.rowKey, was = this.selected;
		this.rows = rows;
		this.selected = was && key ? rows.find(row => key(row) === key(was)) || null : null;
		this.expanded.clear();
		this.order();
	}

	/** Sorts and flattens. */
	order() {
		if (this.o.children)
			this.flatten();
		else
			this.view = this.sorted(this.rows);
		this.o.onOrder?.(this.view, this.sort);
		this.table.setAttribute("aria-rowcount", this.view.length + 1);
		this.empty.hidden = this.view.length > 0;
		this.draw();
	}

	sorted(rows) {
		const keys = this.o.fixed ? [] : this.sort
			.map(({ key, down }) => ({ column: this.o.columns.find(c => c.key === key), down })).filter(k => k.column);
		if (!keys.length || rows.length < 2)
			return rows.slice();
		const values = keys.map(({ column }) => rows.map(column.get));
		const order = Uint32Array.from(rows, (_, i) => i);
		const signs = keys.map(k => k.down ? -1 : 1);

		order.sort((i, j) => {
			for (let k = 0; k < values.length; k++) {
				const a = values[k][i], b = values[k][j];
				if (a < b)
					return -signs[k];
				if (a > b)
					return signs[k];
			}
			return i - j;
		});
		return Array.from(order, i => rows[i]);
	}

	flatten() {
		const view = [];
		const stack = [];
		const push = (rows, level, up) => {
			const list = this.sorted(rows);
			for (let i = list.length - 1; i >= 0; i--) {
				Object.assign(list[i], { level, up, pos: i + 1, size: list.length });
				stack.push(list[i]);
			}
		};
		push(this.rows, 1, null);
		while (stack.length) {
			const row = stack.pop();
			view.push(row);
			if (this.expanded.has(row) && Array.isArray(row.kids))
				push(row.kids, row.level + 1, row);
		}
		this.view = view;
	}

	/** Opens or closes a row of a tree; its children may have to be fetched first. */
	async expand(row, open) {
		if (!open) {
			this.expanded.delete(row);
		} else if (this.o.expandable(row)) {
			this.expanded.add(row);
			if (!row.kids)
				row.kids = await this.o.children(row);
		}
		this.order();
	}

	/** Follows the heaviest child down to a leaf, and selects it. */
	async expandHeaviest(row = this.selected || this.view[0]) {
		const weight = this.o.weight;
		for (let limit = 2000; row && limit && this.o.expandable(row); limit--) {
			this.expanded.add(row);
			row.kids = row.kids || await this.o.children(row);
			const best = row.kids.reduce((a, b) => !a || weight(b) > weight(a) ? b : a, null);
			if (!best || !weight(best))
				break;
			row = best;
		}
		this.order();
		if (row)
			this.select(row, true);
	}

	// ---- drawing

	drawHead() {
		clear(this.head).append(...this.columns.map(column => this.headCell(column)));
	}

	/** Other columns. */
	build() {
		clear(this.cols);
		this.pool.forEach(line => line.remove());
		this.pool = [];
		let width = 0;
		for (const column of this.columns) {
			const col = h("col");
			width += column.width || column.min || 220;
			if (column.width)
				col.style.width = column.width + "px";
			this.cols.append(col);
		}
		this.drawHead();
		this.table.style.minWidth = width + "px";
		this.table.setAttribute("aria-colcount", this.columns.length);
		this.top.firstChild.firstChild.colSpan = this.bottom.firstChild.firstChild.colSpan = this.columns.length;
		this.later();
	}

	headCell(column) {
		const at = this.sort.findIndex(s => s.key === column.key), { down } = this.sort[at] || {};
		const mark = at < 0 ? "" : (down ? " ▼" : " ▲") + (at ? at + 1 : "");
		const props = { scope: "col", class: column.number ? "num" : "", title: column.hint || null };
		if (this.o.fixed)
			return h("th", props, column.title);
		if (at === 0)
			props["aria-sort"] = down ? "descending" : "ascending";
		return h("th", props, h("button", { type: "button", on: { click: event => this.sortBy(column, event.shiftKey) } },
			column.title, h("span", { "aria-hidden": "true" }, mark)));
	}

	sortBy(column, add) {
		const old = this.sort.find(s => s.key === column.key);
		const next = { key: column.key, down: old && (add || old === this.sort[0]) ? !old.down : !!column.number };
		this.sort = !add ? [next] : old ? this.sort.map(s => s === old ? next : s) : [...this.sort, next];
		this.drawHead();
		this.order();
		const index = this.columns.indexOf(column);
		this.head.children[index].querySelector("button").focus({ preventScroll: true });
		this.o.onSort?.(this.sort);
		this.ctx.announce(`Sorted by ${column.title}, ${next.down ? "largest" : "smallest"} first`);
	}

	later() {
		cancelAnimationFrame(this.frame);
		this.frame = requestAnimationFrame(() => this.draw());
	}

	/** Which rows are seen, and where they are put. */
	window() {
		const count = this.view.length, height = Math.max(0, this.scroll.clientHeight - this.head.offsetHeight);
		const n = Math.min(count, Math.ceil(height / ROW_HEIGHT) + 2 * OVERSCAN + 1, MAX_ROW_ELEMENTS);
		const full = count * ROW_HEIGHT, tall = Math.min(full, MAX_BODY_HEIGHT), at = this.scroll.scrollTop;
		const limit = first => Math.max(0, Math.min(first, count - n));
		if (full === tall) {
			const first = limit(Math.floor(at / ROW_HEIGHT) - OVERSCAN);
			return { first, n, top: first * ROW_HEIGHT, tall, height };
		}
		const first = limit(Math.round(at / (tall - height) * (count - Math.floor(height / ROW_HEIGHT))));
		return { first, n, top: Math.min(at, tall - n * ROW_HEIGHT), tall, height };
	}

	/** Who uses the keys inside a row stays in that row. */
	draw() {
		const active = document.activeElement, line = this.body.contains(active) && active.closest("tr"), key = line && line.key;
		const cell = line && [...line.children].findIndex(td => td.contains(active));

		this.drawRows();
		if (line && !this.body.contains(document.activeElement))
			(this.pool.find(other => other.key === key)?.children[cell]?.querySelector("a, button") || this.table).focus({ preventScroll: true });
	}

	drawRows() {
		const { first, n, top, tall } = this.window(), columns = this.columns;
		while (this.pool.length < n) {
			const line = h("tr", null, columns.map(c => h("td", { class: c.number ? "num" : "" })));
			this.pool.push(line);
			this.body.append(line);
		}
		while (this.pool.length > n)
			this.pool.pop().remove();
		this.top.firstChild.firstChild.style.height = top + "px";
		this.bottom.firstChild.firstChild.style.height = tall - top - n * ROW_HEIGHT + "px";
		this.top.hidden = top === 0;
		for (let i = 0; i < n; i++)
			this.drawRow(this.pool[i], first + i, columns);
		if (this.selected && this.drawn === this.selected)
			this.table.setAttribute("aria-activedescendant", this.id + "-sel");
		else
			this.table.removeAttribute("aria-activedescendant");
		this.drawn = null;
	}

	drawRow(line, index, columns) {
		const row = this.view[index], isSelected = row === this.selected, key = this.o.rowKey ? this.o.rowKey(row) : row, isSame = key === line.key;
		Object.assign(line, { row, key });
		line.className = (this.o.rowClass && this.o.rowClass(row) || "") + (isSelected ? " sel" : "") + (index & 1 ? " odd" : "");
		line.setAttribute("aria-rowindex", index + 2);
		line.setAttribute("aria-selected", isSelected);
		if (isSelected) {
			line.id = this.id + "-sel";
			this.drawn = row;
		} else {
			line.removeAttribute("id");
		}
		if (this.o.children)
			this.drawTreeRow(line, row);
		columns.forEach((column, i) => this.drawCell(line.children[i], column, row, isSame));
	}

	drawTreeRow(line, row) {
		line.setAttribute("aria-level", row.level);
		line.setAttribute("aria-posinset", row.pos);
		line.setAttribute("aria-setsize", row.size);
		if (this.o.expandable(row))
			line.setAttribute("aria-expanded", this.expanded.has(row));
		else
			line.removeAttribute("aria-expanded");
	}

	drawCell(cell, column, row, isSame) {
		if (column.render) {
			const made = cell.cloneNode();
			column.render(made, row);
			// What is the same is left alone: it may have the focus.
			if (!isSame || !made.isEqualNode(cell))
				cell.replaceChildren(...made.childNodes);
		} else {
			const text = cellText(column, row), shown = cleanName(text, 500);
			if (cell.textContent !== shown)
				cell.textContent = shown;
			if (!column.number)
				cell.title = text.length > 20 ? cleanName(text, 2000) : "";
		}
		const bar = column.bar ? column.bar(row) : 0;
		cell.className = (column.number ? "num" : "") + (bar > 0 ? " vt-bar" : "") + (column.mark ? " " + column.mark(row) : "");
		if (bar > 0)
			cell.style.setProperty("--w", Math.min(100, bar * 100).toFixed(2) + "%");
	}

	/** For the render of a tree's first column: indent and the open/close mark. */
	twisty(cell, row, ...content) {
		const can = this.o.expandable(row);
		const mark = h("span", { class: can ? "twisty" : "twisty none", "aria-hidden": "true" },
			can ? this.expanded.has(row) ? "▾" : "▸" : "");
		const depth = row.level > DEEPEST_INDENT ? h("small", { class: "muted" }, row.level + " ") : null;
		mark.style.marginInlineStart = Math.min(row.level - 1, DEEPEST_INDENT) * 12 + "px";
		cell.append(mark, ...[depth].filter(Boolean), ...content);
	}

	// ---- selection

	rowOf(target) {
		const line = target.closest("tr");
		return line && line.parentNode === this.body ? line.row : null;
	}

	click(event) {
		const row = this.rowOf(event.target);
		if (!row)
			return;
		this.select(row);
		if (event.target.closest(".twisty"))
			this.expand(row, !this.expanded.has(row));
	}

	select(row, reveal) {
		this.show(row, reveal);
		this.o.onSelect?.(row);
	}

	/** Marks a row without telling the page. */
	show(row, reveal) {
		this.selected = row;
		if (reveal && row)
			this.reveal(row);
		this.draw();
	}

	reveal(row) {
		const index = this.view.indexOf(row), { height, tall } = this.window(), { scroll } = this;
		if (index < 0)
			return;
		const full = this.view.length * ROW_HEIGHT;
		if (full > tall) {
			scroll.scrollTop = index / this.view.length * (tall - height);
			return;
		}
		const top = index * ROW_HEIGHT;
		if (top < scroll.scrollTop)
			scroll.scrollTop = top;
		else if (top + ROW_HEIGHT > scroll.scrollTop + height)
			scroll.scrollTop = top + ROW_HEIGHT - height;
	}

	key(event) {
		if (event.target !== this.table || event.ctrlKey || event.metaKey || event.altKey)
			return;
		const at = this.selected ? this.view.indexOf(this.selected) : -1, row = this.selected;
		const page = Math.max(1, Math.floor(this.window().height / ROW_HEIGHT) - 1);
		const go = index => {
			const to = Math.max(0, Math.min(index, this.view.length - 1));
			if (this.view[to])
				this.select(this.view[to], true);
		};
		const actions = {
			ArrowDown: () => go(at + 1), ArrowUp: () => go(at - 1), PageDown: () => go(at + page), PageUp: () => go(at - page),
			Home: () => go(0), End: () => go(this.view.length - 1),
			Enter: row && this.o.onOpen && (() => this.o.onOpen(row)),
			ContextMenu: row && this.o.onMenu && (() => this.o.onMenu(row, event)),
			...this.o.children && row ? this.treeKeys(row) : null,
		};
		if (!actions[event.key])
			return;
		event.preventDefault();
		event.stopPropagation();
		actions[event.key]();
	}

	treeKeys(row) {
		const isOpen = this.expanded.has(row);
		return {
			ArrowRight: () => isOpen ? row.kids && row.kids.length && this.select(this.view[this.view.indexOf(row) + 1], true) : this.expand(row, true),
			ArrowLeft: () => isOpen ? this.expand(row, false) : row.up && this.select(row.up, true),
			"*": () => this.expandHeaviest(row),
		};
	}

	// ---- tools

	columnChooser() {
		return popover("Columns", panel => panel.append(h("fieldset", null, h("legend", null, "Columns"),
			this.o.columns.map(column => h("label", null,
				h("input", { type: "checkbox", checked: this.shown.has(column.key), on: { change: event => {
					this.shown[event.target.checked ? "add" : "delete"](column.key);
					if (!this.shown.size)
						this.shown.add(column.key);
					this.build();
					this.o.onColumns?.([...this.shown]);
				} } }), " ", column.title)))));
	}

	copyMenu() {
		const copy = (format, close) => {
			copyText(tableFormats[format](this.columns, this.view))
				.then(() => this.ctx.announce(`Copied ${this.view.length} rows as ${format}`));
			close();
		};
		return popover("Copy", (panel, close) => panel.append(
			...["csv", "json", "markdown"].map(format =>
				button(`Copy as ${format.toUpperCase()}`, () => copy(format, close))),
			button("Save CSV", () => {
				saveFile((this.o.file || "table") + ".csv", "text/csv", tableFormats.csv(this.columns, this.view));
				close();
			})));
	}
}
