// The pages of kiln serve under one's hands: what is chosen goes along, and what refreshes leaves focus, scroll and
// history alone.
import { axe, cells, equal, open, page, processOf, ready, serveStore, soon, test, trouble } from "./web_lib.mjs";
import { MINUTES, START, STEP, push, serveFleet } from "./web_fleet_lib.mjs";
import { closeBrowser, freshPage, isReady, makeProfile } from "./web_proof_lib.mjs";

const url = await serveFleet();
const END = START + MINUTES * 60, WINDOW = `from=${START}&to=${END}`;
const state = key => page.evaluate(name => window.__ui.state[name] ?? null, key);
const field = (label, where = page) => where.locator("label.field", { has: page.getByText(label, { exact: true }) }).locator("select");
const sideOf = (href, side = "a") => Object.fromEntries(new URLSearchParams(new URL(href, url).searchParams.get(side)));
const paramOf = (href, name) => new URL(href, url).searchParams.get(name);
const hrefOf = (name, where = page) => where.getByRole("link", { name, exact: true }).getAttribute("href");

/** A page that refreshes several times a second. */
async function hastyPage(path) {
	const other = await freshPage();

	await other.page.addInitScript(() => {
		const later = window.setInterval;

		window.setInterval = (run, ms) => later(run, ms >= 5000 ? 400 : ms);
	});
	await other.page.goto(url + path);
	await isReady(other.page);
	other.refreshed = async (what, n = 2) => {
		for (let i = 0; i < n; i++)
			await other.page.waitForResponse(answer => answer.url().includes(`/api/1/${what}`));
		await other.page.waitForTimeout(100);
	};
	return other;
}

// ---- what is chosen goes along

await test("links: the viewer gets the value and the one line that is shown", async () => {
	await open(`${url}timeline?service=web&type=cpu&by=version&only=1.0&st=cpu&${WINDOW}`);
	const href = await hrefOf("Flame graph");

	equal([sideOf(href).query, paramOf(href, "si")], ['version="1.0"', "cpu"]);
	await page.goto(new URL(href, url).href);
	await ready();
	equal(await page.evaluate(() => window.__ui.tree.total[0]), MINUTES / 2 / STEP * 2 * 5e9);
	equal(await page.locator("a.home").getAttribute("href").then(text => /&st=cpu$/.test(text)), true);
	await open(`${url}timeline?type=cpu&only=batch&query={version="7"}&${WINDOW}&w=${START},${START + 600}`);
	equal([sideOf(await hrefOf("Top")).service, sideOf(await hrefOf("Top")).query], ["batch", '{version="7"}']);
	await page.getByRole("heading", { name: "3 profiles in the window" }).waitFor();
});

await test("timeline: one line is not carried to other lines", async () => {
	await open(`${url}timeline?type=cpu&only=batch&${WINDOW}`);
	await field("By").selectOption("version");
	await ready();
	equal([await state("by"), await state("only")], ["version", null]);
	await open(`${url}timeline?type=cpu&only=nobody&mode=table&${WINDOW}`);
	equal((await cells(".plot table"))[0].length, 4, "all lines");
});

await test("timeline: by nothing without a service is one line", async () => {
	await open(`${url}timeline?type=cpu&${WINDOW}`);
	await field("By").selectOption("");
	await ready();
	equal(await page.locator(".chart-legend .name").allTextContents(), ["all"]);
	await page.reload();
	await ready();
	equal([await page.locator(".chart-legend .name").allTextContents(), await field("By").inputValue()], [["all"], ""]);
});

await test("timeline: the versions, and what was earlier, in the menu", async () => {
	await open(`${url}timeline?service=web&type=cpu&${WINDOW}&w=${END - 600},${END}`);
	const compared = async name => {
		await page.getByRole("button", { name: "Compare…" }).focus();
		await page.keyboard.press("Enter");
		await page.getByRole("menuitem", { name }).waitFor();
		await axe("the menu");
		await page.getByRole("menuitem", { name }).click();
	};

	await compared("With 1 hour earlier");
	await page.waitForURL("**/ui/compare?*");
	await ready();
	equal([sideOf(page.url()).from, sideOf(page.url(), "b").from].map(Number), [END - 600 - 3600, END - 600]);
	await page.goBack();
	await ready();
	await compared("Newest version 1.1 with 1.0 before it");
	await page.waitForURL("**/ui/compare?*");
	await ready();
	equal([sideOf(page.url()).query, sideOf(page.url(), "b").query], ['version="1.0"', 'version="1.1"']);
	await page.goBack();
	await ready();
	await compared("Two versions…");
	await field("Before", page.getByRole("dialog")).selectOption("1.1");
	await axe("two versions");
	await page.getByRole("dialog").getByRole("button", { name: "Compare" }).click();
	await page.waitForURL("**/ui/compare?*");
	equal([sideOf(page.url()).query, sideOf(page.url(), "b").query], ['version="1.1"', 'version="1.1"']);
});

await test("versions: the label is the one that the server compares", async () => {
	const other = await serveFleet("--regression-version", "region");

	await open(other + "services");
	await soon(async () => (await cells()).every(row => row[6] !== "…"), "versions");
	equal((await cells()).map(row => row[6]), ["", "eu", "", ""]);
	equal((await (await fetch(other + "api/1/stats")).json()).version_label, "region");
});

await test("services: sorted by version, as soon as they are known; and the top function", async () => {
	await open(url + "services?srt=version:a");
	await soon(async () => (await cells()).map(row => row[0]).slice(0, 3).join() === "web,web,batch" && (await cells())[0][6] === "1.1", "sorted");
	await soon(async () => (await cells())[0][7] === "parse", "the heaviest");
});

await test("services: what is left out is said", async () => {
	await page.route("**/api/1/series?*", async route => {
		const answer = await route.fetch(), json = await answer.json();

		await route.fulfill({ json: { ...json, total: 5000 } });
	});
	await open(url + "services");
	await page.getByText(/Only the 3 with most cpu have figures/).waitFor();
	await page.unroute("**/api/1/series?*");
});

await test("storage: names are of the time that is chosen", async () => {
	const [request] = await Promise.all([page.waitForRequest("**/api/1/unnamed?*"), page.goto(`${url}storage?service=web&type=cpu&${WINDOW}&why=1`)]);

	equal([paramOf(request.url(), "from"), paramOf(request.url(), "to")].map(Number), [START, END]);
	await ready();
	equal(await page.locator("main h2").first().textContent(), "Why has a frame no name?");
});

// ---- what refreshes

await test("refresh: links follow the time, and keep the focus", async () => {
	const other = await hastyPage("timeline?service=web&type=cpu"), link = other.page.getByRole("link", { name: "Top", exact: true });

	await link.focus();
	const before = Number(sideOf(await link.getAttribute("href")).to);

	await soon(async () => Number(sideOf(await link.getAttribute("href")).to) > before + 1, "a later time");
	equal(await other.page.evaluate(() => document.activeElement.textContent), "Top");
	await other.close();
});

await test("refresh: what has the focus in a table is the same element after it", async () => {
	const other = await hastyPage("services");

	await other.page.getByRole("link", { name: "batch" }).focus();
	await other.page.evaluate(() => (window.was = document.activeElement));
	await other.refreshed("series");
	equal(await other.page.evaluate(() => document.activeElement === window.was && window.was.isConnected), true);
	// A row that goes elsewhere takes the focus along.
	await other.page.getByRole("button", { name: "Last seen" }).click();
	await other.page.getByRole("link", { name: "batch" }).focus();
	await push(url, makeProfile([[["main"], 1e9]], { type: ["cpu", "nanoseconds"], duration: 10e9 }), { service: "batch", type: "cpu", labels: "version=7,region=eu" });
	await other.refreshed("series");
	equal(await other.page.evaluate(() => document.activeElement.textContent), "batch");
	await other.close();
});

await test("refresh: a chart's table keeps its place", async () => {
	const other = await hastyPage("timeline?type=cpu&mode=table&from=now-3h");
	const scroll = () => other.page.evaluate(() => document.querySelector(".plot .vt").scrollTop);

	await other.page.evaluate(() => { document.querySelector(".plot .vt").scrollTop = 120; });
	await other.page.locator(".plot table").focus();
	await other.refreshed("series");
	equal([await scroll(), await other.page.evaluate(() => document.activeElement.getAttribute("aria-label")), await other.page.locator(".plot .vt").count()], [120, "Values over time", 1]);
	await other.close();
});

await test("legend: the numbers of the cursor, with the focus on a line", async () => {
	await open(`${url}timeline?type=cpu&${WINDOW}`);
	const box = await page.locator(".time-chart").boundingBox(), at = () => page.locator(".chart-legend .at").textContent();

	await page.locator(".chart-legend button").nth(1).focus();
	await page.mouse.move(box.x + 300, box.y + 80);
	const first = await at();

	await page.mouse.move(box.x + 600, box.y + 80);
	equal(first !== await at(), true, "the time");
	await page.keyboard.press("Enter");
	equal([await state("only"), await page.locator(".chart-legend [aria-pressed=true] .name").allTextContents()], ["batch", ["batch"]]);
	equal(await page.evaluate(() => document.activeElement.querySelector(".name").textContent), "batch");
	await page.mouse.move(0, 0);
});

await test("history: a window that grows by keys is one step back", async () => {
	await open(`${url}timeline?service=web&type=cpu&${WINDOW}`);
	await page.locator(".time-chart").focus();
	await page.keyboard.press("Home");
	for (let i = 0; i < 5; i++)
		await page.keyboard.press("Shift+ArrowRight");
	equal(Boolean(await state("w")), true);
	await page.goBack();
	equal(await state("w"), null);
});

// ---- errors and dialogs

await test("errors: what another part has stays, when one succeeds", async () => {
	await page.route("**/api/1/unnamed?*", route => route.fulfill({ status: 500, json: { code: 500, error: "no names today" } }));
	await page.route("**/api/1/stats", async route => {
		await new Promise(resolve => setTimeout(resolve, 600));
		await route.continue();
	});
	await page.goto(`${url}storage?service=web`);
	await ready();
	await page.getByText("On disk").waitFor();
	equal(await page.locator(".errorbar").isVisible(), true);
	await page.unroute("**/api/1/unnamed?*");
	await page.unroute("**/api/1/stats");
	await page.getByRole("button", { name: "Try again" }).click();
	await soon(async () => !await page.locator(".errorbar").isVisible(), "its own success");
	trouble.length = 0;
});

await test("errors: a message that was closed ends the waiting for the server", async () => {
	const gone = await serveStore(), asked = [];

	await open(gone);
	processOf(gone).kill("SIGKILL");
	await page.route("**/api/1/stats", async route => {
		asked.push(Date.now());
		await new Promise(resolve => setTimeout(resolve, 800));
		await route.abort();
	});
	await page.locator("[data-page=targets]").click();
	await page.getByText("The server does not answer.").waitFor();
	await soon(() => asked.length === 1, "it asks");
	await page.getByRole("button", { name: "Close this message" }).click();
	await page.evaluate(() => document.activeElement.blur());
	await page.waitForTimeout(5000);
	equal(asked.length, 1);
	await page.unroute("**/api/1/stats");
	await page.goto("about:blank");
	trouble.length = 0;
});

await test("dialogs: Back closes them", async () => {
	await open(url + "services");
	await page.keyboard.press("2");
	await ready();
	await page.keyboard.press("?");
	await page.getByRole("dialog").waitFor();
	await page.goBack();
	await ready();
	equal([new URL(page.url()).pathname, await page.getByRole("dialog").count()], ["/services", 0]);
});

await test("targets: a problem begins with what went wrong", async () => {
	const problem = 'Get "http://web-1:6060/debug/pprof/heap": dial tcp 10.0.0.7:6060: connect: connection refused';

	await page.route("**/api/1/targets*", route => route.fulfill({ json: { jobs: [{ job: "web", problem: "", interval: 60, replicas: 0, up: 0, down: 1, new: 0, targets: [
		{ target: "web-1:6060", service: "web", labels: [], state: "down", problem, since: null, last: null, profiles: [] }] }] } }));
	await open(url + "targets");
	await page.getByText("connect: connection refused", { exact: true }).waitFor();
	await page.getByRole("button", { name: "web-1:6060", exact: true }).click();
	await page.getByRole("dialog").getByText(problem).waitFor();
	await page.keyboard.press("Escape");
	await page.unroute("**/api/1/targets*");
});

await test("targets: one profile at a time, however often the button is pressed", async () => {
	let asked = 0;
	const capture = { id: "x1", state: "running", service: "web", target: "web-1:6060", type: "cpu", seconds: 9, left: 9, created: null, started: null, ended: null, profile: null, problem: "" };

	await page.route("**/api/1/targets*", route => route.fulfill({ json: { jobs: [{ job: "web", problem: "", interval: 60, replicas: 0, up: 1, down: 0, new: 0, targets: [
		{ target: "web-1:6060", service: "web", labels: [], state: "up", problem: "", since: null, last: null, profiles: [] }] }] } }));
	await page.route("**/api/1/capture?*", route => {
		asked++;
		return route.fulfill({ json: capture });
	});
	await page.route("**/api/1/capture/x1", route => route.fulfill({ json: capture }));
	await open(url + "targets");
	await page.getByRole("button", { name: "Profile web-1:6060 now" }).focus();
	await page.keyboard.press("Enter");
	for (let i = 0; i < 3; i++)
		await page.getByRole("button", { name: "Profile now", exact: true }).click({ force: true });
	await page.getByText("s left").waitFor();
	equal(asked, 1);
	await page.keyboard.press("Escape");
	equal(await page.evaluate(() => document.activeElement.getAttribute("aria-label")), "Profile web-1:6060 now");
	for (const path of ["targets*", "capture?*", "capture/x1"])
		await page.unroute(`**/api/1/${path}`);
});

await closeBrowser();
