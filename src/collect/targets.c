#include "collect/targets.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/number.h"
#include "base/vec.h"
#include "base/yaml.h"
#include "collect/own.h"

enum { MAX_ADDRESS = 300 };

void target_set_release(struct target_set *s)
{
	arena_release(&s->arena);
	*s = (struct target_set){ 0 };
}

/* ---- addresses and labels */

static bool is_word(struct str s, const char *more)
{
	for (size_t i = 0; i < s.n; i++)
		if (!isalnum((unsigned char)s.p[i]) && (!s.p[i] || !strchr(more, s.p[i])))
			return false;
	return s.n;
}

/* Nothing that would change the meaning of a URL. */
static bool is_address(struct str s)
{
	size_t colon = str_rfind_char(s, ':');
	struct str host = { s.p, colon == STR_NONE ? 0 : colon };
	uint64_t port;

	if (s.n > MAX_ADDRESS || !host.n ||
	    number_parse_uint(str_from(s, colon + 1), 10, &port) != NUMBER_OK || !port ||
	    port > UINT16_MAX)
		return false;
	if (host.p[0] == '[')
		return host.n > 2 && host.p[host.n - 1] == ']' &&
		       is_word((struct str){ host.p + 1, host.n - 2 }, ":.%");
	return is_word(host, ".-_");
}

bool label_is_name(struct str name)
{
	return is_word(name, "_.-/") && name.n <= MAX_LABEL;
}

static bool read_address(const struct tree *t, struct str *out, struct err *e)
{
	if (t->kind != TREE_TEXT || !is_address(t->text))
		return tree_fail(t, e,
				 "\"%.*s\" is no target: write host:port, as shop-1:6060 or "
				 "[::1]:6060, without http:// and path",
				 (int)(t->text.n < MAX_ADDRESS ? t->text.n : MAX_ADDRESS),
				 t->text.p ? t->text.p : "");
	*out = t->text;
	return true;
}

bool labels_read(struct arena *a, const struct tree *map, const struct target_label **labels,
		 size_t *n, struct err *e)
{
	struct target_label *to;
	size_t bytes = 0;

	*labels = NULL;
	*n = 0;
	if (tree_is_empty(map))
		return true;
	if (map->kind != TREE_MAP)
		return tree_fail(map, e, "labels are written as {name: value}");
	if (map->n > MAX_LABELS)
		return tree_fail(map, e, "more than %d labels", MAX_LABELS);
	to = arena_many(a, map->n, struct target_label);
	for (size_t i = 0; i < map->n; i++) {
		struct str name = map->names[i], value = map->at[i].text;

		if (str_has_prefix(name, STR("__"))) /* Prometheus' own */
			continue;
		if (!label_is_name(name))
			return tree_fail(&map->at[i], e,
					 "the name of a label has letters, digits and _ only");
		if (map->at[i].kind != TREE_TEXT || value.n > MAX_LABEL ||
		    (value.n && memchr(value.p, '\0', value.n)))
			return tree_fail(
				&map->at[i], e,
				"the value of the label %.*s is a text of at most %d bytes",
				STR_ARG(name), MAX_LABEL);
		if (!value.n)
			continue;
		to[(*n)++] = (struct target_label){ name, value };
		bytes += name.n + value.n;
		if (bytes > MAX_LABELS_BYTES)
			return tree_fail(&map->at[i], e, "labels have more than %d bytes together",
					 MAX_LABELS_BYTES);
	}
	*labels = to;
	return true;
}

static size_t labels_bytes(const struct target_label *labels, size_t n)
{
	size_t bytes = 0;

	for (size_t i = 0; i < n; i++)
		bytes += labels[i].name.n + labels[i].value.n;
	return bytes;
}

/* ---- groups */

struct group {
	const struct tree *targets;
	const struct target_label *labels;
	size_t nlabels;
};

static bool read_group(struct arena *a, const struct tree *t, struct group *out, struct err *e)
{
	if (t->kind != TREE_MAP)
		return tree_fail(t, e,
				 "a group is written as {targets: [\"host:port\"], labels: {name: "
				 "value}}");
	for (size_t i = 0; i < t->n; i++) {
		const struct tree *part = &t->at[i];

		if (str_eq(t->names[i], STR("targets")))
			out->targets = part;
		else if (!str_eq(t->names[i], STR("labels")))
			return tree_fail(part, e, "a group has targets and labels, no \"%.*s\"",
					 STR_ARG(t->names[i]));
		else if (!labels_read(a, part, &out->labels, &out->nlabels, e))
			return false;
	}
	if (!out->targets)
		return tree_fail(t, e, "the group has no targets");
	return out->targets->kind == TREE_LIST || tree_is_empty(out->targets) ||
	       tree_fail(out->targets, e, "targets are a list: [\"host:port\"]");
}

struct specs {
	vec(struct target_spec) at;
	size_t labels_bytes; /* of all, as if none were shared */
};

static bool add_group(struct specs *specs, const struct group *g, struct err *e)
{
	size_t bytes = labels_bytes(g->labels, g->nlabels);

	for (size_t i = 0; i < g->targets->n; i++) {
		const struct tree *part = &g->targets->at[i];
		struct target_spec spec = { .labels = g->labels, .nlabels = g->nlabels };

		specs->labels_bytes += bytes;
		if (!read_address(part, &spec.address, e))
			return false;
		if (specs->at.n == MAX_TARGETS)
			return tree_fail(part, e, "more than %d targets", MAX_TARGETS);
		if (specs->labels_bytes > MAX_ALL_LABELS_BYTES)
			return tree_fail(part, e, "targets have more than %d MB of labels together",
					 MAX_ALL_LABELS_BYTES >> 20);
		vec_push(&specs->at, spec);
	}
	return true;
}

bool targets_read(struct arena *a, const struct tree *list, bool may_be_plain,
		  struct target_spec **at, size_t *n, struct err *e)
{
	struct specs specs = { 0 };
	bool ok = true;

	if (list->kind != TREE_LIST && !tree_is_empty(list))
		return tree_fail(list, e, "targets are a list");
	for (size_t i = 0; i < list->n && ok; i++) {
		const struct tree *part = &list->at[i];
		struct group g = { 0 };
		struct tree one = { .kind = TREE_LIST, .at = &list->at[i], .n = 1 };

		if (may_be_plain && part->kind == TREE_TEXT)
			g.targets = &one;
		else
			ok = read_group(a, part, &g, e);
		ok = ok && add_group(&specs, &g, e);
	}
	*n = ok ? specs.at.n : 0;
	*at = vec_adopt(a, &specs.at);
	return ok;
}

static struct str copy_str(struct arena *a, struct str s)
{
	return (struct str){ str_dup(a, s), s.n };
}

struct target_label *labels_copy(struct arena *a, const struct target_label *from, size_t n)
{
	struct target_label *labels = arena_many(a, n, struct target_label);

	for (size_t i = 0; i < n; i++) {
		labels[i].name = copy_str(a, from[i].name);
		labels[i].value = copy_str(a, from[i].value);
	}
	return labels;
}

void targets_copy(struct arena *a, struct target_spec *to, const struct target_spec *from, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		bool is_shared = i && from[i].labels == from[i - 1].labels &&
				 from[i].nlabels == from[i - 1].nlabels;

		to[i] = (struct target_spec){
			.address = copy_str(a, from[i].address),
			.labels = is_shared ? to[i - 1].labels
					    : labels_copy(a, from[i].labels, from[i].nlabels),
			.nlabels = from[i].nlabels,
			.own = from[i].own ? own_copy(a, from[i].own) : NULL
		};
	}
}

/* ---- a source that never changes */

struct fixed {
	struct target_source source;
	const struct target_spec *at;
	size_t n;
	bool is_told;
};

static bool fixed_look(struct target_source *s, struct target_set *out)
{
	struct fixed *f = (struct fixed *)s;

	if (f->is_told)
		return false;
	f->is_told = true;
	out->n = f->n;
	out->at = arena_copy(&out->arena, f->at, f->n * sizeof(*f->at));
	return true;
}

static void fixed_free(struct target_source *s)
{
	free(s);
}

struct target_source *source_fixed_new(const struct target_spec *at, size_t n)
{
	struct fixed *f = xcalloc(1, sizeof(*f));

	*f = (struct fixed){ .source = { .look = fixed_look, .free = fixed_free },
			     .at = at,
			     .n = n };
	return &f->source;
}
