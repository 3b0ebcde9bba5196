/* legacy_java.h - the part of Java profiles that text and binary ones share. */
#ifndef PROFILE_LEGACY_JAVA_H
#define PROFILE_LEGACY_JAVA_H

#include "profile/legacy_parse.h"

/* Reads "0x1f name (file:line)" lines, numbers everything and clears all addresses. */
bool java_read_locations(struct legacy *r, struct str text, struct err *e);

#endif
