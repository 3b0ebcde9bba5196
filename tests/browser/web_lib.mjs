// What the tests of the web page share: a server, a browser, axe-core, and TAP.
// ONLY=text runs the tests with it in their names. Needs KILN (the program), DATA (profiles) and the browser's own folder as the first argument.
import { chromium } from "playwright-core";
import { execFileSync, spawn } from "node:child_process";
import { createServer } from "node:net";
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { basename, join } from "node:path";

export const kiln = process.env.KILN, data = process.env.DATA;
const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const freePort = () => new Promise(resolve => {
	const server = createServer().listen(0, "127.0.0.1", () => {
		const { port } = server.address();
		server.close(() => resolve(port));
	});
});

/** What the command line prints for the same profile. */
export const cli = (...args) => execFileSync(kiln, args, { cwd: data, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"], maxBuffer: 1 << 28 });

const servers = new Map();

/** Starts kiln -http on a free port; resolves to its address. */
export const serve = (...args) => serveWith(process.env, ...args);

export async function serveWith(env, ...args) {
	const port = await freePort(), url = `http://127.0.0.1:${port}/ui/`;

	return start(env, url, url + "api/v1/meta", `-http=127.0.0.1:${port}`, "-no_browser", ...args);
}

/** Starts kiln serve with an empty store; resolves to its address. */
export async function serveStore(...args) {
	const port = await freePort(), url = `http://127.0.0.1:${port}/`;

	// Times in tests are of any year, and what is old must not become sums meanwhile.
	return start(process.env, url, url + "healthz", "serve", "--data", join(process.argv[2], `store${port}`), "--listen", `127.0.0.1:${port}`, "--access-log=false",
		"--self-profile=false", "--keep-raw", "0", "--keep-minute", "0", "--keep-hour", "0", ...args);
}

async function start(env, url, test, ...args) {
	const child = spawn(kiln, args, { cwd: data, env, stdio: "ignore" });

	servers.set(url, child);
	for (let i = 0; i < 200; i++) {
		const answer = await fetch(test).catch(() => null);
		if (answer?.ok)
			return url;
		if (child.exitCode !== null)
			throw new Error(`kiln ${args[0]} ended with ${child.exitCode}`);
		await new Promise(resolve => setTimeout(resolve, 50));
	}
	throw new Error(`kiln ${args[0]} does not answer`);
}

/** The process of a server. */
export const processOf = url => servers.get(url);

/** Ends a server that is not needed any more. */
export const stop = url => servers.get(url).kill("SIGTERM");

const browser = await chromium.launchPersistentContext(process.argv[2], {
	executablePath: "/usr/bin/chromium", headless: true, viewport: { width: 1300, height: 800 }, acceptDownloads: true, reducedMotion: "reduce",
	permissions: ["clipboard-read", "clipboard-write"],
	args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
export const page = await browser.newPage();
export let trouble = [];
let tests = 0;

page.on("pageerror", error => trouble.push(error.message));
page.on("console", message => message.type() === "error" && trouble.push(`${message.text()} ${message.location().url}`));
page.on("dialog", dialog => {
	trouble.push("a name has run: " + dialog.message());
	dialog.dismiss();
});
page.on("request", request => /^(http:\/\/127\.0\.0\.1:|blob:|data:)/.test(request.url()) || trouble.push("fetches " + request.url()));

/** Waits until the page has all it asked for. */
export const ready = () => page.waitForFunction(() => window.__ui?.ready && !document.querySelector("main [aria-busy]"), null, { timeout: 60000 });

export async function open(url) {
	await page.goto(url);
	await ready();
}

page.setDefaultTimeout(30000);

export const shoot = name => process.env.SHOTS && page.screenshot({ path: `${process.env.SHOTS}/${name}.png` });

export async function test(name, run) {
	if (!new RegExp(process.env.ONLY || "").test(name))
		return;
	tests++;
	try {
		await run();
		if (trouble.length)
			throw new Error(trouble.join("; "));
		console.log(`ok ${tests} - ${name}`);
	} catch (error) {
		console.log(`not ok ${tests} - ${name}`);
		console.log(String(error.message).replace(/^/gm, "# "));
		await shoot(`failed-${tests}`);
	}
	trouble = [];
}

export function equal(got, want, what = "") {
	const [a, b] = [JSON.stringify(got), JSON.stringify(want)];

	if (a !== b)
		throw new Error(`${what}${what && ": "}got ${a}, not ${b}`);
}

/** For what the page does in its own time: waits until it is so. */
export async function soon(check, what) {
	for (const end = Date.now() + 10000; !await check();) {
		if (Date.now() > end)
			throw new Error(`${what}: not within ten seconds`);
		await page.waitForTimeout(20);
	}
}

export function near(got, want, slack = 2) {
	if (!(Math.abs(got - want) <= slack))
		throw new Error(`got ${got}, not ${want}`);
}

/** Fails on anything axe-core finds on the page as it is now. */
export async function axe(what) {
	await page.evaluate(axeSource);
	const found = await page.evaluate(() => axe.run(document, { runOnly: { type: "tag", values: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] } }));

	if (found.violations.length)
		throw new Error(`${what}: ` + found.violations.map(v => `${v.id}: ${v.help} (${v.nodes.map(n => n.target.join(" ")).slice(0, 3).join(", ")})`).join("; "));
}

export async function setTheme(theme) {
	await page.emulateMedia({ colorScheme: theme, reducedMotion: "reduce" });
	await page.waitForFunction(want => document.documentElement.dataset.theme === want, theme);
}

/** Drops a file on the page as a person would. */
export async function drop(path) {
	const transfer = await page.evaluateHandle(([base64, name]) => {
		const found = new DataTransfer();
		found.items.add(new File([Uint8Array.from(atob(base64), c => c.charCodeAt(0))], name));
		return found;
	}, [readFileSync(path).toString("base64"), basename(path)]);
	await page.dispatchEvent("main", "drop", { dataTransfer: transfer });
}

/** The cells of a table in view, as text: [[…], …]. */
export const cells = (selector = "main table") => page.locator(selector).first().evaluate(table =>
	[...table.querySelectorAll("tbody:not([aria-hidden]) tr")].map(row => [...row.cells].map(cell => cell.textContent)));

export async function finish() {
	console.log(`1..${tests}`);
	await browser.close();
	for (const child of servers.values())
		child.kill("SIGTERM");
}
