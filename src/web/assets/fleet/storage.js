import { pageNote } from "../pages.js";

export const storagePage = {
	id: "storage",
	title: "Storage",
	mount(element) {
		element.append(pageNote("Not there yet"));
		return { update() {} };
	},
};
