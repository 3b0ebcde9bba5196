/* settings.c - settings.def read from the environment. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/life.h"
#include "agent/memory.h"

struct settings settings = {
#define SETTING_TEXT(field, variable, about)
#define SETTING_FILE(field, variable, about)
#define SETTING_NUMBER(field, variable, standard, about) .field = standard,
#include "agent/settings.def"
#undef SETTING_TEXT
#undef SETTING_FILE
#undef SETTING_NUMBER
};

static const struct setting {
	const char *variable;
	const char **text; /* or NULL, and */
	int64_t *number;
	bool is_file;
} known[] = {
#define SETTING_TEXT(field, variable, about) { variable, &settings.field, NULL, false },
#define SETTING_FILE(field, variable, about) { variable, &settings.field, NULL, true },
#define SETTING_NUMBER(field, variable, standard, about) { variable, NULL, &settings.field, false },
#include "agent/settings.def"
#undef SETTING_TEXT
#undef SETTING_FILE
#undef SETTING_NUMBER
};

static struct region texts;

/* "SIGUSR2", "USR2", "RTMIN+3"; 0: no signal. */
static int64_t signal_of(const char *name)
{
	if (strncmp(name, "SIG", 3) == 0)
		name += 3;
	if (strncmp(name, "RTMIN+", 6) == 0 && name[6] >= '0' && name[6] <= '9')
		return SIGRTMIN + atoi(name + 6);
	for (int i = 1; i < SIGRTMIN; i++) {
		const char *known_name = sigabbrev_np(i);

		if (known_name && strcmp(known_name, name) == 0)
			return i;
	}
	return 0;
}

static void set_number(const struct setting *s, const char *text)
{
	enum { DIGITS_MAX = 15 };
	size_t digits = strspn(text, "0123456789");
	bool is_number = digits && digits <= DIGITS_MAX && !text[digits];
	bool is_signal = strstr(s->variable, "SIGNAL");
	int64_t value = is_number ? strtoll(text, NULL, 10) : is_signal ? signal_of(text) : 0;

	if (is_signal ? value < 1 || value > SIGRTMAX : !is_number)
		agent_say("%s=%.100s is not %s; set to %lld instead", s->variable, text,
			  is_signal ? "a signal, as SIGUSR2 or 12"
				    : "a whole number of at most 15 digits",
			  (long long)*s->number);
	else
		*s->number = value;
}

/* A program that is started by this one must not overwrite its file: what it inherits is
 * "file%=PID", which is the file for whom execs in the same process, and file.PID for others. */
static const char OWNER[] = "%=";

static const char *without_owner(const char *text)
{
	const char *mark = strstr(text, OWNER);
	size_t n = mark ? (size_t)(mark - text) : strlen(text);
	char *copy = region_alloc(&texts, n + sizeof(".%p"));

	if (!copy)
		return NULL;
	memcpy(copy, text, n);
	if (mark && atoi(mark + 2) != getpid())
		strcpy(copy + n, ".%p");
	return copy;
}

static void set_owner(char **entry)
{
	size_t n = strlen(*entry) + sizeof(OWNER) + sizeof("4194304");
	char *changed;

	if (strstr(*entry, "%p") || strstr(*entry, OWNER))
		return;
	changed = region_alloc(&texts, n);
	if (!changed)
		return;
	snprintf(changed, n, "%s%s%d", *entry, OWNER, (int)getpid());
	*entry = changed;
}

static void set(const struct setting *s, const char *text)
{
	if (!*text)
		return; /* the same as not set */
	if (s->number) {
		set_number(s, text);
	} else if (s->is_file) {
		*s->text = without_owner(text);
	} else {
		*s->text = region_text(&texts, text, strlen(text));
	}
}

static bool is_ours(const char *entry)
{
	return strncmp(entry, "KILN_", 5) == 0;
}

/* NULL: the entry of the environment is none of ours. */
static const struct setting *find(const char *entry)
{
	size_t n = is_ours(entry) ? strcspn(entry, "=") : 0;

	for (size_t i = 0; n && i < sizeof(known) / sizeof(*known); i++)
		if (strncmp(known[i].variable, entry, n) == 0 && !known[i].variable[n])
			return &known[i];
	return NULL;
}

static void read_entry(const char *entry)
{
	const struct setting *s = find(entry);
	size_t n = strcspn(entry, "=");

	if (s && entry[n])
		set(s, entry + n + 1);
	else if (strncmp(entry, "KILN_LIBRARY=", 13) != 0 &&
		 strncmp(entry, "KILN_SERVE_", 11) != 0) /* of the server, which is under us */
		agent_say("%.*s is set, but there is no such setting; see kiln-agent(7)",
			  n < 100 ? (int)n : 100, entry);
}

void settings_read(void)
{
	for (char **e = environ; e && *e; e++)
		if (is_ours(*e))
			read_entry(*e);
}

void settings_claim(void)
{
	for (char **e = environ; e && *e; e++) {
		const struct setting *s = find(*e);

		if (s && s->is_file)
			set_owner(e);
	}
}
