#include "base/path.h"

struct str path_base(struct str path)
{
	size_t slash;

	if (path.n == 0)
		return STR(".");
	while (path.n > 0 && path.p[path.n - 1] == '/')
		path.n--;
	if (path.n == 0)
		return STR("/");
	slash = str_rfind_char(path, '/');
	return slash == STR_NONE ? path : str_from(path, slash + 1);
}

/* Takes off the last element, down to `floor`: what must stay, as a root or a leading "../". */
static void drop_element(char *text, size_t *n, size_t floor)
{
	do
		--*n;
	while (*n > floor && text[*n] != '/');
}

void path_clean(struct buf *out, struct str path)
{
	/* The result is never longer than the path, but for the "." of an empty one. */
	char *text = buf_room(out, path.n + 1);
	bool rooted = path.n > 0 && path.p[0] == '/';
	size_t n = 0, floor = rooted;
	struct str rest = path;

	if (rooted)
		text[n++] = '/';
	while (rest.n > 0) {
		struct str element = str_cut(&rest, '/');

		if (element.n == 0 || str_eq(element, STR(".")))
			continue;
		if (str_eq(element, STR(".."))) {
			if (n > floor) {
				drop_element(text, &n, floor);
				continue;
			}
			if (rooted)
				continue;
		}
		if (n > rooted)
			text[n++] = '/';
		memcpy(text + n, element.p, element.n);
		n += element.n;
		if (str_eq(element, STR("..")))
			floor = n;
	}
	if (n == 0)
		text[n++] = '.';
	out->n += n;
}

void path_dir(struct buf *out, struct str path)
{
	size_t slash = str_rfind_char(path, '/');

	path_clean(out, (struct str){ path.p, slash == STR_NONE ? 0 : slash + 1 });
}

void path_join(struct buf *out, struct str dir, struct str name)
{
	struct buf both = { 0 };

	if (dir.n == 0 && name.n == 0)
		return;
	buf_str(&both, dir);
	if (dir.n > 0 && name.n > 0)
		buf_char(&both, '/');
	buf_str(&both, name);
	path_clean(out, buf_view(&both));
	buf_release(&both);
}
