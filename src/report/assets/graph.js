// Moves and scales the drawing of a call graph: drag to pan, wheel or pinch to zoom at the pointer,
// double click or 0 to see all of it again, + and - to zoom at the middle.
"use strict";
(function () {
	const svg = document.documentElement;
	const pointers = new Map(); // those that are down: id -> { x, y }
	let view, x = 0, y = 0, scale = 1;

	function apply() {
		view.setAttribute("transform", `matrix(${scale} 0 0 ${scale} ${x} ${y})`);
	}

	// Fits the whole graph into the window, but never enlarges it.
	function reset() {
		const box = view.getBBox();

		scale = Math.min(innerWidth / box.width, innerHeight / box.height, 1) || 1;
		x = (innerWidth - box.width * scale) / 2 - box.x * scale;
		y = -box.y * scale;
		apply();
	}

	function zoom(factor, at) {
		factor = Math.min(Math.max(scale * factor, 0.001), 100) / scale;
		x = at.x - (at.x - x) * factor;
		y = at.y - (at.y - y) * factor;
		scale *= factor;
		apply();
	}

	function wheel(event) {
		const lines = event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? innerHeight : 1;
		// Pads send many small steps, and pinches smaller ones with the Ctrl key down.
		const speed = event.ctrlKey ? 0.01 : 0.002;

		event.preventDefault();
		zoom(Math.exp(-event.deltaY * lines * speed), { x: event.clientX, y: event.clientY });
	}

	function middle() {
		const all = [...pointers.values()];
		const sum = all.reduce((a, p) => ({ x: a.x + p.x, y: a.y + p.y }), { x: 0, y: 0 });
		const at = { x: sum.x / all.length, y: sum.y / all.length };

		return { at, spread: Math.max(...all.map(p => Math.hypot(p.x - at.x, p.y - at.y))) };
	}

	function press(event) {
		if (event.button)
			return;
		pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
		svg.style.cursor = "grabbing";
	}

	function move(event) {
		if (!pointers.has(event.pointerId))
			return;
		const before = middle();
		pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
		const now = middle();

		x += now.at.x - before.at.x;
		y += now.at.y - before.at.y;
		if (before.spread > 0 && now.spread > 0)
			zoom(now.spread / before.spread, now.at);
		apply();
		event.preventDefault();
	}

	function release(event) {
		pointers.delete(event.pointerId);
		if (!pointers.size)
			svg.style.cursor = "grab";
	}

	function key(event) {
		const center = { x: innerWidth / 2, y: innerHeight / 2 };

		if (event.ctrlKey || event.metaKey || event.altKey)
			return;
		if (event.key === "0")
			reset();
		else if (event.key === "+" || event.key === "=")
			zoom(1.25, center);
		else if (event.key === "-")
			zoom(0.8, center);
	}

	addEventListener("load", function () {
		view = document.getElementById("viewport");
		svg.style.cssText = "cursor: grab; touch-action: none; user-select: none";
		svg.addEventListener("wheel", wheel, { passive: false });
		svg.addEventListener("pointerdown", press);
		svg.addEventListener("dblclick", reset);
		svg.addEventListener("dragstart", event => event.preventDefault());
		addEventListener("pointermove", move);
		addEventListener("pointerup", release);
		addEventListener("pointercancel", release);
		addEventListener("keydown", key);
		reset();
	});
})();
