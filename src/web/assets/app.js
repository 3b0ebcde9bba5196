// Starts the page: header, state bar, the page of the URL, inspector; and makes `ctx`, through which
// pages reach all of it.
import { h, clear, copyText, icon, iconButton, segmented, selectField, textButton } from "./dom.js";
import { createStore, isSingleFile, parseState, sameFilters, stateUrl, storage, FILTER_KEYS } from "./state.js";
import { createApi } from "./api.js";
import { Frame, showStartError } from "./frame.js";
import { groupOf } from "./colors.js";
import { cleanName, exactPattern, formatPercent, formatValue, plainName, shortName } from "./format.js";
import { openMenu } from "./menu.js";
import { openDialog } from "./dialog.js";
import { keyText, listenToKeys } from "./keys.js";
import { createStateBar } from "./chips.js";
import { createSearch } from "./search.js";
import { createInspector, editorLink, factList } from "./inspector.js";
import { openHelp } from "./help.js";
import { openSettings } from "./settings.js";
import { flamePage } from "./flame.js";
import { topPage } from "./top.js";
import { treePage } from "./tree.js";
import { sandwichPage } from "./sandwich.js";
import { graphPage } from "./graph.js";
import { peekPage } from "./peek.js";
import { sourcePage } from "./source.js";
import { labelsPage } from "./labels.js";
import { comparePage, openFile } from "./compare.js";
import { timelinePage } from "./later.js";
import { openExportDialog } from "./export.js";

const PAGES = {
	flamegraph: flamePage,
	top: topPage,
	graph: graphPage,
	sandwich: sandwichPage,
	tree: treePage,
	source: sourcePage,
	disasm: sourcePage,
	labels: labelsPage,
	peek: peekPage,
	compare: comparePage,
	timeline: timelinePage,
};

/** The tabs, in the order of the keys 1 to 9. */
const TABS = [
	["flamegraph", "Flame"],
	["top", "Top"],
	["graph", "Graph"],
	["sandwich", "Sandwich"],
	["tree", "Tree"],
	["source", "Source"],
	["labels", "Labels"],
	["peek", "Peek"],
	["timeline", "Timeline"],
];

// What a single file has the data for.
const FILE_PAGES = ["flamegraph", "top", "tree", "labels"];

class App extends Frame {
	constructor(meta) {
		super(PAGES);
		this.meta = meta;
		this.store = createStore((state, before) => this.changed(state, before));
		this.trees = new Map();
		this.functions = new Map();
		this.ctx = this.makeContext();
		this.build();
		this.mount();
		this.updateAll();
	}

	shownTabs() {
		return TABS.filter(([page]) =>
			isSingleFile() ? FILE_PAGES.includes(page) : page !== "timeline" || this.ctx.profile?.ticks
		);
	}

	// ---- what pages see

	makeContext() {
		const app = this,
			store = this.store;
		const ctx = {
			get meta() {
				return app.meta;
			},
			get state() {
				return store.state;
			},
			get profile() {
				const profiles = app.meta.profiles || [];

				return profiles.find(p => String(p.id) === (store.state.a || "0")) || profiles[0];
			},
			get canUndo() {
				return store.canUndo;
			},
			get canRedo() {
				return store.canRedo;
			},
			get palette() {
				return app.palette;
			},
			get theme() {
				return app.palette.theme;
			},
			/** Whether what has no name is one frame per module, as a parameter of requests. */
			get groups() {
				const { page, addr } = store.state;

				return page === "flamegraph" && !addr && !isSingleFile() && app.meta.profiles.some(p => p.has_unnamed)
					? 1
					: "";
			},
			selected: null,
			selectedFrame: null,
			search: null,
			total: null,
			storage,
			set: (changes, options) => store.set(changes, options),
			filter: (key, value) => store.filter({ [key]: value }),
			filters: changes => store.filter(changes),
			undo: () => app.undo("undo"),
			redo: () => app.undo("redo"),
			go: (page, changes) => store.set({ ...changes, page }),
		};

		ctx.api = createApi({ state: () => store.state, token: () => this.meta.token || "", trees: this.trees });
		return Object.assign(ctx, this.dataContext(ctx), this.uiContext(ctx));
	}

	dataContext(ctx) {
		return {
			format: (value, unit) =>
				formatValue(this.divided(value), unit ?? ctx.total?.unit ?? ctx.sampleType()?.unit ?? "", ctx.state.unit),
			percent: formatPercent,
			color: fn => this.palette.group(groupOf(fn, "package")),
			functionById: id => this.functions.get(id),
			learn: functions => functions.forEach(fn => this.functions.set(fn[0], fn)),
			sampleType: () => this.sampleType(),
			setTotal: total => this.setTotal(total),
			recount: () => this.search.recount(),
			countFrames: () => this.page?.countFrames?.() ?? -1,
			searchNext: step => this.page?.searchNext?.(step),
			select: (fn, frame) => this.select(fn, frame),
			addFilter: (key, pattern, changes) => this.addFilter(key, pattern, changes),
			actions: fn => this.actions(fn),
			download: format => this.download(format),
			reloadMeta: async () => {
				this.meta = await ctx.api.get("meta", { b: ctx.state.b });
				this.header.replaceWith((this.header = this.makeHeader()));
				this.updateAll();
			},
		};
	}

	uiContext(ctx) {
		return {
			menu: (event, actions, label) => openMenu(event, actions, label),
			announce: text => {
				this.live.textContent = text;
			},
			toast: text => this.showToast(text),
			error: (error, retry, owner) => this.showError(error, retry, owner),
			crumbs: items => this.stateBar.crumbs(items),
			toggleInspector: () => this.toggleInspector(),
			focusPage: () => (this.page?.focus ? this.page.focus() : this.pageElement.focus({ preventScroll: true })),
			refresh: () => this.updateAll(),
		};
	}

	// As -divide_by does it on the command line: what was added up is divided.
	divided(value) {
		const by = this.meta.divide_by;

		return by > 0 && by !== 1 ? Math.trunc(value / by) : value;
	}

	sampleType() {
		const types = this.ctx.profile?.types || [],
			wanted = this.store.state.si ?? this.ctx.profile?.default_type;

		return types.find(type => type.type === wanted) || types[Number(wanted)] || types[types.length - 1];
	}

	setTotal(total) {
		if (JSON.stringify(total) === JSON.stringify(this.ctx.total))
			return;
		this.ctx.total = total;
		this.search.recount();
		this.inspector.update(this.dataKey());
	}

	select(fn, frame) {
		this.ctx.selected = fn;
		this.ctx.selectedFrame = frame || null;
		if (fn)
			this.functions.set(fn[0], fn);
		this.page?.update?.(this.store.state);
		this.inspector.update(this.dataKey());
	}

	// What ignores and hides is added to what already does, and labels to those asked for; the others replace. So
	// do ranges of labels, which stand alone.
	addFilter(key, pattern, changes) {
		const before = this.store.state[key],
			join = { i: "|", h: "|", ti: "|", tf: "," }[key],
			isAlone = key[0] === "t" && (/=|^[:+-]?\d/.test(`${before}${pattern}`) || (key === "ti" && /,/.test(before)));

		// What is taken out cannot stay selected.
		if (key === "i" || key === "h")
			this.ctx.selected = this.ctx.selectedFrame = null;
		this.store.filter({ ...changes, [key]: before && join && !isAlone ? before + join + pattern : pattern });
	}

	undo(way) {
		if (!this.store[way]())
			this.showToast(`Nothing to ${way}`);
	}

	actions(fn) {
		const exact = exactPattern(fn),
			ctx = this.ctx,
			isGroup = fn[5] & 8,
			frame = ctx.selected === fn ? ctx.selectedFrame : null,
			editor = editorLink(ctx, fn[2], fn[3]);
		const copy = (text, what) => copyText(text).then(() => ctx.toast(`${what} copied`));
		const plain = plainName(fn[1]),
			short = shortName(fn[1]);

		return [
			frame?.path && {
				label: "Zoom to this frame",
				key: "Enter",
				run: () => ctx.go("flamegraph", { z: frame.path, x: null }),
			},
			!isGroup && {
				label: "Sandwich: callers and callees",
				key: "w",
				run: () => ctx.go("sandwich", { fn: fn[0], z: null, x: null }),
			},
			!isGroup && { label: "Source", key: "s", run: () => ctx.go("source", { fn: fn[0] }) },
			!isGroup && { label: "Assembly", key: "d", run: () => ctx.go("disasm", { fn: fn[0] }) },
			editor && { label: editor.textContent, url: editor.href, run: () => editor.click() },
			{ separator: true },
			{ label: "Focus", key: "f", run: () => this.addFilter("f", exact) },
			{ label: "Ignore", key: "g", run: () => this.addFilter("i", exact) },
			{ label: "Hide: merge into its caller", key: "h", run: () => this.addFilter("h", exact) },
			{ label: "Show from here", run: () => this.addFilter("sf", exact) },
			{ label: "Start the graph here", run: () => ctx.go("flamegraph", { p: exact, z: null, x: null }) },
			frame && {
				label: ctx.state.rc ? "Show recursion" : "Collapse recursion",
				key: "r",
				run: () => ctx.set({ rc: ctx.state.rc ? null : 1 }),
			},
			{ separator: true },
			{ label: "Copy name", key: keyText("Ctrl+c"), run: () => copy(fn[1], "Name") },
			plain !== fn[1] && { label: "Copy without arguments", run: () => copy(plain, "Name") },
			short !== fn[1] && short !== plain && { label: "Copy short name", run: () => copy(short, "Name") },
			frame?.stack && { label: "Copy stack", run: () => copy(frame.stack(), "Stack") },
		].filter(action => action && (!isSingleFile() || /^(Copy|Zoom|Open)/.test(action.label)));
	}

	download(format) {
		const link = h("a", { href: this.ctx.api.url("export/" + format), download: "" });

		document.body.append(link);
		link.click();
		link.remove();
	}

	// ---- the parts of the page

	build() {
		const ctx = this.ctx;

		this.stateBar = createStateBar(ctx);
		this.search = createSearch(ctx, found => {
			ctx.search = found;
			this.page?.update?.(this.store.state);
		});
		this.inspector = createInspector(ctx);
		this.inspector.element.hidden = (storage.get("inspector") || (innerWidth < 1100 ? "off" : "on")) === "off";
		this.stale = textButton(
			[icon("warn"), "Stale: the server has another profile now. Load it"],
			() => location.reload(),
			"btn small stale",
			{ hidden: true }
		);
		this.stateBar.element.append(this.stale);
		this.header = this.makeHeader();
		this.main = h("main", { id: "main", tabindex: -1 });
		document.body.append(
			this.skipLink("Skip to the profile", ctx.focusPage),
			this.header,
			this.stateBar.element,
			this.search.row,
			this.errorBar,
			h("div", { class: "work" }, this.busyBar, this.main, this.inspector.element),
			this.toast,
			this.live
		);
		this.listen();
	}

	makeHeader() {
		const ctx = this.ctx,
			p = ctx.profile;
		const title = cleanName(this.meta.title || p?.name || "profile", 80);
		const tabs = h(
			"nav",
			{ class: "tabs", "aria-label": "Views" },
			this.shownTabs().map(([page, text], i) =>
				h(
					"a",
					{
						href: stateUrl({ ...this.store.state, page }),
						"data-page": page,
						title: `${text} (${i + 1})`,
						on: { click: event => this.clickTab(event, page) },
					},
					text
				)
			)
		);
		const pageMenu = textButton(
			"",
			event =>
				openMenu(
					event,
					this.shownTabs().map(([page, text], i) => ({
						label: text,
						key: String(i + 1),
						checked: this.store.state.page === page,
						run: () => ctx.go(page),
					})),
					"Views"
				),
			"btn pages",
			{ "aria-haspopup": "menu", "aria-expanded": "false" }
		);

		this.tabs = tabs;
		this.pageMenu = pageMenu;
		return h(
			"header",
			{ class: "top" },
			this.meta.home &&
				h("a", { class: "home", href: this.homeUrl(), title: "To the timeline of this selection" }, icon("back"), h("span", { class: "sr-only" }, "Timeline")),
			h(
				"h1",
				{},
				textButton(
					[
						h("span", { class: "mark", "aria-hidden": "true" }),
						h("span", { class: "title" }, title),
					],
					() => openDialog({ title: "About this profile", body: factList(ctx) }),
					"brand",
					{ title: "About this profile" }
				)
			),
			tabs,
			pageMenu,
			h("span", { class: "spacer" }),
			this.makeTypes(p),
			this.search.form,
			h(
				"div",
				{ class: "tools" },
				!isSingleFile() && [
					iconButton("compare", "Compare (c)", () => ctx.go("compare")),
					iconButton("export", "Share and export", () => openExportDialog(ctx)),
				],
				iconButton("settings", "Settings (,)", () => openSettings(ctx)),
				iconButton("theme", "Light or dark", () => this.switchTheme()),
				iconButton("inspector", "Inspector (i)", () => this.toggleInspector(), {
					"aria-pressed": "false",
				}),
				iconButton("help", "Help (?)", () => openHelp(ctx))
			)
		);
	}

	/** The timeline of what is shown. */
	homeUrl() {
		const { a, si } = this.store.state;

		return `${this.meta.home}timeline?${a}${si ? `&st=${encodeURIComponent(si)}` : ""}`;
	}

	makeTypes(profile) {
		const types = profile?.types || [];
		const current = this.sampleType()?.type;
		const choices = types.map(type => ({
			value: type.type,
			text: cleanName(type.type, 40),
			title: `${type.type} in ${type.unit}`,
		}));
		const choose = value => this.store.set({ si: value === profile.default_type ? null : value });

		if (types.length < 2)
			return (this.types = null);
		this.types =
			types.length < 4 && choices.reduce((n, choice) => n + choice.text.length, 0) < 32
				? segmented("Sample type", choices, current, choose)
				: selectField("", choices, current, choose);
		this.types.querySelector("select")?.setAttribute("aria-label", "Sample type");
		this.types.classList.add("types");
		return this.types;
	}

	listen() {
		listenToKeys({ page: () => this.page, actions: this.keyActions(), enabled: () => storage.get("keys") !== "off" });
		// Who comes back from a terminal may have started another server there.
		window.addEventListener("focus", () => this.isSameServer().catch(() => {}));
		document.addEventListener("dragover", event => event.preventDefault());
		document.addEventListener("drop", event => {
			event.preventDefault();
			const file = event.dataTransfer?.files?.[0];

			if (file && this.meta.home)
				this.showToast("This server shows what was pushed to it: open files with kiln -http");
			else if (file)
				openFile(this.ctx, file);
		});
	}

	keyActions() {
		const ctx = this.ctx;
		const onSelected = run => event => {
			if (!ctx.selected)
				return (this.showToast("Select a function first"), true);
			return run(ctx.selected, event);
		};
		const byKey = key =>
			onSelected(fn => {
				const found = ctx.actions(fn).find(action => action.key === key);

				found ? found.run() : this.showToast("This frame has no such view");
			});

		return {
			help: () => openHelp(ctx),
			settings: () => openSettings(ctx),
			inspector: () => this.toggleInspector(),
			search: (event, key) => {
				if (key === "Ctrl+f" && document.activeElement === this.search.input)
					return false;
				this.search.focus();
			},
			view: (event, key) => {
				ctx.go((this.shownTabs()[Number(key) - 1] || TABS[0])[0]);
			},
			copyUrl: () => copyText(location.href).then(() => this.showToast("Address copied")),
			undo: () => ctx.undo(),
			redo: () => ctx.redo(),
			recursion: () => ctx.set({ rc: ctx.state.rc ? null : 1 }),
			order: () => {
				const orders = ["size", "name", ...(isSingleFile() ? [] : ["address"])],
					next = orders[(orders.indexOf(ctx.state.ord || "size") + 1) % orders.length];

				ctx.set({ ord: next === "size" ? null : next });
				ctx.announce(`Order by ${next}`);
			},
			focus: byKey("f"),
			ignore: byKey("g"),
			hide: byKey("h"),
			source: byKey("s"),
			disasm: byKey("d"),
			sandwich: byKey("w"),
			menu: onSelected(fn => {
				openMenu({ target: this.pageElement }, ctx.actions(fn));
			}),
			copyName: event => {
				if (String(getSelection()) || !ctx.selected)
					return false;
				copyText(ctx.selected[1]).then(() => this.showToast("Name copied"));
			},
			compare: () => ctx.go("compare"),
			swap: () => ctx.set({ a: ctx.state.b ?? null, b: ctx.state.b !== undefined ? ctx.state.a || "0" : null }),
			labels: () => ctx.go("labels"),
			timeline: () => {
				const home = this.header.querySelector(".home");

				if (ctx.profile?.ticks && !isSingleFile())
					ctx.go("timeline");
				else
					home ? home.click() : this.showToast("This profile has no time axis: its samples carry no time");
			},
		};
	}

	// ---- inspector, server
	toggleInspector() {
		const element = this.inspector.element;

		element.hidden = !element.hidden;
		storage.set("inspector", element.hidden ? "off" : "on");
		this.updateAll();
		if (!element.hidden && innerWidth < 720)
			element.querySelector("button").focus();
	}

	/** Another server may have the same profiles, then nothing changes; else what is shown is stale. */
	async isSameServer() {
		const meta = await this.ctx.api.get("meta", { b: this.store.state.b });

		if (meta.token !== this.meta.token) {
			this.meta.token = meta.token;
			this.isStale = JSON.stringify(meta.profiles) !== JSON.stringify(this.meta.profiles);
			this.stale.hidden = !this.isStale;
			this.showError(null);
			if (this.isStale)
				this.showToast("The server was started again, with another profile");
		}
		return !this.isStale;
	}

	// ---- pages

	pageApi() {
		this.pageContext.api = createApi({
			state: () => this.store.state,
			token: () => this.meta.token || "",
			signal: this.scope.signal,
			trees: this.trees,
			busy: step => this.busy(step),
		});
	}

	headOf() {
		this.stateBar.crumbs([{ text: "all" }]);
		return [];
	}

	changed(state, before) {
		// Old and new data must not be mixed.
		if (this.isStale) {
			location.reload();
			return;
		}
		this.showError(null);
		if (PAGES[state.page] !== this.mounted) {
			this.remount();
			return;
		}
		if (!sameFilters(state, before))
			this.ctx.selectedFrame = null;
		this.updateAll();
	}

	dataKey() {
		return JSON.stringify([...FILTER_KEYS, "a"].map(key => this.store.state[key] || ""));
	}

	updateAll() {
		const { page } = this.store.state,
			shown = page === "disasm" ? "source" : page;
		const name = TABS.find(tab => tab[0] === shown)?.[1] || "Compare";

		for (const link of this.tabs.children) {
			link.href = stateUrl({ ...this.store.state, page: link.dataset.page });
			link.toggleAttribute("aria-current", false);
			if (link.dataset.page === shown)
				link.setAttribute("aria-current", "page");
		}
		clear(this.pageMenu).append(name, icon("down"));
		this.header.querySelector(".home")?.setAttribute("href", this.homeUrl());
		this.types?.set(this.sampleType()?.type);
		this.header
			.querySelector("[aria-pressed][title^=Inspector]")
			?.setAttribute("aria-pressed", String(!this.inspector.element.hidden));
		document.title = `${name} · ${cleanName(this.meta.title || this.ctx.profile?.name || "profile", 80)} · kiln`;
		this.stateBar.update();
		this.search.update(this.dataKey());
		this.page?.update?.(this.store.state);
		this.inspector.update(this.dataKey());
	}
}

/** What tests may read. */
function exposeForTests(app) {
	Object.defineProperty(window, "__ui", {
		value: {
			get ready() {
				const { page } = app;

				return Boolean(page) && app.pending === 0 && !app.search.isBusy() && (page.ready ?? true) && !page.chart?.drawing;
			},
			get state() {
				return app.store.state;
			},
			get stats() {
				return app.page?.stats || { nodes: 0, frames: [] };
			},
			get tree() {
				return app.page?.tree || null;
			},
			get selected() {
				return app.ctx.selected;
			},
			nodeAt: (x, y) => app.page?.nodeAt?.(x, y) ?? -1,
			rectOf: node => app.page?.rectOf?.(node) ?? null,
			colors: () => app.palette,
		},
	});
}

async function startApp() {
	try {
		const api = createApi({ state: () => ({}), token: () => "" });
		const { a, b } = isSingleFile() ? {} : parseState(location);
		const meta = await api.get("meta", { a, b });

		clear(document.body);
		exposeForTests(new App(meta));
	} catch (error) {
		const { a } = parseState(location);

		showStartError("The profile cannot be shown", error, startApp);
		// A selection of a server, which may have nothing in it.
		if (a?.includes("="))
			document.querySelector("main").append(h("a", { href: `../timeline?${a}` }, "Back to the timeline"));
	}
}

startApp();
