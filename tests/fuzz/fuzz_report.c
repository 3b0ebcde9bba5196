/* fuzz_report.c - a profile through the whole pipeline: any report, with options that the first
 * bytes choose. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "analyze/analyze.h"

#define UNPACKED_MAX ((size_t)1 << 20)
#define OUT_MAX ((size_t)64 << 20)

static const char *const reports[] = { "top",	    "tree",   "peek",	    "traces",
				       "raw",	    "tags",   "dot",	    "list",
				       "callgrind", "proto",  "topproto",   "comments",
				       "folded",    "disasm", "flamegraph", "speedscope",
				       "weblist",   "html" };
static const char *const regexps[] = { "", "a", "^main", "." };
static const char *const tags[] = { "", "1kb:", "key=x", "a,b" };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void choose(struct analyze_options *o, const uint8_t *d)
{
	*o = analyze_defaults;
	o->focus = regexps[d[1] & 3];
	o->ignore = regexps[d[1] >> 2 & 3];
	o->hide = regexps[d[1] >> 4 & 3];
	o->show = regexps[d[1] >> 6 & 3];
	o->show_from = regexps[d[2] & 3];
	o->prune_from = regexps[d[2] >> 2 & 3];
	o->tagfocus = tags[d[2] >> 4 & 3];
	o->tagignore = tags[d[2] >> 6 & 3];
	o->tagroot = d[3] & 1 ? "key,bytes" : "";
	o->tagleaf = d[3] & 2 ? "key" : "";
	o->mean = d[3] & 4;
	o->call_tree = d[3] & 8;
	o->drop_negative = d[3] & 16;
	o->noinlines = d[3] & 32;
	o->trim = !(d[3] & 64);
	o->relative_percentages = d[3] & 128;
	o->granularity = d[4] % 6 ? GRANULARITY_FUNCTIONS + d[4] % 6 - 1 : 0;
	o->sort = d[4] & 64 ? SORT_CUM : SORT_FLAT;
	o->nodecount = (d[5] & 15) - 1;
	o->divide_by = d[5] & 16 ? 3 : 1;
	o->unit = d[5] & 32 ? "ms" : "minimum";
	o->sample_index = d[5] & 64 ? "0" : "";
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct session s = { .threads = 1 };
	struct analyze_options o;
	struct buf out = { 0 }, warnings = { 0 };
	struct str bytes;
	struct err e;

	if (n < 6)
		return 0;
	choose(&o, data);
	bytes = (struct str){ (const char *)data + 6, n - 6 };
	strings_init(&s.strings);
	if (profile_read(&s.profile, &s.arena, &s.strings, bytes, UNPACKED_MAX, &e)) {
		const char *name = reports[data[0] % (sizeof(reports) / sizeof(*reports))];
		struct analyze_request q = { report_find(name), "a|main", &o };

		profile_drop_frames(&s.arena, &s.profile);
		analyze_report(&s, &q, &out, &warnings, &e);
		if (out.n > OUT_MAX)
			abort();
	}
	buf_release(&out);
	buf_release(&warnings);
	session_release(&s);
	return 0;
}
