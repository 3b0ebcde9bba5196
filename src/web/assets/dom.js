// Makes DOM elements. Data goes in as text or attributes only, never as markup.

const SVG_NS = "http://www.w3.org/2000/svg";

function setProperty(element, name, value) {
	if (value === undefined || value === null || value === false)
		return;
	if (name === "text")
		element.textContent = value;
	else if (name === "on")
		for (const type of Object.keys(value))
			element.addEventListener(type, value[type]);
	else if (name === "style")
		Object.assign(element.style, value);
	else if (name === "value" || name === "checked")
		element[name] = value;
	else
		element.setAttribute(name, value === true ? "" : String(value));
}

function fillElement(element, properties, children) {
	for (const name of Object.keys(properties || {}))
		setProperty(element, name, properties[name]);
	for (const child of children.flat(3))
		if (child !== null && child !== undefined && child !== false)
			element.append(child);
	return element;
}

/**
 * An element: h("button", {class: "btn", on: {click: run}}, "Run").
 * @param {string} tag
 * @param {Object<string, any>} [properties] attributes; besides them text, value, checked, on, style
 * @param {...any} children nodes or strings; null and false are left out
 * @returns {any}
 */
export function h(tag, properties, ...children) {
	return fillElement(document.createElement(tag), properties, children);
}

/** The same for SVG. @returns {any} */
export function svg(tag, properties, ...children) {
	return fillElement(document.createElementNS(SVG_NS, tag), properties, children);
}

/** Takes all children away. @param {Element} element */
export function clear(element) {
	element.replaceChildren();
	return element;
}

// Strokes in a 16 by 16 box.
const ICONS = {
	compare: "M6 3v10M10 3v10M6 5H2v6h4M10 5h4v6h-4",
	export: "M8 2v8M5 5l3-3 3 3M3 9v4h10V9",
	theme: "M8 2a6 6 0 1 0 0 12zM8 2a6 6 0 0 1 0 12",
	help: "M5.6 6a2.4 2.4 0 1 1 3.6 2.1c-.8.5-1.2.9-1.2 1.9M8 12.6v.4",
	settings: "M2 4.5h7M12 4.5h2M2 11.5h2M7 11.5h7M10.5 3v3M5.5 10v3",
	inspector: "M2 3h12v10H2zM10 3v10",
	undo: "M6 3L3 6l3 3M3 6h6a4 4 0 0 1 0 8H7",
	redo: "M10 3l3 3-3 3M13 6H7a4 4 0 0 0 0 8h2",
	close: "M4 4l8 8M12 4l-8 8",
	plus: "M8 3v10M3 8h10",
	search: "M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9M10.5 10.5L14 14",
	previous: "M4 10l4-4 4 4",
	next: "M4 6l4 4 4-4",
	menu: "M2 4h12M2 8h12M2 12h12",
	back: "M10 3L5 8l5 5",
	more: "M3 8h.01M8 8h.01M13 8h.01",
	down: "M4 6l4 4 4-4",
	warn: "M8 2L1.5 13.5h13zM8 6v4M8 12v.3",
};

/** A drawn sign of 16 pixels; the element around it carries the name. */
export function icon(name) {
	return svg(
		"svg",
		{ class: "icon", viewBox: "0 0 16 16", width: 16, height: 16, "aria-hidden": "true", focusable: "false" },
		svg("path", { d: ICONS[name] || "" })
	);
}

/** A button with a text, or with several children. @returns {HTMLButtonElement} */
export function textButton(label, run, className = "btn small", properties) {
	return h("button", { type: "button", class: className, on: { click: run }, ...properties }, label);
}

/** A button that shows just a sign. @returns {HTMLButtonElement} */
export function iconButton(name, label, run, properties) {
	return textButton(icon(name), run, "icon-btn", { "aria-label": label, title: label, ...properties });
}

/**
 * A row of exclusive choices. set(value) marks another one.
 * @param {string} label
 * @param {{value: string, text: string, title?: string}[]} choices
 * @param {string} current
 * @param {(value: string) => void} choose
 */
export function segmented(label, choices, current, choose) {
	const buttons = choices.map(choice =>
		h(
			"button",
			{
				type: "button",
				title: choice.title,
				"data-value": choice.value,
				on: { click: () => choose(choice.value) },
			},
			choice.text
		)
	);
	const element = h("div", { class: "segmented", role: "group", "aria-label": label }, buttons);

	element.set = value => {
		for (const button of buttons)
			button.setAttribute("aria-pressed", String(button.dataset.value === value));
	};
	element.set(current);
	return element;
}

/** A labelled select. @returns {HTMLLabelElement} */
export function selectField(label, choices, current, choose) {
	const select = h(
		"select",
		{ on: { change: event => choose(event.target.value) } },
		choices.map(choice => h("option", { value: choice.value, selected: choice.value === current }, choice.text))
	);
	const element = h("label", { class: "field" }, h("span", { class: "muted" }, label), select);

	element.set = value => {
		select.value = value;
	};
	return element;
}

/** Texts for the clipboard; older browsers and plain http need the second way. */
export function copyText(text) {
	if (navigator.clipboard && window.isSecureContext)
		return navigator.clipboard.writeText(text);
	const area = h("textarea", { class: "sr-only", value: text, "aria-hidden": "true" });
	const before = /** @type {HTMLElement} */ (document.activeElement);

	document.body.append(area);
	area.select();
	document.execCommand("copy");
	area.remove();
	before?.focus?.({ preventScroll: true });
	return Promise.resolve();
}
