// For SOAK seconds two browsers walk through the pages while 50 clients ask the server for everything, some of whom go away before the
// answer. Nothing may fail, and what the server holds must not grow. Needs SOAK, beside what web_lib.mjs needs.
import { Agent, get } from "node:http";
import { readFileSync, readdirSync } from "node:fs";
import { equal, processOf, serve, test } from "./web_lib.mjs";
import { closeBrowser, freshPage, isReady, randomNumbers } from "./web_proof_lib.mjs";

const seconds = Number(process.env.SOAK || 5), CLIENTS = 50, WARM = 1 / 3, MB = 1 << 20;
const base = await serve("labels.pb"), { pid } = processOf(base);
const { random, some } = randomNumbers(5), sleep = ms => new Promise(resolve => setTimeout(resolve, ms));
const status = name => Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(readFileSync(`/proc/${pid}/status`, "utf8"))[1]);
const held = () => ({ memory: 1024 * status("VmRSS"), threads: status("Threads"), files: readdirSync(`/proc/${pid}/fd`).length });

// More than the server keeps of answers, so that some are there and others are made again.
const CALLS = ["flame?min=0.0005", "flame?min=0", "flame?dir=callers", "top", "top?g=lines", "search?q=e", "search?re=1&q=^.u", "function?id=1", "labels", "peek", "source?f=query", "graph", "meta",
	"export/folded", "export/pprof", "export/svg", "export/html", "export/csv", "export/raw", "export/speedscope", "export/dot"];
const FILTERS = ["", "f=query", "f=handle", "i=query", "h=handle", "s=serve|query", "sf=handle", "tf=tenant=acme", "ti=tenant=acme", "tr=endpoint", "tl=tenant", "g=lines", "noinlines=t", "sort=cum", "si=samples", "n=2", "unit=ms", "f=nosuch"];
const agent = new Agent({ keepAlive: true, maxSockets: CLIENTS });
let end = 0, asked = 0, abandoned = 0;
const failures = [];

function ask(path, leaves) {
	return new Promise(resolve => {
		const request = get(base + "api/v1/" + path, { agent, headers: { "Accept-Encoding": "gzip" } }, answer => {
			if (answer.statusCode >= 500)
				failures.push(`${path}: ${answer.statusCode}`);
			answer.on("data", () => {});
			answer.on("end", resolve);
			answer.on("error", () => resolve());
		});

		asked++;
		request.on("error", error => {
			if (!leaves)
				failures.push(`${path}: ${error.message}`);
			resolve();
		});
		if (leaves)
			setTimeout(() => {
				abandoned++;
				request.destroy();
				resolve();
			}, random(30));
	});
}

async function client() {
	while (performance.now() < end) {
		const call = some(CALLS), filter = some(FILTERS);

		await ask(call + (filter && (call.includes("?") ? "&" : "?") + filter), random(5) === 0);
	}
}

/** Keys and clicks at random. */
async function walk(one) {
	const { page } = one, keys = ["1", "2", "3", "4", "5", "6", "7", "8", "ArrowDown", "ArrowDown", "ArrowRight", "Enter", "Backspace", "0", "r", "o", "f", "Control+z", "i", "c", "l"];

	await page.goto(base + "flamegraph");
	await isReady(page);
	while (performance.now() < end) {
		await page.keyboard.press(some(keys));
		if (random(4) === 0)
			await page.mouse.click(100 + random(900), 150 + random(400));
		if (random(8) === 0)
			await page.keyboard.press("Escape");
		if (random(10) === 0)
			await page.evaluate(filter => history.pushState(null, "", `flamegraph?${filter}`), some(FILTERS)).then(() => page.reload());
		await sleep(30 + random(150));
	}
}

const run = async (duration, browsers) => {
	end = performance.now() + 1000 * duration;
	await Promise.all([...Array.from({ length: CLIENTS }, client), ...browsers.map(walk)]);
};

await test(`soak: ${seconds} s with two browsers and ${CLIENTS} clients`, async () => {
	await sleep(300);
	const before = held(), browsers = [await freshPage(), await freshPage()];

	await run(seconds * WARM, browsers);
	await sleep(500);
	const warm = held();

	await run(seconds * (1 - WARM), browsers);
	const trouble = browsers.flatMap(one => one.trouble).filter(text => !/status of 40[04]/.test(text));

	await closeBrowser();
	agent.destroy();
	await sleep(1000);
	const after = held();

	console.log(`# ${asked} requests, ${abandoned} of them abandoned; memory ${Math.round(before.memory / MB)} MB at first, ${Math.round(warm.memory / MB)} MB warm, ${Math.round(after.memory / MB)} MB at the end; ${after.files} files, ${after.threads} threads`);
	equal(failures.slice(0, 5), []);
	equal(trouble.slice(0, 5), []);
	// Whoever asked whether the server is there may still have had a connection before.
	equal([after.threads <= before.threads, after.files <= before.files], [true, true], `${after.threads} threads and ${after.files} files, not ${before.threads} and ${before.files}`);
	// A few seconds are not enough to fill all that is kept.
	if (after.memory > 1.1 * warm.memory + (seconds < 30 ? 16 * MB : 0))
		throw new Error(`memory has grown from ${warm.memory} to ${after.memory} bytes`);
});
