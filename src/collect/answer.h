/* answer.h - what a target's answer to a request for a profile is worth. Private to collect/. */
#ifndef COLLECT_ANSWER_H
#define COLLECT_ANSWER_H

#include "collect/collect.h"

struct http_response;

/* Of an answer with another status than 200; `e` says it in the target's own words. */
enum collect_result answer_judge(const struct http_response *r, struct err *e);

#endif
