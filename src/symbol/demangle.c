#include "symbol/symbol.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <libiberty/demangle.h>

#include "profile/profile.h"

/* libiberty parses by recursion, up to about 200 bytes of stack for each byte of the name. */
#define NAME_MAX_BYTES (16 << 10)
/* Substitutions make the text grow exponentially with the name, so it is cut off by a jump. */
#define TEXT_MAX_BYTES (128 << 10)
/* The depth at which libiberty's printer gives up. */
#define DEPTH_MAX 1024
/* Size of the tree when every shared part is counted as often as it is used; the printer's searches
 * walk all of it. */
#define TREE_MAX (32 << 10)
/* Sum of the sizes of all patterns of pack expansions: each is searched once per printed element.
 */
#define PACKS_MAX (4 << 10)
/* The printer keeps templates times saved scopes entries of 16 bytes on the stack. */
#define SCOPES_MAX (8 << 10)

struct printer {
	struct buf *out;
	size_t start;
	jmp_buf too_long;
};

static void print_part(const char *text, size_t n, void *context)
{
	struct printer *pr = context;

	/* Neither the C++ nor the Rust printer can be told to stop. Both keep their state on the
	 * stack; at worst the decoded identifier of one Rust name is lost. */
	if (n > TEXT_MAX_BYTES - (pr->out->n - pr->start))
		longjmp(pr->too_long, 1);
	buf_add(pr->out, text, n);
}

static bool print_tree(struct printer *pr, struct demangle_component *tree)
{
	if (setjmp(pr->too_long))
		return false;
	return cplus_demangle_print_callback(DMGL_PARAMS | DMGL_ANSI, tree, print_part, pr) != 0;
}

static bool print_rust(struct printer *pr, const char *name)
{
	if (setjmp(pr->too_long))
		return false;
	return rust_demangle_callback(name, 0, print_part, pr) != 0;
}

/* What is dropped from a tree before it is printed, and what was found in it. */
struct pruner {
	bool drop_templates, drop_enclosing_params, drop_clones;
	size_t templates, scopes, packs;
};

/* The places where a node holds its children; returns how many there are. */
static int children(struct demangle_component *n, struct demangle_component **slots[2])
{
	switch (n->type) {
	case DEMANGLE_COMPONENT_NAME:
	case DEMANGLE_COMPONENT_SUB_STD:
	case DEMANGLE_COMPONENT_TEMPLATE_PARAM:
	case DEMANGLE_COMPONENT_FUNCTION_PARAM:
	case DEMANGLE_COMPONENT_UNNAMED_TYPE:
	case DEMANGLE_COMPONENT_BUILTIN_TYPE:
	case DEMANGLE_COMPONENT_EXTENDED_BUILTIN_TYPE:
	case DEMANGLE_COMPONENT_OPERATOR:
	case DEMANGLE_COMPONENT_CHARACTER:
	case DEMANGLE_COMPONENT_NUMBER:
		return 0;
	case DEMANGLE_COMPONENT_CTOR:
		slots[0] = &n->u.s_ctor.name;
		return 1;
	case DEMANGLE_COMPONENT_DTOR:
		slots[0] = &n->u.s_dtor.name;
		return 1;
	case DEMANGLE_COMPONENT_EXTENDED_OPERATOR:
		slots[0] = &n->u.s_extended_operator.name;
		return 1;
	case DEMANGLE_COMPONENT_FIXED_TYPE:
		slots[0] = &n->u.s_fixed.length;
		return 1;
	case DEMANGLE_COMPONENT_LAMBDA:
	case DEMANGLE_COMPONENT_DEFAULT_ARG:
		slots[0] = &n->u.s_unary_num.sub;
		return 1;
	default:
		slots[0] = &n->u.s_binary.left;
		slots[1] = &n->u.s_binary.right;
		return 2;
	}
}

static struct demangle_component *template_argument(const struct demangle_component *template,
						    long index)
{
	const struct demangle_component *list = template->u.s_binary.right;

	for (; list && index > 0; index--)
		list = list->u.s_binary.right;
	return list && list->type == DEMANGLE_COMPONENT_TEMPLATE_ARGLIST ? list->u.s_binary.left
									 : NULL;
}

/* "operator T" of a template names an argument of that template, which is about to be dropped. */
static void resolve_conversion(struct demangle_component *conversion,
			       const struct demangle_component *template)
{
	struct demangle_component **slot = &conversion->u.s_binary.left;

	for (int depth = 0; *slot && depth < DEPTH_MAX; depth++) {
		struct demangle_component **below[2];

		if ((*slot)->type == DEMANGLE_COMPONENT_TEMPLATE_PARAM) {
			struct demangle_component *argument =
				template_argument(template, (*slot)->u.s_number.number);

			if (argument)
				*slot = argument;
			return;
		}
		if (!children(*slot, below))
			return;
		slot = below[0];
	}
}

/* The scopes of a local name keep their parentheses: f()::{lambda()#1}. */
static void drop_enclosing_params(struct demangle_component *local)
{
	struct demangle_component *function = local->u.s_binary.left;
	struct demangle_component *type =
		function && function->type == DEMANGLE_COMPONENT_TYPED_NAME
			? function->u.s_binary.right
			: NULL;

	if (type && type->type == DEMANGLE_COMPONENT_FUNCTION_TYPE)
		type->u.s_binary.left = type->u.s_binary.right = NULL;
}

static void count(struct pruner *pr, const struct demangle_component *n, int size)
{
	const struct demangle_component *left;

	switch (n->type) {
	case DEMANGLE_COMPONENT_TEMPLATE:
		pr->templates++;
		break;
	case DEMANGLE_COMPONENT_REFERENCE:
	case DEMANGLE_COMPONENT_RVALUE_REFERENCE:
		left = n->u.s_binary.left;
		pr->scopes += left && left->type == DEMANGLE_COMPONENT_TEMPLATE_PARAM;
		break;
	case DEMANGLE_COMPONENT_PACK_EXPANSION:
		pr->packs += (size_t)size;
		break;
	default:
		break;
	}
}

/* SUB_STD is a ready-made text, and that of std::string in a constructor's name has arguments. */
static void cut_template_text(struct demangle_component *standard)
{
	const char *text = standard->u.s_string.string;
	const char *angle = memchr(text, '<', (size_t)standard->u.s_string.len);

	if (angle)
		standard->u.s_string.len = (int)(angle - text);
}

/* Prunes the tree at *slot. The tree shares parts, so each is visited once: d_printing, which is
 * the printer's and zero until it runs, holds the size of what was visited, and -1 while that is
 * going on. Returns the size, or -1 if the tree is too large or too deep, or leads back to itself:
 * an argument may name the conversion that it has just been put into. `template` is the one around
 * *slot. */
static int prune(struct pruner *pr, struct demangle_component **slot,
		 const struct demangle_component *template, int depth)
{
	struct demangle_component **below[2], *n;
	int nbelow, size = 1;

	if (depth > DEPTH_MAX)
		return -1;
	while (*slot && pr->drop_clones && (*slot)->type == DEMANGLE_COMPONENT_CLONE)
		*slot = (*slot)->u.s_binary.left;
	while (*slot && pr->drop_templates && (*slot)->type == DEMANGLE_COMPONENT_TEMPLATE) {
		template = *slot;
		*slot = template->u.s_binary.left;
	}
	n = *slot;
	if (!n)
		return 0;
	if (n->d_printing)
		return n->d_printing;
	n->d_printing = -1;
	if (pr->drop_templates && n->type == DEMANGLE_COMPONENT_SUB_STD)
		cut_template_text(n);
	if (pr->drop_templates && n->type == DEMANGLE_COMPONENT_CONVERSION && template)
		resolve_conversion(n, template);
	if (pr->drop_enclosing_params && n->type == DEMANGLE_COMPONENT_LOCAL_NAME)
		drop_enclosing_params(n);
	nbelow = children(n, below);
	for (int i = 0; i < nbelow; i++) {
		int part = prune(pr, below[i], template, depth + 1);

		if (part < 0 || part > TREE_MAX - size)
			return -1;
		size += part;
	}
	n->d_printing = size;
	count(pr, n, size);
	return size;
}

static void clear_marks(struct demangle_component *n)
{
	struct demangle_component **below[2];
	int nbelow;

	if (!n || !n->d_printing)
		return;
	n->d_printing = 0;
	nbelow = children(n, below);
	for (int i = 0; i < nbelow; i++)
		clear_marks(*below[i]);
}

static bool keeps_params(enum demangle_mode mode)
{
	return mode == DEMANGLE_FULL || mode == DEMANGLE_CLONES;
}

static bool demangle_cxx(struct printer *pr, const char *name, enum demangle_mode mode,
			 bool with_params)
{
	/* Without DMGL_PARAMS what follows the name, clone suffixes too, is not even looked at. */
	int options = with_params ? DMGL_PARAMS | DMGL_ANSI : DMGL_NO_OPTS;
	struct pruner pruner = {
		.drop_templates = mode == DEMANGLE_DEFAULT,
		.drop_enclosing_params = !keeps_params(mode),
		.drop_clones = mode != DEMANGLE_CLONES,
	};
	void *memory = NULL;
	struct demangle_component *tree = cplus_demangle_v3_components(name, options, &memory);
	bool ok = false;

	if (tree && prune(&pruner, &tree, NULL, 0) > 0 && pruner.packs <= PACKS_MAX &&
	    pruner.templates * pruner.scopes <= SCOPES_MAX) {
		clear_marks(tree);
		ok = print_tree(pr, tree);
	}
	free(memory);
	return ok;
}

/* _GLOBAL__I_..., where any of ._$ may stand for the second underscore. */
static bool demangle_global(struct printer *pr, const char *name, enum demangle_mode mode)
{
	const char *kind = name + strlen("_GLOBAL_");

	if (!kind[0] || !strchr("._$", kind[0]) || (kind[1] != 'I' && kind[1] != 'D') ||
	    kind[2] != '_' || !kind[3])
		return false;
	buf_printf(pr->out, "global %s keyed to ", kind[1] == 'I' ? "constructors" : "destructors");
	if (strncmp(kind + 3, "_Z", 2) != 0) {
		buf_puts(pr->out, kind);
		return true;
	}
	/* Parameters are kept here in all modes, as binutils does. */
	return demangle_cxx(pr, kind + 3, mode, true);
}

/* clang's ___Z1fv_block_invoke, perhaps with _2 or .3 behind. */
static bool demangle_block(struct printer *pr, char *name, enum demangle_mode mode)
{
	static const char marker[] = "_block_invoke";
	char *end = NULL;
	const char *rest;

	for (char *at = name; (at = strstr(at, marker)); at++)
		end = at;
	if (!end)
		return false;
	rest = end + strlen(marker);
	rest += *rest == '_' || *rest == '.';
	if (rest[strspn(rest, "0123456789")])
		return false;
	*end = '\0';
	buf_puts(pr->out, "invocation function for block in ");
	return demangle_cxx(pr, name + 2, mode, keeps_params(mode));
}

/* Rust before 2021 mangled as C++ does and put 17h, 16 hex digits, E at the end. */
static bool is_legacy_rust(const char *name, size_t n)
{
	return n > 23 && strncmp(name, "_ZN", 3) == 0 && strstr(name + 3, "17h");
}

static bool demangle_text(struct printer *pr, char *name, size_t n, enum demangle_mode mode)
{
	if (name[1] == 'R') {
		name[strcspn(name, ".")] = '\0';
		return print_rust(pr, name);
	}
	if (is_legacy_rust(name, n)) {
		if (print_rust(pr, name))
			return true;
		pr->out->n = pr->start;
	}
	if (name[1] == 'Z')
		return demangle_cxx(pr, name, mode, keeps_params(mode));
	if (strncmp(name, "___Z", 4) == 0)
		return demangle_block(pr, name, mode);
	if (strncmp(name, "_GLOBAL_", 8) == 0)
		return demangle_global(pr, name, mode);
	return false;
}

bool demangle_name(struct buf *out, struct str mangled, enum demangle_mode mode)
{
	struct printer pr = { .out = out, .start = out->n };
	char *name;
	bool ok;

	if (mode == DEMANGLE_NONE || mangled.n < 3 || mangled.n > NAME_MAX_BYTES ||
	    mangled.p[0] != '_' || !strchr("ZR_G", mangled.p[1]) ||
	    memchr(mangled.p, '\0', mangled.n))
		return false;
	name = xmalloc(mangled.n + 1);
	memcpy(name, mangled.p, mangled.n);
	name[mangled.n] = '\0';
	ok = demangle_text(&pr, name, mangled.n, mode) && out->n > pr.start;
	if (!ok)
		out->n = pr.start;
	free(name);
	return ok;
}

/* Most names have none of these. No way out of the loop: compilers make this a vector's work. */
static bool has_cxx_marks(struct str s)
{
	bool found = false;

	for (size_t i = 0; i < s.n; i++)
		found |= (s.p[i] == '<') | (s.p[i] == '>') | (s.p[i] == '[') | (s.p[i] == ']') |
			 (s.p[i] == ':');
	return found;
}

static bool looks_like_cxx(struct str s)
{
	bool found = false;

	if (!has_cxx_marks(s))
		return false;
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i], next = i + 1 < s.n ? s.p[i + 1] : '\0';

		/* Java's .<init> and Go's (*T[...]).f */
		if (c == '.' && next == '<')
			return false;
		if (c == ']' && next == ')' && i + 2 < s.n && s.p[i + 2] == '.')
			return false;
		found |= c == '<' || c == '>' || c == '[' || c == ']' || (c == ':' && next == ':');
	}
	return found;
}

/* Removes the outermost pairs in place; what follows a closing one too many stays. */
static void strip_pairs(struct buf *b, char open, char close)
{
	size_t kept = 0, first = 0, i;
	int nesting = 0;

	for (i = 0; i < b->n; i++) {
		char c = b->p[i];

		if (c == close && --nesting < 0)
			break;
		if (c == open && nesting++ == 0)
			first = kept;
		b->p[kept++] = c;
		if (c == close && nesting == 0)
			kept = first;
	}
	memmove(b->p + kept, b->p + i, b->n - i);
	b->n = kept + b->n - i;
}

static uint32_t readable_name(struct profile *p, struct buf *scratch, uint32_t system_name,
			      enum demangle_mode mode)
{
	struct str s = profile_str(p, system_name);

	scratch->n = 0;
	if (s.n && s.p[0] == '_' &&
	    (demangle_name(scratch, s, mode) || demangle_name(scratch, str_from(s, 1), mode)))
		return strings_add(p->strings, buf_view(scratch));
	if (mode == DEMANGLE_FULL || !looks_like_cxx(s))
		return system_name;
	buf_str(scratch, s);
	strip_pairs(scratch, '(', ')');
	if (mode == DEMANGLE_DEFAULT)
		strip_pairs(scratch, '<', '>');
	return scratch->n == s.n ? system_name : strings_add(p->strings, buf_view(scratch));
}

static uint32_t shown_name(struct profile *p, struct buf *scratch, const struct function *f,
			   enum demangle_mode mode, bool force)
{
	uint32_t name = force && f->name && f->system_name ? f->system_name : f->name;

	if (mode != DEMANGLE_NONE && (!name || name == f->system_name))
		return readable_name(p, scratch, f->system_name, mode);
	return name;
}

void profile_demangle(struct arena *a, struct profile *p, enum demangle_mode mode, bool force)
{
	const struct function *old = p->functions;
	struct buf scratch = { 0 };

	if (mode == DEMANGLE_NONE && !force)
		return;
	for (uint32_t i = 0; i < p->nfunctions; i++) {
		uint32_t name = shown_name(p, &scratch, &old[i], mode, force);

		if (name == old[i].name)
			continue;
		if (p->functions == old)
			p->functions = arena_copy(a, old, p->nfunctions * sizeof(*old));
		p->functions[i].name = name;
	}
	buf_release(&scratch);
}
