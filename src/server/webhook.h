/* webhook.h - tells a URL of regressions that are new: POST, JSON, {"event":"regressions",
 * "regressions":[...]}, those of one comparison together.
 *
 * A status of 2xx is the end of it, whatever follows it. Others, and none within 10 seconds, are
 * tried again after 1, 2, 4, ... seconds, 5 minutes at most, for an hour; others are sent
 * meanwhile. Then, and at once after a 3xx or a 4xx other than 408 and 429, they are given up. No
 * regression is sent again once it has arrived, or may have when the server was killed; what waits
 * when it stops is sent after the next start. The queue is bounded: what does not fit is given up,
 * too.
 */
#ifndef SERVER_WEBHOOK_H
#define SERVER_WEBHOOK_H

#include <stdatomic.h>

#include "base/err.h"
#include "base/str.h"
#include "server/findings.h"
#include "server/metrics.h"

enum { WEBHOOK_MAX_WAITING = 100, WEBHOOK_MAX_IDS = 100 };

struct webhook;

/* May this URL be called? ERR_USAGE says why not. "" may. */
bool webhook_check_url(const char *url, struct err *e);
/* NULL: no URL is given. What the findings say is queued is sent. */
struct webhook *webhook_start(const char *url, struct findings *findings, struct metrics *metrics);
/* Does not wait for what is in the queue. */
void webhook_stop(struct webhook *w);
/* Findings by their ids, of 16 characters each, that are told together. `w` may be NULL. */
void webhook_send(struct webhook *w, char (*ids)[17], size_t n);

/* How long to wait after so many failures, in milliseconds; -1: no more. */
int64_t webhook_pause_ms(unsigned nfailures);

#endif
