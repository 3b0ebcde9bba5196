// What is around all pages: theme, messages, progress.
import { h, clear, icon, iconButton, textButton } from "./dom.js";
import { storage } from "./state.js";
import { isAbort } from "./request.js";
import { createPalette } from "./colors.js";
import { cleanName } from "./format.js";
import { closeMenu } from "./menu.js";
import { closeDialogs } from "./dialog.js";

const SHOW_BUSY_MS = 150,
	SHOW_CANCEL_MS = 1500,
	RETRY_MS = 3000;

/**
 * Who extends it has store, main, ctx.go(page), updateAll(), pageApi(), which gives this.pageContext its api until
 * this.scope is aborted, headOf(page) with what stands before it, and isSameServer(), which fails while there is none.
 */
export class Frame {
	constructor(pages) {
		this.pages = pages;
		this.pending = 0;
		this.live = h("div", { class: "sr-only", "aria-live": "polite", role: "status" });
		this.toast = h("div", { class: "toast", hidden: true, "aria-hidden": "true" });
		this.errorBar = h("div", { class: "errorbar", role: "alert", hidden: true });
		this.busyBar = h(
			"div",
			{ class: "busy", hidden: true },
			h("div", { class: "progress", role: "progressbar", "aria-label": "Loading" }),
			textButton("Cancel", () => this.cancel(), "btn small", { hidden: true })
		);
		this.darkQuery = matchMedia("(prefers-color-scheme: dark)");
		this.darkQuery.addEventListener("change", () => this.applyTheme(true));
		this.applyTheme();
		// What is open belongs to the state that is left.
		window.addEventListener("popstate", closeDialogs);
	}

	skipLink(text, focusPage) {
		const skip = event => {
			event.preventDefault();
			focusPage();
		};

		return h("a", { class: "skip", href: "#main", on: { click: skip } }, text);
	}

	/** Other clicks than the plain one are the browser's: a new tab, a new window. */
	clickTab(event, page) {
		if (event.ctrlKey || event.metaKey || event.shiftKey || event.button)
			return;
		event.preventDefault();
		this.ctx.go(page);
	}

	// ---- theme

	applyTheme(redraw) {
		const chosen = storage.get("theme"),
			theme = chosen || (this.darkQuery.matches ? "dark" : "light");

		document.documentElement.dataset.theme = theme;
		this.palette = createPalette(theme);
		if (redraw)
			this.updateAll();
	}

	switchTheme() {
		const next = this.palette.theme === "dark" ? "light" : "dark";

		// What the system says anyway is not kept, so that it can follow the system later.
		storage.set("theme", next === (this.darkQuery.matches ? "dark" : "light") ? null : next);
		this.applyTheme(true);
		this.showToast(next === "dark" ? "Dark" : "Light");
	}

	// ---- messages

	showToast(text) {
		this.live.textContent = text;
		this.toast.textContent = text;
		this.toast.hidden = false;
		clearTimeout(this.toastTimer);
		this.toastTimer = setTimeout(() => {
			this.toast.hidden = true;
		}, 2500);
	}

	/** An error, or with null none any more: with an owner, if the one that is shown is of that owner. */
	showError(error, retry, owner) {
		if (isAbort(error) || (!error && owner && owner !== this.errorOwner))
			return;
		this.errorOwner = owner;
		clearTimeout(this.retryTimer);
		this.retryTimer = 0;
		if (!error) {
			this.errorBar.hidden = true;
			return;
		}
		const again = () => {
			this.showError(null);
			(retry || (() => this.remount()))();
		};

		clear(this.errorBar).append(
			icon("warn"),
			h("span", {}, cleanName(error.message || String(error), 1000)),
			textButton("Try again", again),
			iconButton("close", "Close this message", () => this.showError(null))
		);
		this.errorBar.hidden = false;
		// The picture stays; as soon as the server is back, it is asked again.
		if (error.gone)
			this.retryTimer = setTimeout(() => this.waitForServer(again), RETRY_MS);
	}

	async waitForServer(again) {
		const timer = this.retryTimer;

		try {
			if (await this.isSameServer())
				again();
		} catch {
			// Unless the message has been closed meanwhile.
			if (timer === this.retryTimer)
				this.retryTimer = setTimeout(() => this.waitForServer(again), RETRY_MS);
		}
	}

	// ---- the page that is shown

	mount() {
		const page = this.pages[this.store.state.page];

		this.scope = new AbortController();
		this.pageContext = Object.create(this.ctx);
		this.pageApi();
		this.pageElement = h("div", { class: `page page-${page.id}`, tabindex: -1 });
		clear(this.main).append(...this.headOf(page), this.pageElement);
		try {
			this.page = page.mount(this.pageElement, this.pageContext);
			this.page.update?.(this.store.state);
		} catch (error) {
			this.showError(error);
		}
		this.mounted = page;
	}

	remount() {
		closeMenu(false);
		this.scope.abort();
		try {
			this.page?.destroy?.();
		} catch (error) {
			this.showError(error);
		}
		this.page = null;
		this.mount();
		this.updateAll();
	}

	/** Gives up what the page has asked for. */
	cancel() {
		this.scope.abort();
		this.scope = new AbortController();
		this.pageApi();
		this.showError(new Error("Cancelled."), () => this.remount());
	}

	// ---- progress

	busy(step) {
		this.pending += step;
		if (this.pending > 0 && !this.busyTimer) {
			this.busyTimer = setTimeout(() => {
				this.busyBar.hidden = false;
			}, SHOW_BUSY_MS);
			this.cancelTimer = setTimeout(() => {
				this.busyBar.lastChild.hidden = false;
			}, SHOW_CANCEL_MS);
		} else if (this.pending === 0) {
			clearTimeout(this.busyTimer);
			clearTimeout(this.cancelTimer);
			this.busyTimer = 0;
			this.busyBar.hidden = this.busyBar.lastChild.hidden = true;
		}
	}
}

/** In the place of the page, when it cannot even begin. */
export function showStartError(title, error, again) {
	document.documentElement.dataset.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
	clear(document.body).append(
		h(
			"main",
			{ class: "empty", role: "alert" },
			h("h1", {}, title),
			h("p", {}, error.message),
			textButton("Try again", again, "btn primary")
		)
	);
}
