// Makes the drawn flame graph one to work with: fills the window, zooms into a frame on a click,
// searches, and tells about the frame under the pointer.
//
// The drawing has one <svg> per frame, whose place and width are in percent; the data beside it has,
// in the same order, each frame's name, parent and value (two of them in a comparison).
"use strict";
(function () {
	const MARGIN = 10, PADDING = 3, MIN_LABEL = 24;
	const root = document.documentElement;
	const area = document.getElementById("frames");
	const head = document.getElementById("head");
	const details = document.getElementById("details");
	const data = JSON.parse(document.getElementById("data").textContent);
	const pen = createHTML("canvas").getContext("2d");
	const frames = [];
	let zoomed = 0, search, matched, reset;

	function createHTML(tag, properties) {
		return Object.assign(document.createElementNS("http://www.w3.org/1999/xhtml", tag), properties);
	}

	function createSVG(tag, attributes) {
		const element = document.createElementNS("http://www.w3.org/2000/svg", tag);

		for (const name in attributes)
			element.setAttribute(name, attributes[name]);
		return element;
	}

	// ---- values as text

	function value(v) {
		const fits = data.units.filter(u => Math.abs(v) * u[0] >= 1);
		const [factor, unit] = fits.length ? fits[fits.length - 1] : data.units[0];

		return (v * factor).toFixed(2).replace(/\.00$/, "") + (v ? unit : "");
	}

	function percent(v, of) {
		return of ? (v / of * 100).toFixed(2).replace(/\.?0+$/, "") + "%" : "";
	}

	function share(v) {
		return data.total ? `${value(v)} (${percent(v, data.total)})` : value(v);
	}

	function signed(text, v) {
		return v > 0 ? "+" + text : text;
	}

	function amount(now, before) {
		const change = now - before;

		if (!data.diff)
			return share(now);
		return `${share(before)} → ${share(now)}, ` + (change === 0 ? "no change" :
			signed(value(change), change) + (before ? ` (${signed(percent(change, before), change)})` : " (new)"));
	}

	function describe(f) {
		return `${data.names[f.name]}${f.inlined ? " (inlined)" : ""}: ${amount(f.now, f.before)}`;
	}

	// ---- frames

	function readFrames() {
		const fields = data.diff ? 4 : 3, all = data.frames;

		[...area.children].forEach(function (element, i) {
			const at = i * fields;

			frames.push({
				element,
				label: element.querySelector("text"),
				x: parseFloat(element.getAttribute("x")),
				width: parseFloat(element.getAttribute("width")),
				inlined: element.classList.contains("inlined"),
				name: all[at], parent: all[at + 1], now: all[at + 2], before: data.diff ? all[at + 3] : 0,
			});
			element.dataset.index = i;
		});
	}

	// As much of the text as fits, with dots for the rest.
	function fit(text, width) {
		if (width < MIN_LABEL)
			return "";
		if (pen.measureText(text).width <= width)
			return text;
		let low = 0, high = text.length - 1;
		while (low < high) {
			const middle = (low + high + 1) >> 1;

			if (pen.measureText(text.slice(0, middle) + "…").width <= width)
				low = middle;
			else
				high = middle - 1;
		}
		return low ? text.slice(0, low) + "…" : "";
	}

	function labelFrame(f, pixels) {
		const text = fit(data.labels[f.name] || data.names[f.name], pixels - 2 * PADDING);

		if (text && !f.label) {
			f.label = createSVG("text", { x: PADDING, y: 13 });
			f.element.append(f.label);
		}
		if (f.label)
			f.label.textContent = text;
	}

	// Draws what is in and below the zoomed frame, and the way that leads to it.
	function draw() {
		const z = frames[zoomed], pixels = area.width.baseVal.value;
		const above = new Set(), inside = [];

		for (let i = zoomed; i > 0;) {
			i = frames[i].parent;
			above.add(i);
		}
		frames.forEach(function (f, i) {
			inside[i] = i === zoomed || (i > 0 && inside[f.parent]);
			const shown = inside[i] || above.has(i);
			const x = inside[i] ? (f.x - z.x) / z.width * 100 : 0;
			const width = inside[i] ? f.width / z.width * 100 : 100;

			f.element.style.display = shown ? "" : "none";
			f.element.classList.toggle("above", above.has(i));
			if (!shown)
				return;
			f.element.setAttribute("x", x + "%");
			f.element.setAttribute("width", width + "%");
			labelFrame(f, width / 100 * pixels);
		});
		reset.style.display = zoomed ? "" : "none";
	}

	function zoom(i) {
		zoomed = i;
		draw();
	}

	// ---- search

	function pattern(term) {
		try {
			search.classList.remove("bad");
			return new RegExp(term, "i");
		} catch (e) {
			search.classList.add("bad");
			return null;
		}
	}

	// Frames below a match add nothing: they are part of it.
	function find() {
		const re = search.value ? pattern(search.value) : null;
		const covered = [], hits = data.names.map(name => re !== null && re.test(name));
		let now = 0, before = 0;

		frames.forEach(function (f, i) {
			const hit = i > 0 && hits[f.name];

			f.element.classList.toggle("match", hit);
			covered[i] = i > 0 && covered[f.parent];
			if (hit && !covered[i]) {
				now += f.now;
				before += f.before;
				covered[i] = true;
			}
		});
		matched.textContent = re ? "Matched " + amount(now, before) : "";
	}

	// ---- the page

	function addControls() {
		const box = createSVG("foreignObject", { id: "controls", y: 6, height: 32 });
		const row = createHTML("div", { className: "controls" });

		matched = createHTML("output", { id: "matched" });
		reset = createHTML("button", { id: "reset", textContent: "Reset zoom", title: "Esc or 0" });
		search = createHTML("input", { id: "search", type: "search", placeholder: "Search (Ctrl-F or /)",
			title: "A regular expression", spellcheck: false });
		row.append(matched, reset, search);
		box.append(row);
		head.append(box);
		reset.addEventListener("click", () => zoom(0));
		search.addEventListener("input", find);
	}

	function resize() {
		const width = Math.max(visualViewport.width, 300); // without the scroll bar

		root.setAttribute("width", width);
		root.setAttribute("viewBox", `0 0 ${width} ${root.getAttribute("height")}`);
		area.setAttribute("width", width - 2 * MARGIN);
		const controls = document.getElementById("controls");
		controls.setAttribute("width", width - 2 * MARGIN);
		controls.setAttribute("x", MARGIN);
		for (const e of head.querySelectorAll(".legend"))
			e.setAttribute("x", width - MARGIN);
		draw();
	}

	function frameAt(event) {
		const element = event.target.closest ? event.target.closest("#frames > svg") : null;

		return element ? Number(element.dataset.index) : -1;
	}

	function hover(event) {
		const i = frameAt(event), f = frames[i];

		details.textContent = f ? describe(f) : "";
		if (f && !f.element.querySelector("title")) {
			f.element.prepend(createSVG("title"));
			f.element.firstChild.textContent = describe(f);
		}
	}

	function key(event) {
		const typing = event.target === search;

		if ((event.key === "f" && (event.ctrlKey || event.metaKey)) || (event.key === "/" && !typing)) {
			event.preventDefault();
			search.focus();
			search.select();
		} else if (event.key === "Escape" && typing) {
			search.value = "";
			search.blur();
			find();
		} else if (event.key === "Escape" || (event.key === "0" && !typing && !event.ctrlKey)) {
			zoom(0);
		}
	}

	// The head stays in sight; frames pass below it.
	function stick() {
		head.setAttribute("transform", `translate(0 ${scrollY})`);
	}

	pen.font = "12px " + getComputedStyle(details).fontFamily;
	readFrames();
	addControls();
	area.addEventListener("click", function (event) {
		const i = frameAt(event);

		if (i >= 0)
			zoom(i);
	});
	area.addEventListener("mouseover", hover);
	area.addEventListener("mouseleave", hover);
	addEventListener("keydown", key);
	addEventListener("scroll", stick);
	addEventListener("resize", resize);
	addEventListener("load", function () {
		resize();
		scrollTo(0, document.documentElement.scrollHeight); // the root is at the bottom
		stick();
	});
})();
