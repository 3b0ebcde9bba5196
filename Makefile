# make            the program, build/kiln
# make run        installs what is missing, builds, profiles a small program, and scrapes a service
# make test       everything that must pass; BUILD=asan|tsan|debug|cov|clang for another build of it
# make check-agent, check-serve, check-kube  of them those of the agent, of the server, or of Kubernetes
# make kube-apiserver  builds a Kubernetes API server for those, once, into the user's cache
# make browser    of them the pictures and the web page in a real browser
# make soak       browsers and 50 clients on the web page, a program under the agent that is asked for its
#                 profiles, and days of a fleet in the store, for SECONDS=30 each; nothing may fail or grow
# make live       profiles of real servers out of Debian: Go's against go tool pprof, others under the agent, all scraped
# make image      a container image, by packaging/Dockerfile but without docker; and tries it as a cluster runs it
# make lint       layers, format, cppcheck          make format     clang-format in place
# make fuzz       each fuzzer for SECONDS=30        make bench      against go tool pprof; QUICK=1
# make install    PREFIX=/usr/local DESTDIR= PPROF=1 (also as "pprof")
# V=1 shows the commands.

BUILD ?= release
PREFIX ?= /usr/local
SECONDS ?= 30
OUT := build/$(BUILD)
KILN := $(if $(filter release,$(BUILD)),build/kiln,$(OUT)/kiln)
JOBS := $(shell nproc)
# What a browser shows does not depend on how the program was compiled.
BROWSER := $(if $(filter release,$(BUILD)),$(wildcard tests/browser/run*))
Q := $(if $(V),,@)
ifeq ($(MAKELEVEL)$(filter -j%,$(MAKEFLAGS)),0)
MAKEFLAGS += -j$(JOBS)
endif

SAN := -O1 -fno-sanitize-recover=all
OPT_release := -O3 -fstack-protector-strong -D_FORTIFY_SOURCE=2
OPT_clang := $(OPT_release)
OPT_debug := -O0
OPT_asan := $(SAN) -fsanitize=address,undefined
OPT_tsan := $(SAN) -fsanitize=thread
OPT_cov := -O0 --coverage
OPT_fuzz := $(SAN) -fsanitize=fuzzer-no-link,address,undefined
CC := $(if $(filter clang fuzz,$(BUILD)),clang,gcc)
OPT := $(or $(OPT_$(BUILD)),$(error BUILD is one of release debug asan tsan cov clang fuzz))

# No -Werror with sanitizers: the code they add makes gcc warn of what cannot be.
CPPFLAGS := -D_GNU_SOURCE -Isrc -I$(OUT) -MMD -MP
CFLAGS := -std=gnu17 -g -fno-omit-frame-pointer -fvisibility=hidden -ffunction-sections $(OPT) \
	-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes \
	-Wvla -Wundef -Wwrite-strings -Wcast-qual -Wformat=2 -Wimplicit-fallthrough \
	$(if $(and $(CI),$(filter release clang,$(BUILD))),-Werror)
# Libraries that are not libc go in statically: each shared one costs start-up time. libcurl, which
# brings twenty others, is loaded when something is fetched (http/client.c).
LDFLAGS := $(OPT) -pthread -Wl,-O1 -Wl,--as-needed -Wl,--hash-style=gnu -Wl,--gc-sections \
	-Wl,-z,pack-relative-relocs
# Of capstone's machines we know two. Tables of the others would be relocated at every start.
LDFLAGS += $(foreach m,ARM M68K Mips PPC Sparc SystemZ XCore TMS320C64x M680X EVM,\
	-Wl,--defsym=$(m)_global_init=0 -Wl,--defsym=$(m)_option=0)
LDLIBS := $(patsubst %,-l:lib%.a,deflate pcre2-8 iberty dw elf lzma bz2 z zstd sqlite3 capstone edit bsd md tinfo yaml) -lm

# The agent is a library of its own.
SRC := $(filter-out src/agent/%,$(wildcard src/*/*.c))
OBJ := $(SRC:%.c=$(OUT)/%.o)
SHRINK := $(OUT)/tools/shrink
ASSETS := $(patsubst src/%,$(OUT)/%.inc,$(wildcard src/*/assets/*.* src/*/assets/*/*.*))
MAIN := $(OUT)/src/cmd/main.o
CORE := $(OUT)/core.a
UNIT := $(patsubst %.c,$(OUT)/%,$(wildcard tests/unit/test_*.c))
FUZZ := $(patsubst %.c,$(OUT)/%,$(wildcard tests/fuzz/fuzz_*.c))
VERSION := $(shell sed -n 's/.*KILN_VERSION "\(.*\)"/\1/p' src/base/version.h)
MAN := $(patsubst %.scd,build/%,$(wildcard man/*.scd))
C_FILES = $(wildcard include/*.h src/*/*.[ch] tests/*/*.[ch] tools/*.[ch] examples/*.c)

# libkiln.so is a guest in other programs: it brings no libraries but libc, may be unwound through,
# and exports just what is marked. libkiln.a is the same, to be linked in, and libkiln-static.a for programs
# that are static. In programs with a sanitizer it does nothing, so it is not built with one.
AGENT := $(if $(filter asan tsan fuzz,$(BUILD)),, $(patsubst %,$(dir $(KILN))libkiln%,.so .a -static.a))
SERVE_TESTS := $(wildcard tests/e2e/serve*.sh)
# With sanitizers, not those that are slow for what their clients do.
SERVE_RUN := $(if $(filter asan tsan,$(BUILD)),$(filter-out %_clients.sh %_crash.sh %_disk.sh,$(SERVE_TESTS)),$(SERVE_TESTS))
AGENT_TESTS := $(if $(AGENT),$(wildcard $(addprefix tests/agent/,*.sh *.py)))
AGENT_ALL := $(patsubst %.c,$(OUT)/%.o,$(wildcard src/agent/*.c))
# What runs where no profile is taken comes first: a program then touches few pages of the library.
AGENT_FIRST := $(patsubst %,$(OUT)/src/agent/%.o,hooks_malloc hooks_new hooks_lock hooks_thread agent exit files fork heap limit \
	hooks_proc local locks memory module plt push real sanitizer say server settings thread)
AGENT_OBJ := $(AGENT_FIRST) $(filter-out %/linked_static.o %/linked_dynamic.o $(AGENT_FIRST),$(AGENT_ALL))
AGENT_LDFLAGS := $(OPT) -shared -pthread -Wl,-soname,libkiln.so.0 -Wl,-O1 -Wl,--as-needed -Wl,-z,now \
	-Wl,-z,defs -Wl,-z,relro -Wl,-z,nodelete -Wl,--hash-style=gnu -Wl,--exclude-libs,ALL

all: $(KILN) $(AGENT)

build/kiln: build/release/kiln
	ln -f $< $@

$(OUT)/kiln: $(MAIN) $(CORE)
	@echo "  LD $@"
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(dir $(KILN))libkiln.so: $(AGENT_OBJ) tools/agent_so.ld
	@echo "  LD $@"
	$(Q)$(CC) $(AGENT_LDFLAGS) -o $@ $(AGENT_OBJ) -Wl,-T,tools/agent_so.ld -l:libdeflate.a
# One object, in which only what libkiln.so exports has a name: libdeflate is the agent's own. Its code is
# in a section of its own, or the agent would take the whole program for itself.
AGENT_JOIN = ld -r -T tools/agent.ld -o $@ $(filter %.o,$^) -l:libdeflate.a $(shell $(CC) -print-search-dirs | \
	sed -n 's/^libraries: =//p' | tr : '\n' | sed 's/^/-L/')
$(OUT)/agent.names: $(dir $(KILN))libkiln.so
	$(Q)nm -D --defined-only -j $< > $@
$(OUT)/agent.o: $(AGENT_OBJ) $(OUT)/src/agent/linked_dynamic.o $(OUT)/agent.names tools/agent.ld
	$(Q)$(AGENT_JOIN)
	$(Q)objcopy --keep-global-symbols=$(OUT)/agent.names $@
# Hooks have no name in a static program, or they would stand for libc's functions, which it would lack.
$(OUT)/agent_hidden.o: $(AGENT_OBJ) tools/agent.ld
	$(Q)$(AGENT_JOIN)
	$(Q)objcopy --wildcard --keep-global-symbol='kiln_*' --keep-global-symbol=real_find_static $@
$(OUT)/agent_static.o: $(OUT)/agent_hidden.o $(OUT)/src/agent/linked_static.o tools/agent.ld
	$(Q)ld -r -T tools/agent.ld -o $@ $(filter %.o,$^)
	$(Q)objcopy --wildcard --keep-global-symbol='kiln_*' $@
$(dir $(KILN))libkiln.a: $(OUT)/agent.o
$(dir $(KILN))libkiln-static.a: $(OUT)/agent_static.o
$(filter %.a,$(AGENT)):
	@rm -f $@
	@echo "  AR $@"
	$(Q)ar rcs $@ $^
$(AGENT_ALL): CPPFLAGS += -Iinclude
$(AGENT_OBJ): CPPFLAGS += -include agent/weak.h
$(AGENT_ALL): CFLAGS += -fPIC -fexceptions -fasynchronous-unwind-tables -ftls-model=initial-exec \
	-fno-semantic-interposition -fno-builtin-malloc -fno-builtin-free
# Two instructions less where each one counts.
$(OUT)/src/agent/hooks_malloc.o $(OUT)/src/agent/hooks_new.o: CFLAGS += -fomit-frame-pointer

$(CORE): $(filter-out $(MAIN),$(OBJ))
	@rm -f $@
	@echo "  AR $@"
	$(Q)ar rcs $@ $^

$(OUT)/%.o: %.c Makefile
	@mkdir -p $(@D)
	@echo "  CC $<"
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<

# Scripts and styles without comments and blanks, as lists of bytes for C files to include.
$(OBJ): | $(ASSETS)
$(OUT)/%.inc: src/% $(SHRINK) Makefile
	@mkdir -p $(@D)
	$(Q)$(SHRINK) $< | od -An -v -tx1 | sed 's/ \(..\)/0x\1,/g' > $@
$(SHRINK): tools/shrink.c
	@mkdir -p $(@D)
	$(Q)$(CC) -O1 -Wall -Wextra -o $@ $<

# The web page's files in one table; made again when a file comes or goes. (The folder has a rule, or make
# would think of assets.c.)
WEB_ASSETS := $(wildcard src/web/assets/*.* src/web/assets/*/*.*)
src/web/assets src/web/assets/fleet: ;
$(OUT)/src/web/assets.o: | $(OUT)/web/assets.inc
$(OUT)/web/assets.inc: src/web/assets src/web/assets/fleet $(WEB_ASSETS) tools/assets.sh
	@mkdir -p $(@D)
	$(Q)tools/assets.sh $(WEB_ASSETS) > $@

# What kubectl kiln install applies: the resources of the kustomization, in its order; and what --scrape adds.
MANIFESTS := $(addprefix packaging/kubernetes/,$(shell sed -n 's/^  - \(.*\.yaml\)$$/\1/p' packaging/kubernetes/kustomization.yaml))
$(OUT)/src/cmd/kubectl_install.o: | $(OUT)/cmd/manifests.inc $(OUT)/cmd/scrape.inc
$(OUT)/cmd/manifests.inc: packaging/kubernetes/kustomization.yaml $(MANIFESTS)
$(OUT)/cmd/scrape.inc: packaging/kubernetes/scrape.yaml
$(OUT)/cmd/manifests.inc $(OUT)/cmd/scrape.inc:
	@mkdir -p $(@D)
	$(Q)cat $(filter-out %kustomization.yaml,$^) | od -An -v -tx1 | sed 's/ \(..\)/0x\1,/g' > $@

$(OUT)/tests/%: $(OUT)/tests/%.o $(CORE)
	@echo "  LD $@"
	$(Q)$(CC) $(LDFLAGS) -o $@ $(filter %.o,$^) $(filter-out %.o,$^) $(LDLIBS)
$(OUT)/tools/%: LDFLAGS += -rdynamic
$(OUT)/tools/%: $(OUT)/tools/%.o $(CORE)
	@echo "  LD $@"
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)
$(UNIT): LDLIBS += -lcmocka
$(FUZZ): LDFLAGS += -fsanitize=fuzzer
$(OUT)/tests/unit/test_live: $(patsubst %,$(OUT)/src/agent/%.o,live memory local)
$(OUT)/tests/unit/test_stack: $(patsubst %,$(OUT)/src/agent/%.o,stack sequence memory local)
$(OUT)/tests/unit/test_plt: $(patsubst %,$(OUT)/src/agent/%.o,plt real memory local)
$(OUT)/tests/unit/test_ticks: $(patsubst %,$(OUT)/src/agent/%.o,ticks local)
$(OUT)/tests/fuzz/fuzz_agent_request: $(OUT)/src/agent/request.o
$(OUT)/tests/fuzz/fuzz_agent_names: $(patsubst %,$(OUT)/src/agent/%.o,names memory local)
$(OUT)/tests/fuzz/fuzz_agent_unwind: $(patsubst %,$(OUT)/src/agent/%.o,unwind memory local)
$(OUT)/tests/bench/agent_cost: $(patsubst %,$(OUT)/src/agent/%.o,unwind memory local)
$(OUT)/tests/bench/agent_cost.o: CPPFLAGS += -Iinclude
.SECONDARY:

deps:
	@tools/deps.sh build test $(if $(BROWSER),browser)

run:
	@tools/deps.sh build
	@$(MAKE) --no-print-directory build/kiln build/release/tools/example build/release/examples/shop
	@tools/demo.sh build/kiln build/release/tools/example build/release/examples/shop

# Examples have the agent linked in, as programs of users do; each function is to be seen.
build/release/examples/%: examples/%.c build/libkiln.a include/kiln.h
	@mkdir -p $(@D)
	@echo "  CC $@"
	$(Q)gcc -std=gnu17 -D_GNU_SOURCE -g -O2 -fno-inline -fno-omit-frame-pointer -Wall -Wextra -Iinclude -o $@ $< build/libkiln.a -pthread

test: deps
	@$(MAKE) --no-print-directory check

# A later make must not run tests that a broken build left behind, so this builds all of it first. What fails in one part
# hides nothing of the others.
check: $(KILN) $(AGENT) $(UNIT) $(OUT)/data/done $(OUT)/tests/kube/driver
	@status=0; for part in check-rest check-serve $(if $(AGENT),check-agent); do \
		$(MAKE) --no-print-directory $$part || status=1; done; exit $$status

# Most tests wait most of the time, those of Kubernetes for minutes: they go beside the others. The longest come first, so
# that none is left alone at the end. The agent's count time, so nothing heavy runs beside them.
check-rest: $(KILN) $(UNIT) $(OUT)/data/done $(OUT)/tests/kube/driver
	@$(MAKE) --no-print-directory check-kube > $(OUT)/kube.log 2>&1 & kube=$$!; \
	KILN=$(abspath $(KILN)) DATA=$(abspath $(OUT)/data) BUILD=$(BUILD) tests/lib/run $(shell expr $(JOBS) + 1) $(BROWSER) \
		tests/golden/run tests/recorded/run $(filter-out $(SERVE_TESTS),$(wildcard tests/e2e/*.sh)) $(UNIT); \
	others=$$?; wait $$kube; kube=$$?; cat $(OUT)/kube.log; [ $$others$$kube = 00 ]

# Of the server alone.
check-serve: $(KILN) $(AGENT) $(OUT)/data/done
	KILN=$(abspath $(KILN)) DATA=$(abspath $(OUT)/data) BUILD=$(BUILD) tests/lib/run $(JOBS) $(SERVE_RUN)

# Against real API servers; without one, those that need it say so and are skipped. Most of the time they wait. With
# sanitizers, those in which the API server lies.
KUBE_TESTS := $(if $(filter asan tsan,$(BUILD)),tests/kube/hostile.py,\
	$(filter-out tests/kube/cluster.py,$(wildcard $(addprefix tests/kube/,*.sh *.py))))
check-kube: $(KILN) $(OUT)/tests/kube/driver
	KILN=$(abspath $(KILN)) DRIVER=$(abspath $(OUT)/tests/kube/driver) BUILD=$(BUILD) tests/lib/run 4 $(KUBE_TESTS)

kube-apiserver:
	@tools/deps.sh kube
	@nice tools/kube.sh build

# Of the agent alone.
check-agent: $(KILN) $(AGENT)
	KILN=$(abspath $(KILN)) AGENT=$(abspath $(filter %.so,$(AGENT))) BUILD=$(BUILD) \
		tests/lib/run $(JOBS) $(AGENT_TESTS)

browser: $(KILN) $(OUT)/data/done
	@tools/deps.sh browser test
	KILN=$(abspath $(KILN)) DATA=$(abspath $(OUT)/data) \
		prove --failures --comments --exec '' -j$(JOBS) $(wildcard tests/browser/run*)

soak: $(KILN) $(OUT)/data/done build/libkiln.so $(OUT)/tests/unit/test_store_day
	@tools/deps.sh browser test
	SOAK=$(SECONDS) KILN=$(abspath $(KILN)) DATA=$(abspath $(OUT)/data) \
		prove --failures --comments --exec '' tests/browser/run_soak
	SOAK=$(SECONDS) AGENT=$(abspath build/libkiln.so) prove --failures --comments --exec '' tests/live/agent_soak
	SOAK=$(SECONDS) prove --failures --comments --exec '' $(OUT)/tests/unit/test_store_day

$(OUT)/data/done: $(OUT)/tests/data/gen $(wildcard tests/data/*)
	tests/data/make $(OUT)/tests/data/gen $(@D)
	@touch $@

# Real servers, large to install; the reports must be those of go tool pprof.
live: build/kiln build/libkiln.so build/release/examples/shop
	@tools/deps.sh live
	KILN=$(abspath build/kiln) prove --failures --comments --exec '' \
		"tests/live/run" :: etcd influxdb prometheus gperftools
	KILN=$(abspath build/kiln) AGENT=$(abspath build/libkiln.so) prove --failures --comments --exec '' tests/live/agent
	KILN=$(abspath build/kiln) SHOP=$(abspath build/release/examples/shop) prove --failures --comments --exec '' tests/live/scrape

# As root.
image: build/kiln
	@tools/deps.sh image
	tools/image.sh build/image
	CONTAINERS_STORAGE_CONF=$(abspath build/image/storage.conf) KILN=$(abspath build/kiln) \
		prove --failures --comments --exec '' tests/image/run

lint: $(OUT)/src/agent/signal.o
	@tools/deps.sh lint
	@echo "  signal calls"; tools/signal_calls.sh $<
	@echo "  layers"; tools/layers.sh
	@echo "  clang-format"; clang-format --dry-run -Werror $(C_FILES)
	@echo "  cppcheck"; cppcheck -q -j$(JOBS) --std=c11 --language=c -Isrc -D_GNU_SOURCE -D__x86_64__ \
		--enable=warning,performance,portability --inline-suppr --error-exitcode=1 \
		--suppressions-list=tools/cppcheck.txt $(SRC) $(wildcard tests/*/*.c tools/*.c)

format:
	clang-format -i $(C_FILES)

fuzz:
	@tools/deps.sh build fuzz
	@$(MAKE) --no-print-directory BUILD=fuzz fuzz-run

fuzz-run: $(FUZZ) $(OUT)/data/done
	tests/fuzz/run $(SECONDS) $(OUT)/data $(FUZZ)

bench:
	@tools/deps.sh build bench browser
	@$(MAKE) --no-print-directory build/kiln build/libkiln.so \
		$(addprefix build/release/tests/bench/,gen limit decode measure serve_load store_load fleet_load agent_dump agent_cost interrupts) \
		build/release/tests/unit/test_regress
	tests/bench/run.py --kiln build/kiln $(if $(QUICK),--quick)
	tests/bench/shell.py --kiln build/kiln $(if $(QUICK),--quick)
	tests/bench/web build/kiln build/release/tests/bench build/bench $(if $(QUICK),quick)
	tests/bench/timeline build/kiln build/release/tests/bench build/bench $(if $(QUICK),quick)
	tests/bench/serve.py --kiln build/kiln $(if $(QUICK),--quick)
	tests/bench/fleet.py --kiln build/kiln $(if $(QUICK),--quick)
	tests/bench/serve_attack.py --kiln build/kiln $(if $(QUICK),--quick)
	SIMULATIONS=$(if $(QUICK),1,10) build/release/tests/unit/test_regress
	tests/bench/agent.py --agent build/libkiln.so --suite ../shared/bench/runtime --work build/bench/runtime $(if $(QUICK),--quick)

man: $(MAN)
# A page ends with a table, printed by who has it.
TAIL_kiln-agent.7 := tools/settings.sh
TAIL_kiln-api.7 := build/kiln serve --scdoc-api
TAIL_kiln-serve.5 := build/kiln serve --scdoc-keys
TAIL_kubectl-kiln.1 := build/kiln kubectl --scdoc
build/man/%: man/%.scd build/kiln
	@mkdir -p $(@D)
	{ cat $<; $(or $(TAIL_$*),\
		build/kiln $(filter-out kiln,$(patsubst kiln-%,%,$(basename $*))) --scdoc); } | scdoc > $@

install: build/kiln build/libkiln.so build/libkiln.a build/libkiln-static.a man
	install -D -t $(DESTDIR)$(PREFIX)/bin build/kiln
	install -D -m 644 build/libkiln.so $(DESTDIR)$(PREFIX)/lib/libkiln.so.0
	ln -sf libkiln.so.0 $(DESTDIR)$(PREFIX)/lib/libkiln.so
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/lib build/libkiln.a build/libkiln-static.a
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/include include/kiln.h
	install -d $(DESTDIR)$(PREFIX)/lib/pkgconfig
	sed 's|@PREFIX@|$(PREFIX)|; s|@VERSION@|$(VERSION)|' tools/kiln.pc.in \
		> $(DESTDIR)$(PREFIX)/lib/pkgconfig/kiln.pc
	for name in kubectl-kiln kubectl-profefe kubectl_complete-kiln kubectl_complete-profefe kprofefe; do \
		ln -sf kiln $(DESTDIR)$(PREFIX)/bin/$$name; done
	$(if $(PPROF),ln -sf kiln $(DESTDIR)$(PREFIX)/bin/pprof)
	$(foreach s,1 5 7,install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/man/man$s $(filter %.$s,$(MAN));)
	install -D -m 644 tools/completion.bash \
		$(DESTDIR)$(PREFIX)/share/bash-completion/completions/kiln

clean:
	rm -rf build

.DELETE_ON_ERROR:
.PHONY: all deps run test check check-rest check-serve check-agent check-kube kube-apiserver browser soak live image lint format fuzz fuzz-run bench man install clean
-include $(OBJ:.o=.d) $(AGENT_ALL:.o=.d) $(wildcard $(OUT)/tests/*/*.d $(OUT)/tools/*.d)
