// Every state is in the URL: in another browser it is the same, and so it is on the way back.
import { cli, equal, open, page, serve, test } from "./web_lib.mjs";
import { closeBrowser, freshPage, isReady, randomNumbers } from "./web_proof_lib.mjs";

const base = await serve("labels.pb"), { random, some } = randomNumbers(20);
const ALL = { f: ["", "", "handle", "query|serve"], i: ["", "", "", "nosuch"], h: ["", "", "^handle$"], tf: ["", "", "tenant=acme"], tr: ["", "", "endpoint"], unit: ["", "", "ms"], q: ["", "", "e", "que"],
	si: ["", "samples"], g: ["", "", "lines"], unknown: ["", "kept & <b>\u202e=ü"] };
const PAGES = {
	flamegraph: { ord: ["", "name"], up: ["", "1"], dir: ["", "callers"], rc: ["", "1"], col: ["", "module", "self"], pct: ["", "shown", "zoom"], x: ["", "0.25-0.5"] },
	top: { srt: ["", "cum"], grp: ["", "package"] },
	tree: { dir: ["", "callers"] },
	sandwich: { fn: ["handle", "query"] },
	labels: {},
	peek: {},
	source: { fn: ["handle"], asm: ["", "off"] },
};

function randomState() {
	const name = some(Object.keys(PAGES)), query = new URLSearchParams();

	for (const [key, values] of Object.entries({ ...ALL, ...PAGES[name] })) {
		const value = some(values);

		if (value)
			query.set(key, value);
	}
	return `${name}?${query}`;
}

/** What one sees: the state, all text of the page, its pictures. */
const seen = page => page.evaluate(() => new Promise(resolve => requestAnimationFrame(() => setTimeout(() => resolve({
	state: { ...window.__ui.state },
	chips: [...document.querySelectorAll(".chip")].map(e => e.textContent),
	crumbs: document.querySelector(".crumbs")?.textContent,
	text: document.querySelector("main").innerText,
	pictures: [...document.querySelectorAll("main canvas")].map(canvas => canvas.toDataURL()),
})))));

async function show(one, url) {
	await one.page.goto(url);
	await isReady(one.page);
	await one.page.waitForTimeout(50);
	return seen(one.page);
}

const first = await freshPage();

for (const state of [...Array.from({ length: 24 }, randomState), "flamegraph?q=acme&in=label&re=1", "top?q=latency%3A250us&in=label"]) {
	await test(`URL in another browser: ${state}`, async () => {
		const want = await show(first, base + state), url = first.page.url(), other = await freshPage();
		const got = await show(other, url);

		equal(got.state, want.state, "state");
		equal(Object.fromEntries(new URL(base + state).searchParams), Object.fromEntries(Object.entries(want.state).filter(([key]) => key !== "page")), "parameters that were given");
		equal(got, want, "what is seen");
		equal([...first.trouble, ...other.trouble].filter(text => !/status of 40[04]/.test(text)), []);
		first.trouble.length = 0;
		await other.close();
	});
}

const textOf = selector => page.locator(selector).first().evaluate(e => e.innerText);

await test("pprof's own URLs show what pprof's command line prints", async () => {
	const names = args => cli("-top", ...args, "labels.pb").split("cum%\n")[1].trim().split("\n").map(line => line.trim().split(/ +/)[5]).sort();

	await open(base + "top?f=handle&si=samples");
	equal((await page.locator("main tbody:not([aria-hidden]) tr").allInnerTexts()).map(text => /serve|handle|query/.exec(text)?.[0]).sort(), names(["-focus=handle", "-sample_index=samples"]));
	await open(base + "flamegraph?f=query&si=samples");
	equal(await page.evaluate(() => [window.__ui.tree.total[0], window.__ui.state.page]), [19, "flamegraph"]);
	await open(base + "flamegraph?p=" + encodeURIComponent("^query$"));
	equal(await page.evaluate(() => window.__ui.tree.functions[window.__ui.tree.fn[1]][1]), "query");
	await open(base + "peek?f=query");
	equal((await textOf("main pre, main code")).trim(), cli("-peek=query", "-focus=query", "labels.pb").trim());
	for (const name of ["source", "disasm"]) {
		await open(`${base}${name}?f=query`);
		equal([await page.evaluate(() => window.__ui.state.page), (await textOf("main")).includes("query")], [name, true]);
	}
	await open(base + "graph?f=query&n=2");
	equal(await page.locator("main svg .node").evaluateAll(all => all.filter(e => /^node\d+$/.test(e.id)).length), cli("-dot", "-focus=query", "-nodecount=2", "labels.pb").match(/^N\d+ \[label/gm).length);
	for (const [path, want] of [["../flamegraph?f=query", "/ui/flamegraph?f=query"], ["flamegraph2?f=query", "/ui/flamegraph?f=query"], ["flamegraphold?si=samples", "/ui/flamegraph?si=samples"], ["../?f=query", "/ui/flamegraph?f=query"]]) {
		await open(base + path);
		equal(page.url().replace(/^http:\/\/[^/]+/, ""), want);
	}
	const [file] = await Promise.all([page.waitForEvent("download"), page.evaluate(() => { location.href = "download"; })]);

	equal(file.suggestedFilename(), "profile.pb.gz");
});

/** Ways to change the state by hand. */
const STEPS = ["1", "2", "4", "5", "7", "8", "r", "o", "l", "f", "g", "h", "zoom", "type", "order"];

async function step(page, what) {
	if (what === "zoom" || what === "f" || what === "g" || what === "h") {
		await page.keyboard.press("1");
		await isReady(page);
		await page.keyboard.press("ArrowDown");
		await page.keyboard.press("ArrowDown");
		await page.keyboard.press(what === "zoom" ? "Enter" : what);
	} else if (what === "type") {
		await page.evaluate(() => document.querySelector(".types [aria-pressed=false]")?.click());
	} else {
		await page.keyboard.press(what === "order" ? "o" : what);
	}
	await isReady(page);
	await page.waitForTimeout(300);
}

// What was selected is no part of the state, so texts about it are not looked at.
const facts = page => page.evaluate(() => {
	const { state, tree } = window.__ui;

	return { state: Object.entries(state).sort(), sums: tree && [tree.n, tree.total[0]], boxes: tree && [0, 1, 2].map(i => i < tree.n && Math.round(window.__ui.rectOf(i).width)), rows: tree ? 0 : document.querySelectorAll("main table tr").length };
});

for (let round = 0; round < 3; round++)
	await test(`back and forward over ten steps, ${round + 1}`, async () => {
		const { page, trouble, close } = await freshPage(), history = [];

		await page.goto(base + "flamegraph");
		await isReady(page);
		history.push([page.url(), await facts(page)]);
		while (history.length <= 10) {
			const what = STEPS[random(STEPS.length)];

			await step(page, what);
			if (page.url() !== history.at(-1)[0])
				history.push([page.url(), await facts(page), what]);
		}
		const urls = history.map(([url]) => url);
		const walk = async go => {
			const at = page.url();

			await go();
			await isReady(page);
			await page.waitForTimeout(300);
			return page.url() !== at;
		};
		let now = urls.length - 1;

		// A step may have pushed more than one state; each of those that were seen comes again, in order.
		for (let i = 0; i < 40 && now > 0; i++) {
			await walk(() => page.goBack());
			if (page.url() === urls[now - 1])
				equal(await facts(page), history[--now][1], `back at ${page.url()}`);
		}
		equal(now, 0, "all the way back");
		for (let i = 0; i < 40 && now < urls.length - 1; i++) {
			await walk(() => page.goForward());
			if (page.url() === urls[now + 1])
				equal(await facts(page), history[++now][1], `forward at ${page.url()}`);
		}
		equal(now, urls.length - 1, "all the way forward");
		equal(trouble.filter(text => !/status of 40[04]/.test(text)), []);
		await close();
	});
await closeBrowser();
