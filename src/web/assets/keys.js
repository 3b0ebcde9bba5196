// The keys: one table that the dispatcher, the help and the tests read.

/** [keys, action, what it does, group]. Letters without Ctrl can be switched off. */
export const KEY_TABLE = [
	["?", "help", "Help: keys and legend", "General"],
	["/ Ctrl+f", "search", "Search; Ctrl+F again is the browser's own", "General"],
	["1 2 3 4 5 6 7 8 9", "view", "Flame, Top, Graph, Sandwich, Tree, Source, Labels, Peek, Timeline", "General"],
	["i", "inspector", "Show or hide the inspector", "General"],
	[",", "settings", "Settings and saved views", "General"],
	["y", "copyUrl", "Copy the address of what you see", "General"],
	["Ctrl+z", "undo", "Undo the last filter", "General"],
	["Ctrl+Shift+z Ctrl+y", "redo", "Redo it", "General"],
	["ArrowUp ArrowDown", "", "Parent, child", "Flame graph"],
	["ArrowLeft ArrowRight", "", "Sibling to the left, right", "Flame graph"],
	["Home End", "", "First, last sibling", "Flame graph"],
	["Enter", "", "Zoom into the frame", "Flame graph"],
	["Backspace", "", "Zoom out", "Flame graph"],
	["0", "", "Show all again", "Flame graph"],
	["+ -", "", "Zoom in, out", "Flame graph"],
	["Shift+ArrowLeft Shift+ArrowRight Shift+ArrowUp Shift+ArrowDown", "", "Move the view", "Flame graph"],
	["r", "recursion", "Collapse recursion", "Flame graph"],
	["o", "order", "Order by size, name or address", "Flame graph"],
	["f", "focus", "Focus: only stacks with it", "Selected function"],
	["g", "ignore", "Ignore: no stacks with it", "Selected function"],
	["h", "hide", "Hide its frames", "Selected function"],
	["s", "source", "Source", "Selected function"],
	["d", "disasm", "Assembly", "Selected function"],
	["w", "sandwich", "Sandwich: callers and callees", "Selected function"],
	["m", "menu", "Menu", "Selected function"],
	["Ctrl+c", "copyName", "Copy its name", "Selected function"],
	["c", "compare", "Compare two profiles, or two times of one", "Other pages"],
	["x", "swap", "Swap the sides of the comparison", "Other pages"],
	["l", "labels", "Labels", "Other pages"],
	["t", "timeline", "Time axis, where a profile has one", "Other pages"],
	["b", "", "On the time axis: make the chosen time the baseline", "Other pages"],
];

const KEY_SIGNS = { ArrowUp: "↑", ArrowDown: "↓", ArrowLeft: "←", ArrowRight: "→", "-": "−" };

/** A key as people write it. */
export function keyText(key) {
	return key
		.split(/\+(?=.)/)
		.map(
			part =>
				KEY_SIGNS[part] ||
				(part.length === 1 && key.includes("+") && key.length > 1 ? part.toUpperCase() : part)
		)
		.join(" ");
}

/** "Ctrl+z", "Shift+ArrowUp", "?": letters carry their Shift already, unless Ctrl is down too. */
export function keyName(event) {
	const command = event.ctrlKey || event.metaKey,
		letter = event.key.length === 1;
	const key = letter && command ? event.key.toLowerCase() : event.key;

	return (
		(command ? "Ctrl+" : "") +
		(event.altKey ? "Alt+" : "") +
		(event.shiftKey && (!letter || command) ? "Shift+" : "") +
		key
	);
}

function isTyping(target) {
	return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

// Buttons, links and the like have their own use for these.
function belongsToWidget(event) {
	return (
		(event.key === "Enter" || event.key === " ") &&
		event.target instanceof HTMLElement &&
		/^(BUTTON|A|SUMMARY)$/.test(event.target.tagName)
	);
}

function tableActions(rows) {
	const found = new Map();

	for (const [keys, action] of rows)
		for (const key of action ? keys.split(" ") : [])
			found.set(key, action);
	return found;
}

/**
 * Sends keys to the page's own table first, then to the actions.
 * @param {{page: () => any, actions: Record<string, (event: KeyboardEvent, key: string) => any>, enabled: () => boolean, table?: string[][]}} options
 * An action that returns false leaves the key to the browser.
 */
export function listenToKeys(options) {
	const table = tableActions(options.table || KEY_TABLE);

	document.addEventListener("keydown", event => {
		if (event.defaultPrevented || event.isComposing || document.querySelector("dialog[open], [role=menu]"))
			return;
		const name = keyName(event),
			typing = isTyping(event.target);

		if ((typing && name !== "Ctrl+f") || belongsToWidget(event))
			return;
		if (name.length === 1 && !options.enabled())
			return;
		const page = options.page();
		const run = page?.keys?.[name] || options.actions[table.get(name) || ""];

		if (run && run(event, name) !== false)
			event.preventDefault();
	});
}
