/* number.h - numbers read, and strings quoted, exactly as Go's strconv does.
 *
 * The whole string must be the number. On NUMBER_RANGE *out is the nearest value there is (for
 * floats an infinity), on NUMBER_SYNTAX it is zero.
 */
#ifndef BASE_NUMBER_H
#define BASE_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

enum number_result { NUMBER_OK, NUMBER_SYNTAX, NUMBER_RANGE };

/* strconv.ParseInt(s, base, 64), with base 10 also strconv.Atoi. base is 2 to 36; with 0 the
 * prefixes 0x 0o 0b 0 choose it, and underscores may stand between digits. */
enum number_result number_parse_int(struct str s, unsigned base, int64_t *out);
/* strconv.ParseUint(s, base, 64): as above, without a sign. */
enum number_result number_parse_uint(struct str s, unsigned base, uint64_t *out);
/* strconv.ParseFloat(s, 64): decimal, hexadecimal with a p exponent, inf, infinity, nan;
 * underscores may stand between digits. */
enum number_result number_parse_float(struct str s, double *out);
/* strconv.ParseBool: 1 t T true TRUE True, 0 f F false FALSE False. Never NUMBER_RANGE. */
enum number_result number_parse_bool(struct str s, bool *out);
/* Fails with the text of Go's error, of kind ERR_USAGE. `function` is e.g. "Atoi":
 * strconv.Atoi: parsing "1x": invalid syntax. Returns false. */
bool number_error(struct err *e, enum number_result why, const char *function, struct str s);

/* strconv.Quote, which is fmt's %q. */
void quote_go(struct buf *out, struct str s);

#endif
