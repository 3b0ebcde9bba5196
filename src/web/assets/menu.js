// Menus: arrows, Home, End, first letters, Esc; focus goes back to where it was.
import { h } from "./dom.js";

let openedMenu = null;

/** Closes the open menu, if there is one. */
export function closeMenu(returnFocus = true) {
	if (!openedMenu)
		return;
	const { element, before, owner } = openedMenu;

	openedMenu = null;
	element.remove();
	owner?.setAttribute("aria-expanded", "false");
	if (returnFocus && before instanceof HTMLElement)
		before.focus({ preventScroll: true });
}

function placeMenu(element, where) {
	const box = element.getBoundingClientRect();
	const left = Math.min(where.x, innerWidth - box.width - 8);
	const below = where.y + box.height <= innerHeight - 8;
	const top = below ? where.y : Math.max(8, (where.top ?? where.y) - box.height);

	element.style.left = `${Math.max(8, left)}px`;
	element.style.top = `${top}px`;
}

// A pointer tells where; the menu of a button, and any that comes by a key, opens below its element.
function menuPlace(event, owner) {
	if (!owner && (event.clientX || event.clientY))
		return { x: event.clientX, y: event.clientY };
	const box = (event.currentTarget || event.target).getBoundingClientRect();

	return { x: box.left, y: box.bottom + 2, top: box.top - 2 };
}

function menuItem(action) {
	const run = () => {
		closeMenu();
		action.run();
	};
	const checked = action.checked === undefined ? {} : { "aria-checked": String(Boolean(action.checked)) };

	return h(
		"button",
		{
			type: "button",
			role: "menuitem" + (action.checked === undefined ? "" : action.many ? "checkbox" : "radio"),
			tabindex: -1,
			"aria-disabled": action.disabled ? "true" : null,
			...checked,
			on: { click: () => action.disabled || run() },
		},
		h("span", { class: "label" }, action.label),
		action.key && h("kbd", {}, action.key)
	);
}

function moveInMenu(event, items) {
	const at = items.indexOf(document.activeElement),
		last = items.length - 1;
	const steps = { ArrowDown: at >= last ? 0 : at + 1, ArrowUp: at <= 0 ? last : at - 1, Home: 0, End: last };

	if (event.key in steps)
		return items[steps[event.key]];
	if (event.key.length !== 1)
		return null;
	const letter = event.key.toLowerCase();

	return [...items.slice(at + 1), ...items.slice(0, at + 1)].find(item =>
		item.textContent.trim().toLowerCase().startsWith(letter)
	);
}

/**
 * Opens a menu at an event, or below the element it came from.
 * @param {any} event
 * @param {{label?: string, key?: string, run?: () => void, disabled?: boolean, checked?: boolean, many?: boolean, separator?: boolean, title?: string}[]} actions
 * Of those with `checked` one is, or with `many` any number.
 */
export function openMenu(event, actions, label) {
	const owner =
		event.currentTarget instanceof HTMLElement && event.currentTarget.hasAttribute("aria-haspopup")
			? event.currentTarget
			: null;
	const place = menuPlace(event, owner),
		before = document.activeElement;

	closeMenu(false);
	const element = h(
		"div",
		{ class: "menu", role: "menu", "aria-label": label || "Actions" },
		actions.map(action =>
			action.separator
				? h("div", { role: "separator" })
				: action.title
					? h("div", { class: "title", role: "presentation" }, action.title)
					: menuItem(action)
		)
	);
	const items = [...element.querySelectorAll("button")];

	document.querySelector("main").append(element);
	placeMenu(element, place);
	openedMenu = { element, before, owner };
	owner?.setAttribute("aria-expanded", "true");
	(items.find(item => item.getAttribute("aria-checked") === "true") || items[0])?.focus({ preventScroll: true });
	element.addEventListener("keydown", e => {
		if (e.key === "Escape" || e.key === "Tab")
			closeMenu();
		else if (e.key === "Enter" || e.key === " ")
			return;
		else
			moveInMenu(e, items)?.focus();
		e.preventDefault();
		e.stopPropagation();
	});
	return element;
}

document.addEventListener(
	"pointerdown",
	event => {
		if (openedMenu && !openedMenu.element.contains(/** @type {Node} */ (event.target)))
			closeMenu(false);
	},
	true
);
window.addEventListener("blur", () => closeMenu(false));
window.addEventListener("resize", () => closeMenu(false));
