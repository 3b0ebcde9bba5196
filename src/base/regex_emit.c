#include "base/regex_tree.h"

#include "base/utf8.h"

enum { FIRST_SURROGATE = 0xd800, LAST_SURROGATE = 0xdfff };
/* There are no two cases beyond this (the Adlam script); PCRE2 would try every one of them. */
enum { LAST_CASED = 0x1e943 };

pcre2_code *regex_pcre_compile(struct str pattern)
{
	pcre2_compile_context *context = pcre2_compile_context_create(NULL);
	uint32_t options = PCRE2_UTF | PCRE2_NO_UTF_CHECK | PCRE2_DOTALL | PCRE2_DOLLAR_ENDONLY |
			   PCRE2_ALT_CIRCUMFLEX;
	PCRE2_SIZE error_offset;
	pcre2_code *code;
	int error;

	if (!context)
		return NULL;
	pcre2_set_newline(context, PCRE2_NEWLINE_LF);
	/* regex_parse limits the depth already. */
	pcre2_set_parens_nest_limit(context, 4000);
	code = pcre2_compile((PCRE2_SPTR)pattern.p, pattern.n, options, &error, &error_offset,
			     context);
	pcre2_compile_context_free(context);
	return code;
}

static bool is_surrogate(uint32_t rune)
{
	return rune >= FIRST_SURROGATE && rune <= LAST_SURROGATE;
}

static void emit_rune(struct buf *out, uint32_t rune)
{
	uint32_t lower = rune | 0x20;

	if ((rune >= '0' && rune <= '9') || (lower >= 'a' && lower <= 'z') || rune == '_')
		buf_char(out, (char)rune);
	else
		buf_printf(out, "\\x{%x}", rune);
}

/* A surrogate never occurs in a valid subject, and PCRE2 does not take it in a pattern. */
static void emit_literal(struct buf *out, uint32_t rune)
{
	if (is_surrogate(rune))
		buf_puts(out, "(?!)");
	else
		emit_rune(out, rune);
}

static size_t emit_range(struct buf *out, uint32_t low, uint32_t high)
{
	if (is_surrogate(low))
		low = LAST_SURROGATE + 1;
	if (is_surrogate(high))
		high = FIRST_SURROGATE - 1;
	if (low > high)
		return 0;
	if (low < FIRST_SURROGATE && high > LAST_SURROGATE)
		return emit_range(out, low, FIRST_SURROGATE - 1) +
		       emit_range(out, LAST_SURROGATE + 1, high);
	emit_rune(out, low);
	if (low < high) {
		buf_char(out, '-');
		emit_rune(out, high);
	}
	return 1;
}

/* The items for which case is ignored, or those for which it is not. Returns how many there were.
 */
static size_t emit_items(struct buf *out, const struct regex_node *class, bool fold)
{
	size_t n = 0;

	for (size_t i = 0; i < class->nitems; i++) {
		const struct regex_item *item = &class->items[i];
		bool cased = class->fold && !item->exact && item->low <= LAST_CASED;

		if (item->property) {
			if (!fold) {
				buf_printf(out, item->negated ? "\\P{%s}" : "\\p{%s}",
					   item->property);
				n++;
			}
		} else if (!cased) {
			if (!fold)
				n += emit_range(out, item->low, item->high);
		} else if (item->high <= LAST_CASED) {
			if (fold)
				n += emit_range(out, item->low, item->high);
		} else {
			n += fold ? emit_range(out, item->low, LAST_CASED)
				  : emit_range(out, LAST_CASED + 1, item->high);
		}
	}
	return n;
}

/* Two classes, as only in one of them PCRE2 shall add the other case of each character. */
static void emit_class(struct buf *out, const struct regex_node *class)
{
	struct buf folded = { 0 }, exact = { 0 };
	size_t nfolded = emit_items(&folded, class, true),
	       nexact = emit_items(&exact, class, false);
	const char *not = class->negated ? "^" : "";

	if (nfolded && nexact) {
		buf_printf(out, class->negated ? "(?:(?![%.*s])(?i:[^" : "(?:[%.*s]|(?i:[",
			   STR_ARG(buf_view(&exact)));
		buf_str(out, buf_view(&folded));
		buf_puts(out, "]))");
	} else if (nfolded || nexact) {
		buf_puts(out, nfolded ? "(?i:[" : "[");
		buf_puts(out, not );
		buf_str(out, buf_view(nfolded ? &folded : &exact));
		buf_puts(out, nfolded ? "])" : "]");
	} else {
		buf_puts(out, class->negated ? "." : "(?!)");
	}
	buf_release(&folded);
	buf_release(&exact);
}

static void emit_concat(struct buf *out, const struct regex_node *first)
{
	bool folding = false;

	for (const struct regex_node *n = first; n; n = n->next) {
		bool fold = n->op == REGEX_LITERAL && n->fold;

		if (folding && !fold)
			buf_char(out, ')');
		if (fold && !folding)
			buf_puts(out, "(?i:");
		folding = fold;
		if (n->op == REGEX_LITERAL) {
			emit_literal(out, n->rune);
		} else if (n->op == REGEX_ALTERNATE) {
			buf_puts(out, "(?:");
			regex_emit(out, n);
			buf_char(out, ')');
		} else {
			regex_emit(out, n);
		}
	}
	if (folding)
		buf_char(out, ')');
}

static void emit_repeat(struct buf *out, const struct regex_node *node)
{
	const struct regex_node *c = node->child;
	bool is_unit = c->op == REGEX_CLASS || c->op == REGEX_CAPTURE || c->op == REGEX_ANY ||
		       c->op == REGEX_ANY_NOT_NEWLINE ||
		       (c->op == REGEX_LITERAL && !is_surrogate(c->rune));

	if (!is_unit)
		buf_puts(out, "(?:");
	regex_emit(out, c);
	if (!is_unit)
		buf_char(out, ')');
	if (node->min == 0 && node->max == 1)
		buf_char(out, '?');
	else if (node->max != REGEX_NO_MAX)
		buf_printf(out, "{%u,%u}", node->min, node->max);
	else if (node->min > 1)
		buf_printf(out, "{%u,}", node->min);
	else
		buf_char(out, node->min ? '+' : '*');
	if (node->lazy)
		buf_char(out, '?');
}

void regex_emit(struct buf *out, const struct regex_node *node)
{
	static const char *const fixed[] = {
		[REGEX_EMPTY] = "(?:)",		  [REGEX_ANY] = ".",
		[REGEX_ANY_NOT_NEWLINE] = "\\N",  [REGEX_BEGIN_TEXT] = "\\A",
		[REGEX_END_TEXT] = "\\z",	  [REGEX_BEGIN_LINE] = "(?m:^)",
		[REGEX_END_LINE] = "(?m:$)",	  [REGEX_WORD_BOUNDARY] = "\\b",
		[REGEX_NO_WORD_BOUNDARY] = "\\B",
	};

	switch (node->op) {
	case REGEX_LITERAL:
		buf_puts(out, node->fold ? "(?i:" : "");
		emit_literal(out, node->rune);
		buf_puts(out, node->fold ? ")" : "");
		break;
	case REGEX_CLASS:
		emit_class(out, node);
		break;
	case REGEX_CAPTURE:
		buf_char(out, '(');
		regex_emit(out, node->child);
		buf_char(out, ')');
		break;
	case REGEX_CONCAT:
		emit_concat(out, node->child);
		break;
	case REGEX_ALTERNATE:
		for (const struct regex_node *n = node->child; n; n = n->next) {
			regex_emit(out, n);
			if (n->next)
				buf_char(out, '|');
		}
		break;
	case REGEX_REPEAT:
		emit_repeat(out, node);
		break;
	default:
		buf_puts(out, fixed[node->op]);
	}
}
