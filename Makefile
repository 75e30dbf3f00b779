# forewarp: build, test, install. `make` builds build/forewarp; see README.md.
#
#   make            the program and the library        make check    all tests (no GPU)
#   make deps       missing Debian packages            make lint     format, layers, sizes
#   make demo       deps, build, tune one example      make bench    the performance tables
#   make fuzz       fuzz the reader for 60 s           make install  under PREFIX, DESTDIR
#   make unit MODULES="arith ir"                       make format   clang-format everything
#
#   SAN=1           address and undefined-behaviour sanitizers, in build-san/
#   WERROR=1        warnings are errors
#   B=DIR           build there; CC, CFLAGS, CPPFLAGS, LDFLAGS as usual
#   V=1             show the commands

B        ?= build$(if $(SAN),-san)
CC       ?= cc
CFLAGS   ?= $(if $(SAN),-O1,-O2) -g
PREFIX   ?= /usr/local
PYTHON   ?= $(if $(wildcard /usr/bin/python3),/usr/bin/python3,python3)
VERSION  := 0.1.0

PKGS     := sqlite3 jansson zlib OpenCL lapacke isl
# What `make deps` installs: see tools/deps.
DEBS     := gcc make pkg-config libsqlite3-dev libjansson-dev zlib1g-dev \
            ocl-icd-opencl-dev liblapacke-dev libisl-dev pocl-opencl-icd libcmocka-dev clang-format clang \
            python3-numpy man-db

WARN     := -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
            -Wwrite-strings -Wundef $(if $(WERROR),-Werror)
, := ,
# With its sanitizers gcc 12 takes vsnprintf(NULL, 0, ...) for a mistake.
SANITIZE := $(if $(SAN),-fsanitize=address$(,)undefined -fno-omit-frame-pointer \
            -Wno-format-truncation)
# OpenCL's functions are named 3.0; only those of 1.2 are needed.
LANGUAGE := -std=c11 -D_GNU_SOURCE -DCL_TARGET_OPENCL_VERSION=300 \
            -DFW_VERSION='"$(VERSION)"' -fvisibility=hidden -Isrc -Iinclude
COMPILE  := $(CC) $(LANGUAGE) $(shell pkg-config --cflags $(PKGS) 2>/dev/null) $(WARN) \
            $(CPPFLAGS) $(CFLAGS) $(SANITIZE)
LIBS     := $(shell pkg-config --libs $(PKGS) 2>/dev/null) -ldl -lm -lpthread

SRC      := $(sort $(wildcard src/*/*.c))
LIBSRC   := $(filter-out src/cli/main.c,$(SRC))
OBJ      := $(SRC:%.c=$(B)/%.o)
LIBOBJ   := $(LIBSRC:%.c=$(B)/%.o)
MODULES  ?= *
Q        := $(if $(V),,@)
TESTS    := $(patsubst %.c,$(B)/%,$(sort $(wildcard test/*/test_*.c)))
UNIT     := $(patsubst %.c,$(B)/%,$(sort $(wildcard $(MODULES:%=test/%/test_*.c))))
SCRIPTS  := $(sort $(wildcard test/cli/*.sh))
FORMATTED = $(sort $(wildcard src/*/*.[ch] include/*.h test/*/*.[ch] bench/*.[ch]))
FORMATTER ?= $(firstword $(wildcard /usr/bin/clang-format-14) clang-format)
FUZZ_SECONDS ?= 60

.PHONY: all lib tests check unit lint format deps demo bench install uninstall clean fuzz
.PHONY: force
.DELETE_ON_ERROR:
all: $(B)/forewarp

# Without its libraries nothing can be built: say so before the compiler does.
ifneq ($(filter-out deps demo format lint clean uninstall,$(or $(MAKECMDGOALS),all)),)
ifneq ($(shell pkg-config --exists $(PKGS) 2>/dev/null && echo found),found)
$(error $(PKGS): pkg-config does not find all of these libraries: run `make deps`)
endif
endif

lib: $(B)/libforewarp.a
tests: $(TESTS)

# Changes when the compiler or its options do, and everything is then built again.
FLAGS := $(COMPILE) $(LDFLAGS) $(LIBS)
$(B)/flags: force
	@mkdir -p $(@D)
	@echo '$(subst ','\'',$(FLAGS))' | cmp -s - $@ || echo '$(subst ','\'',$(FLAGS))' >$@

$(B)/%.o: %.c $(B)/flags
	@mkdir -p $(@D)
	$(if $(V),,@echo '  CC   $<')
	$(Q)$(COMPILE) -MMD -MP -c -o $@ $<

# Its inner loops run along rows: vector instructions halve its time.
$(B)/src/model/gp.o: CFLAGS += -O3

$(B)/libforewarp.a: $(LIBOBJ)
	@rm -f $@
	$(if $(V),,@echo '  AR   $@')
	$(Q)ar rcs $@ $^

$(B)/forewarp: $(B)/src/cli/main.o $(B)/libforewarp.a
	$(if $(V),,@echo '  LD   $@')
	$(Q)$(COMPILE) $(LDFLAGS) -o $@ $^ $(LIBS)

$(B)/test/%: test/%.c $(B)/libforewarp.a
	@mkdir -p $(@D)
	$(if $(V),,@echo '  LD   $@')
	$(Q)$(COMPILE) -MMD -MP $(LDFLAGS) -o $@ $< $(B)/libforewarp.a -lcmocka $(LIBS)

-include $(OBJ:.o=.d) $(TESTS:=.d) $(wildcard $(B)/bench/*.d)

# A test that does not build is a failed test, so the building goes on too.
check:
	@$(MAKE) --no-print-directory -k all tests || true
	@FOREWARP=$(abspath $(B))/forewarp PYTHON=$(PYTHON) tools/check $(TESTS) $(SCRIPTS)

unit:
	@$(MAKE) --no-print-directory -k $(B)/forewarp $(UNIT) || true
	@FOREWARP=$(abspath $(B))/forewarp tools/check $(UNIT)

lint:
	tools/depcheck
	tools/sizecheck
	@echo '$(FORMATTER) --dry-run -Werror: $(words $(FORMATTED)) files'
	@$(FORMATTER) --dry-run -Werror $(FORMATTED)

format:
	@$(FORMATTER) -i $(FORMATTED)

deps:
	@tools/deps $(DEBS)

demo: deps
	@$(MAKE) --no-print-directory all
	$(B)/forewarp tune examples/jacobi2d.fw -s N=2048,M=2048 --device opencl:0 \
	    --budget 30s --fresh --store $(B)/demo/trials.db --out $(B)/demo

BENCHES := $(patsubst %.c,$(B)/%,$(wildcard bench/*.c))
$(B)/bench/%: bench/%.c $(B)/libforewarp.a
	@mkdir -p $(@D)
	$(if $(V),,@echo '  LD   $@')
	$(Q)$(COMPILE) -O3 -march=native -fopenmp -MMD -MP $(LDFLAGS) -o $@ $< $(B)/libforewarp.a $(LIBS)

bench: $(B)/forewarp $(BENCHES)
	FOREWARP=$(abspath $(B))/forewarp B=$(B) bench/run

fuzz: $(B)/fuzz/fuzz_parse
	@mkdir -p $(B)/fuzz/corpus
	$(B)/fuzz/fuzz_parse -max_total_time=$(FUZZ_SECONDS) -timeout=10 -rss_limit_mb=4096 \
	    -artifact_prefix=$(B)/fuzz/ -print_final_stats=1 $(B)/fuzz/corpus examples

FUZZED := $(wildcard src/base/*.c src/arith/*.c src/ir/*.c)
$(B)/fuzz/fuzz_parse: test/fuzz/fuzz_parse.c $(FUZZED) $(wildcard src/*/*.h src/*/*.def)
	@mkdir -p $(@D)
	clang $(LANGUAGE) $(WARN) -O1 -g -fsanitize=fuzzer,address -o $@ $< $(FUZZED) -lm

# One row an installed file: where it goes, and what it is.
BIN      := $(DESTDIR)$(PREFIX)/bin
LIB      := $(DESTDIR)$(PREFIX)/lib
INCLUDE  := $(DESTDIR)$(PREFIX)/include
SHARE    := $(DESTDIR)$(PREFIX)/share
HEADERS  := $(wildcard include/*.h)
EXAMPLES := $(wildcard examples/*.fw examples/*/*.fw)
TEMPLATES := $(wildcard templates/*)
MODELS   := $(wildcard data/models/*)

$(B)/forewarp.pc: Makefile $(B)/flags
	@printf '%s\n' 'prefix=$(PREFIX)' 'libdir=$${prefix}/lib' \
	    'includedir=$${prefix}/include' '' 'Name: forewarp' \
	    'Description: compiler and auto-tuner for GPU kernels' 'Version: $(VERSION)' \
	    'Requires.private: $(PKGS)' 'Libs: -L$${libdir} -lforewarp' \
	    'Libs.private: -ldl -lm -lpthread' 'Cflags: -I$${includedir}' >$@

install: $(B)/forewarp $(B)/libforewarp.a $(B)/forewarp.pc
	install -d $(BIN) $(LIB)/pkgconfig $(INCLUDE) $(SHARE)/man/man1 \
	    $(SHARE)/forewarp/examples/fusion $(SHARE)/forewarp/templates \
	    $(SHARE)/forewarp/models $(SHARE)/doc/forewarp
	install -m 755 $(B)/forewarp $(BIN)
	install -m 644 $(B)/libforewarp.a $(LIB)
	install -m 644 $(B)/forewarp.pc $(LIB)/pkgconfig
	$(if $(HEADERS),install -m 644 $(HEADERS) $(INCLUDE))
	install -m 644 doc/forewarp.1 $(SHARE)/man/man1
	install -m 644 $(EXAMPLES) $(SHARE)/forewarp/examples
	install -m 644 $(wildcard examples/fusion/*.fws) $(SHARE)/forewarp/examples/fusion
	install -m 644 $(TEMPLATES) $(SHARE)/forewarp/templates
	install -m 644 $(MODELS) $(SHARE)/forewarp/models
	install -m 644 LICENSE README.md doc/language.md doc/problems.md doc/fusion.md \
	    $(SHARE)/doc/forewarp

uninstall:
	rm -f $(BIN)/forewarp $(LIB)/libforewarp.a $(LIB)/pkgconfig/forewarp.pc \
	    $(HEADERS:include/%=$(INCLUDE)/%) $(SHARE)/man/man1/forewarp.1
	rm -rf $(SHARE)/forewarp $(SHARE)/doc/forewarp

clean:
	rm -rf $(B)
