// The dialog to share what is seen: addresses, files, pictures.
import { h, copyText } from "./dom.js";
import { openDialog } from "./dialog.js";
import { button, muted, saveFile } from "./table.js";

const EXPORTS = [
	["html", "Web page", "one file that opens without kiln"],
	["pprof", "Profile", "what the filters leave"],
	["original", "Original profile", "without filters"],
	["svg", "Flame graph, SVG", "to zoom and search in a browser"],
	["folded", "Folded stacks", "for flamegraph.pl"],
	["speedscope", "speedscope", "for speedscope.app"],
	["csv", "CSV", "functions with self and total"],
	["dot", "Graph, DOT", "for Graphviz"],
	["graph", "Graph, SVG", "as Graphviz draws it"],
	["text", "Text", "as -top prints it"],
	["raw", "Raw", "every sample as text"],
];

/** The picture on the page as PNG, if there is one. */
function savePicture(ctx, canvas) {
	canvas.toBlob(blob => {
		if (blob)
			saveFile(`${(ctx.profile?.name || "profile").replace(/[^\w.-]+/g, "_")}.png`, "image/png", blob);
	}, "image/png");
}

const saveGraph = ctx => ctx.api.get("graph").then(({ svg }) => saveFile("graph.svg", "image/svg+xml", svg)).catch(error => ctx.error(error));

export function openExportDialog(ctx) {
	const [canvas] = [...document.querySelectorAll("main canvas")].sort((a, b) => b.width * b.height - a.width * a.height);
	const url = h("input", { type: "text", readonly: true, value: location.href, "aria-label": "Address of this view" });
	const item = (title, what, run) => h("li", null, button(title, run), muted(what));

	url.addEventListener("focus", () => url.select());
	openDialog({ title: "Share and export", class: "export-dialog", body: [
		h("div", { class: "page-bar" }, url, button("Copy address", () =>
			copyText(location.href).then(() => ctx.toast("Address copied")), { class: "btn primary" })),
		h("p", { class: "muted" }, "It works as long as this server runs."),
		h("ul", { class: "exports" }, EXPORTS.map(([format, title, what]) => item(title, what, () => format === "graph" ? saveGraph(ctx) : ctx.download(format))),
			canvas ? item("Picture, PNG", "what is drawn on this page now", () => savePicture(ctx, canvas)) : null),
	] });
}
