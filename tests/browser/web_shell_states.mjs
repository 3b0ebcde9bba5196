// What the page says when things are not as usual: no weight, another server, no server.
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { axe, equal, open, page, ready, serve, shoot, test, trouble } from "./web_lib.mjs";

const base = await serve("worked_a.pb");
const state = key => page.evaluate(name => window.__ui.state[name] || "", key);
const otherMeta = async change => {
	const meta = await (await fetch(base + "api/v1/meta")).json();

	change(meta);
	await page.route("**/api/v1/meta*", route => route.fulfill({ json: meta }));
};

await test("states: samples that weigh nothing, and types in which they do", async () => {
	const folder = mkdtempSync(join(tmpdir(), "kiln-zero-")), file = join(folder, "zero.folded");

	writeFileSync(file, "main;f 0\nmain;g 0\n");
	await open(await serve(file) + "flamegraph");
	equal((await page.locator(".stage .empty h2").textContent()).startsWith("All samples are 0 in "), true);
	await axe("zero");
	const header = JSON.stringify({ type: "cpu", unit: "nanoseconds", total: 0, nodes: 1, functions: [[0, "root", "", 0, "", 0]] });

	await page.route("**/api/v1/flame*", route => route.fulfill({ body: Buffer.from(`KFLM\x01\0\0\0${String.fromCharCode(header.length)}\0\0\0${header}${"\0".repeat(5)}`, "latin1") }));
	await page.goto(base + "flamegraph");
	await page.getByRole("heading", { name: "All samples are 0 in cpu" }).waitFor();
	await page.unroute("**/api/v1/flame*");
	await page.locator(".stage .empty .actions button", { hasText: "samples" }).click();
	await ready();
	equal([await state("si"), await page.locator(".stage .empty").isVisible()], ["samples", false]);
});

await test("states: another server with the same profile is none of our business", async () => {
	await open(base + "flamegraph");
	await otherMeta(meta => {
		meta.token = "another";
	});
	await page.evaluate(() => window.dispatchEvent(new Event("focus")));
	await page.waitForResponse("**/api/v1/meta*");
	await page.unroute("**/api/v1/meta*");
	equal(await page.locator(".stale").isVisible(), false);
});

await test("states: another profile makes what is shown stale, and it stays until asked for", async () => {
	await open(base + "flamegraph?f=main");
	await otherMeta(meta => {
		meta.token = "third";
		meta.profiles[0].name = "other.pb";
	});
	await page.evaluate(() => window.dispatchEvent(new Event("focus")));
	await page.waitForSelector(".stale:visible");
	equal(await page.evaluate(() => window.__ui.tree.n > 1), true, "the view is kept");
	await axe("stale");
	await shoot("stale");
	await page.unroute("**/api/v1/meta*");
	await page.locator(".stale").click();
	await page.waitForFunction(() => window.__ui?.ready && document.querySelector(".stale").hidden);
	equal(await state("f"), "main");
});

await test("states: a stale view does not mix with new data", async () => {
	await open(base + "flamegraph");
	await otherMeta(meta => {
		meta.token = "fourth";
		meta.profiles[0].samples++;
	});
	await page.evaluate(() => {
		window.__old = true;
		window.dispatchEvent(new Event("focus"));
	});
	await page.waitForSelector(".stale:visible");
	await page.unroute("**/api/v1/meta*");
	await page.keyboard.press("r");
	await page.waitForFunction(() => !window.__old && window.__ui?.ready);
	equal(await state("rc"), "1");
});

await test("states: when the server is gone the view stays, and goes on when it is back", async () => {
	await open(base + "flamegraph");
	await page.route("**/api/v1/*", route => route.abort());
	await page.keyboard.press("r");
	await page.waitForSelector(".errorbar:visible");
	equal(await page.evaluate(() => window.__ui.tree.n > 1), true, "the view is kept");
	await page.waitForTimeout(3500);
	equal(await page.locator(".errorbar").isVisible(), true);
	await page.unroute("**/api/v1/*");
	await page.waitForSelector(".errorbar", { state: "hidden", timeout: 10000 });
	await ready();
	equal(await page.evaluate(() => window.__ui.tree.levels.length - 2), 3, "what was asked for has come");
	trouble.length = 0;
});
