// Graph, Labels, Compare and the exports against the command line.
import { axe, cells, cli, data, drop, equal, near, open, page, ready, serve, setTheme, serveWith, shoot, test, trouble } from "./web_lib.mjs";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";

const worked = await serve("worked_a.pb"), labels = await serve("labels.pb");
const status = () => page.locator("main [role=status]").first().textContent();

await test("graph: the nodes of -dot, drag moves, the wheel zooms at the pointer, 0 fits", async () => {
	await open(worked + "graph");
	equal(await page.locator("main g.node", { has: page.locator("text") }).count() >= 5, true);
	equal(await page.locator("main g.edge").count(), cli("-dot", "worked_a.pb").match(/^N\S+ -> N\S+ /gm).length);
	const node = page.locator("main g.node", { has: page.locator("text", { hasText: /^main$/ }) }), home = await node.boundingBox();
	const [x, y] = [home.x + home.width / 2, home.y + home.height / 2];
	await page.mouse.move(x, y);
	await page.mouse.wheel(0, -100);
	await page.waitForTimeout(50);
	const large = await node.boundingBox();
	near(large.width / home.width, 1.1, 0.02);
	near(large.x + large.width / 2, x);
	await page.mouse.down();
	await page.mouse.move(x + 50, y + 30, { steps: 4 });
	await page.mouse.up();
	const moved = await node.boundingBox();
	near(moved.x - large.x, 50, 6);
	near(moved.y - large.y, 30, 6);
	await page.locator("main div.graph").focus();
	await page.keyboard.press("0");
	near((await node.boundingBox()).x, home.x);
	await page.keyboard.press("+");
	near((await node.boundingBox()).width / home.width, 1.1, 0.02);
	await page.keyboard.press("0");
});

await test("graph: tells about nodes and edges, lights the path, selects", async () => {
	await open(worked + "graph?unit=ms");
	const named = name => page.locator("main g.node", { has: page.locator("text", { hasText: new RegExp(`^${name}$`) }) });
	await named("a").hover();
	equal(await page.locator("main .tip").textContent(), "a: self 100ms (10.0%), total 300ms (30.0%)");
	equal(await page.locator("main div.graph.dimmed g.lit.node:not([data-title*='_'])").count(), 3);
	await named("a").click();
	equal((await page.evaluate(() => __ui.selected))[1], "a");
	const edge = page.locator("main g.edge[data-title='N5->N4']");
	await edge.locator("text").first().hover();
	equal(await page.locator("main .tip").textContent(), "a → b 200ms, 66.7% of a, 100% of b");
	await page.locator("main div.graph").focus();
	await page.keyboard.press("ArrowUp");
	equal((await page.evaluate(() => __ui.selected))[1], "main");
});

await test("graph: the slider asks again, and stops what runs", async () => {
	await open(worked + "graph");
	const slider = page.locator("main input[type=range]");
	await slider.fill("200");
	await slider.fill("30");
	await page.waitForFunction(() => __ui.state.n === "30");
	await ready();
	equal(await page.locator("main output").textContent(), "30");
	equal(await page.locator("main g.edge").count(), cli("-dot", "-nodecount=30", "worked_a.pb").match(/^N\S+ -> N\S+ /gm).length);
});

await test("graph: says what to install when dot is missing", async () => {
	const without = await serveWith({ ...process.env, PATH: "/nonexistent" }, "worked_a.pb");
	await open(without + "graph");
	equal((await page.locator("main .page-note").textContent()).includes("apt-get install graphviz"), true);
	equal(await page.locator(".errorbar:visible").count(), 0);
	// The browser itself notes each answer that is an error.
	equal(trouble.every(text => text.includes("501")), true);
	trouble.length = 0;
});

await test("modules: pictures are cleaned, label filters and bins", async () => {
	await open(await serve(`-ui_dir=${join(data, "../../../src/web/assets")}`, "labels.pb") + "top");
	const got = await page.evaluate(async () => {
		const { safeSvg } = await import("/ui/static/graph.js"), { logBins, toggleFocus, toggleIgnore } = await import("/ui/static/labels.js");
		const picture = safeSvg(`<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" onload="alert(1)"><script>alert(1)</script><style>g{}</style>
<g onclick="alert(1)" id="a"><a xlink:href="javascript:alert(1)" href="http://x/"><text style="fill:red" fill="url(http://x/)" stroke="url(#b)">t</text></a>
<foreignObject><b/></foreignObject><image href="http://x/"/><use href="#a"/></g></svg>`);
		const two = toggleFocus(toggleFocus("", "k", "a"), "k", "b,=|"), other = toggleFocus(two, "l", "c");
		return {
			svg: new XMLSerializer().serializeToString(picture).replace(/\s*\n\s*/g, ""), two, other, back: toggleFocus(other, "k", "a"),
			ignore: [toggleIgnore("", "k", "a"), toggleIgnore("^k:a$", "l", "b"), toggleIgnore("^k:a$|^l:b$", "k", "a")],
			bins: logBins([{ value: -5, weight: 1 }, { value: 1, weight: 2 }, { value: 1024, weight: 4 }]).map(bin => bin.weight).filter(Boolean),
		};
	});
	equal(got.svg, '<g xmlns="http://www.w3.org/2000/svg"><g id="a"><g><text stroke="url(#b)">t</text></g></g></g>');
	equal([got.two, got.other], ["^k:(?:a|b\\x2c\\x3d\\|)$", "^k:(?:a|b\\x2c\\x3d\\|)$,^l:(?:c)$"]);
	equal(got.back, "^k:(?:b\\x2c\\x3d\\|)$,^l:(?:c)$");
	equal(got.ignore, ["^k:a$", "^k:a$|^l:b$", "^l:b$"]);
	equal(got.bins, [1, 2, 4]);
	// The browser notes what it would not have run even in a document that is never shown.
	equal(trouble.every(text => text.includes("Content Security Policy")), true);
	trouble.length = 0;
});

await test("labels: the values of -tags; a click keeps, Alt and click leaves out", async () => {
	await open(labels + "labels?unit=us");
	const card = key => page.locator(`main section[aria-label="${key}"]`);
	const rows = (await card("endpoint").locator("li > button:first-child").allTextContents());
	equal(rows, ["/item12000us39.0%", "/cart10000us32.5%", "/list2500us8.1%"]);
	await card("endpoint").locator("button", { hasText: "/cart" }).click();
	await ready();
	equal(await page.evaluate(() => __ui.state.tf), "^endpoint:(?:/cart)$");
	await page.evaluate(() => 0);
	await open((await page.url()).replace("/labels?", "/top?"));
	const total = /of (\S+) total/.exec(cli("-top", "-unit=us", "-tagfocus=endpoint=^/cart$", "labels.pb"));
	equal((await cells())[0].includes("10000us"), true);
	equal(total !== null, true);
	await page.goBack();
	await ready();
	await page.keyboard.press("Control+z");
	await open(labels + "labels");
	await card("tenant").locator("button", { hasText: "acme" }).click({ modifiers: ["Alt"] });
	await ready();
	equal(await page.evaluate(() => __ui.state.ti), "^tenant:acme$");
	equal(await card("tenant").locator("li").count(), 1);
	await open(labels + "labels");
	await card("tenant").locator("button[aria-label^='Leave out']").first().click();
	await ready();
	equal(await page.evaluate(() => __ui.state.ti), "^tenant:acme$");
});

await test("labels: numbers as a histogram with a brush, groups in order", async () => {
	await open(labels + "labels");
	const card = page.locator('main section[aria-label="latency"]'), box = await card.locator("svg.histogram").boundingBox();
	await page.mouse.move(box.x + 2, box.y + 20);
	await page.mouse.down();
	await page.mouse.move(box.x + 30, box.y + 20, { steps: 3 });
	await page.mouse.up();
	await ready();
	equal(/^latency=-?\d+\w+:\d+\w+$/.test(await page.evaluate(() => __ui.state.tf)), true);
	await open(labels + "labels");
	for (const key of ["endpoint", "tenant"]) {
		await page.locator(`main button[aria-label="Group at root: ${key}"]`).click();
		await ready();
	}
	equal(await page.evaluate(() => __ui.state.tr), "endpoint,tenant");
	await page.locator('main button[aria-label="tenant: further out"]').click();
	await ready();
	equal(await page.evaluate(() => __ui.state.tr), "tenant,endpoint");
	await page.locator('main button[aria-label="Do not group by tenant"]').click();
	await ready();
	equal(await page.evaluate(() => __ui.state.tr), "endpoint");
	await page.goto(labels + "tree?tr=endpoint&unit=us");
	await ready();
	equal((await cells()).map(row => row[0].replace(/^[▸▾]/, "")).includes("/cart"), true);
});

await test("compare: a dropped file becomes side B; the table has the numbers of kiln diff", async () => {
	await open(worked + "compare?unit=ms&cv=table");
	equal(await page.locator("main .page-note h2").textContent(), "Compare with what?");
	await drop(`${data}/worked_b.pb`);
	await page.waitForFunction(() => __ui.state.b);
	await ready();
	const want = cli("diff", "worked_a.pb", "worked_b.pb").split("\n").map(line => /^\s+(\d\S*)\s+\S+%\s+(\d\S*)\s+\S+%\s+(\S+).* (\S+)$/.exec(line)).filter(Boolean);
	const rows = await cells(), names = rows.map(row => row.find(text => /^(a|b|c|rec|main)$/.test(text)));
	equal(names.slice(0, 2), ["c", "b"]);
	equal(want.length, 4);
	for (const [, a, b, delta, name] of want)
		equal(rows[names.indexOf(name)].slice(0, 3), [a, b, (delta.startsWith("-") ? "▼ " : "▲ ") + delta.replace("-", "−")]);
	await page.locator("main tbody tr", { hasText: /rec$/ }).click();
	equal(await page.locator("main .compare-status").textContent(), "rec: 400ms → 450ms, ×1.1; share 40.0% → 64.3%, +24.29 points");
	await page.locator("main .segmented button", { hasText: /^gone$/ }).click();
	equal((await cells()).length, 1);
});

await test("compare: an address can be side B", async () => {
	await open(worked + "compare?cv=table");
	await page.locator("main summary", { hasText: "Open" }).last().click();
	await page.locator("main input[type=url]").fill(labels.replace("/ui/", "/ui/download"));
	await page.keyboard.press("Enter");
	await page.waitForFunction(() => __ui.state.b);
	await ready();
	equal((await page.locator("main .compare-warning").allTextContents()).some(text => text.includes("has no values of the type “cpu”")), true);
	await page.locator("main .page-note button", { hasText: "samples" }).click();
	await ready();
	equal((await cells()).length > 0, true);
});

await test("compare: swap, merged, side by side with one zoom", async () => {
	await open(`${worked}compare?unit=ms&cv=merged&b=1`);
	equal(await page.locator("main canvas").count(), 1);
	equal(await page.locator("main .compare-status").textContent(), "all: 1000ms → 700ms, ×0.7; share 100% → 100%, ±0");
	await page.keyboard.press("x");
	await ready();
	equal(await page.locator("main .compare-status").textContent(), "all: 700ms → 1000ms, ×1.4; share 100% → 100%, ±0");
	await page.keyboard.press("x");
	await ready();
	await page.locator("main .segmented button", { hasText: "Side by side" }).click();
	await ready();
	equal(await page.locator("main canvas").count(), 2);
	const box = await page.locator("main canvas").first().boundingBox();
	await page.mouse.click(box.x + 10, box.y + 45);
	await page.waitForFunction(() => __ui.state.z);
	equal((await page.evaluate(() => __ui.state.z)).split(".").length, 2);
});

await test("top and tree: two sides", async () => {
	await open(`${worked}top?unit=ms&b=1`);
	const row = (await cells()).find(cell => cell.includes("c"));
	equal(row.slice(0, 3), ["300ms", "0", "▼ −300ms"]);
	await open(`${worked}tree?unit=ms&b=1`);
	equal((await cells())[0].slice(1, 4), ["1000ms", "700ms", "▼ −300ms"]);
});

await test("a dropped file opens anywhere", async () => {
	await open(worked + "top");
	await drop(`${data}/labels.pb`);
	await page.waitForFunction(() => __ui.state.a);
	await ready();
	equal(await page.evaluate(() => __ui.state.page), "flamegraph");
});

await test("export: every format comes, as the command line writes it", async () => {
	await open(worked + "flamegraph");
	await page.locator("header button[aria-label='Share and export']").click();
	await axe("export dialog");
	const take = async title => {
		const wait = page.waitForEvent("download").catch(() => { throw new Error(`${title} does not come`); });
		const [download] = await Promise.all([wait, page.locator("dialog li button", { hasText: new RegExp(`^${title}$`) }).click()]);
		return readFileSync(await download.path());
	};
	equal((await take("Picture, PNG")).subarray(1, 4).toString(), "PNG");
	equal((await take("Text")).toString(), cli("-text", "worked_a.pb"));
	equal((await take("Web page")).toString().includes("__KILN_DATA__"), true);
	equal(gunzipSync(await take("Profile")).length > 0, true);
	// The browser stops a page that starts more than ten downloads: the others are asked for directly.
	equal(await page.locator("dialog li button").count(), 12);
	const get = async format => (await page.request.get(`${worked}api/v1/export/${format}`)).text();
	equal(await get("raw"), cli("-raw", "worked_a.pb"));
	equal(await get("dot"), cli("-dot", "worked_a.pb"));
	equal((await get("folded")).split("\n").filter(Boolean).sort(), ["main;a 100000000", "main;a;b 200000000", "main;c 300000000", "main;rec;rec;rec 400000000"]);
	equal((await get("svg")).includes("<svg"), true);
	equal(JSON.parse(await get("speedscope")).$schema.includes("speedscope"), true);
	equal((await get("csv")).includes("rec"), true);
	equal((await get("original")).length > 0, true);
	await page.locator("dialog button", { hasText: "Copy address" }).click();
	equal(await page.evaluate(() => navigator.clipboard.readText()), page.url());
});

for (const theme of ["light", "dark"])
	await test(`no axe violations, ${theme}`, async () => {
		await setTheme(theme);
		for (const [name, url] of Object.entries({ graph: worked + "graph", labels: labels + "labels?tr=endpoint,tenant", compare: worked + "compare", side: worked + "compare?b=1&cv=side",
			merged: worked + "compare?b=1&cv=merged", table: worked + "compare?b=1&cv=table" })) {
			await open(url);
			await axe(name);
			await shoot(`${name}-${theme}`);
		}
	});
