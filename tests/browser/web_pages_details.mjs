// Source by line and instruction, the graph's map, the column of samples.
import { axe, cells, cli, data, equal, near, open, page, ready, serve, setTheme, shoot, soon, test } from "./web_lib.mjs";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const folder = mkdtempSync(join(tmpdir(), "kiln-details-")), program = join(folder, "loop.c"), binary = join(folder, "loop");
const worked = await serve("worked_a.pb");

writeFileSync(program, `#include <stdlib.h>

static inline __attribute__((always_inline)) int mix(int a, int b)
{
	return a * 31 ^ b;
}

__attribute__((noinline)) int work(int v)
{
	int sum = rand();

	for (int i = 0; i < v; i++)
		if (sum & 1)
			sum += mix(i, sum);
		else
			sum ^= rand();
	return sum;
}

int main(int argc, char **argv)
{
	(void)argv;
	return work(argc);
}
`);
execFileSync("gcc", ["-g", "-O1", "-no-pie", "-o", binary, program]);

/** A heap profile with samples all over the function; weight is for each of them. */
function profileOf(name, weight) {
	const symbols = execFileSync("nm", ["-S", binary], { encoding: "utf8" }), [, start, size] = /^(\w+) (\w+) T work$/m.exec(symbols).map(text => parseInt(text, 16));
	const main = parseInt(/^(\w+) \w+ T main$/m.exec(symbols)[1], 16) + 8, file = join(folder, name);
	const addresses = Array.from({ length: size - 2 }, (_, i) => start + i + 1);
	writeFileSync(file, `heap profile: ${addresses.length}: ${addresses.length * weight} [${addresses.length}: ${addresses.length * weight}] @ heapprofile
${addresses.map(at => `1: ${weight} [1: ${weight}] @ 0x${at.toString(16)} 0x${main.toString(16)}`).join("\n")}
MAPPED_LIBRARIES:
00401000-00402000 r-xp 00001000 00:00 1 ${binary}
`);
	return file;
}

const heap = profileOf("heap.txt", 100), code = await serve(heap);
const { token } = await (await fetch(code + "api/v1/meta")).json();
await fetch(code + "api/v1/profiles?name=more.txt", { method: "POST", body: readFileSync(profileOf("more.txt", 300)), headers: { "X-Kiln-Token": token } });

await test("source: jumps have arrows that can be followed, inlined code its name", async () => {
	await page.setViewportSize({ width: 1900, height: 1400 });
	await open(code + "disasm?fn=work");
	const table = page.locator("main .panes table").nth(1);
	let rows = [], jumps = [];
	await soon(async () => {
		rows = await table.evaluate(el => [...el.querySelectorAll("tbody:not([aria-hidden]) tr")].map(row => [...row.cells].map(cell => cell.textContent)));
		jumps = rows.filter(row => /^j/.test(row[4]) && rows.some(other => row[4].includes(other[0].slice(2))));
		return jumps.length > 1 && rows.some(row => /inlined: mix at loop\.c:5/.test(row[4]));
	}, "jumps and inlined code");
	for (const row of jumps) {
		const target = rows.find(other => row[4].includes(other[0].slice(2)));
		equal(/[╭╰].*[─▸]$/.test(row[3].trim()), true, row[4]);
		equal(target[3].endsWith("▸"), true, row[4]);
	}
	equal(rows.filter(row => row[3].endsWith("▸")).length <= jumps.length, true);
	await table.locator("tr", { hasText: jumps[0][0] }).first().click();
	await table.focus();
	await page.keyboard.press("Enter");
	const at = await table.locator("tr[aria-selected=true] td").first().textContent();
	equal(jumps[0][4].includes(at.slice(2)), true);
	await page.setViewportSize({ width: 1300, height: 800 });
});

await test("source: arrows nest, cross and end", async () => {
	await open(await serve(`-ui_dir=${join(data, "../../../src/web/assets")}`, "worked_a.pb") + "top");
	const got = await page.evaluate(async () => {
		const { jumpArrows } = await import("/ui/static/source.js");
		const code = (address, text) => ({ address, text });
		const arrows = (...rows) => jumpArrows(rows).map(line => line.trimStart());
		return [arrows(code("0x1", "jmp 0x4"), code("0x2", "je 0x3"), code("0x3", "nop"), code("0x4", "jne 0x2"), code("0x5", "jmp 0x99")),
			arrows(code("0x1", "jle    2a <f(int, char)+0x1>"), code("0x2a", "jmp    *0x1(%rip)"), code("0x2b", "cbz x0, 0x2a"))];
	});
	equal(got, [["╭───", "│╭╭▸", "││╰▸", "╰╰─▸", ""], ["╭─", "╭╰▸", "╰──"]]);
});

/** A function that is inlined twice, and called where the compiler cannot know what. */
const mixer = join(folder, "mixer");
writeFileSync(mixer + ".c", `int mix(int a, int b)
{
	return a * 31 ^ b;
}

int (*volatile same)(int, int) = mix;

__attribute__((noinline)) int twice(int v)
{
	int sum = v;
	sum += mix(v, 7);
	sum -= mix(sum, v);
	return sum + same(v, sum);
}

int main(int argc, char **argv)
{
	(void)argv;
	return twice(argc);
}
`);
execFileSync("gcc", ["-g", "-O2", "-no-pie", "-o", mixer, mixer + ".c"]);
{
	const symbols = execFileSync("nm", ["-S", mixer], { encoding: "utf8" });
	const bytes = name => {
		const [, start, size] = new RegExp(`^(\\w+) (\\w+) T ${name}$`, "m").exec(symbols).map(text => parseInt(text, 16));
		return Array.from({ length: size - 1 }, (_, i) => start + i + 1);
	};
	const all = [...bytes("mix"), ...bytes("twice")];
	writeFileSync(mixer + ".txt", `heap profile: ${all.length}: ${all.length} [${all.length}: ${all.length}] @ heapprofile
${all.map(at => `1: 1 [1: 1] @ 0x${at.toString(16)}`).join("\n")}
MAPPED_LIBRARIES:
00401000-00402000 r-xp 00001000 00:00 1 ${mixer}
`);
}

await test("source: places that a function was inlined into, each with its share and its code", async () => {
	const url = await serve(mixer + ".txt"), table = page.locator("main .sites table"), title = () => page.locator("main h2.page-title").textContent();
	const places = () => table.evaluate(el => [...el.querySelectorAll("tbody:not([aria-hidden]) tr")].map(row => [...row.cells].map(cell => cell.textContent)));
	const number = text => parseInt(text);

	await page.setViewportSize({ width: 1900, height: 1000 });
	await open(url + "disasm?fn=mix&unit=B");
	const list = await places(), [whole, ...sites] = list;
	equal(whole[3], "all places");
	equal(sites.map(row => row[3]).sort(), ["inlined into twice at mixer.c:11", "inlined into twice at mixer.c:12", "not inlined"]);
	equal(sites.reduce((sum, row) => sum + number(row[1]), 0), number(whole[1]), "the sum");
	equal(sites.map(row => number(row[1])), sites.map(row => number(row[1])).sort((a, b) => b - a), "heaviest first");
	const line = cli("-top", "-unit=B", mixer + ".txt").split("\n").map(text => text.trim().split(/\s+/)).find(cells => cells[5] === "mix");
	equal([whole[0], whole[1], whole[2]], [line[0], line[3], "100%"], "as -top has it");
	for (const row of sites)
		near(parseFloat(row[2]), number(row[1]) / number(whole[1]) * 100, 0.06);
	await axe("places");
	await shoot("source-sites");
	const addresses = () => page.locator("main .panes table").nth(1).evaluate(el => [...el.querySelectorAll("tbody:not([aria-hidden]) tr")].map(row => row.cells[0].textContent));
	const every = await addresses(), seen = [];
	await table.focus();
	await page.keyboard.press("ArrowDown");
	await ready();
	for (const row of sites) {
		await soon(async () => (await title()).includes(row[3]), `title of ${row[3]}`);
		await ready();
		equal((await title()).includes(`self ${row[0]}, total ${row[1]} (`), true, await title());
		const code = await addresses(), cost = await page.locator("main .panes table").nth(1).evaluate(el => [...el.querySelectorAll("tbody:not([aria-hidden]) tr")].reduce((sum, tr) => sum + (parseInt(tr.cells[1].textContent) || 0), 0));
		equal([code.length > 0, cost], [true, number(row[1])], row[3]);
		seen.push(...code);
		equal(await table.evaluate(el => document.activeElement === el), true, "the focus stays");
		const state = await page.evaluate(() => __ui.state.site);
		equal(/:called$|:\d+:1[12]$/.test(state), true, state);
		if (row !== sites.at(-1))
			await page.keyboard.press("ArrowDown");
	}
	equal([...seen].sort(), [...every].sort(), "together all instructions, none twice");
	const address = page.url(), last = await title();
	await page.reload();
	await ready();
	equal([page.url(), await title(), await table.locator("tr[aria-selected=true] td").last().textContent()], [address, last, sites.at(-1)[3]]);
	// The place of another function is none of this one's.
	await page.locator("main .side tr", { hasText: "twice" }).click();
	await ready();
	await soon(async () => (await title()).startsWith("twice"), "another function");
	equal([await table.count(), (await page.locator("main .panes table").first().locator("tr").count()) > 3], [0, true]);
	await page.goBack();
	await ready();
	await soon(async () => await title() === last, "back");
	await table.locator("tr", { hasText: "all places" }).click();
	await ready();
	equal([await page.evaluate(() => __ui.state.site ?? null), (await title()).includes("inlined into")], [null, false]);
	await page.setViewportSize({ width: 1300, height: 800 });
});

await test("source: a link to the editor", async () => {
	await open(await serve("-source_url=vscode://file/{path}:{line}", heap) + "source?fn=work");
	equal(await page.locator("main h2.page-title a").getAttribute("href"), `vscode://file${program}:9`);
});

await test("source: two sides beside each other", async () => {
	await open(`${code}source?fn=work&b=1`);
	const heads = await page.locator("main .panes th").allTextContents();
	equal(heads.slice(0, 5), ["Line", "Self A", "Self B", "Total A", "Total B"]);
	const line = (await page.locator("main .panes tr", { hasText: "int sum = rand();" }).locator("td").allTextContents());
	equal(parseFloat(line[2]) > 0, true);
	const listed = cli("-list=work", "-unit=B", heap).split("\n").find(text => text.endsWith("int sum = rand();")).trim().split(/\s+/);
	await open(`${code}source?fn=work&b=1&unit=B`);
	const cellsOf = await page.locator("main .panes tr", { hasText: "int sum = rand();" }).locator("td").allTextContents();
	equal(cellsOf.slice(1, 5), [listed[0], `${parseInt(listed[0]) * 3}B`, listed[1], `${parseInt(listed[1]) * 3}B`]);
	await axe("source of two sides");
	await open(`${code}source?fn=mix&b=1`);
	equal((await page.locator("main .sites th").allTextContents()).slice(0, 2), ["Self A", "Total A"]);
	await shoot("source-two");
});

await test("source: the zoomed frame only", async () => {
	const stacks = join(folder, "calls.folded");
	writeFileSync(stacks, "main;f;g 10\nmain;g 3\nmain;h 4\n");
	const calls = await serve(stacks), { functions } = await (await fetch(calls + "api/v1/top")).json();
	const id = name => functions.find(fn => fn[1] === name)[0];
	await open(`${calls}source?fn=g`);
	equal(await page.locator("main .segmented[aria-label=Calls]").isVisible(), false);
	await open(`${calls}source?fn=g&z=${id("main")}.${id("f")}`);
	const title = () => page.locator("main h2.page-title").textContent();
	equal((await title()).includes("total 13 "), true);
	await page.locator("main button", { hasText: "Zoomed frame only" }).click();
	await ready();
	equal((await title()).includes("total 10 "), true);
	equal(await page.evaluate(() => __ui.state.zf), "1");
	await open(`${calls}source?fn=h&zf=1&z=${id("main")}.${id("f")}`);
	equal(await page.locator("main .page-note h2").textContent(), "Not called there");
});

await test("top: a column of samples, asked for when it is shown", async () => {
	await open(worked + "top");
	await page.locator("main summary", { hasText: "Columns" }).click();
	await page.locator("main .pop-panel label", { hasText: "Samples" }).locator("input").check();
	await ready();
	const heads = await page.locator("main thead th").allTextContents(), at = heads.findIndex(text => text === "Samples"), name = heads.indexOf("Function");
	await page.waitForFunction(i => document.querySelector("main tbody:not([aria-hidden]) tr").cells[i].textContent, at);
	equal(Object.fromEntries((await cells()).map(row => [row[name], row[at]])), { rec: "40", c: "30", b: "20", a: "30", main: "100" });
	await page.reload();
	await ready();
	equal((await cells())[0][at], "40");
});

await test("graph: a map when not all is in view, weights alone from afar, the legend explains", async () => {
	await open(worked + "graph");
	const map = page.locator("main .graph-map"), node = page.locator("main g.node", { has: page.locator("text", { hasText: /^main$/ }) });
	equal(await map.locator("rect:not(.seen)").count(), 5);
	await page.locator("main div.graph").focus();
	await page.keyboard.press("0");
	await soon(async () => !await map.isVisible(), "no map");
	for (let i = 0; i < 12; i++)
		await page.keyboard.press("+");
	await soon(() => map.isVisible(), "map");
	const box = await map.boundingBox(), before = await node.boundingBox();
	await page.mouse.click(box.x + box.width / 2, box.y + box.height - 12);
	await soon(async () => before.y - (await node.boundingBox()).y > 50, "moved");
	equal(await page.evaluate(() => __ui.selected), null);
	for (let i = 0; i < 30; i++)
		await page.keyboard.press("-");
	await soon(async () => !await node.locator("text").first().isVisible(), "names are gone");
	const weight = page.locator("main .weights text", { hasText: /^100%$/ });
	await soon(() => weight.isVisible(), "weight");
	near((await weight.boundingBox()).height, 10, 3);
	await page.locator("main summary", { hasText: "Legend" }).click();
	await soon(async () => (await page.locator("main .pop-panel").textContent()).includes("Boxes are functions"), "legend");
	await axe("graph from afar");
	await shoot("graph-far");
});

await test("export: the graph as SVG", async () => {
	await open(worked + "graph?n=20");
	await page.locator("header button[aria-label='Share and export']").click();
	const [download] = await Promise.all([page.waitForEvent("download"), page.locator("dialog li button", { hasText: /^Graph, SVG$/ }).click()]);
	const text = readFileSync(await download.path(), "utf8");
	equal([download.suggestedFilename(), text.startsWith("<svg"), /xmlns=/.test(text), text.includes(">main<")], ["graph.svg", true, true, true]);
	await page.keyboard.press("Escape");
});

for (const theme of ["light", "dark"])
	await test(`details: no axe violations, ${theme}`, async () => {
		await setTheme(theme);
		await open(code + "disasm?fn=work");
		await axe("disasm");
		await open(code + "source?fn=mix");
		await axe("source of what was inlined");
		await page.setViewportSize({ width: 360, height: 700 });
		await axe("the same in 360 pixels");
		equal(await page.evaluate(() => document.documentElement.scrollWidth), 360);
		await page.setViewportSize({ width: 1300, height: 800 });
		await open(code + "disasm?fn=work");
		await shoot(`disasm-arrows-${theme}`);
		await page.locator("main button", { hasText: "Inline" }).click();
		await axe("inline");
		await open(worked + "graph");
		for (let i = 0; i < 8; i++)
			await page.keyboard.press("+");
		await axe("graph with its map");
		await shoot(`graph-map-${theme}`);
	});

rmSync(folder, { recursive: true });
