// How the pages of kiln serve look: light, dark and forced colours, wide, half and as narrow as a phone.
// SHOTS=folder keeps screenshots.
import { equal, page, ready, shoot, test } from "./web_lib.mjs";
import { MINUTES, START, serveFleet } from "./web_fleet_lib.mjs";
import { faint, misplaced } from "./web_looks_lib.mjs";

const url = await serveFleet();
const WINDOW = `from=${START}&to=${START + MINUTES * 60}`;
const PAGES = [["services", "services"], ["timeline", `timeline?service=web&type=cpu&by=version&${WINDOW}&w=${START + 600},${START + 1800}&b=${START},${START + 300}`], ["storage", "storage"]];
const THEMES = [["light", { colorScheme: "light", forcedColors: "none" }], ["dark", { colorScheme: "dark", forcedColors: "none" }], ["forced", { colorScheme: "dark", forcedColors: "active" }]];

for (const [name, path] of PAGES)
	for (const [theme, media] of THEMES)
		await test(`looks: ${name} in ${theme}`, async () => {
			await page.emulateMedia({ ...media, reducedMotion: "reduce" });
			for (const width of [1400, 800, 360]) {
				await page.setViewportSize({ width, height: 800 });
				await page.goto(url + path);
				await ready();
				await page.waitForTimeout(100);
				await shoot(`fleet-${name}-${theme}-${width}`);
				equal(await page.evaluate(misplaced), [], `${width} px`);
				if (theme !== "forced")
					equal(await page.evaluate(faint), [], `${width} px, contrast`);
			}
		});
await page.setViewportSize({ width: 1300, height: 800 });
await page.emulateMedia({ colorScheme: "light", forcedColors: "none", reducedMotion: "reduce" });
