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
#define SETTING_NUMBER(field, variable, standard, about) .field = standard,
#include "agent/settings.def"
#undef SETTING_TEXT
#undef SETTING_NUMBER
};

static const struct setting {
	const char *variable;
	const char **text; /* or NULL, and */
	int64_t *number;
} known[] = {
#define SETTING_TEXT(field, variable, about) { variable, &settings.field, NULL },
#define SETTING_NUMBER(field, variable, standard, about) { variable, NULL, &settings.field },
#include "agent/settings.def"
#undef SETTING_TEXT
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
			  is_signal ? "a signal, as SIGUSR2 or 12" : "a whole number, 0 or more",
			  (long long)*s->number);
	else
		*s->number = value;
}

static void set(const struct setting *s, const char *text)
{
	if (!*text)
		return; /* the same as not set */
	if (s->number)
		set_number(s, text);
	else
		*s->text = region_text(&texts, text, strlen(text));
}

void settings_read(void)
{
	for (char **e = environ; e && *e; e++) {
		const char *equals = strchr(*e, '=');
		size_t i = 0, n = equals ? (size_t)(equals - *e) : 0;

		if (strncmp(*e, "KILN_", 5) != 0 || !n)
			continue;
		while (i < sizeof(known) / sizeof(*known) &&
		       (strncmp(known[i].variable, *e, n) != 0 || known[i].variable[n]))
			i++;
		if (i < sizeof(known) / sizeof(*known))
			set(&known[i], equals + 1);
		else if (strncmp(*e, "KILN_LIBRARY=", 13) != 0)
			agent_say("%.*s is set, but there is no such setting; see kiln-agent(7)",
				  n < 100 ? (int)n : 100, *e);
	}
}
