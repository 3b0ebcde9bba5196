// What the tests of the flame page share: where frames are, and what is said of them.
import { page, ready, trouble } from "./web_lib.mjs";

export const state = key => page.evaluate(name => window.__ui.state[name] || "", key);
export const selected = () => page.evaluate(() => window.__ui.selected?.[1] || "");
export const details = () => page.locator(".details").textContent();
// The place of the frame at a path of names, in pixels of the window.
export const place = (...names) => page.evaluate(path => {
	const { tree } = window.__ui;
	let node = 0;

	for (const name of path) {
		const children = Array.from({ length: tree.nchild[node] }, (_, i) => tree.first[node] + i);

		node = children.find(i => tree.functions[tree.fn[i]][1] === name);
		if (node === undefined)
			throw new Error(`no frame ${path}`);
	}
	return { node, ...window.__ui.rectOf(node) };
}, names);
export const pointAt = async (...names) => {
	const box = await place(...names);

	return [box.x + box.width / 2, box.y + box.height / 2];
};
export const click = async (...names) => {
	await page.mouse.click(...await pointAt(...names));
	await ready();
};
// What leads to a wait: the URL and the picture follow.
export const until = (check, argument) => page.waitForFunction(check, argument, { timeout: 5000 });
// The browser tells the console of every answer that is an error.
export const expectStatus = status => trouble.splice(0, trouble.length, ...trouble.filter(text => !text.includes(`status of ${status}`)));
export const width = () => page.locator(".flame-host canvas").evaluate(canvas => canvas.clientWidth);
/** The menu of how frames are told apart: toggles one of its items. */
export const toggleFrames = async name => {
	await page.getByRole("button", { name: "Frames" }).click();
	await page.getByRole("menuitemcheckbox", { name }).click();
	await ready();
};
/** Names of the frames below one, from left to right. */
export const children = (...names) => page.evaluate(path => {
	const { tree, rectOf } = window.__ui;
	let node = 0;
	const below = () => Array.from({ length: tree.nchild[node] }, (_, i) => tree.first[node] + i);

	for (const name of path)
		node = below().find(i => tree.functions[tree.fn[i]][1] === name);
	return below().sort((a, b) => rectOf(a).x - rectOf(b).x).map(i => tree.functions[tree.fn[i]][1]);
}, names);
/** The colour of the graph at a place of the window, as #rrggbb. */
export const colorAt = (x, y) => page.evaluate(([px, py]) => new Promise(resolve => requestAnimationFrame(() => setTimeout(() => {
	const canvas = document.querySelector(".flame-host canvas"), box = canvas.getBoundingClientRect(), scale = canvas.width / box.width;
	const [r, g, b] = canvas.getContext("2d").getImageData((px - box.left) * scale, (py - box.top) * scale, 1, 1).data;

	resolve("#" + [r, g, b].map(v => v.toString(16).padStart(2, "0")).join(""));
}))), [x, y]);
