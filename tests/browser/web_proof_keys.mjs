// Every key of the page, by keyboard alone; one table.
import { equal, open, page, ready, serve, test, trouble } from "./web_lib.mjs";

const base = await serve("worked_a.pb"), deep = await serve("deep.pb");

/** What a key may change, as far as one can see it. */
const look = () => page.evaluate(() => {
	const { state, selected, tree, rectOf } = window.__ui, box = tree && rectOf(Math.min(1, tree.n - 1)), active = document.activeElement;

	return {
		state: { ...state },
		selected: selected?.[1] || "",
		dialog: document.querySelector("dialog[open] :is(h1, h2)")?.textContent || "",
		menu: Boolean(document.querySelector("[role=menu]")),
		focus: active?.type === "search" ? "search" : active?.getAttribute("role") || active?.tagName,
		text: document.querySelector("input[type=search]")?.value,
		toast: document.querySelector(".toast:not([hidden])")?.textContent || "",
		inspector: !document.querySelector(".inspector")?.hidden,
		x: box ? Math.round(box.x) : 0,
		y: box ? Math.round(box.y) : 0,
		width: box ? Math.round(box.width) : 0,
	};
});
const clipboard = () => page.evaluate(() => navigator.clipboard.readText());

async function press(...keys) {
	for (const key of keys) {
		await page.keyboard.press(key);
		await page.waitForTimeout(20);
		await ready();
	}
}

/** Until what is seen is as wanted; what leads there may take its time. */
async function until(check, key) {
	let seen, ok = false;

	for (let i = 0; i < 60 && !ok; i++) {
		seen = await look();
		ok = await check(seen);
		if (!ok)
			await page.waitForTimeout(50);
	}
	if (!ok)
		throw new Error(`${key} has no effect: ${JSON.stringify(seen)}`);
}

const parts = z => z ? z.split(".").length : 0;
const TO_REC = ["ArrowDown", "ArrowDown"], TO_A = [...TO_REC, "ArrowRight"];
/** [key, keys before it, what is seen then (now, before), page and parameters]. */
const KEYS = [
	["?", [], now => /help/i.test(now.dialog)],
	["/", [], now => now.focus === "search"],
	["Control+f", [], now => now.focus === "search"],
	["Enter", ["/", "r", "e", "c"], now => now.selected === "rec"],
	["Shift+Enter", ["/", "a", "Enter", "Enter"], (now, before) => before.selected && now.selected && now.selected !== before.selected],
	["Escape", ["/", "r", "e", "c"], now => now.text === "" && !now.state.q],
	["1", ["2"], now => now.state.page === "flamegraph"],
	["2", [], now => now.state.page === "top"],
	["3", [], now => now.state.page === "graph"],
	["4", [], now => now.state.page === "sandwich"],
	["5", [], now => now.state.page === "tree"],
	["6", [], now => now.state.page === "source"],
	["7", [], now => !/^(flamegraph|top|graph|sandwich|tree|source)$/.test(now.state.page)],
	["ArrowDown", ["ArrowDown"], now => now.selected === "rec"],
	["ArrowUp", TO_REC, now => now.selected === "main"],
	["ArrowRight", TO_REC, now => now.selected === "a"],
	["ArrowLeft", TO_A, now => now.selected === "rec"],
	["Home", [...TO_A, "ArrowRight"], now => now.selected === "rec"],
	["End", TO_REC, now => now.selected === "c"],
	["Enter", TO_A, now => parts(now.state.z) === 2],
	["Backspace", [...TO_A, "Enter"], now => parts(now.state.z) === 1],
	["0", [...TO_A, "Enter"], (now, before) => before.state.z && !now.state.z && !now.state.x],
	["+", ["ArrowDown"], (now, before) => now.width > before.width || Boolean(now.state.x)],
	["-", ["ArrowDown", "+", "+"], (now, before) => JSON.stringify(now.state) !== JSON.stringify(before.state) && now.width <= before.width],
	["Shift+ArrowLeft", ["ArrowDown", "+", "+"], (now, before) => now.state.x !== before.state.x],
	["Shift+ArrowRight", ["ArrowDown", "+", "+"], (now, before) => now.state.x !== before.state.x],
	["Shift+ArrowDown", [], (now, before) => now.y < before.y, deep + "flamegraph"],
	["Shift+ArrowUp", ["Shift+ArrowDown", "Shift+ArrowDown"], (now, before) => now.y > before.y, deep + "flamegraph"],
	["f", TO_A, now => now.state.f === "^a$"],
	["g", TO_A, now => now.state.i === "^a$"],
	["h", TO_A, now => now.state.h === "^a$"],
	["s", TO_A, now => now.state.page === "source" && now.state.fn],
	["d", TO_A, now => now.state.page === "disasm" && now.state.fn],
	["w", TO_A, now => now.state.page === "sandwich" && now.state.fn],
	["m", TO_A, now => now.menu],
	["y", [], async () => await clipboard() === page.url(), base + "flamegraph?f=a"],
	["c", [], now => now.state.page === "compare"],
	["x", [], now => now.state.a === "1" && (now.state.b || "0") === "0", base + "compare?a=0&b=1"],
	["l", [], now => now.state.page === "labels"],
	["t", [], now => now.state.page === "timeline" || /time/i.test(now.toast)],
	["i", [], (now, before) => now.inspector !== before.inspector],
	["r", [], now => now.state.rc === "1"],
	["o", [], now => now.state.ord === "name"],
	["Control+c", TO_A, async () => await clipboard() === "a"],
	["Control+z", [...TO_A, "f"], (now, before) => before.state.f && !now.state.f],
	["Control+Shift+z", [...TO_A, "f", "Control+z"], (now, before) => !before.state.f && now.state.f === "^a$"],
	[",", [], now => /settings/i.test(now.dialog)],
];

/** A second profile, so that there is something to swap. */
async function addProfile() {
	await open(base + "flamegraph");
	await page.evaluate(async () => {
		const meta = await (await fetch("api/v1/meta")).json();

		if (meta.profiles.length < 2)
			await fetch("api/v1/profiles?name=b", { method: "POST", headers: { "X-Kiln-Token": meta.token }, body: await (await fetch("download")).blob() });
	});
}

await addProfile();
for (const [key, before, check, url] of KEYS)
	await test(`key ${key} after ${before.join(" ") || "nothing"}`, async () => {
		await page.evaluate(() => localStorage.clear());
		await open(url || base + "flamegraph");
		await page.evaluate(() => navigator.clipboard.writeText(""));
		await press(...before);
		await page.waitForTimeout(250);
		const from = await look();

		await page.keyboard.press(key);
		await until(now => check(now, from), key);
		// A function that a filter took away is asked for.
		trouble.splice(0, trouble.length, ...trouble.filter(text => !text.includes("status of 404")));
	});

await test("keys: Ctrl+F yields to the browser when it is pressed again", async () => {
	await open(base + "flamegraph");
	await page.evaluate(() => window.addEventListener("keydown", event => { window.taken = event.defaultPrevented; }));
	await page.keyboard.press("Control+f");
	equal([(await look()).focus, await page.evaluate(() => window.taken)], ["search", true]);
	await page.keyboard.press("Control+f");
	equal(await page.evaluate(() => window.taken), false);
});

await test("keys: nothing that the browser needs is taken from it", async () => {
	await open(base + "flamegraph");
	await press("ArrowDown");
	const taken = await page.evaluate(() => {
		const found = [], target = document.activeElement;
		const send = (key, how) => target.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...how })) || found.push(`${Object.keys(how)} ${key}`);

		for (const key of "abdeghijklmnopqrstuvwx0123456789+-=[],./")
			send(key, { ctrlKey: true });
		for (const key of "abcdeghijklmnopqrstuvwxy")
			send(key, { ctrlKey: true, shiftKey: true });
		for (const key of ["ArrowLeft", "ArrowRight", "Home", "d", "f"])
			send(key, { altKey: true });
		for (let i = 1; i <= 12; i++)
			send(`F${i}`, {});
		for (const key of ["Tab", "PageUp", "PageDown", "Insert", "Delete"])
			send(key, { ctrlKey: true });
		send("Tab", {});
		return found;
	});

	equal(taken, []);
});

/** Tab until what has the focus is called so. */
async function tabTo(name) {
	for (let i = 0; i < 150; i++) {
		await page.keyboard.press("Tab");
		const found = await page.evaluate(() => {
			const { activeElement: e } = document;

			return /^(INPUT|BUTTON|A|SELECT)$/.test(e?.tagName) && [e.getAttribute("aria-label"), e.title, e.labels?.[0]?.textContent, e.textContent].find(Boolean) || "";
		});
		if (name.test(found))
			return;
	}
	throw new Error(`Tab does not lead to ${name}`);
}

await test("keys: single letters are switched off by keyboard, and on again", async () => {
	await open(base + "flamegraph");
	await press(",");
	await tabTo(/single-letter keys/i);
	await page.keyboard.press("Space");
	await page.keyboard.press("Escape");
	await page.waitForSelector("dialog", { state: "detached" });
	await press("ArrowDown");
	const before = await look();

	for (const key of "?/123456780+-fghsdwmycxltiro,")
		await press(key);
	equal(await look(), before);
	await press("ArrowDown", "Enter");
	await until(now => now.selected === "rec" && now.state.z, "ArrowDown and Enter");
	await press("Control+f");
	equal((await look()).focus, "search");
	await page.keyboard.press("Escape");
	await tabTo(/^settings/i);
	await page.keyboard.press("Enter");
	await tabTo(/single-letter keys/i);
	await page.keyboard.press("Space");
	await page.keyboard.press("Escape");
	await page.waitForSelector("dialog", { state: "detached" });
	await press("2");
	equal((await look()).state.page, "top");
	await page.evaluate(() => localStorage.clear());
});
