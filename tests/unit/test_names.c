#include "test.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/small_file.h"
#include "server/names.h"
#include "server/names_child.h"
#include "small_elf.h"

#define ID SMALL_ELF_ID

/* ---- the child, which is this program: how much it knows is in the name of the file it is to read
 */

enum { KNOWN = 0x1100, DEEP = 1000, LONG = 200000 };

static void put_name(struct profile_names *names, uint32_t location, const char *path, uint64_t at)
{
	struct buf name = { 0 };

	buf_printf(&name, "f%llx", (unsigned long long)at);
	if (strstr(path, "long"))
		for (int i = 0; i < LONG; i++)
			buf_char(&name, 'x');
	profile_names_location(names, location, strstr(path, "deep") ? DEEP : 1);
	for (int i = 0; i < (strstr(path, "deep") ? DEEP : 1); i++)
		profile_names_frame(
			names, &(struct profile_frame){ .name = buf_view(&name), .line = i + 1 });
	buf_release(&name);
}

static void answer(const char *path, struct str question, struct buf *out)
{
	struct arena a = { 0 };
	struct strings strings;
	struct profile p;
	struct profile_names *names;
	struct err e;

	strings_init(&strings);
	if (strstr(path, "broken") || access(path, R_OK) != 0 ||
	    !profile_read(&p, &a, &strings, question, 1 << 24, &e)) {
		buf_puts(out, "Eit is broken");
		return;
	}
	names = profile_names_begin(&a, &p);
	for (uint32_t i = 0; i < p.nlocations; i++) {
		uint64_t at = p.locations[i].address & 0xffffff;

		if (at < KNOWN || !strstr(path, "stripped"))
			put_name(names, i, path, at);
	}
	profile_names_end(names);
	buf_char(out, 'P');
	profile_encode(out, &p);
	strings_release(&strings);
	arena_release(&a);
}

/* Beside the folder of the file: which binary was asked for. */
static void note_run(const char *path, const char *build_id)
{
	char name[300];
	int fd;

	snprintf(name, sizeof(name), "%.*s/../runs", (int)(strrchr(path, '/') - path), path);
	fd = open(name, O_WRONLY | O_CREAT | O_APPEND, 0600);
	if (fd < 0 || write(fd, build_id, strlen(build_id)) < 0 || write(fd, "\n", 1) < 0)
		abort();
	close(fd);
}

__attribute__((constructor(101))) static void be_the_child(int argc, char **argv)
{
	struct buf question = { 0 }, out = { 0 };
	ssize_t n;

	if (argc != 5 || strcmp(argv[1], "debuginfo") != 0)
		return;
	note_run(argv[3], argv[4]);
	if (strstr(argv[3], "slow"))
		usleep(100000);
	while ((n = read(STDIN_FILENO, buf_room(&question, 65536), 65536)) > 0)
		question.n += (size_t)n;
	answer(argv[3], buf_view(&question), &out);
	for (size_t done = 0; done < out.n; done += (size_t)n)
		if ((n = write(STDOUT_FILENO, out.p + done, out.n - done)) <= 0)
			abort();
	_exit(0);
}

/* ---- a server's names */

struct place {
	char data[64], dir[80], local[80];
	struct names_params params;
	struct debuginfo *files;
	struct names *names;
	const struct store_namer *by;
	struct arena a;
	_Atomic unsigned nchanges;
};

static void note_change(void *ctx)
{
	((struct place *)ctx)->nchanges++;
}

static void reopen(struct place *p)
{
	names_free(p->names);
	p->params.files = p->files;
	p->names = names_new(&p->params);
	p->by = names_namer(p->names);
}

static void place_init(struct place *p)
{
	struct err e;

	*p = (struct place){ .data = "/tmp/kiln-names-XXXXXX" };
	assert_non_null(mkdtemp(p->data));
	snprintf(p->dir, sizeof(p->dir), "%s/names", p->data);
	snprintf(p->local, sizeof(p->local), "%s/local", p->data);
	assert_int_equal(mkdir(p->local, 0700), 0);
	p->files = debuginfo_open(
		&(struct debuginfo_params){ .data = p->data, .max_file = 1 << 20 }, &e);
	assert_non_null(p->files);
	p->params = (struct names_params){ .urls = "",
					   .max_bytes = 4 << 20,
					   .dir = p->dir,
					   .max_disk = 16 << 20,
					   .changed = note_change,
					   .ctx = p };
	reopen(p);
}

static void place_release(struct place *p)
{
	char command[100];

	names_free(p->names);
	debuginfo_close(p->files);
	snprintf(command, sizeof(command), "rm -r %s", p->data);
	assert_int_equal(system(command), 0);
	arena_release(&p->a);
}

static void upload(struct place *p, const char *name, enum elf_with with)
{
	char file[SMALL_ELF_BYTES];
	enum debuginfo_put how;
	struct err e;

	if (!debuginfo_put(p->files,
			   &(struct debuginfo_new){ .build_id = STR(ID),
						    .name = str_of(name),
						    .body = small_elf(file, with) },
			   &how, &e))
		fail_msg("%s", e.text);
	assert_int_not_equal(how, DEBUGINFO_THERE);
	names_changed(p->names, STR(ID));
}

/* A file of this machine. */
static const char *local_file(struct place *p, const char *name)
{
	struct buf path = { 0 };
	struct err e;

	buf_printf(&path, "%s/%s%c", p->local, name, '\0');
	assert_true(small_file_write(path.p, STR("x"), &e));
	return arena_adopt(&p->a, path.p);
}

static size_t count_runs(struct place *p)
{
	struct buf text = { 0 };
	char path[100];
	struct err e;
	size_t n = 0;

	snprintf(path, sizeof(path), "%s/runs", p->data);
	if (small_file_read(&text, path, 1 << 20, &e))
		for (size_t i = 0; i < text.n; i++)
			n += text.p[i] == '\n';
	buf_release(&text);
	return n;
}

/* Its frames; 0: none. *is_missing: so far. */
static uint32_t look(struct place *p, const char *id, const char *file, uint64_t address,
		     struct profile_frame *frames, bool *is_missing)
{
	struct store_place at = { .address = address, .size = 0x10000 };
	struct store_binary *b;
	uint64_t nmissing = 0;
	uint32_t n = 0;

	p->by->begin(p->by->ctx);
	b = p->by->binary(p->by->ctx, str_of(id), str_of(file));
	if (b)
		n = p->by->find(p->by->ctx, b, &at, frames, &nmissing);
	for (uint32_t i = 0; i < n; i++)
		frames[i].name.p = arena_copy(&p->a, frames[i].name.p, frames[i].name.n);
	p->by->end(p->by->ctx);
	*is_missing = nmissing;
	return n;
}

/* The innermost frame's name, "-" if there is none for good. */
static const char *ask_of(struct place *p, const char *id, const char *file, uint64_t address)
{
	struct profile_frame frames[STORE_MAX_FRAMES];
	bool is_missing = true;

	for (int i = 0; i < 10; i++) {
		if (look(p, id, file, address, frames, &is_missing))
			return str_dup(&p->a, frames[0].name);
		if (!is_missing)
			return "-";
		p->by->wait(p->by->ctx);
	}
	return "missing";
}

static const char *ask(struct place *p, uint64_t address)
{
	return ask_of(p, ID, "/srv/shop", address);
}

static struct names_stats stats(struct place *p)
{
	struct names_stats s;

	names_stats(p->names, &s);
	return s;
}

/* Until the answer is that, as the threads work. */
static void expect(struct place *p, const char *file, uint64_t address, const char *name)
{
	const char *got = "";

	for (int i = 0; i < 500 && strcmp(got, name) != 0; i++) {
		if (i)
			usleep(10000);
		got = ask_of(p, ID, file, address);
	}
	assert_string_equal(got, name);
}

TEST(names_are_asked_for_once)
{
	struct place p;
	uint64_t generation;

	place_init(&p);
	upload(&p, "shop", ELF_LINES);
	generation = p.by->generation(p.by->ctx);
	assert_string_equal(ask(&p, 0x1000), "f1000");
	assert_string_equal(ask(&p, 0x1200), "f1200");
	assert_int_equal(count_runs(&p), 2);
	assert_string_equal(ask(&p, 0x1000), "f1000");
	assert_int_equal(count_runs(&p), 2);
	assert_int_equal(p.by->nfound(p.by->ctx), 2);
	assert_int_equal(p.by->generation(p.by->ctx), generation); /* they were missing before */
	place_release(&p);
}

TEST(other_debug_info_is_another_generation)
{
	struct place p;
	uint64_t generation;

	place_init(&p);
	assert_string_equal(ask(&p, 0x1000), "-");
	assert_int_equal(p.by->nfound(p.by->ctx), 0);
	generation = p.by->generation(p.by->ctx);
	upload(&p, "stripped", ELF_NAMES);
	assert_true(p.by->generation(p.by->ctx) > generation);
	assert_string_equal(ask(&p, 0x1000), "f1000");
	assert_string_equal(ask(&p, 0x1200), "-");
	generation = p.by->generation(p.by->ctx);
	upload(&p, "shop", ELF_LINES);
	assert_true(p.by->generation(p.by->ctx) > generation);
	assert_string_equal(ask(&p, 0x1200), "f1200");
	generation = p.by->generation(p.by->ctx);
	assert_true(debuginfo_drop(p.files, STR(ID)));
	names_changed(p.names, STR(ID));
	assert_true(p.by->generation(p.by->ctx) > generation);
	assert_int_equal(p.nchanges, 3);
	assert_string_equal(ask(&p, 0x1000), "-");
	place_release(&p);
}

/* What is stripped is in nobody's way. */
TEST(what_one_does_not_know_the_next_may)
{
	struct place p;
	const char *file;

	place_init(&p);
	p.params.is_local = true;
	reopen(&p);
	upload(&p, "stripped", ELF_NAMES);
	file = local_file(&p, "shop");
	assert_string_equal(ask_of(&p, ID, file, 0x1000), "f1000");
	assert_int_equal(count_runs(&p), 1);
	assert_string_equal(ask_of(&p, ID, file, 0x1200), "f1200");
	assert_int_equal(count_runs(&p), 3);
	place_release(&p);
}

/* A build may be called differently on other machines. */
TEST(other_paths_are_tried)
{
	struct place p;
	char nowhere[100];
	uint64_t generation;

	place_init(&p);
	p.params.is_local = true;
	reopen(&p);
	snprintf(nowhere, sizeof(nowhere), "%s/nowhere", p.local);
	assert_string_equal(ask_of(&p, ID, nowhere, 0x1000), "-");
	generation = p.by->generation(p.by->ctx);
	expect(&p, local_file(&p, "shop"), 0x1000, "f1000");
	assert_true(p.by->generation(p.by->ctx) > generation);
	place_release(&p);
}

TEST(names_stay_over_restarts)
{
	struct place p;
	char path[200];
	struct err e;

	place_init(&p);
	upload(&p, "stripped", ELF_NAMES);
	assert_string_equal(ask(&p, 0x1000), "f1000");
	assert_string_equal(ask(&p, 0x1200), "-");
	reopen(&p);
	assert_string_equal(ask(&p, 0x1000), "f1000");
	assert_string_equal(ask(&p, 0x1200), "-");
	assert_int_equal(count_runs(&p), 2);
	assert_int_equal(stats(&p).nloaded, 1);
	/* They are of other debug info. */
	upload(&p, "shop", ELF_LINES);
	assert_string_equal(ask(&p, 0x1200), "f1200");
	assert_int_equal(count_runs(&p), 3);
	/* They are damaged. */
	reopen(&p);
	snprintf(path, sizeof(path), "%s/" ID, p.dir);
	assert_int_equal(truncate(path, 60), 0);
	assert_string_equal(ask(&p, 0x1200), "f1200");
	assert_int_equal(count_runs(&p), 4);
	reopen(&p);
	assert_true(small_file_write(path, STR("hello"), &e));
	assert_string_equal(ask(&p, 0x1200), "f1200");
	assert_int_equal(count_runs(&p), 5);
	place_release(&p);
}

TEST(many_binaries_fit)
{
	enum { N = 200 };
	struct place p;
	const char *file;

	place_init(&p);
	p.params.is_local = true;
	p.params.dir = NULL;
	reopen(&p);
	file = local_file(&p, "shop");
	for (int pass = 0; pass < 2; pass++)
		for (int i = 0; i < N; i++) {
			char id[20];

			snprintf(id, sizeof(id), "%016x", 0xabcdef + i);
			assert_string_equal(ask_of(&p, id, file, 0x1000), "f1000");
		}
	assert_int_equal(count_runs(&p), N);
	assert_true(stats(&p).bytes <= p.params.max_bytes);
	place_release(&p);
}

TEST(what_memory_has_no_room_for_comes_back_from_disk)
{
	enum { N = 100 };
	struct place p;
	const char *file;

	place_init(&p);
	p.params.is_local = true;
	p.params.max_bytes = 200 << 10;
	reopen(&p);
	file = local_file(&p, "shop");
	for (int pass = 0; pass < 2; pass++)
		for (int i = 0; i < N; i++) {
			char id[20];

			snprintf(id, sizeof(id), "%016x", 0xabcdef + i);
			assert_string_equal(ask_of(&p, id, file, 0x1000), "f1000");
		}
	assert_int_equal(count_runs(&p), N);
	assert_true(stats(&p).nloaded > N / 2);
	assert_true(stats(&p).bytes <= p.params.max_bytes);
	place_release(&p);
}

TEST(frames_of_an_address_are_limited)
{
	struct profile_frame frames[STORE_MAX_FRAMES];
	struct place p;
	bool is_missing;

	place_init(&p);
	upload(&p, "deep", ELF_NAMES);
	assert_string_equal(ask(&p, 0x1000), "f1000");
	assert_int_equal(look(&p, ID, "", 0x1000, frames, &is_missing), STORE_MAX_FRAMES);
	assert_int_equal(frames[0].line, 1);
	assert_int_equal(frames[STORE_MAX_FRAMES - 2].line, STORE_MAX_FRAMES - 1);
	assert_int_equal(frames[STORE_MAX_FRAMES - 1].line, DEEP);
	place_release(&p);
}

/* Anybody can push addresses, however many. */
TEST(addresses_without_names_are_limited)
{
	enum { N = 40000 };
	struct profile_frame frames[STORE_MAX_FRAMES];
	struct place p;
	bool is_missing;

	place_init(&p);
	p.params.max_bytes = 1 << 20;
	reopen(&p);
	upload(&p, "stripped", ELF_NAMES);
	for (uint64_t at = KNOWN; at < KNOWN + N; at++) {
		look(&p, ID, "", at, frames, &is_missing);
		if (at % 1000 == 0)
			p.by->wait(p.by->ctx);
	}
	assert_string_equal(ask(&p, KNOWN + N), "-");
	assert_true(stats(&p).bytes <= p.params.max_bytes);
	assert_string_equal(ask(&p, KNOWN - 1), "f10ff");
	place_release(&p);
}

TEST(names_that_take_too_much_are_not_taken)
{
	struct names_why why;
	struct place p;

	place_init(&p);
	p.params.max_bytes = 2 * LONG;
	reopen(&p);
	upload(&p, "long", ELF_NAMES);
	assert_string_equal(ask(&p, 0x1000), "-");
	assert_true(stats(&p).bytes < p.params.max_bytes);
	names_explain(p.names, STR(ID), STR(""), &p.a, &why);
	assert_non_null(strstr(why.looks[0].result, "bytes of memory"));
	place_release(&p);
}

TEST(what_cannot_be_read_makes_room)
{
	struct debuginfo_file file;
	struct place p;

	place_init(&p);
	upload(&p, "broken", ELF_LINES);
	assert_string_equal(ask(&p, 0x1000), "-");
	assert_true(debuginfo_find(p.files, STR(ID), &p.a, &file) && file.is_unreadable);
	upload(&p, "shop", ELF_NAMES);
	assert_string_equal(ask(&p, 0x1000), "f1000");
	place_release(&p);
}

TEST(who_only_explains_adds_nothing)
{
	struct names_why why;
	struct place p;

	place_init(&p);
	names_explain(p.names, STR("../../x"), STR("x"), &p.a, &why);
	names_explain(p.names, STR("00112233"), STR("x"), &p.a, &why);
	assert_int_equal(why.nlooks, 3);
	assert_false(why.is_pending);
	assert_int_equal(stats(&p).nbinaries, 0);
	place_release(&p);
}

/* A server runs for years, and builds come and go. */
TEST(binaries_make_room_for_others)
{
	enum { N = 120000, MAX = 50000 };
	struct store_binary *b = NULL;
	struct place p;
	char id[20];

	place_init(&p);
	for (int i = 0; i < N; i++) {
		snprintf(id, sizeof(id), "%016x", i);
		for (int k = 0; k < 500 && (!b || !k); k++) {
			if (k)
				usleep(10000);
			p.by->begin(p.by->ctx);
			b = p.by->binary(p.by->ctx, str_of(id), STR("/srv/shop"));
			p.by->end(p.by->ctx);
		}
		assert_non_null(b);
	}
	assert_true(stats(&p).nbinaries <= MAX);
	assert_string_equal(ask_of(&p, id, "/srv/shop", 0x1000), "-");
	place_release(&p);
}

TEST(first_come_first_served)
{
	static const char *const ids[] = { "00000001", "00000002", "00000003", "00000004" };
	struct profile_frame frames[STORE_MAX_FRAMES];
	struct buf runs = { 0 };
	struct place p;
	const char *file;
	char path[100];
	struct err e;
	bool is_missing;

	place_init(&p);
	p.params.is_local = true;
	reopen(&p);
	file = local_file(&p, "slow");
	for (int i = 0; i < 4; i++)
		look(&p, ids[i], file, 0x1000, frames, &is_missing);
	for (int i = 0; i < 4; i++)
		assert_string_equal(ask_of(&p, ids[i], file, 0x1000), "f1000");
	snprintf(path, sizeof(path), "%s/runs", p.data);
	assert_true(small_file_read(&runs, path, 1 << 20, &e));
	assert_string_equal(runs.p, "00000001\n00000002\n00000003\n00000004\n");
	buf_release(&runs);
	place_release(&p);
}

/* There is room for some thousand of them. */
TEST(names_become_readable_however_many_there_are)
{
	enum { N = 20000 };
	struct place p;
	char name[60], want[40];

	place_init(&p);
	p.params.max_bytes = 1 << 20;
	reopen(&p);
	for (int i = 0; i < N; i++) {
		struct str got = { 0 };

		snprintf(name, sizeof(name), "_Z9name%05dv", i);
		snprintf(want, sizeof(want), "name%05d", i);
		for (int k = 0; k < 500 && !got.p; k++) {
			if (k)
				usleep(10000);
			p.by->begin(p.by->ctx);
			got = p.by->readable(p.by->ctx, str_of(name));
			if (got.p)
				assert_true(str_eq(got, str_of(want)));
			p.by->end(p.by->ctx);
		}
		assert_non_null(got.p);
	}
	place_release(&p);
}

/* ---- a debuginfod server */

struct debuginfod {
	int listener;
	char url[40];
	_Atomic unsigned nrequests;
	pthread_t thread;
};

static void *serve(void *ctx)
{
	struct debuginfod *d = ctx;
	char file[SMALL_ELF_BYTES], request[4096];
	int fd;

	while ((fd = accept(d->listener, NULL, NULL)) >= 0) {
		ssize_t n = read(fd, request, sizeof(request));

		d->nrequests += n > 0;
		small_elf(file, ELF_NAMES);
		dprintf(fd, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n",
			SMALL_ELF_BYTES);
		if (write(fd, file, sizeof(file)) < 0)
			abort();
		close(fd);
	}
	return NULL;
}

static void debuginfod_start(struct debuginfod *d)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof(at);

	*d = (struct debuginfod){ .listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) };
	assert_int_equal(bind(d->listener, (struct sockaddr *)&at, n), 0);
	assert_int_equal(listen(d->listener, 10), 0);
	assert_int_equal(getsockname(d->listener, (struct sockaddr *)&at, &n), 0);
	snprintf(d->url, sizeof(d->url), "http://127.0.0.1:%d", ntohs(at.sin_port));
	assert_int_equal(pthread_create(&d->thread, NULL, serve, d), 0);
}

static void debuginfod_stop(struct debuginfod *d)
{
	shutdown(d->listener, SHUT_RDWR);
	pthread_join(d->thread, NULL);
	close(d->listener);
}

TEST(what_is_stripped_here_is_fetched)
{
	struct debuginfod d;
	struct place p;
	const char *file;

	debuginfod_start(&d);
	place_init(&p);
	p.params.is_local = true;
	p.params.urls = d.url;
	p.params.max_file = 1 << 20;
	reopen(&p);
	file = local_file(&p, "stripped");
	assert_string_equal(ask_of(&p, ID, file, 0x1000), "f1000");
	assert_int_equal(d.nrequests, 0);
	/* The child says of what was fetched what it says of the local file: its name is the same.
	 */
	assert_string_equal(ask_of(&p, ID, file, 0x1200), "-");
	for (int i = 0; i < 500 && !stats(&p).nfetched; i++)
		usleep(10000);
	assert_int_equal(stats(&p).nfetched, 1);
	assert_int_equal(p.nchanges, 1);
	for (int i = 0; i < 20; i++)
		assert_string_equal(ask_of(&p, ID, file, 0x1201 + (uint64_t)i), "-");
	usleep(50000);
	assert_int_equal(d.nrequests, 1);
	place_release(&p);
	debuginfod_stop(&d);
}

TEST(what_was_fetched_and_cannot_be_read_is_not_fetched_again)
{
	struct debuginfod d;
	struct place p;

	debuginfod_start(&d);
	place_init(&p);
	p.params.urls = d.url;
	p.params.max_file = 1 << 20;
	reopen(&p);
	ask_of(&p, ID, "/srv/broken", 0x1000);
	for (int i = 0; i < 500 && !stats(&p).nfetched; i++)
		usleep(10000);
	for (int i = 0; i < 20; i++) {
		expect(&p, "/srv/broken", 0x1000 + (uint64_t)i, "-");
		usleep(5000);
	}
	assert_int_equal(stats(&p).nfetched, 1);
	assert_int_equal(d.nrequests, 1);
	place_release(&p);
	debuginfod_stop(&d);
}
