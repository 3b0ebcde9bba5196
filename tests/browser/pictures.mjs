// Opens kiln's pictures from disk and works with them as a person would. Prints TAP.
// Usage: pictures.mjs FOLDER PROFILE, a folder of SVGs and one for the browser's own files.
import { chromium } from "playwright-core";

const [, , folder, profile] = process.argv;
const args = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
	"--disable-component-update", "--disable-sync"];
const browser = await chromium.launchPersistentContext(profile, {
	executablePath: "/usr/bin/chromium", headless: true, viewport: { width: 1000, height: 700 }, args,
});
const page = await browser.newPage();
let tests = 0, trouble = [];

page.on("pageerror", error => trouble.push(error.message));
page.on("console", message => message.type() === "error" && trouble.push(message.text()));
page.on("dialog", dialog => { trouble.push("a name has run: " + dialog.message()); dialog.dismiss(); });
page.on("request", request => request.url().startsWith("file:") || trouble.push("fetches " + request.url()));

const open = name => page.goto(`file://${folder}/${name}.svg`);
const shoot = name => process.env.SHOTS && page.screenshot({ path: `${process.env.SHOTS}/${name}.png` });
const text = selector => page.locator(selector).textContent();
// The box of a frame whose label starts so, in pixels.
const frame = label => page.locator("#frames > svg", { has: page.locator(`text:text-matches("^${label}")`) }).first();
const box = label => frame(label).locator("rect").boundingBox();
const shown = () => page.locator("#frames > svg:visible").count();

async function test(name, run) {
	tests++;
	try {
		await run();
		if (trouble.length)
			throw new Error(trouble.join("; "));
		console.log(`ok ${tests} - ${name}`);
	} catch (error) {
		console.log(`not ok ${tests} - ${name}`);
		console.log(String(error.message).replace(/^/gm, "# "));
	}
	trouble = [];
}

function equal(got, want) {
	if (got !== want)
		throw new Error(`got ${JSON.stringify(got)}, not ${JSON.stringify(want)}`);
}

function near(got, want) {
	if (!(Math.abs(got - want) < 2))
		throw new Error(`got ${got}, not ${want}`);
}

await test("flame graph: fills the window, root at the bottom", async () => {
	await open("flame");
	const all = await box("all"), main = await box("main");

	near(all.width, 980);
	near(main.width, 980);
	near(main.y, all.y - 18);
	await shoot("flame");
});

await test("flame graph: tells about the frame under the pointer", async () => {
	await (frame("Frame::draw")).hover();
	equal(await text("#details"), "render::Frame::draw(int): 150ms (83.33%)");
	await (frame("Matrix::mul")).hover();
	equal(await text("#details"), "render::Matrix::mul (inlined): 120ms (66.67%)");
	equal(await frame("Matrix::mul").locator("title").textContent(), await text("#details"));
});

await test("flame graph: a click zooms, the button resets", async () => {
	const before = await shown();

	near((await box("Matrix::mul")).width, 980 * 120 / 180);
	await frame("Matrix::mul").click();
	near((await box("Matrix::mul")).width, 980);
	near((await box("main")).width, 980);
	equal(await page.locator("#frames > svg.above").count(), 3);
	if (await shown() >= before)
		throw new Error("nothing was hidden");
	await shoot("flame-zoomed");
	await page.locator("#reset").click();
	equal(await shown(), before);
	near((await box("Matrix::mul")).width, 980 * 120 / 180);
	equal(await page.locator("#reset").isVisible(), false);
});

await test("flame graph: Escape and 0 reset, a click on the root too", async () => {
	for (const reset of [() => page.keyboard.press("Escape"), () => page.keyboard.press("0"), () => frame("all").click()]) {
		await frame("Matrix::mul").click();
		equal(await page.locator("#reset").isVisible(), true);
		await reset();
		equal(await page.locator("#reset").isVisible(), false);
	}
});

await test("flame graph: search finds, and tells the share", async () => {
	await page.keyboard.press("Control+f");
	await page.keyboard.type("MATRIX|vector");
	equal(await text("#matched"), "Matched 160ms (88.89%)");
	equal(await page.locator("#frames > svg.match").count(), 4);
	await shoot("flame-search");
	await page.keyboard.press("Escape");
	equal(await text("#matched"), "");
	equal(await page.locator("#frames > svg.match").count(), 0);
	await page.keyboard.press("/");
	await page.keyboard.type("nothing like it");
	equal(await text("#matched"), "Matched 0 (0%)");
	await page.locator("#search").fill("(unclosed");
	equal(await page.locator("#search.bad").count(), 1);
	await page.keyboard.press("Escape");
});

await test("flame graph: labels never reach over their frames", async () => {
	for (const width of [1000, 420, 1600]) {
		await page.setViewportSize({ width, height: 700 });
		await page.waitForFunction(w => Math.abs(document.getElementById("frames").getBoundingClientRect().width - w) < 2, width - 20);
		const over = await page.evaluate(() => [...document.querySelectorAll("#frames > svg > text")].filter(
			t => t.textContent && t.getBoundingClientRect().right > t.parentNode.querySelector("rect").getBoundingClientRect().right + 1).length);
		equal(over, 0);
	}
	await page.setViewportSize({ width: 1000, height: 700 });
});

await test("differential flame graph: shows both sides", async () => {
	await open("diff");
	await frame("rec").hover();
	equal(await text("#details"), "rec: 400ms (40%) → 450ms (45%), +50ms (+12.5%)");
	await frame("c").hover();
	equal(await text("#details"), "c: 300ms (30%) → 0 (0%), -300ms (-100%)");
	near((await box("c")).width, 980 * 300 / 1100);
	await page.keyboard.press("/");
	await page.keyboard.type("^a$");
	equal(await text("#matched"), "Matched 300ms (30%) → 250ms (25%), -50ms (-16.67%)");
	await page.keyboard.press("Escape");
	await shoot("diff");
});

await test("flame graph: hostile names are only text", async () => {
	await open("hostile");
	equal(await page.locator("#frames > svg").count(), 8);
	await page.locator("#frames > svg").nth(1).hover();
	equal(await text("#details"), "</text></svg><script>alert(1)</script>: 45 (100%)");
	await shoot("hostile");
});

await test("flame graph: a deep one scrolls, its head stays", async () => {
	await open("deep");
	await page.waitForFunction(() => scrollY > 1000);
	near((await page.locator("#search").boundingBox()).y, 6);
	near((await box("all")).y, 700 - 10 - 18);
});

await test("graph: drag moves, wheel zooms at the pointer, double click and 0 reset", async () => {
	await open("graph");
	const node = page.locator("#node1 polygon").first();
	const home = await node.boundingBox();
	const center = { x: home.x + home.width / 2, y: home.y + home.height / 2 };

	await shoot("graph");
	await page.mouse.move(center.x, center.y);
	await page.mouse.wheel(0, -500);
	const large = await node.boundingBox();
	near(large.x + large.width / 2, center.x);
	near(large.y + large.height / 2, center.y);
	near(large.width, home.width * Math.E);
	await page.mouse.down();
	await page.mouse.move(center.x + 50, center.y + 30, { steps: 3 });
	await page.mouse.up();
	await page.mouse.move(center.x + 90, center.y + 90);
	const moved = await node.boundingBox();
	near(moved.x, large.x + 50);
	near(moved.y, large.y + 30);
	await page.mouse.dblclick(5, 5);
	near((await node.boundingBox()).x, home.x);
	await page.mouse.wheel(0, 300);
	await page.keyboard.press("0");
	near((await node.boundingBox()).width, home.width);
});

console.log(`1..${tests}`);
await browser.close();
