/* files.h - profiles in files, as the settings name them. */
#ifndef AGENT_FILES_H
#define AGENT_FILES_H

#include <stdbool.h>

/* Writes a profile now, by its name on /debug/pprof/: to the file that the settings name, or to
 * kiln-NAME.PID.pb.gz, with `suffix` at its end. Says what went wrong. By the agent's thread. */
bool files_write(const char *profile, const char *suffix);

#endif
