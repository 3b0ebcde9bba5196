/* collect.c - kiln collect: takes profiles of pods or other targets once, and stores them in a
 * server, as kprofefe does. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/api.h"
#include "cmd/args.h"
#include "cmd/cmd.h"
#include "cmd/pods.h"
#include "cmd/round_report.h"
#include "fetch/collect.h"

enum {
	EXIT_FAILED = 1, /* some could not be taken or stored */
};

struct collect_options {
	struct kube_flags kube;
	struct api_options api;
	struct round_options round;
	const char *labels, *pod_labels, *output;
	bool kubernetes, help;
};

#define ROW(type, name, key, field, spelling, help)                                             \
	{                                                                                       \
		name, OPTION_##type, offsetof(struct collect_options, field), 0, key, spelling, \
			help                                                                    \
	}

static const struct option_def rows[] = {
	ROW(BOOL, "kubernetes", "", kubernetes, "",
	    "Take profiles of the pods of a cluster whose annotations ask for it"),
#define API(type, field, name, key, value, help) \
	{ name, OPTION_##type, offsetof(struct collect_options, api.field), 0, key, value, help },
#define API_SERVER API
#include "cmd/api.def"
#undef API_SERVER
#undef API
#define ROUND(type, field, name, initial, value, help) \
	{ name, OPTION_##type, offsetof(struct collect_options, round.field), 0, "", value, help },
#include "cmd/round.def"
#undef ROUND
	ROW(STRING, "labels", "", labels, "a=b,c=d",
	    "Labels for profiles of targets that are no pods"),
	ROW(STRING, "pod-labels", "", pod_labels, "a,b",
	    "Labels of pods that their profiles get, too"),
	ROW(STRING, "output", "o", output, "table|json", "How to tell what became of it"),
#define KUBE(type, field, flags, name, key, value, help)                                        \
	{                                                                                       \
		name,  OPTION_##type, offsetof(struct collect_options, kube.field), flags, key, \
		value, help                                                                     \
	},
#include "cmd/kube.def"
#undef KUBE
	ROW(BOOL, "help", "h", help, "", "Print this text"),
};

static const struct collect_options defaults = {
#define KUBE(type, field, flags, name, key, value, help) .kube.field = KUBE_NONE_##type,
#include "cmd/kube.def"
#undef KUBE
	.api = API_DEFAULTS,
#define ROUND(type, field, name, initial, value, help) .round.field = initial,
#include "cmd/round.def"
#undef ROUND
	.labels = "",
	.pod_labels = "",
	.output = "table",
};

static const struct option_table table = { .at = rows,
					   .n = sizeof(rows) / sizeof(*rows),
					   .defaults = &defaults };

static const char usage_head[] =
	"usage: kiln collect [options] [name=]http://host:port...\n"
	"       kiln collect --kubernetes [options] [-A | -n NAMESPACE] [-l LABELS] [POD...]\n"
	"\n"
	"Takes profiles once, of servers that have /debug/pprof or of the pods of a cluster\n"
	"whose annotations say so, and stores them in a server of kiln or profefe. Of each\n"
	"target it takes one after the other, and of many targets at the same time. A target\n"
	"that is down, hangs or talks nonsense costs no other one anything.\n"
	"\n"
	"Pods say with annotations that they want to be profiled: kiln.dev/enable: \"true\", or\n"
	"profefe.com/enable; kiln-collect(1) lists the others. What kprofefe takes for options is\n"
	"understood, and called as kprofefe it is kiln collect --kubernetes.\n"
	"\n";

static const char usage_tail[] =
	"\n"
	"The status is 0 if all is well, 1 if something could not be taken or stored, 2 if it\n"
	"is called wrongly.\n"
	"\n"
	"  kiln collect --to http://kiln:10100 shop=http://10.0.0.5:6060\n"
	"  kiln collect --kubernetes -A --to http://kiln:10100\n";

/* ---- what is to be taken */

struct collecting {
	const struct collect_options *o;
	struct arena arena;
	struct round_params round;
	struct profile_type *types;
	size_t ntypes;
	struct api api;
	struct http_client *client; /* of targets */
	struct round_report report;
	atomic_bool *canceled;
};

static bool check_options(struct collecting *c, struct err *e)
{
	const struct collect_options *o = c->o;

	if (strcmp(o->output, "table") != 0 && strcmp(o->output, "json") != 0)
		return err_set(e, ERR_USAGE, "--output is table or json, not \"%s\"", o->output);
	if (!o->kubernetes && (o->kube.all_namespaces || *o->kube.namespace || *o->kube.selector))
		return err_set(e, ERR_USAGE, "-A, -n and -l choose pods: --kubernetes is missing");
	if (!pod_labels_check(str_of(o->pod_labels), e))
		return err_wrap(e, "--pod-labels %s", o->pod_labels);
	return round_options_read(&o->round, &c->arena, &c->round, &c->types, &c->ntypes, e);
}

/* ---- targets that are no pods */

/* host:port of a URL. */
static struct str host_of(const char *url)
{
	struct str rest = str_of(url);
	size_t at = str_find(rest, STR("://"));

	if (at != STR_NONE)
		rest = str_from(rest, at + 3);
	rest = str_cut(&rest, '/');
	at = str_rfind_char(rest, '@');
	return at == STR_NONE ? rest : str_from(rest, at + 1);
}

static bool parse_targets(struct collecting *c, int argc, char **argv, struct round_target **out,
			  struct err *e)
{
	struct round_target *targets = arena_many(&c->arena, (size_t)argc, struct round_target);
	struct target_label *labels, *own;
	size_t nlabels;

	*out = targets;
	if (!argc)
		return err_set(e, ERR_USAGE,
			       "no target given, e.g. http://localhost:6060, or --kubernetes");
	if (!api_labels_parse(&c->arena, "labels", c->o->labels, &labels, &nlabels, e))
		return false;
	for (int i = 0; i < argc; i++) {
		struct collect_target t;

		if (!collect_target_parse(&c->arena, argv[i], &t, e))
			return false;
		own = arena_many(&c->arena, nlabels + 1, struct target_label);
		own[0] = (struct target_label){ STR("instance"), host_of(t.url) };
		for (size_t k = 0; k < nlabels; k++)
			own[k + 1] = labels[k];
		targets[i] = (struct round_target){ .name = argv[i],
						    .url = t.url,
						    .service = str_of(t.service),
						    .instance = host_of(t.url),
						    .types = c->types,
						    .ntypes = c->ntypes,
						    .labels = own,
						    .nlabels = nlabels + 1 };
	}
	return true;
}

/* ---- the round */

static enum collect_result put(void *ctx, const struct collected *p, char id[COLLECT_ID_BYTES],
			       struct err *e)
{
	struct collecting *c = ctx;

	return api_push(&c->api, p, id, e);
}

static void tell(void *ctx, const struct round_result *r)
{
	struct collecting *c = ctx;

	round_report_add(&c->report, r);
}

static int run_round(struct collecting *c, const struct round_target *targets, size_t n,
		     char *const *problems, size_t nproblems)
{
	struct buf out = { 0 };
	bool ok;

	c->round.targets = targets;
	c->round.ntargets = n;
	c->round.canceled = c->canceled;
	c->round.put = put;
	c->round.tell = tell;
	c->round.ctx = c;
	c->round.client = c->client;
	round_report_init(&c->report, targets, n, problems, nproblems);
	round_run(&c->round);
	round_report_clear_progress(&c->report);
	(*c->o->output == 'j' ? round_report_json : round_report_table)(&out, &c->report);
	ok = round_report_is_good(&c->report) && !atomic_load(c->canceled);
	round_report_release(&c->report);
	return print_and_exit(&out, STDOUT_FILENO, ok ? EXIT_SUCCESS : EXIT_FAILED);
}

static int fail(const struct err *e, int status)
{
	struct buf out = { 0 };

	buf_printf(&out, "kiln collect: %s%s\n", e->text,
		   status == EXIT_ERROR ? "; see kiln collect --help" : "");
	return print_and_exit(&out, STDERR_FILENO, status);
}

static int collect_pods(struct collecting *c, int argc, char **argv)
{
	struct pods_params params = {
		.flags = &c->o->kube,
		.names = argv,
		.nnames = (size_t)argc,
		.types = { .types = c->types, .ntypes = c->ntypes, .pod_labels = c->o->pod_labels },
		.canceled = c->canceled
	};
	struct cluster cluster;
	struct pods pods = { 0 };
	struct err e;
	int status;

	if (!cluster_open(&cluster, &c->o->kube, true, &c->arena, &e))
		return fail(&e, e.kind == ERR_USAGE ? EXIT_ERROR : EXIT_FAILED);
	params.cluster = &cluster;
	if (pods_find(&pods, &params, &e))
		status = run_round(c, pods.targets.at, pods.targets.n, pods.problems.at,
				   pods.problems.n);
	else
		status = fail(&e, e.kind == ERR_USAGE ? EXIT_ERROR : EXIT_FAILED);
	pods_release(&pods);
	cluster_close(&cluster);
	return status;
}

static int run(struct collecting *c, int argc, char **argv)
{
	const struct http_tls none = { 0 };
	struct round_target *targets;
	struct err e;
	int status;

	if (!check_options(c, &e) || !api_open(&c->api, &c->o->api, &e))
		return fail(&e, EXIT_ERROR);
	c->client = http_client_new(&none);
	c->canceled = stop_on_signals();
	if (c->o->kubernetes)
		status = collect_pods(c, argc, argv);
	else if (parse_targets(c, argc, argv, &targets, &e))
		status = run_round(c, targets, (size_t)argc, NULL, 0);
	else
		status = fail(&e, EXIT_ERROR);
	http_client_free(c->client);
	api_close(&c->api);
	return status;
}

/* ---- the command */

static void put_scdoc(struct buf *out)
{
	args_scdoc(out, &table);
	buf_puts(out,
		 "\n# ANNOTATIONS\n\nOf pods, as _kiln.dev/KEY_. Those marked with \\* are also "
		 "understood as _profefe.com/KEY_.\n");
	for (size_t i = 0; i < nannotation_defs; i++) {
		const struct annotation_def *d = &annotation_defs[i];

		buf_printf(out, "\n*%s*%s: _%s_\n\t%s.\n", d->name, d->is_profefe ? " \\*" : "",
			   d->value, d->help);
	}
}

static void put_usage(struct buf *out)
{
	buf_puts(out, usage_head);
	args_usage(out, &table);
	buf_puts(out, usage_tail);
}

int cmd_collect(int argc, char **argv)
{
	struct collect_options o = defaults;
	struct collecting c = { .o = &o };
	struct buf out = { 0 };
	struct err e;
	int status;

	o.kubernetes = strcmp(argv[0], "kprofefe") == 0;
	argc--, argv++;
	if (argc == 1 && (strcmp(argv[0], "--complete") == 0 || strcmp(argv[0], "--scdoc") == 0)) {
		if (argv[0][2] == 'c')
			args_complete(&out, &table);
		else
			put_scdoc(&out);
		return print_and_exit(&out, STDOUT_FILENO, EXIT_SUCCESS);
	}
	if (!args_take_all(&table, &o, &c.arena, &argc, &argv, &e)) {
		status = fail(&e, EXIT_ERROR);
	} else if (o.help) {
		put_usage(&out);
		status = print_and_exit(&out, STDOUT_FILENO, EXIT_SUCCESS);
	} else {
		status = run(&c, argc, argv);
	}
	arena_release(&c.arena);
	return status;
}
