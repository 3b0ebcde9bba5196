// What Compare says of two profiles, and files that work without a server.
import { axe, cells, cli, data, drop, equal, near, open, page, ready, serve, setTheme, shoot, stop, test, trouble } from "./web_lib.mjs";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const folder = mkdtempSync(join(tmpdir(), "kiln-compare-"));
const url = await serve("worked_a.pb");
const { token } = await (await fetch(url + "api/v1/meta")).json();
await fetch(url + "api/v1/profiles?name=worked_b.pb", { method: "POST", body: readFileSync(`${data}/worked_b.pb`), headers: { "X-Kiln-Token": token } });

const status = () => page.locator("main .compare-status").textContent();
const choose = async (label, value) => {
	await page.locator("main label.field", { hasText: label }).locator("select").selectOption(value);
	await ready();
};
/** Functions of the picture with their widths in percent. */
const widths = () => page.evaluate(() => {
	const { tree } = __ui, [w] = tree.widths;
	return Object.fromEntries([...tree.fn].map((fn, i) => [tree.functions[fn][1] + tree.depth[i], Math.round(w[i] / w[0] * 1000) / 10]));
});

await test("compare: values as they are, per total, scaled to a side: it is said, and numbers follow", async () => {
	await open(`${url}compare?unit=ms&b=1`);
	equal(await status(), "all: 1000ms → 700ms, ×0.7; share 100% → 100%, ±0");
	equal(await page.locator("main label.field", { hasText: "Normalise" }).locator("option").allTextContents(), ["none", "B to the total of A (-normalize)", "A to the total of B", "per total"]);
	await choose("Normalise", "a");
	equal(await status(), "all: 1000ms → 1000ms, ×1.0; share 100% → 100%, ±0");
	await choose("Normalise", "b");
	equal(await status(), "all: 700ms → 700ms, ×1.0; share 100% → 100%, ±0");
	await choose("Normalise", "total");
	equal(await status(), "all: 100% → 100%, ×1.0; share 100% → 100%, ±0");
	await page.locator("main .segmented button", { hasText: "Table" }).click();
	await ready();
	equal((await cells()).find(row => row.includes("rec")).slice(0, 3), ["40.0%", "64.3%", "▲ +24.3%"]);
	equal(await page.evaluate(() => __ui.state.cn), "total");
	await page.locator("main .segmented button", { hasText: "Side by side" }).click();
	await ready();
	equal((await page.locator("main .compare-side h2").allTextContents()).map(text => text.replace(/^.*pb /, "")), ["100%", "100%"]);
});

await test("compare: counts are named", async () => {
	await open(`${url}compare?si=samples&b=1`);
	equal(await status(), "all: 100 → 70 samples, ×0.7; share 100% → 100%, ±0");
});

await test("compare: per second when both say how long they took, and what differs", async () => {
	await page.route("**/api/v1/meta*", async route => {
		const answer = await (await route.fetch()).json();
		Object.assign(answer.profiles[0], { duration_nanos: 1e10, build_id: "aaaa1111" });
		Object.assign(answer.profiles[1], { duration_nanos: 1e9, build_id: "bbbb2222", period: 5e6 });
		await route.fulfill({ json: answer });
	});
	await open(`${url}compare?unit=ms&b=1&cn=second`);
	equal(await status(), "all: 100ms/s → 700ms/s, ×7.0; share 100% → 100%, ±0");
	const warnings = (await page.locator("main .compare-warning").allTextContents()).join(" ");
	for (const text of ["periods differ: 10ms of cpu and 5ms of cpu", "durations differ: 10s and 1s", "build IDs of the binaries differ: aaaa1111 and bbbb2222"])
		equal(warnings.includes(text), true, text);
	equal(await page.getByRole("button", { name: "Compare per second" }).count(), 0, "it is");
	await open(`${url}compare?unit=ms&b=1`);
	await page.getByRole("button", { name: "Compare per second" }).click();
	await ready();
	equal(await status(), "all: 100ms/s → 700ms/s, ×7.0; share 100% → 100%, ±0");
	await page.unroute("**/api/v1/meta*");
});

await test("compare: widths by either side, the larger one, or what changed; N and ✕", async () => {
	await open(`${url}compare?b=1`);
	equal(await widths(), { root0: 100, main1: 100, rec2: 42.9, a2: 28.6, c2: 28.6, rec3: 42.9, b3: 19, rec4: 42.9 });
	await choose("Width", "b");
	equal((await widths()).c2, 0);
	await choose("Width", "a");
	equal(await widths(), { root0: 100, main1: 100, rec2: 40, a2: 30, c2: 30, rec3: 40, b3: 20, rec4: 40 });
	await choose("Width", "change");
	equal(await widths(), { root0: 100, main1: 100, rec2: 10, a2: 30, c2: 60, rec3: 10, b3: 20, rec4: 10 });
	equal(await page.evaluate(() => __ui.state.cw), "change");
	equal((await page.locator("main .compare-legend").textContent()).includes("✕ gone in B"), true);
	await page.reload();
	await ready();
	equal((await widths()).c2, 60);
});

for (const mode of ["diff_base", "base"])
	await test(`compare: B less A has the numbers of -${mode}`, async () => {
		await open(`${url}compare?b=1&unit=ms`);
		await page.locator("main summary", { hasText: "As pprof" }).click();
		await page.locator("main .pop-panel button", { hasText: `-${mode}` }).last().click();
		await page.waitForFunction(() => __ui.state.page === "top");
		await ready();
		const rows = (await cells()).map(row => [row[0], row[1], row.find(text => /^(a|b|c|rec|main)$/.test(text))]);
		const lines = cli("-top", "-unit=ms", `-${mode}=worked_a.pb`, "worked_b.pb").split("\n");
		for (const [flat, percent, name] of rows) {
			const found = lines.map(line => line.trim().split(/\s+/)).find(line => line[5] === name);
			equal(flat, found[0], name);
			// The command line leaves the sign to the value.
			near(Math.abs(parseFloat(percent)), parseFloat(found[1]), 0.06);
		}
		equal(rows.length, 5);
	});

await test("compare: a file with two counts fills both sides, dropped anywhere or chosen for one", async () => {
	const two = await serve("worked_a.pb"), file = join(folder, "two.folded");
	const sides = async () => {
		await page.waitForFunction(() => __ui.state.page === "compare" && __ui.state.b);
		await ready();
		return [await page.locator("main label.field select").evaluateAll(all => all.slice(0, 2).map(select => select.selectedOptions[0].text)), await status()];
	};

	writeFileSync(file, cli("-folded", "-diff_base=worked_a.pb", "worked_b.pb"));
	const want = [["two.folded, before", "two.folded, after"], "all: 1,000,000,000 → 700,000,000 samples, ×0.7; share 100% → 100%, ±0"];
	await open(`${two}compare`);
	await page.locator("main summary", { hasText: "Open…" }).last().click();
	await page.locator("main input[type=file]").last().setInputFiles(file);
	equal(await sides(), want);
	equal(await widths(), { root0: 100, main1: 100, rec2: 42.9, a2: 28.6, c2: 28.6, rec3: 42.9, b3: 19, rec4: 42.9 });
	await page.keyboard.press("x");
	await ready();
	equal((await status()).startsWith("all: 700,000,000 → 1,000,000,000 samples"), true);
	await open(`${two}flamegraph`);
	await drop(file);
	equal(await sides(), want);
	const address = page.url();
	await open(`${two}top`);
	await open(address);
	equal(await sides(), want);
	await open(`${two}compare`);
	await drop(file);
	equal(await sides(), want);
	await axe("both sides of a file");
	await stop(two);
});

await test("-divide_by: what pages show is what the command line prints", async () => {
	const divided = await serve("-divide_by=7", "worked_a.pb");
	await open(divided + "top?unit=ms");
	const want = cli("-top", "-unit=ms", "-divide_by=7", "worked_a.pb").split("\n").map(line => line.trim().split(/\s+/)).find(line => line[5] === "rec");
	const row = (await cells()).find(cell => cell.includes("rec"));
	equal([row[0], row[1]], [want[0], "40.0%"]);
	await stop(divided);
});

await test("one file: search finds, and pages without data say so", async () => {
	const file = join(folder, "page.html");
	cli("-html", `-output=${file}`, "worked_a.pb");
	await page.goto(`file://${file}#top?q=re`);
	await ready();
	await page.waitForFunction(() => document.querySelector("main table").getAttribute("aria-rowcount") === "2");
	for (const name of ["graph", "sandwich", "source", "peek", "compare?b=1"]) {
		await page.goto("about:blank");
		await page.goto(`file://${file}#${name}`);
		await ready();
		await page.waitForFunction(() => document.querySelector("main .page-note"));
		equal((await page.locator("main .page-note").allTextContents()).some(text => /Not in this file.*kiln -http/.test(text)), true, name);
		equal(await page.locator(".errorbar:visible").count(), 0, name);
	}
	equal(trouble.filter(text => text !== `fetches file://${file}`), []);
	trouble.length = 0;
});

for (const theme of ["light", "dark"])
	await test(`compare: no axe violations, ${theme}`, async () => {
		await setTheme(theme);
		for (const [name, query] of Object.entries({ normal: "b=1&cn=total", widths: "b=1&cw=change", rows: "b=1&cv=table&cn=a" })) {
			await open(`${url}compare?${query}`);
			await axe(name);
			await shoot(`compare-${name}-${theme}`);
		}
		await page.setViewportSize({ width: 360, height: 700 });
		await open(`${url}compare?b=1`);
		near(await page.evaluate(() => document.documentElement.scrollWidth), 360, 0);
		await axe("compare at 360");
		await shoot(`compare-360-${theme}`);
		await page.setViewportSize({ width: 1300, height: 800 });
	});

rmSync(folder, { recursive: true });
