#include "web/names.h"

#include "base/path.h"

static bool is_just_a_name(const struct node_info *i)
{
	return i->name && !i->file && !i->line && !i->address;
}

uint32_t name_id(struct site *site, struct loaded *l, const struct report_run *r,
		 const struct node_info *info)
{
	bool is_kept = is_just_a_name(info) && info->name < l->nfacts;
	uint32_t id = is_kept ? l->facts[info->name].id : 0;

	if (id)
		return id;
	r->text->n = 0;
	node_info_text(r->text, r->p, info);
	id = functions_add(&site->functions, l->owner, buf_view(r->text));
	if (is_kept)
		l->facts[info->name].id = id;
	return id;
}

static void put_file(struct buf *out, const struct report_run *r, const struct node_info *info,
		     const struct name_facts *facts)
{
	struct str file = profile_str(r->p, info->file ? info->file : facts->file);

	json_put(out, source_trim(file, r->params->trim_path, r->params->source_path));
}

void name_put(struct buf *out, const struct loaded *l, const struct report_run *r, uint32_t id,
	      const struct node_info *info)
{
	static const struct name_facts nameless = { .flags = FUNCTION_UNNAMED };
	static const struct name_facts file = { 0 };
	const struct name_facts *facts = info->name   ? loaded_facts(l, info->name)
					 : info->file ? &file
						      : &nameless;
	struct str object = profile_str(r->p, info->object ? info->object : facts->object);

	buf_printf(out, "[%u,", id);
	if (info->name && !info->line && !info->address) {
		json_put(out, profile_str(r->p, info->name));
	} else {
		r->text->n = 0;
		node_info_text(r->text, r->p, info);
		json_put(out, buf_view(r->text));
	}
	buf_char(out, ',');
	put_file(out, r, info, facts);
	buf_printf(out, ",%lld,", (long long)(info->line ? info->line : facts->line));
	json_put(out, object.n ? path_base(object) : object);
	buf_printf(out, ",%u]", facts->flags);
}

uint32_t *name_frames(struct site *site, struct loaded *l, const struct report_run *r,
		      const struct frames *f)
{
	uint32_t *ids = arena_many(r->a, f->nnodes, uint32_t);

	for (uint32_t i = 0; i < f->nnodes && !stop_asked_at(r->params->stop, i); i++) {
		struct node_info info;

		frames_info(f, r->p, i, &info);
		ids[i] = name_id(site, l, r, &info);
	}
	return ids;
}

void name_graph_frames(struct report_run *r, struct frames *f)
{
	graph_frames(r->a, f, r->p,
		     &(struct graph_params){ .keep = r->params->keep,
					     .value = r->params->value,
					     .mean = r->params->mean,
					     .memo = r->params->memo });
}

void name_functions(struct site *site, struct loaded *l)
{
	const struct profile *p = &loaded_session(l)->profile;

	for (uint32_t i = 0; i < p->nfunctions; i++) {
		struct name_facts *facts = &l->facts[p->functions[i].name];

		if (facts->is_known && !facts->id)
			facts->id = functions_add(&site->functions, l->owner,
						  profile_str(p, p->functions[i].name));
	}
}
