#include "base/yaml.h"

#include <stdarg.h>
#include <stdio.h>

#include <yaml.h>

#include "base/map.h"
#include "base/vec.h"

enum { MAX_DEPTH = 12 };

struct reader {
	yaml_parser_t parser;
	struct arena *a;
	struct err *e;
};

bool tree_fail(const struct tree *at, struct err *e, const char *fmt, ...)
{
	char text[700];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	return err_set(e, ERR_FORMAT, "line %zu: %s", at->line, text);
}

static bool fail_at(struct reader *r, size_t line, const char *why)
{
	return tree_fail(&(struct tree){ .line = line }, r->e, "%s", why);
}

static bool next(struct reader *r, yaml_event_t *event)
{
	const yaml_parser_t *p = &r->parser;
	size_t line;

	if (yaml_parser_parse(&r->parser, event))
		return true;
	line = p->problem_mark.line ? p->problem_mark.line : p->context_mark.line;
	return fail_at(r, line + 1, p->problem ? p->problem : "not YAML");
}

/* What a plain ~ or null says is the same as nothing at all. */
static struct str text_of(struct reader *r, const yaml_event_t *event)
{
	struct str s = { (const char *)event->data.scalar.value, event->data.scalar.length };
	bool is_plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;

	if (is_plain && (str_eq(s, STR("~")) || str_eq(s, STR("null"))))
		return STR("");
	return (struct str){ str_dup(r->a, s), s.n };
}

static bool read_event(struct reader *r, const yaml_event_t *event, unsigned depth,
		       struct tree *out);

static bool read_next(struct reader *r, unsigned depth, struct tree *out)
{
	yaml_event_t event;
	bool ok;

	if (!next(r, &event))
		return false;
	ok = read_event(r, &event, depth, out);
	yaml_event_delete(&event);
	return ok;
}

static bool read_list(struct reader *r, unsigned depth, struct tree *out)
{
	vec(struct tree) parts = { 0 };
	bool ok = true, is_end = false;

	while (ok && !is_end) {
		struct tree part = { 0 };
		yaml_event_t event;

		ok = next(r, &event);
		if (!ok)
			break;
		is_end = event.type == YAML_SEQUENCE_END_EVENT;
		ok = is_end || read_event(r, &event, depth + 1, &part);
		yaml_event_delete(&event);
		if (ok && !is_end)
			vec_push(&parts, part);
	}
	out->n = parts.n;
	out->at = vec_adopt(r->a, &parts);
	return ok;
}

struct name_key {
	const struct str *names;
	struct str name;
};

static bool same_name(const void *ctx, uint32_t i)
{
	const struct name_key *k = ctx;

	return str_eq(k->names[i], k->name);
}

/* A name, unless the map ends. */
static bool read_name(struct reader *r, bool *is_end, struct str *name, size_t *line)
{
	yaml_event_t event;
	bool ok = true;

	if (!next(r, &event))
		return false;
	*line = event.start_mark.line + 1;
	*is_end = event.type == YAML_MAPPING_END_EVENT;
	if (event.type == YAML_SCALAR_EVENT)
		*name = text_of(r, &event);
	else if (!*is_end)
		ok = fail_at(r, *line, "a name is a word, with a colon after it");
	yaml_event_delete(&event);
	return ok;
}

static bool read_map(struct reader *r, unsigned depth, struct tree *out)
{
	vec(struct tree) parts = { 0 };
	vec(struct str) names = { 0 };
	struct map map = { 0 };
	bool ok = true;

	while (ok) {
		struct name_key key = { names.at, STR("") };
		struct tree part = { 0 };
		bool is_end;
		size_t line;

		ok = read_name(r, &is_end, &key.name, &line);
		if (!ok || is_end)
			break;
		if (map_put(&map, hash_bytes(map_seed(), key.name.p, key.name.n), names.n,
			    same_name, &key) != names.n)
			ok = tree_fail(&(struct tree){ .line = line }, r->e, "%.*s is there twice",
				       STR_ARG(key.name));
		ok = ok && read_next(r, depth + 1, &part);
		vec_push(&names, key.name);
		vec_push(&parts, part);
	}
	map_release(&map);
	out->n = parts.n;
	out->names = vec_adopt(r->a, &names);
	out->at = vec_adopt(r->a, &parts);
	return ok;
}

static bool read_event(struct reader *r, const yaml_event_t *event, unsigned depth,
		       struct tree *out)
{
	out->line = event->start_mark.line + 1;
	if (depth > MAX_DEPTH)
		return fail_at(r, out->line, "nested too deep");
	switch (event->type) {
	case YAML_SCALAR_EVENT:
		out->kind = TREE_TEXT;
		out->text = text_of(r, event);
		return true;
	case YAML_SEQUENCE_START_EVENT:
		out->kind = TREE_LIST;
		return read_list(r, depth, out);
	case YAML_MAPPING_START_EVENT:
		out->kind = TREE_MAP;
		return read_map(r, depth, out);
	default:
		return fail_at(r, out->line, "aliases (*name) are not understood: write it out");
	}
}

/* One document; what follows it is an error, as nobody would look at it. */
static bool read_document(struct reader *r, struct tree *out)
{
	bool is_there = false;

	for (;;) {
		yaml_event_t event;
		yaml_event_type_t type;
		bool ok = next(r, &event);

		if (!ok)
			return false;
		type = event.type;
		if (type == YAML_DOCUMENT_START_EVENT && is_there)
			ok = fail_at(r, event.start_mark.line + 1, "there is a second document");
		else if (type != YAML_STREAM_START_EVENT && type != YAML_STREAM_END_EVENT &&
			 type != YAML_DOCUMENT_START_EVENT && type != YAML_DOCUMENT_END_EVENT)
			ok = is_there = read_event(r, &event, 0, out);
		yaml_event_delete(&event);
		if (!ok || type == YAML_STREAM_END_EVENT)
			return ok;
	}
}

bool tree_read(struct arena *a, struct str yaml, struct tree *out, struct err *e)
{
	struct reader r = { .a = a, .e = e };
	bool ok;

	*out = (struct tree){ .line = 1, .text = STR("") };
	if (!yaml_parser_initialize(&r.parser))
		return err_set(e, ERR_IO, "no memory to read YAML");
	yaml_parser_set_input_string(&r.parser, (const unsigned char *)yaml.p, yaml.n);
	ok = read_document(&r, out);
	yaml_parser_delete(&r.parser);
	return ok;
}

const struct tree *tree_find(const struct tree *map, const char *name)
{
	for (size_t i = 0; map->kind == TREE_MAP && i < map->n; i++)
		if (str_eq(map->names[i], str_of(name)))
			return &map->at[i];
	return NULL;
}

bool tree_is_empty(const struct tree *t)
{
	return t->kind == TREE_TEXT ? !t->text.n : !t->n;
}
