import { pageNote } from "../pages.js";

export const targetsPage = {
	id: "targets",
	title: "Targets",
	mount(element) {
		element.append(pageNote("Not there yet"));
		return { update() {} };
	},
};
