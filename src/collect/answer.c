#include "collect/answer.h"

#include "http/client.h"

enum { MAX_SAID = 200 };

/* A target's own words are shown to people, and nothing in them may steer a terminal. */
static void put_said(struct buf *out, struct str said)
{
	said = str_trim(said);
	for (size_t i = 0; i < said.n && i < MAX_SAID && said.p[i] != '\n'; i++)
		buf_char(out, said.p[i] < ' ' || said.p[i] > '~' ? '?' : said.p[i]);
}

enum collect_result answer_judge(const struct http_response *r, struct err *e)
{
	struct buf text = { 0 };
	struct str to = http_header(r, "Location");

	put_said(&text, buf_view(&r->status_text));
	if (r->status >= 300 && r->status < 400 && to.n) {
		buf_puts(&text,
			 ": redirects are not followed; name the target to which it points: ");
		put_said(&text, to);
	} else if (str_has_prefix(http_header(r, "Content-Type"), STR("text/plain"))) {
		buf_puts(&text, ": ");
		put_said(&text, buf_view(&r->body));
	}
	err_set(e, ERR_IO, "the target answers %.*s", STR_ARG(buf_view(&text)));
	buf_release(&text);
	return r->status == 404 ? COLLECT_ABSENT : COLLECT_WRONG;
}
