/* record.c - kiln record: runs a program with the agent in it, and shows what it did. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "analyze/analyze.h"
#include "base/path.h"
#include "cmd/args.h"
#include "cmd/cmd.h"

enum { EXIT_NOT_FOUND = 127, TOP_LINES = 5, MAX_INTERPRETERS = 4 };

struct record_options {
	const char *cpu, *heap, *allocs, *mutex, *block, *wall, *trace, *http;
	int64_t seconds, cpu_rate, heap_rate;
	bool help;
};

#define ROW(type, name, field, spelling, help)                                                     \
	{                                                                                          \
		name, OPTION_##type, offsetof(struct record_options, field), 0, "", spelling, help \
	}

static const struct option_def rows[] = {
	ROW(STRING, "cpu", cpu, "FILE",
	    "Where it spends CPU time; without any FILE: kiln.PROGRAM.PID.cpu.pb.gz"),
	ROW(STRING, "heap", heap, "FILE", "The memory that it has at the end"),
	ROW(STRING, "allocs", allocs, "FILE", "The memory that it has allocated"),
	ROW(STRING, "mutex", mutex, "FILE", "Who holds locks that others wait for"),
	ROW(STRING, "block", block, "FILE", "Where it waits for locks and other threads"),
	ROW(STRING, "wall", wall, "FILE", "Where time goes, whether it works or waits"),
	ROW(STRING, "trace", trace, "FILE", "What its threads do when, as JSON for Perfetto"),
	ROW(INT, "seconds", seconds, "N", "Record only the first N seconds; the program goes on"),
	ROW(INT, "cpu-rate", cpu_rate, "N", "Samples for each second of CPU time"),
	ROW(INT, "heap-rate", heap_rate, "BYTES",
	    "Bytes between allocations that are recorded, in the mean; 1 for all"),
	ROW(STRING, "http", http, "ADDR", "Serve /debug/pprof/ there meanwhile, e.g. :8070"),
	ROW(BOOL, "help", help, "", "Print this text"),
};

static const struct record_options defaults = { .cpu = "",
						.heap = "",
						.allocs = "",
						.mutex = "",
						.block = "",
						.wall = "",
						.trace = "",
						.http = "",
						.seconds = -1,
						.cpu_rate = 100,
						.heap_rate = 524288 };

static const struct option_table table = { .at = rows,
					   .n = sizeof(rows) / sizeof(*rows),
					   .defaults = &defaults };

static const char usage_head[] =
	"usage: kiln record [options] [--] program [arguments...]\n"
	"\n"
	"Runs a program and records profiles of it. When it has ended, tells where they are\n"
	"and what comes first in them, and ends with the same status. %p in a file's name is\n"
	"the process id. Programs that it starts are recorded too: FILE.PID is theirs.\n"
	"\n";

static const char usage_example[] =
	"\n"
	"Where does it spend its time, and who allocates?\n"
	"  kiln record --cpu cpu.pb.gz --allocs allocs.pb.gz -- ./program\n"
	"  kiln -http=: cpu.pb.gz\n";

/* The files that were asked for. */
struct wanted {
	const char *name, *variable, *file;
};
enum { NWANTED = 7 };

static void list_wanted(const struct record_options *o, struct wanted *w)
{
	const struct wanted all[NWANTED] = { { "cpu", "KILN_CPU_PROFILE", o->cpu },
					     { "wall", "KILN_WALL_PROFILE", o->wall },
					     { "heap", "KILN_HEAP_PROFILE", o->heap },
					     { "allocs", "KILN_ALLOCS_PROFILE", o->allocs },
					     { "mutex", "KILN_MUTEX_PROFILE", o->mutex },
					     { "block", "KILN_BLOCK_PROFILE", o->block },
					     { "trace", "KILN_TRACE", o->trace } };

	memcpy(w, all, sizeof(all));
}

/* ---- can the agent be loaded into it? */

static bool find_program(struct buf *path, const char *name, struct err *e)
{
	const char *list = getenv("PATH");
	struct str dirs = str_of(list ? list : "/usr/bin:/bin");

	if (strchr(name, '/')) {
		buf_add(path, name, strlen(name) + 1);
		return access(name, F_OK) == 0 || err_system(e, "open", name);
	}
	while (dirs.p) {
		struct str dir = str_cut(&dirs, ':');

		path->n = 0;
		buf_printf(path, "%.*s/%s", STR_ARG(dir.n ? dir : STR(".")), name);
		buf_char(path, '\0');
		if (access(path->p, X_OK) == 0)
			return true;
	}
	return err_set(e, ERR_NOTFOUND, "%s: there is no such program in $PATH", name);
}

static bool is_privileged(const char *path)
{
	struct stat s;

	return stat(path, &s) == 0 &&
	       ((s.st_mode & S_ISUID && s.st_uid != getuid()) ||
		(s.st_mode & S_ISGID && s.st_gid != getgid()) ||
		(getuid() != 0 && getxattr(path, "security.capability", NULL, 0) > 0));
}

struct program {
	char interpreter[PATH_MAX]; /* the loader that it names; "" if it names none */
	bool is_go;
};

static bool read_text(FILE *f, const Elf64_Phdr *p, char *out, size_t size)
{
	if (p->p_filesz >= size || fseek(f, (long)p->p_offset, SEEK_SET) != 0 ||
	    fread(out, 1, p->p_filesz, f) != p->p_filesz)
		return false;
	out[p->p_filesz] = '\0';
	return true;
}

/* Go's linker puts a note with its build id into the text, also when it leaves the rest to ld. */
static bool has_go_note(FILE *f, const Elf64_Phdr *p)
{
	static const char owner[] = "Go\0"; /* and the 0 of all strings */
	char text[4096];
	Elf64_Nhdr h;

	if (!read_text(f, p, text, sizeof(text)))
		return false;
	for (size_t at = 0; at + sizeof(h) + sizeof(owner) <= p->p_filesz;) {
		memcpy(&h, text + at, sizeof(h));
		if (h.n_namesz == sizeof(owner) &&
		    memcmp(text + at + sizeof(h), owner, sizeof(owner)) == 0)
			return true;
		at += sizeof(h) + (((size_t)h.n_namesz + 3) & ~(size_t)3) +
		      (((size_t)h.n_descsz + 3) & ~(size_t)3);
	}
	return false;
}

static bool read_program(FILE *f, struct program *out)
{
	Elf64_Ehdr h;
	Elf64_Phdr p;

	*out = (struct program){ 0 };
	rewind(f);
	if (fread(&h, sizeof(h), 1, f) != 1 || h.e_phentsize != sizeof(p))
		return false;
	for (unsigned i = 0; i < h.e_phnum; i++) {
		if (fseek(f, (long)(h.e_phoff + i * sizeof(p)), SEEK_SET) != 0 ||
		    fread(&p, sizeof(p), 1, f) != 1)
			return false;
		if (p.p_type == PT_INTERP &&
		    !read_text(f, &p, out->interpreter, sizeof(out->interpreter)))
			return false;
		if (p.p_type == PT_NOTE)
			out->is_go |= has_go_note(f, &p);
	}
	return true;
}

static const char go_has_its_own[] =
	"Go has profiles of its own: runtime/pprof writes them, net/http/pprof serves them for "
	"kiln http://HOST:PORT";

static bool check_elf(FILE *f, const char *path, const unsigned char *head, struct program *out,
		      struct err *e)
{
	if (head[EI_CLASS] != ELFCLASS64 || head[18] != EM_X86_64)
		return err_set(e, ERR_USAGE,
			       "%s: not a program for 64-bit x86, which is what libkiln.so is for",
			       path);
	if (!read_program(f, out))
		return err_set(e, ERR_FORMAT, "%s: the file is damaged", path);
	if (!*out->interpreter && out->is_go)
		return err_set(e, ERR_USAGE,
			       "%s: a static Go program, nothing can be loaded into it. %s", path,
			       go_has_its_own);
	if (!*out->interpreter)
		return err_set(e, ERR_USAGE,
			       "%s: a static program, nothing can be loaded into it; "
			       "link it dynamically, or with libkiln-static.a, or use perf record; "
			       "see kiln-agent(7)",
			       path);
	if (strstr(out->interpreter, "musl"))
		return err_set(e, ERR_USAGE,
			       "%s: made for musl, but libkiln.so is for glibc; build it for glibc",
			       path);
	if (is_privileged(path))
		return err_set(e, ERR_USAGE,
			       "%s: runs with more rights than yours (setuid, setgid or "
			       "capabilities), nothing may be loaded into it; run as its owner",
			       path);
	return true;
}

/* Of a script the interpreter is what runs. */
static bool check_program(const char *path, int depth, struct program *out, struct err *e)
{
	unsigned char head[256] = { 0 };
	FILE *f = fopen(path, "re");
	struct stat s;
	size_t n;
	bool ok = true;

	if (!f || fstat(fileno(f), &s) != 0 || S_ISDIR(s.st_mode)) {
		if (f)
			fclose(f);
		/* Programs may be run that cannot be read. */
		return errno == EACCES && access(path, X_OK) == 0 ? true
								  : err_system(e, "open", path);
	}
	n = fread(head, 1, sizeof(head) - 1, f);
	if (n > 20 && memcmp(head, ELFMAG, SELFMAG) == 0) {
		ok = check_elf(f, path, head, out, e);
	} else if (n > 2 && memcmp(head, "#!", 2) == 0 && depth < MAX_INTERPRETERS) {
		char *interpreter = (char *)head + 2 + strspn((char *)head + 2, " \t");

		interpreter[strcspn(interpreter, " \t\n")] = '\0';
		ok = check_program(interpreter, depth + 1, out, e) || err_wrap(e, "%s", path);
	}
	fclose(f);
	return ok;
}

/* ---- running it */

/* Beside the program, as in build/, or where make install puts it. */
static bool find_library(char *out, struct err *e)
{
	static const char *const places[] = { "libkiln.so", "../lib/libkiln.so",
					      "../lib/kiln/libkiln.so",
					      "../lib/x86_64-linux-gnu/libkiln.so" };
	const char *given = getenv("KILN_LIBRARY");
	char exe[PATH_MAX], path[PATH_MAX + 64];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	bool ok = given && *given && realpath(given, out);

	if (given && *given && !ok)
		return err_system(e, "open", given) || err_wrap(e, "KILN_LIBRARY");
	exe[n > 0 ? n : 0] = '\0';
	if (strrchr(exe, '/'))
		strrchr(exe, '/')[1] = '\0';
	for (size_t i = 0; !ok && i < sizeof(places) / sizeof(*places); i++) {
		snprintf(path, sizeof(path), "%s%s", exe, places[i]);
		ok = realpath(path, out) && access(out, R_OK) == 0;
	}
	if (!ok)
		return err_set(e, ERR_NOTFOUND,
			       "libkiln.so is not beside %skiln nor in ../lib; "
			       "set KILN_LIBRARY to where it is",
			       exe);
	if (strpbrk(out, " :"))
		return err_set(e, ERR_USAGE,
			       "%s: the loader takes no path with blanks or colons; "
			       "set KILN_LIBRARY to another",
			       out);
	return true;
}

static void set_number(const char *variable, int64_t value, int64_t standard)
{
	char text[32];

	snprintf(text, sizeof(text), "%lld", (long long)value);
	if (value != standard)
		setenv(variable, text, 1);
}

/* In the child. */
static void set_environment(const struct record_options *o, const struct wanted *w,
			    const char *library)
{
	const char *preload = getenv("LD_PRELOAD");
	char text[2 * PATH_MAX];

	snprintf(text, sizeof(text), "%s%s%s", library, preload && *preload ? ":" : "",
		 preload ? preload : "");
	setenv("LD_PRELOAD", text, 1);
	for (size_t i = 0; i < NWANTED; i++) {
		unsetenv(w[i].variable);
		if (*w[i].file)
			setenv(w[i].variable, w[i].file, 1);
	}
	if (*o->http)
		setenv("KILN_PPROF_ADDR", o->http, 1);
	set_number("KILN_SECONDS", o->seconds, defaults.seconds);
	set_number("KILN_CPU_RATE", o->cpu_rate, defaults.cpu_rate);
	set_number("KILN_HEAP_RATE", o->heap_rate, defaults.heap_rate);
}

/* Signals that somebody sends to us are meant for the program. Those of the terminal it gets by
 * itself. Returns as waitpid does. */
static int wait_for(pid_t child, const sigset_t *all)
{
	siginfo_t info;
	int status;

	for (;;) {
		pid_t ended = waitpid(child, &status, WNOHANG);
		int signal;

		if (ended == child || (ended < 0 && errno != EINTR))
			return ended == child ? status : 0;
		signal = sigwaitinfo(all, &info);
		if (signal > 0 && signal != SIGCHLD && info.si_code <= 0)
			kill(child, signal);
	}
}

static int run_program(const struct record_options *o, const struct wanted *w, const char *library,
		       char **argv, pid_t *child)
{
	static const int passed[] = { SIGCHLD, SIGTERM, SIGINT,	 SIGQUIT, SIGHUP,
				      SIGUSR1, SIGUSR2, SIGCONT, SIGWINCH };
	sigset_t all, before;

	sigemptyset(&all);
	for (size_t i = 0; i < sizeof(passed) / sizeof(*passed); i++)
		sigaddset(&all, passed[i]);
	sigprocmask(SIG_BLOCK, &all, &before);
	*child = fork();
	if (*child == 0) {
		set_environment(o, w, library);
		sigprocmask(SIG_SETMASK, &before, NULL);
		execvp(argv[0], argv);
		fprintf(stderr, "kiln record: %s: %s\n", argv[0], strerror(errno));
		_exit(EXIT_NOT_FOUND);
	}
	if (*child < 0)
		return -1;
	return wait_for(*child, &all);
}

/* Whoever waits for us sees what the program did. */
static int end_as(int status)
{
	struct rlimit none = { 0 };
	sigset_t set;

	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	setrlimit(RLIMIT_CORE, &none);
	signal(WTERMSIG(status), SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, WTERMSIG(status));
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	raise(WTERMSIG(status));
	return 128 + WTERMSIG(status);
}

/* ---- what came out of it */

struct run {
	struct program program;
	pid_t child;
	time_t since;
};

static void expand(struct buf *out, const char *pattern, pid_t pid)
{
	for (const char *p = pattern; *p; p++) {
		if (p[0] == '%' && p[1] == 'p')
			buf_printf(out, "%d", (int)pid);
		else
			buf_char(out, *p);
		p += p[0] == '%' && (p[1] == 'p' || p[1] == '%');
	}
	buf_char(out, '\0');
}

/* The table of the report, without what is said about the profile. */
static void put_table(struct buf *out, struct str report)
{
	struct str rest = report;
	size_t nlines = 0;

	while (rest.n) {
		struct str line = str_cut(&rest, '\n');

		if (nlines || str_contains(line, STR("flat%")))
			nlines++;
		if (nlines)
			buf_printf(out, "%.*s\n", STR_ARG(line));
	}
	if (nlines == 1)
		buf_puts(out, "   (nothing)\n");
}

static bool put_top(struct buf *out, const char *path, struct buf *warnings, struct err *e)
{
	char program[] = "kiln", top[] = "-top", count[32], name[PATH_MAX];
	char *argv[] = { program, top, count, name, NULL };
	struct arena a = { 0 };
	struct command_line c;
	struct session s;
	struct buf report = { 0 };
	bool ok;

	snprintf(count, sizeof(count), "-nodecount=%d", TOP_LINES);
	snprintf(name, sizeof(name), "%s", path);
	ok = flags_parse(&c, &a, 4, argv, warnings, e);
	if (ok && analyze_load(&s, &c, warnings, e)) {
		struct analyze_request q = { .report = report_find("top"),
					     .argument = "",
					     .options = &c.options };

		ok = analyze_report(&s, &q, &report, warnings, e);
		put_table(out, buf_view(&report));
		session_release(&s);
	} else {
		ok = false;
	}
	buf_release(&report);
	arena_release(&a);
	return ok;
}

/* Files of programs that it started, but not those of earlier runs. */
static size_t count_others(const char *path, time_t since)
{
	char pattern[PATH_MAX + 16];
	glob_t g = { 0 };
	size_t n = 0;
	struct stat s;

	snprintf(pattern, sizeof(pattern), "%s.[0-9]*", path);
	glob(pattern, 0, NULL, &g);
	for (size_t i = 0; i < g.gl_pathc; i++)
		n += stat(g.gl_pathv[i], &s) == 0 && s.st_mtime >= since;
	globfree(&g);
	return n;
}

/* The agent writes when libc ends the program. */
static void put_missing(struct buf *out, const char *name, const char *path, bool is_go)
{
	buf_printf(out, "kiln record: no %s profile was written to %s", name, path);
	if (is_go)
		buf_printf(out,
			   ": a Go program ends without libc, unnoticed. %s; or record its first "
			   "seconds: --seconds 10",
			   go_has_its_own);
	buf_char(out, '\n');
}

static void show(struct buf *out, const struct wanted *w, const struct run *run)
{
	struct buf path = { 0 }, warnings = { 0 };
	struct err e = { 0 };
	struct stat s;
	size_t others;

	expand(&path, w->file, run->child);
	others = count_others(path.p, run->since);
	if (stat(path.p, &s) != 0 || s.st_mtime < run->since) {
		put_missing(out, w->name, path.p, run->program.is_go);
	} else {
		buf_printf(out, "kiln record: %s in %s\n", w->name, path.p);
		if (strcmp(w->name, "trace") != 0 && !put_top(out, path.p, &warnings, &e))
			buf_printf(out, "%s\n", e.text);
	}
	if (others)
		buf_printf(out, "kiln record: %zu of programs that it started in %s.*\n", others,
			   path.p);
	buf_release(&path);
	buf_release(&warnings);
}

static void show_all(const struct wanted *w, const struct run *run)
{
	struct buf out = { 0 };

	for (size_t i = 0; i < NWANTED; i++)
		if (*w[i].file)
			show(&out, &w[i], run);
	print_and_exit(&out, STDERR_FILENO, 0);
}

/* ---- the command */

static int fail(const struct err *e)
{
	struct buf out = { 0 };

	buf_printf(&out, "kiln record: %s\n", e->text);
	return print_and_exit(&out, STDERR_FILENO,
			      e->kind == ERR_NOTFOUND ? EXIT_NOT_FOUND : EXIT_ERROR);
}

static bool check_options(const struct record_options *o, int argc, struct err *e)
{
	if (!argc)
		return err_set(e, ERR_USAGE,
			       "no program given, e.g. kiln record ./program; see --help");
	if (o->seconds == 0 || o->seconds < -1 || o->cpu_rate < 1 || o->heap_rate < 0)
		return err_set(e, ERR_USAGE, "--seconds and rates must be above 0");
	return true;
}

static int record(struct record_options *o, char **argv)
{
	struct wanted w[NWANTED];
	struct buf path = { 0 };
	char library[PATH_MAX], standard[NAME_MAX];
	struct err e = { 0 };
	struct run run = { 0 };
	bool any = false;
	int status;

	list_wanted(o, w);
	for (size_t i = 0; i < NWANTED; i++)
		any |= *w[i].file;
	if (!any && !*o->http) {
		snprintf(standard, sizeof(standard), "kiln.%.100s.%%p.cpu.pb.gz",
			 path_base(str_of(argv[0])).p);
		w[0].file = standard;
	}
	if (!find_program(&path, argv[0], &e) || !check_program(path.p, 0, &run.program, &e) ||
	    !find_library(library, &e)) {
		buf_release(&path);
		return fail(&e);
	}
	buf_release(&path);
	run.since = time(NULL);
	status = run_program(o, w, library, argv, &run.child);
	if (status < 0) {
		err_system(&e, "fork", argv[0]);
		return fail(&e);
	}
	show_all(w, &run);
	return end_as(status);
}

int cmd_record(int argc, char **argv)
{
	struct record_options o = defaults;
	struct arena a = { 0 };
	struct buf out = { 0 };
	struct err e = { 0 };
	int status;

	argc--, argv++;
	if (argc == 1 && (strcmp(argv[0], "--complete") == 0 || strcmp(argv[0], "--scdoc") == 0)) {
		(argv[0][2] == 'c' ? args_complete : args_scdoc)(&out, &table);
		return print_and_exit(&out, STDOUT_FILENO, EXIT_SUCCESS);
	}
	if (!args_take(&table, &o, &a, &argc, &argv, &e)) {
		status = fail(&e);
	} else if (o.help) {
		buf_puts(&out, usage_head);
		args_usage(&out, &table);
		buf_puts(&out, usage_example);
		status = print_and_exit(&out, STDOUT_FILENO, EXIT_SUCCESS);
	} else {
		status = check_options(&o, argc, &e) ? record(&o, argv) : fail(&e);
	}
	arena_release(&a);
	return status;
}
