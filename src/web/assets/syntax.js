// Colours of source text: comments, strings, numbers and key words of the usual languages.

const SYNTAX_WORDS = new Set(("auto bool break case catch chan char class const continue def default defer delete do double elif else enum except export extends extern " +
	"false final float fn for from func function go goto if impl import in inline int interface let long match mut namespace new nil not null nullptr None operator package pass " +
	"private pub public raise range return self short static struct super switch template this throw true True False try type typedef typename unsigned use using var virtual void while with yield").split(" "));
const SYNTAX_TOKEN = /(\/\/.*|\/\*.*?(?:\*\/|$))|("(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)+'|`[^`]*`?)|(\b\d[\w.]*)|([A-Za-z_]\w*)/g;
const SYNTAX_TOKEN_HASH = /(#.*)|("(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?)|(\b\d[\w.]*)|([A-Za-z_]\w*)/g;
const SYNTAX_LONGEST = 2000;

/**
 * The pieces of a line as [class, text].
 * @param {{comment: boolean}} state kept from line to line: inside of a long comment?
 * @returns {[string, string][]}
 */
export function syntaxPieces(text, file, state) {
	const pieces = [], hash = /\.(py|rb|sh|pl|r|jl|ex|exs|nix|cmake|yaml|yml|toml)$/i.test(file);
	let at = 0;

	if (text.length > SYNTAX_LONGEST)
		return [["", text.slice(0, SYNTAX_LONGEST) + "…"]];
	if (state.comment) {
		const end = text.indexOf("*/");
		if (end < 0)
			return [["com", text]];
		pieces.push(["com", text.slice(0, end + 2)]);
		at = end + 2;
		state.comment = false;
	}
	const token = new RegExp(hash ? SYNTAX_TOKEN_HASH : SYNTAX_TOKEN);
	token.lastIndex = at;
	for (let found; (found = token.exec(text));) {
		const kind = found[1] ? "com" : found[2] ? "str" : found[3] ? "lit" : SYNTAX_WORDS.has(found[4]) ? "key" : "";
		if (!kind)
			continue;
		if (found.index > at)
			pieces.push(["", text.slice(at, found.index)]);
		pieces.push([kind, found[0]]);
		at = found.index + found[0].length;
		if (found[1] && found[1].startsWith("/*") && !found[1].endsWith("*/"))
			state.comment = true;
	}
	if (at < text.length)
		pieces.push(["", text.slice(at)]);
	return pieces;
}
