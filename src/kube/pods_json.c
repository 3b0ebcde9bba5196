/* pods_json.c - what the API server says of pods, piece by piece: of 10,000 pods there is one in
 * memory. A part that is of another type than it should be is as if it were not there. */
#include "base/number.h"
#include "base/vec.h"
#include "kube/inside.h"

enum {
	MAX_VALUE_BYTES = 4 << 10,
	MAX_PAIRS_BYTES = 64 << 10,
	MAX_CONTAINERS = 100,
	RESERVE_BYTES = 64 << 10
};

/* ---- parts */

/* Into an array or object, if it is one. */
static bool enter(struct json_reader *r, char bracket)
{
	enum json_type type, want = bracket == '{' ? JSON_OBJECT : JSON_ARRAY;

	if (json_peek(r, &type) && type == want)
		return json_open(r, bracket);
	json_skip(r);
	return false;
}

/* Is a value of that type next? If not, it is passed over. */
static bool is_next(struct json_reader *r, enum json_type want)
{
	enum json_type type;

	if (json_peek(r, &type) && type == want)
		return true;
	json_skip(r);
	return false;
}

/* A member of an object, and what reads its value. */
struct member {
	const char *name;
	void (*read)(struct json_reader *r, struct arena *a, void *to);
	void *to;
};

static void read_members(struct json_reader *r, struct arena *a, const struct member *members,
			 size_t n)
{
	for (bool more = enter(r, '{'); more; more = json_more(r, '}')) {
		struct str name;
		size_t i = 0;

		if (!json_read_name(r, &name))
			break;
		while (i < n && !str_eq(name, str_of(members[i].name)))
			i++;
		if (i < n)
			members[i].read(r, a, members[i].to);
		else
			json_skip(r);
	}
}

#define READ_MEMBERS(r, a, members) \
	read_members(r, a, members, sizeof(members) / sizeof(*(members)))

/* To a struct str. */
static void read_text(struct json_reader *r, struct arena *a, void *to)
{
	struct str text;

	if (is_next(r, JSON_STRING) && json_read_string(r, &text))
		*(struct str *)to = (struct str){ str_dup(a, text), text.n };
}

/* To a struct buf. */
static void read_copy(struct json_reader *r, struct arena *a, void *to)
{
	struct buf *out = to;
	struct str text;

	(void)a;
	if (is_next(r, JSON_STRING) && json_read_string(r, &text)) {
		out->n = 0;
		buf_str(out, text);
	}
}

/* To a struct str: the JSON of any value. */
static void read_raw(struct json_reader *r, struct arena *a, void *to)
{
	size_t start = r->at;

	(void)a;
	if (json_skip(r))
		*(struct str *)to = (struct str){ r->text.p + start, r->at - start };
}

static void read_bool(struct json_reader *r, struct arena *a, void *to)
{
	(void)a;
	if (is_next(r, JSON_BOOL))
		json_read_bool(r, to);
}

/* To a uint16_t, if it is in its range. */
static void read_small(struct json_reader *r, struct arena *a, void *to)
{
	struct str text;
	uint64_t value;

	(void)a;
	if (is_next(r, JSON_NUMBER) && json_read_number(r, &text) &&
	    number_parse_uint(text, 10, &value) == NUMBER_OK && value <= UINT16_MAX)
		*(uint16_t *)to = (uint16_t)value;
}

struct pairs {
	const struct kube_pair *at;
	size_t n;
};

static void read_pairs(struct json_reader *r, struct arena *a, void *to)
{
	vec(struct kube_pair) pairs = { 0 };
	struct pairs *out = to;
	size_t bytes = 0;

	for (bool more = enter(r, '{'); more; more = json_more(r, '}')) {
		struct kube_pair p = { STR(""), STR("") };
		struct str text;

		if (!json_read_name(r, &text))
			break;
		if (text.n > MAX_VALUE_BYTES) {
			json_skip(r);
			continue;
		}
		p.name = (struct str){ str_dup(a, text), text.n };
		if (!is_next(r, JSON_STRING) || !json_read_string(r, &text) ||
		    text.n > MAX_VALUE_BYTES || bytes + p.name.n + text.n > MAX_PAIRS_BYTES)
			continue;
		p.value = (struct str){ str_dup(a, text), text.n };
		bytes += p.name.n + p.value.n;
		vec_push(&pairs, p);
	}
	out->n = pairs.n;
	out->at = vec_adopt(a, &pairs);
}

/* ---- containers */

struct containers {
	struct kube_container *at;
	size_t n;
};

/* To a container. */
static void read_ports(struct json_reader *r, struct arena *a, void *to)
{
	vec(struct kube_port) ports = { 0 };
	struct kube_container *c = to;

	for (bool more = enter(r, '['); more; more = json_more(r, ']')) {
		struct kube_port p = { STR(""), 0 };
		const struct member members[] = { { "name", read_text, &p.name },
						  { "containerPort", read_small, &p.number } };

		READ_MEMBERS(r, a, members);
		if (p.number && ports.n < MAX_CONTAINERS)
			vec_push(&ports, p);
	}
	c->nports = ports.n;
	c->ports = vec_adopt(a, &ports);
}

/* Of spec.containers and of status.containerStatuses: what one has not, the other has. */
static void read_containers(struct json_reader *r, struct arena *a, void *to)
{
	vec(struct kube_container) all = { 0 };
	struct containers *out = to;

	for (bool more = enter(r, '['); more; more = json_more(r, ']')) {
		struct kube_container c = { .name = STR(""), .image = STR("") };
		const struct member members[] = { { "name", read_text, &c.name },
						  { "image", read_text, &c.image },
						  { "ports", read_ports, &c },
						  { "ready", read_bool, &c.is_ready } };

		READ_MEMBERS(r, a, members);
		if (all.n < MAX_CONTAINERS)
			vec_push(&all, c);
	}
	out->n = all.n;
	out->at = vec_adopt(a, &all);
}

static void mark_ready(struct containers *spec, const struct containers *status)
{
	for (size_t i = 0; i < spec->n; i++) {
		spec->at[i].is_ready = false;
		for (size_t k = 0; k < status->n; k++)
			if (str_eq(spec->at[i].name, status->at[k].name))
				spec->at[i].is_ready = status->at[k].is_ready;
	}
}

/* ---- pods */

/* A pod as it is read. */
struct draft {
	struct pod_item item;
	struct str leaving, phase;
	struct pairs annotations, labels;
	struct containers spec, status;
};

static void read_owners(struct json_reader *r, struct arena *a, void *to)
{
	struct kube_pod *pod = to;

	for (bool more = enter(r, '['); more; more = json_more(r, ']')) {
		struct str kind = STR(""), name = STR("");
		bool is_controller = false;
		const struct member members[] = { { "kind", read_text, &kind },
						  { "name", read_text, &name },
						  { "controller", read_bool, &is_controller } };

		READ_MEMBERS(r, a, members);
		if (!is_controller)
			continue;
		pod->owner_kind = kind;
		pod->owner = name;
	}
}

static void read_metadata(struct json_reader *r, struct arena *a, void *to)
{
	struct draft *d = to;
	const struct member members[] = {
		{ "name", read_text, &d->item.pod.name },
		{ "namespace", read_text, &d->item.pod.namespace },
		{ "uid", read_text, &d->item.pod.uid },
		{ "resourceVersion", read_text, &d->item.version },
		{ "deletionTimestamp", read_text, &d->leaving },
		{ "annotations", read_pairs, &d->annotations },
		{ "labels", read_pairs, &d->labels },
		{ "ownerReferences", read_owners, &d->item.pod },
	};

	READ_MEMBERS(r, a, members);
}

static void read_spec(struct json_reader *r, struct arena *a, void *to)
{
	struct draft *d = to;
	const struct member members[] = { { "nodeName", read_text, &d->item.pod.node },
					  { "containers", read_containers, &d->spec } };

	READ_MEMBERS(r, a, members);
}

static void read_status(struct json_reader *r, struct arena *a, void *to)
{
	struct draft *d = to;
	const struct member members[] = {
		{ "phase", read_text, &d->phase },
		{ "podIP", read_text, &d->item.pod.ip },
		{ "hostIP", read_text, &d->item.pod.host_ip },
		{ "containerStatuses", read_containers, &d->status },
	};

	READ_MEMBERS(r, a, members);
}

/* A Deployment's ReplicaSets have its name and the hash that their pods have as label. */
static void name_deployment(struct kube_pod *pod)
{
	struct str hash = kube_pod_label(pod, "pod-template-hash"), owner = pod->owner;

	if (!str_eq(pod->owner_kind, STR("ReplicaSet")) || !hash.n || owner.n < hash.n + 2 ||
	    !str_has_suffix(owner, hash) || owner.p[owner.n - hash.n - 1] != '-')
		return;
	pod->owner_kind = STR("Deployment");
	pod->owner.n = owner.n - hash.n - 1;
}

static bool read_pod(struct json_reader *r, struct arena *a, struct pod_item *item)
{
	struct str none = STR("");
	struct draft d = {
		.item.version = none,
		.item.pod = { none, none, none, none, none, none, none, none, false, NULL, NULL, 0,
			      0, NULL, 0 },
	};
	const struct member members[] = { { "metadata", read_metadata, &d },
					  { "spec", read_spec, &d },
					  { "status", read_status, &d } };
	struct kube_pod *pod = &d.item.pod;

	READ_MEMBERS(r, a, members);
	mark_ready(&d.spec, &d.status);
	pod->containers = d.spec.at;
	pod->ncontainers = d.spec.n;
	pod->annotations = d.annotations.at;
	pod->nannotations = d.annotations.n;
	pod->labels = d.labels.at;
	pod->nlabels = d.labels.n;
	pod->is_running = str_eq(d.phase, STR("Running")) && !d.leaving.n;
	name_deployment(pod);
	*item = d.item;
	return !r->failed;
}

bool pods_read_one(struct arena *a, struct str json, struct kube_pod *pod, struct err *e)
{
	struct json_reader r;
	struct pod_item item;
	bool ok;

	json_reader_init(&r, json, e);
	ok = read_pod(&r, a, &item) && json_finish(&r);
	json_reader_release(&r);
	*pod = item.pod;
	return ok && (pod->name.n || err_set(e, ERR_FORMAT, "this is no pod"));
}

/* ---- lists */

struct list {
	struct pod_page *page;
	take_item *take;
	void *ctx;
};

static void read_page_metadata(struct json_reader *r, struct arena *a, void *to)
{
	struct pod_page *page = to;
	const struct member members[] = { { "resourceVersion", read_copy, &page->version },
					  { "continue", read_copy, &page->next } };

	READ_MEMBERS(r, a, members);
}

/* Each in `a`, in turn. Whoever has enough need not hear the rest. */
static void read_items(struct json_reader *r, struct arena *a, void *to)
{
	struct list *l = to;

	for (bool more = enter(r, '['); more; more = json_more(r, ']')) {
		struct pod_item item;

		arena_rewind(a);
		if (read_pod(r, a, &item) && item.pod.name.n && !l->take(l->ctx, &item))
			r->failed = l->page->is_ended = true;
	}
}

bool pods_read_page(struct str json, take_item *take, void *ctx, struct pod_page *page,
		    struct err *e)
{
	struct list l = { page, take, ctx };
	const struct member members[] = { { "metadata", read_page_metadata, page },
					  { "items", read_items, &l } };
	struct arena a = { 0 };
	struct json_reader r;
	bool ok;

	page->version.n = page->next.n = 0;
	page->is_ended = false;
	arena_reserve(&a, RESERVE_BYTES);
	json_reader_init(&r, json, e);
	READ_MEMBERS(&r, &a, members);
	ok = page->is_ended || json_finish(&r);
	json_reader_release(&r);
	arena_release(&a);
	if (ok && !page->is_ended && !page->version.n)
		ok = err_set(e, ERR_FORMAT, "it has no metadata.resourceVersion");
	return ok || err_wrap(e, "this is no list of pods");
}

/* ---- watches */

static void read_error(struct json_reader *r, struct arena *a, struct pod_event *event)
{
	uint16_t code = 0;
	const struct member members[] = { { "message", read_text, &event->message },
					  { "code", read_small, &code } };

	READ_MEMBERS(r, a, members);
	event->code = code;
}

static bool read_kind(struct str type, struct pod_event *event, struct err *e)
{
	static const struct {
		const char *name;
		enum pod_event_kind kind;
	} kinds[] = {
		{ "ADDED", POD_IS },	      { "MODIFIED", POD_IS }, { "DELETED", POD_GONE },
		{ "BOOKMARK", POD_BOOKMARK }, { "ERROR", POD_ERROR },
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (str_eq(type, str_of(kinds[i].name))) {
			event->kind = kinds[i].kind;
			return true;
		}
	return err_set(e, ERR_FORMAT, "an event is of no known type");
}

bool pods_read_event(struct arena *a, struct str line, struct pod_event *event, struct err *e)
{
	/* The object may come before its type. */
	struct str type = STR(""), object = STR("{}");
	const struct member members[] = { { "type", read_text, &type },
					  { "object", read_raw, &object } };
	struct json_reader r;
	bool ok;

	*event = (struct pod_event){ .message = STR("") };
	json_reader_init(&r, line, e);
	READ_MEMBERS(&r, a, members);
	ok = json_finish(&r) && read_kind(type, event, e);
	json_reader_release(&r);
	if (!ok)
		return false;
	json_reader_init(&r, object, e);
	if (event->kind == POD_ERROR)
		read_error(&r, a, event);
	else
		read_pod(&r, a, &event->item);
	ok = !r.failed;
	json_reader_release(&r);
	if (ok && event->kind != POD_ERROR && !event->item.version.n)
		ok = err_set(e, ERR_FORMAT, "an event has no metadata.resourceVersion");
	if (ok && event->kind <= POD_GONE && !event->item.pod.name.n)
		ok = err_set(e, ERR_FORMAT, "an event has a pod without a name");
	return ok;
}
