// Runs files of tests one after the other and prints TAP.
// Usage: web.mjs PROFILE FILE..., PROFILE being a folder for the browser's own files.
import { finish } from "./web_lib.mjs";

for (const file of process.argv.slice(3))
	await import("./" + file);
await finish();
