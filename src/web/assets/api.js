// Requests to the server, or to the data that a single-file page carries with it.
import { ApiError, eitherSignal, queryText, send } from "./request.js";
import { FILTER_KEYS } from "./state.js";
import { decodeFlame } from "./flame_tree.js";

function fromBase64(text) {
	const binary = atob(text),
		bytes = new Uint8Array(binary.length);

	for (let i = 0; i < binary.length; i++)
		bytes[i] = binary.charCodeAt(i);
	return bytes.buffer;
}

// How much is sent is not a question to a file, which has all there is.
function embedded(data, path, params) {
	const { min, ...rest } = params;
	const query = queryText(rest);
	const found = data[query ? `${path}?${query}` : path];

	if (found === undefined)
		throw new ApiError(
			`not in this file: ${path}${query && "?" + query}; open the profile with kiln -http to see it`,
			404
		);
	return found;
}

const KEPT_TREES = 4;

/**
 * @param {{state: () => any, token: () => string, signal?: AbortSignal, busy?: (n: number) => void, trees?: Map<string, any>}} options
 * `signal` ends all requests; `busy` hears +1 and -1.
 */
export function createApi(options) {
	const data = /** @type {any} */ (window).__KILN_DATA__;
	const trees = options.trees || new Map();

	function withFilters(params) {
		const state = options.state(),
			all = {};

		for (const key of [...FILTER_KEYS, "a"])
			if (key in state)
				all[key] = state[key];
		return Object.assign(all, params);
	}

	async function request(path, params, read, extra) {
		const all = withFilters(params);

		options.busy?.(1);
		try {
			if (data)
				return embedded(data, path, all);
			const query = queryText(all);
			const response = await send("api/v1/" + path + (query && "?" + query), {
				signal: eitherSignal(extra?.signal, options.signal),
				credentials: "same-origin",
			});

			return await read(response);
		} catch (error) {
			throw error.name === "TypeError" ? new ApiError("The answer of the server was cut off.", 0, true) : error;
		} finally {
			options.busy?.(-1);
		}
	}

	async function flame(params, extra) {
		const key = queryText(withFilters(params || {}));
		let tree = trees.get(key);

		if (!tree) {
			const bytes = await request("flame", params || {}, response => response.arrayBuffer(), extra);

			tree = decodeFlame(typeof bytes === "string" ? fromBase64(bytes) : bytes);
		}
		// The map keeps the order of insertion: the first is the one not used for longest.
		trees.delete(key);
		trees.set(key, tree);
		if (trees.size > KEPT_TREES)
			trees.delete(trees.keys().next().value);
		return tree;
	}

	async function write(path, params, body, method) {
		if (data)
			throw new ApiError("This is a file: there is no server that could do it.", 0);
		const query = queryText(params || {});
		const response = await send("api/v1/" + path + (query && "?" + query), {
			method,
			body,
			headers: { "X-Kiln-Token": options.token() },
			signal: options.signal,
			credentials: "same-origin",
		});
		const text = await response.text();

		return text.startsWith("{") ? JSON.parse(text) : text;
	}

	return {
		get: (path, params, extra) => request(path, params || {}, response => response.json(), extra),
		text: (path, params, extra) => request(path, params || {}, response => response.text(), extra),
		flame,
		post: (path, params, body) => write(path, params, body, "POST"),
		remove: (path, params) => write(path, params, undefined, "DELETE"),
		/** The address of a file with the current filters. */
		url: (path, params) => "api/v1/" + path + "?" + queryText(withFilters(params || {})),
	};
}
