// What is taken away works by itself: pages and pictures opened as files, without a network; and no name does harm.
import { cli, data, equal, page as served, open, serve, test, trouble } from "./web_lib.mjs";
import { closeBrowser, freshPage, isReady, makeProfile } from "./web_proof_lib.mjs";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const folder = mkdtempSync(join(tmpdir(), "kiln-files-"));
const file = (name, bytes) => {
	writeFileSync(join(folder, name), bytes);
	return join(folder, name);
};

const CANARY = "window.canary=1,alert(1)";
const NAMES = [`<img src=x onerror="${CANARY}">`, `</script><script>${CANARY}</script>`, `"'><svg onload="${CANARY}">`, `javascript:${CANARY}`, `<!--<script>${CANARY}//`, `]]></style><script>${CANARY}</script>`,
	"\u202egnp.evil\u202c<b>", "nul\0in it", "😀👩‍👩‍👧 emoji", "tab\tline\nreturn\r\u2028\u2029", `\${${CANARY}}\`${CANARY}\``, "x".repeat(100000), "&lt;script&gt;&#60;", "{{constructor.constructor('" + CANARY + "')()}}", "\\u003cscript>", "\x1b[31m\x7f"];
const hostile = file("hostile.pb.gz", makeProfile([...NAMES.map((name, i) => [["main", name, name + "2"], 10 + i, [[name.slice(0, 500), name.slice(0, 900)]]]), [["main", "plain"], 5, []]]));
const plain = join(data, "labels.pb");
const base = await serve(plain), evil = await serve(hostile);

const sums = page => page.evaluate(() => {
	const { tree } = window.__ui, found = {};
	const path = i => i > 0 ? [...path(tree.parent[i]), tree.functions[tree.fn[i]][1]] : [];

	for (let i = 1; i < tree.n; i++)
		if (tree.self[i])
			found[path(i).join(";")] = tree.self[i];
	return found;
});
const folded = (...args) => Object.fromEntries(cli("-folded", ...args).trim().split("\n").map(line => [line.replace(/ \d+$/, ""), Number(/\d+$/.exec(line)[0])]));

/** Opens a file where there is no network; fails on whatever is asked for beside it. */
async function offline(path, run) {
	const one = await freshPage({ offline: true });

	await one.context.route(/^(?!file:|data:|blob:)/, route => route.abort());
	await one.page.goto("file://" + path);
	await run(one.page);
	equal([...new Set(one.requests.filter(url => !/^(data|blob):/.test(url)).map(url => url.replace(/[#?].*/, "")))], ["file://" + path], "requests");
	equal(one.trouble, [], "errors");
	equal(await one.page.evaluate(() => typeof window.canary), "undefined", "a name has run");
	await one.close();
}

const harmless = page => page.evaluate(() => [...document.querySelectorAll("script:not(:first-of-type), img[onerror], svg[onload], [onerror], [onload]")].filter(e => /canary/.test(e.outerHTML) && e.tagName !== "SCRIPT").map(e => e.outerHTML.slice(0, 100)));

const fetchFile = async (url, name) => file(name, Buffer.from(await (await fetch(url)).arrayBuffer()));
const pages = [
	["-html", plain, () => file("cli.html", cli("-html", plain))],
	["export/html", plain, () => fetchFile(base + "api/v1/export/html", "export.html")],
	["export/html with a filter", plain, () => fetchFile(base + "api/v1/export/html?f=query", "filtered.html"), ["-focus=query"]],
	["-html of hostile names", hostile, () => file("cli-evil.html", cli("-html", hostile))],
	["export/html of hostile names", hostile, () => fetchFile(evil + "api/v1/export/html", "evil.html")],
];

for (const [name, profile, make, flags = []] of pages)
	await test(`file: ${name}: flame, top, tree, labels work without network`, async () => {
		const path = await make();

		await offline(path, async page => {
			await isReady(page);
			const seen = await sums(page), want = folded(...flags, profile);

			equal(Object.values(seen).sort(), Object.values(want).sort(), "weights of stacks");
			if (profile === plain)
				equal(Object.entries(seen).sort(), Object.entries(want).sort(), "stacks");
			await page.keyboard.press("ArrowDown");
			await page.keyboard.press("ArrowDown");
			await page.keyboard.press("Enter");
			await page.waitForFunction(() => window.__ui.state.z);
			await page.keyboard.press("0");
			await page.keyboard.press("/");
			await page.keyboard.type(profile === plain ? "query" : "plain");
			await page.waitForFunction(() => /1 function/.test(document.querySelector("#search-result").textContent));
			await page.keyboard.press("Escape");
			for (const [tab, text] of [["Top", profile === plain ? "query" : "plain"], ["Tree", profile === plain ? "serve" : "main"], ["Labels", profile === plain ? "tenant" : "nul"]]) {
				await page.locator(".tabs a", { hasText: tab }).click();
				await isReady(page);
				await page.waitForFunction(([id, want]) => window.__ui.state.page === id && document.querySelector("main").innerText.includes(want), [tab.toLowerCase(), text]);
				equal(await harmless(page), [], tab);
			}
			if (profile === plain && !flags.length) {
				await page.locator(".tabs a", { hasText: "Top" }).click();
				await isReady(page);
				const rows = await page.locator("main table tbody:not([aria-hidden]) tr").count();

				equal(rows, 3, "rows of the table");
			}
			await page.reload();
			await isReady(page);
		});
	});

for (const [name, profile, url] of [["flame graph", plain, base], ["flame graph of hostile names", hostile, evil]])
	await test(`file: ${name} as SVG`, async () => {
		for (const path of [file("cli.svg", cli("-flamegraph", profile)), await fetchFile(url + "api/v1/export/svg", "export.svg")])
			await offline(path, async page => {
				const texts = await page.evaluate(() => [document.documentElement.tagName, document.querySelectorAll("rect").length > 3, document.querySelector("parsererror")]);

				equal(texts, ["svg", true, null]);
				await page.mouse.click(400, 300);
			});
	});

await test("file: speedscope has the shape that its schema asks for", async () => {
	for (const [profile, url] of [[plain, base], [hostile, evil]])
		for (const text of [cli("-speedscope", profile), await (await fetch(url + "api/v1/export/speedscope")).text()]) {
			const json = JSON.parse(text), { frames } = json.shared;

			equal(json.$schema, "https://www.speedscope.app/file-format-schema.json");
			equal(frames.every(frame => typeof frame.name === "string"), true, "names");
			equal(json.profiles.length > 0, true);
			for (const p of json.profiles) {
				equal([p.type, typeof p.name, /^(none|nanoseconds|microseconds|milliseconds|seconds|bytes)$/.test(p.unit)], ["sampled", "string", true]);
				equal(p.samples.length, p.weights.length);
				equal(p.samples.every(stack => stack.every(i => Number.isInteger(i) && i >= 0 && i < frames.length)), true, "frames of samples");
				equal(p.endValue - p.startValue, p.weights.reduce((sum, w) => sum + w, 0), "end");
			}
		}
});

await test("hostile names do nothing on any page", async () => {
	// What cannot be meant is refused.
	const refused = text => /status of 40[04]/.test(text);

	await served.addInitScript(() => Object.defineProperty(window, "canary", { set: () => alert("canary") }));
	for (const name of ["flamegraph", "top", "graph", "sandwich?fn=2", "tree", "source?f=plain", "labels", "peek?f=plain", "flamegraph?f=" + encodeURIComponent("main|" + NAMES[0].replace(/[()[\]$.]/g, "\\$&")), "flamegraph?q=" + encodeURIComponent(NAMES[1]),
		"flamegraph?" + new URLSearchParams({ p: "plain", col: NAMES[0], unit: NAMES[1], z: NAMES[2], x: NAMES[3], ord: NAMES[4] }), "top?srt=" + encodeURIComponent(NAMES[0])]) {
		await open(evil + name);
		equal(await harmless(served), [], name);
		equal(await served.evaluate(() => /[\u202e\0\x1b]/.test(document.body.innerText)), false, `${name} shows raw control characters`);
		await served.keyboard.press("ArrowDown");
		await served.keyboard.press("ArrowDown");
		await served.keyboard.press("m");
		await served.keyboard.press("Escape");
		trouble.splice(0, trouble.length, ...trouble.filter(text => !refused(text)));
	}
});
rmSync(folder, { recursive: true });
await closeBrowser();
