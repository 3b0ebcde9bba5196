// The Graph page: the call graph that dot has laid out, to be moved and asked.
import { h, svg, clear } from "./dom.js";
import { shortName } from "./format.js";
import { button, muted, popover } from "./table.js";
import { dataKey, latest, functionMap, openFunctionMenu, pageNote } from "./pages.js";

const GRAPH_ELEMENTS = /^(svg|g|a|path|polygon|polyline|ellipse|circle|rect|line|text|tspan|defs|linearGradient|radialGradient|stop)$/;
const GRAPH_ATTRIBUTES = /^(id|class|d|points|[xy][12]?|[cdr][xy]|r|width|height|transform|offset|opacity|gradientUnits|(fill|stroke|font|text|stop)(-[a-z]+)*)$/;
const GRAPH_INITIAL = 80, ZOOM_STEP = 1.1, SMALLEST = 0.05, LARGEST = 8, READABLE = 0.6, FAR = 0.5, FAR_TEXT = 9;
const GRAPH_LEGEND = ["Boxes are functions: larger text is more self, redder is more total.", "Arrows are calls: dashed ones go through functions not shown."];

/** A copy of an element with what is known to be harmless; null if it is another kind. */
function copyGraphElement(source) {
	if (!GRAPH_ELEMENTS.test(source.localName))
		return null;
	const copy = svg(source.localName === "a" || source.localName === "svg" ? "g" : source.localName);

	for (const { name, value } of source.attributes)
		if (GRAPH_ATTRIBUTES.test(name) && (!/url\(/i.test(value) || /^url\(#[\w-]+\)$/.test(value)))
			copy.setAttribute(name, value);
	for (const child of source.childNodes)
		if (child.nodeType === Node.TEXT_NODE)
			copy.append(child.data);
		else if (child.localName === "title" && source.localName === "g")
			copy.dataset.title = child.textContent;
		else if (child.nodeType === Node.ELEMENT_NODE)
			copy.append(copyGraphElement(child) || "");
	return copy;
}

/** The picture of dot's output, without anything that could run or load. */
export function safeSvg(text) {
	const parsed = new DOMParser().parseFromString(text, "image/svg+xml");

	if (parsed.querySelector("parsererror") || parsed.documentElement.localName !== "svg")
		throw new Error("The picture of the graph cannot be read.");
	return copyGraphElement(parsed.documentElement);
}

/** Moves and scales a group inside of an svg: pointers, wheel, pinch. */
function graphView(host, group, moved) {
	const view = { x: 0, y: 0, k: 1 }, pointers = new Map();
	let isDrag = false;

	const apply = () => {
		group.setAttribute("transform", `translate(${view.x} ${view.y}) scale(${view.k})`);
		host.classList.toggle("far", view.k < FAR);
		group.style.setProperty("--far", `${FAR_TEXT / view.k}px`);
		moved(view);
	};
	const at = event => {
		const box = host.getBoundingClientRect();
		return [event.clientX - box.left, event.clientY - box.top];
	};
	const zoomAt = (x, y, factor) => {
		const k = Math.max(SMALLEST, Math.min(LARGEST, view.k * factor)), f = k / view.k;
		Object.assign(view, { x: x - (x - view.x) * f, y: y - (y - view.y) * f, k });
		apply();
	};
	const pan = (dx, dy) => {
		view.x += dx;
		view.y += dy;
		apply();
	};
	const zoom = factor => {
		const { width, height } = host.getBoundingClientRect();
		zoomAt(width / 2, height / 2, factor);
	};
	const fit = (least = SMALLEST) => {
		const box = group.getBBox(), { width, height } = host.getBoundingClientRect();
		const k = Math.max(least, Math.min(width / (box.width + 20), height / (box.height + 20), 1.25)) || 1;
		Object.assign(view, { k, x: (width - box.width * k) / 2 - box.x * k, y: 10 - box.y * k });
		apply();
	};
	/** Puts a place of the picture in the middle. */
	const centre = (x, y) => {
		const { width, height } = host.getBoundingClientRect();
		pan(width / 2 - view.x - x * view.k, height / 2 - view.y - y * view.k);
	};
	/** Makes an element visible, in the middle if it was not. */
	const reveal = element => {
		const box = element.getBoundingClientRect(), frame = host.getBoundingClientRect();
		if (box.left < frame.left || box.right > frame.right || box.top < frame.top || box.bottom > frame.bottom)
			pan(frame.left + frame.width / 2 - box.left - box.width / 2, frame.top + frame.height / 2 - box.top - box.height / 2);
	};

	host.addEventListener("wheel", event => {
		const pixels = event.deltaY * (event.deltaMode ? 33 : 1) * (event.ctrlKey ? 5 : 1);
		event.preventDefault();
		zoomAt(...at(event), ZOOM_STEP ** Math.max(-3, Math.min(3, -pixels / 100)));
	}, { passive: false });
	host.addEventListener("pointerdown", event => {
		if (event.button)
			return;
		pointers.set(event.pointerId, at(event));
		isDrag = false;
	});
	host.addEventListener("pointermove", event => {
		const before = pointers.get(event.pointerId), now = at(event);
		if (!before || !isDrag && pointers.size === 1 && Math.hypot(now[0] - before[0], now[1] - before[1]) < 4)
			return;
		if (!isDrag)
			host.setPointerCapture(event.pointerId);
		isDrag = true;
		pointers.set(event.pointerId, now);
		if (pointers.size === 1) {
			pan(now[0] - before[0], now[1] - before[1]);
			return;
		}
		const other = [...pointers].find(([id]) => id !== event.pointerId)[1];
		const distance = p => Math.hypot(p[0] - other[0], p[1] - other[1]) || 1;
		zoomAt((now[0] + other[0]) / 2, (now[1] + other[1]) / 2, distance(now) / distance(before));
	});
	for (const type of ["pointerup", "pointercancel"])
		host.addEventListener(type, event => pointers.delete(event.pointerId));
	return { view, pan, zoom, fit, reveal, centre, get isDrag() { return isDrag; } };
}

/** Where elements are in the picture, whatever the view: [{x, y, width, height}]. */
function graphBoxes(host, { x, y, k }, elements) {
	const frame = host.getBoundingClientRect();

	return elements.map(element => {
		const box = element.getBoundingClientRect();
		return { x: (box.left - frame.left - x) / k, y: (box.top - frame.top - y) / k, width: box.width / k, height: box.height / k };
	});
}

/** All boxes in small, and which of them are in view; pointing there goes there. show(view) hides it when all fit. */
function graphMap(host, group, boxes, go) {
	const all = group.getBBox(), seen = svg("rect", { class: "seen" });
	const map = svg("svg", { class: "graph-map", viewBox: `${all.x} ${all.y} ${all.width} ${all.height}` }, boxes.map(box => svg("rect", box)), seen);
	const move = event => {
		const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(map.getScreenCTM().inverse());
		event.stopPropagation();
		if (event.buttons & 1)
			go(at.x, at.y);
	};

	map.addEventListener("pointerdown", event => {
		map.setPointerCapture(event.pointerId);
		move(event);
	});
	map.addEventListener("pointermove", move);
	map.addEventListener("click", event => event.stopPropagation());
	map.show = ({ x, y, k }) => {
		const { width, height } = host.getBoundingClientRect(), view = { x: -x / k, y: -y / k, width: width / k, height: height / k };
		for (const name of Object.keys(view))
			seen.setAttribute(name, view[name]);
		map.classList.toggle("needless", view.width >= all.width && view.height >= all.height);
	};
	return map;
}

/** The graph as data: which element is which node, and who calls whom. */
function graphModel(data, picture, functions) {
	const nodes = data.nodes.map(([id, flat, cum]) => ({ f: functions.get(id), flat, cum, labels: [], in: [], out: [] }));
	// By what dot calls them.
	const items = new Map(nodes.map((node, i) => [`N${i + 1}`, node]));
	const edges = data.edges.map(([i, k, weight, inline, residual]) => {
		const from = nodes[i], to = nodes[k], edge = { from, to, weight, inline, residual };
		from.out.push(edge);
		to.in.push(edge);
		items.set(`N${i + 1}->N${k + 1}`, edge);
		return edge;
	});

	for (const element of picture.querySelectorAll("g[data-title]")) {
		const item = items.get(element.dataset.title), label = /N+(\d+)_\S*$/.exec(element.dataset.title);
		if (label)
			nodes[label[1] - 1]?.labels.push(element);
		if (item) {
			item.element = element;
			element.item = item;
		}
	}
	for (const node of nodes)
		for (const list of [node.in, node.out])
			list.sort((a, b) => Math.abs(b.weight) - Math.abs(a.weight));
	return { nodes, edges };
}

/** A node with its neighbours, and the heaviest way to it and on from it. */
function graphPath(node) {
	const found = new Set([node]);

	for (const edge of [...node.in, ...node.out])
		found.add(edge).add(edge.from).add(edge.to);
	for (const [list, end] of [["in", "from"], ["out", "to"]])
		for (let at = node, seen = new Set(); at && !seen.has(at); at = at[list][0] && at[list][0][end]) {
			seen.add(at);
			found.add(at);
			if (at[list][0])
				found.add(at[list][0]);
		}
	return found;
}

function mountGraph(el, ctx) {
	const picture = h("div", { class: "graph", tabindex: "0", role: "application", "aria-label": "Call graph",
		"aria-description": "Arrows go to callers, callees and neighbours, with Shift they move the picture; plus and minus zoom, 0 fits." });
	const tip = h("div", { class: "tip", role: "tooltip", hidden: true });
	const amount = h("output");
	const slider = h("input", { type: "range", min: 20, max: 500, step: 10, "aria-label": "Number of nodes" });
	const shown = h("span", { class: "muted", role: "status" });
	const legend = popover("Legend", panel => panel.append(...[...GRAPH_LEGEND, ...data?.legend || []].map(line => h("div", null, line))));
	const tool = (text, title, run) => button(text, run, { title, "aria-label": title });
	const bar = h("div", { class: "page-bar" }, h("label", { class: "field" }, muted("Nodes"), slider, amount),
		tool("−", "Zoom out", () => view?.zoom(1 / ZOOM_STEP ** 2)), tool("+", "Zoom in", () => view?.zoom(ZOOM_STEP ** 2)),
		tool("Fit", "Fit the window (0)", () => view?.fit()), legend, shown);
	const run = latest(ctx, el);
	let data = null, model = null, view = null, key = "", timer = 0, current = null, unit = "";

	el.classList.add("fill");
	el.append(bar, picture, tip);

	const name = node => shortName(node.f[1]);
	const nodeText = node => `${name(node)}: self ${ctx.format(node.flat, unit)} (${ctx.percent(node.flat, data.total)}), ` +
		`total ${ctx.format(node.cum, unit)} (${ctx.percent(node.cum, data.total)})`;
	const edgeText = edge => `${name(edge.from)} → ${name(edge.to)} ${ctx.format(edge.weight, unit)}, ` +
		`${ctx.percent(edge.weight, edge.from.cum)} of ${name(edge.from)}, ${ctx.percent(edge.weight, edge.to.cum)} of ${name(edge.to)}` +
		(edge.inline ? ", inlined" : "") + (edge.residual ? ", with others between" : "");

	function highlight(node) {
		const path = node && graphPath(node);

		picture.classList.toggle("dimmed", !!path);
		for (const item of [...model.nodes, ...model.edges])
			for (const element of [item.element, ...item.labels || []])
				element?.classList.toggle("lit", !!path && path.has(item));
	}

	function showTip(text, x, y) {
		const box = el.getBoundingClientRect();

		tip.textContent = text;
		tip.hidden = false;
		tip.style.left = Math.max(4, Math.min(x - box.left + 14, box.width - tip.offsetWidth - 4)) + "px";
		tip.style.top = Math.max(4, Math.min(y - box.top + 16, box.height - tip.offsetHeight - 4)) + "px";
	}

	function choose(node, reveal) {
		current?.element?.classList.remove("chosen");
		current = node;
		node?.element?.classList.add("chosen");
		highlight(node);
		if (!node) {
			ctx.select(null);
			return;
		}
		if (reveal && node.element)
			view.reveal(node.element);
		ctx.select(node.f);
		ctx.announce(nodeText(node));
	}

	const itemAt = event => event.target.closest && event.target.closest("g.node, g.edge")?.item;
	picture.addEventListener("pointerover", event => {
		const item = itemAt(event);
		if (!item || event.buttons) {
			tip.hidden = true;
			if (model && !current)
				highlight(null);
			return;
		}
		showTip(item.from ? edgeText(item) : nodeText(item), event.clientX, event.clientY);
		if (!item.from)
			highlight(item);
	});
	picture.addEventListener("pointerleave", () => {
		tip.hidden = true;
		if (model)
			highlight(current);
	});
	const nodeAt = event => itemAt(event)?.f && itemAt(event);
	picture.addEventListener("click", event => model && !view.isDrag && choose(nodeAt(event) || null));
	picture.addEventListener("dblclick", event => nodeAt(event) ? ctx.go("sandwich", { fn: nodeAt(event).f[0] }) : view?.fit());
	picture.addEventListener("contextmenu", event => {
		const node = nodeAt(event);
		if (!node)
			return;
		event.preventDefault();
		choose(node);
		openFunctionMenu(ctx, node.f, event);
	});
	picture.addEventListener("keydown", event => {
		if (!model || event.ctrlKey || event.metaKey || event.altKey || event.target !== picture)
			return;
		const action = graphKey(event);
		if (!action)
			return;
		event.preventDefault();
		event.stopPropagation();
		action();
	});

	function graphKey(event) {
		const byWeight = [...model.nodes].sort((a, b) => b.cum - a.cum), start = byWeight[0];
		const beside = step => {
			const list = current && current.in[0] ? current.in[0].from.out.map(edge => edge.to) : byWeight;
			return () => choose(list[(list.indexOf(current) + step + list.length) % list.length], true);
		};
		const moves = event.shiftKey ? {
			ArrowUp: () => view.pan(0, 60), ArrowDown: () => view.pan(0, -60), ArrowLeft: () => view.pan(60, 0), ArrowRight: () => view.pan(-60, 0),
		} : {
			ArrowUp: () => choose(current ? current.in[0]?.from || current : start, true),
			ArrowDown: () => choose(current ? current.out[0]?.to || current : start, true),
			ArrowLeft: beside(-1), ArrowRight: beside(1), Home: () => choose(start, true),
			Enter: current && (() => ctx.go("sandwich", { fn: current.f[0] })),
			ContextMenu: current && (() => openFunctionMenu(ctx, current.f, event)),
			Escape: current && (() => choose(null)),
		};
		return { ...moves, "+": () => view.zoom(ZOOM_STEP), "=": () => view.zoom(ZOOM_STEP), "-": () => view.zoom(1 / ZOOM_STEP), "0": () => view.fit() }[event.key];
	}

	function showProblem(error) {
		clear(picture).append(error.status === 501
			? pageNote("The graph needs Graphviz", h("p", null, error.message), h("p", null, h("code", null, "apt-get install graphviz")), h("p", null, "All other pages work without it."))
			: pageNote("The graph took too long", h("p", null, error.message), h("p", null, "Fewer nodes are faster: move the slider.")));
		model = view = null;
	}

	async function load(signal) {
		shown.textContent = "…";
		try {
			data = await ctx.api.get("graph", { n: ctx.state.n || GRAPH_INITIAL }, { signal });
		} catch (error) {
			if (error.status !== 501 && error.status !== 504)
				throw error;
			shown.textContent = "";
			showProblem(error);
			return;
		}
		unit = data.unit;
		const drawing = safeSvg(data.svg), group = svg("g", null, drawing);
		model = graphModel(data, drawing, functionMap(data.functions));
		current = null;
		const frame = svg("svg", { class: "graph-svg", "aria-hidden": "true" }, group);
		clear(picture).append(frame);
		let map = null;
		view = graphView(frame, group, now => {
			tip.hidden = true;
			map?.show(now);
		});
		view.fit(READABLE);
		const nodes = model.nodes.filter(node => node.element), boxes = graphBoxes(frame, view.view, nodes.map(node => node.element));
		map = graphMap(frame, group, boxes, view.centre);
		group.append(svg("g", { class: "weights" }, nodes.map((node, i) =>
			svg("text", { x: boxes[i].x + boxes[i].width / 2, y: boxes[i].y + boxes[i].height / 2 }, ctx.percent(node.cum, data.total)))));
		picture.append(map);
		map.show(view.view);
		shown.textContent = `${data.shown} nodes, ${model.edges.length} edges`;
	}

	function update(state) {
		const next = dataKey(state, ["n"]) + (state.unit || "");

		if (document.activeElement !== slider)
			slider.value = state.n > 0 ? state.n : GRAPH_INITIAL;
		amount.textContent = slider.value;
		if (next === key) {
			const node = model && ctx.selected && model.nodes.find(n => n.f[0] === ctx.selected[0]);
			if (node && node !== current)
				choose(node);
			return;
		}
		key = next;
		run(load);
	}

	slider.addEventListener("input", () => {
		amount.textContent = slider.value;
		run.stop();
		clearTimeout(timer);
		timer = setTimeout(() => {
			key = "";
			ctx.set({ n: slider.value }, { push: false });
			update(ctx.state);
		}, 150);
	});
	return {
		update, keys: { "0": () => view?.fit(), "+": () => view?.zoom(ZOOM_STEP), "-": () => view?.zoom(1 / ZOOM_STEP) },
		destroy() {
			run.stop();
			clearTimeout(timer);
		},
	};
}

export const graphPage = { id: "graph", title: "Graph", mount: mountGraph };
