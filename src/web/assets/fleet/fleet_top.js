import { pageNote } from "../pages.js";

export const fleetTopPage = {
	id: "fleet_top",
	title: "Fleet top",
	mount(element) {
		element.append(pageNote("Not there yet"));
		return { update() {} };
	},
};
