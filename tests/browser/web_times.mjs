// The Timeline page: a heat map that chooses a part of the time, and stacks in order of time.
import { axe, cells, equal, open, page, ready, serve, setTheme, shoot, soon, test } from "./web_lib.mjs";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

const STACKS = { parse: ["parse", "handle", "main"], copy: ["memcpy", "copy", "handle", "main"], idle: ["poll", "main"] };

/** A minute of two threads, as perf script prints it; the second stands still from 20 s to 30 s, when the first copies. */
function perfScript() {
	const lines = [];
	const put = (at, thread, stack) => lines.push(`worker${thread} 100/${100 + thread} [000] ${at.toFixed(6)}: 10000000 cpu-clock:`,
		...STACKS[stack].map(name => `\t${(0x1000 + 16 * name.length).toString(16)} ${name}+0x1 (/bin/app)`), "");

	for (let i = 0; i < 6000; i++) {
		const isMiddle = i >= 2000 && i < 3000;

		put(1000 + i / 100, 0, isMiddle ? "copy" : "parse");
		if (!isMiddle)
			put(1000.003 + i / 100, 1, "idle");
	}
	return lines.join("\n") + "\n";
}

const file = join(process.argv[2], "times.script");

writeFileSync(file, perfScript());
const url = await serve(file), plain = await serve("labels.pb");
const state = key => page.evaluate(name => window.__ui.state[name] ?? null, key);
const stats = () => page.evaluate(() => window.__ui.stats);
const heat = () => page.locator("canvas.heat");
const shown = async () => (await page.evaluate(() => window.__ui.tree.total[0])) / 1e7;

/** The middle of a cell, in pixels. */
async function cell(column, row) {
	const box = await heat().boundingBox(), { columns, rows } = await stats();

	return [box.x + (box.width * (column + 0.5)) / columns, box.y + (168 * (row + 0.5)) / rows];
}

await test("timeline: what is dragged over is a filter of all views", async () => {
	await open(url + "flamegraph");
	equal(await shown(), 11000);
	await page.keyboard.press("t");
	await soon(async () => (await stats()).total === 11000 * 1e7, "the heat map");
	equal([await state("page"), (await stats()).columns, (await stats()).rows], ["timeline", 60, 50]);
	await shoot("timeline");
	await page.mouse.move(...await cell(20, 0));
	await page.mouse.down();
	await page.mouse.move(...await cell(25, 10), { steps: 5 });
	await page.mouse.move(...await cell(29, 49), { steps: 5 });
	await page.mouse.up();
	await ready();
	equal(await state("tm"), "20-30");
	await page.getByText("all views show this time").waitFor();
	await shoot("timeline-range");
	await page.keyboard.press("1");
	await ready();
	equal(await shown(), 1000);
	await page.locator(".chip[data-key=tm]").getByText("20-30").waitFor();
	await page.keyboard.press("2");
	await ready();
	equal((await cells()).map(row => row.at(-1)).some(text => /parse/.test(text)), false);
	// The URL says it all.
	const where = page.url();

	await open(where);
	equal(page.url(), where);
});

await test("timeline: the chip takes it away, can be edited, and undo brings it back", async () => {
	await open(url + "flamegraph?tm=20-30");
	equal(await shown(), 1000);
	await page.getByRole("button", { name: /^Remove time/ }).click();
	await ready();
	equal([await state("tm"), await shown()], [null, 11000]);
	await page.keyboard.press("Control+z");
	await ready();
	equal([await state("tm"), await shown()], ["20-30", 1000]);
	await page.locator(".chip[data-key=tm] .chip-edit").click();
	await page.locator(".chip-input").fill("0-10");
	await page.keyboard.press("Enter");
	await ready();
	equal([await state("tm"), await shown()], ["0-10", 2000]);
});

await test("timeline: by keys", async () => {
	await open(url + "timeline");
	await heat().focus();
	await page.keyboard.press("ArrowDown"); // to the first cell
	for (let i = 0; i < 3; i++)
		await page.keyboard.press("ArrowRight");
	await page.keyboard.press("Shift+ArrowRight");
	await page.keyboard.press("Enter");
	await ready();
	equal(await state("tm"), "3-4.02");
	await heat().focus();
	await page.keyboard.press("Escape");
	await ready();
	equal(await state("tm"), null);
	await page.keyboard.press("ArrowDown");
	await page.keyboard.press("End");
	await page.keyboard.press("Enter");
	await ready();
	equal(await state("tm"), "59-60");
	await page.getByRole("button", { name: "Whole time" }).click();
	await ready();
	equal(await state("tm"), null);
});

await test("timeline: as a table; with other filters", async () => {
	await open(url + "timeline?f=memcpy");
	equal((await stats()).total, 1000 * 1e7);
	await page.getByText("As a table").click();
	equal((await cells(".times-rows table")).filter(row => row[1] !== "0").length, 10);
	await page.getByRole("button", { name: "25.000 s" }).click();
	await ready();
	equal(await state("tm"), "25-26");
});

// ---- two times

async function drag(from, to, key) {
	if (key)
		await page.keyboard.down(key);
	await page.mouse.move(...await cell(...from));
	await page.mouse.down();
	await page.mouse.move(...await cell(...to), { steps: 5 });
	await page.mouse.up();
	if (key)
		await page.keyboard.up(key);
	await ready();
}

const compared = () => page.evaluate(() => {
	const { total, totalB } = window.__ui.tree;

	return [total[0] / 1e7, totalB[0] / 1e7];
});

await test("two times: a second one, with Shift, opens the comparison", async () => {
	await open(url + "timeline");
	await drag([20, 0], [29, 49]);
	equal(await state("tm"), "20-30");
	await page.getByText("drag with Shift over what to compare it with").waitFor();
	await drag([0, 0], [9, 49], "Shift");
	equal([await state("page"), await state("tb"), await state("tm"), await state("b")], ["compare", "0-10", "20-30", null]);
	equal(await compared(), [2000, 1000]);
	equal(await page.locator(".compare-times > span").allTextContents(), ["A 0 s to 10 s", "B 20 s to 30 s"]);
	equal(await page.locator(".compare-warning").count(), 0);
	await shoot("two-times-compare");
	// The URL says it all.
	const where = page.url();

	await open(where);
	equal([page.url() === where, await compared()], [true, [2000, 1000]]);
	await page.getByRole("button", { name: "Table", exact: true }).click();
	await ready();
	equal((await cells()).map(row => row.at(-1)).sort(), ["memcpy", "parse", "poll"]);
	await page.getByRole("button", { name: "Side by side" }).click();
	await ready();
	equal(await page.locator(".compare-side h2").allTextContents().then(all => all.map(text => /, (.*? to [\d.]+ s)/.exec(text)[1])), ["0 s to 10 s", "20 s to 30 s"]);
	await page.keyboard.press("x");
	await ready();
	equal([await state("tb"), await state("tm")], ["20-30", "0-10"]);
	await page.goBack();
	await page.getByRole("button", { name: "Timeline", exact: true }).last().click();
	await ready();
	equal([await state("page"), await state("tb"), await state("tm")], ["timeline", "0-10", "20-30"]);
	await shoot("two-times");
	await page.getByText("baseline 0.000 s to 10.000 s").waitFor();
	await page.getByRole("button", { name: "Whole time" }).click();
	await ready();
	equal([await state("tb"), await state("tm")], [null, null]);
});

await test("two times: the baseline first; parts that overlap; parts within a column", async () => {
	await open(url + "timeline");
	await drag([0, 0], [9, 49], "Shift");
	equal([await state("page"), await state("tb"), await state("tm")], ["timeline", "0-10", null]);
	await page.getByText("drag over what to compare it with").waitFor();
	await drag([5, 10], [5, 19]);
	equal(await state("tm"), "5.2-5.4");
	await shoot("two-times-within");
	await page.getByRole("button", { name: "Compare with the baseline" }).click();
	await ready();
	equal([await state("page"), await compared()], ["compare", [2000, 40]]);
	await page.locator(".compare-warning").getByText("The two times overlap.").waitFor();
	await page.getByLabel("Normalise").selectOption("second");
	await ready();
	equal((await compared()).map(Math.round), [200, 200]);
});

await test("two times: by keys", async () => {
	await open(url + "timeline");
	await heat().focus();
	await page.keyboard.press("ArrowDown"); // to the first cell
	await page.keyboard.press("Enter");
	await ready();
	equal(await state("tm"), "0-1");
	await page.keyboard.press("b");
	await ready();
	equal([await state("tb"), await state("tm")], ["0-1", null]);
	await heat().focus();
	await page.keyboard.press("End");
	await page.keyboard.press("Enter");
	await ready();
	equal(await state("tm"), "59-60");
	await page.keyboard.press("c");
	await ready();
	equal([await state("page"), await compared()], ["compare", [200, 200]]);
	await page.goBack();
	await ready();
	await heat().focus();
	await page.keyboard.press("Escape");
	await ready();
	equal([await state("tb"), await state("tm")], [null, null]);
	// Or at once: a part, and with Shift and Enter another as the baseline.
	await page.keyboard.press("Home");
	await page.keyboard.press("Enter");
	await ready();
	await heat().focus();
	for (const key of ["ArrowRight", "ArrowRight", "Shift+ArrowRight", "Shift+Enter"])
		await page.keyboard.press(key);
	await ready();
	equal([await state("page"), await state("tm"), /^\d/.test(await state("tb"))], ["compare", "0-1", true]);
});

for (const theme of ["light", "dark"])
	await test(`two times: no barriers in ${theme}`, async () => {
		for (const path of ["timeline?tb=0-10&tm=20-30", "timeline?tb=0-10", "compare?tb=0-10&tm=20-30", "compare?tb=0-10&tm=20-30&cv=side", "compare?tb=0-10&tm=20-30&cv=table", "compare"]) {
			await open(url + path);
			await setTheme(theme);
			await page.waitForTimeout(200);
			await axe(`${path} ${theme}`);
			await shoot(`two-times-${path.replace(/\W+/g, "-")}-${theme}`);
		}
		await page.setViewportSize({ width: 360, height: 640 });
		for (const path of ["timeline?tb=0-10&tm=20-30", "compare?tb=0-10&tm=20-30"]) {
			await open(url + path);
			await axe(`narrow ${path} ${theme}`);
			equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true);
		}
		await page.setViewportSize({ width: 1300, height: 800 });
		await setTheme("light");
	});

await test("timeline: profiles without times have none", async () => {
	await open(plain + "flamegraph");
	equal(await page.locator(".tabs").getByText("Timeline").count(), 0);
	await page.keyboard.press("t");
	await page.locator(".toast").getByText("This profile has no time axis").waitFor();
	await open(plain + "timeline");
	await page.getByRole("heading", { name: "No time axis" }).waitFor();
	await axe("no time axis");
});

// ---- stacks over time

const chart = () => page.locator("canvas.lanes");
const near = (got, want, what) => equal(Math.abs(got - want) < 0.15, true, `${what}: ${got}, not ${want}`);

/** Waits until the chart shows this. */
async function sees(want) {
	await soon(async () => (await stats()).selected === want, `${want} selected`);
	await ready();
}

await test("chart: a lane for each thread, and keys that move in them", async () => {
	await open(url + "timeline");
	await soon(async () => (await stats()).lanes?.length === 2, "lanes");
	equal((await stats()).lanes, ["worker0, tid 100", "worker1, tid 101"]);
	// Frames that go on are one box: of the first thread main, handle and three below them.
	equal((await stats()).boxes <= 16, true, JSON.stringify(await stats()));
	await shoot("chart");
	await chart().focus();
	await page.keyboard.press("ArrowDown");
	await sees("main");
	await page.keyboard.press("ArrowDown");
	await page.keyboard.press("ArrowDown");
	await sees("parse");
	equal(await page.locator(".lanes-box ol li").allTextContents(), ["main", "handle", "parse"]);
	await page.keyboard.press("ArrowRight");
	await sees("copy");
	equal(await page.evaluate(() => window.__ui.selected[1]), "copy");
	equal(await page.locator(".times-lower .details .what").textContent(), "copy");
	await page.keyboard.press("ArrowUp");
	await sees("handle");
	await page.keyboard.press("PageDown");
	await sees("main");
	await page.keyboard.press("ArrowDown");
	await sees("poll");
	await page.keyboard.press("End");
	await page.keyboard.press("Home");
	await page.keyboard.press("PageUp");
	await sees("main");
});

await test("chart: zoom and pan are in the URL, and can be made a filter", async () => {
	await open(url + "timeline");
	await soon(async () => (await stats()).lanes?.length === 2, "lanes");
	await chart().focus();
	for (const key of ["ArrowDown", "ArrowDown", "ArrowDown", "ArrowRight", "Enter"])
		await page.keyboard.press(key);
	await sees("copy");
	let [from, to] = (await state("x")).split("-").map(Number);

	near(from, 19.8, "from");
	near(to, 30.2, "to");
	await soon(async () => (await stats()).lanes.length === 2, "both, as the window is a little more");
	await page.keyboard.press("Shift+ArrowRight");
	await ready();
	near(Number((await state("x")).split("-")[0]), from + (to - from) / 4, "panned");
	const where = page.url();

	await open(where);
	equal(page.url(), where);
	near((await stats()).view[0], from + (to - from) / 4, "opened again");
	await chart().focus();
	await page.keyboard.press("+");
	await ready();
	[from, to] = (await state("x")).split("-").map(Number);
	near(to - from, 5.2, "zoomed in");
	await page.keyboard.press("-");
	await page.keyboard.press("0");
	await ready();
	equal(await state("x"), null);
	await open(url + "timeline?x=22-23");
	await page.getByRole("button", { name: "Only this time" }).click();
	await ready();
	equal([await state("tm"), await state("x")], ["22-23", null]);
});

await test("chart: by mouse", async () => {
	await open(url + "timeline?x=10-20");
	await soon(async () => (await stats()).lanes?.length === 2, "lanes");
	const box = await chart().boundingBox(), y = box.y + 18 + 20 + 2 * 17 + 8;

	await page.mouse.move(box.x + 300, y);
	equal(await page.locator(".times-lower .details .what").textContent(), "parse");
	await page.mouse.click(box.x + 300, y);
	await sees("parse");
	await page.mouse.click(box.x + 300, y, { button: "right" });
	await page.getByRole("menuitem", { name: /Sandwich/ }).waitFor();
	await axe("menu");
	await page.keyboard.press("Escape");
	await page.mouse.move(box.x + 500, y);
	await page.mouse.down();
	await page.mouse.move(box.x + 500 - box.width / 10, y, { steps: 4 });
	await page.mouse.up();
	await ready();
	near(Number((await state("x")).split("-")[0]), 11, "dragged");
	await page.keyboard.down("Control");
	await page.mouse.wheel(0, -200);
	await page.keyboard.up("Control");
	await soon(async () => (([a, b]) => b - a)((await state("x")).split("-").map(Number)) < 9, "zoomed by the wheel");
});

for (const theme of ["light", "dark"])
	await test(`timeline: no barriers in ${theme}`, async () => {
		for (const path of ["timeline", "timeline?tm=20-30"]) {
			await open(url + path);
			await setTheme(theme);
			await page.waitForTimeout(200);
			await axe(`${path} ${theme}`);
			await page.getByText("As a table").click();
			await axe(`${path} ${theme}, as a table`);
		}
		await page.setViewportSize({ width: 360, height: 640 });
		await axe(`narrow ${theme}`);
		equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true);
		await page.setViewportSize({ width: 1300, height: 800 });
		await setTheme("light");
	});
