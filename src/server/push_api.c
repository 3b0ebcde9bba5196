/* push_api.c - what agents of other projects push, described for OpenAPI and kiln-api(7). Their
 * parameters are read by ingest.c, as they are read by those projects' servers. */
#include "server/api1.h"

static const struct param ingest_params[] = {
	{ .name = "name",
	  .kind = PARAM_TEXT,
	  .help = "The service and labels: app{k=v,k2=v2}. A label service_name is the service "
		  "instead; "
		  "labels such as __session_id__ are left out. Of stacks as text the last part of "
		  "the name says what they are: app.cpu, app.wall, app.inuse_space." },
	{ .name = "from",
	  .kind = PARAM_TEXT,
	  .help = "When the profile began: nanoseconds (19 digits), microseconds (16), "
		  "milliseconds (13) or "
		  "seconds since 1970, a day (20261117), or as elsewhere. If it is not given: "
		  "until." },
	{ .name = "until",
	  .kind = PARAM_TEXT,
	  .initial = "now",
	  .help = "When it ended, in the same forms." },
	{ .name = "format",
	  .kind = PARAM_TEXT,
	  .help = "pprof, folded or groups (stacks with counts, which is what text is taken for), "
		  "lines (a "
		  "stack for each sample). A form (multipart/form-data) has pprof in its part "
		  "\"profile\"." },
	{ .name = "sampleRate",
	  .kind = PARAM_INT,
	  .initial = "100",
	  .min = 1,
	  .max = 1e9,
	  .help = "Samples in a second, of stacks as text." },
	{ .name = "units",
	  .kind = PARAM_TEXT,
	  .initial = "samples",
	  .help = "Of stacks as text: values of times are counts of samples, or else times "
		  "already." },
	{ .name = "spyName", .kind = PARAM_TEXT, .help = "The agent; not used." },
	{ .name = "aggregationType",
	  .kind = PARAM_TEXT,
	  .help = "Not used: the type says whether values are added or averaged." },
};

const struct endpoint endpoint_ingest = {
	.path = "/ingest",
	.details =
		"Stores a profile as the SDKs of Pyroscope push it; the same is at "
		"/pyroscope/ingest. The "
		"status is 200 once it is on disk, with an empty answer. 400: the name or another "
		"parameter is wrong; 413: it is too large; 422: it is not accepted, as what cannot "
		"be "
		"read; 429: the client is too fast, or there are too many series. A profile in "
		"pprof's format keeps all its sample types; what kiln's type of it is, is told by "
		"their names. One without samples is fine, and nothing is stored.",
	ENDPOINT_PARAMS(ingest_params),
	.error = "ConnectError",
};

const struct endpoint endpoint_push = {
	.path = "/push.v1.PusherService/Push",
	.details =
		"Stores profiles as Grafana Alloy and profilecli push them: a PushRequest of "
		"the Connect "
		"protocol, in protobuf (application/proto) or JSON, which may be gzipped. The "
		"label "
		"service_name is the service, else app_name, else it is unspecified; __name__ "
		"is the type: process_cpu is cpu, memory is "
		"heap, "
		"others keep their name. With __delta__=\"false\" values are of the time since "
		"the last "
		"profile, not of that since the process began. All profiles of a request are "
		"stored, "
		"and the answer is an empty message. What is wrong with a profile keeps only "
		"that one out: the others are stored, and the answer says what is wrong with the "
		"first. If the server cannot take one for now (429, 500, 503, 507), none is "
		"stored, and all may come again.",
	.types = "application/proto application/json",
	.error = "ConnectError",
};

const struct endpoint endpoint_otlp = {
	.path = "/v1development/profiles",
	.details =
		"Stores profiles as OpenTelemetry pushes them (OTLP/HTTP): an "
		"ExportProfilesServiceRequest in "
		"protobuf (application/x-protobuf) or JSON, which may be gzipped. Samples of "
		"v1.9 and v1.10 "
		"of the protocol have different numbers, and are told apart. The service is the "
		"attribute service.name of a sample or of the resource, else unknown_service "
		"with the "
		"executable's name; other attributes of the resource and of the profile are "
		"labels, with "
		"_ for what is no letter or digit (k8s_pod_name), but those that tell processes "
		"apart "
		"(process.pid, container.id, service.instance.id). Attributes of samples, and "
		"ids of traces and "
		"spans, are labels of the samples. A sample with timestamps becomes one for each, "
		"with the label timestamp in nanoseconds, and its value, or 1 if it has none; if "
		"values and timestamps are not equally many, or one is after the year 2262, the "
		"profile is refused. Counts of samples of CPU time become CPU "
		"time by the "
		"period. What is wrong with a profile keeps only that one out, and "
		"partial_success says so. If the server cannot take them for now it is 429 or "
		"503, which clients answer by sending all of it again.",
	.types = "application/x-protobuf application/json",
	.error = "Status",
};
