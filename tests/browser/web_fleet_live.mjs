// What a service does now; and why its frames have no names.
import { axe, cells, data, equal, open, page, ready, serveStore, setTheme, shoot, soon, test, trouble } from "./web_lib.mjs";
import { EVIL, push } from "./web_fleet_lib.mjs";
import { makeProfile } from "./web_proof_lib.mjs";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const url = await serveStore();
const state = key => page.evaluate(name => window.__ui.state[name] ?? null, key);
const stats = () => page.evaluate(() => window.__ui.stats);
const now = () => Math.floor(Date.now() / 1000);
const cpu = (parse, copy) => makeProfile([[["main", "handle", "parse"], parse], [["main", "handle", "copy"], copy], [["main", EVIL], 1e9]], { type: ["cpu", "nanoseconds"], duration: 1e9 });
const send = (parse, copy, age = 2) => push(url, cpu(parse, copy), { service: "web", type: "cpu", labels: "pod=a", time: now() - age });

await test("live: profiles that come in are seen, and the zoom stays on its path", async () => {
	await send(5e9, 2e9);
	await open(`${url}live?service=web&type=cpu&win=5m`);
	equal((await stats()).total, 8e9);
	await page.locator(".live-flame canvas").focus();
	await page.keyboard.press("ArrowDown");
	await page.keyboard.press("ArrowDown");
	await page.keyboard.press("ArrowDown");
	await page.keyboard.press("Enter");
	await ready();
	equal((await stats()).zoom, "parse");
	await shoot("live-zoomed");
	// Now copy is the heavier one, and is drawn first.
	await send(1e9, 9e9);
	await soon(async () => (await stats()).total === 19e9, "more");
	equal((await stats()).zoom, "parse");
	equal(await page.evaluate(() => document.activeElement.tagName), "CANVAS");
	equal([await page.locator(".details .what").textContent(), await page.locator(".details .amount").textContent()], ["parse", "6s, 31.6%; self 6s"]);
	await page.keyboard.press("0");
	equal([await state("z"), (await stats()).zoom], [null, null]);
	equal((await stats()).tickMs < 50, true, `a tick took ${(await stats()).tickMs} ms`);
});

await test("live: a pause is a time in the URL", async () => {
	await open(`${url}live?service=web&type=cpu&win=5m`);
	const { total } = await stats();

	await page.keyboard.press("p");
	await ready();
	equal(Number(await state("at")) > 0, true);
	await send(1e9, 1e9);
	await page.waitForTimeout(3000);
	equal((await stats()).total, total);
	await page.reload();
	await ready();
	equal([(await stats()).total, await page.getByRole("button", { name: "Go on" }).getAttribute("aria-pressed")], [total, "true"]);
	await page.getByRole("button", { name: "Go on" }).click();
	await soon(async () => (await stats()).total === total + 3e9, "live again");
});

await test("live: windows, and none that has anything", async () => {
	await push(url, cpu(1e9, 1e9), { service: "slow", type: "cpu", time: now() - 120 });
	await open(`${url}live?service=slow&type=cpu`);
	await page.getByText("Nothing came in").waitFor();
	await axe("nothing came in");
	await page.getByRole("button", { name: "5 min" }).focus();
	await page.keyboard.press("Enter");
	await ready();
	equal([await state("win"), (await stats()).total], ["5m", 3e9]);
	// What was seen stays, with its time.
	await page.getByRole("button", { name: "10 s", exact: true }).click();
	await ready();
	equal(/^Nothing in the 10 s to .*; this is of /.test(await page.locator(".toolbar .count").textContent()), true);
});

await test("live: the server says when something has come", async () => {
	await open(`${url}live?service=web&type=cpu&win=5m`);
	await soon(async () => (await stats()).nevents > 0 && !(await stats()).isAsking, "a stream");
	const { total } = await stats();

	await send(1e9, 1e9);
	const begin = Date.now();

	await soon(async () => (await stats()).total === total + 3e9, "news");
	equal(Date.now() - begin < 1900, true, `news took ${Date.now() - begin} ms`);
	await page.keyboard.press("p");
	await soon(async () => /^kiln_live_streams 0$/m.test(await (await fetch(url + "metrics")).text()), "no stream while it pauses");
	await page.keyboard.press("p");
	await soon(async () => !(await stats()).isAsking, "a stream again");
});

await test("live: the events are what is drawn, and the same as what is asked for", async () => {
	const asked = [],
		note = request => /\/ui\/api\/|api\/1\/profiles/.test(request.url()) && asked.push(request.url());

	page.on("request", note);
	await open(`${url}live?service=web&type=cpu&win=5m`);
	await soon(async () => (await stats()).nevents > 0, "a stream");
	let { total } = await stats();

	for (const [parse, copy] of [[3e9, 1e9], [1e9, 4e9]]) {
		await send(parse, copy);
		total += parse + copy + 1e9;
		await soon(async () => (await stats()).total === total, "an event");
	}
	await page.getByRole("button", { name: "Top" }).click();
	await soon(async () => (await stats()).rows === 5, "a table");
	await page.getByRole("button", { name: "Flame" }).click();
	await soon(async () => (await stats()).nodes === 6, "a flame graph");
	equal(asked, []);
	// What the viewer draws of the same time.
	await page.keyboard.press("p");
	await ready();
	equal([asked.length > 0, (await stats()).total, (await stats()).nodes], [true, total, 6]);
	page.off("request", note);
});

await test("live: what leaves the window is subtracted, and the zoom waits for its path", async () => {
	const put = (stacks, age) => push(url, makeProfile(stacks, { type: ["cpu", "nanoseconds"], duration: 1e9 }), { service: "moves", type: "cpu", time: now() - age });

	await put([[["main", "old", "deep"], 1e9], [["main", "both"], 2e9]], 1);
	await open(`${url}live?service=moves&type=cpu&win=10s`);
	equal((await stats()).total, 3e9);
	await page.locator(".live-flame canvas").focus();
	for (const key of ["ArrowDown", "ArrowDown", "ArrowRight", "ArrowDown", "Enter"])
		await page.keyboard.press(key);
	await ready();
	equal((await stats()).zoom, "deep");
	const path = await state("z");

	await put([[["main", "both"], 5e9]], 0);
	await soon(async () => (await stats()).total === 8e9, "more");
	equal((await stats()).zoom, "deep");
	await put([[["main", "both"], 7e9]], -3);
	await soon(async () => (await stats()).nodes === 3, "the first has left");
	equal([await state("z"), (await stats()).zoom, (await stats()).isAsking], [path, "main", false]);
	await put([[["main", "old", "deep"], 4e9]], 0);
	await soon(async () => (await stats()).zoom === "deep", "its path again");
});

await test("live: what cannot be drawn is told", async () => {
	await open(`${url}live?service=web&type=cpu&win=5m&st=nonsense`);
	await page.getByText(/nonsense/).first().waitFor();
	trouble.length = 0; // the browser tells of it
	await open(`${url}live?service=web&type=cpu&win=5m`);
	equal((await stats()).total > 0, true);
});

await test("live: it is asked for when a stream ends", async () => {
	const event = { seconds: 300, from: new Date(Date.now() - 3e5).toISOString(), to: new Date().toISOString(), newest: null };
	let n = 0;

	await page.route("**/api/1/live?*", route => (n++ ? route.abort() : route.fulfill({ contentType: "text/event-stream", body: `event: update\ndata: ${JSON.stringify(event)}\n\n` })));
	await open(`${url}live?service=web&type=cpu&win=5m`);
	await soon(async () => (await stats()).total > 0 && (await stats()).nevents === 1, "an answer");
	await page.unroute("**/api/1/live?*");
	trouble.length = 0; // the browser tells of it
});

for (const [what, answer] of [["refused", route => route.fulfill({ status: 503, json: { code: 503, error: "too many" } })], ["kept back by a proxy", () => {}], ["broken", route => route.abort()]])
	await test(`live: it is asked for where a stream is ${what}`, async () => {
		await page.route("**/api/1/live?*", answer);
		await open(`${url}live?service=web&type=cpu&win=5m`);
		const { total } = await stats();

		await send(1e9, 1e9);
		await soon(async () => (await stats()).total === total + 3e9, "more");
		equal([(await stats()).isAsking, (await stats()).nevents], [true, 0]);
		await page.unroute("**/api/1/live?*");
		trouble.length = 0; // the browser tells of it
	});

await test("live: all since the page was opened", async () => {
	await open(`${url}live?service=web&type=cpu`);
	await page.getByRole("button", { name: "Since start" }).click();
	await ready();
	equal([await state("win"), Number(await state("since")) > 0], ["start", true]);
	await page.waitForTimeout(1100); // times of profiles are whole seconds
	await send(1e9, 1e9, 0);
	await soon(async () => (await stats()).total === 3e9, "what came");
	await page.reload();
	await ready();
	await soon(async () => (await stats()).total === 3e9, "the same");
	await shoot("live-since-start");
	await page.getByRole("button", { name: "1 min" }).click();
	await ready();
	equal([await state("win"), await state("since")], [null, null]);
});

await test("live: as a table, which keeps its row; and in the viewer", async () => {
	await open(`${url}live?service=web&type=cpu&win=5m&mode=top`);
	equal((await cells()).map(row => row[0]).sort(), [EVIL.replace("\u202e", "\\u202e"), "copy", "handle", "main", "parse"].sort());
	await page.locator("main table").focus();
	await page.keyboard.press("Home");
	const selected = () => page.locator("tr.sel td").first().textContent(), before = await selected();

	await send(20e9, 1e9);
	await soon(async () => (await cells())[0][0] === "parse", "another order");
	equal(await selected(), before);
	const href = await page.getByRole("link", { name: "Open in the viewer" }).getAttribute("href");

	await page.goto(new URL(href, url).href);
	await ready();
	equal(await page.locator("canvas").count() > 0, true);
});

await test("names: why a frame has none, in the viewer", async () => {
	await push(url, readFileSync(join(data, "mappings.pb")), { service: "bare", type: "cpu", time: now() - 60 });
	await open(`${url}ui/flamegraph?a=${encodeURIComponent(`service=bare&type=cpu&from=${now() - 600}&to=${now()}`)}`);
	const link = page.getByRole("link", { name: "Why no names?" }).first();

	await link.waitFor();
	const box = await page.evaluate(() => {
		const { tree, rectOf } = window.__ui;

		return rectOf([...tree.fn].findIndex(f => /libc/.test(tree.functions[f][1])));
	});

	await page.mouse.click(box.x + 8, box.y + 8);
	await page.locator(".inspector").getByText("Nobody has uploaded debug info of this build").waitFor();
	await shoot("why-no-names");
	await axe("why");
	await link.click();
	await page.waitForURL("**/storage?*");
	await ready();
	equal([await state("service"), await state("type"), Number(await state("to")) > 0], ["bare", "cpu", true]);
	await page.getByRole("region", { name: "Binaries without names" }).waitFor();
});

for (const theme of ["light", "dark"])
	await test(`live: no barriers in ${theme}`, async () => {
		for (const path of [`live?service=web&type=cpu&win=5m`, `live?service=web&type=cpu&win=5m&mode=top`]) {
			await open(url + path);
			await setTheme(theme);
			await page.waitForTimeout(200);
			await axe(`${path} ${theme}`);
		}
		await setTheme("light");
	});
