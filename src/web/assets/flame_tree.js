// The call tree as it comes from the server: columns of numbers in level order, no object per node.

class FlameFormatError extends Error {
	constructor(what) {
		super(`The server sent a call tree that cannot be read: ${what}.`);
		this.name = "FlameFormatError";
	}
}

const FLAG_TWO_COLUMNS = 1,
	FLAG_INVERTED = 2,
	FLAG_SPLIT = 4,
	HEAD_BYTES = 12,
	MOST_NODES = 1 << 26;

// Reads n unsigned LEB128 numbers into `out`; returns where the next column starts.
function readColumn(bytes, at, out) {
	const n = out.length,
		end = bytes.length;

	for (let i = 0; i < n; i++) {
		let byte = at < end ? bytes[at++] : 256,
			value = byte & 127;

		if (byte > 127) {
			let factor = 128;

			do {
				if (at >= end || factor > 2 ** 63)
					throw new FlameFormatError("a column ends too early");
				byte = bytes[at++];
				value += (byte & 127) * factor;
				factor *= 128;
			} while (byte > 127);
		}
		out[i] = value;
	}
	return at;
}

function readHeader(bytes) {
	const view = new DataView(bytes.buffer);

	if (bytes.length < HEAD_BYTES || String.fromCharCode(...bytes.subarray(0, 4)) !== "KFLM" || bytes[4] !== 1)
		throw new FlameFormatError("it does not begin with KFLM, version 1");
	const length = view.getUint32(8, true);

	if (HEAD_BYTES + length > bytes.length)
		throw new FlameFormatError("its header is cut off");
	const header = JSON.parse(new TextDecoder().decode(bytes.subarray(HEAD_BYTES, HEAD_BYTES + length)));

	// A node takes at least a byte per column.
	if (!(header.nodes >= 1 && header.nodes <= MOST_NODES && header.nodes * 5 <= bytes.length - HEAD_BYTES - length))
		throw new FlameFormatError(`it says ${header.nodes} nodes, which do not fit`);
	return { header, flags: bytes[5], at: HEAD_BYTES + length };
}

// Children follow each other in level order, so counting finds them.
function linkNodes(tree) {
	const { n, nchild, first, parent, depth, fn } = tree,
		nfunctions = tree.functions.length;
	let next = 1;

	for (let i = 0; i < n; i++) {
		const end = next + nchild[i];

		if (end > n || (i > 0 && i >= next) || fn[i] >= nfunctions)
			throw new FlameFormatError(`node ${i} points outside`);
		first[i] = next;
		for (; next < end; next++) {
			parent[next] = i;
			depth[next] = Math.min(depth[i] + 1, 65535);
		}
	}
	if (next !== n)
		throw new FlameFormatError("some nodes have no parent");
}

function sumTotals(tree, self, lost) {
	const total = new Float64Array(tree.n),
		parent = tree.parent;

	for (let i = 0; i < tree.n; i++)
		total[i] = self[i] + lost[i];
	for (let i = tree.n - 1; i > 0; i--)
		total[parent[i]] += total[i];
	return total;
}

function levelStarts(depth, n) {
	const starts = [];

	for (let i = 0; i < n; i++)
		if (depth[i] >= starts.length)
			starts.push(i);
	starts.push(n);
	return Uint32Array.from(starts);
}

/**
 * @typedef {[number, string, string, number, string, number]} F
 * @typedef {{n: number, fn: Uint32Array, parent: Uint32Array, first: Uint32Array, nchild: Uint32Array, self: Float64Array,
 *   total: Float64Array, lost: Float64Array, selfB?: Float64Array, totalB?: Float64Array, lostB?: Float64Array, inl: Uint8Array,
 *   depth: Uint16Array, levels: Uint32Array, functions: F[], header: any, inverted: boolean, split: boolean}} FlameTree
 * `inl` is the share of a node that was inlined, in per cent; with `split` that is all or nothing.
 */

/** A tree of so many nodes; `fn`, `nchild`, `self` and `lost` are to be filled in, and then linkTree called. */
export function emptyTree(n, header, flags = 0) {
	return {
		n,
		header,
		functions: header.functions || [],
		inverted: Boolean(flags & FLAG_INVERTED),
		split: Boolean(flags & FLAG_SPLIT),
		fn: new Uint32Array(n),
		parent: new Uint32Array(n),
		first: new Uint32Array(n),
		nchild: new Uint32Array(n),
		self: new Float64Array(n),
		lost: new Float64Array(n),
		inl: new Uint8Array(n),
		depth: new Uint16Array(n),
	};
}

/** @returns {FlameTree} what follows from those columns is there, too */
export function linkTree(tree) {
	linkNodes(tree);
	tree.levels = levelStarts(tree.depth, tree.n);
	tree.total = sumTotals(tree, tree.self, tree.lost);
	if (tree.selfB)
		tree.totalB = sumTotals(tree, tree.selfB, tree.lostB);
	return tree;
}

/** @param {ArrayBuffer} buffer @returns {FlameTree} */
export function decodeFlame(buffer) {
	const bytes = new Uint8Array(buffer);
	const { header, flags, at: start } = readHeader(bytes);
	const tree = emptyTree(header.nodes, header, flags);
	const columns = [tree.fn, tree.nchild, tree.self, tree.lost];
	let at = start;

	if (flags & FLAG_TWO_COLUMNS) {
		tree.selfB = new Float64Array(tree.n);
		tree.lostB = new Float64Array(tree.n);
		columns.push(tree.selfB, tree.lostB);
	}
	for (const column of [...columns, tree.inl])
		at = readColumn(bytes, at, column);
	return linkTree(tree);
}

/** What a node weighs in the picture: both sides of a comparison. */
export function weightOf(tree, node) {
	return tree.total[node] + (tree.totalB ? tree.totalB[node] : 0);
}

/** The nodes from the root's child down to this one. @returns {number[]} */
export function pathNodes(tree, node) {
	const path = [];

	for (; node > 0; node = tree.parent[node])
		path.unshift(node);
	return path;
}

// A step of a path: the function's id, and i if there is another that was called.
function stepOf(tree, node) {
	return tree.functions[tree.fn[node]][0] + (tree.split && tree.inl[node] ? "i" : "");
}

/** The path of function ids, as in the URL. */
export function pathOf(tree, node) {
	return pathNodes(tree, node)
		.map(i => stepOf(tree, i))
		.join(".");
}

/** What the server says about a function, as far as this tree knows. */
export function functionFacts(tree, id) {
	const is = node => tree.functions[tree.fn[node]][0] === id,
		callers = new Map(),
		callees = new Map(),
		inside = new Uint8Array(tree.n);
	const add = (map, node, weight) =>
		map.set(tree.functions[tree.fn[node]][0], (map.get(tree.functions[tree.fn[node]][0]) || 0) + weight);
	const heaviest = map => [...map].sort((a, b) => b[1] - a[1]).slice(0, 5);
	let flat = 0,
		cum = 0;

	for (let i = 1; i < tree.n; i++) {
		const parent = tree.parent[i],
			own = is(i);

		inside[i] = own || inside[parent] ? 1 : 0;
		if (own)
			flat += tree.self[i];
		if (own && !inside[parent]) {
			cum += tree.total[i];
			if (parent > 0)
				add(callers, parent, tree.total[i]);
		}
		if (parent > 0 && is(parent) && !own)
			add(callees, i, tree.total[i]);
	}
	return {
		flat,
		cum,
		callers: heaviest(callers),
		callees: heaviest(callees),
		labels: [],
		functions: tree.functions,
		total: tree.header.total,
		unit: tree.header.unit,
	};
}

function childNamed(tree, node, step) {
	const end = tree.first[node] + tree.nchild[node],
		wanted = tree.split ? step : step.replace("i", "");

	for (let i = tree.first[node]; i < end; i++)
		if (stepOf(tree, i) === wanted)
			return i;
	return -1;
}

/** The node at a path; `found` says how many of its steps are there. */
export function findPath(tree, path) {
	const steps = path ? path.split(".") : [];
	let node = 0,
		found = 0;

	for (; found < steps.length; found++) {
		const child = childNamed(tree, node, steps[found]);

		if (child < 0)
			break;
		node = child;
	}
	return { node, found, complete: found === steps.length };
}

/** Which nodes another tree has, too: a byte for each, 0 for the root. */
export function commonNodes(tree, other) {
	const places = new Map(),
		twins = new Uint32Array(tree.n),
		marks = new Uint8Array(tree.n);

	for (let i = 1; i < other.n; i++)
		places.set(`${other.parent[i]} ${stepOf(other, i)}`, i);
	for (let i = 1; i < tree.n; i++) {
		const above = tree.parent[i];

		twins[i] = above && !twins[above] ? 0 : places.get(`${twins[above]} ${stepOf(tree, i)}`) || 0;
		marks[i] = twins[i] ? 1 : 0;
	}
	return marks;
}

// Functions by name, as numbers that can be compared.
function nameRanks(functions) {
	const order = functions
		.map((_, i) => i)
		.sort((a, b) => (functions[a][1] < functions[b][1] ? -1 : functions[a][1] > functions[b][1] ? 1 : a - b));
	const rank = new Uint32Array(functions.length);

	order.forEach((fn, i) => {
		rank[fn] = i;
	});
	return rank;
}

// The nodes of each level from left to right when siblings go by name.
function orderByName(tree) {
	const { n, fn, first, nchild, levels } = tree,
		rank = nameRanks(tree.functions);
	const order = new Uint32Array(n);
	let out = 1;

	for (let level = 0; level + 2 < levels.length; level++)
		for (let k = levels[level]; k < levels[level + 1]; k++) {
			const node = order[k],
				count = nchild[node];
			const children = order.subarray(out, out + count);

			for (let j = 0; j < count; j++)
				children[j] = first[node] + j;
			if (count > 1)
				children.sort((a, b) => rank[fn[a]] - rank[fn[b]]);
			out += count;
		}
	return order;
}

function addColumns(a, b) {
	const sum = new Float64Array(a.length);

	for (let i = 0; i < sum.length; i++)
		sum[i] = a[i] + b[i];
	return sum;
}

// The widths of nodes: one side of a comparison, or both together.
function widthColumns(tree, side) {
	if (tree.widths)
		return tree.widths;
	if (!tree.totalB || side === "a")
		return [tree.total, tree.lost];
	if (side === "b")
		return [tree.totalB, tree.lostB];
	return [addColumns(tree.total, tree.totalB), addColumns(tree.lost, tree.lostB)];
}

/**
 * Where nodes lie: x and w in units of weight from the left edge of the root. `order` has the nodes of
 * each level from left to right (null: they lie in their own order), so levels can be searched.
 * What was cut off (`lost`) begins where the children end; the rest of a node is its self weight.
 * @param {FlameTree} tree
 * @param {string} [by] size or name
 * @param {string} [side] a, b, or both
 */
export function layoutFlame(tree, by, side) {
	const { n, parent } = tree,
		x = new Float64Array(n),
		childEnd = new Float64Array(n);
	const [w, lost] = widthColumns(tree, side),
		order = by === "name" ? orderByName(tree) : null;

	for (let k = 1; k < n; k++) {
		const node = order ? order[k] : k,
			p = parent[node];

		x[node] = childEnd[node] = childEnd[p];
		childEnd[p] += w[node];
	}
	return { x, w, lost, childEnd, order };
}
