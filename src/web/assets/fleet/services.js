import { pageNote } from "../pages.js";

export const servicesPage = {
	id: "services",
	title: "Services",
	mount(element) {
		element.append(pageNote("Not there yet"));
		return { update() {} };
	},
};
