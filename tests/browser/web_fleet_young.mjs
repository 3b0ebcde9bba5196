// The pages of kiln serve of a store that is minutes old: they show what is there, as soon as it is.
import { axe, equal, open, page, ready, serveStore, shoot, soon, test } from "./web_lib.mjs";
import { push } from "./web_fleet_lib.mjs";
import { makeProfile } from "./web_proof_lib.mjs";

const url = await serveStore();
const work = makeProfile([[["main", "parse"], 2e9], [["main", "copy"], 3e9]], { type: ["cpu", "nanoseconds"], duration: 10e9 });
const seconds = () => Math.floor(Date.now() / 1000);
const time = () => page.locator("label.field", { has: page.getByText("Time", { exact: true }) }).locator("select");
const rows = () => page.$$eval("table.plain tbody tr", list => list.map(row => row.cells[0].innerText.trim().split("\n")[0]));

await test("young: what comes first is shown as soon as it is there", async () => {
	for (const [path, isThere] of [
		["fleet", async () => (await rows()).includes("copy")],
		["timeline", () => page.locator(".time-chart").isVisible()],
		["services", () => page.getByRole("link", { name: "other", exact: true }).isVisible()],
	]) {
		const service = path === "services" ? "other" : path;

		await open(`${url}${path}?query=service="${service}"`);
		await push(url, work, { service, type: "cpu" });
		await soon(isThere, path);
	}
});

await test("young: fleet top has all of it, and nothing is said to be missing", async () => {
	for (let i = 1; i < 4; i++)
		await push(url, work, { service: "web", type: "cpu", labels: "pod=a", time: seconds() - i * 60 });
	await open(`${url}fleet?service=web`);
	equal((await rows()).slice(0, 2), ["copy", "parse"]);
	equal(/; 3 profiles from/.test(await page.locator("p[role=status]").first().textContent()), true);
	await axe("young fleet");
	await shoot("young-fleet");
});

await test("young: what was not there at first is new, whatever rounding leaves", async () => {
	const fresh = makeProfile([[["main", "fresh"], 1e9 / 3]], { type: ["cpu", "nanoseconds"], duration: 10e9 });

	await push(url, work, { service: "grown", type: "cpu", time: seconds() - 240 });
	await push(url, fresh, { service: "grown", type: "cpu", time: seconds() - 1 });
	await open(`${url}fleet?service=grown`);
	const row = await page.locator("table.plain tbody tr", { hasText: "fresh" }).first().innerText();

	equal([/▲.*\(new\)/.test(row), /\d{5,}.*%/.test(row)], [true, false], row);
});

await test("young: CPU time is cores, whatever its unit", async () => {
	const millis = makeProfile([[["main", "parse"], 5000]], { type: ["cpu", "milliseconds"], duration: 10e9 });

	for (let i = 1; i < 4; i++)
		await push(url, millis, { service: "millis", type: "cpu", time: seconds() - i * 10 });
	await open(`${url}?query=service="millis"`);
	await soon(async () => /0\.[45]\d* cores/.test(await page.locator("main").innerText()), "cores of the time that it is there, not of the hour");
	await open(`${url}fleet?service=millis`);
	const row = await page.locator("table.plain tbody tr", { hasText: "parse" }).innerText();

	equal([/\d\.\d+ cores/.test(row), await page.getByText("Core hour").isVisible()], [true, true], row);
});

await test("young: the timeline fits what there is; a window of the URL or of a person stays", async () => {
	await open(`${url}timeline?service=web`);
	equal([await time().inputValue(), await page.evaluate(() => window.__ui.state.from ?? null)], ["5m", null]);
	await shoot("young-timeline");
	for (const [age, span] of [[10 * 60, "15m"], [50 * 60, "1h"], [5 * 3600, "6h"], [8 * 3600, "1d"], [60 * 86400, "1d"]]) {
		await push(url, work, { service: "web", type: "cpu", labels: "pod=a", time: seconds() - age });
		await page.reload();
		await ready();
		equal(await time().inputValue(), span, `${age} s`);
	}
	await open(`${url}timeline?service=fleet`);
	equal(await time().inputValue(), "5m", "it is of the selection");
	await time().selectOption("5m");
	equal(await page.evaluate(() => window.__ui.state.from), "now-5m", "who chose it has it");
	await open(`${url}timeline?service=fleet&from=now-7d`);
	equal(await time().inputValue(), "7d");
});

await test("young: the chart is of the time that the field says, from the first request on", async () => {
	const asked = [],
		note = request => /api\/1\/series\?/.test(request.url()) && asked.push(new URL(request.url()).searchParams);

	await push(url, work, { service: "aged", type: "cpu", time: seconds() - 5 * 3600 });
	await push(url, work, { service: "aged", type: "cpu", time: seconds() - 60 });
	page.on("request", note);
	for (const more of ["", "&type=cpu"]) {
		asked.length = 0;
		await open(`${url}timeline?service=aged${more}`);
		await soon(() => asked.length > 0, "series");
		equal([await time().inputValue(), asked.map(params => Math.round((params.get("to") - params.get("from")) / 3600))], ["6h", [6]], more);
	}
	page.off("request", note);
});
