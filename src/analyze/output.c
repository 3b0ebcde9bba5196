#include "analyze/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* A file of the form prefixNNNsuffix that is not there yet. */
static int create_numbered(const char *prefix, const char *suffix, char *name, size_t size,
			   struct err *e)
{
	for (int i = 1; i < 10000; i++) {
		int fd;

		snprintf(name, size, "%s%03d%s", prefix, i, suffix);
		fd = open(name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
		if (fd >= 0)
			return fd;
		if (errno != EEXIST) {
			err_system(e, "open", name);
			return -1;
		}
	}
	err_set(e, ERR_IO, "could not create file of the form %s001%s", prefix, suffix);
	return -1;
}

static bool wants_file(const struct output_request *q, const struct report *report)
{
	return (report->flags & REPORT_BINARY) && (q->is_interactive || isatty(STDOUT_FILENO));
}

/* Where the report goes: -output, a fresh file for what would garble a terminal, or stdout. */
static int open_output(const struct output_request *q, const struct report *report,
		       struct buf *warnings, struct err *e)
{
	const char *path = q->options->output;
	char name[64], suffix[32];
	int fd = STDOUT_FILENO;

	if (*path) {
		fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0666);
		if (fd < 0)
			err_system(e, "open", path);
	} else if (wants_file(q, report)) {
		snprintf(suffix, sizeof(suffix), ".%s", report->extension);
		fd = create_numbered("profile", suffix, name, sizeof(name), e);
		path = name;
	}
	if (fd >= 0 && fd != STDOUT_FILENO)
		buf_printf(warnings, "Generating report in %s\n", path);
	return fd;
}

/* The file is opened when the first bytes are there: a failed report must not truncate it. */
bool output_report(struct session *s, const struct output_request *q, struct buf *warnings,
		   struct err *e)
{
	const struct report *report = report_find(q->command->name);
	struct analyze_request request = { report, q->argument, q->options };
	struct buf out = { 0 };
	bool ok;
	int fd;

	if (!report)
		return err_set(e, ERR_USAGE, "-%s is not there yet in this version",
			       q->command->name);
	if (!*q->options->output && !wants_file(q, report))
		buf_to_fd(&out, STDOUT_FILENO);
	ok = analyze_report(s, &request, &out, warnings, e);
	if (ok && !out.has_fd) {
		fd = open_output(q, report, warnings, e);
		ok = fd >= 0;
		if (ok)
			buf_to_fd(&out, fd);
	}
	if (ok)
		ok = buf_flush(&out, e);
	if (out.has_fd && out.fd != STDOUT_FILENO && close(out.fd) != 0 && ok)
		ok = err_system(e, "close", q->options->output);
	buf_release(&out);
	return ok;
}
