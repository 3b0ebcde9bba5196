/* dump.h - see dump.c. */
#ifndef AGENT_DUMP_H
#define AGENT_DUMP_H

/* In a child after fork: whoever asked there is gone. */
void dump_forget(void);

#endif
