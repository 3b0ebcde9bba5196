// Numbers and names as text: the units of pprof, and names that cannot do harm.

// [name, factor to the family's unit, aliases without the plural s]
const UNIT_FAMILIES = [
	{
		fallback: ["B", 1],
		units: [
			["B", 1, "b byte"],
			["kB", 2 ** 10, "kb kbyte kilobyte"],
			["MB", 2 ** 20, "mb mbyte megabyte"],
			["GB", 2 ** 30, "gb gbyte gigabyte"],
			["TB", 2 ** 40, "tb tbyte terabyte"],
			["PB", 2 ** 50, "pb pbyte petabyte"],
		],
	},
	{
		fallback: ["s", 1e9],
		units: [
			["ns", 1, "ns nanosecond"],
			["us", 1e3, "μs us microsecond"],
			["ms", 1e6, "ms millisecond"],
			["s", 1e9, "s sec second"],
			["hrs", 3600e9, "hour hr"],
		],
	},
	{
		fallback: ["GCU", 1],
		units: [
			["n*GCU", 1e-9, "nanogcu"],
			["u*GCU", 1e-6, "microgcu"],
			["m*GCU", 1e-3, "milligcu"],
			["GCU", 1, "gcu"],
			["k*GCU", 1e3, "kilogcu"],
			["M*GCU", 1e6, "megagcu"],
			["G*GCU", 1e9, "gigagcu"],
			["T*GCU", 1e12, "teragcu"],
			["P*GCU", 1e15, "petagcu"],
		],
	},
];

function findUnit(family, name) {
	const lower = name.toLowerCase();
	const normal = lower.length > 2 && lower.endsWith("s") ? lower.slice(0, -1) : lower;

	return family.units.find(unit => unit[2].split(" ").includes(normal));
}

/** How many seconds a unit of time has; 0 of others. */
export function unitSeconds(name) {
	const unit = findUnit(UNIT_FAMILIES.find(family => family.fallback[0] === "s"), name || "");

	return unit ? unit[1] / 1e9 : 0;
}

/** Is it bytes, which go by 1024? */
export const isBinaryUnit = name => Boolean(findUnit(UNIT_FAMILIES[0], name || ""));

function isAutomatic(to) {
	return !to || to === "minimum" || to === "auto";
}

/**
 * As pprof scales: the largest unit in which the value is at least 1, or the wanted one.
 * @returns {[number, string]} number and unit
 */
export function scaleValue(value, from, to) {
	for (const family of UNIT_FAMILIES) {
		const source = findUnit(family, from || "");

		if (!source)
			continue;
		const v = Math.abs(value) * source[1];
		const found = isAutomatic(to) ? family.units.filter(unit => v / unit[1] >= 1).pop() : findUnit(family, to);
		const [name, factor] = found || family.fallback;

		return [(Math.sign(value) * v) / factor, name];
	}
	return [value, isAutomatic(to) || ["count", "sample", "unit"].includes(to) ? "" : to];
}

/** "1.20s", "34.50MB", "1,204": value in `unit`, shown in `to` or what fits. */
export function formatValue(value, unit, to) {
	const [number, name] = scaleValue(value, unit, to);
	let text = Math.abs(number).toFixed(2).replace(/\.00$/, "");

	if (text === "0")
		return "0";
	if (!name)
		text = text.replace(/\B(?=(\d{3})+(?!\d))/g, ",");
	return (number < 0 ? "-" : "") + text + name;
}

/** "12.3%"; two digits below 1 %. Nothing is said of nothing. */
export function formatPercent(value, total) {
	const ratio = total ? (value / total) * 100 : 0,
		size = Math.abs(ratio);
	const sign = ratio < 0 ? "-" : "";

	if (size >= 99.95 && size <= 100.05)
		return sign + "100%";
	if (size >= 1)
		return sign + size.toFixed(1) + "%";
	if (size >= 0.001)
		return sign + Number(size.toPrecision(2)) + "%";
	return size > 0 ? sign + "<0.001%" : "0%";
}

/** 1204 as "1,204". */
export function formatCount(n) {
	return String(Math.round(n)).replace(/\B(?=(\d{3})+(?!\d))/g, ",");
}

// Control characters, and those that turn the direction of text or hide in it.
const UNSAFE = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** A name as it may be shown: what could deceive the reader is escaped, what is endless is cut. */
export function cleanName(name, longest = 4000) {
	const cut = name.length > longest ? name.slice(0, longest) + "…" : name;

	return cut.replace(UNSAFE, c => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));
}

const SHORTENERS = [
	/^(?:[\w\-.]+\/)+([^.]+\..+)/, // Go: path/to/package.Type.Method
	/^(?:[a-z]\w*\.)*([A-Z][\w$]*\.(?:<init>|[a-z][\w$]*(?:\$\d+)?))(?:\(|$)/, // Java: com.example.Class.method(
	/^(?:[_a-zA-Z]\w*::)+(_*[A-Z]\w*::~?[_a-zA-Z]\w*(?:<.*>)?)/, // C++: a::b::Class::method
];

/** The name as pprof shortens it: without the path of its package. */
export function shortName(name) {
	let s = name.length > 500 ? name.slice(0, 500) : name;

	s = s.replace(/^\(anonymous namespace\)::/, "").replace(/^(.*?)\/v(?:[2-9]|[1-9][0-9]+)([./].*)$/, "$1$2");
	for (const pattern of SHORTENERS) {
		const found = pattern.exec(s);

		if (found)
			return cleanName(found[1]);
	}
	return cleanName(s);
}

/** Is it what stands for a name that is not known? "libc.so.6+0x3f9c0" */
export const isAddress = name => /(?:^|\+)0x[0-9a-f]+$/.test(name);

/** What comes after the last scope: "mul" of "render::Matrix::mul(int)". */
export function tailName(short) {
	// "[libc.so.6]" and "libc.so.6+0x3f9c0" have no scopes.
	if (short.startsWith("[") || isAddress(short))
		return short;
	const plain = short
		.replace(/<[^<>]*>|\[[^[\]]*\]/g, "")
		.replace(/<.*>/, "")
		.replace(/([^.])\(.*$/, "$1");

	// Go numbers its closures: run.func1.2
	return /(?:^|[.:])([^.:]+(?:\.func\d+|\.\d+|-fm|-range\d+)*)$/.exec(plain)?.[1] || plain || short;
}

/** The name without the arguments and templates of C++. */
export function plainName(name) {
	let depth = 0,
		out = "";

	if (/^operator|::operator|\.\(/.test(name))
		return name;
	for (const c of name.replace(/\(anonymous namespace\)/g, "{anonymous}")) {
		if (c === "<" || c === "(")
			depth++;
		if (depth === 0)
			out += c;
		if ((c === ">" || c === ")") && depth > 0)
			depth--;
	}
	return out.replace("{anonymous}", "(anonymous namespace)").trim() || name;
}

/** The package of a function, as pprof finds it; empty when there is none. */
export function packageOf(name) {
	const found = /^((.*\/)?\w+)(\.|::)([^/]*)$/.exec(name.slice(0, 300));

	return found ? found[1] : "";
}

/** A regexp that matches this text and nothing else. */
export function quoteRegexp(text) {
	return text.replace(/[\\.+*?()|[\]{}^$]/g, "\\$&");
}

/** A regexp that matches a function and nothing else; or all without a name in a module. */
export function exactPattern(fn) {
	return fn[5] & 8
		? fn[4]
			? `^${quoteRegexp(fn[4])}\\+0x`
			: "^0x|^<unknown>$"
		: `^${quoteRegexp(fn[1])}$`;
}

/** The address that opens a line of a file: an option's {path}, {rel} and {line} filled in. */
export function sourceUrl(template, file, line) {
	const encoded = encodeURI(file).replace(/[?#]/g, encodeURIComponent),
		rel = encoded.replace(/^\/+/, "");

	// Of "file/{path}" and "/home" one slash is enough.
	return template
		.replace(/\/\{path\}/g, () => "/" + rel)
		.replace(/\{(path|rel|line)\}/g, (_, key) => ({ path: encoded, rel, line: line || 1 })[key]);
}

/** "file.c:12" of a function, without the folders. */
export function placeOf(fn, full) {
	const file = fn[2] ? (full ? fn[2] : fn[2].replace(/^.*\//, "")) : "";

	return cleanName(file && fn[3] ? `${file}:${fn[3]}` : file, 300);
}
