/* ahead.h - makes the answers that a page asks for first before it does.
 *
 * A thread of its own, which works only as long as nobody else wants the profile, unless it wants
 * the very answer that is being made. Private to web/.
 */
#ifndef WEB_AHEAD_H
#define WEB_AHEAD_H

struct ahead;
struct site;

/* NULL if the profile is so small that it makes no difference. */
struct ahead *ahead_start(struct site *site);
void ahead_stop(struct ahead *x);

#endif
