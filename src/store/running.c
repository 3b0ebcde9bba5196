#include "store/running.h"

#include "base/int.h"

void running_end(struct running *r)
{
	int64_t span = int_distance(r->first, r->end);

	if (!r->series)
		return;
	r->ran = int_add(r->ran, span > r->profiled ? span : r->profiled);
	r->duration = int_add(r->duration, r->profiled);
	r->series = r->profiled = 0;
}

void running_add(struct running *r, const struct scan_row *row)
{
	int64_t one, end;

	if (!row->nprofiles)
		return;
	one = row->duration / (int64_t)row->nprofiles;
	end = int_add(row->last, one > 0 ? one : 0);
	if (row->series->series != r->series) {
		running_end(r);
		r->series = row->series->series;
		r->first = row->time;
		r->end = end;
	}
	if (row->time < r->first)
		r->first = row->time;
	if (end > r->end)
		r->end = end;
	r->profiled = int_add(r->profiled, row->duration > 0 ? row->duration : 0);
}
