/* push.c - sends profiles to a server with profefe's interface: round after round, and once more
 * before the program ends. All of it is done by a thread of its own: nobody waits for a server that
 * does not answer. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/life.h"
#include "agent/local.h"
#include "agent/post.h"
#include "agent/profiles.h"
#include "agent/push.h"

enum {
	SECOND = 1000000000,
	CPU_SECONDS = 10,
	SEND_SECONDS = 10, /* for one profile */
	EXIT_SECONDS = 5,  /* for all, at the end */
	ATTEMPTS = 3,
};

static struct {
	bool is_on;
	struct post_server server;
	char instance[128];
	char shown[300];	 /* the URL without its password */
	atomic_llong until;	 /* when to give up what is being sent */
	atomic_int is_ending;	 /* 1: asked for, 2: done */
	atomic_int wakes;	 /* changes when the thread is to look up */
	atomic_uint limit_use;	 /* the heap is wanted at once; see push_heap */
	unsigned long long lost; /* profiles that were not taken */
	bool has_cpu;		 /* is the CPU profile that runs ours? */
} push;

/* ---- one profile */

/* A value in a query. */
static void put_escaped(struct out *o, const char *s)
{
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;

		if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		    strchr("-_.~", c))
			out_add(o, s, 1);
		else
			out_format(o, "%%%02X", c);
	}
}

static void write_target(struct out *o, const char *type)
{
	out_text(o, "/api/0/profiles?service=");
	put_escaped(o,
		    settings.push_service ? settings.push_service : program_invocation_short_name);
	out_format(o, "&type=%s", type);
	if (settings.push_labels) {
		out_text(o, "&labels=");
		put_escaped(o, settings.push_labels);
	}
	out_text(o, "&instance_id=");
	put_escaped(o, push.instance);
	out_add(o, "", 1);
}

/* Tokens change while programs run. One that cannot be read leaves the last, since files may have
 * gone out of reach. */
static bool read_token(void)
{
	return !settings.push_token_file ||
	       credential_read(push.server.authorization, sizeof(push.server.authorization),
			       settings.push_token_file);
}

/* At the end there is one time limit for all, which at_exit has set. */
static void set_limit(void)
{
	if (!atomic_load(&push.is_ending))
		atomic_store(&push.until, now_ns() + (int64_t)SEND_SECONDS * SECOND);
}

static bool is_worth_another(int result)
{
	return result < 0 || result >= 500;
}

static const char *why_refused(void)
{
	return *push.server.authorization
		       ? " (what KILN_PUSH_TOKEN or the URL says is not enough for it)"
		       : " (it wants to know who sends: set KILN_PUSH_TOKEN or "
			 "KILN_PUSH_TOKEN_FILE)";
}

static void send_bytes(const char *type, const struct out *body)
{
	struct out target = { 0 };
	char answer[200];
	int result = -ENOMEM;

	write_target(&target, type);
	for (int i = 0; i < ATTEMPTS && !target.has_failed; i++) {
		set_limit();
		read_token();
		result = post_send(&push.server, target.p, body, &push.until, answer,
				   sizeof(answer));
		if (!is_worth_another(result))
			break;
		if (!atomic_load(&push.is_ending))
			futex_sleep(&push.is_ending, 0, now_ns() + (1 + i) * (int64_t)SECOND);
	}
	out_release(&target);
	if (result >= 200 && result < 300)
		return;
	push.lost++;
	if (result < 0)
		agent_say("KILN_PUSH_URL=%s: %s; profiles are dropped until it answers", push.shown,
			  strerrordesc_np(-result));
	else
		agent_say("KILN_PUSH_URL=%s: %s is not taken, status %d%s: %s", push.shown, type,
			  result, result == 401 || result == 403 ? why_refused() : "", answer);
}

static void say_no_memory(const char *type)
{
	push.lost++;
	agent_say("KILN_PUSH_URL=%s: no memory to send %s", push.shown, type);
}

/* The server refuses profiles without samples. */
static void send_record(const char *type, const struct agent_profile *p, struct record *r)
{
	struct out body = { 0 };

	if (push.lost)
		record_comment(r, "%llu profiles before this one could not be sent", push.lost);
	if (r->n)
		record_write(&body, p, r);
	if (body.has_failed)
		say_no_memory(type);
	else if (r->n)
		send_bytes(type, &body);
	out_release(&body);
	record_release(r);
}

static void send_profile(const char *type, const char *name, unsigned limit_use)
{
	const struct agent_profile *p = profile_find(name);
	struct record r = { 0 };

	if (p && profile_collect(p, &r)) {
		if (limit_use)
			record_comment(&r, "%u %% of the memory limit are used", limit_use);
		send_record(type, p, &r);
	} else {
		if (r.has_failed)
			say_no_memory(type);
		record_release(&r);
	}
}

/* ---- rounds */

static void start_cpu(void)
{
	pages_use_reserve(false); /* what it takes it keeps */
	push.has_cpu = cpu_start((int)settings.cpu_rate);
	pages_use_reserve(true);
	if (!push.has_cpu && errno == EBUSY)
		agent_say("KILN_PUSH_URL: CPU time is profiled for somebody else already, "
			  "so that profile is not sent");
}

static void stop_cpu(void)
{
	struct record r = { 0 };

	if (push.has_cpu && cpu_stop(&r))
		send_record("cpu", &profile_cpu, &r);
	else
		record_release(&r);
	push.has_cpu = false;
}

static void send_others(void)
{
	send_profile("heap", "heap", 0);
	if (mutex_fraction() > 0)
		send_profile("mutex", "mutex", 0);
	if (block_rate() > 0)
		send_profile("block", "block", 0);
	send_profile("goroutine", "goroutine", 0);
}

/* Until then, or until the program ends. */
static void rest(int64_t until)
{
	for (;;) {
		int seen = atomic_load(&push.wakes);
		unsigned use = atomic_exchange(&push.limit_use, 0);

		if (use)
			send_profile("heap", "heap", use);
		if (atomic_load(&push.is_ending) || now_ns() >= until)
			return;
		futex_sleep(&push.wakes, seen, until);
	}
}

static void *run(void *nothing)
{
	bool is_last = false;

	agent_thread_begins();
	pages_use_reserve(true);
	post_find(&push.server);
	while (!is_last) {
		int64_t begin = now_ns(), every = settings.push_every;

		/* Between rounds too there may be an end: what there is by then is sent. */
		is_last = atomic_load(&push.is_ending);
		if (!is_last) {
			start_cpu();
			rest(begin + (every < CPU_SECONDS ? every : CPU_SECONDS) * SECOND);
			is_last = atomic_load(&push.is_ending);
			stop_cpu();
		}
		send_others();
		if (!is_last)
			rest(begin + every * SECOND);
	}
	atomic_store(&push.is_ending, 2);
	futex_wake(&push.is_ending);
	return nothing;
}

/* ---- the part */

/* Of what has an '@' anywhere, all in front may be a password. */
static void set_shown(void)
{
	const char *at = strrchr(settings.push_url, '@');

	snprintf(push.shown, sizeof(push.shown), "%s%s", at ? "..." : "",
		 at ? at : settings.push_url);
}

static bool parse_settings(void)
{
	struct post_server *s = &push.server;
	const char *token = settings.push_token;

	if (strncmp(settings.push_url, "https:", 6) == 0) {
		agent_say("KILN_PUSH_URL=%s: the agent has no TLS; send to a collector on this "
			  "machine over http:, or let one fetch from KILN_PPROF_ADDR",
			  push.shown);
		return false;
	}
	if (!post_parse(s, settings.push_url)) {
		agent_say("KILN_PUSH_URL=%s is not a URL such as http://host:10100", push.shown);
		return false;
	}
	if (token &&
	    !credential_bearer(s->authorization, sizeof(s->authorization), token, strlen(token))) {
		agent_say("KILN_PUSH_TOKEN is not a token: it has blanks or no characters, or too "
			  "many");
		return false;
	}
	if (!read_token()) /* it may come later */
		agent_say("KILN_PUSH_TOKEN_FILE=%.200s: %s", settings.push_token_file,
			  errno == EINVAL ? "there is no token in it" : strerrordesc_np(errno));
	return true;
}

static void init(void)
{
	char host[80] = "";

	if (!settings.push_url)
		return;
	set_shown();
	if (!parse_settings())
		return;
	if (settings.push_every < 1 || settings.push_every > 1000000)
		settings.push_every = 60;
	gethostname(host, sizeof(host) - 1);
	snprintf(push.instance, sizeof(push.instance), "%s-%d", host, (int)getpid());
	push.is_on = agent_start_thread() && agent_create_thread(run);
	if (push.is_on)
		exit_watch();
}

static void wake(void)
{
	atomic_fetch_add(&push.wakes, 1);
	futex_wake(&push.wakes);
}

bool push_heap(unsigned limit_use)
{
	if (!push.is_on)
		return false;
	atomic_store(&push.limit_use, limit_use);
	wake();
	return true;
}

/* The thread gives up a little earlier, and says why. */
static void at_exit(void)
{
	int64_t until = now_ns() + (int64_t)EXIT_SECONDS * SECOND;
	int was = 0;

	if (!push.is_on)
		return;
	atomic_store(&push.until, until - SECOND / 4);
	atomic_compare_exchange_strong(&push.is_ending, &was, 1);
	futex_wake(&push.is_ending);
	wake();
	while (atomic_load(&push.is_ending) != 2 && now_ns() < until)
		futex_sleep(&push.is_ending, 1, until);
	if (atomic_load(&push.is_ending) != 2)
		agent_say("KILN_PUSH_URL=%s: the last profiles could not be sent in %d seconds",
			  push.shown, EXIT_SECONDS);
}

static void in_child(void)
{
	push.is_on = push.has_cpu = false;
	atomic_store(&push.is_ending, 0);
	atomic_store(&push.limit_use, 0);
}

const struct agent_part part_push = {
	.name = "push", .init = init, .at_exit = at_exit, .in_child = in_child
};
