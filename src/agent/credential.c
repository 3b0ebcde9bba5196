#include "agent/credential.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static const char BASIC[] = "Basic ", BEARER[] = "Bearer ";

/* -1: it is none. */
static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 'a' ^ 'A';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The length; 0: a percent sign is followed by something else, or nothing is there. */
static size_t decode_percent(char *to, const char *s, size_t n)
{
	size_t length = 0;

	for (size_t i = 0; i < n; i++) {
		int high = s[i] == '%' && n - i > 2 ? hex_digit(s[i + 1]) : -1;
		int low = high >= 0 ? hex_digit(s[i + 2]) : -1;

		if (s[i] == '%' && low < 0)
			return 0;
		to[length++] = s[i] == '%' ? (char)(high << 4 | low) : s[i];
		i += s[i] == '%' ? 2 : 0;
	}
	return length;
}

/* RFC 4648, 4. */
static void encode_base64(char *to, const char *s, size_t n)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < n; i += 3) {
		unsigned bits = 0;

		for (size_t j = 0; j < 3; j++)
			bits = bits << 8 | (i + j < n ? (unsigned char)s[i + j] : 0);
		for (size_t j = 0; j < 4; j++)
			*to++ = i + j > n ? '=' : digits[bits >> (18 - 6 * j) & 63];
	}
	*to = '\0';
}

bool credential_basic(char *to, size_t size, const char *user_info, size_t n)
{
	char plain[CREDENTIAL_BYTES / 2];

	if (n > sizeof(plain))
		return false;
	n = decode_percent(plain, user_info, n);
	if (!n || (n + 2) / 3 * 4 + sizeof(BASIC) > size)
		return false;
	memcpy(to, BASIC, sizeof(BASIC));
	encode_base64(to + sizeof(BASIC) - 1, plain, n);
	return true;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

bool credential_bearer(char *to, size_t size, const char *token, size_t n)
{
	for (; n && is_blank(token[0]); n--)
		token++;
	while (n && is_blank(token[n - 1]))
		n--;
	if (!n || n + sizeof(BEARER) > size)
		return false;
	for (size_t i = 0; i < n; i++)
		if (token[i] <= ' ' || token[i] == 0x7f)
			return false;
	memcpy(to, BEARER, sizeof(BEARER) - 1);
	memcpy(to + sizeof(BEARER) - 1, token, n);
	to[sizeof(BEARER) - 1 + n] = '\0';
	return true;
}

bool credential_read(char *to, size_t size, const char *path)
{
	char text[CREDENTIAL_BYTES];
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), kept;
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));

	kept = errno;
	if (fd >= 0)
		close(fd);
	errno = kept;
	if (n < 0)
		return false;
	errno = EINVAL;
	return credential_bearer(to, size, text, (size_t)n);
}
