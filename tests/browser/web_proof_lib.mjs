// Browsers that know nothing of earlier pages, and profiles with any names.
import { chromium } from "playwright-core";
import { gzipSync } from "node:zlib";

let browser = null;

/** A page in a context of its own; `trouble` has what went wrong there, `requests` all that it asked for. */
export async function freshPage(options = {}) {
	browser ||= await chromium.launch({
		executablePath: "/usr/bin/chromium", headless: true,
		args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
	});
	const context = await browser.newContext({ viewport: { width: 1300, height: 800 }, reducedMotion: "reduce", ...options });
	const page = await context.newPage(), trouble = [], requests = [];

	page.setDefaultTimeout(30000);
	page.on("pageerror", error => trouble.push(error.message));
	page.on("console", message => message.type() === "error" && trouble.push(`${message.text()} ${message.location().url}`));
	page.on("dialog", dialog => {
		trouble.push("a name has run: " + dialog.message());
		dialog.dismiss();
	});
	page.on("request", request => requests.push(request.url()));
	return { page, context, trouble, requests, close: () => context.close() };
}

/** The last thing a file of tests does. */
export async function closeBrowser() {
	await browser?.close();
	browser = null;
}

export const isReady = page => page.waitForFunction(() => window.__ui?.ready && !document.querySelector("main [aria-busy]"), null, { timeout: 60000 });

/** Always the same numbers. */
export function randomNumbers(seed) {
	const random = n => (seed = seed * 1103515245 + 12345 & 0x7fffffff) % n;

	return { random, some: list => list[random(list.length)] };
}

const varint = n => n < 128 ? [n] : [n % 128 + 128, ...varint(Math.floor(n / 128))];
const field = (number, value) => typeof value === "number"
	? Buffer.from([...varint(number * 8), ...varint(value)])
	: Buffer.concat([Buffer.from([...varint(number * 8 + 2), ...varint(value.length)]), value]);
const message = (...fields) => Buffer.concat(fields.map(([number, value]) => field(number, value)));

/**
 * A profile (profile.proto) whose stacks are lists of names, root first, each with a count and labels [[key, value]…].
 * `type` is [name, unit] of the values; `duration` is in nanoseconds.
 */
export function makeProfile(stacks, { type = ["samples", "count"], duration = 0 } = {}) {
	const strings = ["", ...type], functions = new Map(), out = [[1, message([1, 1], [2, 2])]];
	const string = text => strings.includes(text) ? strings.indexOf(text) : strings.push(text) - 1;
	const location = name => functions.get(name) || functions.set(name, functions.size + 1).get(name);

	for (const [names, count, labels = []] of stacks)
		out.push([2, message(...names.map(location).reverse().map(id => [1, id]), [2, count], ...labels.map(([key, value]) => [3, message([1, string(key)], [2, string(value)])]))]);
	for (const [name, id] of functions) {
		out.push([4, message([1, id], [4, message([1, id], [2, id])])]);
		out.push([5, message([1, id], [2, string(name)], [4, string(name + ".c")])]);
	}
	return gzipSync(message(...out, ...(duration ? [[10, duration]] : []), ...strings.map(text => [6, Buffer.from(text)])));
}
