#include "agent/label.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "kiln.h"
#include "agent/local.h"
#include "agent/sequence.h"

enum {
	LABELS_MAX = 32,  /* of a set */
	TEXT_BYTES = 256, /* of a key or value, with its end */
	TEXT_WORDS = TEXT_BYTES / sizeof(uint64_t),
};

/* A text is its bytes up to the end of a word, zeros behind; a set is a word for each label, the
 * number of its key << 32 | that of its value. */
static struct sequences texts = { .slots = 1 << 16, .words_max = 1 << 18 };
static struct sequences sets = { .slots = 1 << 16, .words_max = 1 << 18 };

/* Copies here are loops: memcpy with the compiler's check is a function of libc that the loader
 * touches 64 KB for, in each program with an agent.
 *
 * 0: there is no room. What is too long is cut, between characters. */
static uint32_t add_text(const char *s)
{
	uint64_t words[TEXT_WORDS] = { 0 };
	size_t n = strnlen(s, TEXT_BYTES);

	if (n == TEXT_BYTES)
		for (n--; n && ((unsigned char)s[n] & 0xc0) == 0x80; n--)
			;
	for (size_t i = 0; i < n; i++)
		((char *)words)[i] = s[i];
	return sequence_add(&texts, words, (uint32_t)(n / sizeof(*words) + 1));
}

static const char *text(uint32_t number)
{
	uint32_t n;

	return (const char *)sequence_words(&texts, number, &n);
}

static const char *key_of(uint64_t label)
{
	return text((uint32_t)(label >> 32));
}

/* Puts `label` where it belongs, instead of one with the same key. Returns how many there are. */
static uint32_t put(uint64_t *set, uint32_t n, uint64_t label)
{
	uint32_t at = 0;

	while (at < n && strcmp(key_of(set[at]), key_of(label)) < 0)
		at++;
	if (at == n || set[at] >> 32 != label >> 32) {
		memmove(set + at + 1, set + at, (n - at) * sizeof(*set));
		n++;
	}
	set[at] = label;
	return n;
}

static uint32_t take_away(uint64_t *set, uint32_t n, uint32_t key)
{
	for (uint32_t i = 0; i < n; i++)
		if (set[i] >> 32 == key) {
			memmove(set + i, set + i + 1, (n - i - 1) * sizeof(*set));
			return n - 1;
		}
	return n;
}

/* False: there is no room. */
static bool change(uint32_t *labels, const char *key, const char *value)
{
	uint64_t set[LABELS_MAX + 1];
	uint32_t n, k = add_text(key), v = value ? add_text(value) : 0, changed = 0;
	const uint64_t *words = sequence_words(&sets, *labels, &n);

	if (!k || (value && !v))
		return false;
	for (uint32_t i = 0; i < n; i++)
		set[i] = words[i];
	n = value ? put(set, n, (uint64_t)k << 32 | v) : take_away(set, n, k);
	if (n > LABELS_MAX)
		return false;
	if (n)
		changed = sequence_add(&sets, set, n);
	if (n && !changed)
		return false;
	*labels = changed;
	return true;
}

uint32_t labels_with(uint32_t labels, const char *key, const char *value)
{
	change(&labels, key, value);
	return labels;
}

uint32_t labels_count(uint32_t labels)
{
	uint32_t n;

	sequence_words(&sets, labels, &n);
	return n;
}

struct label labels_at(uint32_t labels, uint32_t i)
{
	uint32_t n;
	uint64_t label = sequence_words(&sets, labels, &n)[i];

	return (struct label){ key_of(label), text((uint32_t)label) };
}

uint64_t labels_lost(void)
{
	return atomic_load(&texts.lost) + atomic_load(&sets.lost);
}

int kiln_label_set(const char *key, const char *value)
{
	if (!key || !*key)
		return -EINVAL;
	return change(&local.labels, key, value) ? 0 : -ENOSPC;
}

uint32_t kiln_labels_save(void)
{
	return local.labels;
}

void kiln_labels_restore(uint32_t saved)
{
	local.labels = saved;
}
