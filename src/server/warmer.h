/* warmer.h - keeps sums of the fleet's CPU profiles in memory (store/hot.h): every few minutes asks
 * for the heaviest functions of the time that people ask for (--fleet-window), with low priority,
 * so that whoever asks next finds all of it summed up, after a restart too (store/kept.h). What is
 * pushed is summed up as it comes (store/follow.h), and written down every few seconds. */
#ifndef SERVER_WARMER_H
#define SERVER_WARMER_H

#include "server/server.h"

/* NULL: it is not wanted. */
struct warmer *warmer_start(struct server *s);
void warmer_stop(struct warmer *w);

#endif
