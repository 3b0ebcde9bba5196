/* What the collector makes of targets that come and go, and of what they answer: without threads,
 * but for its end. */
#include "test.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <unistd.h>

#include "collect/inside.h"

#define S COLLECT_SECOND
#define MS INT64_C(1000000)

static struct job *job_of(const char *yaml)
{
	struct shared_config *shared = xcalloc(1, sizeof(*shared));
	struct job *j;
	struct err e;

	if (!scrape_config_read(&shared->config, str_of(yaml), "/etc/kiln", &e))
		fail_msg("%s", e.text);
	j = job_new(&shared->config.jobs[0], shared);
	for (size_t s = 0; s < j->nsources; s++)
		assert_true(j->sources[s]->look(j->sources[s], &j->sets[s]));
	return j;
}

/* How many lines are logged. */
static size_t sync_job(struct collector *c, struct job *j)
{
	struct buf log = { 0 };
	size_t n = 0;

	job_sync(c, j, &log);
	for (size_t i = 0; i < log.n; i++)
		n += !log.p[i];
	buf_release(&log);
	return n;
}

static void end(struct collector *c, struct job *j)
{
	job_remove_targets(c, j);
	job_drop(j);
	vec_release(&c->queue.at);
	vec_release(&c->captures);
}

/* ---- targets come and go */

static void set_addresses(struct job *j, const char *addresses)
{
	struct str rest = str_of(addresses);
	struct target_set *set = &j->sets[0];

	target_set_release(set);
	set->at = arena_many(&set->arena, strlen(addresses), struct target_spec);
	while (rest.n)
		set->at[set->n++].address = str_cut(&rest, ' ');
}

static const char *addresses_of(const struct job *j)
{
	static char text[200];
	size_t n = 0;

	*text = '\0';
	for (size_t i = 0; i < j->targets.n; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%.*s", i ? " " : "",
				      STR_ARG(j->targets.at[i]->address));
	return text;
}

#define SIMPLE "scrape: [{job: j, profiles: [heap], targets: ['x:1']}]"

TEST(new_targets_do_not_push_out_old_ones)
{
	struct collector c = { .ntargets = MAX_TARGETS - 3 };
	struct job *j = job_of(SIMPLE);

	set_addresses(j, "a:1 b:1 c:1");
	assert_int_equal(sync_job(&c, j), 0);
	assert_int_equal(c.ntargets, MAX_TARGETS);
	set_addresses(j, "d:1 a:1 b:1 c:1 e:1");
	assert_int_equal(sync_job(&c, j), 1);
	assert_string_equal(addresses_of(j), "a:1 b:1 c:1");
	assert_int_equal(sync_job(&c, j), 0); /* that has been said */
	assert_false(job_may_grow(&c, j));
	set_addresses(j, "d:1 a:1 b:1"); /* one goes and makes room */
	sync_job(&c, j);
	assert_string_equal(addresses_of(j), "a:1 b:1 d:1");
	assert_int_equal(j->left_out_bytes, 0);
	set_addresses(j, "d:1 a:1 b:1 e:1");
	assert_int_equal(sync_job(&c, j), 1);
	c.ntargets--; /* of another job */
	assert_true(job_may_grow(&c, j));
	sync_job(&c, j);
	assert_string_equal(addresses_of(j), "a:1 b:1 d:1 e:1");
	c.ntargets = j->targets.n;
	end(&c, j);
	assert_int_equal(c.target_bytes, 0);
}

TEST(targets_take_so_much_memory_and_no_more)
{
	struct collector c = { .target_bytes = MAX_TARGETS_BYTES - 100 };
	struct job *j = job_of(SIMPLE);

	assert_int_equal(sync_job(&c, j), 1);
	assert_int_equal(j->targets.n, 0);
	c.target_bytes = 0;
	assert_true(job_may_grow(&c, j));
	sync_job(&c, j);
	assert_int_equal(j->targets.n, 1);
	assert_int_equal(c.target_bytes, j->targets.at[0]->bytes);
	end(&c, j);
}

TEST(a_target_is_told_by_all_of_its_labels)
{
	struct collector c = { 0 };
	struct job *j = job_of("scrape: [{job: j, labels: {x: 1, y: 2}, profiles: [heap], targets: "
			       "['a:1', {targets: ['a:1'], labels: {x: 1}}, {targets: ['a:1'], "
			       "labels: {x: 2}}, {targets: ['a:1'], labels: {service: s}}]}]");
	const struct target *t;

	sync_job(&c, j);
	assert_int_equal(j->targets.n, 3); /* the second is the first */
	t = j->targets.at[1];
	assert_true(str_eq(t->service, STR("j")));
	assert_int_equal(t->nlabels, 3);
	assert_true(str_eq(t->labels[1].name, STR("x")) && str_eq(t->labels[1].value, STR("2")));
	assert_true(str_eq(j->targets.at[2]->service, STR("s")));
	end(&c, j);
}

TEST(a_target_is_told_by_what_is_its_own)
{
	static const struct profile_type heap = { "heap", "heap", 0, 7 * S, NULL };
	const struct target_own own[] = {
		{ .scheme = "https" },
		{ .path_prefix = "/x/" },
		{ .types = &heap, .ntypes = 1 },
		{ .namespace = "a", .secret = { "s", "token", "" } },
		{ .namespace = "b", .secret = { "s", "token", "" } },
	};
	static const char *const urls[] = {
		"http://a:1/debug/pprof/profile?seconds=9",
		"https://a:1/debug/pprof/profile?seconds=9",
		"http://a:1/x/profile?seconds=9",
		"http://a:1/debug/pprof/heap",
		"http://a:1/debug/pprof/profile?seconds=9",
		"http://a:1/debug/pprof/profile?seconds=9",
	};
	enum { N = 6 };
	struct collector c = { 0 };
	struct job *j = job_of("scrape: [{job: j, profiles: {cpu: {seconds: 9}, heap: }, targets: "
			       "['x:1']}]");
	struct target_set *set = &j->sets[0];

	target_set_release(set);
	set->at = arena_many(&set->arena, N, struct target_spec);
	for (set->n = 0; set->n < N; set->n++)
		set->at[set->n] = (struct target_spec){ .address = STR("a:1"),
							.own = set->n ? &own[set->n - 1] : NULL };
	for (int round = 0; round < 2; round++) { /* and they stay the same */
		sync_job(&c, j);
		assert_int_equal(j->targets.n, N);
	}
	for (size_t i = 0; i < N; i++) {
		struct target *t = j->targets.at[i];
		struct shot *s = shot_new(&c, t, &t->tasks.at[0]->type);

		assert_int_equal(t->tasks.n, i == 3 ? 1 : 2);
		assert_int_equal(t->tasks.at[0]->type.interval, i == 3 ? 7 * S : 60 * S);
		assert_int_equal(t->hash, j->targets.at[0]->hash); /* when its turn is */
		assert_string_equal(shot_url(s), urls[i]);
		shot_free(s);
	}
	end(&c, j);
	assert_int_equal(c.target_bytes, 0);
}

/* ---- what becomes of requests */

/* One of them has been asked for some milliseconds ago, and this is what came. */
static void answer(struct collector *c, struct task *task, enum collect_result r, bool was_sent,
		   int64_t took_ms)
{
	struct shot s = { .c = c,
			  .task = task,
			  .target = task->target,
			  .result = r,
			  .was_sent = was_sent,
			  .started_ms = clock_now_ms() - took_ms };
	struct buf log = { 0 };

	err_set(&s.e, ERR_IO, "as the test wants it");
	queue_remove(&c->queue, &task->queued);
	if (task->slot > clock_now_ns())
		task->slot = clock_now_ns();
	task->is_running = true;
	task_done(c, &s, &log);
	buf_release(&log);
}

static void assert_due_in(const struct task *t, int64_t least, int64_t most)
{
	int64_t wait = t->queued.due - clock_now_ns();

	if (wait < least - S / 10 || wait > most + S / 10)
		fail_msg("due in %g s, not between %g and %g", (double)wait / 1e9,
			 (double)least / 1e9, (double)most / 1e9);
}

#define TWO                                                                                 \
	"scrape: [{job: j, interval: 10s, profiles: {heap: , cpu: {seconds: 5}, block: }, " \
	"targets: ['x:1']}]"

TEST(one_profile_that_hangs_is_left_alone_by_itself)
{
	struct collector c = { 0 };
	struct job *j = job_of(TWO);
	struct target *t;
	struct task *heap, *cpu;

	sync_job(&c, j);
	t = j->targets.at[0];
	heap = t->tasks.at[0];
	cpu = t->tasks.at[1];
	for (unsigned i = 1; i <= 3; i++) {
		answer(&c, heap, COLLECT_OK, true, 10);
		answer(&c, cpu, COLLECT_UNREACHABLE, true, 1);
		assert_false(t->is_unreachable);
		assert_int_equal(t->state, TARGET_UP);
		assert_int_equal(cpu->nfailures, i);
		assert_due_in(cpu, (10 << (i - 1)) * S * 3 / 4, (10 << (i - 1)) * S * 5 / 4);
		assert_due_in(heap, 0, 10 * S);
	}
	answer(&c, cpu, COLLECT_WRONG, true, 10); /* it broke off */
	assert_int_equal(cpu->nfailures, 4);
	assert_false(t->is_unreachable);
	end(&c, j);
}

TEST(a_target_that_hangs_as_a_whole_is_left_alone)
{
	struct collector c = { 0 };
	struct job *j = job_of(TWO);
	struct target *t;

	sync_job(&c, j);
	t = j->targets.at[0];
	for (size_t i = 0; i < 3; i++)
		answer(&c, t->tasks.at[i], COLLECT_OK, true, 1000);
	for (size_t i = 0; i < 3; i++)
		t->tasks.at[i]->tried_ms += 1000; /* after all of these */
	for (size_t i = 0; i < 3; i++)
		answer(&c, t->tasks.at[i], COLLECT_UNREACHABLE, true, -1);
	assert_true(t->is_unreachable);
	assert_int_equal(t->state, TARGET_DOWN);
	end(&c, j);
}

TEST(who_cannot_be_connected_to_is_probed_with_the_shortest)
{
	struct collector c = { 0 };
	struct job *j = job_of(TWO);
	struct target *t;
	struct task *heap, *cpu, *block;

	sync_job(&c, j);
	t = j->targets.at[0];
	heap = t->tasks.at[0];
	cpu = t->tasks.at[1];
	block = t->tasks.at[2];
	answer(&c, cpu, COLLECT_UNREACHABLE, false, 100);
	assert_true(t->is_unreachable);
	assert_int_equal(t->nfailures, 1);
	answer(&c, block, COLLECT_UNREACHABLE, false, 50); /* at the same time */
	assert_int_equal(t->nfailures, 1);
	assert_ptr_equal(target_probe(t), heap);
	assert_int_equal(heap->queued.due, t->retry_at);
	assert_int_equal(cpu->nfailures + block->nfailures, 0);
	answer(&c, heap, COLLECT_UNREACHABLE, false, -5); /* asked for after that */
	assert_int_equal(t->nfailures, 2);
	assert_due_in(heap, 15 * S, 25 * S);
	answer(&c, heap, COLLECT_OK, true, 1);
	assert_false(t->is_unreachable);
	assert_int_equal(t->state, TARGET_UP);
	assert_due_in(cpu, 0, 10 * S);
	/* Of those that fail by themselves another one. */
	heap->nfailures = 2;
	assert_ptr_equal(target_probe(t), block);
	end(&c, j);
}

TEST(what_the_server_has_no_room_for_is_no_failure)
{
	struct collector c = { 0 };
	struct job *j = job_of(TWO);
	struct target *t;
	struct task *heap;

	sync_job(&c, j);
	t = j->targets.at[0];
	heap = t->tasks.at[0];
	answer(&c, heap, COLLECT_OK, true, 1);
	for (int i = 0; i < 5; i++) {
		answer(&c, heap, COLLECT_REFUSED, true, 1);
		assert_int_equal(t->state, TARGET_UP);
		assert_int_equal(heap->nfailures, 0);
		assert_int_equal(heap->nfailed, 0);
		assert_non_null(heap->problem);
		assert_due_in(heap, 0, 10 * S);
	}
	answer(&c, heap, COLLECT_OK, true, 1);
	assert_null(heap->problem);
	end(&c, j);
}

TEST(a_profile_that_takes_all_of_its_interval_is_taken_in_each)
{
	struct collector c = { 0 };
	struct job *j = job_of("scrape: [{job: j, interval: 10s, profiles: {cpu: {seconds: 10}}, "
			       "targets: ['x:1']}]");
	struct task *cpu;
	int64_t now = clock_now_ns();

	sync_job(&c, j);
	cpu = j->targets.at[0]->tasks.at[0];
	cpu->slot = now - 10 * S - 50 * MS;
	cpu->hash = (uint64_t)(cpu->slot % (10 * S));
	answer(&c, cpu, COLLECT_OK, true, 10050);
	assert_int_equal(cpu->queued.due, now - 50 * MS); /* at once */
	cpu->slot = now - 16 * S;			  /* but not one that is long over */
	answer(&c, cpu, COLLECT_OK, true, 16000);
	assert_true(cpu->queued.due > now);
	end(&c, j);
}

/* ---- replicas */

/* How many are taken in a round. */
static size_t take_round(struct collector *c, const struct job *j, int64_t round)
{
	size_t n = 0;

	for (size_t i = 0; i < j->targets.n; i++) {
		struct task *task = j->targets.at[i]->tasks.at[0];

		task->slot = round * j->config->interval + 1;
		n += !replicas_are_others(c, task, clock_now_ns());
	}
	return n;
}

#define REPLICAS(interval)                                                                   \
	"scrape: [{job: j, replicas: 2, interval: " interval ", profiles: [heap], targets: " \
	"['a:1', 'b:1', 'c:1', {targets: ['d:1', 'e:1', 'f:1'], labels: {service: s}}]}]"

TEST(each_service_has_its_replicas)
{
	struct collector c = { .random = 7 };
	struct job *j = job_of(REPLICAS("10s"));

	sync_job(&c, j);
	assert_int_equal(j->groups.n, 2);
	for (int64_t round = 100; round < 110; round++) {
		assert_int_equal(take_round(&c, j, round), 4);
		assert_int_equal(take_round(&c, j, round), 4);
	}
	end(&c, j);
}

TEST(who_comes_in_a_round_waits_for_the_next)
{
	struct collector c = { .random = 7 };
	struct job *j = job_of(REPLICAS("10s"));
	bool was_chosen[2];

	set_addresses(j, "a:1 b:1 c:1");
	sync_job(&c, j);
	assert_int_equal(take_round(&c, j, 100), 2);
	was_chosen[0] = j->targets.at[0]->is_chosen;
	was_chosen[1] = j->targets.at[1]->is_chosen;
	set_addresses(j, "a:1 b:1 c:1 x:1 y:1");
	sync_job(&c, j);
	assert_int_equal(take_round(&c, j, 100), 2);
	assert_int_equal(was_chosen[0], j->targets.at[0]->is_chosen);
	assert_int_equal(was_chosen[1], j->targets.at[1]->is_chosen);
	assert_int_equal(take_round(&c, j, 101), 2);
	end(&c, j);
}

/* Rounds of a longer interval have smaller numbers. */
TEST(replicas_go_on_when_the_interval_changes)
{
	struct collector c = { .random = 7 };
	struct job *j = job_of(REPLICAS("1s")), *fresh = job_of(REPLICAS("10s"));
	struct buf log = { 0 };
	unsigned all = 0;

	sync_job(&c, j);
	take_round(&c, j, 1000);
	job_inherit(fresh, j);
	job_refresh(&c, fresh, &log);
	for (int64_t round = 100; round < 120; round++) {
		assert_int_equal(take_round(&c, fresh, round), 4);
		for (unsigned i = 0; i < fresh->targets.n; i++)
			all |= (unsigned)fresh->targets.at[i]->is_chosen << i;
	}
	assert_int_equal(all, 63); /* each had its turn */
	job_drop(j);
	end(&c, fresh);
	buf_release(&log);
}

/* ---- what may be under way */

TEST(profilers_of_a_process_are_taken_one_at_a_time)
{
	struct collector c = { .params = { .max_at_once = 10 } };
	struct job *j = job_of("scrape: [{job: j, profiles: {cpu: {path: pprof/profile}, mine: "
			       "{path: profile, seconds: 5}, wall: , heap: }, targets: ['x:1']}]");
	struct shot s = { .address = STR("x:1") };
	struct target *t;

	sync_job(&c, j);
	t = j->targets.at[0];
	vec_push(&c.running, &s);
	for (size_t i = 0; i < 4; i++) {
		s.type = t->tasks.at[i]->type;
		assert_int_equal(may_start(&c, t, &t->tasks.at[0]->type), i > 1);  /* cpu */
		assert_int_equal(may_start(&c, t, &t->tasks.at[1]->type), i > 1);  /* mine */
		assert_int_equal(may_start(&c, t, &t->tasks.at[2]->type), i != 2); /* wall */
		assert_true(may_start(&c, t, &t->tasks.at[3]->type));
	}
	t->nrunning = 2;
	assert_false(may_start(&c, t, &t->tasks.at[3]->type));
	t->nrunning = 0;
	c.params.max_at_once = 1;
	assert_false(may_start(&c, t, &t->tasks.at[3]->type));
	vec_release(&c.running);
	end(&c, j);
}

TEST(a_capture_waits_for_its_turn_as_others_do)
{
	struct collector c = { .params = { .max_at_once = 1 } };
	struct job *j = job_of(TWO);
	struct shot s = { .address = STR("y:1"), .type = { .name = "cpu", .exclusive = "cpu" } };
	struct capture_request r = { .service = STR("j"), .type = STR("cpu") };
	struct capture x;
	struct err e;

	sync_job(&c, j);
	vec_push(&c.jobs, j);
	vec_push(&c.running, &s);
	assert_true(collector_capture(&c, &r, &x, &e));
	captures_start(&c);
	assert_true(collector_find_capture(&c, str_of(x.id), &x));
	assert_int_equal(x.state, CAPTURE_WAITING);
	assert_non_null(strstr(x.why, "max-scrapes"));
	s.address = STR("x:1");
	assert_true(collector_find_capture(&c, str_of(x.id), &x));
	assert_non_null(strstr(x.why, "another cpu profile"));
	vec_release(&c.running);
	vec_release(&c.jobs);
	end(&c, j);
}

/* ---- views */

TEST(a_view_has_what_is_asked_for)
{
	struct collector c = { 0 };
	struct job *j = job_of(REPLICAS("10s"));
	struct target_filter all = { 0 }, s = { .service = STR("s"), .state = STR("new") },
			     up = { .state = STR("up") }, none = { .job = STR("no") };
	struct arena a = { 0 };
	struct job_view *jobs;
	size_t n;

	sync_job(&c, j);
	vec_push(&c.jobs, j);
	collector_view(&c, NULL, &a, &jobs, &n);
	assert_int_equal(n, 1);
	assert_int_equal(jobs[0].nnew, 6);
	assert_int_equal(jobs[0].ntargets, 0);
	collector_view(&c, &all, &a, &jobs, &n);
	assert_int_equal(jobs[0].ntargets, 6);
	collector_view(&c, &s, &a, &jobs, &n);
	assert_int_equal(jobs[0].ntargets, 3);
	assert_int_equal(jobs[0].nnew, 6);
	collector_view(&c, &up, &a, &jobs, &n);
	assert_int_equal(jobs[0].ntargets, 0);
	collector_view(&c, &none, &a, &jobs, &n);
	assert_int_equal(n, 0);
	assert_true(collector_view_bytes(&c, &all) > collector_view_bytes(&c, &s));
	assert_int_equal(collector_view_bytes(&c, &up), 0);
	arena_release(&a);
	vec_release(&c.jobs);
	end(&c, j);
}

/* ---- the end */

struct keeper {
	atomic_bool has_begun, has_ended;
};

static bool take(void *ctx, size_t bytes, const atomic_bool *stop)
{
	(void)ctx, (void)bytes, (void)stop;
	return true;
}

static void give(void *ctx, size_t bytes)
{
	(void)ctx, (void)bytes;
}

/* As one that writes to a slow disk. */
static enum collect_result put(void *ctx, const struct collected *p, char id[COLLECT_ID_BYTES],
			       struct err *e)
{
	struct keeper *k = ctx;

	(void)p, (void)e;
	k->has_begun = true;
	usleep(200000);
	snprintf(id, COLLECT_ID_BYTES, "x");
	k->has_ended = true;
	return COLLECT_OK;
}

static void count(void *ctx, struct str job, enum collect_result r, double late_s)
{
	(void)ctx, (void)job, (void)r, (void)late_s;
}

static void log_line(void *ctx, const char *line)
{
	(void)ctx, (void)line;
}

static void *serve_one(void *arg)
{
	static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx";
	int fd = accept(*(int *)arg, NULL, NULL);
	char request[1000];

	if (read(fd, request, sizeof(request)) > 0 && write(fd, answer, sizeof(answer) - 1) < 0)
		fail_msg("nobody reads the answer");
	close(fd);
	return NULL;
}

/* Whatever the sink is made of can go after that. */
TEST(nothing_comes_after_it_has_joined)
{
	struct keeper k = { 0 };
	struct collect_sink sink = { &k, take, give, put, count, log_line };
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct scrape_config config;
	struct collector *c;
	pthread_t target;
	char yaml[200];
	struct err e;

	assert_int_equal(bind(fd, (struct sockaddr *)&at, n), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &n), 0);
	pthread_create(&target, NULL, serve_one, &fd);
	snprintf(yaml, sizeof(yaml),
		 "scrape: [{job: j, interval: 1s, profiles: [heap], targets: ['127.0.0.1:%d']}]",
		 ntohs(at.sin_port));
	assert_true(scrape_config_read(&config, str_of(yaml), ".", &e));
	c = collector_new(&(struct collector_params){ sink, 1000, 1 });
	collector_set_jobs(c, &config);
	for (int i = 0; i < 1000 && !k.has_begun; i++)
		usleep(10000);
	assert_true(k.has_begun);
	collector_stop(c);
	collector_join(c);
	assert_true(k.has_ended);
	assert_int_equal(collector_view_bytes(c, &(struct target_filter){ .job = STR("?") }), 0);
	collector_free(c);
	pthread_join(target, NULL);
	close(fd);
}
