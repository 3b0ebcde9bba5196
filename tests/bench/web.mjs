// kiln -http in a browser, on 1M samples that make a tree of 1M nodes, and pprof's page of the same file beside it.
//
//	node web.mjs KILN PPROF PROFILE USER-DATA-DIR
//
// One line for each figure: name, kiln's, pprof's, the most that is allowed. PPROF may be "-".
import { chromium } from "playwright-core";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer } from "node:net";

const [kiln, pprof, profile, folder] = process.argv.slice(2);
const MB = 1 << 20, PPROF_SECONDS = 420;
const sleep = ms => new Promise(resolve => setTimeout(resolve, ms));
const median = list => list.slice().sort((a, b) => a - b)[list.length >> 1];

const freePort = () => new Promise(resolve => {
	const server = createServer().listen(0, "127.0.0.1", () => {
		const { port } = server.address();
		server.close(() => resolve(port));
	});
});

const peakBytes = pid => 1024 * +/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))[1];

async function start(program) {
	const port = await freePort(), begin = performance.now();
	const child = spawn(program, ["-symbolize=none", "-no_browser", `-http=127.0.0.1:${port}`, profile], { stdio: "ignore" });

	return { child, begin, url: `http://127.0.0.1:${port}/ui/` };
}

/** Until the server listens. */
async function answer(server, path, signal) {
	for (;;) {
		const reply = await fetch(server.url + path, { signal }).catch(error => {
			if (signal?.aborted)
				throw error;
			return null;
		});
		if (reply)
			return reply;
		await sleep(5);
	}
}

async function measureKiln() {
	const browser = await chromium.launchPersistentContext(folder, {
		executablePath: "/usr/bin/chromium", headless: true, viewport: { width: 1920, height: 1080 },
		args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
	});
	const page = await browser.newPage(), devtools = await page.context().newCDPSession(page), figures = {};
	let payload = 0, isFirst = true;

	await devtools.send("Network.enable");
	devtools.on("Network.loadingFinished", e => payload += isFirst ? e.encodedDataLength : 0);
	const server = await start(kiln);
	const painted = () => page.waitForFunction(() => window.__ui?.ready && !document.querySelector("main [aria-busy]"));

	await answer(server, "static/app.js");
	await page.goto(server.url + "flamegraph");
	await painted();
	figures.paint = performance.now() - server.begin;
	await sleep(500);
	figures.payload = payload;
	isFirst = false;
	figures.nodes = await page.evaluate(() => window.__ui.stats.nodes);

	const begin = performance.now();
	await page.reload();
	await painted();
	figures.again = performance.now() - begin;

	figures.frames = [];
	for (let i = 0; i < 100; i++) {
		await page.evaluate(() => { window.__ui.stats.frames.length = 0; });
		await page.mouse.move(400 + 10 * (i % 60), 300);
		await page.keyboard.down("Control");
		await page.mouse.wheel(0, i % 20 < 10 ? -120 : 120);
		await page.keyboard.up("Control");
		await page.waitForTimeout(40);
		figures.frames.push(...await page.evaluate(() => window.__ui.stats.frames));
	}
	await devtools.send("HeapProfiler.enable");
	await devtools.send("HeapProfiler.collectGarbage");
	figures.heap = (await devtools.send("Runtime.getHeapUsage")).usedSize;

	figures.views = [];
	for (const view of ["top", "flamegraph", "tree", "top", "flamegraph"]) {
		const from = performance.now();
		await page.click(`nav a[href*="${view}"]`);
		await painted();
		figures.views.push(performance.now() - from);
	}
	figures.memory = peakBytes(server.child.pid);
	server.child.kill();
	await browser.close();
	return figures;
}

/** Until the page has come; drawing it would take the browser longer still. */
async function measurePprof() {
	const server = await start(pprof), stop = AbortSignal.timeout(1000 * PPROF_SECONDS);
	const figures = {};

	try {
		const reply = await answer(server, "flamegraph", stop);
		let bytes = 0;
		for await (const chunk of reply.body)
			bytes += chunk.length;
		figures.paint = performance.now() - server.begin;
		figures.payload = bytes;
	} catch {
		figures.paint = Infinity;
	}
	figures.memory = peakBytes(server.child.pid);
	server.child.kill("SIGKILL");
	return figures;
}

const seconds = ms => ms === undefined ? "" : ms === Infinity ? `> ${PPROF_SECONDS} s` : ms < 1000 ? `${ms.toFixed(1)} ms` : `${(ms / 1000).toFixed(2)} s`;
const size = n => n === undefined ? "" : n < MB ? `${(n / 1024).toFixed(1)} KB` : `${(n / MB).toFixed(1)} MB`;
let failures = 0;

function row(name, show, ours, theirs, most) {
	const ok = ours <= most;

	failures += !ok;
	console.log(`${name.padEnd(34)} ${show(ours).padStart(10)} ${show(theirs).padStart(12)}   at most ${show(most).padStart(8)}  ${ok ? "ok" : "FAILS"}`);
}

const ours = await measureKiln(), theirs = pprof === "-" ? {} : await measurePprof();

console.log(`${"web".padEnd(34)} ${"kiln".padStart(10)} ${"pprof".padStart(12)}   (${ours.nodes} nodes drawn)`);
row("process start to first paint", seconds, ours.paint, theirs.paint, 3000);
row("paint again", seconds, ours.again, undefined, 3000);
row("first payload", size, ours.payload, theirs.payload, 200 * 1024);
row("script per frame while zooming", seconds, median(ours.frames), undefined, 4);
row("switch of view", seconds, Math.max(...ours.views), undefined, 600);
row("heap of the tab", size, ours.heap, undefined, 150 * MB);
row("memory of the server", size, ours.memory, theirs.memory, 700 * MB);
process.exit(failures ? 1 : 0);
