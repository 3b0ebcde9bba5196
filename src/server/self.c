#include "server/self.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/number.h"
#include "base/path.h"
#include "base/when.h"
#include "server/log.h"
#include "server/routes.h"

enum { LOOK_MS = 50, MAX_ANSWER_BYTES = 256 << 20 };

#define SOCKET_NAME "pprof.sock"

/* ---- the agent */

static bool is_loaded(void)
{
	return dlsym(RTLD_DEFAULT, "kiln_serve");
}

/* Appends the name of the library; false: it is not there. */
static bool find_library(struct buf *out, const char *program)
{
	static const char *const places[] = { "libkiln.so", "../lib/libkiln.so.0" };
	struct buf dir = { 0 };
	bool found = false;

	path_dir(&dir, str_of(program));
	for (size_t i = 0; i < sizeof(places) / sizeof(*places) && !found; i++) {
		out->n = 0;
		path_join(out, buf_view(&dir), str_of(places[i]));
		buf_char(out, '\0');
		found = access(out->p, R_OK) == 0;
	}
	buf_release(&dir);
	return found;
}

void self_reload(char **argv)
{
	const char *others = getenv("LD_PRELOAD");
	char program[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);
	struct buf library = { 0 };

	if (n < 0 || is_loaded() || (others && strstr(others, "libkiln.so")))
		return;
	program[n] = '\0';
	if (find_library(&library, program)) {
		library.n--;
		if (others)
			buf_printf(&library, ":%s", others);
		buf_char(&library, '\0');
		setenv("LD_PRELOAD", library.p, 1);
		execv(program, argv);
		log_error("%s cannot be started anew: %s", program, strerror(errno));
		unsetenv("LD_PRELOAD");
	}
	buf_release(&library);
}

void self_start(struct server *s)
{
	void *symbol = dlsym(RTLD_DEFAULT, "kiln_serve");
	int (*serve)(const char *address);
	char address[sizeof(s->pprof_socket) + 8];
	int n = snprintf(s->pprof_socket, sizeof(s->pprof_socket), "%s/" SOCKET_NAME,
			 s->options->data);
	int failed = -ENAMETOOLONG;

	if (!symbol) {
		s->pprof_socket[0] = '\0';
		return;
	}
	memcpy(&serve, &symbol, sizeof(serve));
	if (n < (int)sizeof(s->pprof_socket)) {
		snprintf(address, sizeof(address), "unix:%s", s->pprof_socket);
		failed = serve(address);
	}
	if (failed) {
		log_error("/debug/pprof/ is not there: the agent cannot listen at %s: %s",
			  s->pprof_socket, strerror(-failed));
		s->pprof_socket[0] = '\0';
	}
}

/* ---- what it is asked */

static int connect_to(const char *path)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(to.sun_path, sizeof(to.sun_path), "%s", path);
	if (fd >= 0 && connect(fd, (const struct sockaddr *)&to, sizeof(to)) != 0) {
		close(fd);
		return -1;
	}
	return fd;
}

static bool send_all(int fd, struct str bytes)
{
	while (bytes.n) {
		ssize_t n = send(fd, bytes.p, bytes.n, MSG_NOSIGNAL);

		if (n <= 0)
			return false;
		bytes = str_from(bytes, (size_t)n);
	}
	return true;
}

/* Until it closes the connection, or nobody waits any more. */
static bool receive_all(struct call *c, int fd, struct buf *out)
{
	for (;;) {
		struct pollfd wait = { fd, POLLIN, 0 };
		ssize_t n;

		if (stop_asked(c->http->abandoned) || out->n > MAX_ANSWER_BYTES)
			return false;
		if (poll(&wait, 1, LOOK_MS) <= 0)
			continue;
		n = read(fd, buf_room(out, 1 << 16), 1 << 16);
		if (n <= 0)
			return n == 0;
		out->n += (size_t)n;
	}
}

static bool ask_agent(struct call *c, struct buf *answer)
{
	const struct http_call *h = c->http;
	struct buf request = { 0 };
	int fd = connect_to(c->server->pprof_socket);
	bool ok;

	buf_printf(&request, "%s /debug/pprof/", str_eq(h->method, STR("POST")) ? "POST" : "GET");
	buf_str(&request, c->rest);
	if (h->target.raw_query.n) {
		buf_char(&request, '?');
		buf_str(&request, h->target.raw_query);
	}
	buf_printf(&request,
		   " HTTP/1.0\r\nHost: localhost\r\n"
		   "Content-Length: %zu\r\n\r\n",
		   h->body.n);
	buf_str(&request, h->body);
	ok = fd >= 0 && send_all(fd, buf_view(&request)) && receive_all(c, fd, answer);
	if (fd >= 0)
		close(fd);
	buf_release(&request);
	return ok;
}

/* ---- what it answers */

/* Types of contents live for ever. */
static const char *known_type(struct str type)
{
	static const char *const types[] = { "text/plain; charset=utf-8",
					     "text/html; charset=utf-8", "application/json" };

	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
		if (str_eq(type, str_of(types[i])))
			return types[i];
	return "application/octet-stream";
}

static void relay_header(struct call *c, struct str line, const char **type)
{
	struct str value = line, name = str_cut(&value, ':');

	value = str_trim(value);
	if (str_eq(name, STR("Content-Type")))
		*type = known_type(value);
	if (str_eq(name, STR("Content-Disposition")) || str_eq(name, STR("X-Go-Pprof")) ||
	    str_eq(name, STR("Location")))
		http_reply_header(c->reply, str_dup(c->arena, name), str_dup(c->arena, value));
}

static void relay(struct call *c, struct str answer)
{
	size_t end = str_find(answer, STR("\r\n\r\n"));
	struct str head = { answer.p, end == STR_NONE ? 0 : end }, status = str_cut(&head, '\n');
	const char *type = "application/octet-stream";
	struct buf body = { 0 };
	int64_t code = 0;

	str_cut(&status, ' ');
	if (end == STR_NONE ||
	    number_parse_int(str_trim(str_cut(&status, ' ')), 10, &code) != NUMBER_OK) {
		reply_error(c, 502, "the agent's answer makes no sense");
		return;
	}
	while (head.n)
		relay_header(c, str_trim(str_cut(&head, '\n')), &type);
	buf_str(&body, str_from(answer, end + 4));
	c->reply->status = (int)code;
	c->reply->content = http_content_new(&body, type);
}

void debug_pprof(struct call *c)
{
	struct buf answer = { 0 };

	c->gives_profile = true;
	if (!c->server->pprof_socket[0])
		reply_error(c, 501,
			    "the server's own profiles need its agent: put libkiln.so beside the "
			    "program kiln or in ../lib, and do not say --self-profile=false");
	else if (ask_agent(c, &answer))
		relay(c, buf_view(&answer));
	else
		reply_error(c, 502, "the agent does not answer at %s", c->server->pprof_socket);
	buf_release(&answer);
}

/* ---- /debug/vars */

static void put_cmdline(struct buf *out)
{
	char text[4096];
	int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof(text)) : 0;
	struct str rest = { text, n > 0 ? (size_t)n : 0 };

	for (bool more = false; rest.n; more = true) {
		if (more)
			buf_char(out, ',');
		json_put(out, str_cut(&rest, '\0'));
	}
	if (fd >= 0)
		close(fd);
}

static uint64_t resident_bytes(void)
{
	unsigned long long total = 0, resident = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	if (f && fscanf(f, "%llu %llu", &total, &resident) != 2)
		resident = 0;
	if (f)
		fclose(f);
	return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void put_number(struct buf *out, const char *name, uint64_t value)
{
	buf_printf(out, ",\"%s\":%llu", name, (unsigned long long)value);
}

void debug_vars(struct call *c)
{
	struct store_stats s;
	struct http_server_stats h;
	struct buf out = { 0 };

	store_stats(c->server->store, &s);
	http_server_stats(c->server->http, &h);
	buf_puts(&out, "{\"cmdline\":[");
	put_cmdline(&out);
	buf_printf(&out, "],\"memstats\":{\"Sys\":%llu},\"kiln\":{\"uptime_seconds\":%lld",
		   (unsigned long long)resident_bytes(),
		   (long long)((time_now() - c->server->started) / 1000000000));
	put_number(&out, "services", s.nservices);
	put_number(&out, "series", s.nseries);
	put_number(&out, "profiles", s.nprofiles);
	put_number(&out, "samples", s.nsamples);
	put_number(&out, "disk_bytes", s.bytes_on_disk);
	put_number(&out, "disk_free_bytes", s.free_bytes);
	put_number(&out, "store_memory_bytes", s.memory);
	put_number(&out, "puts", s.nputs);
	put_number(&out, "commits", s.ncommits);
	put_number(&out, "deleted", s.ndeleted);
	put_number(&out, "thinned", s.nthinned);
	put_number(&out, "connections", h.nopen);
	put_number(&out, "requests_running", h.nrunning);
	put_number(&out, "requests_waiting", h.nwaiting);
	buf_puts(&out, "}}\n");
	reply_json(c, 200, &out);
}
