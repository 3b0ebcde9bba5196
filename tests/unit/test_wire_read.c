#include "test.h"

#include <stdio.h>

#include "profile/wire.h"
#include "profile/wire_read.h"

struct leaf {
	struct str name;
};
struct tree {
	struct str profile_typeID;
	int64_t start;
	uint64_t size;
	double step;
	bool is_on;
	int64_t how;
	struct wire_list group_by; /* texts */
	struct leaf *leaf;
	struct wire_list leaves;
};

static const struct wire_field leaf_fields[] = {
	WIRE_MEMBER(struct leaf, 1, name, WIRE_KIND_STRING),
	{ 0 },
};
static const struct wire_message leaf = WIRE_STRUCT("Leaf", struct leaf, leaf_fields);
static const char *const hows[] = { "HOW_SUM", "HOW_MEAN", NULL };
#define TREE(...) WIRE_MEMBER(struct tree, __VA_ARGS__)
static const struct wire_field tree_fields[] = {
	TREE(1, profile_typeID, WIRE_KIND_STRING),
	TREE(2, start, WIRE_KIND_INT),
	TREE(3, size, WIRE_KIND_UINT),
	TREE(4, step, WIRE_KIND_DOUBLE),
	TREE(5, is_on, WIRE_KIND_BOOL),
	TREE(6, how, WIRE_KIND_CHOICE, .choices = hows),
	TREE(7, group_by, WIRE_KIND_STRING, .is_repeated = true),
	TREE(8, leaf, WIRE_KIND_MESSAGE, .message = &leaf),
	TREE(9, leaves, WIRE_KIND_MESSAGE, .is_repeated = true, .message = &leaf),
	{ 0 },
};
static const struct wire_message tree = WIRE_STRUCT("Tree", struct tree, tree_fields);

/* What the JSON reads as, printed; or the error. */
static const char *read_json(const char *json)
{
	static char out[1200];
	struct arena a = { 0 };
	struct buf proto = { 0 };
	struct tree t = { 0 };
	struct err e;
	size_t n = 0;

	if (!wire_from_json(&proto, &tree, str_of(json), &e) ||
	    !wire_read(&a, &tree, buf_view(&proto), &t, &e)) {
		snprintf(out, sizeof(out), "%s", e.text);
	} else {
		const struct str *groups = t.group_by.at;
		const struct leaf *leaves = t.leaves.at;

		n += (size_t)snprintf(out, sizeof(out), "%.*s %lld %llu %g %d %lld",
				      STR_ARG(t.profile_typeID), (long long)t.start,
				      (unsigned long long)t.size, t.step, t.is_on,
				      (long long)t.how);
		for (size_t i = 0; i < t.group_by.n; i++)
			n += (size_t)snprintf(out + n, sizeof(out) - n, " [%.*s]",
					      STR_ARG(groups[i]));
		if (t.leaf)
			n += (size_t)snprintf(out + n, sizeof(out) - n, " {%.*s}",
					      STR_ARG(t.leaf->name));
		for (size_t i = 0; i < t.leaves.n; i++)
			n += (size_t)snprintf(out + n, sizeof(out) - n, " <%.*s>",
					      STR_ARG(leaves[i].name));
	}
	buf_release(&proto);
	arena_release(&a);
	return out;
}

#define READS(json, want) assert_string_equal(read_json(json), want)
#define FAILS(json, part)                                                            \
	do {                                                                         \
		const char *got = read_json(json);                                   \
		if (!strstr(got, part))                                              \
			fail_msg("%s: \"%s\" does not say \"%s\"", json, got, part); \
	} while (0)

TEST(json_of_all_kinds)
{
	READS("{\"profileTypeID\":\"cpu\",\"start\":\"-5\",\"size\":7,\"step\":1.5,\"isOn\":true,"
	      "\"how\":\"HOW_MEAN\",\"groupBy\":[\"a\",\"b\"],\"leaf\":{\"name\":\"x\"},"
	      "\"leaves\":[{\"name\":\"y\"},{}]}",
	      "cpu -5 7 1.5 1 1 [a] [b] {x} <y> <>");
	READS("{}", " 0 0 0 0 0");
	READS("{\"start\":null,\"groupBy\":[],\"leaf\":{}}", " 0 0 0 0 0 {}");
}

TEST(names_of_either_kind)
{
	READS("{\"profile_typeID\":\"cpu\",\"group_by\":[\"a\"],\"is_on\":false}",
	      "cpu 0 0 0 0 0 [a]");
	READS("{\"profiletypeid\":\"cpu\",\"nobody\":{\"knows\":[1,{}]}}", "cpu 0 0 0 0 0");
}

TEST(numbers_of_either_kind)
{
	READS("{\"start\":1.7e12,\"step\":\"2.5\",\"how\":1}", " 1700000000000 0 2.5 0 1");
	READS("{\"start\":\"9223372036854775807\",\"step\":\"NaN\"}",
	      " 9223372036854775807 0 nan 0 0");
	READS("{\"how\":77}", " 0 0 0 0 77");
}

TEST(what_is_wrong_is_named)
{
	FAILS("", "Tree as JSON: an object is missing");
	FAILS("{\"start\":1.5}", "Tree as JSON: start: no whole number");
	FAILS("{\"start\":[1]}", "field start (2): it has the wire type 2, not 0");
	FAILS("{\"step\":\"x\"}", "step: no number");
	FAILS("{\"isOn\":1}", "is_on: ");
	FAILS("{\"how\":\"HOW_OLD\"}", "how: none of HOW_SUM, HOW_MEAN");
	FAILS("{\"how\":{}}", "how: ");
	FAILS("{\"groupBy\":[1]}", "group_by: ");
	FAILS("{\"leaf\":5}", "leaf: an object is missing");
	FAILS("{\"leaves\":[{\"name\":5}]}", "leaves: name: ");
	FAILS("{\"profileTypeID\":\"a\\u0000b\"}", "there is a NUL in it");
}

static const char *read_bytes(struct str bytes)
{
	static char text[1000];
	struct arena a = { 0 };
	struct tree t = { 0 };
	struct err e = { 0 };

	if (wire_read(&a, &tree, bytes, &t, &e))
		snprintf(text, sizeof(text), "%lld", (long long)t.start);
	else
		snprintf(text, sizeof(text), "%s", e.text);
	arena_release(&a);
	return text;
}

TEST(bytes_that_are_no_message)
{
	assert_string_equal(read_bytes(STR("")), "0");
	assert_string_equal(read_bytes(STR("\x10\x05\x78\x01\x10\x06")), "6"); /* 15 is unknown */
	assert_string_equal(read_bytes(STR("\x10")), "it is no message of protobuf");
	assert_string_equal(read_bytes(STR("\x0a\x7f")), "it is no message of protobuf");
	assert_string_equal(read_bytes(STR("\x42\x01\x0a")), "leaf: it is no message of protobuf");
	assert_string_equal(read_bytes(STR("\x08\x05")),
			    "field profile_typeID (1): it has the wire type 0, not 2");
	assert_string_equal(read_bytes(STR("\x12\x01x")),
			    "field start (2): it has the wire type 2, not 0");
}
