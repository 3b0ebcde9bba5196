/* credential.h - what the agent tells a server that wants to know who it is: values of the header
 * Authorization. They are secrets, and appear in no message. */
#ifndef AGENT_CREDENTIAL_H
#define AGENT_CREDENTIAL_H

#include <stdbool.h>
#include <stddef.h>

enum { CREDENTIAL_BYTES = 4096 };

/* Of what a URL has in front of its '@', with percent signs. False: that is none, or too long. */
bool credential_basic(char *to, size_t size, const char *user_info, size_t n);
/* White space around it does not count. False: it is none, or too long. */
bool credential_bearer(char *to, size_t size, const char *token, size_t n);
/* Of the token in a file. False: errno, and `to` is as it was. */
bool credential_read(char *to, size_t size, const char *path);

#endif
