// The flame page: what it shows, and every way to move in it.
import { axe, cli, equal, near, open, page, ready, serve, setTheme, shoot, test } from "./web_lib.mjs";
import { click, details, expectStatus, place, pointAt, selected, state, until, width } from "./web_flame_lib.mjs";

const base = await serve("worked_a.pb");
const inlines = await serve("inlines.pb"), hostile = await serve("hostile.pb"), diff = await serve("-diff_base=worked_a.pb", "worked_b.pb");

await test("flame: every frame lies where its weight says", async () => {
	await open(base + "flamegraph");
	const all = await width(), main = await place("main"), rec = await place("main", "rec"), a = await place("main", "a"), b = await place("main", "a", "b");

	near(main.width, all);
	near(rec.width, all * 0.4);
	near(a.width, all * 0.3);
	near(b.width, all * 0.2);
	near(rec.y, main.y + 18);
	near(a.x, rec.x + rec.width);
	equal(await page.evaluate(([x, y]) => window.__ui.nodeAt(x, y), await pointAt("main", "a", "b")), b.node);
	await shoot("flame-light");
});

await test("flame: totals are those of the command line", async () => {
	const sums = await page.evaluate(() => {
		const { tree } = window.__ui, found = {};
		const path = i => i > 0 ? [...path(tree.parent[i]), tree.functions[tree.fn[i]][1]] : [];

		for (let i = 1; i < tree.n; i++)
			if (tree.self[i])
				found[path(i).join(";")] = tree.self[i];
		return found;
	});
	const folded = cli("-folded", "worked_a.pb").trim().split("\n");

	equal(Object.keys(sums).length, folded.length);
	for (const line of folded)
		equal(sums[line.replace(/ \d+$/, "")], Number(/\d+$/.exec(line)[0]), line);
});

await test("flame: tells about the frame under the pointer at once, and more beside it", async () => {
	await page.mouse.move(...await pointAt("main", "a"));
	equal(await details(), "a  a.c:20300ms (30.0%) · self 100ms (10.0%)");
	await page.waitForSelector(".tooltip:visible");
	equal(await page.locator(".tooltip tr").first().textContent(), "Total300ms30.0%");
	await page.keyboard.press("Escape");
	equal(await page.locator(".tooltip:visible").count(), 0);
});

await test("flame: a click zooms, the path leads back, history too", async () => {
	await click("main", "a");
	near((await place("main", "a")).width, await width());
	equal(await page.locator(".crumbs li").allTextContents(), ["all", "main", "a"]);
	equal(await page.locator(".minimap").isVisible(), true);
	equal(await selected(), "a");
	await page.locator(".crumb", { hasText: "main" }).click();
	near((await place("main", "a")).width, await width() * 0.3);
	await page.goBack();
	near((await place("main", "a")).width, await width());
	await page.goBack();
	equal(await state("z"), "");
	await page.goForward();
	near((await place("main", "a")).width, await width());
	await page.locator(".crumb", { hasText: "all" }).click();
	await ready();
	equal(await page.locator(".minimap").isVisible(), false);
});

await test("flame: arrows, Home, End, Enter, Backspace, 0", async () => {
	const steps = [["ArrowDown", "main"], ["ArrowDown", "rec"], ["ArrowRight", "a"], ["ArrowRight", "c"], ["ArrowRight", "c"], ["ArrowLeft", "a"], ["Home", "rec"], ["End", "c"],
		["ArrowUp", "main"], ["ArrowDown", "rec"], ["ArrowRight", "a"], ["ArrowDown", "b"]];

	await open(base + "flamegraph");
	for (const [key, name] of steps) {
		await page.keyboard.press(key);
		equal(await selected(), name, key);
	}
	await page.keyboard.press("Enter");
	equal(await page.locator(".crumbs li").last().textContent(), "b");
	await page.keyboard.press("Backspace");
	equal(await page.locator(".crumbs li").last().textContent(), "a");
	await page.keyboard.press("0");
	equal(await state("z"), "");
});

await test("flame: + and - zoom, Shift and arrows move", async () => {
	await open(base + "flamegraph");
	const before = await place("main", "c");

	await page.keyboard.press("ArrowDown");
	await page.keyboard.press("+");
	await page.keyboard.press("+");
	await until(() => window.__ui.state.x);
	const after = await place("main");
	const left = (await place("main", "a")).x;

	near(after.width, await width());
	await page.keyboard.press("Shift+ArrowLeft");
	if (!((await place("main", "a")).x > left))
		throw new Error("nothing moved");
	await page.keyboard.press("-");
	await page.keyboard.press("-");
	await until(() => !window.__ui.state.x);
	near((await place("main", "c")).width, before.width);
});

await test("flame: Ctrl and wheel zoom at the pointer, the ruler to a range", async () => {
	await open(base + "flamegraph");
	const [x, y] = await pointAt("main", "a"), small = await place("main", "a");

	await page.mouse.move(x, y);
	await page.keyboard.down("Control");
	await page.mouse.wheel(0, -200);
	await page.keyboard.up("Control");
	await until(() => window.__ui.state.x);
	const large = await place("main", "a");

	near(large.x + large.width / 2, x, 3);
	near(large.width, small.width * Math.exp(0.8), 4);
	await page.keyboard.press("0");
	const box = await page.locator(".ruler").boundingBox(), rec = await place("main", "rec");

	await page.mouse.move(rec.x + 1, box.y + 8);
	await page.mouse.down();
	await page.mouse.move(rec.x + rec.width / 2, box.y + 8, { steps: 3 });
	await page.mouse.move(rec.x + rec.width - 1, box.y + 8);
	await page.mouse.up();
	await until(() => window.__ui.state.z);
	near((await place("main", "rec")).width, await width(), 4);
	await page.keyboard.press("0");
});

await test("flame: the accessible twin has the frame, its siblings and children, and speaks", async () => {
	await open(base + "flamegraph");
	await page.keyboard.press("ArrowDown");
	await page.keyboard.press("ArrowDown");
	await page.keyboard.press("ArrowRight");
	const rows = await page.locator("[role=treegrid] [role=row][aria-level]").evaluateAll(all => all.map(row =>
		[row.firstChild.textContent, row.ariaLevel, row.ariaExpanded, row.getAttribute("aria-posinset"), row.getAttribute("aria-setsize")].join(" ")));

	equal(rows, ["rec 3 false 1 3", "a 3 true 2 3", "b 4  1 1", "c 3  3 3"]);
	equal(await page.locator("[role=status]").textContent(), "a, 300ms total, 30.0%, self 100ms, child 2 of 3, depth 2");
	await page.locator("[role=treegrid] [tabindex='0']").focus();
	await page.keyboard.press("ArrowRight");
	equal(await page.evaluate(() => document.activeElement.firstChild.textContent), "c");
});

await test("flame: order, direction, orientation, recursion and colour are in the URL", async () => {
	await open(base + "flamegraph");
	await page.keyboard.press("o");
	equal(await state("ord"), "name");
	const a = await place("main", "a"), rec = await place("main", "rec");

	if (!(a.x < rec.x))
		throw new Error("a comes before rec by name");
	await page.keyboard.press("o");
	await page.keyboard.press("o");
	await page.keyboard.press("r");
	await ready();
	equal(await page.evaluate(() => window.__ui.tree.levels.length - 2), 3);
	await page.keyboard.press("r");
	await page.getByRole("button", { name: "callers", exact: true }).click();
	await ready();
	near((await place("rec")).width, await width() * 0.4);
	await page.getByRole("button", { name: "flame", exact: true }).click();
	const up = await place("rec"), above = await place("rec", "rec");

	near(above.y, up.y - 18);
	await page.getByLabel("Colour by").selectOption("self");
	const url = page.url(), shot = await page.locator(".flame-host").screenshot();

	await open(base + "top");
	await open(url);
	equal(Buffer.compare(await page.locator(".flame-host").screenshot(), shot), 0, "same picture");
});

await test("flame: search marks, counts and walks", async () => {
	await open(base + "flamegraph");
	await page.keyboard.press("/");
	await page.keyboard.type("REC");
	await page.waitForSelector("#search-result:has-text('Nothing matches')");
	await page.keyboard.press("Control+a");
	await page.keyboard.type("rec");
	await page.waitForSelector("#search-result:has-text('1 function')");
	equal(await page.locator("#search-result").textContent(), "1 function · 3 frames · total 40.0% (400ms) · self 40.0%");
	await page.keyboard.press("Enter");
	equal(await selected(), "rec");
	await page.locator(".regexp").click();
	await page.locator(".search input").fill("^[ab]$");
	await page.waitForSelector("#search-result:has-text('2 functions')");
	equal(await page.locator("#search-result").textContent(), "2 functions · 2 frames · total 30.0% (300ms) · self 30.0%");
	await page.locator(".search input").press("Enter");
	await page.locator(".search input").press("Enter");
	equal(await selected(), "b");
	await page.locator(".search input").press("Shift+Enter");
	equal(await selected(), "a");
	await page.locator(".search input").fill("(");
	await page.waitForSelector(".searchbar.bad");
	expectStatus(400);
	await page.locator(".search input").fill("^[ab]$");
	await page.waitForSelector("#search-result:has-text('2 functions')");
	await shoot("flame-search");
	await page.locator(".searchbar").getByRole("button", { name: "Focus" }).click();
	await ready();
	equal([await state("f"), await state("q")], ["^[ab]$", ""]);
	equal(await page.evaluate(() => window.__ui.tree.total[0]), 3e8);
	equal(await page.locator("[aria-invalid]").count(), 0);
});

await test("flame: the menu comes by mouse and key, and closes on Esc", async () => {
	await open(base + "flamegraph");
	await page.mouse.click(...await pointAt("main", "a"), { button: "right" });
	await page.waitForSelector("[role=menu]");
	await axe("menu");
	await page.keyboard.press("Escape");
	equal(await page.locator("[role=menu]").count(), 0);
	await page.keyboard.press("m");
	await page.keyboard.press("ArrowDown");
	await page.keyboard.press("i");
	await page.keyboard.press("Enter");
	await ready();
	equal(await state("i"), "^a$");
});

await test("flame: a long press opens the menu, two fingers zoom", async () => {
	await open(base + "flamegraph");
	const devtools = await page.context().newCDPSession(page), [x, y] = await pointAt("main", "a"), small = await place("main", "a");
	const touch = (type, ...points) => devtools.send("Input.dispatchTouchEvent", { type, touchPoints: points.map(([px, py], id) => ({ x: px, y: py, id })) });

	await devtools.send("Emulation.setTouchEmulationEnabled", { enabled: true, maxTouchPoints: 2 });
	await touch("touchStart", [x, y]);
	await page.waitForSelector("[role=menu]");
	await touch("touchEnd");
	await page.keyboard.press("Escape");
	await touch("touchStart", [x - 20, y], [x + 20, y]);
	for (const apart of [24, 30, 36, 40])
		await touch("touchMove", [x - apart, y], [x + apart, y]);
	await touch("touchEnd");
	await until(() => window.__ui.state.x);
	near((await place("main", "a")).width, small.width * 2, small.width * 0.3);
	await devtools.send("Emulation.setTouchEmulationEnabled", { enabled: false });
	await devtools.detach();
});

await test("flame: what is clicked stays under the pointer, root above or below", async () => {
	for (const name of ["flamegraph", "flamegraph?up=1"]) {
		await open(base + name);
		const { y } = await place("main", "a");

		await click("main", "a");
		equal(await page.locator(".minimap").isVisible(), true);
		near((await place("main", "a")).y, y, 0);
		await shoot(name.includes("up") ? "flame-zoomed-up" : "flame-zoomed");
		await page.getByRole("button", { name: "Reset zoom" }).click();
		await ready();
		near((await place("main", "a")).y, y, 0);
	}
});

await test("flame: a double click shows callers and callees, a slow one too", async () => {
	for (const delay of [0, 300]) {
		await open(base + "flamegraph");
		await page.mouse.dblclick(...await pointAt("main", "a"), { delay });
		await until(() => window.__ui.state.page === "sandwich");
		await ready();
	}
});

await test("flame: a comparison has two sides, signs and its own colours", async () => {
	await open(diff + "flamegraph");
	await page.mouse.move(...await pointAt("main", "rec"));
	equal((await details()).includes("400ms → 450ms, ×1.1; share"), true, await details());
	await shoot("flame-diff");
	await axe("diff");
});

await test("flame: names cannot do harm", async () => {
	for (const name of ["flamegraph", "flamegraph?up=1", "flamegraph?dir=callers"]) {
		await open(hostile + name);
		for (let i = 0; i < 4; i++)
			await page.keyboard.press("ArrowDown");
		await page.keyboard.press("End");
		await page.keyboard.press("m");
		await page.keyboard.press("Escape");
	}
	await open(hostile + "flamegraph?q=%3Cscript%3E&f=%3Cscript%3E&z=1.2.%3Cb%3E&x=zzz");
	await page.waitForTimeout(200);
	expectStatus(400);
	equal(await page.evaluate(() => document.querySelectorAll("main script, main img, main b").length), 0);
	await shoot("flame-hostile");
	const long = await serve("long_name.pb");

	await open(long + "flamegraph");
	await page.keyboard.press("ArrowDown");
	expectStatus(400);
	if ((await page.locator(".inspector .name").textContent()).length > 5000)
		throw new Error("a name of 100 KB is shown whole");
	await open(await serve("deep.pb") + "flamegraph");
	await page.keyboard.press("ArrowDown");
	await open(await serve("empty.pb") + "flamegraph");
	equal(await page.locator(".stage .empty h2").textContent(), "This profile has no samples");
	expectStatus(400);
});

await test("flame: inlined frames are named so", async () => {
	await open(inlines + "flamegraph");
	await page.mouse.move(...await pointAt("main", "render::Frame::draw(int)", "render::Matrix::mul"));
	equal((await details()).includes("(inlined)"), true);
});

for (const theme of ["light", "dark"])
	await test(`flame: axe finds nothing, ${theme}, wide and narrow`, async () => {
		await setTheme(theme);
		await open(inlines + "flamegraph?f=render&q=mul");
		await axe("wide");
		await shoot(`flame-${theme}`);
		await page.setViewportSize({ width: 360, height: 740 });
		await axe("narrow");
		equal(await page.evaluate(() => document.documentElement.scrollWidth <= 360), true, "no sideways scrolling");
		equal(await page.locator(".search input").isVisible(), true);
		await shoot(`flame-${theme}-360`);
		await page.setViewportSize({ width: 1300, height: 800 });
	});

await test("flame: text on every colour has contrast enough", async () => {
	for (const theme of ["light", "dark"]) {
		await setTheme(theme);
		await open(base + "flamegraph");
		const worst = await page.evaluate(() => {
			const light = hex => [1, 3, 5].map(i => parseInt(hex.slice(i, i + 2), 16) / 255).map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
				.reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
			const ratio = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05), palette = window.__ui.colors();
			const colors = [palette.root, palette.run, palette.lost];

			for (let i = 0; i < 3000; i++)
				colors.push(palette.group("package" + i));
			for (let i = -10; i <= 10; i++)
				colors.push(palette.change(i / 10), palette.share(Math.abs(i) / 10));
			return Math.min(...colors.map(color => ratio(color, palette.text)), ratio(palette.fadedText, palette.lost), ratio(palette.fadedText, palette.root));
		});

		if (!(worst >= 4.5))
			throw new Error(`${theme}: ${worst}`);
	}
	await setTheme("light");
});
