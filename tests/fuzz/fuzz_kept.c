/* fuzz_kept.c - any bytes as what the database has of sums by function, with a checksum that is
 * right, and as the weights of such a sum.
 */
#include <libdeflate.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "store/kept.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { NFUNCTIONS = 100 };

static void check_sealed(struct str body)
{
	uint32_t sum = libdeflate_crc32(0, body.p, body.n), nfunctions = 0;
	struct buf block = { 0 };
	struct err e;

	for (int i = 0; i < 4; i++)
		buf_char(&block, (char)(sum >> 8 * i));
	buf_str(&block, body);
	kept_check_functions(buf_view(&block), &nfunctions, &e);
	kept_check_sum(buf_view(&block), NFUNCTIONS, &e);
	buf_release(&block);
}

static void check_weights(struct str body)
{
	struct changes changes = { 0 };
	struct hot_key key = { .series = 1, .changes = &changes };
	struct hot_packed packed = { .key = key, .sum.generation = HOT_EVER };
	struct hot_sum sum = { 0 };
	struct hot h;

	hot_init(&h, 1 << 24);
	hot_begin(&h);
	for (int i = 0; i < NFUNCTIONS; i++)
		hot_function(&h, (struct str){ (const char *)&i, sizeof(i) }, STR(""), STR(""));
	packed.n = (uint8_t)body.p[0];
	packed.data = str_from(body, 1);
	hot_put_packed(&h, &packed);
	if (hot_get(&h, &key, &sum))
		for (size_t i = 0; i < sum.weights.n; i++)
			hot_function_at(&h, sum.weights.at[i].function);
	vec_release(&sum.weights);
	hot_end(&h);
	hot_release(&h);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct str body = { (const char *)data, n };

	if (!n)
		return 0;
	check_sealed(body);
	check_weights(body);
	return 0;
}
