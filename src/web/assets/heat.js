// The heat map: columns are seconds, or what fits, rows are parts of them. What is dragged over is a part of the time.

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
 * @param {{onRange: (from: number, to: number) => void, onClear: () => void, tell: (text: string) => void}} options times are seconds
 */
export function createHeat(kit, ctx, options) {
	const canvas = kit.h("canvas", { class: "heat", tabindex: 0, role: "application", "aria-roledescription": "heat map" }),
		pen = canvas.getContext("2d");
	let data = null,
		range = null,
		anchor = null,
		cursor = null,
		isDragging = false,
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

	/** What is not chosen is veiled. */
	function drawRange() {
		const chosen = anchor !== null && cursor !== null ? [Math.min(anchor, cursor), Math.max(anchor, cursor) + 1] : range && [range[0] / slot(), range[1] / slot()],
			style = getComputedStyle(canvas);

		if (chosen) {
			pen.fillStyle = style.getPropertyValue("--bg");
			pen.globalAlpha = 0.7;
			for (let column = 0; column < data.columns; column++) {
				const top = Math.max(0, Math.min(data.rows, chosen[0] - column * data.rows)),
					bottom = Math.max(0, Math.min(data.rows, chosen[1] - column * data.rows)),
					x = columnX(column),
					w = columnX(column + 1) - x;

				pen.fillRect(x, 0, w, rowY(top));
				if (bottom >= top)
					pen.fillRect(x, rowY(bottom), w, HEIGHT - rowY(bottom));
			}
			pen.globalAlpha = 1;
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
		options.onRange(startOf(from), startOf(to));
	}

	canvas.addEventListener("pointerdown", event => {
		if (!data || event.button)
			return;
		canvas.setPointerCapture(event.pointerId);
		isDragging = true;
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
		isDragging = false;
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
			commit();
		} else if (event.key === "Escape" && (anchor !== null || range)) {
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
			canvas.setAttribute("aria-label", `Samples over ${secondsText(next.span / 1e9, 0.1)}: a column is ${secondsText(next.step / 1e9)}, of ${next.rows} rows. Arrows move, Shift and arrows choose a part, Enter takes it`);
			draw();
		},
		setRange(next) {
			range = next;
			draw();
		},
	};
}
