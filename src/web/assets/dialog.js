// Dialogs. The browser's own element keeps the focus inside, closes on Esc and gives the focus back.
import { h, iconButton, textButton } from "./dom.js";

export const closeDialogs = () => document.querySelectorAll("dialog").forEach(dialog => dialog.close());

/**
 * @param {{title: string, body: any, class?: string, buttons?: {label: string, primary?: boolean, run?: () => any}[], closed?: () => void}} options
 * A button closes the dialog unless its `run` returns false (or a promise of it).
 * @returns {{element: HTMLDialogElement, close: () => void}}
 */
export function openDialog(options) {
	const titleId = "dialog-title";
	const close = () => element.close();
	const press = async button => {
		if ((await button.run?.()) !== false)
			close();
	};
	const footer = (options.buttons || []).map(button =>
		textButton(button.label, () => press(button), button.primary ? "btn primary" : "btn")
	);
	const element = h(
		"dialog",
		{ class: options.class, "aria-labelledby": titleId },
		h("header", {}, h("h2", { id: titleId }, options.title), iconButton("close", "Close", close)),
		h("div", { class: "body", tabindex: 0 }, options.body),
		footer.length ? h("footer", {}, footer) : null
	);

	element.addEventListener("close", () => {
		element.remove();
		options.closed?.();
	});
	// A click on the shade beside it.
	element.addEventListener("click", event => event.target === element && close());
	element.addEventListener("keydown", event => {
		if (event.key === "Enter" && event.target instanceof HTMLInputElement) {
			event.preventDefault();
			element.querySelector(".btn.primary")?.click();
		}
	});
	document.body.append(element);
	element.showModal();
	(
		element.querySelector("[autofocus]") ||
		element.querySelector("input, select") ||
		element.querySelector("header button")
	).focus();
	return { element, close };
}
