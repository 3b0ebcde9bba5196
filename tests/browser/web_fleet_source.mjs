// Sources and instructions in the viewer of kiln serve: of a program that was uploaded, and without.
import { axe, cli, equal, open, page, ready, serveStore, setTheme, shoot, test, trouble } from "./web_lib.mjs";
import { push } from "./web_fleet_lib.mjs";
import { closeBrowser, makeProfile } from "./web_proof_lib.mjs";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const folder = mkdtempSync(join(tmpdir(), "kiln-sources-")), program = join(folder, "loop.c"), binary = join(folder, "loop");
const SIDE = encodeURIComponent("service=loop&type=heap&from=2001-01-01T00:00:00Z&to=2100-01-01T00:00:00Z");

writeFileSync(program, `__attribute__((noinline)) int work(int v)
{
	int sum = v;
	for (int i = 0; i < v; i++)
		sum += sum >> 3 ^ i; /* the heart of it */
	return sum;
}

int main(int argc, char **argv)
{
	(void)argv;
	return work(argc);
}
`);
execFileSync("gcc", ["-g", "-O1", "-no-pie", "-Wl,--build-id=sha1", "-o", binary, program]);

/** Bytes of a profile with addresses all over the function, and no names. */
function profile() {
	const read = (tool, ...args) => execFileSync(tool, [...args, binary], { encoding: "utf8" });
	const [, start, size] = /^(\w+) (\w+) T work$/m.exec(read("nm", "-S")).map(text => parseInt(text, 16)), [, id] = /Build ID: (\w+)/.exec(read("readelf", "-n"));
	const lines = Array.from({ length: size - 2 }, (_, i) => `1: 100 [1: 100] @ 0x${(start + i + 1).toString(16)}`), text = join(folder, "heap.txt"), out = join(folder, "heap.pb.gz");

	writeFileSync(text, `heap profile: ${lines.length}: ${lines.length}00 [${lines.length}: ${lines.length}00] @ heapprofile\n${lines.join("\n")}\nMAPPED_LIBRARIES:\n00401000-00402000 r-xp 00001000 00:00 1 /srv/loop\n`);
	cli("-proto", "-symbolize=none", `-buildid=${id}`, `-output=${out}`, text);
	return readFileSync(out);
}

async function serveLoop(...args) {
	const url = await serveStore(...args);

	await push(url, profile(), { service: "loop", type: "heap" });
	cli("debuginfo", "upload", "--to", url.replace(/\/$/, ""), binary);
	return url;
}

const panes = () => page.locator("main .panes table");
const heart = () => panes().first().locator("tr", { hasText: "the heart of it" });

await test("source: a tab of the viewer, with lines and instructions", async () => {
	const url = await serveLoop("--source-path", folder);

	await page.setViewportSize({ width: 1600, height: 1000 });
	await open(`${url}ui/top?a=${SIDE}`);
	await page.getByRole("link", { name: "Source", exact: true }).click();
	await page.waitForURL("**/ui/source?*");
	await ready();
	await heart().waitFor();
	equal(await page.locator(".page-note").count(), 0);
	await shoot("source");
	for (const theme of ["dark", "light"]) {
		await setTheme(theme);
		await axe(`source in ${theme}`);
	}
	await page.getByRole("button", { name: "Beside" }).click();
	await panes().nth(1).locator("tr", { hasText: /sar/ }).first().waitFor();
	await panes().nth(1).locator("tr", { hasText: /loop\.c:5/ }).first().waitFor();
	await shoot("source-beside");
	await axe("instructions");
	equal(trouble, []);
});

await test("source: keys and the menu of a function lead there", async () => {
	const url = await serveLoop("--source-path", folder);

	await open(`${url}ui/disasm?a=${SIDE}&fn=work`);
	await panes().nth(1).locator("tr", { hasText: /loop\.c:5/ }).first().waitFor();
	await open(`${url}ui/top?a=${SIDE}`);
	await page.locator("main table tr", { hasText: "work" }).first().click();
	await page.keyboard.press("s");
	await page.waitForURL("**/ui/source?*");
	await heart().waitFor();
});

await test("source: without --source-path lines have no text, and it is said how they get it", async () => {
	const url = await serveLoop();

	await open(`${url}ui/disasm?a=${SIDE}&fn=work`);
	await page.getByText("The source is not here").waitFor();
	await page.getByText("kiln serve --source-path /src").waitFor();
	equal(await page.getByRole("button", { name: "Try again" }).count(), 0, "nobody but who runs it can say where they are");
	equal(await heart().count(), 0);
	await panes().nth(1).locator("tr", { hasText: /sar/ }).first().waitFor();
	equal(await panes().first().locator("tbody tr.line").count() > 2, true, "lines by their numbers");
	await shoot("source-none");
	await axe("no source");
});

await test("source: an address has none, and what has a name comes first", async () => {
	const url = await serveStore();
	const named = makeProfile([[["main", "libc.so.6+0x3f9c0"], 3e9], [["main", "work"], 1e9]], { type: ["cpu", "nanoseconds"], duration: 10e9 });

	await push(url, profile(), { service: "loop", type: "heap" });
	await open(`${url}ui/source?a=${SIDE}`);
	await page.getByText("No source is known").waitFor();
	await page.getByRole("link", { name: "Why no names?" }).first().waitFor();
	equal(await page.getByRole("button", { name: "Try again" }).count(), 0);
	await axe("an address");
	await push(url, named, { service: "mixed", type: "cpu" });
	await open(`${url}ui/source?a=${SIDE.replace("loop", "mixed").replace("heap", "cpu")}`);
	await page.locator("main h2", { hasText: "work" }).waitFor();
	equal(trouble, []);
});

rmSync(folder, { recursive: true });
await closeBrowser();
