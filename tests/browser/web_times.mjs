// The Timeline page: a heat map that chooses a part of the time.
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

await test("timeline: profiles without times have none", async () => {
	await open(plain + "flamegraph");
	equal(await page.locator(".tabs").getByText("Timeline").count(), 0);
	await page.keyboard.press("t");
	await page.locator(".toast").getByText("This profile has no time axis").waitFor();
	await open(plain + "timeline");
	await page.getByRole("heading", { name: "No time axis" }).waitFor();
	await axe("no time axis");
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
