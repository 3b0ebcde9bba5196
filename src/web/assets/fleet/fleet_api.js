// Requests to the API of kiln serve, below api/1/: see kiln-api(7).
import { eitherSignal, queryText, send } from "../request.js";

/** "api/1/series?by=version&service=web" */
export function apiUrl(path, params) {
	const query = queryText(params || {});

	return "api/1/" + path + (query && "?" + query);
}

/**
 * @param {{signal?: AbortSignal, busy?: (n: number) => void}} options `signal` ends all requests; `busy` hears +1 and -1.
 */
export function createFleetApi(options) {
	async function request(path, params, extra) {
		options.busy?.(1);
		try {
			const response = await send(apiUrl(path, params), {
				method: extra?.method,
				signal: eitherSignal(extra?.signal, options.signal),
				credentials: "same-origin",
				headers: { Accept: "application/json" },
			});

			return await response.json();
		} finally {
			options.busy?.(-1);
		}
	}

	return {
		get: request,
		post: (path, params, extra) => request(path, params, { ...extra, method: "POST" }),
	};
}
