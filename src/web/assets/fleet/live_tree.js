// What the Live page is sent: boxes, and then what changes of them; here they are a picture again.
import { emptyTree, linkTree } from "../flame_tree.js";

const ROOT = [0, "root", "", 0, "", 0];

const heavierFirst = (a, b) => b.total - a.total || (a.fn[1] < b.fn[1] ? -1 : a.fn[1] > b.fn[1] ? 1 : 0);

/** Callers before their callees. */
function inLevels(root) {
	const order = [root];

	for (let i = 0; i < order.length; i++)
		for (const box of order[i].callees)
			order.push(box);
	return order;
}

export class LiveBoxes {
	constructor() {
		this.reset();
	}

	reset() {
		this.boxes = new Map([[0, { fn: ROOT, first: 0, second: 0 }]]);
		this.functions = new Map();
	}

	/** All events have to come here, in their order; kiln-api(7) says what is in them. */
	apply(event) {
		if (event.reset)
			this.reset();
		for (const fn of event.functions)
			this.functions.set(fn[0], fn);
		for (const id of event.gone)
			this.boxes.delete(id);
		for (const [id, parent, number, first, second] of event.new)
			this.boxes.set(id, { parent: this.boxes.get(parent), fn: this.functions.get(number), first, second });
		for (const [id, first, second] of event.changed)
			Object.assign(this.boxes.get(id), { first, second });
		this.head = { type: event.type, unit: event.unit, total: event.total, cut: event.cut };
	}

	/** The boxes in level order, of siblings the heaviest first. */
	sorted() {
		const root = this.boxes.get(0);

		for (const box of this.boxes.values())
			Object.assign(box, { callees: [], total: box.first + box.second });
		for (const box of this.boxes.values())
			box.parent?.callees.push(box);
		for (const box of inLevels(root).reverse()) {
			box.callees.sort(heavierFirst);
			if (box.parent)
				box.parent.total += box.total;
		}
		return inLevels(root);
	}

	/** As decodeFlame gives it. */
	tree() {
		const order = this.sorted(),
			{ type, unit, total, cut } = this.head,
			functions = [...new Set(order.map(box => box.fn))],
			indices = new Map(functions.map((fn, i) => [fn, i]));
		const tree = emptyTree(order.length, { type, unit, total, functions, cut: { nodes: cut, weight: order.reduce((sum, box) => sum + box.second, 0) } });

		order.forEach((box, i) => {
			tree.fn[i] = indices.get(box.fn);
			tree.nchild[i] = box.callees.length;
			tree.self[i] = box.first;
			tree.lost[i] = box.second;
		});
		return linkTree(tree);
	}

	/** As a `top` answer: without callers, a box is a function. */
	top() {
		const rows = [...this.boxes.values()].filter(box => box.parent);

		return { ...this.head, functions: rows.map(box => box.fn), rows: rows.map(box => [box.fn[0], box.first, box.second]) };
	}
}
