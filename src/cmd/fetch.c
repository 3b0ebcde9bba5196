/* fetch.c - kiln fetch: saves profiles of running servers in dated folders. */
#include <ctype.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/amount.h"
#include "base/vec.h"
#include "cmd/args.h"
#include "cmd/cmd.h"
#include "fetch/collect.h"
#include "fetch/fetch.h"
#include "http/client.h"

enum {
	EXIT_NOTHING = 1, /* could be fetched */
	MAX_PROFILE_BYTES = INT32_MAX,
	MAX_DURATION_S = 10 * 365 * 86400,
};

struct fetch_options {
	const char *every, *for_time, *types, *out, *tls_cert, *tls_key, *tls_ca;
	int64_t seconds, timeout;
	bool help;
};

#define ROW(type, name, field, spelling, help)                                                    \
	{                                                                                         \
		name, OPTION_##type, offsetof(struct fetch_options, field), 0, "", spelling, help \
	}

static const struct option_def rows[] = {
	ROW(STRING, "every", every, "TIME",
	    "Start a round this often, e.g. 30m; without it there is one"),
	ROW(STRING, "for", for_time, "TIME",
	    "Stop after this time, e.g. 8h; without it when interrupted"),
	ROW(STRING, "types", types, "LIST", "Which profiles, separated by commas"),
	ROW(STRING, "out", out, "DIR", "Where the dated folders go"),
	ROW(INT, "seconds", seconds, "N", "How long a CPU profile takes"),
	ROW(INT, "timeout", timeout, "N", "Give up on a profile after so many seconds"),
	ROW(STRING, "tls_cert", tls_cert, "FILE", "TLS client certificate"),
	ROW(STRING, "tls_key", tls_key, "FILE", "TLS private key"),
	ROW(STRING, "tls_ca", tls_ca, "FILE", "TLS certificates of authorities to trust"),
	ROW(BOOL, "help", help, "", "Print this text"),
};

static const struct fetch_options defaults = {
	.every = "",
	.for_time = "",
	.types = "cpu,heap,allocs,mutex,block,goroutine",
	.out = ".",
	.tls_cert = "",
	.tls_key = "",
	.tls_ca = "",
	.seconds = 30,
	.timeout = -1,
};

static const struct option_table table = { .at = rows,
					   .n = sizeof(rows) / sizeof(*rows),
					   .defaults = &defaults };

static const char usage_head[] =
	"usage: kiln fetch [options] [name=]http://host:port...\n"
	"\n"
	"Saves profiles of servers that have /debug/pprof, as Go programs do, in folders\n"
	"named after the time: DIR/2020-10-01-22:08:40/<service>-<type>-<time>.pb.gz\n"
	"The service is host_port unless it is given a name. Ctrl-C ends after the profiles\n"
	"under way; a second one ends at once. The exit status is 1 if nothing was saved.\n"
	"\n";

static const char usage_example[] =
	"\n"
	"Every half hour during a test of eight hours:\n"
	"  kiln fetch --every 30m --for 8h --out profiles shop=http://10.0.0.5:6060\n";

/* Milliseconds. */
static bool parse_duration(const char *text, int64_t *ms, struct err *e)
{
	int64_t ns;

	if (!amount_parse_time(str_of(text), &ns, e))
		return false;
	*ms = ns / 1000000;
	return (*ms >= 1 && *ms <= (int64_t)MAX_DURATION_S * 1000) ||
	       err_set(e, ERR_USAGE, "must be above 0 and below ten years");
}

static bool parse_times(const struct fetch_options *o, struct collect_params *p, struct err *e)
{
	if (*o->every && !parse_duration(o->every, &p->every_ms, e))
		return err_wrap(e, "--every %s", o->every);
	if (p->every_ms && p->every_ms < 1000) /* folders are named by the second */
		return err_set(e, ERR_USAGE, "--every %s: must be at least a second", o->every);
	if (*o->for_time && !parse_duration(o->for_time, &p->for_ms, e))
		return err_wrap(e, "--for %s", o->for_time);
	if (p->for_ms && !p->every_ms)
		return err_set(e, ERR_USAGE, "--for needs --every, e.g. --every 30m");
	if (o->seconds <= 0 || o->seconds > MAX_DURATION_S)
		return err_set(e, ERR_USAGE, "--seconds must be above 0");
	return true;
}

/* They become part of URLs and of files' names. */
static bool parse_types(struct arena *a, const char *list, struct collect_params *p, struct err *e)
{
	struct str rest = str_of(list);
	vec(const char *) types = { 0 };
	bool ok = true;

	while (rest.p && ok) {
		struct str type = str_trim(str_cut(&rest, ','));

		ok = type.n;
		for (size_t i = 0; i < type.n; i++)
			ok = ok &&
			     (isalnum((unsigned char)type.p[i]) || memchr("_.-", type.p[i], 3)) &&
			     type.p[0] != '.';
		if (ok)
			vec_push(&types, str_dup(a, type));
		else
			err_set(e, ERR_USAGE,
				"--types %s: \"%.*s\" is not a profile such as cpu or heap", list,
				STR_ARG(type));
	}
	p->ntypes = types.n;
	p->types = vec_adopt(a, &types);
	return ok;
}

static bool parse_targets(struct arena *a, int argc, char **argv, struct collect_params *p,
			  struct err *e)
{
	struct collect_target *targets = arena_many(a, (size_t)argc, struct collect_target);

	if (!argc)
		return err_set(e, ERR_USAGE, "no target given, e.g. http://localhost:6060");
	for (int i = 0; i < argc; i++) {
		if (!collect_target_parse(a, argv[i], &targets[i], e))
			return false;
		for (int k = 0; k < i; k++)
			if (strcmp(targets[i].service, targets[k].service) == 0)
				return err_set(
					e, ERR_USAGE,
					"%s and %s would both be called %s; give one a name: "
					"name=http://...",
					argv[k], argv[i], targets[i].service);
	}
	p->targets = targets;
	p->ntargets = (size_t)argc;
	return true;
}

static void tell(void *ctx, bool is_failure, struct str line)
{
	struct buf out = { 0 };

	(void)ctx;
	buf_str(&out, line);
	if (is_failure)
		print_warnings(&out);
	print_and_exit(&out, STDOUT_FILENO, 0);
}

/* SIGINT and SIGTERM can be read from it. All threads inherit that they are blocked. */
static int open_stop_fd(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC);
}

static bool run(const struct fetch_options *o, struct collect_params *p, struct err *e)
{
	struct http_tls tls = { .cert = o->tls_cert, .key = o->tls_key, .ca = o->tls_ca };
	struct buf summary = { 0 };
	bool ok;

	p->out_dir = o->out;
	p->seconds = o->seconds;
	p->timeout = o->timeout;
	p->max_bytes = MAX_PROFILE_BYTES;
	p->tell = tell;
	p->stop_fd = open_stop_fd();
	p->remote = fetch_remote_new(&tls);
	ok = collect_run(p, &summary, e);
	print_and_exit(&summary, STDOUT_FILENO, 0);
	fetch_remote_free(p->remote);
	close(p->stop_fd);
	return ok;
}

static int fail(const struct err *e, int status)
{
	struct buf out = { 0 };

	buf_printf(&out, "kiln fetch: %s%s\n", e->text,
		   status == EXIT_ERROR ? "; see kiln fetch --help" : "");
	return print_and_exit(&out, STDERR_FILENO, status);
}

int cmd_fetch(int argc, char **argv)
{
	struct fetch_options o = defaults;
	struct arena a = { 0 };
	struct collect_params p = { 0 };
	struct buf out = { 0 };
	struct err e;
	bool ok;

	argc--, argv++;
	if (argc == 1 && (strcmp(argv[0], "--complete") == 0 || strcmp(argv[0], "--scdoc") == 0)) {
		(argv[0][2] == 'c' ? args_complete : args_scdoc)(&out, &table);
		return print_and_exit(&out, STDOUT_FILENO, EXIT_SUCCESS);
	}
	ok = args_take(&table, &o, &a, &argc, &argv, &e);
	if (ok && o.help) {
		buf_puts(&out, usage_head);
		args_usage(&out, &table);
		buf_puts(&out, usage_example);
		arena_release(&a);
		return print_and_exit(&out, STDOUT_FILENO, EXIT_SUCCESS);
	}
	if (!ok || !parse_times(&o, &p, &e) || !parse_types(&a, o.types, &p, &e) ||
	    !parse_targets(&a, argc, argv, &p, &e)) {
		arena_release(&a);
		return fail(&e, EXIT_ERROR);
	}
	ok = run(&o, &p, &e);
	arena_release(&a);
	return ok ? EXIT_SUCCESS : fail(&e, EXIT_NOTHING);
}
