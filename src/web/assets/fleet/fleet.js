// Starts the pages of kiln serve: header, the page of the URL; and makes `ctx`, through which pages reach all of it.
import { h, clear, copyText, icon, iconButton, textButton } from "../dom.js";
import { createStore, stateUrl, storage } from "../state.js";
import { Frame } from "../frame.js";
import { createFleetApi } from "./fleet_api.js";
import { openMenu } from "../menu.js";
import { openDialog } from "../dialog.js";
import { keyText, listenToKeys } from "../keys.js";
import { carried } from "./selection.js";
import { servicesPage } from "./services.js";
import { timelinePage } from "./timeline.js";
import { livePage } from "./live.js";
import { fleetTopPage } from "./fleet_top.js";
import { regressionsPage } from "./regressions.js";
import { targetsPage } from "./targets.js";
import { storagePage } from "./storage.js";

/**
 * The pages by the last part of their path, in the order of the tabs and of the keys 1 to 7. A page is
 * {id, title, mount(element, ctx)}, and what mount returns has update(state), and if need be destroy(), keys
 * ({"Shift+ArrowLeft": run}), keyHelp ([[keys, text], ...]) and ready. A path is a line in routes.def, too.
 */
const PAGES = {
	services: servicesPage,
	timeline: timelinePage,
	live: livePage,
	fleet: fleetTopPage,
	regressions: regressionsPage,
	targets: targetsPage,
	storage: storagePage,
};
const PAGE_NAMES = Object.keys(PAGES);

const KEYS = [
	["?", "help", "Help: keys"],
	["1 2 3 4 5 6 7", "view", PAGE_NAMES.map(name => PAGES[name].title).join(", ")],
	["/", "search", "The search of the page"],
	["y", "copyUrl", "Copy the address of what you see"],
];

class Fleet extends Frame {
	constructor() {
		super(PAGES);
		this.store = createStore(state => this.changed(state), PAGE_NAMES);
		this.ctx = this.makeContext();
		this.build();
		this.mount();
		this.updateAll();
	}

	// ---- what pages see

	makeContext() {
		const app = this,
			store = this.store;

		return {
			get state() {
				return store.state;
			},
			get palette() {
				return app.palette;
			},
			get theme() {
				return app.palette.theme;
			},
			storage,
			set: (changes, options) => store.set(changes, options),
			/** To another page, with the selection and what else is asked for. */
			go: (page, changes) => this.go(page, changes),
			url: (page, changes) => stateUrl(Object.fromEntries(Object.entries({ ...carried(store.state), ...changes, page }).filter(([, value]) => value))),
			menu: (event, actions, label) => openMenu(event, actions, label),
			announce: text => {
				this.live.textContent = text;
			},
			toast: text => this.showToast(text),
			error: (error, retry, owner) => this.showError(error, retry, owner),
			/** Which label says what version a service is. */
			versionLabel: () => this.versionLabel(),
			focusPage: () => (this.page?.focus ? this.page.focus() : this.pageElement.focus({ preventScroll: true })),
			refresh: () => this.updateAll(),
		};
	}

	async versionLabel() {
		this.label = this.label || (await createFleetApi({}).get("stats").catch(() => ({}))).version_label;
		return this.label || "version";
	}

	go(page, changes) {
		const gone = Object.fromEntries(Object.keys(this.store.state).map(key => [key, null]));

		this.store.set({ ...gone, ...carried(this.store.state), ...changes, page });
	}

	// ---- the parts of the page

	build() {
		this.header = this.makeHeader();
		this.main = h("main", { id: "main", tabindex: -1 });
		clear(document.body).append(
			this.skipLink("Skip to the page", this.ctx.focusPage),
			this.header,
			this.errorBar,
			h("div", { class: "work" }, this.busyBar, this.main),
			this.toast,
			this.live
		);
		listenToKeys({
			page: () => this.page,
			table: KEYS,
			enabled: () => storage.get("keys") !== "off",
			actions: {
				help: () => this.openHelp(),
				view: (event, key) => this.go(PAGE_NAMES[Number(key) - 1]),
				search: () => this.pageElement.querySelector("input[type=search], input[type=text]")?.focus(),
				copyUrl: () => copyText(location.href).then(() => this.showToast("Address copied")),
			},
		});
	}

	makeHeader() {
		this.tabs = h(
			"nav",
			{ class: "tabs", "aria-label": "Pages" },
			PAGE_NAMES.map((page, i) =>
				h(
					"a",
					{
						href: page,
						"data-page": page,
						title: `${PAGES[page].title} (${i + 1})`,
						on: { click: event => this.clickTab(event, page) },
					},
					PAGES[page].title
				)
			)
		);
		this.pageMenu = textButton("", event => this.openPages(event), "btn pages", {
			"aria-haspopup": "menu",
			"aria-expanded": "false",
		});
		return h(
			"header",
			{ class: "top" },
			h(
				"a",
				{ class: "brand", href: "services", on: { click: event => this.clickTab(event, "services") } },
				h("span", { class: "mark", "aria-hidden": "true" }),
				h("span", { class: "title" }, "kiln")
			),
			this.tabs,
			this.pageMenu,
			h("span", { class: "spacer" }),
			h(
				"div",
				{ class: "tools" },
				iconButton("theme", "Light or dark", () => this.switchTheme()),
				iconButton("help", "Help (?)", () => this.openHelp())
			)
		);
	}

	openPages(event) {
		const choice = (page, i) => ({
			label: PAGES[page].title,
			key: String(i + 1),
			checked: this.store.state.page === page,
			run: () => this.go(page),
		});

		openMenu(event, PAGE_NAMES.map(choice), "Pages");
	}

	openHelp() {
		const row = ([keys, text]) => [
			h("dt", {}, keys.split(" ").map(key => h("kbd", {}, keyText(key)))),
			h("dd", {}, text),
		];
		const own = this.page?.keyHelp || [],
			turn = event => storage.set("keys", event.target.checked ? null : "off");

		openDialog({
			title: "Keys",
			class: "help",
			body: [
				h("dl", { class: "keys" }, KEYS.map(([keys, , text]) => row([keys, text]))),
				own.length ? h("h3", {}, PAGES[this.store.state.page].title) : null,
				own.length ? h("dl", { class: "keys" }, own.map(row)) : null,
				h(
					"p",
					{},
					h(
						"label",
						{ class: "field" },
						h("input", { type: "checkbox", checked: storage.get("keys") !== "off", on: { change: turn } }),
						"Keys without Ctrl do something"
					)
				),
			],
		});
	}

	// ---- pages

	async isSameServer() {
		await createFleetApi({}).get("stats");
		return true;
	}

	pageApi() {
		this.pageContext.api = createFleetApi({ signal: this.scope.signal, busy: step => this.busy(step) });
	}

	headOf(page) {
		return [h("h1", { class: "sr-only" }, page.title)];
	}

	changed(state) {
		this.showError(null);
		if (PAGES[state.page] !== this.mounted)
			this.remount();
		else
			this.updateAll();
	}

	updateAll() {
		const { page } = this.store.state,
			{ title } = PAGES[page];

		for (const link of this.tabs.children) {
			link.href = this.ctx.url(link.dataset.page);
			link.toggleAttribute("aria-current", false);
			if (link.dataset.page === page)
				link.setAttribute("aria-current", "page");
		}
		clear(this.pageMenu).append(title, icon("down"));
		document.title = `${title} · kiln`;
		this.page?.update?.(this.store.state);
	}
}

/** What tests may read. */
function exposeForTests(app) {
	Object.defineProperty(window, "__ui", {
		value: {
			get ready() {
				return Boolean(app.page) && app.pending === 0 && (app.page.ready ?? true);
			},
			get state() {
				return app.store.state;
			},
			get stats() {
				return app.page?.stats || {};
			},
		},
	});
}

exposeForTests(new Fleet());
