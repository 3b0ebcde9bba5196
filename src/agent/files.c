/* files.c - profiles in files: at exit, each so many seconds, and between two signals. */
#include "agent/files.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/life.h"
#include "agent/local.h"
#include "agent/outfile.h"
#include "agent/profiles.h"
#include "agent/taken.h"

enum { SECOND = 1000000000 };

enum { FILE_CPU, FILE_WALL, FILE_HEAP, FILE_ALLOCS, FILE_MUTEX, FILE_BLOCK, FILE_TRACE, NFILES };

static struct outfile outfiles[NFILES]; /* large, and most are never touched */

static struct file {
	const char *profile, *variable;
	const char *const *pattern;
	struct outfile *to;
	bool is_open, is_running;
	unsigned nwritten; /* by signals */
} files[] = {
#define FILE(kind, profile, variable, setting) \
	[kind] = { profile, variable, &settings.setting, &outfiles[kind], false, false, 0 }
	FILE(FILE_CPU, "profile", "KILN_CPU_PROFILE", cpu_profile),
	FILE(FILE_WALL, "wall", "KILN_WALL_PROFILE", wall_profile),
	FILE(FILE_HEAP, "heap", "KILN_HEAP_PROFILE", heap_profile),
	FILE(FILE_ALLOCS, "allocs", "KILN_ALLOCS_PROFILE", allocs_profile),
	FILE(FILE_MUTEX, "mutex", "KILN_MUTEX_PROFILE", mutex_profile),
	FILE(FILE_BLOCK, "block", "KILN_BLOCK_PROFILE", block_profile),
	FILE(FILE_TRACE, "trace", "KILN_TRACE", trace),
#undef FILE
};

static int64_t next_write = INT64_MAX, last_write = INT64_MAX;
static atomic_uint toggles; /* signals that came */
static unsigned toggles_seen;

static void say_failure(const struct file *f, const char *what)
{
	agent_say("cannot %s %s/%s (%s): %s", what, f->to->path, f->to->name, f->variable,
		  strerrordesc_np(errno));
}

/* Some are recorded only when somebody wants them. */
static void start(struct file *f)
{
	long kind = f - files;
	bool ok = kind == FILE_CPU     ? cpu_start((int)settings.cpu_rate)
		  : kind == FILE_WALL  ? wall_start((int)settings.wall_rate)
		  : kind == FILE_TRACE ? trace_start()
				       : true;

	if (kind == FILE_CPU || kind == FILE_WALL || kind == FILE_TRACE)
		agent_start_thread();
	f->is_running = ok;
	if (!ok)
		say_failure(f, "record anything for");
}

static bool collect(const struct file *f, struct record *r, bool is_last)
{
	long kind = f - files;

	if (kind == FILE_CPU)
		return is_last ? cpu_stop(r) : profile_collect(&profile_cpu, r);
	if (kind == FILE_WALL && is_last)
		return wall_stop(r);
	return profile_collect(profile_find(f->profile), r);
}

static bool encode(const struct file *f, struct out *o, bool is_last)
{
	struct record r = { 0 };
	bool ok = true;

	if (f - files == FILE_TRACE) {
		trace_stop(o);
		return true;
	}
	ok = collect(f, &r, is_last);
	if (ok)
		record_write(o, f - files == FILE_CPU ? &profile_cpu : profile_find(f->profile),
			     &r);
	record_release(&r);
	return ok;
}

/* `is_last`: nothing more is recorded for it. */
static bool write_now(struct file *f, const char *suffix, bool is_last)
{
	struct out o = { 0 };
	bool before = pages_use_reserve(true);
	bool ok = encode(f, &o, is_last) && outfile_write(f->to, suffix, &o);

	if (!ok)
		say_failure(f, "write");
	else if (settings.verbose)
		agent_say("wrote %s/%s%s", f->to->path, f->to->name, suffix);
	out_release(&o);
	pages_use_reserve(before);
	if (is_last)
		f->is_running = false;
	return ok;
}

static bool open_file(struct file *f, const char *pattern)
{
	char name[64];

	if (!pattern) {
		snprintf(name, sizeof(name), "kiln-%s.%%p.pb.gz", f->profile);
		pattern = name;
	}
	f->is_open = outfile_open(f->to, pattern, agent_child == CHILD_FOLLOWED);
	if (!f->is_open)
		say_failure(f, "write to");
	return f->is_open;
}

bool files_write(const char *profile, const char *suffix)
{
	for (struct file *f = files; f < files + NFILES; f++)
		if (strcmp(f->profile, profile) == 0)
			return (f->is_open || open_file(f, *f->pattern)) &&
			       write_now(f, suffix, false);
	return false;
}

/* ---- between two signals */

static void on_toggle(int signal)
{
	(void)signal;
	atomic_fetch_add(&toggles, 1);
	local.nsignals++; /* what it interrupted goes on */
	agent_wake();
}

static void toggle(void)
{
	struct file *f = &files[FILE_CPU];
	char suffix[16];

	if (!f->is_running) {
		start(f);
		return;
	}
	snprintf(suffix, sizeof(suffix), ".%u", ++f->nwritten);
	write_now(f, suffix, true);
}

static void init_toggle(void)
{
	int signal = (int)settings.toggle_signal;

	if (!files[FILE_CPU].is_open && !open_file(&files[FILE_CPU], settings.cpu_profile))
		return;
	if (!agent_start_thread() || !signal_take(signal, on_toggle))
		agent_say("KILN_TOGGLE_SIGNAL=%d: the program uses that signal itself; "
			  "choose another, as SIGUSR2",
			  signal);
}

/* ---- the part */

/* 0 is never, and so is longer than anybody waits. */
static int64_t in_seconds(int64_t n)
{
	return n < 1 || n > 1000000000 ? INT64_MAX : now_ns() + n * SECOND;
}

static void init(void)
{
	for (struct file *f = files; f < files + NFILES; f++) {
		if (!*f->pattern || !open_file(f, *f->pattern))
			continue;
		if (f != &files[FILE_CPU] || !settings.toggle_signal)
			start(f);
		exit_watch();
		next_write = in_seconds(settings.every);
		last_write = in_seconds(settings.seconds);
	}
	if ((next_write < INT64_MAX || last_write < INT64_MAX) && agent_start_thread())
		agent_wake(); /* it may have looked already */
	if (settings.toggle_signal)
		init_toggle();
}

static void write_last(void)
{
	char suffix[16] = "";

	for (struct file *f = files; f < files + NFILES; f++) {
		if (f == &files[FILE_CPU] && settings.toggle_signal)
			snprintf(suffix, sizeof(suffix), ".%u", f->nwritten + 1);
		if (f->is_running)
			write_now(f, f == &files[FILE_CPU] ? suffix : "", true);
	}
	next_write = last_write = INT64_MAX;
}

static int64_t work(int64_t now)
{
	for (; toggles_seen != atomic_load(&toggles); toggles_seen++)
		toggle();
	if (now >= last_write)
		write_last();
	if (now >= next_write) {
		for (struct file *f = files; f < files + NFILES; f++)
			if (f->is_running && f != &files[FILE_TRACE])
				write_now(f, "", false);
		next_write = in_seconds(settings.every);
	}
	return next_write < last_write ? next_write : last_write;
}

static void in_child(void)
{
	for (struct file *f = files; f < files + NFILES; f++) {
		if (f->is_open)
			outfile_close(f->to);
		f->is_open = f->is_running = false;
	}
	next_write = last_write = INT64_MAX;
	toggles_seen = atomic_load(&toggles);
}

const struct agent_part part_files = {
	.name = "files", .init = init, .work = work, .at_exit = write_last, .in_child = in_child
};
