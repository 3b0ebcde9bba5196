import { pageNote } from "../pages.js";

export const timelinePage = {
	id: "timeline",
	title: "Timeline",
	mount(element) {
		element.append(pageNote("Not there yet"));
		return { update() {} };
	},
};
