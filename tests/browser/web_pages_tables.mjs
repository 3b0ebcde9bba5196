// Top, Tree, Sandwich, Peek and Source against the command line.
import { axe, cells, cli, data, equal, kiln, near, open, page, ready, serve, setTheme, shoot, stop, test } from "./web_lib.mjs";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const folder = mkdtempSync(join(tmpdir(), "kiln-pages-"));
const many = join(folder, "many.folded");
writeFileSync(many, Array.from({ length: 5000 }, (_, i) => `main;pkg${i % 40}.fn${i} ${i + 1}`).join("\n") + "\n");
writeFileSync(join(folder, "api.c"), Array.from({ length: 70 }, (_, i) => i + 1 === 2 ? '\treturn "two"; // two' : `line ${i + 1}`).join("\n") + "\n");

/** Rows of -top: [flat, cum, name]. */
const topRows = (...args) => cli("-top", "-nodecount=100000", "-nodefraction=0", ...args).split("\n").map(line =>
	/^\s*(\S+)\s+\S+%\s+\S+%\s+(\S+)\s+\S+%\s+(.*?)(?: \(.*inline\))?$/.exec(line)).filter(Boolean).map(found => [found[1], found[2], found[3]]);
/** The columns of these titles. */
const columns = async (...titles) => {
	const heads = await page.locator("main table thead th").allTextContents();
	const at = titles.map(title => heads.findIndex(head => head.replace(/ [▲▼]\d*$/, "") === title));
	return (await cells()).map(row => at.map(i => row[i]));
};
const head = title => page.locator("main thead button", { hasText: new RegExp(`^${title}( [▲▼]\\d*)?$`) });
const byName = rows => [...rows].sort((a, b) => a[2] < b[2] ? -1 : 1);

const worked = await serve("worked_a.pb"), inlines = await serve("inlines.pb"), long = await serve(many), hostile = await serve("hostile.pb");

for (const [name, url, file] of [["worked_a", worked, "worked_a.pb"], ["inlines", inlines, "inlines.pb"]])
	await test(`top: the numbers of -top, ${name}`, async () => {
		await open(url + "top?unit=ms");
		equal(byName(await columns("Self", "Total", "Function")), byName(topRows("-unit=ms", file)));
	});

await test("top: running sum by self only; sorts by any column, with Shift by a second", async () => {
	await open(worked + "top?unit=ms");
	equal((await columns("Running sum")).flat(), ["40.0%", "70.0%", "90.0%", "100%", "100%"]);
	await head("Total").click();
	equal((await columns("Function")).flat()[0], "main");
	equal((await columns("Running sum")).flat(), ["", "", "", "", ""]);
	equal(await page.locator("main th[aria-sort]").getAttribute("aria-sort"), "descending");
	await head("Function").click({ modifiers: ["Shift"] });
	equal((await columns("Function")).flat(), ["main", "rec", "a", "c", "b"]);
	equal(await page.evaluate(() => __ui.state.srt), "total:d,name:a");
	await page.reload();
	await ready();
	equal((await columns("Function")).flat(), ["main", "rec", "a", "c", "b"]);
	await head("Function").click();
	equal((await columns("Function")).flat(), ["a", "b", "c", "main", "rec"]);
});

await test("top: keyboard, selection, sandwich by Enter", async () => {
	await open(worked + "top");
	await page.locator("main table").focus();
	await page.keyboard.press("ArrowDown");
	await page.keyboard.press("ArrowDown");
	equal(await page.locator("main tr[aria-selected=true] td").last().evaluate(cell => cell.parentNode.textContent.includes("c")), true);
	equal((await page.evaluate(() => __ui.selected))[1], "c");
	await page.keyboard.press("End");
	equal((await page.evaluate(() => __ui.selected))[1], "main");
	await page.keyboard.press("Enter");
	await ready();
	equal(await page.evaluate(() => __ui.state.page), "sandwich");
});

await test("top: 5000 rows with at most 80 elements, to the end", async () => {
	await open(long + "top");
	equal(await page.locator("main table").getAttribute("aria-rowcount"), "5002");
	const rows = () => page.locator("main tbody tr").count();
	if (await rows() > 80)
		throw new Error(`${await rows()} row elements`);
	await page.locator("main table").focus();
	await page.keyboard.press("End");
	equal(await page.locator("main tr[aria-selected=true]").getAttribute("aria-rowindex"), "5002");
	await page.keyboard.press("PageUp");
	await page.keyboard.press("Home");
	equal(await page.locator("main tr[aria-selected=true]").getAttribute("aria-rowindex"), "2");
	const ms = await page.evaluate(() => {
		const start = performance.now();
		[...document.querySelectorAll("main th button")].find(b => b.textContent === "Function").click();
		return performance.now() - start;
	});
	if (ms > 400)
		throw new Error(`sorting took ${ms} ms`);
});

await test("top: the search filters", async () => {
	await open(long + "top?q=fn499");
	await page.waitForFunction(() => document.querySelector("main table").getAttribute("aria-rowcount") === "12");
	await open(long + "top?q=fn49..$&re=1");
	await page.waitForFunction(() => document.querySelector("main table").getAttribute("aria-rowcount") === "101");
});

await test("top: groups have the totals of -files", async () => {
	await open(worked + "top?unit=ms&grp=file");
	const rows = (await columns("Self", "Total", "Function")).map(([self, total, name]) => [self, total, name.replace(/^[▸▾]|\s*\(\d+\)$/g, "")]);
	equal(byName(rows), byName(topRows("-files", "-unit=ms", "worked_a.pb")));
	await page.locator("main tbody .twisty").first().click();
	equal(await page.locator("main tr[aria-level='2']").count(), 1);
	equal(await page.locator("main table").getAttribute("role"), "treegrid");
	await open(long + "top?grp=package");
	equal(await page.locator("main table").getAttribute("aria-rowcount"), "42");
});

await test("top: columns and copies", async () => {
	await open(worked + "top");
	await page.locator("main summary", { hasText: "Columns" }).click();
	await page.locator("main label", { hasText: "Self %" }).locator("input").uncheck();
	equal((await page.locator("main thead th").allTextContents()).includes("Self %"), false);
	await page.keyboard.press("Escape");
	await page.locator("main summary", { hasText: "Copy" }).click();
	await page.locator("main button", { hasText: "Copy as CSV" }).click();
	const csv = await page.evaluate(() => navigator.clipboard.readText());
	equal(csv.split("\n").length, 7);
	if (!csv.startsWith("Self (nanoseconds),") || !csv.includes("400000000,"))
		throw new Error(csv);
	await page.locator("main summary", { hasText: "Copy" }).click();
	await page.locator("main button", { hasText: "Copy as JSON" }).click();
	equal(JSON.parse(await page.evaluate(() => navigator.clipboard.readText()))[0].self, 400000000);
	await page.locator("main summary", { hasText: "Copy" }).click();
	const [download] = await Promise.all([page.waitForEvent("download"), page.locator("main button", { hasText: "Save CSV" }).click()]);
	equal(download.suggestedFilename(), "top.csv");
});

await test("tree: opens by keyboard, * goes down the heaviest path, numbers of -traces", async () => {
	await open(worked + "tree?unit=ms");
	equal((await columns("Function", "Total", "Self")).slice(0, 4), [["▾main", "1000ms", "0"], ["▸rec", "400ms", "0"], ["▸a", "300ms", "100ms"], ["c", "300ms", "300ms"]]);
	await page.locator("main table").focus();
	await page.keyboard.press("Home");
	await page.keyboard.press("*");
	equal((await columns("Function", "Total", "Self")).slice(1, 4), [["▾rec", "400ms", "0"], ["▾rec", "400ms", "0"], ["rec", "400ms", "400ms"]]);
	equal(await page.locator("main tr[aria-selected=true]").getAttribute("aria-level"), "4");
	await page.keyboard.press("ArrowLeft");
	await page.keyboard.press("ArrowLeft");
	equal(await page.locator("main tr[aria-selected=true]").getAttribute("aria-expanded"), "false");
	await page.locator("main .segmented button", { hasText: "Bottom-up" }).click();
	await ready();
	equal((await columns("Function", "Total")).slice(0, 4).map(row => row[1]), ["400ms", "300ms", "200ms", "100ms"]);
});

await test("sandwich: numbers of -peek, centres on what is clicked", async () => {
	await open(worked + "sandwich?fn=a&unit=ms");
	const title = () => page.locator("main h2").evaluate(el => el.firstChild.data + el.children[0].textContent.trimEnd());
	await page.locator("main h2 button").click();
	await page.waitForFunction(() => document.querySelector(".toast").textContent.includes("-peek"));
	equal(await page.evaluate(() => navigator.clipboard.readText()), cli("-unit=ms", "-peek=^a$", "worked_a.pb"));
	equal(await title(), "a self 100ms (10.0%), total 300ms (30.0%), called by 1 function");
	await page.locator("main table tbody tr", { hasText: /main$/ }).click();
	await ready();
	equal(await title(), "main self 0 (0%), total 1000ms (100%), called by 0 functions");
	const canvas = page.locator("main canvas").nth(1), box = await canvas.boundingBox();
	await page.mouse.click(box.x + 20, box.y + 8);
	await ready();
	equal(await title(), "rec self 400ms (40.0%), total 400ms (40.0%), called by 1 function");
	await page.goBack();
	await ready();
	equal((await title()).startsWith("main"), true);
	await canvas.focus();
	await page.keyboard.press("ArrowDown");
	await page.keyboard.press("ArrowRight");
	await page.keyboard.press("Enter");
	await ready();
	equal(/^[ac] self/.test(await title()), true);
});

const deep = join(folder, "deep.folded");
writeFileSync(deep, `${Array.from({ length: 90 }, (_, i) => `f${i}`).join(";")} 5\n`);
const deepUrl = await serve(deep);
/** How far each picture can be scrolled, and is. */
const scrolled = () => page.locator("main .flame-host").evaluateAll(hosts => hosts.map(host => [host.scrollHeight - host.clientHeight > 200, Math.round(host.scrollTop)]));

await test("sandwich, compare: stacks deeper than the page can be scrolled; callers begin at the function", async () => {
	await open(deepUrl + "sandwich?fn=f45");
	const [callers, callees] = await scrolled();
	equal([callers[0], callers[1] > 200, callees], [true, true, [true, 0]]);
	const { token } = await (await fetch(deepUrl + "api/v1/meta")).json();
	await fetch(deepUrl + "api/v1/profiles?name=other", { method: "POST", body: readFileSync(deep), headers: { "X-Kiln-Token": token } });
	await open(deepUrl + "compare?b=1");
	equal((await scrolled()).map(([can]) => can), [true]);
	await open(deepUrl + "compare?b=1&cv=side");
	equal((await scrolled()).map(([can]) => can), [true, true]);
});

await test("peek: the text of -peek, names can be followed", async () => {
	await open(worked + "peek?f=^a$");
	equal(await page.locator("main pre").textContent(), cli("-focus=^a$", "-peek=^a$", "worked_a.pb"));
	await page.locator("main pre button", { hasText: /^b$/ }).click();
	await ready();
	equal(await page.locator("main pre").textContent(), cli("-peek=^b$", "worked_a.pb"));
});

await test("source: says what is missing, and looks where it is told", async () => {
	const labels = await serve("labels.pb");
	await open(labels + "source?fn=query&unit=us");
	equal(await page.locator("main .page-note h2").textContent(), "The source is not here");
	equal((await page.locator("main .page-note").textContent()).includes("/src/db.c"), true);
	await open(labels + "source?fn=handle&unit=us");
	await page.locator("main input[name=source_path]").fill(folder);
	await page.locator("main input[name=trim_path]").fill("/src");
	await page.keyboard.press("Enter");
	await ready();
	equal(await page.locator("main .page-note").count(), 0);
	const line = page.locator("main .panes tr", { hasText: "line 55" });
	const list = cli("-list=handle", "-unit=us", `-source_path=${folder}`, "-trim_path=/src", "labels.pb").split("\n").find(text => text.endsWith("55:line 55"));
	equal((await line.locator("td").allTextContents()).slice(0, 3), ["55", ...list.trim().split(/\s+/).slice(0, 2).map(text => text.replace(/^\.$/, ""))]);
	await page.locator("main h2").click();
	await page.keyboard.press("n");
	equal(await page.locator("main .panes tr[aria-selected=true] td").first().textContent(), "55");
});

await test("source: lines and instructions find each other", async () => {
	const program = join(folder, "program.c"), binary = join(folder, "program"), profile = join(folder, "heap.txt");
	writeFileSync(program, `#include <stdlib.h>

__attribute__((noinline)) int work(int v)
{
	int sum = rand();

	for (int i = 0; i < v; i++)
		sum += i ^ sum;
	return sum;
}

int main(int argc, char **argv)
{
	(void)argv;
	return work(argc);
}
`);
	execFileSync("gcc", ["-g", "-O1", "-no-pie", "-o", binary, program]);
	const symbols = execFileSync("nm", [binary], { encoding: "utf8" }), start = parseInt(/^(\w+) T work$/m.exec(symbols)[1], 16), main = parseInt(/^(\w+) T main$/m.exec(symbols)[1], 16) + 8;
	writeFileSync(profile, `heap profile: 3: 600 [3: 600] @ heapprofile
${[5, 6, 7].map(at => `1: 200 [1: 200] @ 0x${(start + at).toString(16)} 0x${main.toString(16)}`).join("\n")}
MAPPED_LIBRARIES:
00401000-00402000 r-xp 00001000 00:00 1 ${binary}
`);
	await open(await serve(profile) + "disasm?fn=work");
	const tables = page.locator("main .panes table");
	equal(await tables.count(), 2);
	const hot = tables.nth(1).locator("tr", { hasText: "600B" });
	equal(await hot.count() > 0, true);
	await hot.first().click();
	const line = await tables.nth(0).locator("tr[aria-selected=true] td").first().textContent();
	const listed = cli("-list=work", profile).split("\n").find(text => new RegExp(`\\b${line}:`).test(text));
	equal((await tables.nth(0).locator("tr[aria-selected=true] td").nth(1).textContent()), /^\s*(\S+)/.exec(listed)[1].replace(/^\.$/, ""));
	await tables.nth(0).locator("tr", { hasText: "sum += i ^ sum" }).click();
	equal(await tables.nth(1).locator("tr.linked").count() > 0, true);
	equal(await tables.nth(1).locator("tr.block").count() > 0, true);
	await page.locator("main button", { hasText: "Intel" }).click();
	await ready();
	equal(await page.evaluate(() => __ui.state.intel), "1");
	await page.locator("main button", { hasText: "Inline" }).click();
	equal(await tables.count(), 1);
	equal(await tables.locator("tr.asm").count() > 3, true);
});

await test("hostile names are only text", async () => {
	for (const name of ["top", "tree", "sandwich", "graph", "peek", "source", "labels"]) {
		await open(hostile + name);
		equal(await page.evaluate(() => document.querySelectorAll("main script, main img, main foreignObject").length), 0, name);
	}
});

await test("odd profiles show something on every page", async () => {
	for (const file of ["empty.pb", "negative.pb", "deep.pb", "many_labels.pb", "names.pb", "heap.pb", "recursion.pb"]) {
		const url = await serve(file);
		for (const name of ["top", "tree", "sandwich", "graph", "peek", "source", "labels", "compare"]) {
			// The command line says "no matches found" then, and so does the page.
			if (file === "empty.pb" && name === "peek")
				continue;
			await open(url + name);
			equal(await page.locator(".errorbar:visible").count(), 0, `${file} ${name}`);
			equal((await page.locator("main").textContent()).length > 20, true, `${file} ${name}`);
		}
		await stop(url);
	}
});

await test("tree: 10,000 levels", async () => {
	await open(await serve("deep.pb") + "tree");
	await page.locator("main table").focus();
	await page.keyboard.press("Home");
	await page.keyboard.press("*");
	await page.waitForFunction(() => Number(document.querySelector("main tr[aria-selected=true]")?.getAttribute("aria-level")) > 1000);
});

for (const theme of ["light", "dark"])
	await test(`no axe violations, ${theme}`, async () => {
		await setTheme(theme);
		for (const name of ["top", "top?grp=file", "tree", "sandwich", "peek", "source", "disasm"]) {
			await open(worked + name);
			await axe(name);
			await shoot(`${name.replace(/\W/g, "-")}-${theme}`);
		}
	});

await test("360 pixels are enough", async () => {
	await page.setViewportSize({ width: 360, height: 700 });
	for (const name of ["top", "tree", "sandwich", "graph", "peek", "source", "labels", "compare"]) {
		await open(worked + name);
		near(await page.evaluate(() => document.documentElement.scrollWidth), 360, 0);
		await axe(`${name} at 360`);
		await shoot(`${name}-360`);
	}
	await page.setViewportSize({ width: 1300, height: 800 });
});

rmSync(folder, { recursive: true });
