/* Labels of threads: set, replaced, taken away, inherited, put back, and many of them. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <unistd.h>

#include "kiln.h"

static int ntests;

static void check(int is_good, const char *what)
{
	printf("%s %d - %s\n", is_good ? "ok" : "not ok", ++ntests, what);
}

static void *inherits(void *expected)
{
	return kiln_labels_save() == *(uint32_t *)expected ? expected : NULL;
}

static void check_inherited(void)
{
	uint32_t own = kiln_labels_save();
	void *result = NULL;
	pthread_t t;

	pthread_create(&t, NULL, inherits, &own);
	pthread_join(t, &result);
	check(result == &own, "a thread starts with the labels of the one that created it");
}

/* The same texts from many threads at once must be the same sets. */
static void *sets_many(void *result)
{
	uint32_t *sets = result;
	char value[20];

	for (int i = 0; i < 1000; i++) {
		snprintf(value, sizeof(value), "value %d", i);
		kiln_label_set("many", value);
		sets[i] = kiln_labels_save();
	}
	return NULL;
}

static void check_many_threads(void)
{
	static uint32_t sets[8][1000];
	pthread_t threads[8];
	int is_same = 1;

	for (int i = 0; i < 8; i++)
		pthread_create(&threads[i], NULL, sets_many, sets[i]);
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	for (int i = 1; i < 8; i++)
		is_same &= memcmp(sets[i], sets[0], sizeof(sets[0])) == 0;
	check(is_same, "equal sets have the same number in all threads");
}

static void check_scope(void)
{
	uint32_t before = kiln_labels_save();

	{
		KILN_LABEL("scoped", "yes");
		check(kiln_labels_save() != before, "a label of a scope is set");
	}
	check(kiln_labels_save() == before, "and gone after it");
}

/* Without end: the table is full at some time, which is an error and nothing more. */
static void check_too_many(void)
{
	char value[40];
	int result = 0;

	for (int i = 0; i < 200000 && result == 0; i++) {
		snprintf(value, sizeof(value), "a request's number %d", i);
		result = kiln_label_set("request", value);
	}
	check(result == -ENOSPC, "there is a limit");
}

static void check_long(void)
{
	char text[4000];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	check(kiln_label_set("long", text) == 0, "a long value is cut");
	check(kiln_label_set("long", NULL) == 0, "a label is taken away");
}

int main(int argc, char **argv)
{
	uint32_t ab, ba;
	int fd = argc > 1 ? open(argv[1], O_CREAT | O_TRUNC | O_WRONLY, 0644) : -1;

	check(kiln_labels_save() == 0, "there are none at first");
	kiln_label_set("b", "2");
	kiln_label_set("a", "1");
	ab = kiln_labels_save();
	kiln_labels_restore(0);
	kiln_label_set("a", "0");
	kiln_label_set("a", "1");
	kiln_label_set("b", "2");
	ba = kiln_labels_save();
	check(ab && ab == ba, "a set does not depend on the order");
	check(kiln_label_set("", "x") == -EINVAL && kiln_label_set(NULL, "x") == -EINVAL,
	      "a label has a name");
	check_inherited();
	check_scope();
	check_long();
	check(kiln_labels_save() == ab, "and leaves the others");
	check(kiln_write_profile("threads", fd) == 0, "a profile is written");
	check_many_threads();
	check_too_many();
	printf("1..%d\n", ntests);
	return 0;
}
