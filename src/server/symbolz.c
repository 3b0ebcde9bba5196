/* symbolz.c - names of addresses, where pprof asks for them: beside every profile.
 *
 * It posts "0x1+0x2" and wants lines "0x1 name"; addresses without a name are left out. An error
 * would be the end of its work, so what is not known is no error.
 */
#include "base/number.h"
#include "base/vec.h"
#include "server/routes.h"

typedef vec(uint64_t) address_list;

/* What is no address is no address of ours. */
static void read_addresses(struct str text, address_list *list)
{
	while (text.n) {
		struct str one = str_trim(str_cut(&text, '+'));
		uint64_t address;

		if (number_parse_uint(one, 0, &address) == NUMBER_OK)
			vec_push(list, address);
	}
}

static void put_names(struct buf *out, const address_list *list, const struct str *names)
{
	buf_puts(out, "num_symbols: 1\n");
	for (size_t i = 0; i < list->n; i++)
		/* A name may hold anything; a line break would begin another address. */
		if (names[i].n && !memchr(names[i].p, '\n', names[i].n))
			buf_printf(out, "0x%llx %.*s\n", (unsigned long long)list->at[i],
				   STR_ARG(names[i]));
}

void api0_symbolz(struct call *c)
{
	struct str body = c->http->body;
	address_list list = { 0 };
	struct buf out = { 0 };
	struct str *names;
	struct err e;

	read_addresses(body, &list);
	names = arena_many(c->arena, list.n + 1, struct str);
	if (store_symbols(c->server->store, list.at, list.n, c->http->abandoned, c->arena, names,
			  &e)) {
		put_names(&out, &list, names);
		reply_text(c, 200, str_dup(c->arena, buf_view(&out)));
	} else {
		reply_failure(c, &e);
	}
	buf_release(&out);
	vec_release(&list);
}
