/* type_of.h - what a profile is of, if nobody says so. */
#ifndef CMD_TYPE_OF_H
#define CMD_TYPE_OF_H

#include "profile/profile.h"

/* kiln's type of it, by its sample types or else by the name of its file; "": not known. */
struct str type_of_profile(const struct profile *p, struct str file);

#endif
