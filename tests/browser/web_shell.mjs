// What is around the pages: tabs, filters, undo, keys, inspector, dialogs, errors.
import { axe, equal, open, page, ready, serve, shoot, test, trouble } from "./web_lib.mjs";

const base = await serve("worked_a.pb"), heap = await serve("heap.pb");
const state = key => page.evaluate(name => window.__ui.state[name] || "", key);
const chips = () => page.locator(".chips .chip").allTextContents();
const press = async key => {
	await page.keyboard.press(key);
	await ready();
};

await test("shell: title, landmarks, tabs", async () => {
	await open(base);
	equal(await state("page"), "flamegraph");
	equal(await page.title(), "Flame · worked_a.pb · kiln");
	equal([await page.locator("main").count(), await page.locator("h1").count(), await page.locator("nav").count() > 0], [1, 1, true]);
	await page.locator(".tabs a", { hasText: "Top" }).click();
	await ready();
	equal([await state("page"), await page.locator(".tabs [aria-current]").textContent()], ["top", "Top"]);
	await page.goBack();
	await ready();
	equal(await state("page"), "flamegraph");
});

await test("shell: keys 1 to 8, c, l go to the pages", async () => {
	await open(base + "flamegraph");
	for (const [key, name] of [["2", "top"], ["3", "graph"], ["4", "sandwich"], ["5", "tree"], ["6", "source"], ["7", "labels"], ["8", "peek"], ["c", "compare"], ["l", "labels"], ["1", "flamegraph"]]) {
		await press(key);
		equal(await state("page"), name, key);
	}
});

await test("shell: f, g, h filter by the selected function; chips are edited and removed; undo and redo", async () => {
	await open(base + "flamegraph");
	await press("f");
	equal(await page.locator(".toast").textContent(), "Select a function first");
	for (const key of ["ArrowDown", "ArrowDown", "ArrowRight", "f"])
		await press(key);
	equal([await state("f"), await chips()], ["^a$", ["focus: a"]]);
	await press("Control+z");
	equal([await state("f"), await chips()], ["", []]);
	await press("Control+Shift+z");
	equal(await state("f"), "^a$");
	await page.locator(".chip .chip-edit").click();
	await page.keyboard.press("Control+a");
	await page.keyboard.type("rec|^c$");
	await press("Enter");
	equal(await state("f"), "rec|^c$");
	equal(await page.evaluate(() => window.__ui.tree.total[0]), 7e8);
	await page.getByRole("button", { name: /Remove focus/ }).click();
	await ready();
	equal(await chips(), []);
	await press("Control+z");
	equal(await state("f"), "rec|^c$");
	await press("Control+z");
	equal(await state("f"), "^a$");
	await open(base + "flamegraph");
	for (const key of ["ArrowDown", "ArrowDown", "g"])
		await press(key);
	equal([await state("i"), await page.evaluate(() => window.__ui.tree.total[0])], ["^rec$", 6e8]);
	for (const key of ["ArrowDown", "ArrowDown", "h"])
		await press(key);
	equal(await state("h") !== "", true);
	await page.getByRole("button", { name: "Filter", exact: true }).click();
	await page.getByRole("menuitem", { name: /^focus/ }).click();
	await page.keyboard.type("main");
	await press("Enter");
	equal(await state("f"), "main");
	// The selected function may be one that the filters take out.
	trouble.splice(0, trouble.length, ...trouble.filter(text => !text.includes("status of 404")));
});

await test("shell: says which filter took all away", async () => {
	await open(base + "flamegraph?f=nosuchfunction&i=alsonone");
	await page.getByRole("button", { name: /Remove focus: nosuchfunction/ }).last().waitFor();
	equal(await page.locator(".stage .empty h2").textContent(), "No samples are left by the filters");
	await shoot("empty");
	await page.locator(".stage .empty .actions button").first().click();
	await ready();
	equal([await state("f"), await state("i")], ["", "alsonone"]);
	equal(await page.locator(".stage .empty").isVisible(), false);
});

await test("shell: percentages of total, shown, zoom", async () => {
	await open(base + "flamegraph?f=^a$");
	for (const key of ["ArrowDown", "ArrowDown", "ArrowDown"])
		await press(key);
	equal((await page.locator(".details .amount").textContent()).slice(0, 13), "200ms (20.0%)");
	await page.locator(".base button", { hasText: "shown" }).click();
	equal((await page.locator(".details .amount").textContent()).slice(0, 13), "200ms (66.7%)");
	equal(await state("pct"), "shown");
	await page.locator("[role=treegrid] [tabindex='0']").focus();
	await press("Enter");
	await page.locator(".base button", { hasText: "zoom" }).click();
	equal((await page.locator(".details .amount").textContent()).slice(0, 12), "200ms (100%)");
});

await test("shell: sample types are switched and marked", async () => {
	await open(heap + "flamegraph");
	const select = page.getByLabel("Sample type"), options = await page.evaluate(async () => (await (await fetch("api/v1/meta")).json()).profiles[0].types.map(type => type.type));

	if (options.length > 3) {
		await select.selectOption(options[0]);
		await ready();
		equal(await select.inputValue(), options[0]);
	} else {
		await select.getByRole("button", { name: options[0] }).click();
		await ready();
		equal(await select.locator("[aria-pressed=true]").textContent(), options[0]);
	}
	equal(await state("si"), options[0]);
});

await test("shell: the inspector tells all about a function, i hides it", async () => {
	await open(base + "flamegraph");
	for (const key of ["ArrowDown", "ArrowDown", "ArrowRight"])
		await press(key);
	await page.waitForSelector(".inspector h3:has-text('Callers')");
	equal(await page.locator(".inspector .name").textContent(), "a");
	equal(await page.locator(".inspector .relatives li").first().textContent(), "main300ms100%");
	await page.locator(".inspector .relatives button", { hasText: "b" }).click();
	await page.waitForSelector(".inspector .name:text-is('b')");
	await axe("inspector");
	await press("i");
	equal(await page.locator(".inspector").isVisible(), false);
	await press("i");
	equal(await page.locator(".inspector").isVisible(), true);
});

await test("shell: s, d, w open source, assembly and sandwich of the selected function", async () => {
	for (const [key, name] of [["s", "source"], ["d", "disasm"], ["w", "sandwich"]]) {
		await open(base + "flamegraph");
		for (const step of ["ArrowDown", "ArrowDown", key])
			await press(step);
		equal([await state("page"), await state("fn") !== ""], [name, true], key);
	}
});

await test("shell: help and settings are dialogs that keep the focus; Esc closes", async () => {
	await open(base + "flamegraph");
	for (const key of ["?", ","]) {
		await press(key);
		await page.waitForSelector("dialog[open]");
		await axe(key);
		for (let i = 0; i < 40; i++)
			await page.keyboard.press("Tab");
		equal(await page.evaluate(() => document.activeElement === document.body || Boolean(document.activeElement.closest("dialog"))), true);
		await page.keyboard.press("Escape");
		await page.waitForSelector("dialog", { state: "detached" });
	}
});

await test("shell: single-letter keys can be switched off", async () => {
	await press(",");
	await page.getByLabel("Single-letter keys").uncheck();
	await page.keyboard.press("Escape");
	await press("2");
	equal(await state("page"), "flamegraph");
	await press("Control+f");
	equal(await page.evaluate(() => document.activeElement.type), "search");
	await page.keyboard.press("Escape");
	await page.evaluate(() => localStorage.clear());
});

await test("shell: y copies the address, Ctrl+C the name", async () => {
	await open(base + "flamegraph?f=a");
	await press("y");
	equal(await page.evaluate(() => navigator.clipboard.readText()), page.url());
	await press("ArrowDown");
	await press("Control+c");
	await page.waitForFunction(() => document.querySelector(".toast").textContent === "Name copied");
	equal(await page.evaluate(() => navigator.clipboard.readText()), "main");
});

await test("shell: theme is switched and kept", async () => {
	await open(base + "flamegraph");
	await page.getByRole("button", { name: "Light or dark" }).click();
	equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");
	await page.reload();
	await ready();
	equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");
	await page.evaluate(() => localStorage.clear());
});

await test("shell: any state in a URL is opened again", async () => {
	// The browser smooths its own text as it likes; what is drawn here is the same to the pixel.
	const seen = () => page.evaluate(() => new Promise(resolve => requestAnimationFrame(() => setTimeout(() =>
		resolve([JSON.stringify(window.__ui.state), document.body.innerText, ...[...document.querySelectorAll("canvas")].map(canvas => canvas.toDataURL())])))));
	let seed = 7;
	const random = n => (seed = seed * 1103515245 + 12345 & 0x7fffffff) % n, some = list => list[random(list.length)];

	for (let i = 0; i < 12; i++) {
		const query = new URLSearchParams();

		for (const [key, values] of [["f", ["", "a", "main|rec"]], ["h", ["", "^b$"]], ["ord", ["", "name"]], ["up", ["", "1"]], ["dir", ["", "callers"]], ["rc", ["", "1"]], ["col", ["", "module", "self"]],
			["pct", ["", "shown", "zoom"]], ["q", ["", "a", "re"]], ["x", ["", "0.25-0.5"]], ["unit", ["", "us"]], ["unknown", ["", "kept & <b>"]]]) {
			const value = some(values);

			if (value)
				query.set(key, value);
		}
		await open(`${base}flamegraph?${query}`);
		const first = await seen(), url = page.url();

		await open(base + "peek");
		await open(url);
		equal(await seen(), first);
	}
});

await test("shell: an error of the server is told, and tried again", async () => {
	await open(base + "flamegraph");
	await page.route("**/api/v1/flame*", route => route.abort());
	await page.evaluate(() => document.querySelector(".segmented [data-value=callers]").click());
	await page.waitForSelector(".errorbar:visible");
	equal(await page.locator(".errorbar span").textContent(), "The server does not answer.");
	equal(await page.evaluate(() => window.__ui.tree.n > 1), true, "the picture stays");
	await page.unroute("**/api/v1/flame*");
	await page.locator(".errorbar button", { hasText: "Try again" }).click();
	await ready();
	equal(await page.locator(".errorbar").isVisible(), false);
	trouble.length = 0;
});

await test("shell: a tree that makes no sense is refused", async () => {
	for (const body of [Buffer.alloc(0), Buffer.from("KFLM\x01\0\0\0\xff\xff\xff\x7f", "latin1"), Buffer.from('KFLM\x01\0\0\0\x0b\0\0\0{"nodes":9}' + "\0".repeat(45), "latin1"), Buffer.from("<html>")]) {
		await page.route("**/api/v1/flame*", route => route.fulfill({ body }));
		await page.goto(base + "flamegraph");
		await page.waitForSelector(".errorbar:visible");
		equal((await page.locator(".errorbar span").textContent()).startsWith("The server sent a call tree that cannot be read"), true);
		await page.unroute("**/api/v1/flame*");
	}
});

await test("shell: narrow windows have the views in a menu, forced colours show", async () => {
	await page.setViewportSize({ width: 360, height: 740 });
	await open(base + "flamegraph");
	await page.locator(".pages").click();
	await page.getByRole("menuitemradio", { name: "Top" }).click();
	await ready();
	equal(await state("page"), "top");
	await page.setViewportSize({ width: 1300, height: 800 });
	await page.emulateMedia({ forcedColors: "active", reducedMotion: "reduce" });
	await open(base + "flamegraph?f=main");
	await axe("forced colours");
	await page.emulateMedia({ forcedColors: "none", reducedMotion: "reduce" });
});
