/* packer.h - compressors of gzip. One has 700 kB, which take as long to set up as a small profile
 * takes to pack: a few are kept for the next who wants one.
 */
#ifndef BASE_PACKER_H
#define BASE_PACKER_H

#include <libdeflate.h>

enum packer_kind { PACKER_QUICK, PACKER_SMALL, PACKER_NKINDS };

/* Any thread. No memory ends the program. */
struct libdeflate_compressor *packer_take(enum packer_kind kind);
void packer_give(struct libdeflate_compressor *packer, enum packer_kind kind);

#endif
