// How pages look, by meaning: each of them in light, dark and forced colours, wide, half and as narrow as a phone.
// Pictures to compare with would differ by the machine's fonts. SHOTS=folder keeps screenshots.
import { equal, page, ready, serve, shoot, test } from "./web_lib.mjs";
import { faint, misplaced } from "./web_looks_lib.mjs";

const labels = await serve("labels.pb"), base = await serve("worked_a.pb"), diff = await serve("-diff_base=worked_a.pb", "worked_b.pb");
const PAGES = [["flamegraph", base, "flamegraph?f=main&q=a"], ["diff", diff, "flamegraph"], ["top", base, "top"], ["graph", base, "graph"], ["sandwich", base, "sandwich?fn=a"], ["tree", base, "tree"], ["source", base, "source?fn=a"],
	["labels", labels, "labels?tf=tenant%3Dacme"], ["peek", base, "peek"], ["compare", base, "compare"]];
const THEMES = [["light", { colorScheme: "light", forcedColors: "none" }], ["dark", { colorScheme: "dark", forcedColors: "none" }], ["forced", { colorScheme: "dark", forcedColors: "active" }]];
const WIDTHS = [1400, 800, 360];

const colors = () => [...document.querySelectorAll("main canvas")].filter(canvas => canvas.clientWidth > 200 && canvas.clientHeight > 60).map(canvas => {
	const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data, found = new Set();

	for (let i = 0; i < data.length; i += 4)
		found.add(data[i] << 16 | data[i + 1] << 8 | data[i + 2]);
	return found.size;
});

for (const [name, server, path] of PAGES)
	for (const [theme, media] of THEMES)
		await test(`looks: ${name} in ${theme}`, async () => {
			await page.emulateMedia({ ...media, reducedMotion: "reduce" });
			for (const width of WIDTHS) {
				await page.setViewportSize({ width, height: 800 });
				await page.goto(server + path);
				await ready();
				await page.waitForTimeout(100);
				await shoot(`${name}-${theme}-${width}`);
				equal(await page.evaluate(misplaced), [], `${width} px`);
				if (theme !== "forced")
					equal(await page.evaluate(faint), [], `${width} px, contrast`);
				if (/flamegraph|diff|sandwich/.test(name)) {
					const drawn = await page.evaluate(colors);

					equal([drawn.length > 0, drawn.every(n => n > 8)], [true, true], `${width} px: ${drawn} colours in pictures`);
				}
			}
		});
await page.setViewportSize({ width: 1300, height: 800 });
await page.emulateMedia({ colorScheme: "light", forcedColors: "none", reducedMotion: "reduce" });
