// Colours of frames. All have one lightness per theme, so that text on them can be read: hues come
// from the hash of a package's name and are the same in every profile.
import { packageOf } from "./format.js";

function gammaByte(v) {
	const c = v <= 0.0031308 ? 12.92 * v : 1.055 * v ** (1 / 2.4) - 0.055;

	return Math.round(Math.min(1, Math.max(0, c)) * 255);
}

/** OKLCH (lightness 0..1, chroma, hue in degrees) as "#rrggbb". */
export function oklch(lightness, chroma, hue) {
	const a = chroma * Math.cos((hue * Math.PI) / 180),
		b = chroma * Math.sin((hue * Math.PI) / 180);
	const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
	const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
	const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
	const rgb = [
		4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
		-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
		-0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
	];

	return "#" + rgb.map(v => gammaByte(v).toString(16).padStart(2, "0")).join("");
}

function luminance(hex) {
	const [r, g, b] = [1, 3, 5].map(i => {
		const c = parseInt(hex.slice(i, i + 2), 16) / 255;

		return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
	});

	return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/** WCAG contrast of two colours, 1 to 21. */
export function contrast(a, b) {
	const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);

	return (high + 0.05) / (low + 0.05);
}

function hashText(text) {
	let hash = 2166136261;

	for (let i = 0; i < text.length; i++)
		hash = Math.imul(hash ^ text.charCodeAt(i), 16777619);
	// The low bits of neighbours must not be neighbours.
	hash = Math.imul(hash ^ (hash >>> 15), 2246822507);
	return (hash ^ (hash >>> 13)) >>> 0;
}

const THEMES = {
	light: {
		text: "#1b1f24",
		faded: 0.945,
		frame: 0.865,
		chroma: 0.062,
		neutral: 0.91,
		full: 0.79,
		fullChroma: 0.13,
		root: "#e4e7ea",
		gap: "#ffffff",
		run: "#d3d8dd",
		lost: "#eef0f2",
		outline: "#1b1f24",
		match: "#8a3ffc",
		fadedText: "#5f666d",
		focus: "#0b62d6",
	},
	dark: {
		text: "#f3f4f6",
		faded: 0.265,
		frame: 0.42,
		chroma: 0.052,
		neutral: 0.34,
		full: 0.48,
		fullChroma: 0.11,
		root: "#343a41",
		gap: "#15181c",
		run: "#3b4148",
		lost: "#22262b",
		outline: "#ffffff",
		match: "#c19bff",
		fadedText: "#a7aeb6",
		focus: "#74aefc",
	},
};

/** The colours of a theme; css colours are made once each. */
export function createPalette(theme) {
	const base = THEMES[theme],
		cache = new Map();

	function make(key, lightness, chroma, hue) {
		let color = cache.get(key);

		if (!color)
			cache.set(key, (color = oklch(lightness, chroma, hue)));
		return color;
	}

	function group(name) {
		if (!name)
			return base.root;
		const hash = hashText(name),
			hue = hash % 360,
			chroma = base.chroma + ((hash >>> 9) % 3) * 0.014;

		return make(`${hue}/${chroma}`, base.frame, chroma, hue);
	}

	// Orange is more and blue is less: all kinds of colour vision tell these apart.
	function change(ratio) {
		const step = Math.round(Math.sign(ratio) * Math.min(1, Math.abs(ratio)) ** 0.6 * 8),
			size = Math.abs(step) / 8;

		return make(
			`change${step}`,
			base.neutral + (base.full - base.neutral) * size,
			base.fullChroma * size,
			step > 0 ? 60 : 250
		);
	}

	function share(part) {
		const step = Math.round(Math.max(0, Math.min(1, part)) * 12) / 12;

		return make(`share${step}`, base.neutral + (base.full - base.neutral) * step, base.fullChroma * step, 45);
	}

	return { ...base, theme, group, change, share };
}

const KINDS = [
	["address only", fn => fn[5] & 2],
	["label", fn => fn[5] & 4],
	["kernel", fn => /kernel|vmlinux|\.ko$/.test(fn[4]) || /^\/?(usr\/src\/)?linux/.test(fn[2])],
	["Go runtime", fn => /^(runtime|internal\/runtime|gc)[./]/.test(fn[1]) || fn[1] === "gcWriteBarrier"],
	[
		"Go library",
		fn => /\.go$/.test(fn[2]) && !/^[\w-]+\.[\w.-]+\//.test(fn[1]) && /\/src\//.test(fn[2]) && !/^main\./.test(fn[1]),
	],
	["Go", fn => /\.go$/.test(fn[2])],
	["Java", fn => /\.(java|kt|scala)$/.test(fn[2])],
	["Python", fn => /\.py$/.test(fn[2])],
	["Rust", fn => /\.rs$/.test(fn[2])],
	["JavaScript", fn => /\.[cm]?[jt]sx?$/.test(fn[2])],
	["C++ library", fn => /^(std|__gnu_cxx|__cxxabiv1)::/.test(fn[1])],
	["C library", fn => /\b(libc|libm|libpthread|ld-linux)[-.]/.test(fn[4])],
	["C++", fn => /\.(cc|cpp|cxx|hh|hpp)$/.test(fn[2])],
	["C", fn => /\.[ch]$/.test(fn[2])],
];

/** What kind of code a function is. */
export function kindOf(fn) {
	const found = KINDS.find(kind => kind[1](fn));

	return found ? found[0] : "program";
}

/** The group that gives a function its colour, and that the legend names. */
export function groupOf(fn, mode) {
	if (mode === "module")
		return fn[4].replace(/^.*\//, "") || "(no module)";
	if (mode === "kind")
		return kindOf(fn);
	if (mode === "label")
		return fn[5] & 4 ? fn[1] : "";
	return packageOf(fn[1]) || fn[4].replace(/^.*\//, "") || fn[2].replace(/\/[^/]*$/, "");
}
