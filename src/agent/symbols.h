/* symbols.h - names of functions, as the symbol tables of the program's files have them. Files are
 * read when the first name of theirs is asked for: by the agent's threads, never in hooks. */
#ifndef AGENT_SYMBOLS_H
#define AGENT_SYMBOLS_H

#include "agent/module.h"

/* The function that `f` is in, as the linker knows it (C++ mangled), and how far into it. False: it
 * is not known. Any of the agent's threads. */
bool symbol_name(frame_t f, char *name, size_t size, uint64_t *offset);

/* Gives back what nobody asked for lately. Returns when to call it again, INT64_MAX: when more was
 * asked. */
int64_t symbols_trim(int64_t now);
/* In a child after fork: whoever was at work there is gone. */
void symbols_forget(void);

#endif
