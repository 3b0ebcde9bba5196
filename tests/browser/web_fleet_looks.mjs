// How the pages of kiln serve look: light, dark and forced colours, wide, half and as narrow as a phone.
// SHOTS=folder keeps screenshots.
import { axe, equal, page, ready, shoot, test } from "./web_lib.mjs";
import { EVIL, MINUTES, START, serveFleet } from "./web_fleet_lib.mjs";
import { faint, misplaced } from "./web_looks_lib.mjs";

const url = await serveFleet("--regression-interval", "0", "--fleet-window", "0");
const WINDOW = `from=${START}&to=${START + MINUTES * 60}`;
const PAGES = [["services", "services"], ["timeline", `timeline?service=web&type=cpu&by=version&${WINDOW}&w=${START + 600},${START + 1800}&b=${START},${START + 300}`], ["live", `live?service=web&type=cpu&win=5m&at=${START + 300}`], ["fleet", `fleet?type=cpu&${WINDOW}&by=version`], ["regressions", "regressions?which=all&cmp=1"], ["targets", "targets"], ["storage", "storage"]];
const TARGETS = ["up", "down"].map((state, i) => ({ target: `${i ? EVIL : "web"}-${i}:6060`, service: i ? EVIL : "web", labels: [{ key: "region", value: "eu" }], state, problem: i ? "connection refused" : "", since: null, last: new Date().toISOString(), profiles: [] }));
const THEMES = [["light", { colorScheme: "light", forcedColors: "none" }], ["dark", { colorScheme: "dark", forcedColors: "none" }], ["forced", { colorScheme: "dark", forcedColors: "active" }]];

await page.route("**/api/1/targets*", route => route.fulfill({ json: { jobs: [{ job: "web", problem: "", interval: 60, replicas: 0, up: 1, down: 1, new: 0, targets: TARGETS }] } }));
await fetch(url + "api/1/regressions", { method: "POST" });
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
				if (theme === "forced")
					continue;
				equal(await page.evaluate(faint), [], `${width} px, contrast`);
				await axe(`${width} px`);
			}
		});
await page.unroute("**/api/1/targets*");
await page.setViewportSize({ width: 1300, height: 800 });
await page.emulateMedia({ colorScheme: "light", forcedColors: "none", reducedMotion: "reduce" });
