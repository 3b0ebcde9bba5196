// Marks of the timeline: annotations and versions, as flags above the chart and in its table.
import { axe, equal, open, page, ready, setTheme, shoot, soon, test, trouble } from "./web_lib.mjs";
import { EVIL, MINUTES, START, serveFleet } from "./web_fleet_lib.mjs";
import { closeBrowser, freshPage, isReady } from "./web_proof_lib.mjs";

const url = await serveFleet();
const WINDOW = `from=${START}&to=${START + MINUTES * 60}`;
const flags = () => page.$$eval(".flags .flag", list => list.map(flag => flag.getAttribute("aria-label")));
const say = async params => {
	const answer = await fetch(`${url}api/1/annotations`, { method: "POST", body: new URLSearchParams(params) });

	equal(answer.status, 200, await answer.text());
};

await say({ text: "deployed 1.1", service: "web", tags: "deploy,eu", time: START + 3000 });
await say({ text: `outage ${EVIL}`, time: START + 5000, end: START + 6000 });
await say({ text: "of another", service: "batch", time: START + 1000 });

await test("marks: a flag for each, of the service and of all; versions, too", async () => {
	await open(`${url}timeline?service=web&type=cpu&${WINDOW}`);
	const list = await flags();

	equal([list.length, list.some(text => text.endsWith(": deployed 1.1 (web, deploy, eu)")), list.some(text => text.includes(": version 1.1 (first seen)")), list.some(text => text.includes("another"))], [3, true, true, false], list.join("|"));
	equal(list.some(text => text.includes(": outage <img src=x")), true, "names are only text");
	await open(`${url}timeline?type=cpu&${WINDOW}`);
	equal((await flags()).some(text => text.includes("of another (batch)")), true);
});

await test("marks: what they say is shown below the mouse and with the focus, until Escape", async () => {
	await open(`${url}timeline?service=web&type=cpu&${WINDOW}`);
	const flag = page.locator(".flag-item", { hasText: "deployed 1.1" }), tip = flag.locator(".flag-tip");

	equal(await tip.isVisible(), false);
	await flag.locator("button").hover();
	equal([await tip.isVisible(), (await tip.textContent()).includes("deployed 1.1 (web, deploy, eu)")], [true, true]);
	await tip.hover();
	equal(await tip.isVisible(), true, "the mouse may go there");
	await shoot("marks-tip");
	await page.mouse.move(600, 700);
	await flag.locator("button").focus();
	equal(await tip.isVisible(), true, "with the focus");
	await axe("a tip");
	await page.keyboard.press("Escape");
	equal(await tip.isVisible(), false, "Escape");
	await page.keyboard.press("Enter");
	await page.getByRole("dialog").getByText("deployed 1.1").waitFor();
	await axe("a mark");
	await page.keyboard.press("Escape");
});

await test("marks: they stay where they are by time, and those upon one another are one", async () => {
	for (let i = 0; i < 3; i++)
		await say({ text: `step ${i}`, service: "web", time: START + 1500 + i });
	await open(`${url}timeline?service=web&type=cpu&${WINDOW}`);
	const chart = await page.locator(".time-chart").boundingBox(), flag = await page.locator(".flag-item", { hasText: "deployed 1.1" }).boundingBox();
	const x = chart.x + 92 + (3000 / (MINUTES * 60)) * (chart.width - 104);

	equal(Math.abs(flag.x - x) < 2, true, `${flag.x} for ${x}`);
	equal((await flags()).some(text => /step 0 .*; .*step 1 .*; .*step 2/.test(text)), true);
	equal(await page.locator(".flag.several .name").textContent(), "3");
});

await test("marks: the table has them", async () => {
	await open(`${url}timeline?service=web&type=cpu&mode=table&${WINDOW}`);
	await soon(async () => (await page.locator(".plot th", { hasText: "Marks" }).count()) === 1, "a column");
	await page.locator(".plot .vt").evaluate(element => { element.scrollTop = 0; });
	const texts = await page.evaluate(async () => {
		const found = new Set(), view = document.querySelector(".plot .vt");

		for (let y = 0; y <= view.scrollHeight; y += 100) {
			view.scrollTop = y;
			await new Promise(resolve => setTimeout(resolve, 40));
			view.querySelectorAll("td").forEach(cell => found.add(cell.textContent));
		}
		return [...found];
	});

	equal([texts.some(text => text.includes("deployed 1.1 (web, deploy, eu)")), texts.some(text => text.includes("version 1.1 (first seen)"))], [true, true]);
	await axe("table of marks");
	await shoot("marks-table");
});

await test("marks: one is added of the window, by keyboard, and dropped", async () => {
	await open(`${url}timeline?service=web&type=cpu&${WINDOW}&w=${START + 2000},${START + 2300}`);
	await page.keyboard.press("n");
	const dialog = page.getByRole("dialog");

	await dialog.waitFor();
	await axe("annotate");
	await page.keyboard.type("load test");
	await dialog.getByLabel("Tags").fill("test");
	await shoot("marks-dialog");
	equal(await dialog.getByLabel("Service").inputValue(), "web");
	await page.keyboard.press("Enter");
	await soon(async () => (await flags()).some(text => text.endsWith(": load test (web, test)")), "its flag");
	const { annotations } = await (await fetch(`${url}api/1/annotations?tag=test`)).json();

	equal([Date.parse(annotations[0].time) / 1000, Date.parse(annotations[0].end) / 1000], [START + 2000, START + 2300]);
	await page.locator(".flag", { hasText: "load test" }).click();
	await page.getByRole("button", { name: "Drop load test (web, test)" }).click();
	await soon(async () => !(await flags()).some(text => text.includes("load test")), "it is gone");
	await page.keyboard.press("Escape");
	await page.getByRole("button", { name: "Annotate…" }).click();
	await dialog.getByRole("button", { name: "Save" }).click();
	await dialog.getByRole("alert").getByText("text is missing").waitFor();
	trouble.length = 0; // the browser tells of the status, too
	await page.keyboard.press("Escape");
});

await test("marks: who may only read is not asked to write", async () => {
	const other = await freshPage();

	await other.page.route("**/api/1/annotations*", async route => {
		const answer = await route.fetch();

		await route.fulfill({ json: { ...await answer.json(), may_add: false, may_drop: false } });
	});
	await other.page.goto(`${url}timeline?service=web&type=cpu&${WINDOW}`);
	await isReady(other.page);
	equal(await other.page.getByRole("button", { name: "Annotate…" }).count(), 0);
	await other.page.locator(".flag", { hasText: "deployed 1.1" }).click();
	await other.page.getByRole("dialog").getByText("deployed 1.1").waitFor();
	equal(await other.page.getByRole("button", { name: /^Drop/ }).count(), 0);
	await other.close();
});

for (const theme of ["light", "dark"])
	await test(`marks: no barriers in ${theme}, and on a small page`, async () => {
		await open(`${url}timeline?service=web&type=cpu&${WINDOW}`);
		await setTheme(theme);
		await page.waitForTimeout(200);
		await axe(`marks ${theme}`);
		await shoot(`marks-${theme}`);
		await page.setViewportSize({ width: 360, height: 700 });
		await page.waitForTimeout(200);
		equal(await page.evaluate(() => document.documentElement.scrollWidth <= 360), true, "no wider than the page");
		await axe(`small marks ${theme}`);
		await shoot(`marks-small-${theme}`);
		await page.setViewportSize({ width: 1300, height: 800 });
		await ready();
	});
await closeBrowser();
