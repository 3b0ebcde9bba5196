#include "web/names.h"

#include "base/number.h"
#include "base/path.h"
#include "base/vec.h"

enum { MAX_PATH = 100000 };

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

uint32_t name_number(struct site *site, struct loaded *l, const struct report_run *r,
		     const struct node_info *info)
{
	return functions_number(&site->functions, name_id(site, l, r, info));
}

static const struct name_facts *facts_of(const struct loaded *l, const struct node_info *info)
{
	static const struct name_facts nameless = { .flags = FUNCTION_UNNAMED };
	static const struct name_facts file = { 0 };

	return info->name ? loaded_facts(l, info->name) : info->file ? &file : &nameless;
}

struct str name_file(const struct loaded *l, const struct report_run *r,
		     const struct node_info *info)
{
	uint32_t file = info->file ? info->file : facts_of(l, info)->file;

	return source_trim(profile_str(r->p, file), r->params->trim_path, r->params->source_path);
}

struct str name_module(const struct loaded *l, const struct report_run *r,
		       const struct node_info *info)
{
	uint32_t object = info->object ? info->object : facts_of(l, info)->object;
	struct str path = profile_str(r->p, object);

	return path.n ? path_base(path) : path;
}

/* In r->text. */
static struct str group_text(const struct report_run *r, struct str module)
{
	bool has_brackets = module.n && module.p[0] == '['; /* [vdso] is a module, too */

	r->text->n = 0;
	buf_puts(r->text, has_brackets ? "" : "[");
	buf_str(r->text, module.n ? module : STR("unknown"));
	buf_puts(r->text, has_brackets ? "" : "]");
	return buf_view(r->text);
}

uint32_t name_group(struct site *site, const struct loaded *l, const struct report_run *r,
		    const struct node_info *info)
{
	if (!is_just_a_name(info) || !(facts_of(l, info)->flags & FUNCTION_UNNAMED))
		return 0;
	return functions_add(&site->functions, l->owner, group_text(r, name_module(l, r, info)));
}

void name_put_group(struct buf *out, const struct loaded *l, const struct report_run *r,
		    uint32_t id, const struct node_info *info)
{
	buf_printf(out, "[%u,", functions_number(l->functions, id));
	json_put(out, group_text(r, name_module(l, r, info)));
	buf_puts(out, ",\"\",0,");
	json_put(out, name_module(l, r, info));
	buf_printf(out, ",%u]", FUNCTION_UNNAMED | FUNCTION_GROUP);
}

void name_put(struct buf *out, const struct loaded *l, const struct report_run *r, uint32_t id,
	      const struct node_info *info)
{
	const struct name_facts *facts = facts_of(l, info);

	buf_printf(out, "[%u,", functions_number(l->functions, id));
	if (info->name && !info->line && !info->address) {
		json_put(out, profile_str(r->p, info->name));
	} else {
		r->text->n = 0;
		node_info_text(r->text, r->p, info);
		json_put(out, buf_view(r->text));
	}
	buf_char(out, ',');
	json_put(out, name_file(l, r, info));
	buf_printf(out, ",%lld,", (long long)(info->line ? info->line : facts->line));
	json_put(out, name_module(l, r, info));
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

bool name_path_read(struct api_call *q, const char *param, struct name_path *out, struct err *e)
{
	struct str all = api_param(q, param), rest = all;
	vec(uint32_t) numbers = { 0 }, ids = { 0 };

	while (rest.n && ids.n < MAX_PATH) {
		struct str element = str_cut(&rest, '.');
		bool is_inlined = str_has_suffix(element, STR("i"));
		uint64_t number;
		uint32_t id;

		element.n -= is_inlined;
		if (number_parse_uint(element, 10, &number) != NUMBER_OK ||
		    number > FUNCTIONS_MAX_NUMBER) {
			vec_release(&numbers);
			vec_release(&ids);
			return err_set(e, ERR_USAGE, "%s=%.*s: not numbers with dots between them",
				       param, STR_ARG(all));
		}
		id = functions_of_number(&q->site->functions, (uint32_t)number);
		if (!id && number)
			id = FRAME_NODE; /* it is not there any more, and so there is no such path
					  */
		vec_push(&numbers, (uint32_t)number);
		vec_push(&ids, id | (is_inlined ? FRAME_INLINED : 0));
	}
	out->n = ids.n;
	out->numbers = vec_adopt(q->a, &numbers);
	out->ids = vec_adopt(q->a, &ids);
	return true;
}
