/* fuzz_serve.c - a whole server with a few profiles, over its socket. An input that begins with a
 * capital letter is sent as it is; any other is what a GET asks for: every path and its parameters.
 * Nothing may crash, and the next request must be answered. */
#include <arpa/inet.h>
#include <ftw.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/debuginfo.h"
#include "server/gate.h"
#include "server/live.h"
#include "server/names.h"
#include "server/owners.h"
#include "server/options.h"
#include "server/regressions.h"
#include "server/routes.h"
#include "server/scrape.h"
#include "server/viewer.h"

enum { SHORT_MS = 5, LONG_MS = 8000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void put_profile(struct store *store, const char *service, const char *text, int64_t time)
{
	struct store_label label = { STR("version"), STR("1.0") };
	struct profile p;
	struct store_new new = { .service = str_of(service),
				 .type = STR("cpu"),
				 .labels = &label,
				 .nlabels = 1,
				 .profile = &p };
	struct store_meta meta;
	struct strings strings;
	struct arena a = { 0 };
	struct err e;

	strings_init(&strings);
	if (!profile_read(&p, &a, &strings, str_of(text), 1 << 20, &e))
		abort();
	p.time_nanos = time;
	if (!store_put(store, &new, &a, &meta, &e))
		abort();
	strings_release(&strings);
	arena_release(&a);
}

static char dir[] = "/tmp/fuzz_serve.XXXXXX";

static int remove_one(const char *path, const struct stat *about, int type, struct FTW *place)
{
	(void)about;
	(void)type;
	(void)place;
	return remove(path);
}

static void remove_folder(void)
{
	nftw(dir, remove_one, 4, FTW_DEPTH | FTW_PHYS);
}

static struct http_server *start(void)
{
	static struct server_options o;
	static struct server s;
	struct http_server_params params = { .host = "127.0.0.1",
					     .admit = routes_admit,
					     .handle = routes_handle,
					     .done = routes_done,
					     .ctx = &s };
	struct err e;

	o = server_defaults;
	o.access_log = false;
	o.data = dir;
	s.options = &o;
	desks_init(&s.desks);
	if (!mkdtemp(dir) || !freopen("/dev/null", "w", stdout) || !gate_open(&s, "127.0.0.1", &e))
		abort();
	atexit(remove_folder);
	s.store = store_open(&(struct store_params){ .dir = dir, .max_memory = 64 << 20 }, &e);
	if (!s.store)
		abort();
	s.debuginfo =
		debuginfo_open(&(struct debuginfo_params){ .data = dir, .max_file = 1 << 20 }, &e);
	s.names = names_new(&(struct names_params){
		.files = s.debuginfo, .program = "/bin/false", .urls = "" });
	store_set_namer(s.store, names_namer(s.names));
	s.owners = owners_new(STR("web@shop=f\ncore=main|g\n"), &e);
	put_profile(s.store, "shop", "main;f;g 10\nmain;h 3\n", 1700000000000000000);
	put_profile(s.store, "shop", "main;f;g 1\nmain;i 30\n", 1700000060000000000);
	put_profile(s.store, "mail", "main;f 5\n", 1700000000000000000);
	viewer_open(&s);
	scrape_open(&s);
	s.regressions = regressions_start(&s);
	s.live = live_start(&s);
	gate_set_http(&s, &params);
	s.http = http_server_start(&params, &e);
	if (!s.http)
		abort();
	return s.http;
}

static int connect_to(const struct http_server *s)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons(http_server_port(s)),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct linger reset = { 1, 0 }; /* there are only so many ports */
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) != 0)
		abort();
	return fd;
}

/* Streams that are open when it looks: their memory is in arenas, which it does not know. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:watch_new\n";
}

/* Everything until the server closes, or says nothing for a while, as a stream does soon; returns
 * how many bytes that were. */
static size_t ask(const struct http_server *s, struct str request, int patience_ms)
{
	struct pollfd p;
	int fd = connect_to(s);
	char bytes[65536];
	size_t total = 0;
	ssize_t n;

	while (request.n && (n = send(fd, request.p, request.n, MSG_NOSIGNAL)) > 0)
		request = str_from(request, (size_t)n);
	p = (struct pollfd){ fd, POLLIN, 0 };
	while (poll(&p, 1, patience_ms) > 0 && (n = recv(fd, bytes, sizeof(bytes), 0)) > 0) {
		total += (size_t)n;
		if (memmem(bytes, (size_t)n, "text/event-stream", 17))
			patience_ms = SHORT_MS;
	}
	close(fd);
	return total;
}

static void get(const struct http_server *s, struct str target)
{
	struct buf request = { 0 };

	buf_puts(&request, str_has_prefix(target, STR("/")) ? "GET " : "GET /");
	for (size_t i = 0; i < target.n; i++)
		buf_char(&request, (unsigned char)target.p[i] <= ' ' ? '+' : target.p[i]);
	buf_puts(&request, " HTTP/1.0\r\nHost: localhost\r\n\r\n");
	ask(s, buf_view(&request), LONG_MS);
	buf_release(&request);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static struct http_server *s;
	static unsigned count;
	struct str input = { (const char *)data, n };

	if (!s)
		s = start();
	if (n > 20000)
		return 0;
	if (n && data[0] >= 'A' && data[0] <= 'Z')
		ask(s, input, SHORT_MS);
	else
		get(s, input);
	if (count++ % 256 == 0 && !ask(s, STR("GET /healthz HTTP/1.0\r\n\r\n"), LONG_MS))
		abort();
	return 0;
}
