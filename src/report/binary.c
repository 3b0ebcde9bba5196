#include "report/binary.h"

bool binary_open(struct binary *b, const struct profile *p, const struct mapping *m,
		 struct asm_style style, struct err *e)
{
	*b = (struct binary){
		.place = { .start = m->start,
			   .limit = m->limit,
			   .offset = m->offset,
			   .kernel_symbol = profile_str(p, m->kernel_symbol) },
		.style = style,
	};
	b->path = str_dup(&b->arena, profile_str(p, m->file));
	if (!object_open(&b->object, b->path, e)) {
		arena_release(&b->arena);
		return false;
	}
	if (!object_check_base(&b->object, b->path, &b->place, e)) {
		binary_close(b);
		return false;
	}
	return true;
}

void binary_close(struct binary *b)
{
	disassembler_free(b->disassembler);
	if (b->symbolizer)
		symbolizer_close(b->symbolizer);
	object_close(&b->object);
	arena_release(&b->arena);
}

const struct symbol_list *binary_symbols(struct binary *b)
{
	if (!b->has_symbols)
		symbol_list_read(&b->arena, &b->object, &b->symbols);
	b->has_symbols = true;
	return &b->symbols;
}

bool binary_disassemble(struct binary *b, struct arena *a, uint64_t start, uint64_t end,
			struct instructions *out, struct err *e)
{
	if (!b->disassembler)
		b->disassembler = disassembler_new(&b->object, binary_symbols(b), b->style, e);
	if (!b->disassembler)
		return err_wrap(e, "%s", b->path);
	disassemble(b->disassembler, a, start, end, out);
	return true;
}

bool binary_address(const struct binary *b, uint64_t address, uint64_t *linked, struct err *e)
{
	return object_address(&b->object, &b->place, address, linked, e);
}

size_t binary_frames(struct binary *b, uint64_t linked, const struct symbol_frame **frames)
{
	struct symbolizer_params params = { .detail = b->detail };
	struct err ignored;

	if (!b->symbolizer && !b->has_no_frames)
		b->symbolizer = symbolizer_open(b->path, &params, &ignored);
	b->has_no_frames = !b->symbolizer;
	return b->symbolizer ? symbolizer_find(b->symbolizer, linked, frames) : 0;
}
