#include "server/webhook.h"

#include "test.h"

TEST(pauses_get_longer_and_end)
{
	int64_t sum = 0, last = 0;
	unsigned n = 1;

	assert_int_equal(webhook_pause_ms(1), 1000);
	assert_int_equal(webhook_pause_ms(2), 2000);
	for (; webhook_pause_ms(n) >= 0; n++) {
		assert_true(webhook_pause_ms(n) >= last);
		last = webhook_pause_ms(n);
		sum += last;
	}
	assert_int_equal(last, 300000);
	assert_true(sum > 3000000 && sum <= 3600000);
	assert_int_equal(webhook_pause_ms(1000), -1);
}

TEST(only_http_may_be_called)
{
	struct err e;

	assert_true(webhook_check_url("", &e));
	assert_true(webhook_check_url("http://a/b?c", &e));
	assert_true(webhook_check_url("https://a", &e));
	assert_false(webhook_check_url("ftp://a", &e));
	assert_false(webhook_check_url("a", &e));
	assert_false(webhook_check_url("http://", &e));
	assert_false(webhook_check_url("http:///x", &e));
	assert_false(webhook_check_url("http://a\n/x", &e));
}
