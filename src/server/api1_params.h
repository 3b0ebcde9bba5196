/* api1_params.h - parameters that several requests have, for the tables of their endpoints. */
#ifndef SERVER_API1_PARAMS_H
#define SERVER_API1_PARAMS_H

#include "server/api1.h"

/* request.selector */
#define PARAM_SELECT                                                                          \
	{ .name = "query",                                                                    \
	  .kind = PARAM_SELECTOR,                                                             \
	  .help = "Which profiles: conditions over service, type and labels, such as "        \
		  "{service=\"a\", version=~\"1.*\"}. If it is not given, all." },            \
		{ .name = "service",                                                          \
		  .kind = PARAM_TEXT,                                                         \
		  .flags = IS_LABEL,                                                          \
		  .help = "Only of this service; the same as a condition service=\"...\"." }, \
	{                                                                                     \
		.name = "type", .kind = PARAM_TEXT, .flags = IS_LABEL,                        \
		.help = "Only of this type, such as cpu or heap; the same as a condition "    \
			"type=\"...\"."                                                       \
	}
#define PARAM_WINDOW(start)                                                                  \
	{ .name = "from",                                                                    \
	  .kind = PARAM_TIME,                                                                \
	  .initial = (start),                                                                \
	  .help = "Time of the first profiles: 2026-11-16T14:00:00Z, seconds since 1970, "   \
		  "now or now-2h." },                                                        \
	{                                                                                    \
		.name = "to", .kind = PARAM_TIME, .initial = (start) != NULL ? "now" : NULL, \
		.help = "Time of the last profiles, written as that of the first."           \
	}
#define PARAM_LIMIT(usual, most, what)                                                          \
	{                                                                                       \
		.name = "limit", .kind = PARAM_INT, .initial = #usual, .min = 1, .max = (most), \
		.help = "At most so many " what "."                                             \
	}
#define PARAM_SAMPLE_TYPE                                                                     \
	{                                                                                     \
		.name = "sample_type", .kind = PARAM_TEXT,                                    \
		.help = "Which values, if the profiles have several, such as alloc_space or " \
			"inuse_space. If it is not given, the default of the profiles."       \
	}
#define PARAM_AGGREGATE                                                                       \
	{                                                                                     \
		.name = "aggregate", .kind = PARAM_CHOICE, .initial = "auto",                 \
		.choices = "auto sum mean last max",                                          \
		.help = "How values of several profiles become one. auto does what they "     \
			"mean: CPU time, allocations and waits are summed, memory in use "    \
			"and numbers of threads are averaged over all profiles, of all "      \
			"instances. last and max take one profile of each series: the last, " \
			"or that with the highest total."                                     \
	}

/* ---- of requests that answer with format_reply */

#define FORMAT_NAMES "pprof folded speedscope flame top text tree dot flamegraph raw"
#define FORMAT_TYPES "application/octet-stream text/plain image/svg+xml"
#define FORMAT_PARAMS(usual, names, more)                                                      \
	{ .name = "format",                                                                    \
	  .kind = PARAM_CHOICE,                                                                \
	  .initial = (usual),                                                                  \
	  .choices = names,                                                                    \
	  .help = "What the answer is: " more                                                  \
		  "a profile that every pprof reads (pprof, gzipped), folded stacks, "         \
		  "speedscope's JSON, kiln's own JSON for flame graphs (flame) or of "         \
		  "functions (top), pprof's text or tree, a graph for Graphviz (dot), a "      \
		  "flame graph in SVG (flamegraph), or the profile's tables as text (raw)." }, \
		{ .name = "limit",                                                             \
		  .kind = PARAM_INT,                                                           \
		  .min = 1,                                                                    \
		  .max = 100000,                                                               \
		  .help = "At most so many functions (top, text, tree, dot, json) or boxes "   \
			  "(flame). "                                                          \
			  "If it is not given, 100 and 10000." },                              \
		FILTER_PARAMS
#define FILTER_PARAMS                                                                            \
	PARAM_SAMPLE_TYPE,                                                                       \
		{ .name = "sort",                                                                \
		  .kind = PARAM_CHOICE,                                                          \
		  .initial = "flat",                                                             \
		  .choices = "flat cum",                                                         \
		  .flags = IS_SETTING,                                                           \
		  .help = "Functions go by what they take themselves, or by what all that they " \
			  "call takes too." },                                                   \
		{ .name = "granularity",                                                         \
		  .kind = PARAM_CHOICE,                                                          \
		  .initial = "functions",                                                        \
		  .choices = "functions filefunctions files lines",                              \
		  .flags = IS_SETTING,                                                           \
		  .help = "What tells frames apart." },                                          \
		SETTING("focus", "Only samples that go through a function that this matches."),  \
		SETTING("ignore", "No samples that go through a function that this matches."),   \
		SETTING("hide", "Frames that this matches are left out."),                       \
		SETTING("show", "Frames that this does not match are left out."),                \
		SETTING("show_from", "Frames above the first that this matches are left out."),  \
		SETTING("tagfocus", "Only samples with labels that this matches: a regular "     \
				    "expression, name=expression, or a range of numbers."),      \
		SETTING("tagignore", "No samples with labels that this matches.")
#define SETTING(field, text)                                                         \
	{                                                                            \
		.name = field, .kind = PARAM_TEXT, .flags = IS_SETTING, .help = text \
	}

#endif
