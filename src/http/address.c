#include "http/address.h"

#include "base/number.h"

static bool wrong_address(struct err *e, const char *address, const char *why)
{
	return err_set(e, ERR_USAGE, "could not split http address: address %s: %s", address, why);
}

/* net.SplitHostPort of Go. */
static bool split_address(const char *address, struct str *host, struct str *port, struct err *e)
{
	struct str s = str_of(address);
	size_t colon = str_rfind_char(s, ':');

	if (colon == STR_NONE)
		return wrong_address(e, address, "missing port in address");
	*port = str_from(s, colon + 1);
	*host = (struct str){ s.p, colon };
	if (host->n && host->p[0] == '[') {
		size_t end = str_find_char(s, ']');

		if (end == STR_NONE)
			return wrong_address(e, address, "missing ']' in address");
		if (end + 1 == s.n)
			return wrong_address(e, address, "missing port in address");
		if (end + 1 != colon)
			return wrong_address(e, address,
					     s.p[end + 1] == ':' ? "too many colons in address"
								 : "missing port in address");
		*host = (struct str){ s.p + 1, end - 1 };
	} else if (str_find_char(*host, ':') != STR_NONE) {
		return wrong_address(e, address, "too many colons in address");
	}
	if (str_find_char(*host, '[') != STR_NONE || str_find_char(*port, '[') != STR_NONE)
		return wrong_address(e, address, "unexpected '[' in address");
	if (str_find_char(*host, ']') != STR_NONE || str_find_char(*port, ']') != STR_NONE)
		return wrong_address(e, address, "unexpected ']' in address");
	return true;
}

bool http_address_parse(struct arena *a, const char *address, const char *any_host,
			const char **host, uint16_t *port, struct err *e)
{
	struct str host_text, port_text;
	int64_t number = 0;
	enum number_result result = NUMBER_OK;

	if (!split_address(address, &host_text, &port_text, e))
		return false;
	if (port_text.n)
		result = number_parse_int(port_text, 10, &number);
	if (result != NUMBER_OK) {
		number_error(e, result, "Atoi", port_text);
		return err_wrap(e, "invalid port number");
	}
	if (number < 0 || number > UINT16_MAX)
		return err_set(e, ERR_USAGE, "listen tcp: address %lld: invalid port",
			       (long long)number);
	*host = host_text.n ? str_dup(a, host_text) : any_host;
	*port = (uint16_t)number;
	return true;
}
