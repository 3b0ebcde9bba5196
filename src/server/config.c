/* config.c - options of `kiln serve` from a YAML file and from the environment. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <yaml.h>

#include "server/options.h"
#include "server/owners.h"

enum { MAX_FILE_BYTES = 1 << 20, MAX_DEPTH = 8 };

#define VARIABLE_PREFIX "KILN_SERVE_"

/* ---- one option */

/* The YAML key "max_memory" is as good as "max-memory". */
static const struct option_def *find_key(struct buf *key)
{
	for (size_t i = 0; i < key->n; i++)
		if (key->p[i] == '_')
			key->p[i] = '-';
	return option_find(&server_option_table, buf_view(key));
}

void config_variable(struct buf *out, const struct option_def *d)
{
	buf_puts(out, VARIABLE_PREFIX);
	for (const char *c = d->name; *c; c++)
		buf_char(out, *c == '-'		       ? '_'
			      : *c >= 'a' && *c <= 'z' ? (char)(*c - 'a' + 'A')
						       : *c);
}

/* ---- the file */

struct reader {
	struct server_options *options;
	struct arena *a;
	yaml_parser_t *parser;
	struct buf key;				    /* of where we are: "max", then "max-memory" */
	struct buf rules;			    /* of single services */
	bool is_set[sizeof(struct server_options)]; /* of rows, which are fewer */
	struct err *e;
};

static bool fail(struct reader *r, const yaml_mark_t *at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static bool fail(struct reader *r, const yaml_mark_t *at, const char *fmt, ...)
{
	char text[400];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	return err_set(r->e, ERR_FORMAT, "line %zu: %s", at->line + 1, text);
}

static bool next(struct reader *r, yaml_event_t *event)
{
	const yaml_parser_t *p = r->parser;

	if (yaml_parser_parse(r->parser, event))
		return true;
	return fail(r, p->problem_mark.line ? &p->problem_mark : &p->context_mark, "%s%s%s",
		    p->problem ? p->problem : "not YAML", p->context ? " " : "",
		    p->context ? p->context : "");
}

static struct str scalar_text(const yaml_event_t *event)
{
	return (struct str){ (const char *)event->data.scalar.value, event->data.scalar.length };
}

/* Of the same length. */
static bool is_same_key(struct str key, const char *name)
{
	for (size_t i = 0; i < key.n; i++)
		if (key.p[i] != name[i] && !(key.p[i] == '_' && name[i] == '-'))
			return false;
	return true;
}

/* services: {batch: {keep-raw: 2d}} is keep-service: batch:raw=2d. The name of a service stays as
 * it is written. */
static bool is_rule(struct reader *r, struct str value, struct buf *rule)
{
	static const char *const tiers[] = { "raw", "minute", "hour", "day" };
	struct str key = buf_view(&r->key), prefix = STR("services-");

	for (size_t i = 0; i < sizeof(tiers) / sizeof(*tiers); i++) {
		char suffix[20];
		size_t n = (size_t)snprintf(suffix, sizeof(suffix), "-keep-%s", tiers[i]);

		if (key.n <= prefix.n + n || !str_has_prefix(key, prefix) ||
		    !is_same_key(str_from(key, key.n - n), suffix))
			continue;
		buf_printf(rule, "%.*s:%s=%.*s", (int)(key.n - prefix.n - n), key.p + prefix.n,
			   tiers[i], STR_ARG(value));
		return true;
	}
	return false;
}

static bool set_rule(struct reader *r, const yaml_mark_t *at, struct str rule)
{
	if (r->rules.n)
		buf_char(&r->rules, ',');
	buf_str(&r->rules, rule);
	return !memchr(rule.p, ',', rule.n) ||
	       fail(r, at, "the name of a service in this file has no comma");
}

static bool set_value(struct reader *r, const yaml_mark_t *at, struct str value)
{
	struct buf rule = { 0 };
	const struct option_def *d;
	size_t row;

	if (is_rule(r, value, &rule)) {
		bool ok = set_rule(r, at, buf_view(&rule));

		buf_release(&rule);
		return ok;
	}
	d = find_key(&r->key);
	if (!d || str_eq(str_of(d->name), STR("config")))
		return fail(r, at, "there is no option \"%.*s\"; kiln serve --help lists them",
			    STR_ARG(buf_view(&r->key)));
	row = (size_t)(d - server_option_table.at);
	if (r->is_set[row])
		return fail(r, at, "%s is set twice", d->name);
	r->is_set[row] = true;
	/* What is empty, or null, is as if it were not there. */
	if (d->type != OPTION_STRING && d->type != OPTION_LIST &&
	    (!value.n || str_eq(value, STR("~"))))
		return true;
	if (option_set(&server_option_table, d, r->options, r->a, value, r->e))
		return true;
	return err_wrap(r->e, "line %zu: %s: %.*s", at->line + 1, d->name, STR_ARG(value));
}

/* A list is as if its parts were written with commas between them. */
static bool read_list(struct reader *r, const yaml_mark_t *at)
{
	struct buf joined = { 0 };
	yaml_event_t event;
	bool ok = true, is_end = false;

	while (ok && !is_end && (ok = next(r, &event))) {
		is_end = event.type == YAML_SEQUENCE_END_EVENT;
		if (event.type == YAML_SCALAR_EVENT) {
			if (joined.n)
				buf_char(&joined, ',');
			buf_str(&joined, scalar_text(&event));
		} else if (!is_end) {
			ok = fail(r, &event.start_mark, "a list of %.*s has texts only",
				  STR_ARG(buf_view(&r->key)));
		}
		yaml_event_delete(&event);
	}
	ok = ok && set_value(r, at, buf_view(&joined));
	buf_release(&joined);
	return ok;
}

/* scrape: is a list of jobs, which collect/scrape_config.h reads. */
static bool is_jobs(const struct reader *r)
{
	return str_eq(buf_view(&r->key), STR("scrape"));
}

/* ---- owners: [{owner: web, service: ^web, match: ^main}] are lines of owners.h */

struct owner_rule {
	struct buf owner, service, match;
};

static bool set_part(struct reader *r, const yaml_mark_t *at, struct owner_rule *rule,
		     struct str key, struct str value)
{
	struct buf *part = str_eq(key, STR("owner"))	 ? &rule->owner
			   : str_eq(key, STR("service")) ? &rule->service
			   : str_eq(key, STR("match"))	 ? &rule->match
							 : NULL;

	if (!part)
		return fail(r, at, "\"%.*s\" is none of owner, match and service", STR_ARG(key));
	if (part->n)
		return fail(r, at, "%.*s is set twice", STR_ARG(key));
	buf_str(part, value);
	return true;
}

/* One mapping: keys and texts, to its end. */
static bool read_owner(struct reader *r, struct owner_rule *rule)
{
	struct buf key = { 0 };
	bool ok = true, is_end = false, is_value = false;

	while (ok && !is_end) {
		yaml_event_t event;

		if (!next(r, &event)) {
			ok = false;
			break;
		}
		is_end = event.type == YAML_MAPPING_END_EVENT;
		if (is_value && event.type == YAML_SCALAR_EVENT) {
			ok = set_part(r, &event.start_mark, rule, buf_view(&key),
				      scalar_text(&event));
		} else if (event.type == YAML_SCALAR_EVENT) {
			key.n = 0;
			buf_str(&key, scalar_text(&event));
		} else if (!is_end) {
			ok = fail(r, &event.start_mark, "owner, match and service are texts");
		}
		is_value = !is_value;
		yaml_event_delete(&event);
	}
	buf_release(&key);
	return ok;
}

static bool put_owner(struct reader *r, const yaml_mark_t *at, struct buf *lines)
{
	struct owner_rule rule = { 0 };
	bool ok = read_owner(r, &rule);

	if (ok && !rule.service.n && !rule.match.n)
		ok = fail(r, at, "a rule has match, service or both");
	else if (ok && !owners_put_rule(lines, buf_view(&rule.owner), buf_view(&rule.service),
					buf_view(&rule.match), r->e))
		ok = err_wrap(r->e, "line %zu", at->line + 1);
	buf_release(&rule.owner);
	buf_release(&rule.service);
	buf_release(&rule.match);
	return ok;
}

static bool is_owners(const struct reader *r)
{
	return str_eq(buf_view(&r->key), STR("owners"));
}

static bool read_owners(struct reader *r, const yaml_mark_t *at)
{
	struct buf lines = { 0 };
	bool ok = true, is_end = false;

	while (ok && !is_end) {
		yaml_event_t event;

		if (!next(r, &event)) {
			ok = false;
			break;
		}
		is_end = event.type == YAML_SEQUENCE_END_EVENT;
		if (event.type == YAML_MAPPING_START_EVENT)
			ok = put_owner(r, &event.start_mark, &lines);
		else if (!is_end)
			ok = fail(r, &event.start_mark,
				  "owners are a list of  {match: REGEXP, owner: NAME}");
		yaml_event_delete(&event);
	}
	ok = ok && set_value(r, at, buf_view(&lines));
	buf_release(&lines);
	return ok;
}

static bool skip_list(struct reader *r)
{
	for (size_t depth = 1; depth;) {
		yaml_event_t event;

		if (!next(r, &event))
			return false;
		depth += event.type == YAML_SEQUENCE_START_EVENT ||
			 event.type == YAML_MAPPING_START_EVENT;
		depth -= event.type == YAML_SEQUENCE_END_EVENT ||
			 event.type == YAML_MAPPING_END_EVENT;
		yaml_event_delete(&event);
	}
	return true;
}

static bool read_mapping(struct reader *r, unsigned depth);

static bool read_value(struct reader *r, unsigned depth)
{
	yaml_event_t event;
	bool ok;

	if (!next(r, &event))
		return false;
	switch (event.type) {
	case YAML_SCALAR_EVENT:
		ok = set_value(r, &event.start_mark, scalar_text(&event));
		break;
	case YAML_SEQUENCE_START_EVENT:
		ok = is_jobs(r)	    ? skip_list(r)
		     : is_owners(r) ? read_owners(r, &event.start_mark)
				    : read_list(r, &event.start_mark);
		break;
	case YAML_MAPPING_START_EVENT:
		ok = depth < MAX_DEPTH ? read_mapping(r, depth + 1)
				       : fail(r, &event.start_mark, "nested too deep");
		break;
	default:
		ok = fail(r, &event.start_mark, "%.*s: aliases are not understood",
			  STR_ARG(buf_view(&r->key)));
	}
	yaml_event_delete(&event);
	return ok;
}

/* Names of what is nested are joined: max: {memory: 2GB} is max-memory: 2GB. */
static bool read_mapping(struct reader *r, unsigned depth)
{
	size_t outer = r->key.n;

	for (;;) {
		yaml_event_t event;
		bool ok = next(r, &event), is_end = ok && event.type == YAML_MAPPING_END_EVENT;

		if (!ok)
			return false;
		if (!is_end && event.type != YAML_SCALAR_EVENT)
			ok = fail(r, &event.start_mark, "the name of an option is a word");
		if (ok && !is_end) {
			if (outer)
				buf_char(&r->key, '-');
			buf_str(&r->key, scalar_text(&event));
		}
		yaml_event_delete(&event);
		if (!ok || is_end)
			return ok;
		if (!read_value(r, depth))
			return false;
		r->key.n = outer;
	}
}

static bool read_document(struct reader *r)
{
	for (;;) {
		yaml_event_t event;
		yaml_event_type_t type;
		yaml_mark_t at;

		if (!next(r, &event))
			return false;
		type = event.type;
		at = event.start_mark;
		/* An empty file has an empty text as its document, or none. */
		if (type == YAML_SCALAR_EVENT && !event.data.scalar.length)
			type = YAML_NO_EVENT;
		yaml_event_delete(&event);
		if (type == YAML_STREAM_END_EVENT)
			return true;
		if (type == YAML_MAPPING_START_EVENT && !read_mapping(r, 0))
			return false;
		if (type == YAML_SCALAR_EVENT || type == YAML_SEQUENCE_START_EVENT ||
		    type == YAML_ALIAS_EVENT)
			return fail(r, &at, "options are written as  name: value");
	}
}

static bool set_rules(struct reader *r)
{
	const struct option_def *d = option_find(&server_option_table, STR("keep-service"));

	return !r->rules.n ||
	       option_set(&server_option_table, d, r->options, r->a, buf_view(&r->rules), r->e);
}

bool config_read(struct server_options *o, struct arena *a, struct str yaml, struct err *e)
{
	yaml_parser_t parser;
	struct reader r = { .options = o, .a = a, .parser = &parser, .e = e };
	bool ok;

	if (!yaml_parser_initialize(&parser))
		return err_set(e, ERR_IO, "no memory to read YAML");
	yaml_parser_set_input_string(&parser, (const unsigned char *)yaml.p, yaml.n);
	ok = read_document(&r) && set_rules(&r);
	buf_release(&r.key);
	buf_release(&r.rules);
	yaml_parser_delete(&parser);
	return ok;
}

static bool read_file(struct buf *out, const char *path, struct err *e)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return err_system(e, "open", path);
	do {
		n = read(fd, buf_room(out, 1 << 14), 1 << 14);
		out->n += n > 0 ? (size_t)n : 0;
	} while (n > 0 && out->n <= MAX_FILE_BYTES);
	close(fd);
	if (n < 0)
		return err_system(e, "read", path);
	return out->n <= MAX_FILE_BYTES ||
	       err_set(e, ERR_LIMIT, "%s: more than %d bytes are no list of options", path,
		       MAX_FILE_BYTES);
}

bool config_read_file(struct server_options *o, struct arena *a, const char *path, struct err *e)
{
	struct buf text = { 0 };
	bool ok = read_file(&text, path, e) &&
		  (config_read(o, a, buf_view(&text), e) || err_wrap(e, "%s", path));

	buf_release(&text);
	return ok;
}

/* ---- the environment */

static const struct option_def *find_variable(struct str name)
{
	struct buf own = { 0 };
	const struct option_def *found = NULL;

	for (size_t i = 0; i < server_option_table.n && !found; i++) {
		own.n = 0;
		config_variable(&own, &server_option_table.at[i]);
		if (str_eq(name, buf_view(&own)))
			found = &server_option_table.at[i];
	}
	buf_release(&own);
	return found;
}

bool config_read_environment(struct server_options *o, struct arena *a, char **environment,
			     struct err *e)
{
	for (; *environment; environment++) {
		struct str value = str_of(*environment), name = str_cut(&value, '=');
		const struct option_def *d;

		if (!str_has_prefix(name, STR(VARIABLE_PREFIX)))
			continue;
		d = find_variable(name);
		if (!d)
			return err_set(e, ERR_USAGE,
				       "environment variable %.*s: there is no such option",
				       STR_ARG(name));
		if (!option_set(&server_option_table, d, o, a, value, e))
			return err_wrap(e, "environment variable %.*s=%.*s", STR_ARG(name),
					STR_ARG(value));
	}
	return true;
}
