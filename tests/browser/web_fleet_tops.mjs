// The pages of kiln serve for all services: the heaviest functions, and what became slower.
import { axe, equal, open, page, ready, setTheme, shoot, soon, test } from "./web_lib.mjs";
import { MINUTES, START, push, serveFleet } from "./web_fleet_lib.mjs";
import { makeProfile } from "./web_proof_lib.mjs";

const url = await serveFleet("--regression-window", "1h", "--regression-interval", "0", "--fleet-window", "0");
const state = key => page.evaluate(name => window.__ui.state[name] ?? null, key);
const table = () => page.$$eval("table.plain tbody tr", rows => rows.map(row => [...row.cells].map(cell => cell.innerText.trim())));
const field = label => page.locator("label.field", { has: page.getByText(label, { exact: true }) }).locator("select");
const WINDOW = `from=${START}&to=${START + (MINUTES - 15) * 60}`;

// Two versions of a service, the second of which parses more.
for (let i = 0; i < 116; i++) {
	const isNew = i >= 58, n = (isNew ? 90 : 50) + i % 7;

	await push(url, makeProfile([[["main", "parse"], n], [["main", "copy"], 200], [["main", "rest"], 200]], { duration: 60e9 }),
		{ service: "shop", type: "work", labels: `version=${isNew ? "2.0" : "1.0"}`, time: Math.floor(Date.now() / 60000) * 60 - (117 - i) * 60 });
}

await test("fleet top: functions by what they take, and of which services", async () => {
	await open(`${url}fleet?type=cpu&${WINDOW}`);
	const rows = await table();

	equal(rows.slice(0, 3).map(row => row[0]).includes("copy"), true);
	equal(/cores?$/.test(rows[0][1]), true, rows[0][1]);
	const copy = page.locator("tbody tr", { hasText: "copy" }).first();
	await copy.locator("summary").click();
	await soon(async () => (await copy.locator("li").count()) === 2, "services");
	equal(await state("f"), "copy");
	await shoot("fleet-top");
	await page.reload();
	await ready();
	await soon(async () => (await page.locator("details[open] li").count()) === 2, "it is open again");
});

await test("fleet top: groups, order and search are in the URL, by keyboard", async () => {
	await open(`${url}fleet?type=cpu&${WINDOW}`);
	await field("Show").focus();
	await field("Show").selectOption("category");
	await soon(async () => (await state("group")) === "category", "category");
	await ready();
	equal((await table()).map(row => row[0]), ["other"]);
	await page.keyboard.press("3");
	await open(`${url}fleet?type=cpu&${WINDOW}&sort=services`);
	await page.keyboard.press("/");
	await page.keyboard.type("cop");
	await soon(async () => (await table()).length === 1, "one row");
	equal([await state("q"), await state("sort")], ["cop", "services"]);
});

await test("regressions: compared now, with interval, samples and a link; what is said stays", async () => {
	await open(`${url}regressions`);
	equal(await page.locator("main").getByText("Nothing became slower").count(), 1);
	await page.getByRole("button", { name: "Compare now" }).focus();
	await page.keyboard.press("Enter");
	await soon(async () => (await table()).some(row => row[1].startsWith("shop")), "it is found");
	const row = (await table()).find(cells => cells[1].startsWith("shop"));

	equal([row[0], row[1], row[2]], ["parse", "shop work", "1.0 → 2.0"]);
	equal(/^\+\d+\.\d+%\n\+.* to \+.*$/.test(row[3]), true, row[3]);
	await page.getByLabel("Status of parse").first().selectOption("expected");
	await soon(async () => (await table())[0][7].includes("somebody"), "who said it");
	await shoot("regressions");
	await field("Status").selectOption("expected");
	await ready();
	equal(await state("status"), "expected");
	await page.reload();
	await ready();
	equal((await table()).map(cells => cells[0]).includes("parse"), true);
	const link = await page.getByRole("link", { name: "Compare" }).first().getAttribute("href");

	await page.goto(new URL(link, url).href);
	await ready();
	equal(new URL(page.url()).pathname, "/ui/compare");
});

for (const theme of ["light", "dark"])
	await test(`fleet top and regressions: no barriers in ${theme}`, async () => {
		for (const path of [`fleet?type=cpu&${WINDOW}&f=copy`, "regressions"]) {
			await open(url + path);
			await setTheme(theme);
			await page.waitForTimeout(200);
			await axe(`${path} ${theme}`);
			await shoot(`tops-${path.slice(0, 5)}-${theme}`);
		}
	});
