// Requests over HTTP, and what can go wrong with them.

/** What went wrong, as the server says it; `gone` when there was no answer at all. */
export class ApiError extends Error {
	constructor(message, status, gone) {
		super(message);
		this.name = "ApiError";
		this.status = status;
		this.gone = Boolean(gone);
	}
}

/** Whether a request was only given up. */
export function isAbort(error) {
	return error && error.name === "AbortError";
}

/** "a=1&b=2", in the order of the names; what is not set is left out. */
export function queryText(params) {
	const query = new URLSearchParams();

	for (const key of Object.keys(params).sort())
		if (params[key] !== null && params[key] !== undefined && params[key] !== "")
			query.append(key, String(params[key]));
	return query.toString();
}

async function errorOf(response) {
	const text = await response.text().catch(() => "");

	try {
		return new ApiError(JSON.parse(text).error || text, response.status);
	} catch {
		return new ApiError(text.slice(0, 500) || `${response.status} ${response.statusText}`, response.status);
	}
}

/** The response, if it is a good one; else an ApiError. */
export async function send(url, options) {
	let response;

	try {
		response = await fetch(url, options);
	} catch (error) {
		throw isAbort(error) ? error : new ApiError("The server does not answer.", 0, true);
	}
	if (!response.ok)
		throw await errorOf(response);
	return response;
}

/** A signal that fires when one of two does. */
export function eitherSignal(a, b) {
	return a && b ? AbortSignal.any([a, b]) : a || b;
}
