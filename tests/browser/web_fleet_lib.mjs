// A store with a small fleet in it: two versions of one service, another one, and one whose names mean harm.
import { serveStore } from "./web_lib.mjs";
import { makeProfile } from "./web_proof_lib.mjs";

export const MINUTES = 120, STEP = 5;
/** When the first profiles are of, in seconds: the last of them have just come. */
export const START = Math.floor(Date.now() / 60000) * 60 - MINUTES * 60;
export const EVIL = `<img src=x onerror=alert(1)>"'</script>\u202e`;

export async function push(url, body, { time, ...params }) {
	const query = new URLSearchParams({ ...params, ...(time ? { created_at: new Date(time * 1000).toISOString().slice(0, 19) } : {}) });
	const answer = await fetch(`${url}api/0/profiles?${query}`, { method: "POST", body });

	if (!answer.ok)
		throw new Error(`push: ${answer.status} ${await answer.text()}`);
}

const cpu = (parse, copy, names = ["main", "handle", "parse", "copy"]) => makeProfile([[[names[0], names[1], names[2]], parse], [[names[0], names[1], names[3]], copy]],
	{ type: ["cpu", "nanoseconds"], duration: 10e9 });

/** All of it is pushed; what each minute has is known: see the tests. */
export async function fill(url) {
	const half = cpu(2e9, 3e9), whole = cpu(7e9, 3e9), heap = makeProfile([[["main", "handle"], 4 << 20]], { type: ["inuse_space", "bytes"] });
	const evil = cpu(1e9, 1e9, [EVIL, "b", "c", EVIL + "d"]);

	for (let minute = 0; minute < MINUTES; minute += STEP) {
		const time = START + minute * 60, version = minute < MINUTES / 2 ? "1.0" : "1.1";

		await Promise.all([
			push(url, minute < MINUTES / 2 ? half : whole, { service: "web", type: "cpu", labels: `version=${version},pod=a`, time }),
			push(url, half, { service: "web", type: "cpu", labels: `version=${version},pod=b`, time }),
			push(url, heap, { service: "web", type: "heap", labels: `version=${version},pod=a`, time }),
			push(url, half, { service: "batch", type: "cpu", labels: "version=7,region=eu", time }),
			push(url, evil, { service: EVIL, type: "cpu", labels: `version=${encodeURIComponent(EVIL)}`, time }),
		]);
	}
}

export async function serveFleet(...args) {
	const url = await serveStore(...args);

	await fill(url);
	return url;
}
