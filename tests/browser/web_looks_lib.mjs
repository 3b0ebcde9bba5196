// How a page looks, by meaning: what is misplaced, and what is hard to read. Both run in the page.

/** Runs in the page: what is wrong with the places of its controls. */
export function misplaced() {
	const found = [], width = document.documentElement.clientWidth;
	const name = e => (e.getAttribute("aria-label") || e.textContent || e.placeholder || e.tagName).trim().slice(0, 30);
	const shown = e => e.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true }) && e.getClientRects().length > 0;

	if (document.documentElement.scrollWidth > width)
		found.push(`the page is ${document.documentElement.scrollWidth} px wide`);
	const controls = [...document.querySelectorAll("header.top :is(button, a, input, select), .statebar :is(button, input, select), main .toolbar :is(button, a, input, select)")].filter(shown).map(e => [e, e.getBoundingClientRect()]);

	for (const [e, box] of controls) {
		// What scrolls by itself may be out of sight.
		const scrolls = [...function* () { for (let up = e.parentElement; up; up = up.parentElement) yield up; }()].some(up => up !== document.body && /auto|scroll/.test(getComputedStyle(up).overflowX));

		if (!scrolls && (box.left < -0.5 || box.right > width + 0.5))
			found.push(`${name(e)} is outside: ${Math.round(box.left)}..${Math.round(box.right)}`);
		if (e.tagName === "BUTTON" && e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).textOverflow !== "ellipsis" && !e.querySelector(".title"))
			found.push(`${name(e)} is cut: ${e.scrollWidth} in ${e.clientWidth} px`);
		if (box.height < 23.5 && e.tagName !== "A" && !/^(checkbox|radio|range)$/.test(e.type))
			found.push(`${name(e)} is only ${box.height.toFixed(1)} px high`);
	}
	for (let i = 0; i < controls.length; i++)
		for (let k = i + 1; k < controls.length; k++) {
			const [[a, p], [b, q]] = [controls[i], controls[k]];

			// A switch lies within the field that it is for, where that has no text.
			if (a.closest("form") && a.closest("form") === b.closest("form"))
				continue;
			if (!a.contains(b) && !b.contains(a) && Math.min(p.right, q.right) - Math.max(p.left, q.left) > 1 && Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top) > 1)
				found.push(`${name(a)} and ${name(b)} overlap`);
		}
	return found.slice(0, 8);
}

/** Runs in the page: text that is hard to read, by its style. */
export function faint() {
	const found = new Set(), canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
	const rgba = color => {
		canvas.clearRect(0, 0, 1, 1);
		canvas.fillStyle = color;
		canvas.fillRect(0, 0, 1, 1);
		const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;

		return [r, g, b, a / 255];
	};
	const over = (top, below) => [0, 1, 2].map(i => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
	const light = c => c.slice(0, 3).map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4).reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
	const ground = e => {
		const layers = [];

		for (let up = e; up; up = up.parentElement) {
			const style = getComputedStyle(up), color = rgba(style.backgroundColor);

			if (style.backgroundImage !== "none")
				return null; // a bar in a cell; its colour is checked where it is made
			layers.push(color);
			if (color[3] === 1)
				break;
		}
		return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255, 1]);
	};
	const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);

	for (let node; (node = walker.nextNode());) {
		const e = node.parentElement, style = getComputedStyle(e);

		if (!node.data.trim() || /^(SCRIPT|STYLE)$/.test(e.tagName) || e.closest("svg, .sr-only, [disabled], [aria-disabled=true], option") || !e.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true }))
			continue;
		const below = ground(e);

		if (!below)
			continue;
		const [x, y] = [light(over(rgba(style.color), below)), light(below)], ratio = (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
		const size = parseFloat(style.fontSize), least = size >= 24 || size >= 18.66 && Number(style.fontWeight) >= 700 ? 3 : 4.5;

		if (ratio < least)
			found.add(`“${node.data.trim().slice(0, 30)}” ${ratio.toFixed(2)}:1`);
	}
	return [...found].slice(0, 8);
}
