/* aside.h - work that must not keep others from the processor. */
#ifndef BASE_ASIDE_H
#define BASE_ASIDE_H

/* Runs it in a thread of low priority and waits for its end; if there can be no such thread, here.
 * A thread that has lowered its own priority could not raise it again. Where the system allows that
 * (to root, or by RLIMIT_NICE of 10 or more), it has only time that nobody else wants for the first
 * tenth of a second; else, and then, a tenth of what others want as well. */
void run_aside(void (*work)(void *ctx), void *ctx);

#endif
