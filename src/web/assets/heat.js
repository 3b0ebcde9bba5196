// The heat map: columns are seconds, or what fits, rows are parts of them. What is dragged over is a part of the time, with
// Shift the baseline to compare it with.

const LEVELS = 16,
	HEIGHT = 168,
	AXIS = 18;

/** Colours from none to most. */
function heatColors(oklch, theme) {
	return Array.from({ length: LEVELS }, (_, i) => {
		const part = i / (LEVELS - 1);

		return theme === "dark" ? oklch(0.3 + 0.52 * part, 0.05 + 0.12 * part, 40 + 45 * part) : oklch(0.93 - 0.45 * part, 0.04 + 0.13 * part, 75 - 45 * part);
	});
}

/** Steps of an axis, in seconds: at most so many. */
export function axisStep(span, most) {
	const rough = span / Math.max(1, most),
		power = 10 ** Math.floor(Math.log10(rough));

	return [1, 2, 5, 10].map(factor => factor * power).find(step => step >= rough * 0.999) || 1;
}

/** "12.34 s" with as many digits as a step has. */
export function secondsText(seconds, step = 0.001) {
	return `${seconds.toFixed(Math.max(0, Math.min(6, Math.ceil(-Math.log10(step) - 1e-9))))} s`;
}

/**
 * @param {any} kit what pages share
 * @param {{onRange: (from: number, to: number) => void, onBase: (from: number, to: number) => void, onClear: () => void,
 *   tell: (text: string) => void}} options times are seconds
 */
export function createHeat(kit, ctx, options) {
	const canvas = kit.h("canvas", { class: "heat", tabindex: 0, role: "application", "aria-roledescription": "heat map" }),
		pen = canvas.getContext("2d");
	let data = null,
		range = null,
		base = null,
		anchor = null,
		cursor = null,
		isDragging = false,
		isBase = false,
		levels = [],
		width = 0;

	const slot = () => data.step / 1e9 / data.rows,
		count = () => data.columns * data.rows,
		startOf = cell => cell * slot(),
		valueOf = cell => data.cells[cell];

	function draw() {
		const ratio = devicePixelRatio || 1;

		if (!data || !canvas.clientWidth)
			return;
		width = canvas.clientWidth;
		canvas.width = width * ratio;
		canvas.height = (HEIGHT + AXIS) * ratio;
		pen.setTransform(ratio, 0, 0, ratio, 0, 0);
		pen.clearRect(0, 0, width, HEIGHT + AXIS);
		drawCells();
		drawRange();
		drawAxis();
	}

	const columnX = column => (column * width) / data.columns,
		rowY = row => (row * HEIGHT) / data.rows;

	function drawCells() {
		const colors = heatColors(kit.oklch, ctx.theme),
			gap = width / data.columns > 4 ? 0.6 : 0;

		levels.forEach((cells, level) => {
			pen.fillStyle = colors[level];
			for (const cell of cells) {
				const column = Math.floor(cell / data.rows),
					row = cell % data.rows,
					x = columnX(column),
					y = rowY(row);

				pen.fillRect(x, y, columnX(column + 1) - x - gap, rowY(row + 1) - y - (HEIGHT / data.rows > 4 ? 0.6 : 0));
			}
		});
	}

	/** Window and baseline, in cells: [from, to], or null. What is being chosen goes before what was. */
	function chosenCells() {
		const toCells = times => times && times.map(time => Math.max(0, Math.min(count(), time / slot()))),
			now = anchor !== null && cursor !== null ? [Math.min(anchor, cursor), Math.max(anchor, cursor) + 1] : null;

		return { shown: (!isBase && now) || toCells(range), before: (isBase && now) || toCells(base) };
	}

	/** What is in neither is veiled. */
	function drawVeil(parts, color) {
		pen.fillStyle = color;
		pen.globalAlpha = 0.7;
		for (let column = 0; column < data.columns; column++) {
			const x = columnX(column),
				inside = cell => Math.max(0, Math.min(data.rows, cell - column * data.rows));
			let at = 0;

			for (const [from, to] of [...parts, [Infinity, Infinity]]) {
				pen.fillRect(x, rowY(at), columnX(column + 1) - x, Math.max(0, rowY(inside(from)) - rowY(at)));
				at = Math.max(at, inside(to));
			}
		}
		pen.globalAlpha = 1;
	}

	/** Around the cells of a part, which may begin and end within columns. */
	function outline([from, to]) {
		const { rows } = data,
			first = Math.floor(from / rows),
			last = Math.max(first, Math.ceil(to / rows) - 1),
			[top, bottom] = [rowY(from - first * rows), rowY(to - last * rows)],
			[left, right] = [columnX(first), columnX(last + 1)];

		pen.beginPath();
		if (first === last)
			pen.rect(left, top, right - left, bottom - top);
		else
			[[left, top], [columnX(first + 1), top], [columnX(first + 1), 0], [right, 0], [right, bottom], [columnX(last), bottom], [columnX(last), HEIGHT], [left, HEIGHT]]
				.forEach(([x, y], i) => (i ? pen.lineTo(x, y) : pen.moveTo(x, y)));
		pen.closePath();
		pen.stroke();
	}

	/** The letters are those of the sides of a comparison. */
	function drawLetter(letter, [from], style) {
		const x = Math.min(width - 14, columnX(Math.floor(from / data.rows)) + 2);

		pen.fillStyle = style.getPropertyValue("--bg");
		pen.fillRect(x, 2, 13, 14);
		pen.fillStyle = style.getPropertyValue("--text");
		pen.font = "bold 11px system-ui, sans-serif";
		pen.textBaseline = "middle";
		pen.fillText(letter, x + 3, 9.5);
	}

	function drawRange() {
		const { shown, before } = chosenCells(),
			style = getComputedStyle(canvas),
			parts = [shown, before].filter(Boolean).sort((a, b) => a[0] - b[0]);

		if (parts.length)
			drawVeil(parts, style.getPropertyValue("--bg"));
		if (before) {
			pen.strokeStyle = style.getPropertyValue("--text");
			pen.lineWidth = 1.5;
			pen.setLineDash([5, 4]);
			outline(before);
			pen.setLineDash([]);
			drawLetter("A", before, style);
			if (shown) {
				outline(shown);
				drawLetter("B", shown, style);
			}
		}
		if (cursor !== null && document.activeElement === canvas) {
			pen.strokeStyle = style.getPropertyValue("--focus");
			pen.lineWidth = 2;
			pen.strokeRect(columnX(Math.floor(cursor / data.rows)) - 1, rowY(cursor % data.rows) - 1, width / data.columns + 2, HEIGHT / data.rows + 2);
		}
	}

	function drawAxis() {
		const style = getComputedStyle(canvas),
			span = (data.columns * data.step) / 1e9,
			step = axisStep(span, width / 90);

		pen.fillStyle = style.getPropertyValue("--muted");
		pen.font = "11px system-ui, sans-serif";
		pen.textBaseline = "middle";
		for (let at = 0; at < span; at += step) {
			const x = (at / span) * width;

			pen.fillRect(x, HEIGHT, 1, 4);
			if (x + 40 < width)
				pen.fillText(secondsText(at, step), x + 3, HEIGHT + AXIS / 2 + 1);
		}
	}

	// ---- by pointer

	function cellAt(event) {
		const box = canvas.getBoundingClientRect(),
			column = Math.max(0, Math.min(data.columns - 1, Math.floor(((event.clientX - box.left) / box.width) * data.columns))),
			row = Math.max(0, Math.min(data.rows - 1, Math.floor(((event.clientY - box.top) / HEIGHT) * data.rows)));

		return column * data.rows + row;
	}

	function tellCell(cell) {
		options.tell(`${secondsText(startOf(cell), slot())}: ${ctx.format(valueOf(cell), data.unit)}`);
	}

	function commit() {
		const from = Math.min(anchor, cursor),
			to = Math.max(anchor, cursor) + 1;

		anchor = null;
		(isBase ? options.onBase : options.onRange)(startOf(from), startOf(to));
		isBase = false;
	}

	canvas.addEventListener("pointerdown", event => {
		if (!data || event.button)
			return;
		canvas.setPointerCapture(event.pointerId);
		isDragging = true;
		isBase = event.shiftKey;
		anchor = cursor = cellAt(event);
		draw();
	});
	canvas.addEventListener("pointermove", event => {
		if (!data)
			return;
		tellCell(cellAt(event));
		if (isDragging) {
			cursor = cellAt(event);
			draw();
		}
	});
	canvas.addEventListener("pointerup", () => {
		if (!isDragging)
			return;
		isDragging = false;
		// A click is the whole column.
		if (anchor === cursor) {
			anchor -= anchor % data.rows;
			cursor = anchor + data.rows - 1;
		}
		commit();
	});
	canvas.addEventListener("pointercancel", () => {
		isDragging = isBase = false;
		anchor = null;
		draw();
	});
	canvas.addEventListener("focus", draw);
	canvas.addEventListener("blur", draw);

	// ---- by keys

	function move(step, extend) {
		if (cursor === null)
			cursor = range ? Math.min(count() - 1, Math.round(range[0] / slot())) : 0;
		else {
			anchor = extend ? (anchor ?? cursor) : null;
			cursor = Math.max(0, Math.min(count() - 1, cursor + step));
		}
		tellCell(cursor);
		ctx.announce(`${secondsText(startOf(cursor), slot())}, ${ctx.format(valueOf(cursor), data.unit)}${anchor === null ? "" : `, from ${secondsText(startOf(Math.min(anchor, cursor)), slot())}`}`);
		draw();
	}

	canvas.addEventListener("keydown", event => {
		const rows = data?.rows,
			steps = { ArrowLeft: -rows, ArrowRight: rows, ArrowUp: -1, ArrowDown: 1, Home: -count0(), End: count0() };

		if (!data || event.ctrlKey || event.altKey || event.metaKey)
			return;
		if (event.key in steps)
			move(steps[event.key], event.shiftKey);
		else if (event.key === "Enter" && cursor !== null) {
			if (anchor === null) {
				anchor = cursor - (cursor % rows);
				cursor = anchor + rows - 1;
			}
			isBase = event.shiftKey;
			commit();
		} else if (event.key === "Escape" && (anchor !== null || range || base)) {
			anchor !== null ? (anchor = null) : options.onClear();
			draw();
		} else
			return;
		event.preventDefault();
		event.stopPropagation();
	});

	const count0 = () => (data ? count() : 0);

	return {
		canvas,
		draw,
		setData(next) {
			const most = next.cells.reduce((a, b) => Math.max(a, b), 1);

			data = next;
			cursor = anchor = null;
			levels = Array.from({ length: LEVELS }, () => []);
			next.cells.forEach((value, cell) => value > 0 && levels[Math.min(LEVELS - 1, Math.floor((value / most) ** 0.7 * LEVELS))].push(cell));
			canvas.setAttribute("aria-label", `Samples over ${secondsText(next.span / 1e9, 0.1)}: a column is ${secondsText(next.step / 1e9)}, of ${next.rows} rows. Arrows move, Shift and arrows choose a part, Enter takes it, Shift and Enter take it as the baseline`);
			draw();
		},
		setRange(next, nextBase) {
			range = next;
			base = nextBase;
			draw();
		},
	};
}
