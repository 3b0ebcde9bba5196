/* kubectl_load.c - kubectl kiln load: files go to a server. */
#include <stdio.h>
#include <unistd.h>

#include "base/escape.h"
#include "base/path.h"
#include "base/small_file.h"
#include "cmd/cmd.h"
#include "cmd/kubectl.h"
#include "cmd/type_of.h"

enum { MAX_FILE = 256 << 20, MAX_UNPACKED = 1 << 29 };

struct loading {
	struct kubectl *k;
	struct target_label *labels;
	size_t nlabels;
	struct buf json;
};

/* What it is of: as somebody says, or as it shows. */
static bool find_type(struct loading *l, const char *path, struct str bytes, struct str *type,
		      struct err *e)
{
	struct arena a = { 0 };
	struct strings strings;
	struct profile p;
	bool ok;

	strings_init(&strings);
	ok = profile_read(&p, &a, &strings, bytes, MAX_UNPACKED, e);
	*type = str_of(l->k->options.type);
	if (ok && !type->n)
		*type = type_of_profile(&p, path_base(str_of(path)));
	if (ok && !type->n)
		ok = err_set(e, ERR_FORMAT, "what is it of? Say --type mutex, or what it is");
	strings_release(&strings);
	arena_release(&a);
	return ok;
}

static void tell(struct loading *l, const char *path, struct str type, const char *id)
{
	struct buf *json = &l->json;

	if (!kubectl_is_json(l->k)) {
		printf("Profile (%s) stored: %.*s/api/0/profiles/%s type=%.*s\n", path,
		       STR_ARG(l->k->api.to), id, STR_ARG(type));
		fflush(stdout);
		return;
	}
	buf_puts(json, json->n ? ",\n{\"file\":" : "{\"file\":");
	json_put(json, str_of(path));
	buf_puts(json, ",\"type\":");
	json_put(json, type);
	buf_puts(json, ",\"id\":");
	json_put(json, str_of(id));
	buf_char(json, '}');
}

static bool load_file(struct loading *l, const char *path, struct err *e)
{
	struct collected p = { .service = str_of(l->k->options.service),
			       .labels = l->labels,
			       .nlabels = l->nlabels };
	char id[COLLECT_ID_BYTES] = "";
	struct buf bytes = { 0 };
	bool ok = small_file_read(&bytes, path, MAX_FILE, e);

	p.bytes = buf_view(&bytes);
	ok = ok && (find_type(l, path, p.bytes, &p.type, e) || err_wrap(e, "%s", path));
	if (ok && api_push(&l->k->api, &p, id, e) != COLLECT_OK)
		ok = err_wrap(e, "%s", path);
	if (ok)
		tell(l, path, p.type, id);
	buf_release(&bytes);
	return ok;
}

bool kubectl_load(struct kubectl *k, int *status, struct err *e)
{
	struct loading l = { .k = k };
	struct buf out = { 0 };

	if (!k->argc)
		return err_set(e, ERR_USAGE, "no file is given");
	if (!*k->options.service)
		return err_set(e, ERR_USAGE, "--service is missing: whose profiles are these?");
	if (!api_labels_parse(&k->arena, "labels", k->options.labels, &l.labels, &l.nlabels, e))
		return false;
	for (int i = 0; i < k->argc && !atomic_load(k->canceled); i++)
		if (!load_file(&l, k->argv[i], e)) {
			*status = KUBECTL_FAILED;
			fprintf(stderr, "%s load: %s\n", k->program, e->text);
		}
	if (kubectl_is_json(k))
		buf_printf(&out, "[%.*s]\n", STR_ARG(buf_view(&l.json)));
	buf_release(&l.json);
	print_and_exit(&out, STDOUT_FILENO, 0);
	return true;
}
