/* findings.h - the regressions that were found, with what people said of them, kept in a file.
 *
 * One that is found again is the same as before if it is of the same service, type, function and
 * versions; of windows, as long as it was there within the window. The file is regressions.json in
 * the store's folder; it is written anew, all or nothing, whenever something was found or said.
 * Threads: any number.
 */
#ifndef SERVER_FINDINGS_H
#define SERVER_FINDINGS_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"

struct finding {
#define FIELD_TEXT struct str
#define FIELD_TIME int64_t
#define FIELD_NUMBER double
#define FIELD_FLAG bool
#define FIELD(kind, name) FIELD_##kind name;
#include "server/finding.def"
#undef FIELD
};

/* new, acknowledged, expected, fixed; with blanks between them. */
#define FINDING_STATES "new acknowledged expected fixed"
/* Of which the ones that were seen last stay. In bytes of the file: */
enum { FINDINGS_MAX = 5000, FINDINGS_MAX_BYTES = 48 << 20 };

struct findings;
/* A file that is damaged is put aside, and `why`, which is else empty, says so. If it only cannot
 * be read, it stays, and nothing can be saved. */
struct findings *findings_open(const char *dir, struct buf *why);
void findings_free(struct findings *f);
bool findings_save(struct findings *f, struct err *e);

/* Found: id, found, seen, current and what people said need not be set. Those of windows that were
 * last seen before `stale` are other ones. *id is its id. Returns whether it is new. */
bool findings_note(struct findings *f, const struct finding *x, int64_t now, int64_t stale,
		   char id[17]);
/* After a comparison, which found these ids: what it did not find is not current any more. */
void findings_settle(struct findings *f, struct str service, struct str type, struct str kind,
		     char (*found)[17], size_t n);
/* Is there one of a version whose change is at or after a time? */
bool findings_has_version(struct findings *f, struct str service, struct str type,
			  struct str function, int64_t since);
/* ERR_NOTFOUND. `status` must be one of FINDING_STATES; `note` may be NULL: it stays. */
bool findings_say(struct findings *f, struct str id, struct str status, struct str who,
		  const struct str *note, int64_t now, struct err *e);
/* Of the webhook. */
void findings_set_webhook(struct findings *f, struct str id, struct str state);
/* All, those found last first; copied to `a`. */
void findings_list(struct findings *f, struct arena *a, struct finding **list, size_t *n);
/* False: there is none. */
bool findings_get(struct findings *f, struct str id, struct arena *a, struct finding *out);

/* ---- as JSON */

void finding_json(struct buf *out, const struct finding *x);
/* Its strings are those of the JSON. */
bool finding_read(const struct json *object, struct finding *x, struct err *e);

#endif
