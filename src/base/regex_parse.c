#include "base/regex_tree.h"

#include "base/regex_class.h"
#include "base/utf8.h"
#include "base/vec.h"

enum { MAX_HEIGHT = 1000, MAX_REPEAT = 1000 };
/* Go's own limit: 128 MiB of instructions. */
#define MAX_SIZE ((128u << 20) / 40)
/* PCRE2 cannot compile much more than this; stopping here keeps searches in the pattern short. */
enum { MAX_PATTERN_BYTES = 1 << 18, MAX_GROUPS = 10000 };

enum { FOLD = 1, MULTI_LINE = 2, DOT_NEWLINE = 4, UNGREEDY = 8 };

/* A list of nodes under construction, with what their parent needs to know of them. */
struct list {
	struct regex_node *first, *last;
	size_t n;
};

/* An open parenthesis, or the whole expression. */
struct frame {
	struct list concat, alternatives;
	uint32_t group; /* 0: captures nothing */
	unsigned outer_flags;
};

struct parser {
	struct arena *arena;
	struct str whole;
	size_t at;
	unsigned flags;
	uint32_t ngroups, npredicates;
	vec(struct frame) frames;
	bool no_posix_end; /* there is no ":]" from here on */
	/* Where the repeat operator stands that was read last, if nothing came after it. */
	size_t last_repeat;
	struct err *e;
};

bool regex_error(struct err *e, const char *code, struct str fragment)
{
	return err_set(e, ERR_USAGE, "error parsing regexp: %s: `%.*s`", code, STR_ARG(fragment));
}

static bool fail(struct parser *p, const char *code, struct str fragment)
{
	return regex_error(p->e, code, fragment);
}

static struct str rest(const struct parser *p)
{
	return str_from(p->whole, p->at);
}

/* What has been read since `start`. */
static struct str since(const struct parser *p, size_t start)
{
	return (struct str){ p->whole.p + start, p->at - start };
}

static bool at_end(const struct parser *p)
{
	return p->at == p->whole.n;
}

static bool next_is(const struct parser *p, const char *text)
{
	return str_has_prefix(rest(p), str_of(text));
}

static char peek(const struct parser *p, size_t ahead)
{
	return p->whole.n - p->at > ahead ? p->whole.p[p->at + ahead] : '\0';
}

static bool check_utf8(struct parser *p, struct str s)
{
	while (s.n > 0) {
		uint32_t rune;
		size_t used = utf8_decode(s, &rune);

		if (rune == UTF8_INVALID && used == 1)
			return fail(p, "invalid UTF-8", s);
		s = str_from(s, used);
	}
	return true;
}

/* At the end of the expression *rune is a code point that no syntax knows. */
static bool take_rune(struct parser *p, uint32_t *rune)
{
	size_t used;

	*rune = UTF8_INVALID;
	if (at_end(p))
		return true;
	used = utf8_decode(rest(p), rune);
	if (*rune == UTF8_INVALID && used == 1)
		return fail(p, "invalid UTF-8", rest(p));
	p->at += used;
	return true;
}

static struct frame *top(struct parser *p)
{
	return &p->frames.at[p->frames.n - 1];
}

static void append(struct list *l, struct regex_node *node)
{
	if (l->last)
		l->last->next = node;
	else
		l->first = node;
	l->last = node;
	l->n++;
}

static struct regex_node *new_node(struct parser *p, enum regex_op op)
{
	struct regex_node *node = arena_new(p->arena, struct regex_node);

	node->op = op;
	node->height = 1;
	node->repeat_product = 1;
	node->size = 1;
	node->can_be_empty = true;
	return node;
}

static struct regex_node *push_new(struct parser *p, enum regex_op op)
{
	struct regex_node *node = new_node(p, op);

	append(&top(p)->concat, node);
	return node;
}

static void push_char(struct parser *p, enum regex_op op)
{
	push_new(p, op)->can_be_empty = false;
}

static void push_literal(struct parser *p, uint32_t rune)
{
	push_char(p, REGEX_LITERAL);
	top(p)->concat.last->rune = rune;
	if (p->flags & FOLD) {
		top(p)->concat.last->fold = true;
		top(p)->concat.last->predicate = p->npredicates++;
	}
}

static bool check_limits(struct parser *p, const struct regex_node *node)
{
	if (node->size > MAX_SIZE || p->ngroups > MAX_GROUPS)
		return fail(p, "expression too large", p->whole);
	if (node->height > MAX_HEIGHT)
		return fail(p, "expression nests too deeply", p->whole);
	return true;
}

/* The node for a list; a list of one is that one. */
static bool combine(struct parser *p, enum regex_op op, const struct list *l,
		    struct regex_node **out)
{
	struct regex_node *node = l->n == 1 ? l->first : new_node(p, l->n ? op : REGEX_EMPTY);
	bool all_literal = op == REGEX_CONCAT;

	*out = node;
	if (l->n < 2)
		return true;
	node->child = l->first;
	node->can_be_empty = op == REGEX_CONCAT;
	for (const struct regex_node *c = l->first; c; c = c->next) {
		node->size += c->size;
		if (c->height >= node->height)
			node->height = c->height + 1;
		if (c->repeat_product > node->repeat_product)
			node->repeat_product = c->repeat_product;
		if (c->can_be_empty != (op == REGEX_CONCAT))
			node->can_be_empty = c->can_be_empty;
		if (c->op != REGEX_LITERAL)
			all_literal = false;
	}
	/* Go keeps a run of literals in one node. */
	if (all_literal)
		node->height = 1;
	return check_limits(p, node);
}

static bool end_alternative(struct parser *p)
{
	struct frame *f = top(p);
	struct regex_node *node;

	if (!combine(p, REGEX_CONCAT, &f->concat, &node))
		return false;
	append(&f->alternatives, node);
	f->concat = (struct list){ 0 };
	return true;
}

static void open_frame(struct parser *p, bool captures, unsigned outer_flags)
{
	vec_push(&p->frames, (struct frame){ .group = captures ? ++p->ngroups : 0,
					     .outer_flags = outer_flags });
}

/* Takes the innermost frame away and returns what it holds. */
static bool close_frame(struct parser *p, struct regex_node **out)
{
	struct frame *f = top(p);
	struct regex_node *inner, *capture;

	if (!end_alternative(p) || !combine(p, REGEX_ALTERNATE, &f->alternatives, &inner))
		return false;
	p->flags = f->outer_flags;
	*out = inner;
	if (f->group) {
		capture = new_node(p, REGEX_CAPTURE);
		capture->group = f->group;
		capture->child = inner;
		capture->height = inner->height + 1;
		capture->repeat_product = inner->repeat_product;
		capture->size = inner->size + 2;
		capture->can_be_empty = inner->can_be_empty;
		*out = capture;
	}
	p->frames.n--;
	return check_limits(p, *out);
}

static bool parse_close(struct parser *p)
{
	struct regex_node *node;

	if (p->frames.n == 1)
		return fail(p, "unexpected )", p->whole);
	p->at++;
	if (!close_frame(p, &node))
		return false;
	append(&top(p)->concat, node);
	return true;
}

static bool is_name(struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i], lower = (char)(c | 0x20);

		if (!(c == '_' || (c >= '0' && c <= '9') || (lower >= 'a' && lower <= 'z')))
			return false;
	}
	return s.n > 0;
}

/* (?P<name> or (?<name>, of which `prefix` bytes stand before the name. */
static bool parse_named_group(struct parser *p, size_t prefix)
{
	size_t end = str_find_char(rest(p), '>'), start = p->at;
	struct str name;

	if (end == STR_NONE)
		return check_utf8(p, rest(p)) && fail(p, "invalid named capture", rest(p));
	name = (struct str){ p->whole.p + start + prefix, end > prefix ? end - prefix : 0 };
	if (!check_utf8(p, name))
		return false;
	p->at += end + 1;
	if (!is_name(name))
		return fail(p, "invalid named capture", since(p, start));
	open_frame(p, true, p->flags);
	return true;
}

static unsigned flag_bit(uint32_t rune)
{
	switch (rune) {
	case 'i':
		return FOLD;
	case 'm':
		return MULTI_LINE;
	case 's':
		return DOT_NEWLINE;
	case 'U':
		return UNGREEDY;
	}
	return 0;
}

/* (?flags) or (?flags:; flags after a minus sign are switched off. */
static bool parse_flags(struct parser *p)
{
	size_t start = p->at;
	unsigned flags = p->flags;
	bool minus = false, saw_flag = false;
	uint32_t rune;

	p->at += 2;
	while (!at_end(p)) {
		unsigned bit;

		if (!take_rune(p, &rune))
			return false;
		bit = flag_bit(rune);
		if (bit) {
			flags = minus ? flags & ~bit : flags | bit;
			saw_flag = true;
		} else if (rune == '-' && !minus) {
			minus = true;
			saw_flag = false;
		} else if ((rune == ':' || rune == ')') && (!minus || saw_flag)) {
			if (rune == ':')
				open_frame(p, false, p->flags);
			p->flags = flags;
			return true;
		} else {
			break;
		}
	}
	return fail(p, "invalid or unsupported Perl syntax", since(p, start));
}

static bool parse_open(struct parser *p)
{
	if (peek(p, 1) != '?') {
		p->at++;
		open_frame(p, true, p->flags);
		return true;
	}
	if (next_is(p, "(?P<") && rest(p).n > 4)
		return parse_named_group(p, 4);
	if (next_is(p, "(?<") && rest(p).n > 3)
		return parse_named_group(p, 3);
	return parse_flags(p);
}

static int hex_value(uint32_t rune)
{
	uint32_t lower = rune | 0x20;

	if (rune >= '0' && rune <= '9')
		return (int)(rune - '0');
	return lower >= 'a' && lower <= 'f' ? (int)(lower - 'a') + 10 : -1;
}

/* The digits and the brace after \x{ . *valid tells whether they were right. */
static bool parse_hex_in_braces(struct parser *p, uint32_t *rune, bool *valid)
{
	uint32_t c;

	*rune = 0;
	for (bool any = false; !at_end(p); any = true) {
		if (!take_rune(p, &c))
			return false;
		if (c == '}') {
			*valid = any;
			return true;
		}
		if (hex_value(c) < 0)
			return true;
		*rune = *rune * 16 + (uint32_t)hex_value(c);
		if (*rune > UTF8_MAX)
			return true;
	}
	return true;
}

/* What follows \x: two digits, or more in braces. */
static bool parse_hex(struct parser *p, uint32_t *rune, bool *valid)
{
	uint32_t c, d;

	*valid = false;
	if (at_end(p))
		return true;
	if (!take_rune(p, &c))
		return false;
	if (c == '{')
		return parse_hex_in_braces(p, rune, valid);
	if (!take_rune(p, &d))
		return false;
	*valid = hex_value(c) >= 0 && hex_value(d) >= 0;
	*rune = (uint32_t)(hex_value(c) * 16 + hex_value(d));
	return true;
}

static bool is_octal(char c)
{
	return c >= '0' && c <= '7';
}

static bool parse_octal(struct parser *p, uint32_t first_digit, uint32_t *rune)
{
	/* One digit other than 0 would be a back-reference. */
	if (first_digit != '0' && !is_octal(peek(p, 0)))
		return false;
	*rune = first_digit - '0';
	for (int i = 0; i < 2 && is_octal(peek(p, 0)); i++)
		*rune = *rune * 8 + (uint32_t)(p->whole.p[p->at++] - '0');
	return true;
}

/* A backslash and what stands for one character. */
static bool parse_escape(struct parser *p, uint32_t *rune)
{
	static const char letters[] = "afnrtv", values[] = "\a\f\n\r\t\v";
	size_t start = p->at++;
	bool valid = false;
	const char *letter;
	uint32_t c;

	if (at_end(p))
		return fail(p, "trailing backslash at end of expression", STR(""));
	if (!take_rune(p, &c))
		return false;
	letter = c > 0 && c < 0x80 ? strchr(letters, (int)c) : NULL;
	if (letter) {
		*rune = (uint32_t)values[letter - letters];
		return true;
	}
	if (c >= '0' && c <= '7') {
		valid = parse_octal(p, c, rune);
	} else if (c == 'x') {
		if (!parse_hex(p, rune, &valid))
			return false;
	} else {
		bool alnum = (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');

		*rune = c;
		valid = c < 0x80 && !alnum;
	}
	return valid || fail(p, "invalid escape sequence", since(p, start));
}

/* \pN, \p{Name}, \P{^Name} */
static bool parse_property(struct parser *p, struct regex_items *items)
{
	size_t start = p->at;
	bool negated = peek(p, 1) == 'P';
	struct str name;
	uint32_t rune;

	p->at += 2;
	if (peek(p, 0) == '{') {
		size_t end = str_find_char(rest(p), '}');

		if (end == STR_NONE) {
			p->at = start;
			return check_utf8(p, rest(p)) &&
			       fail(p, "invalid character class range", rest(p));
		}
		name = (struct str){ rest(p).p + 1, end - 1 };
		if (!check_utf8(p, name))
			return false;
		p->at += end + 1;
	} else {
		if (!take_rune(p, &rune))
			return false;
		name = since(p, start + 2);
	}
	if (name.n > 0 && name.p[0] == '^') {
		negated = !negated;
		name = str_from(name, 1);
	}
	return regex_add_unicode(items, name, negated, p->flags & FOLD) ||
	       fail(p, "invalid character class range", since(p, start));
}

/* Reads a set that a backslash introduces, if there is one here; *found tells. */
static bool parse_set(struct parser *p, struct regex_items *items, bool *found)
{
	*found = true;
	if (next_is(p, "\\p") || next_is(p, "\\P"))
		return parse_property(p, items);
	*found = next_is(p, "\\") && regex_add_perl(items, peek(p, 1), p->flags & FOLD);
	if (*found)
		p->at += 2;
	return true;
}

static bool parse_class_char(struct parser *p, size_t class_start, uint32_t *rune)
{
	if (at_end(p))
		return fail(p, "missing closing ]", str_from(p->whole, class_start));
	return peek(p, 0) == '\\' ? parse_escape(p, rune) : take_rune(p, rune);
}

static bool parse_class_range(struct parser *p, struct regex_items *items, size_t class_start)
{
	size_t start = p->at;
	uint32_t low, high;

	if (!parse_class_char(p, class_start, &low))
		return false;
	high = low;
	if (rest(p).n >= 2 && peek(p, 0) == '-' && peek(p, 1) != ']') {
		p->at++;
		if (!parse_class_char(p, class_start, &high))
			return false;
	}
	if (high < low)
		return fail(p, "invalid character class range", since(p, start));
	regex_add_range(items, low, high);
	return true;
}

/* "[:alpha:]"; what does not end in ":]" is no such name. */
static bool parse_posix(struct parser *p, struct regex_items *items, bool *found)
{
	size_t start = p->at, end;

	*found = false;
	if (!next_is(p, "[:") || p->no_posix_end)
		return true;
	end = str_find(str_from(rest(p), 2), STR(":]"));
	p->no_posix_end = end == STR_NONE;
	if (p->no_posix_end)
		return true;
	*found = true;
	p->at += end + 4;
	return regex_add_posix(items, since(p, start), p->flags & FOLD) ||
	       fail(p, "invalid character class range", since(p, start));
}

static bool parse_class_items(struct parser *p, struct regex_items *items, size_t class_start)
{
	for (bool first = true; first || at_end(p) || peek(p, 0) != ']'; first = false) {
		bool found;

		if (!parse_posix(p, items, &found))
			return false;
		if (!found && !parse_set(p, items, &found))
			return false;
		if (!found && !parse_class_range(p, items, class_start))
			return false;
	}
	p->at++;
	return true;
}

static void push_class(struct parser *p, struct regex_items *items, bool negated)
{
	struct regex_node *node;

	push_char(p, REGEX_CLASS);
	node = top(p)->concat.last;
	node->fold = (p->flags & FOLD) != 0;
	node->negated = negated;
	node->predicate = p->npredicates++;
	node->nitems = items->n;
	node->items = vec_adopt(p->arena, items);
}

static bool parse_class(struct parser *p)
{
	struct regex_items items = { 0 };
	size_t start = p->at++;
	bool negated = peek(p, 0) == '^', ok;

	if (negated)
		p->at++;
	ok = parse_class_items(p, &items, start);
	if (ok)
		push_class(p, &items, negated);
	vec_release(&items);
	return ok;
}

static bool parse_quoted(struct parser *p)
{
	size_t length, end;

	p->at += 2;
	length = str_find(rest(p), STR("\\E"));
	end = length == STR_NONE ? p->whole.n : p->at + length;
	while (p->at < end) {
		struct str quoted = { rest(p).p, end - p->at };
		uint32_t rune;
		size_t used = utf8_decode(quoted, &rune);

		if (rune == UTF8_INVALID && used == 1)
			return fail(p, "invalid UTF-8", quoted);
		push_literal(p, rune);
		p->at += used;
	}
	p->at += length == STR_NONE ? 0 : 2;
	return true;
}

static bool parse_backslash(struct parser *p)
{
	static const struct {
		char letter;
		enum regex_op op;
	} assertions[] = { { 'A', REGEX_BEGIN_TEXT },
			   { 'z', REGEX_END_TEXT },
			   { 'b', REGEX_WORD_BOUNDARY },
			   { 'B', REGEX_NO_WORD_BOUNDARY } };
	struct regex_items items = { 0 };
	uint32_t rune;
	bool found;

	for (size_t i = 0; i < sizeof(assertions) / sizeof(assertions[0]); i++) {
		if (peek(p, 1) == assertions[i].letter) {
			push_new(p, assertions[i].op);
			p->at += 2;
			return true;
		}
	}
	if (peek(p, 1) == 'Q')
		return parse_quoted(p);
	if (!parse_set(p, &items, &found)) {
		vec_release(&items);
		return false;
	}
	if (found) {
		push_class(p, &items, false);
		return true;
	}
	if (!parse_escape(p, &rune))
		return false;
	push_literal(p, rune);
	return true;
}

/* Digits without a superfluous 0. More than five are as good as five: too many. */
static bool take_count(struct str *s, uint32_t *count)
{
	size_t n = 0;

	*count = 0;
	for (; n < s->n && s->p[n] >= '0' && s->p[n] <= '9'; n++) {
		if (*count <= MAX_REPEAT)
			*count = *count * 10 + (uint32_t)(s->p[n] - '0');
	}
	if (n == 0 || (n > 1 && s->p[0] == '0'))
		return false;
	*s = str_from(*s, n);
	return true;
}

static bool take_byte(struct str *s, char c)
{
	if (s->n == 0 || s->p[0] != c)
		return false;
	*s = str_from(*s, 1);
	return true;
}

/* {2} {2,} {2,3}: true, and stands behind it, if there is one here. */
static bool take_braces(struct parser *p, uint32_t *min, uint32_t *max)
{
	struct str s = str_from(rest(p), 1);

	if (!take_count(&s, min))
		return false;
	*max = *min;
	if (take_byte(&s, ',')) {
		*max = REGEX_NO_MAX;
		if (s.n > 0 && s.p[0] != '}' && !take_count(&s, max))
			return false;
	}
	if (!take_byte(&s, '}'))
		return false;
	p->at = p->whole.n - s.n;
	return true;
}

/* Puts the last node under a repeat that takes its place. `text` is the operator as written. */
static bool repeat_last(struct parser *p, uint32_t min, uint32_t max, bool lazy, struct str text)
{
	struct regex_node *node = top(p)->concat.last, *child;
	uint32_t most = max == REGEX_NO_MAX ? min : max, copies = most ? most : 1;
	uint64_t product = (uint64_t)copies * node->repeat_product;

	if (text.p[0] != '{')
		product = node->repeat_product;
	else if (max == 0)
		product = 0;
	if (copies > 1 && product > MAX_REPEAT)
		return fail(p, "invalid repeat count", text);
	child = new_node(p, node->op);
	*child = *node;
	*node = (struct regex_node){ .op = REGEX_REPEAT, .min = min, .max = max, .child = child };
	node->lazy = lazy;
	node->height = child->height + 1;
	node->can_be_empty = min == 0 || child->can_be_empty;
	node->repeat_product = (uint32_t)product;
	node->size = (child->size + 1) * copies + 1;
	return check_limits(p, node);
}

static bool parse_repeat(struct parser *p)
{
	size_t start = p->at, previous = p->last_repeat;
	uint32_t min = peek(p, 0) == '+', max = peek(p, 0) == '?' ? 1 : REGEX_NO_MAX;
	bool lazy = (p->flags & UNGREEDY) != 0;

	if (peek(p, 0) != '{') {
		p->at++;
	} else if (!take_braces(p, &min, &max)) {
		p->at++;
		push_literal(p, '{');
		return true;
	}
	if (min > MAX_REPEAT || (max != REGEX_NO_MAX && (max > MAX_REPEAT || min > max)))
		return fail(p, "invalid repeat count", since(p, start));
	if (peek(p, 0) == '?' && !at_end(p)) {
		p->at++;
		lazy = !lazy;
	}
	if (previous != STR_NONE)
		return fail(p, "invalid nested repetition operator", since(p, previous));
	if (!top(p)->concat.last)
		return fail(p, "missing argument to repetition operator", since(p, start));
	p->last_repeat = start;
	return repeat_last(p, min, max, lazy, since(p, start));
}

static bool parse_one(struct parser *p)
{
	bool multi_line = (p->flags & MULTI_LINE) != 0;
	uint32_t rune;

	switch (peek(p, 0)) {
	case '(':
		return parse_open(p);
	case ')':
		return parse_close(p);
	case '[':
		return parse_class(p);
	case '\\':
		return parse_backslash(p);
	case '|':
		p->at++;
		return end_alternative(p);
	case '^':
		p->at++;
		push_new(p, multi_line ? REGEX_BEGIN_LINE : REGEX_BEGIN_TEXT);
		return true;
	case '$':
		p->at++;
		push_new(p, multi_line ? REGEX_END_LINE : REGEX_END_TEXT);
		return true;
	case '.':
		p->at++;
		push_char(p, p->flags & DOT_NEWLINE ? REGEX_ANY : REGEX_ANY_NOT_NEWLINE);
		return true;
	}
	if (!take_rune(p, &rune))
		return false;
	push_literal(p, rune);
	return true;
}

static bool parse_all(struct parser *p, struct regex_node **root)
{
	open_frame(p, false, 0);
	p->last_repeat = STR_NONE;
	while (!at_end(p)) {
		bool repeat = memchr("*+?{", peek(p, 0), 4) != NULL;

		if (!(repeat ? parse_repeat(p) : parse_one(p)))
			return false;
		if (!repeat || top(p)->concat.last->op != REGEX_REPEAT)
			p->last_repeat = STR_NONE;
	}
	if (p->frames.n > 1)
		return fail(p, "missing closing )", p->whole);
	return close_frame(p, root);
}

bool regex_parse(struct arena *a, struct str pattern, struct regex_tree *out, struct err *e)
{
	struct parser p = { .arena = a, .whole = pattern, .e = e };
	bool ok;

	if (pattern.n == 0)
		p.whole = STR("");
	if (pattern.n > MAX_PATTERN_BYTES)
		return fail(&p, "expression too large", pattern);
	ok = parse_all(&p, &out->root);
	out->ngroups = p.ngroups;
	out->npredicates = p.npredicates;
	vec_release(&p.frames);
	return ok;
}
