/* fuzz_web.c - requests to the web server: any path and query, on a small profile; and saved
 * settings. Nothing may crash, and what is printed must read as the same. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "web/settings.h"
#include "web/site.h"

static const char stacks[] = "main;f;g;f 10\nmain;g 3\nmain;f;f;f;x 5\nmain;h<i>;\"j\" 2\n";
/* These have labels. */
static const char changes[] = "main;f;g 4 9\nmain;g 3 0\nmain;x 0 5\n";

static void lend(struct site *site, struct strings *strings, const char *text, const char *name)
{
	static struct arena arena;
	struct profile p;
	struct err e;

	strings_init(strings);
	if (!profile_read(&p, &arena, strings, str_of(text), 1 << 20, &e))
		abort();
	p.locations[0].nlines = 2; /* inlined into the next */
	profiles_drop(&site->profiles,
		      profiles_lend(&site->profiles, &p, 1, name, &site->params.c->options));
}

static struct site *make_site(void)
{
	static struct command_line line;
	static struct strings strings[2];
	static struct site site = { .params = { .c = &line, .version = "" },
				    .host = "localhost",
				    .is_loopback_only = true };

	if (site.profiles.n)
		return &site;
	line.options = analyze_defaults;
	setenv("PATH", "/nonexistent", 1); /* no Graphviz */
	functions_init(&site.functions, false);
	profiles_init(&site.profiles, &site.functions);
	answers_init(&site.answers, 1 << 20);
	lend(&site, &strings[0], stacks, "a");
	lend(&site, &strings[1], changes, "b");
	return &site;
}

static void ask(struct str target)
{
	struct http_call call = { .method = STR("GET") };
	struct http_reply reply = { 0 };
	struct err e;

	if (http_target_parse(&call.arena, target, &call.target, &e))
		site_handle(make_site(), &call, &reply);
	http_content_drop(reply.content);
	arena_release(&call.arena);
}

static void read_settings(struct str text)
{
	struct settings first = { 0 }, second = { 0 };
	struct buf a = { 0 }, b = { 0 };
	struct err e;

	if (settings_parse(&first, text, &e)) {
		settings_print(&a, &first);
		if (!settings_parse(&second, buf_view(&a), &e))
			abort();
		settings_print(&b, &second);
		if (!str_eq(buf_view(&a), buf_view(&b)))
			abort();
	}
	settings_release(&first);
	settings_release(&second);
	buf_release(&a);
	buf_release(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct str input = { (const char *)data, n };

	if (n && data[0] == '{') {
		read_settings(input);
	} else if (n < 10000) {
		struct arena a = { 0 };
		struct buf api = { 0 };

		ask(str_of(str_dup(&a, input))); /* a request line has no NUL */
		buf_puts(&api, "/ui/api/v1/");
		buf_puts(&api, str_dup(&a, input));
		ask(buf_view(&api));
		buf_release(&api);
		arena_release(&a);
	}
	return 0;
}
