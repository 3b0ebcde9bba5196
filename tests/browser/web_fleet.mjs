// The pages of kiln serve: services, timeline, and the viewer on what was chosen there.
import { axe, cells, equal, near, open, page, ready, setTheme, shoot, soon, test } from "./web_lib.mjs";
import { EVIL, MINUTES, START, STEP, serveFleet } from "./web_fleet_lib.mjs";
import { freshPage, isReady } from "./web_proof_lib.mjs";

const url = await serveFleet();
const END = START + MINUTES * 60, WINDOW = `from=${START}&to=${END}`;
const state = key => page.evaluate(name => window.__ui.state[name] ?? null, key);
const stats = () => page.evaluate(() => window.__ui.stats);
const api = async path => (await fetch(url + "api/1/" + path)).json();
const settle = () => ready();
const path = () => new URL(page.url()).pathname;

/** Drags over the chart from one minute to another. */
async function drag(from, to, key) {
	const { rect } = await stats(), x = minute => rect.x + 92 + minute / MINUTES * (rect.width - 104), y = rect.y + rect.height / 2;

	if (key)
		await page.keyboard.down(key);
	await page.mouse.move(x(from), y);
	await page.mouse.down();
	await page.mouse.move(x((from + to) / 2), y);
	await page.mouse.move(x(to), y);
	await page.mouse.up();
	if (key)
		await page.keyboard.up(key);
	await settle();
}

const minutesOf = text => text.split(",").map(time => (Number(time) - START) / 60);

// ---- services

await test("services: a row for each service and type, and what it uses", async () => {
	await open(url);
	await soon(async () => (await cells()).every(row => row[6] !== "…"), "versions");
	const rows = (await cells()).map(row => [row[0], row[1], row[3], row[4], row[6]]);
	const name = EVIL.replace("\u202e", "\\u202e");

	equal(rows, [[name, "cpu", "1", "0.20 cores", name.slice(0, 60)], ["batch", "cpu", "1", "0.50 cores", "7"], ["web", "cpu", "2", "1.50 cores", "1.1"], ["web", "heap", "1", "4MB", "1.1"]].map((row, i) =>
		[row[0], row[1], row[2], i ? row[3] : rows[0][3], row[4]]));
	equal(await page.locator(".count").textContent(), "3 services, 4 rows");
	equal(await page.locator("main svg.spark").count(), 4);
	await shoot("fleet-services");
});

await test("services: search narrows, conditions are labels, both are in the URL", async () => {
	await open(url + "services");
	await page.getByLabel("Search services").fill("WE");
	await soon(async () => (await cells()).length === 2, "two rows");
	equal(await state("q"), "WE");
	await page.getByLabel("Search services").fill("");
	await page.getByLabel("Conditions over labels").fill('region="eu"');
	await page.keyboard.press("Enter");
	await settle();
	await soon(async () => (await cells()).map(row => row[0]).join() === "batch", "one row");
	equal(await state("query"), 'region="eu"');
	await page.reload();
	await ready();
	equal((await cells()).map(row => row[0]), ["batch"]);
	equal(await page.getByLabel("Conditions over labels").inputValue(), 'region="eu"');
	await page.goBack();
	await settle();
	await soon(async () => (await cells()).length === 4, "all rows");
});

await test("services: nothing found is said, and a wrong condition explained", async () => {
	await open(url + "services?q=nobody");
	await page.getByText("No such service").waitFor();
	await page.getByRole("button", { name: "Show all" }).click();
	await soon(async () => (await cells()).length === 4, "all rows");
});

await test("services: Enter on a row and a click on its name lead to its timeline", async () => {
	await open(url + "services");
	await page.getByRole("link", { name: "batch" }).click();
	await settle();
	equal([path(), await state("service"), await state("type")], ["/timeline", "batch", "cpu"]);
	await page.goBack();
	await settle();
	await page.locator("main table").focus();
	for (const key of ["Home", "ArrowDown", "ArrowDown", "Enter"])
		await page.keyboard.press(key);
	await soon(async () => path() === "/timeline", "the timeline");
	await settle();
	equal(await state("service"), "web");
});

// ---- timeline

await test("timeline: lines are those of the API", async () => {
	await open(`${url}timeline?service=web&type=cpu&by=version&${WINDOW}`);
	const found = await stats(), answer = await api(`series?service=web&type=cpu&by=version&${WINDOW}&step=15s&levels=true`);

	equal([found.lines, answer.lines.length], [2, 2]);
	equal(await page.locator(".chart-legend .name").allTextContents(), ["1.1", "1.0"]);
	// 10 of 10 seconds of one pod, 5 of 10 of the other.
	near(answer.lines[0].points.at(-1)[3] / 1e9, 1.5, 0.01);
	near(answer.lines[1].points[0][3] / 1e9, 1, 0.01);
	await shoot("fleet-timeline");
});

await test("timeline: a drag chooses a window, which opens in the viewer", async () => {
	await open(`${url}timeline?service=web&type=cpu&${WINDOW}`);
	await drag(0, MINUTES / 2 - 2);
	const [from, to] = minutesOf(await state("w"));

	near(from, 0, 1);
	near(to, MINUTES / 2 - 2, 1);
	await page.getByRole("link", { name: "Flame graph" }).click();
	await page.waitForURL("**/ui/flamegraph?*");
	await ready();
	// 12 profiles of two pods, each of 5 seconds.
	equal(await page.evaluate(() => window.__ui.tree.total[0]), MINUTES / 2 / STEP * 2 * 5e9);
	for (const view of ["top", "tree", "graph", "sandwich", "source", "labels", "peek"]) {
		await page.evaluate(name => document.querySelector(`[data-page=${name}]`).click(), view);
		await page.waitForURL(`**/ui/${view}?*`);
		await ready();
	}
	await page.locator("a.home").click();
	await ready();
	equal([path(), await state("service"), await state("type")], ["/timeline", "web", "cpu"]);
	await page.goBack();
	await page.waitForURL("**/ui/peek?*");
	await ready();
	await page.keyboard.press("t");
	await page.waitForURL("**/timeline?*");
	await ready();
});

await test("timeline: with Shift a baseline, and the two are compared", async () => {
	await open(`${url}timeline?service=web&type=cpu&${WINDOW}`);
	await drag(MINUTES / 2 + 2, MINUTES - 2);
	await drag(2, MINUTES / 2 - 2, "Shift");
	const [from, to] = minutesOf(await state("b"));

	near(from, 2, 1);
	near(to, MINUTES / 2 - 2, 1);
	await shoot("fleet-brushed");
	await page.getByRole("link", { name: "Compare with the baseline" }).click();
	await page.waitForURL("**/ui/compare?*");
	await ready();
	await page.getByRole("button", { name: "Table" }).click();
	await ready();
	const parse = async () => (await cells()).find(row => row.at(-1) === "parse").slice(0, 2);

	equal(await parse(), ["40.0%", "60.0%"], "windows are compared by shares");
	await shoot("fleet-compare");
	await page.getByLabel("Normalise").selectOption("none");
	await ready();
	equal(await parse(), ["44s", "99s"]);
});

await test("timeline: all of it by keys", async () => {
	await open(`${url}timeline?service=web&type=cpu&${WINDOW}`);
	await page.locator(".time-chart").focus();
	await page.keyboard.press("Home");
	equal(/: [\d.]+ cores?$/.test(await page.locator("[aria-live=polite].sr-only").textContent()), true);
	for (let i = 0; i < 3; i++)
		await page.keyboard.press("Shift+ArrowRight");
	const base = minutesOf(await state("w"));

	await page.keyboard.press("b");
	equal([await state("w"), minutesOf(await state("b"))], [null, base]);
	await page.locator(".time-chart").focus();
	await page.keyboard.press("End");
	await page.keyboard.press("Shift+ArrowLeft");
	equal(minutesOf(await state("w"))[1] > MINUTES - 10, true);
	await page.keyboard.press("Escape");
	equal([await state("w"), await state("b")], [null, null]);
	await page.keyboard.press("Home");
	await page.keyboard.press("Shift+PageDown");
	await page.keyboard.press("+");
	await settle();
	equal([await state("w"), Number(await state("to")) < START + 3600], [null, true]);
	await page.keyboard.press("-");
	await settle();
	await page.locator(".time-chart").focus();
	await page.keyboard.press("Enter");
	await page.waitForURL("**/ui/flamegraph?*");
	await ready();
});

await test("timeline: single profiles of the window, and one of them", async () => {
	await open(`${url}timeline?service=web&type=cpu&${WINDOW}&w=${START - 1},${START + 600}`);
	await page.getByRole("heading", { name: "6 profiles in the window" }).waitFor();
	equal((await cells(".single table")).map(row => row[2]).sort().slice(0, 2), ["pod=a, version=1.0", "pod=a, version=1.0"]);
	await page.locator(".single table a").first().click();
	await page.waitForURL("**/ui/flamegraph?a=id*");
	await ready();
	equal(await page.evaluate(() => window.__ui.tree.total[0]), 5e9);
});

await test("timeline: a function as a line over it", async () => {
	await open(`${url}timeline?service=web&type=cpu&${WINDOW}&fn=parse`);
	equal(await page.locator(".chart-legend .name").allTextContents(), ["all", "parse"]);
	await page.getByLabel("Function to overlay").focus();
	await soon(async () => (await page.locator("#functions option").evaluateAll(list => list.map(option => option.value))).sort().join() === "copy,handle,main,parse", "suggestions");
	await page.getByLabel("Function to overlay").fill("nothing");
	await page.keyboard.press("Enter");
	await settle();
	await page.getByText("No samples have this function.").waitFor();
});

await test("timeline: the chart as lines and as a table", async () => {
	await open(`${url}timeline?type=cpu&${WINDOW}&mode=lines`);
	equal((await stats()).lines, 3);
	await page.getByRole("button", { name: "Table", exact: true }).click();
	await settle();
	equal([await state("mode"), (await cells(".plot table")).length > 10], ["table", true]);
	equal((await cells(".plot table"))[0].slice(1, 3).map(text => /cores$/.test(text)), [true, true]);
});

await test("timeline: a click in the legend shows one line", async () => {
	await open(`${url}timeline?type=cpu&${WINDOW}`);
	await page.locator(".chart-legend button").nth(1).click();
	equal(await state("only"), "batch");
	await page.locator(".chart-legend button").nth(1).click();
	equal(await state("only"), null);
});

await test("timeline: other values of a heap, and no service at all", async () => {
	await open(`${url}timeline?service=web&type=heap&${WINDOW}`);
	equal(await page.locator(".chart-legend .num").textContent(), "4MB");
	await page.getByLabel("Service").first().selectOption("");
	await settle();
	equal(await state("service"), null);
	await open(`${url}timeline?service=nobody`);
	await page.getByText("Nothing to show").waitFor();
});

// ---- all pages

const STATES = ["services?srt=last%3Ad", "services?q=we&query=version%3D%221.1%22", `timeline?service=web&type=cpu&by=pod&${WINDOW}&w=${START + 600},${START + 1200}&b=${START},${START + 300}&mode=lines`,
	`timeline?type=heap&${WINDOW}&only=web`, `timeline?service=${encodeURIComponent(EVIL)}&type=cpu&by=version&from=now-6h`, "timeline?service=web&from=now-7d&fn=parse", `timeline?type=cpu&by=-&${WINDOW}`, "storage?service=web&from=now-6h",
	`live?service=web&type=cpu&win=5m&at=${END}&mode=top`, `fleet?service=web&type=heap&st=inuse_space&by=version&q=han&${WINDOW}`, "regressions?service=web&type=cpu&kind=window&status=new&which=all&cmp=1", "targets?q=x&state=up"];

await test("URLs: every one opens the same again, and unknown parameters stay", async () => {
	for (const where of STATES) {
		await open(`${url}${where}&future=1`);
		const before = [await page.evaluate(() => ({ ...window.__ui.state })), await page.evaluate(() => [...document.querySelectorAll("main :is(select, input)")].map(e => e.value))];
		const other = await freshPage();

		await other.page.goto(page.url());
		await isReady(other.page);
		equal([await other.page.evaluate(() => ({ ...window.__ui.state })), await other.page.evaluate(() => [...document.querySelectorAll("main :is(select, input)")].map(e => e.value))], before, where);
		equal([before[0].future, other.trouble], ["1", []]);
		await other.close();
	}
});

await test("URLs: the selection goes from page to page; back and forward", async () => {
	await open(`${url}timeline?service=web&type=cpu&from=now-6h&w=${START},${START + 300}`);
	await page.keyboard.press("1");
	await settle();
	equal([path(), await state("service"), await state("from"), await state("w")], ["/services", "web", "now-6h", null]);
	await page.keyboard.press("7");
	await settle();
	equal(path(), "/storage");
	await page.goBack();
	await page.goBack();
	await settle();
	equal([path(), await state("w")], ["/timeline", `${START},${START + 300}`]);
	await page.goForward();
	await settle();
	equal(path(), "/services");
});

await test("keys: each page, help, search; they can be switched off", async () => {
	await open(url);
	for (const [key, want] of [["2", "timeline"], ["3", "live"], ["4", "fleet"], ["5", "regressions"], ["6", "targets"], ["7", "storage"], ["1", "services"]]) {
		await page.keyboard.press(key);
		equal(path(), "/" + want);
		await page.waitForFunction(() => window.__ui.ready || document.querySelector(".errorbar:not([hidden])"));
	}
	await settle();
	await page.keyboard.press("/");
	equal(await page.evaluate(() => document.activeElement.getAttribute("aria-label")), "Search services");
	await page.evaluate(() => document.activeElement.blur());
	await page.keyboard.press("?");
	await page.getByRole("dialog").waitFor();
	await axe("help");
	await page.getByLabel("Keys without Ctrl do something").uncheck();
	await page.keyboard.press("Escape");
	await page.keyboard.press("7");
	equal(path(), "/services");
	await page.evaluate(() => localStorage.removeItem("kiln.keys"));
});

for (const theme of ["light", "dark"])
	await test(`axe: nothing to complain of in ${theme}`, async () => {
		for (const where of ["services", `timeline?service=web&type=cpu&by=version&${WINDOW}&w=${START + 600},${START + 1800}&b=${START},${START + 300}&fn=parse`, `timeline?type=cpu&${WINDOW}&mode=table`, "storage"]) {
			await open(url + where);
			await setTheme(theme);
			await page.waitForTimeout(50);
			await axe(where);
		}
		await setTheme("light");
	});
