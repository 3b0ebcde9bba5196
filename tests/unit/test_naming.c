#include "test.h"

#include <stdio.h>
#include <unistd.h>

#include "profiles.h"
#include "store/store.h"

enum { SECOND = 1000000000 };
#define BUILD_ID "00112233445566778899"

/* ---- a namer: addresses below 0x100 are "low", inlined into "caller" */

struct fake {
	struct store_namer namer;
	unsigned nbinaries, nasked, nwaits;
	bool is_ready;	  /* else all are missing */
	bool comes_later; /* ready once somebody has waited */
	bool is_inside;
};

static const struct profile_frame low[] = {
	{ { "low", 3 }, { "_low", 4 }, { "low.c", 5 }, .line = 7 },
	{ { "caller", 6 }, { "caller", 6 }, { "low.c", 5 }, .line = 3 },
};

static void begin(void *ctx)
{
	((struct fake *)ctx)->is_inside = true;
}

static void end(void *ctx)
{
	((struct fake *)ctx)->is_inside = false;
}

static struct store_binary *binary(void *ctx, struct str build_id, struct str file)
{
	struct fake *f = ctx;

	assert_true(f->is_inside);
	f->nbinaries++;
	assert_true(str_eq(file, STR("/bin/shop")));
	return str_eq(build_id, STR(BUILD_ID)) ? ctx : NULL;
}

static uint32_t find(void *ctx, struct store_binary *b, const struct store_place *place,
		     struct profile_frame *frames, uint64_t *nmissing)
{
	struct fake *f = ctx;

	assert_true(f->is_inside && (void *)b == ctx);
	assert_int_equal(place->offset, 0x1000);
	assert_int_equal(place->size, 0x2000);
	f->nasked++;
	if (!f->is_ready)
		++*nmissing;
	memcpy(frames, low, sizeof(low));
	return f->is_ready && place->address < 0x100 ? 2 : 0;
}

static void wait_for(void *ctx)
{
	struct fake *f = ctx;

	assert_false(f->is_inside);
	f->nwaits++;
	f->is_ready |= f->comes_later;
}

static uint64_t nfound(void *ctx)
{
	return ((struct fake *)ctx)->is_ready ? 2 : 0;
}

static struct str readable(void *ctx, struct str name)
{
	assert_true(((struct fake *)ctx)->is_inside);
	return str_eq(name, STR("_Z4evilv")) ? STR("evil") : (struct str){ 0 };
}

static uint64_t generation(void *ctx)
{
	return ((struct fake *)ctx)->is_ready;
}

/* ---- profiles of two addresses, 0x10 (10) and, called by it, 0x200 (5) */

struct place {
	struct world w;
	char dir[64];
	struct store *store;
	struct fake fake;
	struct store_id id;
	const char *file;
};

static struct profile native(struct place *p, uint64_t start, bool is_named)
{
	struct profile x = folded(&p->w, "a;b 5\na 10\n");
	struct mapping *m = arena_new(&p->w.arena, struct mapping);

	*m = (struct mapping){ .id = 1, .start = start, .limit = start + 0x2000, .offset = 0x1000 };
	m->file = strings_add(&p->w.strings, str_of(p->file));
	m->build_id = strings_add(&p->w.strings, STR(BUILD_ID));
	m->has_functions = is_named;
	x.mappings = m;
	x.nmappings = 1;
	x.period_type.type = x.types[0].type;
	assert_int_equal(x.nlocations, 2);
	for (uint32_t i = 0; i < 2; i++) {
		struct location *l = &x.locations[i];
		struct str name =
			profile_str(&x, x.functions[x.lines[l->first_line].function].name);

		l->mapping = 0;
		l->address = start + (str_eq(name, STR("a")) ? 0x10 : 0x200);
		if (!is_named)
			l->nlines = 0;
	}
	if (!is_named)
		x.nlines = x.nfunctions = 0;
	return x;
}

static void put(struct place *p, const char *service, int64_t seconds, uint64_t start,
		bool is_named)
{
	struct profile x = native(p, start, is_named);
	struct store_new new = { .service = str_of(service),
				 .type = STR("cpu"),
				 .created = seconds * SECOND,
				 .profile = &x };
	struct store_meta meta;
	struct err e;

	if (!store_put(p->store, &new, &p->w.arena, &meta, &e))
		fail_msg("%s", e.text);
	p->id = meta.id;
}

static void place_init(struct place *p)
{
	struct err e;

	*p = (struct place){ .dir = "/tmp/kiln-naming-XXXXXX", .file = "/bin/shop" };
	world_init(&p->w);
	assert_non_null(mkdtemp(p->dir));
	p->store = store_open(&(struct store_params){ .dir = p->dir, .max_memory = 64 << 20 }, &e);
	assert_non_null(p->store);
	p->fake.namer = (struct store_namer){ &p->fake, begin,	end,	  binary,    find,
					      wait_for, nfound, readable, generation };
	store_set_namer(p->store, &p->fake.namer);
}

static void place_release(struct place *p)
{
	char command[100];

	store_close(p->store);
	snprintf(command, sizeof(command), "rm -r %s", p->dir);
	assert_int_equal(system(command), 0);
	world_release(&p->w);
}

static struct store_matcher by_service(const char *name)
{
	return (struct store_matcher){ .name = STR("service"),
				       .op = STORE_EQUAL,
				       .value = str_of(name) };
}

static struct profile merge(struct place *p, const char *service)
{
	struct store_matcher m = by_service(service);
	struct store_query q = { .matchers = &m, .nmatchers = 1, .to = INT64_MAX };
	struct store_merged merged;
	struct err e;

	if (!store_merge(p->store, &q, STORE_AS_TYPE, &p->w.arena, &p->w.strings, &merged, &e))
		fail_msg("%s", e.text);
	return merged.profile;
}

/* "function flat cum" of all rows. */
static const char *top_text(struct place *p, const char *service)
{
	struct store_matcher m = by_service(service);
	struct store_top_params params = {
		.query = { .matchers = &m, .nmatchers = 1, .to = INT64_MAX }
	};
	struct store_top top;
	struct err e;

	if (!store_top(p->store, &params, &p->w.arena, &top, &e))
		fail_msg("%s", e.text);
	p->w.text.n = 0;
	for (size_t i = 0; i < top.n; i++)
		buf_printf(&p->w.text, "%.*s %.*s %lld %lld\n", STR_ARG(top.rows[i].function),
			   STR_ARG(top.rows[i].file), (long long)top.rows[i].flat,
			   (long long)top.rows[i].cum);
	buf_char(&p->w.text, '\0');
	return p->w.text.p;
}

static double sum_of_series(struct place *p, const char *service, struct store_series_params params)
{
	struct store_matcher m = by_service(service);
	struct store_line *lines;
	struct err e;
	double sum = 0;
	size_t n;

	params.query = (struct store_query){ .matchers = &m, .nmatchers = 1, .to = INT64_MAX };
	params.step = INT64_C(1000) * SECOND;
	if (!store_series(p->store, &params, &p->w.arena, &lines, &n, &e))
		fail_msg("%s", e.text);
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < lines[i].n; k++)
			sum += lines[i].points[k].value;
	return sum;
}

static double series_value(struct place *p, const char *service, const char *function, bool is_flat)
{
	return sum_of_series(
		p, service,
		(struct store_series_params){ .function = str_of(function), .is_flat = is_flat });
}

/* Of stacks that begin with functions, as "main;work", from the root on. */
static double call_site_value(struct place *p, const char *service, const char *functions)
{
	struct str list[8], rest = str_of(functions);
	struct store_series_params params = { .call_site = list };

	while (rest.n)
		list[params.ncall_site++] = str_cut(&rest, ';');
	return sum_of_series(p, service, params);
}

TEST(what_has_no_names_is_told_by_its_binary)
{
	struct place p;

	place_init(&p);
	put(&p, "shop", 100, 0x400000, false);
	assert_string_equal(top_text(&p, "shop"), "[shop]  15 15\n");
	assert_true(series_value(&p, "shop", "[shop]", false) == 15);
	assert_true(series_value(&p, "shop", "low", false) == 0);
	assert_int_equal(p.fake.nwaits, 3); /* each asked once more for what was missing */
	place_release(&p);
}

TEST(merges_top_and_series_have_names)
{
	struct place p;
	struct profile x;

	place_init(&p);
	put(&p, "shop", 100, 0x400000, false);
	put(&p, "shop", 101, 0x700000, false); /* loaded elsewhere */
	p.fake.is_ready = true;
	x = merge(&p, "shop");
	assert_string_equal(samples_text(&p.w, &x), "10: low caller\n20: low caller\n");
	assert_true(x.mappings[0].has_functions && x.mappings[0].has_line_numbers);
	assert_int_equal(x.nfunctions, 2);
	assert_true(str_eq(profile_str(&x, x.functions[0].system_name), STR("_low")));
	assert_string_equal(top_text(&p, "shop"),
			    "low low.c 20 30\n[shop]  10 10\ncaller low.c 0 30\n");
	assert_true(series_value(&p, "shop", "low", false) == 30);
	assert_true(series_value(&p, "shop", "low", true) == 20);
	assert_true(series_value(&p, "shop", "caller", false) == 30);
	assert_true(series_value(&p, "shop", "caller", true) == 0);
	assert_true(series_value(&p, "shop", "[shop]", true) == 10);
	assert_int_equal(p.fake.nwaits, 0);
	place_release(&p);
}

/* One location has both low and caller, and the one below it none of them. */
TEST(call_sites_have_names)
{
	struct place p;

	place_init(&p);
	put(&p, "shop", 100, 0x400000, false);
	assert_true(call_site_value(&p, "shop", "[shop]") == 15);
	assert_true(call_site_value(&p, "shop", "[shop];[shop]") == 5);
	assert_true(call_site_value(&p, "shop", "caller") == 0);
	p.fake.is_ready = true;
	assert_true(call_site_value(&p, "shop", "caller") == 15);
	assert_true(call_site_value(&p, "shop", "caller;low") == 15);
	assert_true(call_site_value(&p, "shop", "caller;low;[shop]") == 5);
	assert_true(call_site_value(&p, "shop", "low") == 0);
	assert_true(call_site_value(&p, "shop", "caller;caller") == 0);
	assert_true(call_site_value(&p, "shop", "[shop]") == 0);
	place_release(&p);
}

TEST(who_asks_waits_once)
{
	struct place p;
	struct profile x;

	place_init(&p);
	put(&p, "shop", 100, 0x400000, false);
	p.fake.comes_later = true;
	x = merge(&p, "shop");
	assert_string_equal(samples_text(&p.w, &x), "5: low caller\n10: low caller\n");
	p.fake.is_ready = false;
	assert_string_equal(top_text(&p, "shop"),
			    "low low.c 10 15\n[shop]  5 5\ncaller low.c 0 15\n");
	p.fake.is_ready = false;
	assert_true(series_value(&p, "shop", "low", true) == 10);
	assert_int_equal(p.fake.nwaits, 3);
	place_release(&p);
}

TEST(a_profile_comes_back_as_it_was)
{
	struct place p;
	struct store_merged merged;
	struct store_meta meta;
	struct profile x;
	struct str bytes;
	struct err e;

	place_init(&p);
	put(&p, "shop", 100, 0x400000, false);
	p.fake.is_ready = true;
	assert_true(store_get(p.store, &p.id, &p.w.arena, &p.w.strings, &meta, &x, &bytes, &e));
	assert_int_equal(x.nlines, 0);
	assert_int_equal(x.nfunctions, 0);
	assert_int_equal(p.fake.nasked, 0);
	assert_true(
		store_merge_ids(p.store, &p.id, 1, NULL, &p.w.arena, &p.w.strings, &merged, &e));
	assert_string_equal(samples_text(&p.w, &merged.profile), "5: low caller\n10: low caller\n");
	place_release(&p);
}

TEST(what_was_pushed_with_names_keeps_them)
{
	struct place p;
	struct profile x;

	place_init(&p);
	put(&p, "shop", 100, 0x400000, true);
	p.fake.is_ready = true;
	x = merge(&p, "shop");
	assert_string_equal(samples_text(&p.w, &x), "5: b a\n10: a\n");
	assert_string_equal(top_text(&p, "shop"), "a  10 15\nb  5 5\n");
	assert_int_equal(p.fake.nbinaries, 0);
	place_release(&p);
}

/* The vdso has a build id, and no file that anybody could upload. */
TEST(what_is_no_file_is_not_asked_for)
{
	struct place p;

	place_init(&p);
	p.file = "[vdso]";
	put(&p, "shop", 100, 0x400000, false);
	assert_string_equal(top_text(&p, "shop"), "[[vdso]]  15 15\n");
	merge(&p, "shop");
	assert_int_equal(p.fake.nbinaries, 0);
	assert_int_equal(p.fake.nwaits, 0);
	place_release(&p);
}

TEST(names_that_linkers_know_become_readable)
{
	struct place p;
	struct profile x = { 0 };
	struct store_new new = { .service = STR("shop"), .type = STR("cpu"), .profile = &x };
	struct store_meta meta;
	struct err e;

	place_init(&p);
	x = folded(&p.w, "main;_Z4evilv 3\nmain;_Z4evilv;_Z4evilv 2\nmain;_Znot 2\n");
	new.created = SECOND;
	assert_true(store_put(p.store, &new, &p.w.arena, &meta, &e));
	assert_string_equal(top_text(&p, "shop"), "evil  5 5\n_Znot  2 2\nmain  0 7\n");
	assert_true(series_value(&p, "shop", "evil", true) == 5);
	assert_true(series_value(&p, "shop", "_Znot", true) == 2);
	assert_true(call_site_value(&p, "shop", "main;evil") == 5);
	assert_true(call_site_value(&p, "shop", "main;_Z4evilv") == 5);
	assert_true(call_site_value(&p, "shop", "main;evil;evil") == 2);
	assert_true(call_site_value(&p, "shop", "main;evil;main") == 0);
	assert_true(call_site_value(&p, "shop", "evil") == 0);
	x = merge(&p, "shop");
	assert_string_equal(samples_text(&p.w, &x),
			    "3: evil main\n2: evil evil main\n2: _Znot main\n");
	assert_true(str_eq(profile_str(&x, x.functions[0].system_name), STR("_Z4evilv")) ||
		    str_eq(profile_str(&x, x.functions[1].system_name), STR("_Z4evilv")) ||
		    str_eq(profile_str(&x, x.functions[2].system_name), STR("_Z4evilv")));
	place_release(&p);
}

/* As pprof asks, which knows only addresses. */
TEST(symbols_have_names)
{
	static const uint64_t addresses[] = { 0x400200, 0x400010 };
	struct str names[2];
	struct place p;
	struct err e;

	place_init(&p);
	put(&p, "shop", 100, 0x400000, false);
	assert_true(store_symbols(p.store, addresses, 2, NULL, &p.w.arena, names, &e));
	assert_null(names[0].p);
	assert_null(names[1].p);
	p.fake.comes_later = true;
	assert_true(store_symbols(p.store, addresses, 2, NULL, &p.w.arena, names, &e));
	assert_null(names[0].p);
	assert_true(str_eq(names[1], STR("low")));
	place_release(&p);
}

TEST(build_ids_of_all_profiles)
{
	struct place p;
	struct str *ids;
	struct err e;
	size_t n;

	place_init(&p);
	assert_true(store_build_ids(p.store, NULL, &p.w.arena, &ids, &n, &e));
	assert_int_equal(n, 0);
	put(&p, "shop", 100, 0x400000, true);
	put(&p, "mail", 100, 0x400000, true);
	assert_true(store_build_ids(p.store, NULL, &p.w.arena, &ids, &n, &e));
	assert_int_equal(n, 1);
	assert_true(str_eq(ids[0], STR(BUILD_ID)));
	place_release(&p);
}

TEST(other_files_count_towards_the_limit)
{
	struct place p;
	struct store_params params = { .max_memory = 64 << 20, .keep = { .max_bytes = 16 << 20 } };
	struct err e;

	place_init(&p);
	assert_true(store_set_others(p.store, UINT64_C(1) << 40, &e)); /* no limit */
	store_close(p.store);
	params.dir = p.dir;
	p.store = store_open(&params, &e);
	assert_non_null(p.store);
	assert_true(store_set_others(p.store, 4 << 20, &e));
	assert_false(store_set_others(p.store, 16 << 20, &e));
	assert_int_equal(e.kind, ERR_LIMIT);
	assert_true(strncmp(e.text, "max-disk:", 9) == 0);
	assert_true(store_set_others(p.store, 0, &e));
	place_release(&p);
}
