#include "web/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/escape.h"
#include "base/json.h"
#include "base/path.h"

enum { MAX_FILE_BYTES = 16 << 20 };

/* ---- text */

/* Fields that are not there are zero, not what is usual. */
static const struct analyze_options nothing = {
#define OPT(type, field, initial, key, flags, help) .field = ZERO_##type,
#define INPUT(section, type, field, initial, spelling, help) .field = ZERO_##type,
#define ZERO_BOOL false
#define ZERO_INT 0
#define ZERO_FLOAT 0
#define ZERO_STRING ""
#define ZERO_CHOICE CHOICE_DEFAULT
#include "analyze/options.def"
};

static bool is_zero(const struct option_def *d, const struct analyze_options *o)
{
	const char *field = (const char *)o + d->offset;

	switch (d->type) {
	case OPTION_BOOL:
		return !*(const bool *)field;
	case OPTION_INT:
	case OPTION_TIME:
	case OPTION_BYTES:
		return !*(const int64_t *)(const void *)field;
	case OPTION_FLOAT:
		return *(const double *)(const void *)field == 0;
	case OPTION_STRING:
	case OPTION_LIST:
		return !**(const char *const *)(const void *)field;
	case OPTION_CHOICE:
		break;
	}
	return !*(const int *)(const void *)field;
}

static void print_field(struct buf *out, const struct option_def *d,
			const struct analyze_options *o)
{
	const struct option_table *table = analyze_option_table();
	bool is_text = d->type == OPTION_STRING || d->type == OPTION_CHOICE;
	struct buf value = { 0 };

	option_print(&value, table, d, o);
	buf_printf(out, ",\n      \"%s\": %s", d->name, is_text ? "\"" : "");
	escape_json(out, buf_view(&value));
	buf_puts(out, is_text ? "\"" : "");
	buf_release(&value);
}

void settings_print(struct buf *out, const struct settings *s)
{
	const struct option_table *table = analyze_option_table();

	buf_puts(out, "{\n  \"configs\": [");
	for (size_t i = 0; i < s->all.n; i++) {
		buf_puts(out, i ? ",\n    {\n      \"name\": \"" : "\n    {\n      \"name\": \"");
		escape_json(out, str_of(s->all.at[i].name));
		buf_char(out, '"');
		for (size_t k = 0; k < table->n; k++)
			if ((table->at[k].flags & ANALYZE_SAVED) &&
			    !is_zero(&table->at[k], &s->all.at[i].options))
				print_field(out, &table->at[k], &s->all.at[i].options);
		buf_puts(out, "\n    }");
	}
	buf_puts(out, s->all.n ? "\n  ]\n}" : "]\n}");
}

static bool wrong_type(struct err *e, const char *field)
{
	return err_set(e, ERR_FORMAT, "the value of %s is of the wrong type", field);
}

static bool parse_field(struct settings *s, const struct option_def *d, const struct json *value,
			struct analyze_options *o, struct err *e)
{
	static const enum json_type types[] = { [OPTION_BOOL] = JSON_BOOL,
						[OPTION_INT] = JSON_NUMBER,
						[OPTION_FLOAT] = JSON_NUMBER,
						[OPTION_STRING] = JSON_STRING,
						[OPTION_CHOICE] = JSON_STRING };
	struct str text = value->text;

	if (value->type == JSON_NULL)
		return true;
	if (value->type != types[d->type] || memchr(text.p ? text.p : "", '\0', text.n))
		return wrong_type(e, d->name);
	if (value->type == JSON_BOOL)
		text = value->is_true ? STR("true") : STR("false");
	if (!text.n)
		return true;
	return option_set(analyze_option_table(), d, o, &s->arena, text, e) ||
	       err_wrap(e, "%s", d->name);
}

static bool parse_setting(struct settings *s, const struct json *config, struct err *e)
{
	const struct option_table *table = analyze_option_table();
	const struct json *name = json_member(config, "name");
	struct setting setting = { "", nothing };

	if (config->type != JSON_OBJECT || (name && name->type != JSON_STRING))
		return wrong_type(e, "configs");
	if (name)
		setting.name = str_dup(&s->arena, name->text);
	for (size_t i = 0; i < table->n; i++) {
		const struct option_def *d = &table->at[i];
		const struct json *value =
			d->flags & ANALYZE_SAVED ? json_member(config, d->name) : NULL;

		if (value && !parse_field(s, d, value, &setting.options, e))
			return false;
	}
	vec_push(&s->all, setting);
	return true;
}

bool settings_parse(struct settings *s, struct str text, struct err *e)
{
	struct arena scratch = { 0 };
	struct json root;
	const struct json *configs;
	bool ok = json_parse(&scratch, text, &root, e);

	if (ok && root.type != JSON_OBJECT)
		ok = wrong_type(e, "the file");
	configs = ok ? json_member(&root, "configs") : NULL;
	if (configs && configs->type != JSON_ARRAY && configs->type != JSON_NULL)
		ok = wrong_type(e, "configs");
	for (size_t i = 0; ok && configs && i < configs->n; i++)
		ok = parse_setting(s, &configs->at[i], e);
	arena_release(&scratch);
	return ok || err_wrap(e, "could not parse settings");
}

/* ---- the file */

static bool read_all(struct buf *out, int fd, const char *path, struct err *e)
{
	ssize_t n = 1;

	while (n) {
		n = read(fd, buf_room(out, 1 << 16), 1 << 16);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_system(e, "read", path);
		out->n += (size_t)n;
		if (out->n > MAX_FILE_BYTES)
			return err_set(e, ERR_LIMIT, "%s is larger than %d bytes", path,
				       MAX_FILE_BYTES);
	}
	return true;
}

bool settings_read(struct settings *s, const char *path, struct err *e)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct buf text = { 0 };
	bool ok;

	*s = (struct settings){ 0 };
	if (fd < 0 && errno == ENOENT)
		return true;
	ok = fd >= 0 ? read_all(&text, fd, path, e) : err_system(e, "open", path);
	if (!ok)
		err_wrap(e, "could not read settings");
	if (fd >= 0)
		close(fd);
	ok = ok && settings_parse(s, buf_view(&text), e);
	buf_release(&text);
	return ok;
}

/* The directory, and those above it that are not there. */
static bool make_dirs(struct arena *a, const char *path, struct err *e)
{
	struct buf dir = { 0 };
	char *text;
	bool ok = true;

	path_dir(&dir, str_of(path));
	text = str_dup(a, buf_view(&dir));
	buf_release(&dir);
	for (char *at = text + 1; ok; at++) {
		char was = *at;

		if (was && was != '/')
			continue;
		*at = '\0';
		if (mkdir(text, 0700) != 0 && errno != EEXIST) {
			err_system(e, "mkdir", text);
			ok = err_wrap(e, "failed to create settings directory");
		}
		*at = was;
		if (!was)
			break;
	}
	return ok;
}

static bool write_file(const char *temporary, const char *path, struct str text, struct err *e)
{
	int fd = open(temporary, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
	struct buf out = { 0 };
	bool ok;

	if (fd < 0)
		return err_system(e, "open", temporary);
	buf_to_fd(&out, fd);
	buf_str(&out, text);
	ok = buf_flush(&out, e);
	buf_release(&out);
	if (ok && fsync(fd) != 0)
		ok = err_system(e, "write", temporary);
	close(fd);
	if (ok && rename(temporary, path) != 0)
		ok = err_system(e, "rename", temporary);
	if (!ok)
		unlink(temporary);
	return ok;
}

bool settings_write(const struct settings *s, const char *path, struct err *e)
{
	struct arena a = { 0 };
	struct buf text = { 0 }, name = { 0 };
	bool ok = make_dirs(&a, path, e);

	if (ok) {
		settings_print(&text, s);
		buf_printf(&name, "%s.%d.tmp", path, (int)getpid());
		ok = write_file(str_dup(&a, buf_view(&name)), path, buf_view(&text), e) ||
		     err_wrap(e, "failed to write settings");
	}
	buf_release(&text);
	buf_release(&name);
	arena_release(&a);
	return ok;
}

void settings_release(struct settings *s)
{
	vec_release(&s->all);
	arena_release(&s->arena);
}

/* ---- changes */

static size_t find(const struct settings *s, struct str name)
{
	size_t i = 0;

	while (i < s->all.n && !str_eq(str_of(s->all.at[i].name), name))
		i++;
	return i;
}

void settings_put(struct settings *s, struct str name, const struct analyze_options *options)
{
	size_t at = find(s, name);

	if (at == s->all.n)
		vec_push(&s->all, ((struct setting){ str_dup(&s->arena, name), *options }));
	s->all.at[at].options = *options;
}

bool settings_remove(struct settings *s, struct str name)
{
	size_t at = find(s, name);

	if (at == s->all.n)
		return false;
	memmove(s->all.at + at, s->all.at + at + 1, (--s->all.n - at) * sizeof(*s->all.at));
	return true;
}
