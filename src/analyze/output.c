#include "analyze/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* A command on its way out. */
struct output {
	const struct output_request *q;
	const struct report *report;
	const struct view *view; /* or NULL */
};

static bool is_drawing(const struct view *view)
{
	return view && *view->format;
}

/* NULL if kiln cannot print that. */
static const struct report *find_report(const struct view *view, const char *command)
{
	return is_drawing(view) ? &report_drawing : report_find(view ? view->report : command);
}

static bool is_shown(const struct output *o)
{
	return o->view && o->view->shown && !*o->q->options->output && !o->q->pipe;
}

/* Would it garble the terminal? */
static bool wants_file(const struct output *o)
{
	bool is_binary = o->view ? !o->view->shown : o->report->flags & REPORT_BINARY;

	return is_binary && !o->q->pipe && (o->q->is_interactive || isatty(STDOUT_FILENO));
}

/* Where the report goes: -output, a fresh file for what would garble a terminal, or stdout. */
static int open_output(const struct output *o, struct buf *warnings, struct err *e)
{
	const char *path = o->q->options->output;
	char name[64], suffix[32];
	int fd = o->q->pipe ? o->q->pipe : STDOUT_FILENO;

	if (*path) {
		fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0666);
		if (fd < 0)
			err_system(e, "open", path);
	} else if (wants_file(o)) {
		snprintf(suffix, sizeof(suffix), ".%s",
			 o->view ? o->view->extension : o->report->extension);
		fd = create_numbered("profile", suffix, name, sizeof(name), e);
		path = name;
	}
	if (fd >= 0 && fd != STDOUT_FILENO && fd != o->q->pipe)
		buf_printf(warnings, "Generating report in %s\n", path);
	return fd;
}

/* Makes a picture of the graph, if that is what the view is. */
static bool draw(const struct output *o, struct buf *out, struct err *e)
{
	struct buf text = *out, picture = { 0 };
	bool ok;

	if (!is_drawing(o->view))
		return true;
	*out = (struct buf){ 0 };
	ok = picture_draw(&picture, buf_view(&text),
			  &(struct picture_params){ .format = o->view->format,
						    .max_seconds = o->q->options->dot_timeout },
			  e);
	if (ok && o->view->is_zoomable) {
		picture_make_zoomable(out, buf_view(&picture));
		buf_release(&picture);
	} else {
		*out = picture;
	}
	buf_release(&text);
	return ok;
}

/* Did the person, or the command that reads, want no more of it? */
static bool was_enough(const struct output_request *q, const struct buf *out)
{
	return out->write_errno == ECANCELED || (q->pipe && out->write_errno == EPIPE);
}

/* The file is opened when the first bytes are there: a failed report must not truncate it. */
static bool deliver(const struct output *o, struct buf *out, struct buf *warnings, struct err *e)
{
	bool ok = true;

	if (!out->has_fd) {
		int fd = open_output(o, warnings, e);

		if (fd < 0)
			return false;
		buf_to_fd(out, fd);
	}
	ok = buf_flush(out, e) || was_enough(o->q, out);
	if (out->fd != STDOUT_FILENO && out->fd != o->q->pipe && close(out->fd) != 0 && ok)
		ok = err_system(e, "close", o->q->options->output);
	return ok;
}

bool output_report(struct session *s, const struct output_request *q, struct buf *warnings,
		   struct err *e)
{
	const struct view *view = view_find(q->command->name);
	struct output o = { q, find_report(view, q->command->name), view };
	struct analyze_request request = { .report = o.report,
					   .argument = q->argument,
					   .options = q->options };
	struct buf out = { .stop = q->stop };
	bool ok;

	if (!o.report)
		return err_set(e, ERR_USAGE, "-%s is not there yet in this version",
			       q->command->name);
	if (!view && !*q->options->output && !wants_file(&o))
		buf_to_fd(&out, q->pipe ? q->pipe : STDOUT_FILENO);
	ok = analyze_report(s, &request, &out, warnings, e) && draw(&o, &out, e);
	if (ok && is_shown(&o))
		ok = view_show(&s->viewed, view, buf_view(&out), q->is_interactive, e);
	else if (ok)
		ok = deliver(&o, &out, warnings, e);
	buf_release(&out);
	return ok;
}
