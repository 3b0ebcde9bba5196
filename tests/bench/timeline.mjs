// The Timeline page of kiln serve in a browser: 30 days of 20 series.
//
//	node timeline.mjs KILN STORE START USER-DATA-DIR
//
// One line for each figure: name, what it is, the most that is allowed. Fails if it is more.
import { chromium } from "playwright-core";
import { spawn } from "node:child_process";
import { createServer } from "node:net";

const [kiln, store, start, folder] = process.argv.slice(2);
const DAYS = 30, ROUNDS = 7, MOST_MS = 300, MOST_BRUSH_MS = 16.7;
const median = list => list.slice().sort((a, b) => a - b)[list.length >> 1];

const port = await new Promise(resolve => {
	const server = createServer().listen(0, "127.0.0.1", () => {
		const { port: free } = server.address();
		server.close(() => resolve(free));
	});
});
const url = `http://127.0.0.1:${port}/`;
const child = spawn(kiln, ["serve", "--data", store, "--listen", `127.0.0.1:${port}`, "--access-log=false", "--self-profile=false"], { stdio: "ignore" });

while (!(await fetch(url + "readyz").catch(() => null))?.ok)
	await new Promise(resolve => setTimeout(resolve, 20));

const browser = await chromium.launchPersistentContext(folder, {
	executablePath: "/usr/bin/chromium", headless: true, viewport: { width: 1920, height: 1080 },
	args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
const page = await browser.newPage();
const ready = () => page.waitForFunction(() => window.__ui?.ready && window.__ui.stats.drawMs && !document.querySelector("main [aria-busy]"));
const rounds = [];

// Each is another window, so that nothing of the answer is known before.
for (let i = 0; i < ROUNDS; i++) {
	const from = Number(start) + i * 60;

	await page.goto(`${url}timeline?service=service-0&type=cpu&by=pod&from=${from}&to=${from + DAYS * 86400}`);
	await ready();
	rounds.push(await page.evaluate(() => window.__ui.stats));
}
const { lines, points, rect } = rounds[0];

// Frames while the mouse is dragged over the chart.
await page.evaluate(() => {
	window.frames = [];
	let last = 0;
	const tick = now => {
		if (last)
			window.frames.push(now - last);
		last = now;
		requestAnimationFrame(tick);
	};
	requestAnimationFrame(tick);
});
await page.mouse.move(rect.x + 200, rect.y + 100);
await page.mouse.down();
for (let x = 200; x < 1400; x += 10)
	await page.mouse.move(rect.x + x, rect.y + 100);
const frames = await page.evaluate(() => window.frames);
await page.mouse.up();

const query = median(rounds.map(round => round.queryMs)), draw = median(rounds.map(round => round.drawMs)), both = median(rounds.map(round => round.queryMs + round.drawMs));
const figures = [["lines", lines, ""], ["points", points, ""], ["query ms", query, ""], ["draw ms", draw, ""], ["query and draw ms", both, MOST_MS], ["frame of a brush ms, median", median(frames), MOST_BRUSH_MS * 1.2]];

console.log(`timeline of ${DAYS} days`);
for (const [name, value, most] of figures)
	console.log(`  ${name.padEnd(28)} ${value.toFixed(1).padStart(9)} ${most && `at most ${most.toFixed(0)}`}`);
await browser.close();
child.kill("SIGTERM");
process.exitCode = lines === 20 && figures.every(([, value, most]) => !most || value <= most) ? 0 : 1;
