// The pages of kiln serve for all services: the heaviest functions, and what became slower.
import { axe, equal, open, page, ready, setTheme, shoot, soon, test, trouble } from "./web_lib.mjs";
import { MINUTES, START, push, serveFleet } from "./web_fleet_lib.mjs";
import { makeProfile } from "./web_proof_lib.mjs";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

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

	equal(rows.slice(0, 3).some(row => row[0].startsWith("copy")), true);
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

await test("fleet top: of memory in use, how much there is", async () => {
	await open(`${url}fleet?type=heap&${WINDOW}`);
	const rows = await table(), heads = await page.$$eval("table.plain th", cells => cells.map(cell => cell.innerText));

	equal([heads[1], rows[0].slice(1, 5)], ["In use", ["4MB", "100%", "100%", "steady"]]);
	equal((await page.locator("p[role=status]").innerText()).split(";")[0], "1 service has 4MB");
});

await test("fleet top: groups, order and search are in the URL, by keyboard", async () => {
	await open(`${url}fleet?type=cpu&${WINDOW}`);
	await field("Show").focus();
	await field("Show").selectOption("category");
	await soon(async () => (await state("group")) === "category", "category");
	await ready();
	equal((await table()).map(row => row[0]), ["other"]);
	await open(`${url}fleet?type=cpu&${WINDOW}&sort=services`);
	await page.keyboard.press("/");
	await page.keyboard.type("cop");
	await soon(async () => (await table()).length === 1, "one row");
	equal([await state("q"), await state("sort")], ["cop", "services"]);
});

await test("fleet top: the service that is carried is seen, and can be taken away", async () => {
	await open(`${url}fleet?service=batch&type=cpu&${WINDOW}`);
	equal([await field("Service").inputValue(), (await table()).every(row => row[5] === "1")], ["batch", true]);
	await field("Service").selectOption("");
	await ready();
	equal([await state("service"), (await table()).some(row => row[5] === "2")], [null, true]);
});

await test("fleet top: the server searches, in all rows", async () => {
	await open(`${url}fleet?type=cpu&${WINDOW}`);
	const [request] = await Promise.all([page.waitForRequest(/api\/1\/top\?.*search=/), page.getByLabel("Search functions").fill("ARS")]);

	equal(new URL(request.url()).searchParams.get("search"), "ARS");
	await soon(async () => (await table()).map(row => row[0].replace(/\s*Flame$/, "")).join() === "parse", "one row");
	const answer = await (await fetch(`${url}api/1/top?type=cpu&${WINDOW}&search=${encodeURIComponent("</SCRIPT>")}&limit=1`)).json();

	equal([answer.found, answer.rows.length, answer.functions > 2], [2, 1, true]);
	await page.getByLabel("Search functions").fill("nobody");
	await page.getByText("No name has this text.").waitFor();
	equal(await state("q"), "nobody");
});

await test("fleet top: for each version; other values; and all callers of a function", async () => {
	await open(`${url}fleet?type=cpu&${WINDOW}&by=version&q=parse`);
	equal((await table()).map(row => row[1]).sort(), ["1.0", "1.1", "7"]);
	await open(`${url}fleet?type=heap&${WINDOW}`);
	const [request] = await Promise.all([page.waitForRequest(/api\/1\/top\?.*sample_type=inuse_objects/), field("Value").selectOption("inuse_objects")]);

	equal([request.method(), await state("st")], ["GET", "inuse_objects"]);
	await page.locator(".errorbar:not([hidden])").waitFor(); // these profiles have no such values
	trouble.length = 0;
	await open(`${url}fleet?type=cpu&${WINDOW}`);
	await page.getByRole("link", { name: "parse", exact: true }).click();
	await page.waitForURL("**/ui/sandwich?*");
	await ready();
	equal((await page.locator(".page-title").textContent()).startsWith("parse"), true);
	await page.goBack();
	await ready();
	await page.getByRole("link", { name: "Flame graph of parse" }).click();
	await page.waitForURL("**/ui/flamegraph?*");
	await ready();
	equal(await page.evaluate(() => window.__ui.tree.functions.some(fn => fn[1] === "copy")), false);
});

await test("fleet top: a version whose name means harm is a condition like others", async () => {
	await open(`${url}fleet?type=cpu&${WINDOW}&by=version`);
	await page.getByRole("link", { name: "c", exact: true }).click();
	await page.waitForURL("**/ui/sandwich?*");
	await ready();
	equal((await page.locator(".page-title").textContent()).startsWith("c self"), true);
});

await test("fleet top: what it costs, by the price of a core", async () => {
	await open(`${url}fleet?type=cpu&${WINDOW}`);
	await page.getByLabel("Core hour").fill("0.05");
	await page.keyboard.press("Enter");
	await soon(async () => (await page.locator("th", { hasText: "A month" }).count()) === 1, "a column more");
	const { cores } = (await (await fetch(`${url}api/1/top?type=cpu&${WINDOW}&sort=cores&limit=1&fresh=false`)).json()).rows[0];

	equal([await state("price"), (await table())[0][3]], ["0.05", (cores * 0.05 * 730).toFixed(2)]);
	await page.reload();
	await ready();
	equal(await page.getByLabel("Core hour").inputValue(), "0.05");
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
	const said = page.getByRole("button", { name: "Status of parse: new" }).first();

	await said.focus();
	await page.keyboard.press("Enter");
	await page.getByRole("dialog").getByLabel("Status").selectOption("expected");
	await page.getByRole("dialog").getByLabel("Note", { exact: true }).fill("more work\n<b>and more</b>");
	await page.getByRole("button", { name: "Save" }).click();
	await soon(async () => (await table())[0][7].includes("somebody"), "who said it");
	equal((await table())[0][7].includes("<b>and more</b>"), true);
	equal(await page.evaluate(() => document.activeElement.getAttribute("aria-label")), "Status of parse: expected", "the focus is back");
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
	equal((await page.evaluate(() => window.__ui.state)).q, "parse");
	equal((await page.locator("main tbody:not([aria-hidden]) tr").count()), 1, "its row");
});

await test("regressions: all comparisons, with what cannot be told; by type and kind", async () => {
	await open(`${url}regressions`);
	await page.locator("summary", { hasText: "All comparisons" }).click();
	const compared = () => page.$$eval("[aria-label=Comparisons] tbody tr", rows => rows.map(row => [...row.cells].map(cell => cell.innerText.trim())));

	equal((await compared()).some(row => /not enough samples|nothing to compare with/.test(row[3])), true);
	equal((await compared()).some(row => row[0] === "shop" && /compared/.test(row[3])), true);
	equal(await state("cmp"), "1");
	await field("Type").selectOption("work");
	await ready();
	equal([...new Set((await compared()).map(row => row[1]))], ["work"]);
	await field("Of").selectOption("version");
	await ready();
	equal([await state("kind"), [...new Set((await compared()).map(row => row[2]))]], ["version", ["1.0 → 2.0"]]);
	await axe("comparisons");
	await shoot("regressions-compared");
});

for (const theme of ["light", "dark"])
	await test(`fleet top and regressions: no barriers in ${theme}`, async () => {
		for (const path of [`fleet?type=cpu&${WINDOW}&f=copy`, `fleet?type=cpu&${WINDOW}&by=version`, "regressions?cmp=1&which=all"]) {
			await open(url + path);
			await setTheme(theme);
			await page.waitForTimeout(200);
			await axe(`${path} ${theme}`);
			await shoot(`tops-${path.slice(0, 5)}-${theme}`);
		}
	});

// ---- owners

const rules = join(process.argv[2], "owners.yaml");

writeFileSync(rules, `owners:\n  - {match: "^copy$", owner: storage}\n  - {service: "^batch$", owner: "data & jobs"}\n  - {match: "^parse$", owner: "<b>web</b>"}\n`);
const owned = await serveFleet("--config", rules);
const column = async title => {
	const heads = await page.$$eval("table.plain thead th", cells => cells.map(cell => cell.innerText.trim()));

	return (await table()).map(row => [row[0].split("\n")[0].replace(/\s*Flame$/, ""), row[heads.indexOf(title)]]);
};

await test("owners: a column of functions, and rows of owners; in the URL", async () => {
	await open(`${url}fleet?type=cpu&${WINDOW}`);
	equal([await page.locator("th", { hasText: "Owner" }).count(), await field("Show").locator("option").allTextContents()], [0, ["functions", "packages", "modules", "what they do"]]);
	await open(`${owned}fleet?type=cpu&${WINDOW}`);
	equal(Object.fromEntries((await column("Owner")).filter(([name]) => ["copy", "parse", "main"].includes(name))), { copy: "storage", parse: "<b>web</b> + 1", main: "(no owner) + 1" });
	await page.locator("tbody tr", { hasText: "parse" }).locator("summary", { hasText: "<b>web</b> + 1" }).click();
	equal(await page.locator("details[open] li").allTextContents(), ["data & jobs"]);
	await axe("owners");
	await shoot("owners");
	await field("Show").focus();
	await field("Show").selectOption("owner");
	await soon(async () => (await state("group")) === "owner" && (await table()).some(row => row[0] === "data & jobs"), "owners");
	equal((await table()).map(row => row[0]).sort(), ["(no owner)", "<b>web</b>", "data & jobs", "storage"]);
	await page.reload();
	await ready();
	equal([await field("Show").inputValue(), (await table()).length], ["owner", 4]);
	await page.locator("tbody tr", { hasText: "data & jobs" }).locator("summary").click();
	await soon(async () => (await page.locator("details[open] li").allTextContents()).some(text => text.startsWith("batch")), "its service");
	await shoot("owners-grouped");
	await open(`${owned}fleet?type=cpu&${WINDOW}&by=service&q=parse`);
	equal((await table()).map(row => [row[1], row[7]]).sort(), [["batch", "data & jobs"], ["web", "<b>web</b>"]]);
	await setTheme("dark");
	await page.waitForTimeout(200);
	await axe("owners in the dark");
	await setTheme("light");
});
