// The Sandwich page: a function between all its callers and all it calls, at one scale.
import { h, clear, copyText } from "./dom.js";
import { button } from "./table.js";
import { cleanName, formatCount } from "./format.js";
import { makeFlame } from "./flame_draw.js";
import { listPage, openFunctionMenu, flameKeys, pageNote } from "./pages.js";

/** The tree of a pivot without the root above it, so that both parts begin with the function. */
export function withoutRoot(tree) {
	const shift = column => column.subarray(1).map(i => i - 1), rest = column => column && column.subarray(1);

	return { ...tree, n: tree.n - 1, fn: rest(tree.fn), parent: shift(tree.parent).fill(0, 0, 1), first: shift(tree.first), nchild: rest(tree.nchild),
		self: rest(tree.self), total: rest(tree.total), lost: rest(tree.lost), inl: rest(tree.inl), depth: shift(tree.depth), levels: shift(tree.levels) };
}

function mountSandwich(el, ctx) {
	const main = h("div", { class: "side-main sandwich" });
	const title = h("h2", { class: "page-title" }), above = h("div", { class: "sandwich-part up" }), below = h("div", { class: "sandwich-part" });
	const centre = h("button", { type: "button", class: "sandwich-centre" });
	let shown = null, flames = [];

	centre.addEventListener("click", event => shown && openFunctionMenu(ctx, shown, event));

	function flame(host, tree, up) {
		const functionOf = node => tree.functions[tree.fn[node]];
		const part = makeFlame(host, ctx, {
			up, hideRoot: true, label: up ? "Callers" : "Callees",
			onClick: node => node >= 0 && pick(functionOf(node)),
			onHover: node => flames.forEach(other => other.highlight(node >= 0 ? functionOf(node)[0] : null)),
			onMenu: (node, event) => openFunctionMenu(ctx, functionOf(node), event),
		});
		part.setTree(tree);
		flameKeys(part, ctx, node => pick(functionOf(node)));
		return part;
	}

	function clearMain() {
		flames.forEach(part => part.destroy());
		flames = [];
		clear(main);
	}

	async function load(top, signal) {
		const id = ctx.state.fn || top.rows[0]?.[0];
		const [callers, callees] = await Promise.all([ctx.api.flame({ pivot: id, dir: "callers" }, { signal }), ctx.api.flame({ pivot: id }, { signal })]);
		const node = callees.nchild[0] ? callees.first[0] : 0, fn = callees.functions[callees.fn[node]];
		const row = top.rows.find(item => item[0] === fn[0]), self = row ? row[1] : callees.self[node], total = callees.total[node];
		const { unit } = callees.header, ncallers = callers.nchild[0] ? callers.nchild[callers.first[0]] : 0;

		clearMain();
		if (!node) {
			main.append(pageNote("The function is not here", h("p", null, "No sample has it, as far as the filters leave samples.")));
			return;
		}
		shown = fn;
		if (ctx.selected?.[0] !== fn[0])
			ctx.select(fn);
		clear(title).append(cleanName(fn[1], 300), h("small", { class: "muted" }, ` self ${ctx.format(self, unit)} (${ctx.percent(self, top.total)}), ` +
			`total ${ctx.format(total, unit)} (${ctx.percent(total, top.total)}), called by ${formatCount(ncallers)} function${ncallers === 1 ? "" : "s"} `),
			button("Copy as text", () => ctx.api.text("peek", { fn: fn[0] }).then(copyText).then(() => ctx.toast("The text of -peek is copied")).catch(error => ctx.error(error)), { class: "btn small" }));
		centre.textContent = cleanName(fn[1], 200);
		centre.style.background = ctx.color(fn);
		main.append(title, h("h3", { class: "sandwich-label" }, "Callers"), above, centre, h("h3", { class: "sandwich-label" }, "Callees"), below);
		flames = [flame(above, withoutRoot(callers), true), flame(below, withoutRoot(callees), false)];
	}

	const page = listPage(el, ctx, main, load, () => {
		centre.style.background = shown ? ctx.color(shown) : "";
		flames.forEach(part => part.restyle());
	});
	const { update, pick } = page;

	return {
		update, keys: {}, get tree() { return flames[1]?.tree; },
		destroy() {
			page.destroy();
			clearMain();
		},
	};
}

export const sandwichPage = { id: "sandwich", title: "Sandwich", mount: mountSandwich };
