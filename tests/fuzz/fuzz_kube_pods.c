/* What an API server says: pages of a list, lines of a watch, frames of a WebSocket. */
#include "kube/inside.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool take(void *ctx, const struct pod_item *item)
{
	size_t *n = ctx;

	*n += item->pod.name.n + item->pod.nlabels;
	return true;
}

static void read_events(struct str text)
{
	while (text.n) {
		struct str line = str_cut(&text, '\n');
		struct arena a = { 0 };
		struct pod_event event;
		struct err e;

		pods_read_event(&a, line, &event, &e);
		arena_release(&a);
	}
}

static void read_frames(struct str text)
{
	struct frame f;
	struct err e;

	while (frame_read(text, &f, &e) > 0)
		text = str_from(text, f.head_bytes + f.body_bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = { (const char *)data, size };
	struct pod_page page = { 0 };
	struct arena a = { 0 };
	struct kube_pod pod;
	struct err e;
	size_t n = 0;

	pods_read_page(text, take, &n, &page, &e);
	pods_read_one(&a, text, &pod, &e);
	read_events(text);
	read_frames(text);
	arena_release(&a);
	buf_release(&page.version);
	buf_release(&page.next);
	return 0;
}
