/* groups.h - what functions belong to: a package, a module, or what they do, told by their names.
 */
#ifndef SERVER_GROUPS_H
#define SERVER_GROUPS_H

#include "base/str.h"

#define GROUP_NAMES "package module category owner"

/* For store_top_params.group; ctx is not used. (Owners are in owners.h.) What has none is "(no
 * package)" and so on; of what a function does, if nothing says so, "other". */
struct str group_package(void *ctx, struct str function, struct str file, struct str module);
struct str group_module(void *ctx, struct str function, struct str file, struct str module);
struct str group_category(void *ctx, struct str function, struct str file, struct str module);

#endif
