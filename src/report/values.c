#include "report/report.h"

#include "base/unit.h"

int64_t report_divided(const struct report_run *r, int64_t v)
{
	double ratio = 1 / r->params->divide_by;

	return ratio > 0 && ratio != 1 ? int_from_double((double)v * ratio) : v;
}

void report_value(struct buf *out, const struct report_run *r, int64_t v)
{
	unit_label(out, report_divided(r, v), r->sample_unit, r->unit);
}

void report_value_cell(struct buf *out, const struct report_run *r, int64_t v, size_t width)
{
	r->text->n = 0;
	report_value(r->text, r, v);
	buf_pad_left(out, buf_view(r->text), width);
}

void report_node_columns(struct buf *out, const struct report_run *r, const struct node *n,
			 int64_t sum)
{
	report_value_cell(out, r, node_flat(n), 10);
	buf_char(out, ' ');
	report_percent(out, r, node_flat(n));
	buf_char(out, ' ');
	report_percent(out, r, sum);
	buf_char(out, ' ');
	report_value_cell(out, r, node_cum(n), 10);
	buf_char(out, ' ');
	report_percent(out, r, node_cum(n));
}

void report_percent(struct buf *out, const struct report_run *r, int64_t v)
{
	percent_text(out, v, r->params->total);
}

void report_percent_trimmed(struct buf *out, const struct report_run *r, int64_t v)
{
	r->text->n = 0;
	percent_text(r->text, v, r->params->total);
	buf_str(out, str_trim(buf_view(r->text)));
}

int64_t report_sample_value(const struct report_run *r, const struct sample *s)
{
	const int64_t *values = sample_values(r->p, s);

	return divided(values[r->params->value], r->params->mean ? values[0] : 0);
}
