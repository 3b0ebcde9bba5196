/* version.h - which kiln this is. */
#ifndef BASE_VERSION_H
#define BASE_VERSION_H

#define KILN_VERSION "0.1.0"

#endif
