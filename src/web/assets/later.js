// Pages whose scripts come when they are opened, as few profiles have something for them. They import nothing of what the
// others share, or a browser would load that again: they get it.
import { h, clear, textButton } from "./dom.js";
import { oklch } from "./colors.js";
import { cleanName } from "./format.js";
import { FILTER_KEYS, parseTimeRange, timeRangeText } from "./state.js";
import { latest, openFunctionMenu, pageNote } from "./pages.js";

const KIT = { h, clear, textButton, oklch, cleanName, FILTER_KEYS, parseTimeRange, timeRangeText, latest, openFunctionMenu, pageNote };

function laterPage(id, title, load) {
	const mount = (element, ctx) => {
		let page = null,
			isGone = false;

		load().then(module => {
			if (isGone)
				return;
			page = module.mount(element, ctx, KIT);
			page.update(ctx.state);
		}, error => ctx.error(error));
		return {
			update: state => page?.update(state),
			focus: () => (page?.focus ? page.focus() : element.focus()),
			get keys() {
				return page?.keys || {};
			},
			get stats() {
				return page?.stats || {};
			},
			get ready() {
				return Boolean(page);
			},
			destroy() {
				isGone = true;
				page?.destroy();
			},
		};
	};

	return { id, title, mount };
}

export const timelinePage = laterPage("timeline", "Timeline", () => import("./times.js"));
