// The flame page: how frames are told apart, ordered, coloured and found, and the way to their source.
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { axe, data, equal, kiln, near, open, page, ready, serve, setTheme, shoot, test } from "./web_lib.mjs";
import { children, click, colorAt, details, place, pointAt, selected, state, toggleFrames, until, width } from "./web_flame_lib.mjs";
import { makeProfile } from "./web_proof_lib.mjs";

const base = await serve("worked_a.pb"), recursion = await serve("recursion.pb"), inlined = await serve("called_and_inlined.pb"), unnamed = await serve("mappings.pb"),
	labels = await serve("labels.pb"), diff = await serve("-diff_base=worked_a.pb", "worked_b.pb");
const palette = name => page.evaluate(key => window.__ui.colors()[key], name);
// A corner of a frame, where there is no text.
const cornerOf = async (...names) => {
	const box = await place(...names);

	return colorAt(box.x + 1.5, box.y + box.height - 2);
};

await test("frames: indirect recursion is collapsed, too, and every self weight stays", async () => {
	const facts = () => page.evaluate(() => {
		const { tree } = window.__ui, self = {};
		let repeats = 0;

		for (let i = 1; i < tree.n; i++) {
			self[tree.functions[tree.fn[i]][1]] = (self[tree.functions[tree.fn[i]][1]] || 0) + tree.self[i];
			for (let k = tree.parent[i]; k > 0; k = tree.parent[k])
				repeats += tree.fn[k] === tree.fn[i];
		}
		return { repeats: repeats > 0, self };
	});

	await open(recursion + "flamegraph");
	const before = await facts();

	equal(before.repeats, true);
	await toggleFrames("Collapse direct recursion");
	equal([await state("rc"), (await facts()).repeats], ["1", true]);
	await toggleFrames("Collapse indirect recursion");
	equal([await state("rc"), await facts()], ["2", { ...before, repeats: false }]);
	equal(await page.locator(".frame-chips .chip").allTextContents(), ["recursion: all collapsed"]);
	await page.getByRole("button", { name: "Remove recursion" }).click();
	await ready();
	equal([await state("rc"), await facts()], ["", before]);
});

await test("frames: what is inlined and called is one frame, or two", async () => {
	await open(inlined + "flamegraph");
	await page.mouse.move(...await pointAt("main", "work"));
	equal((await details()).startsWith("work (inlined 70%)  both.c:1010 (100%)"), true, await details());
	await page.waitForSelector(".tooltip:visible >> text=inlined 70%");
	equal(await children("main"), ["work"]);
	await toggleFrames("Separate inlined");
	equal([await state("inl"), await children("main")], ["1", ["work", "work"]]);
	const box = await place("main", "work");

	near(box.width, await width() * 0.7);
	await page.mouse.click(box.x + box.width + 20, box.y + 4);
	await ready();
	equal(await page.locator(".crumbs li").allTextContents(), ["all", "main", "work"]);
	await page.mouse.move(await width() / 2, box.y + 4);
	equal(await details(), "work  both.c:103 (30.0%) · self 1 (10.0%)");
	await page.reload();
	await ready();
	await page.mouse.move(await width() / 2, box.y + 4);
	equal(await details(), "work  both.c:103 (30.0%) · self 1 (10.0%)", "the address leads there again");
	await page.getByRole("button", { name: "Remove inlined" }).click();
	await ready();
	equal([await state("z"), await children("main")], ["", ["work"]]);
});

await test("frames: what has no name is one frame per module, until its addresses are expanded", async () => {
	await open(unnamed + "flamegraph");
	equal(await children("main", "work"), ["[libc.so.6]"]);
	equal(await children("main", "work", "[libc.so.6]"), ["[vdso]", "[kernel.kallsyms]_text"]);
	equal((await page.locator(".banner").textContent()).startsWith("62.5% without names. No names for 1 address in /lib/x86_64-linux-gnu/libc.so.6"), true);
	await shoot("flame-unnamed");
	await axe("groups");
	await click("main", "work", "[libc.so.6]");
	equal(await selected(), "[libc.so.6]");
	await page.keyboard.press("w");
	equal(await page.locator(".toast").textContent(), "This frame has no such view");
	await page.keyboard.press("f");
	await ready();
	equal([await state("f"), await children()], ["^libc\\.so\\.6\\+0x", ["main"]]);
	await open(unnamed + "flamegraph?q=libc");
	equal((await page.locator("#search-result").textContent()).startsWith("1 function · 1 frame"), true);
	await page.getByRole("button", { name: "Expand addresses" }).click();
	await ready();
	equal([await state("addr"), await children("main", "work")], ["1", ["libc.so.6+0x2234"]]);
	equal((await page.locator("#search-result").textContent()).startsWith("1 function · 1 frame"), true);
	await page.getByRole("button", { name: "Remove addresses" }).click();
	await ready();
	equal(await children("main", "work"), ["[libc.so.6]"]);
});

await test("frames: o orders by size, name, address", async () => {
	await open(base + "flamegraph");
	equal(await children("main"), ["rec", "a", "c"]);
	for (const [order, names] of [["name", ["a", "c", "rec"]], ["address", ["a", "c", "rec"]], ["", ["rec", "a", "c"]]]) {
		await page.keyboard.press("o");
		await ready();
		equal([await state("ord"), await children("main")], [order, names]);
	}
	await open(unnamed + "flamegraph?ord=address&dir=callers");
	equal(await page.locator(".toolbar .segmented [aria-pressed=true]").first().textContent(), "by address");
	equal(await children(), ["work", "[unknown]", "[libc.so.6]", "[a name with blanks (deleted)]", "mangled_only", "[kernel.kallsyms]_text", "[vdso]"],
		"in no module, /lib, /tmp, /usr, and what is no file");
});

await test("colours: the legend shows them, and fades all but one", async () => {
	await open(labels + "flamegraph?tr=endpoint");
	await page.getByLabel("Colour by").selectOption("label");
	await page.getByRole("button", { name: "Legend" }).click();
	const names = await page.locator(".colors button").evaluateAll(all => all.map(button => button.childNodes[1].textContent)), [first, second] = await children();

	equal(names.includes(first) && names.includes(second), true, names.join());
	const colors = [await cornerOf(first), await cornerOf(second)];

	equal(colors[0] !== colors[1], true, "two labels, two colours");
	equal(await cornerOf(first, "serve"), colors[0], "frames have the colour of their label");
	await axe("legend");
	const entry = page.locator(".colors button", { hasText: first });

	await entry.click();
	equal([await state("only"), await entry.getAttribute("aria-pressed")], [first, "true"]);
	equal([await cornerOf(first), await cornerOf(second)], [colors[0], await palette("lost")]);
	await shoot("flame-legend");
	const url = page.url();

	await page.evaluate(() => localStorage.clear());
	await open(url);
	equal([await cornerOf(second), await page.locator(".colors").isVisible()], [await palette("lost"), true]);
	await entry.focus();
	await page.keyboard.press("Enter");
	equal([await state("only"), await cornerOf(second)], ["", colors[1]]);
	await page.evaluate(() => localStorage.clear());
});

await test("colours: every way has its legend, also for a comparison", async () => {
	for (const [url, modes] of [[base, ["package", "module", "kind", "self"]], [diff, ["change", "package", "module", "kind", "self"]]]) {
		for (const mode of modes) {
			await open(`${url}flamegraph?col=${mode}`);
			await page.getByRole("button", { name: "Legend" }).click();
			const entries = page.locator(".colors button");

			equal(await page.getByLabel("Colour by").inputValue(), mode);
			await entries.first().click();
			equal(await state("only"), await entries.first().evaluate(button => button.childNodes[1].textContent));
			await page.evaluate(() => localStorage.clear());
		}
		equal(await page.getByLabel("Colour by").locator("option:not([hidden])").evaluateAll(all => all.map(option => option.value).sort()), modes.sort());
	}
	await open(diff + "flamegraph");
	equal(await page.getByLabel("Colour by").inputValue(), "change");
	await page.getByLabel("Colour by").selectOption("self");
	const self = await cornerOf("main");

	await page.getByLabel("Colour by").selectOption("change");
	equal([await state("col"), self !== await cornerOf("main")], ["", true]);
});

await test("settings: rows are low, normal or high", async () => {
	await open(base + "flamegraph");
	for (const height of ["24", "14", "18"]) {
		await page.keyboard.press(",");
		await page.getByLabel("Rows of the flame graph").selectOption(height);
		await page.keyboard.press("Escape");
		await page.waitForSelector("dialog", { state: "detached" });
		const main = await place("main"), rec = await place("main", "rec");

		near(rec.y - main.y, Number(height), 0.1);
		equal(await page.evaluate(([x, y]) => window.__ui.nodeAt(x, y), [rec.x + 5, rec.y + 3]), rec.node);
		await shoot(`flame-rows-${height}`);
	}
	equal(await page.evaluate(() => localStorage.getItem("kiln.row")), null);
});

await test("search: in names, files, modules; used as a filter", async () => {
	await open(base + "flamegraph?q=/src/a.c");
	equal(await page.locator("#search-result").textContent(), "Nothing matches “/src/a.c”");
	await page.locator(".searchbar select").selectOption("file");
	await ready();
	equal([await state("in"), await page.locator("#search-result").textContent()], ["file", "1 function · 1 frame · total 30.0% (300ms) · self 10.0%"]);
	await page.locator(".searchbar select").selectOption("module");
	await page.locator(".search input").fill("prog");
	await ready();
	equal(await page.locator("#search-result").textContent(), "5 functions · 7 frames · total 100% (1s) · self 100%");
	const seen = [];

	for (let i = 0; i < 7; i++) {
		await page.locator(".search input").press("Enter");
		seen.push(await selected());
	}
	equal(seen, ["main", "rec", "rec", "rec", "a", "c", "b"], "by weight");
	for (const [name, key] of [["Ignore", "i"], ["Hide", "h"], ["Focus", "f"]]) {
		await open(base + "flamegraph?q=b.c&in=file");
		await page.locator(".searchbar").getByRole("button", { name }).click();
		await ready();
		equal([await state(key), await state("q"), await state("in")], ["(?i)b\\.c", "", ""]);
	}
	await open(base + "flamegraph?q=prog&in=module");
	await axe("scope");
	await shoot("flame-scope");
});

const folder = mkdtempSync(join(tmpdir(), "kiln-frames-")), tagged = join(folder, "tagged.pb.gz");

writeFileSync(tagged, makeProfile([
	[["main", "a", "leaf"], 50, [["tenant", "acme=1,2"]]], [["main", "b", "leaf"], 30, [["tenant", "umbrella"]]], [["main", "a", "other"], 20],
]));

await test("search: in labels, the frames of samples that have one; used as a filter of labels", async () => {
	const url = await serve(tagged), result = () => page.locator("#search-result").textContent();
	const button = name => page.locator(".searchbar").getByRole("button", { name });

	await open(url + "flamegraph?q=acme");
	equal(await result(), "Nothing matches “acme”");
	await page.locator(".searchbar select").focus();
	await page.keyboard.press("End");
	await ready();
	await until(() => /frames/.test(document.querySelector("#search-result").textContent));
	equal([await state("in"), await result()], ["label", "3 functions · 3 frames · total 50.0% (50) · self 50.0%"]);
	const lost = await palette("lost"), isLit = async (...names) => await cornerOf(...names) !== lost;

	equal([await isLit("main"), await isLit("main", "a"), await isLit("main", "a", "leaf"), await isLit("main", "b"), await isLit("main", "b", "leaf"), await isLit("main", "a", "other")],
		[true, true, true, false, false, false]);
	equal([await button("Focus").isVisible(), await button("Ignore").isVisible(), await button("Hide").isVisible()], [true, true, false]);
	await axe("labels as scope");
	await shoot("flame-scope-label");
	const seen = [];

	for (let i = 0; i < 4; i++) {
		await page.locator(".search input").press("Enter");
		seen.push(await selected());
	}
	equal(seen, ["main", "a", "leaf", "main"], "by weight");
	const address = page.url();

	await page.reload();
	await ready();
	await until(() => /frames/.test(document.querySelector("#search-result").textContent));
	equal([page.url(), await page.locator(".searchbar select").inputValue(), await result()], [address, "label", "3 functions · 3 frames · total 50.0% (50) · self 50.0%"]);
	await open(url + "flamegraph?q=acme=1,2&in=label");
	await button("Focus").click();
	await ready();
	equal([await state("tf"), await state("q"), await state("in"), await children("main")], ["(?i)acme\\x3d1\\x2c2", "", "", ["a"]]);
	await open(url + "flamegraph?q=tenant:umb&in=label&ti=acme");
	await button("Ignore").click();
	await ready();
	equal([await state("ti"), await children("main"), await children("main", "a")], ["acme|(?i)tenant:umb", ["a"], ["other"]]);
	await open(url + "flamegraph?q=u&in=label&tf=tenant");
	await button("Focus").click();
	await ready();
	equal([await state("tf"), await children("main")], ["tenant,(?i)u", ["b"]]);
});

await test("search: in labels that are numbers, of which a filter is a range, or there is none", async () => {
	await open(labels + "flamegraph?q=request:2kb&in=label&si=samples");
	equal(await page.locator("#search-result").textContent(), "3 functions · 3 frames · total 30.0% (9) · self 30.0%");
	await page.locator(".searchbar").getByRole("button", { name: "Focus" }).click();
	await ready();
	equal([await state("tf"), await page.evaluate(() => window.__ui.tree.total[0])], ["request=2048bytes", 9]);
	await open(labels + "top?q=umbrella|latency:250us&in=label&re=1&si=samples");
	equal([await page.locator("#search-result").textContent(), await page.locator(".searchbar .uses").isVisible()],
		["3 functions · total 33.3% (10) · self 33.3%", false]);
	equal((await page.locator("main tbody:not([aria-hidden]) tr").count()), 3);
});

await test("source: a template makes links to an editor or a forge", async () => {
	const editor = await serve("-source_url=vscode://file/{path}:{line}", "worked_a.pb");

	await open(editor + "flamegraph");
	await click("main", "a");
	await page.waitForSelector(".inspector .editor");
	equal(await page.locator(".inspector .editor").evaluate(link => [link.textContent, link.href, link.target]), ["Open in vscode", "vscode://file/src/a.c:20", ""]);
	await axe("link");
	await page.keyboard.press("m");
	await page.getByRole("menuitem", { name: "Open in vscode" }).waitFor();
	await page.keyboard.press("Escape");
	const forge = await serve("-source_url=https://example.com/x/{rel}#L{line}", "worked_a.pb");

	await open(forge + "flamegraph");
	await click("main", "a");
	equal(await page.locator(".inspector .editor").evaluate(link => [link.textContent, link.href, link.target, link.rel]),
		["Open at example.com", "https://example.com/x/src/a.c#L20", "_blank", "noopener noreferrer"]);
	await open(base + "flamegraph");
	await click("main", "a");
	equal(await page.locator(".editor").count(), 0);
});

await test("source: other addresses are refused", async () => {
	for (const url of ["javascript:alert(1)//{path}", "data:text/html,{path}", "{path}", "JavaScript:1", "https", ":x", "blob:x"]) {
		const { status, stderr } = spawnSync(kiln, ["-http=127.0.0.1:0", "-no_browser", `-source_url=${url}`, "worked_a.pb"], { cwd: data, encoding: "utf8", timeout: 10000 });

		equal([status > 0, stderr.includes("-source_url")], [true, true], `${url} ${status} ${stderr}`);
	}
});

await test("frames: the ring of the focus is on all sides, in both themes", async () => {
	for (const theme of ["light", "dark"]) {
		await setTheme(theme);
		await open(base + "flamegraph");
		await page.keyboard.press("ArrowDown");
		await page.evaluate(() => document.querySelector(".skip").focus());
		await page.keyboard.press("Enter");
		await until(() => document.activeElement.closest(".twin"));
		const box = await page.locator(".stage").boundingBox(), shot = await page.screenshot({ clip: box, encoding: "base64" });
		const ring = await page.evaluate(async picture => {
			const image = new Image(), canvas = document.createElement("canvas"), pen = canvas.getContext("2d");

			image.src = `data:image/png;base64,${picture}`;
			await image.decode();
			Object.assign(canvas, { width: image.width, height: image.height });
			pen.drawImage(image, 0, 0);
			const probe = document.createElement("span"), at = (x, y) => [...pen.getImageData(x, y, 1, 1).data.subarray(0, 3)].join();

			probe.style.color = "var(--focus)";
			document.body.append(probe);
			const want = getComputedStyle(probe).color.replace(/[^\d,]/g, ""), { width: w, height: hh } = image;

			probe.remove();
			return [[w >> 1, 1], [w >> 1, hh - 2], [1, hh >> 1], [w - 2, hh >> 1]].map(([x, y]) => at(x, y) === want);
		}, shot.toString("base64"));

		equal(ring, [true, true, true, true], theme);
		const light = hex => [1, 3, 5].map(i => parseInt(hex.slice(i, i + 2), 16) / 255).map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
			.reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
		const [focus, gap] = [await palette("focus"), await palette("gap")].map(light).sort((a, b) => a - b);

		equal((gap + 0.05) / (focus + 0.05) >= 3, true, "contrast with what is beside it");
		await shoot(`flame-ring-${theme}`);
	}
	await setTheme("light");
});

await test("frames: the toolbar works in 360 pixels", async () => {
	await page.setViewportSize({ width: 360, height: 740 });
	await open(unnamed + "flamegraph?tr=x&q=libc&in=module");
	await page.getByRole("button", { name: "Legend" }).click();
	await axe("narrow");
	equal(await page.evaluate(() => document.documentElement.scrollWidth <= 360), true, "no sideways scrolling");
	await shoot("flame-frames-360");
	await page.evaluate(() => localStorage.clear());
	await page.setViewportSize({ width: 1300, height: 800 });
});

rmSync(folder, { recursive: true });
