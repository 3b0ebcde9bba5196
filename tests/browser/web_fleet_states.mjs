// What the pages of kiln serve do when there is nothing, when something is wrong, and with targets.
import { axe, cells, equal, open, page, processOf, ready, serveStore, setTheme, shoot, soon, stop, test } from "./web_lib.mjs";
import { EVIL, serveFleet } from "./web_fleet_lib.mjs";
import { closeBrowser, freshPage, isReady, makeProfile } from "./web_proof_lib.mjs";
import { createServer } from "node:http";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { trouble } from "./web_lib.mjs";

const empty = await serveStore();

await test("states: an empty store says how to begin", async () => {
	await open(empty);
	await page.getByText("No profiles yet").waitFor();
	equal((await page.locator("main pre").textContent()).includes(`${empty}api/0/profiles?service=web`), true);
	await axe("empty services");
	await open(empty + "timeline");
	await page.getByText("Nothing to show").waitFor();
	await axe("empty timeline");
	await open(empty + "storage");
	await page.getByText("Nothing has been refused").waitFor();
	await axe("empty storage");
});

await test("states: while it loads there is a bar, and it can be cancelled", async () => {
	await page.route("**/api/1/types*", async route => {
		await new Promise(resolve => setTimeout(resolve, 4000));
		await route.continue().catch(() => {});
	});
	await page.goto(empty + "services");
	await page.getByRole("progressbar").waitFor();
	await page.getByRole("button", { name: "Cancel" }).click();
	await page.getByText("Cancelled.").waitFor();
	await page.unroute("**/api/1/types*");
	await page.getByRole("button", { name: "Try again" }).click();
	await page.getByText("No profiles yet").waitFor();
});

await test("states: what was refused is told, with hostile text", async () => {
	await fetch(`${empty}api/0/profiles?service=${"x".repeat(2000)}&type=cpu`, { method: "POST", body: makeProfile([[["a"], 1]]) });
	await fetch(`${empty}api/0/${encodeURIComponent(EVIL)}`, { method: "POST", headers: { "Sec-Fetch-Site": "cross-site" } });
	await open(empty + "storage");
	const rows = await cells("main [aria-label='Refusals by limit'] table");

	equal(rows.map(row => row.slice(0, 2)), [["max-label-bytes", "1"]]);
	await open(empty + "services");
	await page.getByRole("link", { name: "1 refused" }).waitFor();
	await axe("refusals");
});

await test("states: a service's refusals are counted, with the reasons; also of one that never got through", async () => {
	const url = await serveStore("--max-labels", "1"), body = makeProfile([[["a"], 1]]);
	const push = (service, bytes, labels = "") => fetch(`${url}api/0/profiles?service=${encodeURIComponent(service)}&type=cpu&labels=${labels}`, { method: "POST", body: bytes });

	await push("web", body);
	await push("fine", body);
	await push("web", "no profile");
	await push("web", "no profile");
	await push("web", body, "a=1,b=2");
	await push(EVIL, "no profile");
	await open(url + "services");
	const heads = await page.$$eval("main th[scope=col]", list => list.map(head => head.innerText.trim())), at = heads.indexOf("Refused");

	equal((await cells()).map(row => [row[0], row[1], row[at]]).filter(row => !row[0].startsWith("<")), [["fine", "cpu", "0"], ["web", "cpu", "3"]]);
	equal((await cells()).filter(row => row[0].startsWith("<img")).map(row => [row[1], row[2], row[at]]), [["", "never", "1"]]);
	const button = page.getByRole("button", { name: "3 refused of web: 2 format, 1 max-labels" });

	equal(await button.getAttribute("title"), "2 format, 1 max-labels");
	await axe("refused");
	await shoot("services-refused");
	await button.focus();
	await page.keyboard.press("Enter");
	await page.getByRole("dialog").getByText("max-labels", { exact: true }).waitFor();
	equal(/--max-labels is 1/.test(await page.getByRole("dialog").textContent()), true, "why");
	await axe("refused, the reasons");
	await shoot("services-refused-reasons");
	await page.keyboard.press("Escape");
	equal(await page.evaluate(() => document.activeElement.textContent), "3", "the focus is back");
	await setTheme("dark");
	await axe("refused in the dark");
	await setTheme("light");
	await open(url + "services?srt=refused:d");
	equal((await cells())[0][0], "web");
	stop(url);
	await page.goto("about:blank");
	trouble.length = 0;
});

await test("states: a wrong condition is explained, and stays to be corrected", async () => {
	await page.goto(empty + 'services?query=version=~"("');
	await page.locator(".errorbar:not([hidden])").waitFor();
	equal(/query/.test(await page.locator(".errorbar").textContent()), true);
	equal(await page.getByLabel("Conditions over labels").inputValue(), 'version=~"("');
	trouble.length = 0; // the browser tells of the status, too
});

await test("states: a server that is gone is waited for", async () => {
	const url = await serveStore();

	await open(url);
	processOf(url).kill("SIGKILL");
	await page.keyboard.press("7");
	await page.getByText("The server does not answer.").waitFor();
	equal(await page.locator("header.top").isVisible(), true);
	await page.goto("about:blank"); // or it would go on asking
	trouble.length = 0;
});

// ---- targets: the answers have the shape that kiln-api(7) tells

const target = (name, state, more) => ({ target: name, service: "web", labels: [{ key: "region", value: "eu" }], state, problem: "", since: "2026-11-17T08:00:00Z", last: new Date().toISOString(),
	profiles: [{ type: "cpu", state: "ok", problem: "", last: null, next: null, duration: 10, ok: 3, failed: 1 }], ...more });
const JOBS = { jobs: [{ job: "web", problem: "targets.json: no such file", interval: 60, replicas: 0, up: 1, down: 1, new: 0,
	targets: [target("web-1:6060", "up"), target("web-2:6060", "down", { service: EVIL, problem: EVIL })] }] };

async function mockTargets(jobs = JOBS) {
	await page.route("**/api/1/targets*", route => route.fulfill({ json: jobs }));
}

await test("targets: state, problems, filter; names are only text", async () => {
	await mockTargets();
	await open(empty + "targets");
	equal((await cells()).map(row => row.slice(0, 2)), [["▲ down", "web-2:6060"], ["● up", "web-1:6060"]]);
	await page.getByText("web: targets.json: no such file").waitFor();
	equal(await page.locator(".left-out").count(), 0);
	await axe("targets");
	await page.getByRole("button", { name: "up", exact: true }).click();
	await soon(async () => (await cells()).length === 1, "one row");
	equal(await page.evaluate(() => window.__ui.state.state), "up");
	await page.getByRole("button", { name: "web-1:6060", exact: true }).click();
	await page.getByRole("dialog").getByText("region=eu").waitFor();
	await axe("a target");
	await page.keyboard.press("Escape");
});

await test("targets: what is left out is listed, and stays open", async () => {
	const leftOut = { ...JOBS.jobs[0], job: "pods", problem: "", targets: [], left_out: [`shop/web-1: kiln/port is "x${EVIL}"`, "shop/web-2: no port"], more_left_out: 7 };

	await mockTargets({ jobs: [{ ...JOBS.jobs[0], left_out: [], more_left_out: 0 }, leftOut] });
	await open(empty + "targets");
	const list = page.locator(".left-out");

	equal([await list.count(), await list.locator("summary").textContent(), await list.locator("li").first().isVisible()], [1, "pods: 9 left out", false]);
	await list.locator("summary").focus();
	await page.keyboard.press("Enter");
	await soon(async () => (await page.evaluate(() => window.__ui.state.left)) === "pods", "in the URL");
	equal((await list.locator("li").allTextContents()).map(text => text.slice(0, 12)), ["shop/web-1: ", "shop/web-2: ", "and 7 more"]);
	await axe("left out");
	await shoot("targets-left-out");
	equal(await page.evaluate(() => document.activeElement.tagName), "SUMMARY", "the focus stays");
	await page.waitForResponse("**/api/1/targets*");
	await page.waitForTimeout(100);
	equal(await list.locator("li").first().isVisible(), true, "after a refresh, too");
	await page.reload();
	await ready();
	equal(await list.locator("li").first().isVisible(), true, "by the URL");
	await setTheme("dark");
	await axe("left out in the dark");
	await shoot("targets-left-out-dark");
	await setTheme("light");
	// A job of which nothing is left is no reason to say that nothing is scraped.
	await mockTargets({ jobs: [leftOut] });
	await open(empty + "targets");
	equal([await list.count(), await page.getByText("Nothing is scraped").count()], [1, 0]);
});

await test("targets: a profile now, with progress, opens when it is there", async () => {
	let asked = 0;

	await page.route("**/api/1/capture?*", route => route.fulfill({ json: { id: "x1", state: "waiting", service: "web", target: "web-1:6060", type: "cpu", seconds: 2, left: 2, created: null, started: null, ended: null, profile: null, problem: "" } }));
	await page.route("**/api/1/capture/x1", route => route.fulfill({ json: { id: "x1", state: ["running", "running", "done"][Math.min(2, asked++)], service: "web", target: "web-1:6060", type: "cpu", seconds: 2, left: Math.max(0, 2 - asked), created: null, started: null, ended: null, profile: asked > 2 ? "0123456789abcdefghij" : null, problem: "" } }));
	await mockTargets();
	await open(empty + "targets");
	await page.getByRole("button", { name: "Profile web-1:6060 now" }).click();
	await page.getByLabel("Seconds").fill("2");
	const [request] = await Promise.all([page.waitForRequest("**/api/1/capture?*"), page.getByRole("button", { name: "Profile now", exact: true }).click()]);

	equal([request.method(), new URL(request.url()).search], ["POST", "?seconds=2&target=web-1%3A6060&type=cpu"]);
	await page.getByText("s left").waitFor();
	await axe("capturing");
	await page.getByRole("link", { name: "Open the profile" }).waitFor();
	equal(await page.getByRole("link", { name: "Open the profile" }).getAttribute("href"), "ui/flamegraph?a=id%3D0123456789abcdefghij");
	await page.keyboard.press("Escape");
	await page.unroute("**/api/1/capture?*");
	await page.route("**/api/1/capture?*", route => route.fulfill({ status: 400, json: { code: 400, error: "no such target" } }));
	await page.getByRole("button", { name: "Profile web-1:6060 now" }).click();
	await page.getByRole("button", { name: "Profile now", exact: true }).click();
	await page.getByRole("alert").getByText("no such target").waitFor();
	await page.keyboard.press("Escape");
	trouble.length = 0;
});

await test("targets: a real one is scraped, and profiled when asked", async () => {
	const body = makeProfile([[["main", "work"], 7e9]], { type: ["cpu", "nanoseconds"], duration: 1e9 });
	const program = createServer((request, response) => {
		const { pathname, searchParams } = new URL(request.url, "http://x");

		setTimeout(() => {
			response.statusCode = pathname === "/debug/pprof/profile" ? 200 : 404;
			response.end(pathname === "/debug/pprof/profile" ? body : "");
		}, 1000 * Number(searchParams.get("seconds") || 0));
	});

	await new Promise(resolve => program.listen(0, "127.0.0.1", resolve));
	const where = `127.0.0.1:${program.address().port}`, file = join(mkdtempSync(join(tmpdir(), "kiln")), "kiln.yaml");

	writeFileSync(file, `scrape:\n  - job: shop\n    interval: 2s\n    profiles: {cpu: {seconds: 1}}\n    targets: ["${where}"]\n`);
	const url = await serveStore("--config", file);

	await page.unroute("**/api/1/targets*");
	await page.unroute("**/api/1/capture?*");
	await page.unroute("**/api/1/capture/x1");
	await soon(async () => JSON.stringify(await (await fetch(url + "api/1/targets")).json()).includes('"state":"up"'), "up");
	await open(url + "targets");
	equal((await cells()).map(row => row.slice(0, 3)), [["● up", where, "shop"]]);
	await page.getByRole("button", { name: `Profile ${where} now` }).click();
	await page.getByLabel("Seconds").fill("1");
	await page.getByRole("button", { name: "Profile now", exact: true }).click();
	await page.getByRole("link", { name: "Open the profile" }).click();
	await page.waitForURL("**/ui/flamegraph?a=id*");
	await ready();
	equal(await page.evaluate(() => window.__ui.tree.total[0]), 7e9);
	program.close();
});

await test("targets: none at all", async () => {
	await page.unroute("**/api/1/targets*");
	await mockTargets({ jobs: [] });
	await open(empty + "targets");
	await page.getByText("Nothing is scraped").waitFor();
	await axe("no targets");
	await page.unroute("**/api/1/targets*");
});

await test("storage: why a frame has no name", async () => {
	const url = await serveFleet();

	await page.route("**/api/1/unnamed*", route => route.fulfill({ json: { unnamed_share: 0.25, total: 1, binaries: [{ file: EVIL, build_id: "abc", addresses: 10, unnamed: 7, flat_share: 0.25, share: 0.5, state: "missing", why: "no debug info",
		looked: [{ where: "uploaded", result: "not there" }], fix: "kiln debuginfo upload ./prog" }] } }));
	await open(url + "storage?service=web");
	await page.getByText("25.0% of all samples end in a frame that has no name.").waitFor();
	await page.getByText("kiln debuginfo upload ./prog").waitFor();
	for (const theme of ["dark", "light"]) {
		await setTheme(theme);
		await axe(`names in ${theme}`);
	}
	await page.unroute("**/api/1/unnamed*");
});

// ---- who may

await test("login: with tokens the browser asks, and a token as the password will do", async () => {
	const file = join(mkdtempSync(join(tmpdir(), "kiln")), "tokens");

	writeFileSync(file, "read,write tttttttttttttttt1 ann\nwrite tttttttttttttttt2 agents\n");
	const url = await serveStore("--tokens", file);
	const body = makeProfile([[["main"], 1]]);
	const headers = { Authorization: "Bearer tttttttttttttttt1" };

	equal((await fetch(`${url}api/0/profiles?service=web&type=cpu`, { method: "POST", body, headers })).status, 200);
	const stranger = await freshPage();

	// Nobody answers the browser's question here.
	equal(await stranger.page.goto(url).then(answer => answer.status(), error => /INVALID_AUTH/.test(error.message)), true);
	await stranger.close();
	const ann = await freshPage({ httpCredentials: { username: "", password: "tttttttttttttttt1" } });

	await ann.page.goto(url);
	await isReady(ann.page);
	await ann.page.getByRole("link", { name: "web" }).click();
	await isReady(ann.page);
	await ann.page.getByRole("link", { name: "Flame graph" }).click();
	await ann.page.waitForURL("**/ui/flamegraph?*");
	await isReady(ann.page);
	equal([await ann.page.evaluate(() => window.__ui.tree.total[0]), ann.trouble], [1, []]);
	await ann.close();
	const agent = await freshPage({ httpCredentials: { username: "x", password: "tttttttttttttttt2" } });

	equal((await agent.page.goto(url)).status(), 403);
	equal((await agent.page.locator("main").textContent()).includes("this takes the role read"), true);
	await agent.close();
});

await closeBrowser();
