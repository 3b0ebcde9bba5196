#include "http/server.h"

#include "test.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { LARGE = 32 << 20 };

static size_t admit(void *ctx, struct http_call *call, struct http_reply *reply)
{
	(void)ctx, (void)call, (void)reply;
	return LARGE;
}

/* A body of as many bytes as ctx says. */
static void handle(void *ctx, struct http_call *call, struct http_reply *reply)
{
	struct buf out = { 0 };

	(void)call;
	buf_fill(&out, 'x', *(const size_t *)ctx);
	reply->status = 200;
	reply->content = http_content_new(&out, "text/plain");
}

static struct http_server *start(size_t *nbytes)
{
	struct http_server_params params = { .host = "127.0.0.1",
					     .admit = admit,
					     .handle = handle,
					     .ctx = nbytes,
					     .patience_s = 1,
					     .least_bytes_per_s = LARGE };
	struct err e;
	struct http_server *s = http_server_start(&params, &e);

	assert_non_null(s);
	return s;
}

static int connect_to(const struct http_server *s)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons(http_server_port(s)),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM, 0), small = 4096;

	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void say(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* Sends a byte now and then; returns how many seconds that went well, at most 20. */
static double dawdle(int fd)
{
	double begin = now();

	while (now() - begin < 20) {
		struct pollfd p = { fd, POLLIN, 0 };

		if (poll(&p, 1, 0) > 0 || send(fd, "a", 1, MSG_NOSIGNAL) != 1)
			break;
		usleep(20000);
	}
	return now() - begin;
}

static void expect_cut(const char *head)
{
	size_t nbytes = 10;
	struct http_server *s = start(&nbytes);
	int fd = connect_to(s);
	double took;

	say(fd, head);
	took = dawdle(fd);
	assert_true(took > 0.5 && took < 15);
	close(fd);
	http_server_stop(s);
}

TEST(head_that_never_ends)
{
	expect_cut("GET / HTTP/1.1\r\nHost: ");
}

TEST(request_line_that_never_ends)
{
	expect_cut("GET /");
}

TEST(body_that_comes_byte_by_byte)
{
	expect_cut("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n");
}

/* Bytes that the kernel has taken before the end of our patience can still be read. */
TEST(answer_that_is_read_byte_by_byte)
{
	size_t nbytes = LARGE, n = 0;
	struct http_server *s = start(&nbytes);
	int fd = connect_to(s);
	char bytes[4096];
	ssize_t got;

	say(fd, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
	sleep(4);
	while ((got = recv(fd, bytes, sizeof(bytes), 0)) > 0)
		n += (size_t)got;
	assert_true(n < LARGE);
	close(fd);
	http_server_stop(s);
}

TEST(who_is_quick_is_answered_again_and_again)
{
	size_t nbytes = 10;
	struct http_server *s = start(&nbytes);
	int fd = connect_to(s);

	for (int i = 0; i < 8; i++) {
		char bytes[1000] = { 0 };
		size_t n = 0;

		say(fd, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
		while (n < 10 || memcmp(bytes + n - 10, "xxxxxxxxxx", 10) != 0) {
			ssize_t got = recv(fd, bytes + n, sizeof(bytes) - n, 0);

			assert_true(got > 0);
			n += (size_t)got;
		}
		usleep(300000); /* together longer than one request may take */
	}
	close(fd);
	http_server_stop(s);
}

static struct http_server *start_small(size_t *nbytes)
{
	struct http_server_params params = { .host = "127.0.0.1",
					     .admit = admit,
					     .handle = handle,
					     .ctx = nbytes,
					     .max_connections = 16 };
	struct err e;
	struct http_server *s = http_server_start(&params, &e);

	assert_non_null(s);
	return s;
}

static bool is_answered(int fd)
{
	struct pollfd p = { fd, POLLIN, 0 };
	char bytes[1000];

	say(fd, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
	return poll(&p, 1, 20000) == 1 && recv(fd, bytes, sizeof(bytes), 0) > 0;
}

TEST(who_is_silent_makes_room)
{
	struct http_server_stats stats;
	size_t nbytes = 10;
	struct http_server *s = start_small(&nbytes);
	int silent[100], served = connect_to(s);

	assert_true(is_answered(served));
	for (size_t i = 0; i < 100; i++) {
		silent[i] = connect_to(s);
		if (i % 10 == 0) {
			int fd = connect_to(s);

			assert_true(is_answered(fd));
			close(fd);
		}
	}
	assert_true(is_answered(served)); /* rather those that never asked for anything */
	/* The last of them may not have been accepted yet. */
	for (int i = 0; i < 2000; i++) {
		http_server_stats(s, &stats);
		if (stats.nshed >= 100 - 16 && stats.nopen <= 16)
			break;
		poll(NULL, 0, 10);
	}
	assert_true(stats.nshed >= 100 - 16 && stats.nlate == 0 && stats.nopen <= 16);
	for (size_t i = 0; i < 100; i++)
		close(silent[i]);
	close(served);
	http_server_stop(s);
}

static size_t refuse(void *ctx, struct http_call *call, struct http_reply *reply)
{
	(void)ctx, (void)call;
	reply->status = 403;
	return 0;
}

TEST(who_is_refused_reads_that_and_may_ask_again)
{
	struct http_server_params params = { .host = "127.0.0.1",
					     .admit = refuse,
					     .handle = handle };
	static char body[1 << 20];
	struct err e;
	struct http_server *s = http_server_start(&params, &e);
	int fd = connect_to(s);

	for (int i = 0; i < 3; i++) {
		char bytes[1000] = "";

		say(fd, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1048576\r\n\r\n");
		for (size_t n = 0; n < sizeof(body);) {
			ssize_t sent = send(fd, body + n, sizeof(body) - n, MSG_NOSIGNAL);

			assert_true(sent > 0);
			n += (size_t)sent;
		}
		assert_true(recv(fd, bytes, sizeof(bytes) - 1, 0) > 0);
		assert_memory_equal(bytes, "HTTP/1.1 403 ", 13);
	}
	close(fd);
	http_server_stop(s);
}

/* Of 1 MB bodies that are sent in part and held. */
TEST(who_holds_memory_for_long_gives_it_back)
{
	size_t nbytes = 10;
	struct http_server *s = start_small(&nbytes);
	int small = connect_to(s), large = connect_to(s);
	static char body[300000];
	struct pollfd p = { large, POLLIN, 0 };

	say(small, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nabc");
	say(large, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n");
	assert_int_equal(send(large, body, sizeof(body), MSG_NOSIGNAL), sizeof(body));
	assert_false(http_server_shed(s)); /* not for long yet */
	sleep(4);
	assert_true(http_server_shed(s));
	assert_int_equal(poll(&p, 1, 20000), 1);
	assert_false(http_server_shed(s)); /* the other holds nothing worth it */
	close(small);
	close(large);
	http_server_stop(s);
}

/* ---- answers that go on */

enum { MAX_UNREAD = 64 << 10, NSTREAMS = 40 };

struct writer {
	struct http_server *server;
	struct http_stream *at[NSTREAMS];
	atomic_int n;
};

static void handle_stream(void *ctx, struct http_call *call, struct http_reply *reply)
{
	struct writer *w = ctx;
	struct http_stream *s = http_stream_new(call, MAX_UNREAD);

	reply->status = 200;
	reply->stream = s;
	w->at[atomic_load(&w->n)] = s;
	atomic_fetch_add(&w->n, 1);
}

static void start_streams(struct writer *w)
{
	struct http_server_params params = { .host = "127.0.0.1",
					     .admit = admit,
					     .handle = handle_stream,
					     .ctx = w,
					     .handlers = 1 };
	struct err e;

	*w = (struct writer){ .server = http_server_start(&params, &e) };
	assert_non_null(w->server);
}

static int open_stream(struct writer *w)
{
	int fd = connect_to(w->server), before = atomic_load(&w->n);

	say(fd, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
	for (int i = 0; i < 2000 && atomic_load(&w->n) == before; i++)
		usleep(5000);
	assert_int_equal(atomic_load(&w->n), before + 1);
	return fd;
}

/* Reads until `text` has come. */
static bool comes(int fd, const char *text)
{
	char bytes[8192];
	size_t n = 0;

	while (n < sizeof(bytes) - 1) {
		struct pollfd p = { fd, POLLIN, 0 };
		ssize_t got = poll(&p, 1, 20000) == 1
				      ? recv(fd, bytes + n, sizeof(bytes) - 1 - n, 0)
				      : -1;

		if (got <= 0)
			return false;
		n += (size_t)got;
		bytes[n] = '\0';
		if (strstr(bytes, text))
			return true;
	}
	return false;
}

/* With one handler: who holds it would keep the others out. */
TEST(streams_take_no_threads)
{
	struct writer w;
	int fds[NSTREAMS];

	start_streams(&w);
	for (int i = 0; i < NSTREAMS; i++)
		fds[i] = open_stream(&w);
	for (int round = 0; round < 3; round++) {
		for (int i = NSTREAMS - 1; i >= 0; i--)
			assert_true(http_stream_write(w.at[i], STR("one more\n")));
		for (int i = 0; i < NSTREAMS; i++)
			assert_true(comes(fds[i], "one more\n"));
	}
	for (int i = 0; i < NSTREAMS; i++) {
		http_stream_end(w.at[i]);
		assert_true(comes(fds[i], "0\r\n\r\n")); /* the last chunk */
		close(fds[i]);
	}
	http_server_stop(w.server);
}

static bool ends_soon(struct http_stream *s, struct str bytes)
{
	double begin = now();

	while (now() - begin < 20) {
		if (!http_stream_write(s, bytes))
			return true;
		usleep(1000);
	}
	return false;
}

TEST(a_stream_that_nobody_reads_is_cut)
{
	static char bytes[MAX_UNREAD / 4];
	struct http_server_stats stats;
	struct writer w;
	int fd;

	start_streams(&w);
	fd = open_stream(&w);
	assert_true(ends_soon(w.at[0], (struct str){ bytes, sizeof(bytes) }));
	http_server_stats(w.server, &stats);
	assert_int_equal(stats.nlate, 1);
	http_stream_end(w.at[0]);
	close(fd);
	http_server_stop(w.server);
}

TEST(who_reads_a_stream_and_goes_is_noticed)
{
	struct http_server_stats stats = { .nstreams = 1 };
	struct writer w;
	int fd;

	start_streams(&w);
	fd = open_stream(&w);
	assert_true(http_stream_write(w.at[0], STR("hello")));
	assert_true(comes(fd, "hello"));
	close(fd);
	for (int i = 0; i < 2000 && stats.nstreams; i++) {
		usleep(5000);
		http_server_stats(w.server, &stats);
	}
	assert_int_equal(stats.nstreams, 0);
	assert_false(http_stream_write(w.at[0], STR("")));
	http_stream_end(w.at[0]);
	http_server_stop(w.server);
}

TEST(streams_end_with_their_server)
{
	struct writer w;
	double begin;
	int fd;

	start_streams(&w);
	fd = open_stream(&w);
	assert_true(http_stream_write(w.at[0], STR("hello")));
	begin = now();
	http_server_drain(w.server, 20000);
	assert_true(now() - begin < 10);
	assert_true(comes(fd, "0\r\n\r\n"));
	assert_false(http_stream_write(w.at[0], STR("more")));
	http_stream_end(w.at[0]);
	close(fd);
	http_server_stop(w.server);
}
