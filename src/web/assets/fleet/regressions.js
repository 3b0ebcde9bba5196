import { pageNote } from "../pages.js";

export const regressionsPage = {
	id: "regressions",
	title: "Regressions",
	mount(element) {
		element.append(pageNote("Not there yet"));
		return { update() {} };
	},
};
