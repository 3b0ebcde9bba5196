// The flame chart: stacks in order of time, a lane for each thread. What it has is of a window of time, in pixels; when the
// window changes it is drawn as it is until the server has sent what can be seen now.
import { axisStep, secondsText } from "./heat.js";

const ROW = 17,
	TITLE = 20,
	AXIS = 18,
	GAP = 8,
	LEAST_WINDOW = 1e-4,
	LEAST_TEXT = 24,
	FONT = "11px system-ui, sans-serif";

/** Boxes of a lane by depth, then by time, in arrays of numbers: those of depth d are from rows[d] to rows[d + 1]. */
function sortBoxes({ boxes, depth, name, ticks }) {
	const n = boxes.length / 4,
		order = Array.from({ length: n }, (_, i) => 4 * i).sort((a, b) => boxes[a] - boxes[b] || boxes[a + 1] - boxes[b + 1]),
		lane = { name, ticks, depth, n, x: new Int32Array(n), w: new Int32Array(n), fn: new Int32Array(n), at: new Int32Array(n), rows: new Int32Array(depth + 2) };

	order.forEach((from, i) => {
		lane.at[i] = boxes[from];
		lane.x[i] = boxes[from + 1];
		lane.w[i] = boxes[from + 2];
		lane.fn[i] = boxes[from + 3];
		lane.rows[boxes[from] + 1] = i + 1;
	});
	for (let i = 1; i < lane.rows.length; i++)
		lane.rows[i] = Math.max(lane.rows[i], lane.rows[i - 1]);
	return lane;
}

/** The last box of a row that begins at or before x, or -1. */
function lastBefore(lane, depth, x) {
	let low = lane.rows[depth],
		high = lane.rows[depth + 1];
	const first = low;

	while (low < high) {
		const middle = (low + high) >> 1;

		if (lane.x[middle] <= x)
			low = middle + 1;
		else
			high = middle;
	}
	return low > first ? low - 1 : -1;
}

/**
 * @param {{span: number, onWindow: (from: number, to: number) => void, onSelect: (fn: any) => void, tell: (what: string, amount: string) => void}} options seconds
 */
export function createLanes(kit, ctx, options) {
	const canvas = kit.h("canvas", { class: "lanes", tabindex: 0, role: "application", "aria-roledescription": "flame chart" }),
		twin = kit.h("ol", { class: "sr-only", "aria-label": "Stack that is selected" }),
		host = kit.h("div", { class: "lanes-box" }, canvas, twin),
		pen = canvas.getContext("2d");
	let data = null,
		lanes = [],
		tops = [],
		view = [0, options.span],
		selected = null,
		drag = null,
		frame = 0,
		frames = 0;

	// ---- where things are

	const width = () => canvas.clientWidth,
		timeAt = x => data.from / 1e9 + (x / data.columns) * ((data.to - data.from) / 1e9),
		pixelOf = time => ((time - view[0]) / (view[1] - view[0])) * width(),
		startOf = (lane, i) => timeAt(lane.x[i]),
		endOf = (lane, i) => timeAt(lane.x[i] + lane.w[i]),
		functionOf = (lane, i) => data.functions[lane.fn[i]];

	function layOut() {
		let y = AXIS;

		tops = lanes.map(lane => {
			const top = y;

			y += TITLE + lane.depth * ROW + GAP;
			return top;
		});
		canvas.style.height = `${Math.max(80, y)}px`;
	}

	// ---- drawing

	function later() {
		frame ||= requestAnimationFrame(draw);
	}

	function draw() {
		const ratio = devicePixelRatio || 1,
			top = host.scrollTop,
			bottom = top + host.clientHeight,
			style = getComputedStyle(canvas);

		frame = 0;
		if (!data || !width())
			return;
		frames++;
		if (canvas.width !== Math.round(width() * ratio) || canvas.height !== Math.round(canvas.clientHeight * ratio)) {
			canvas.width = Math.round(width() * ratio);
			canvas.height = Math.round(canvas.clientHeight * ratio);
		}
		pen.setTransform(ratio, 0, 0, ratio, 0, 0);
		pen.clearRect(0, top, width(), bottom - top);
		pen.font = FONT;
		pen.textBaseline = "middle";
		drawAxis(style);
		lanes.forEach((lane, i) => {
			if (tops[i] < bottom && tops[i] + TITLE + lane.depth * ROW > top)
				drawLane(lane, tops[i], style);
		});
		drawSelected(style);
	}

	function drawAxis(style) {
		const step = axisStep(view[1] - view[0], width() / 100);

		for (let i = Math.ceil(view[0] / step); i * step <= view[1]; i++) {
			const x = pixelOf(i * step);

			pen.fillStyle = style.getPropertyValue("--line");
			pen.fillRect(x, 0, 1, canvas.clientHeight);
			pen.fillStyle = style.getPropertyValue("--muted");
			if (x + 50 < width())
				pen.fillText(secondsText(i * step, step), x + 4, AXIS / 2);
		}
	}

	function drawLane(lane, top, style) {
		pen.fillStyle = style.getPropertyValue("--text");
		pen.fillText(`${kit.cleanName(lane.name, 100)} · ${lane.ticks.toLocaleString("en")} ${lane.ticks === 1 ? "sample" : "samples"}`, 4, top + TITLE / 2);
		for (let depth = 0; depth < lane.depth; depth++)
			for (let i = Math.max(lane.rows[depth], lastVisible(lane, depth)); i < lane.rows[depth + 1]; i++) {
				const left = pixelOf(startOf(lane, i));

				if (left > width())
					break;
				drawBox(lane, i, Math.max(0, left), Math.min(width(), pixelOf(endOf(lane, i))), top + TITLE + depth * ROW);
			}
	}

	/** Of a row the first box that may be in view. */
	function lastVisible(lane, depth) {
		const x = ((view[0] * 1e9 - data.from) / (data.to - data.from)) * data.columns;

		return lastBefore(lane, depth, x);
	}

	function drawBox(lane, i, left, right, y) {
		const fn = functionOf(lane, i),
			gap = right - left > 3 ? 0.7 : 0;

		if (right <= left)
			return;
		// Neighbours are mostly of one package: here it is their names that tell them apart.
		pen.fillStyle = ctx.palette.group(fn[1]);
		pen.fillRect(left, y, Math.max(0.6, right - left - gap), ROW - 1);
		if (right - left < LEAST_TEXT)
			return;
		pen.save();
		pen.beginPath();
		pen.rect(left, y, right - left - 2, ROW);
		pen.clip();
		pen.fillStyle = ctx.palette.text;
		pen.fillText(kit.cleanName(fn[1], 120), left + 3, y + ROW / 2);
		pen.restore();
	}

	function drawSelected(style) {
		const found = findSelected();

		if (!found)
			return;
		const { lane, i, top } = found,
			left = Math.max(1, pixelOf(startOf(lane, i))),
			right = Math.min(width() - 1, pixelOf(endOf(lane, i)));

		pen.strokeStyle = style.getPropertyValue("--focus");
		pen.lineWidth = 2;
		if (right > left)
			pen.strokeRect(left, top + TITLE + lane.at[i] * ROW, right - left, ROW - 1);
	}

	// ---- what is selected: a lane, a depth and a time, so that it stays when there is more to be seen

	function boxAt(lane, depth, time) {
		const x = ((time * 1e9 - data.from) / (data.to - data.from)) * data.columns,
			i = depth >= 0 && depth < lane.depth ? lastBefore(lane, depth, x) : -1;

		return i >= 0 && x < lane.x[i] + lane.w[i] ? i : -1;
	}

	function findSelected() {
		const index = selected && data ? lanes.findIndex(lane => lane.name === selected.lane) : -1;

		if (index < 0)
			return null;
		const lane = lanes[index],
			i = boxAt(lane, selected.depth, selected.time);

		return i < 0 ? null : { lane, i, top: tops[index], index };
	}

	/** Where there is more to be seen, its function may be a little beside; or not there any more. */
	function keepSelected() {
		const lane = selected && lanes.find(item => item.name === selected.lane),
			now = lane ? boxAt(lane, selected.depth, selected.time) : -1;
		const isIt = i => functionOf(lane, i)[0] === selected.fn && startOf(lane, i) < selected.to && endOf(lane, i) > selected.from;
		let i = now >= 0 && isIt(now) ? now : -1;

		for (let k = lane?.rows[selected.depth]; lane && i < 0 && k < lane.rows[selected.depth + 1]; k++)
			if (isIt(k))
				i = k;
		if (i < 0) {
			selected = null;
			kit.clear(twin);
			return;
		}
		selected.time = (startOf(lane, i) + endOf(lane, i)) / 2;
		describe(lane, i);
		updateTwin(lane, selected.time);
	}

	function describe(lane, i) {
		const from = startOf(lane, i),
			to = endOf(lane, i),
			step = (view[1] - view[0]) / 1000;

		options.tell(kit.cleanName(functionOf(lane, i)[1], 300), `${kit.cleanName(lane.name, 60)}, ${secondsText(from, step)} to ${secondsText(to, step)}, ${secondsText(to - from, step)}`);
		return `${secondsText(to - from, step)} from ${secondsText(from, step)}`;
	}

	function select(index, i) {
		const lane = lanes[index],
			// What is under a window must be in it.
			time = (Math.max(view[0], startOf(lane, i)) + Math.min(view[1], endOf(lane, i))) / 2,
			top = tops[index] + TITLE + lane.at[i] * ROW;

		selected = { lane: lane.name, depth: lane.at[i], time, fn: functionOf(lane, i)[0], from: startOf(lane, i), to: endOf(lane, i) };
		if (top < host.scrollTop)
			host.scrollTop = top - TITLE;
		else if (top + ROW > host.scrollTop + host.clientHeight)
			host.scrollTop = top + 2 * ROW - host.clientHeight;
		options.onSelect(functionOf(lane, i));
		ctx.announce(`${kit.cleanName(functionOf(lane, i)[1], 200)}, ${describe(lane, i)}, depth ${lane.at[i] + 1}, ${kit.cleanName(lane.name, 60)}`);
		updateTwin(lane, time);
		later();
	}

	/** The stack at that time, for those who cannot see it. */
	function updateTwin(lane, time) {
		kit.clear(twin);
		for (let depth = 0; depth < lane.depth; depth++) {
			const i = boxAt(lane, depth, time);

			if (i >= 0)
				twin.append(kit.h("li", { "aria-current": depth === selected.depth ? "true" : null }, kit.cleanName(functionOf(lane, i)[1], 200)));
		}
	}

	// ---- the window

	function setWindow(from, to, isFinal) {
		const length = Math.max(LEAST_WINDOW, Math.min(options.span, to - from)),
			start = Math.max(0, Math.min(options.span - length, from));

		view = [start, start + length];
		later();
		if (isFinal)
			options.onWindow(view[0], view[1]);
	}

	function zoom(factor, time = (view[0] + view[1]) / 2) {
		setWindow(time - (time - view[0]) / factor, time + (view[1] - time) / factor, true);
	}

	const pan = share => setWindow(view[0] + share * (view[1] - view[0]), view[1] + share * (view[1] - view[0]), true);

	// ---- by pointer

	function hit(event) {
		const box = canvas.getBoundingClientRect(),
			x = event.clientX - box.left,
			y = event.clientY - box.top,
			index = lanes.findIndex((lane, i) => y >= tops[i] + TITLE && y < tops[i] + TITLE + lane.depth * ROW),
			time = view[0] + (x / width()) * (view[1] - view[0]),
			i = index < 0 ? -1 : boxAt(lanes[index], Math.floor((y - tops[index] - TITLE) / ROW), time);

		return { index, i, time };
	}

	canvas.addEventListener("pointerdown", event => {
		if (data && !event.button) {
			drag = { x: event.clientX, view, moved: false };
			canvas.setPointerCapture(event.pointerId);
		}
	});
	canvas.addEventListener("pointermove", event => {
		if (!data)
			return;
		if (!drag) {
			const { index, i } = hit(event);

			i >= 0 ? describe(lanes[index], i) : options.tell("", "");
			canvas.style.cursor = i >= 0 ? "pointer" : "";
			return;
		}
		const by = ((drag.x - event.clientX) / width()) * (drag.view[1] - drag.view[0]);

		drag.moved ||= Math.abs(drag.x - event.clientX) > 4;
		if (drag.moved)
			setWindow(drag.view[0] + by, drag.view[1] + by, false);
	});
	canvas.addEventListener("pointerup", event => {
		const was = drag;

		drag = null;
		if (!was)
			return;
		if (was.moved) {
			options.onWindow(view[0], view[1]);
			return;
		}
		const { index, i } = hit(event);

		if (i >= 0)
			select(index, i);
	});
	canvas.addEventListener("pointercancel", () => (drag = null));
	canvas.addEventListener("dblclick", event => {
		const { index, i, time } = hit(event);

		i >= 0 ? zoomTo(lanes[index], i) : zoom(4, time);
	});
	canvas.addEventListener("contextmenu", event => {
		const { index, i } = hit(event);

		if (i < 0)
			return;
		event.preventDefault();
		select(index, i);
		kit.openFunctionMenu(ctx, functionOf(lanes[index], i), event);
	});
	canvas.addEventListener("wheel", event => {
		if (event.ctrlKey || event.metaKey) {
			event.preventDefault();
			zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.004)), hit(event).time);
		} else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
			event.preventDefault();
			pan((event.deltaX || event.deltaY) / width());
		}
	}, { passive: false });
	host.addEventListener("scroll", later);

	// ---- by keys

	function zoomTo(lane, i) {
		const from = startOf(lane, i),
			to = endOf(lane, i);

		setWindow(from - (to - from) * 0.02, to + (to - from) * 0.02, true);
	}

	/** Another box, from the one that is selected. */
	function step(key) {
		const found = findSelected();

		if (!found) {
			const index = lanes.findIndex(lane => lane.n);

			if (index >= 0)
				select(index, Math.max(lanes[index].rows[0], lastVisible(lanes[index], 0)));
			return;
		}
		const { lane, i, index } = found,
			depth = lane.at[i],
			first = lane.rows[depth],
			last = lane.rows[depth + 1] - 1;
		const nearest = (to, at) => to && to.n && select(lanes.indexOf(to), Math.max(0, lastBefore(to, 0, at)));
		const moves = {
			ArrowLeft: () => i > first && select(index, i - 1),
			ArrowRight: () => i < last && select(index, i + 1),
			Home: () => select(index, first),
			End: () => select(index, last),
			ArrowUp: () => depth && select(index, lastBefore(lane, depth - 1, lane.x[i])),
			ArrowDown: () => {
				const child = depth + 1 < lane.depth ? childOf(lane, depth + 1, i) : -1;

				if (child >= 0)
					select(index, child);
			},
			PageUp: () => nearest(lanes[index - 1], lane.x[i]),
			PageDown: () => nearest(lanes[index + 1], lane.x[i]),
		};

		moves[key]();
	}

	/** The first box below another. */
	function childOf(lane, depth, i) {
		for (let k = Math.max(lane.rows[depth], lastBefore(lane, depth, lane.x[i])); k < lane.rows[depth + 1]; k++) {
			if (lane.x[k] >= lane.x[i] + lane.w[i])
				return -1;
			if (lane.x[k] >= lane.x[i])
				return k;
		}
		return -1;
	}

	const KEYS = {
		"+": () => zoom(2), "=": () => zoom(2), "-": () => zoom(0.5), Backspace: () => zoom(0.5),
		0: () => options.onWindow(0, 0),
		Enter: () => {
			const found = findSelected();

			if (found)
				zoomTo(found.lane, found.i);
		},
		ContextMenu: event => {
			const found = findSelected();

			if (found)
				kit.openFunctionMenu(ctx, functionOf(found.lane, found.i), event);
		},
	};

	canvas.addEventListener("keydown", event => {
		const isArrow = /^(Arrow|Home|End|Page)/.test(event.key);

		if (!data || event.ctrlKey || event.altKey || event.metaKey || (!isArrow && !KEYS[event.key]))
			return;
		event.preventDefault();
		event.stopPropagation();
		if (event.shiftKey && /^Arrow(Left|Right)/.test(event.key))
			pan(event.key === "ArrowLeft" ? -0.25 : 0.25);
		else
			isArrow ? step(event.key) : KEYS[event.key](event);
	});

	return {
		host,
		canvas,
		draw: later,
		zoom,
		get columns() {
			return Math.max(16, Math.min(4000, Math.round(width() * (devicePixelRatio || 1))));
		},
		get window() {
			return view;
		},
		get stats() {
			const found = findSelected();

			return { lanes: lanes.map(lane => lane.name), boxes: lanes.reduce((sum, lane) => sum + lane.n, 0), view, frames, selected: found ? functionOf(found.lane, found.i)[1] : null };
		},
		setWindow,
		setData(next) {
			data = next;
			lanes = next.lanes.map(sortBoxes);
			layOut();
			keepSelected();
			canvas.setAttribute("aria-label", `Stacks over time of ${lanes.length} ${lanes.length === 1 ? "thread" : "threads"}, ${secondsText(view[0])} to ${secondsText(view[1])}. Arrows move between frames, Page Up and Down between threads, plus and minus zoom`);
			later();
		},
		destroy: () => cancelAnimationFrame(frame),
	};
}
