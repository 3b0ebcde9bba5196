/* id.c - names of profiles, as profefe makes them (xid): the second of arrival, something of this
 * process, a counter. */
#include "store/id.h"

#include <stdatomic.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

static const char digits[] = "0123456789abcdefghijklmnopqrstuv";

void id_source_init(struct id_source *s)
{
	unsigned char random[8] = { 0 };

	/* Without randomness the second and the process must do. */
	(void)!getrandom(random, sizeof(random), GRND_NONBLOCK);
	memcpy(s->maker, random, 3);
	s->maker[3] = (unsigned char)(getpid() >> 8);
	s->maker[4] = (unsigned char)getpid();
	atomic_init(&s->counter, (uint32_t)random[3] << 16 | (uint32_t)random[4] << 8 | random[5]);
}

struct store_id id_next(struct id_source *s)
{
	uint32_t counter = atomic_fetch_add(&s->counter, 1), second = (uint32_t)time(NULL);
	struct store_id id;

	for (int i = 0; i < 4; i++)
		id.at[i] = (unsigned char)(second >> (24 - 8 * i));
	memcpy(id.at + 4, s->maker, sizeof(s->maker));
	for (int i = 0; i < 3; i++)
		id.at[9 + i] = (unsigned char)(counter >> (16 - 8 * i));
	return id;
}

void store_id_print(struct buf *out, const struct store_id *id)
{
	uint32_t bits = 0;
	unsigned nbits = 0;

	for (size_t i = 0; i < STORE_ID_BYTES; i++) {
		bits = bits << 8 | id->at[i];
		for (nbits += 8; nbits >= 5; nbits -= 5)
			buf_char(out, digits[bits >> (nbits - 5) & 31]);
	}
	/* One bit is left, of 96. */
	buf_char(out, digits[bits << (5 - nbits) & 31]);
}

static int digit_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'v' ? c - 'a' + 10 : -1;
}

bool store_id_parse(struct str text, struct store_id *id)
{
	uint32_t bits = 0;
	unsigned nbits = 0;
	size_t n = 0;

	if (text.n != STORE_ID_CHARS)
		return false;
	for (size_t i = 0; i < text.n; i++) {
		int value = digit_value(text.p[i]);

		if (value < 0)
			return false;
		bits = bits << 5 | (uint32_t)value;
		nbits += 5;
		if (nbits >= 8) {
			nbits -= 8;
			id->at[n++] = (unsigned char)(bits >> nbits);
		}
	}
	/* An id has one text only: what is left of the last character is 0. */
	return (bits & ((1u << nbits) - 1)) == 0;
}
