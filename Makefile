# forewarp: build, test, install. `make` builds build/forewarp; see README.md.
#
#   make            the program and the library        make check    all tests (no GPU)
#   make deps       missing packages of the system     make lint     format, layers, sizes
#                   (MPI=1: Open MPI too)
#   make demo       deps, build, tune one example      make bench    the performance tables
#   make fuzz       fuzz every reader, 60 s each       make install  under PREFIX, DESTDIR
#   make soak       10,000 trials without growth; faults of every call; many more points
#   make python     the Python package, in build/python (pip install . installs it)
#   make unit MODULES="arith ir"                       make format   clang-format everything
#
#   SAN=1           address and undefined-behaviour sanitizers, in build-san/
#   SAN=thread      the sanitizer of threads, in build-thread/
#   WERROR=1        warnings are errors
#   B=DIR           build there; CC, CFLAGS, CPPFLAGS, LDFLAGS, PREFIX, LIBDIR, DESTDIR as usual
#   MPI=            leaves out MPI (forewarp tune --mpi), which is built in where it is found
#   V=1             show the commands

B        ?= build$(if $(SAN),-$(SAN:1=san))
CC       ?= cc
CFLAGS   ?= $(if $(SAN),-O1,-O2) -g
PREFIX   ?= /usr/local
LIBDIR   ?= $(PREFIX)/lib
PYTHON   ?= $(if $(wildcard /usr/bin/python3),/usr/bin/python3,python3)
VERSION  := 0.2.0

# MPI, for forewarp tune --mpi: built in where it is found; MPI= leaves it out.
MPI      ?= $(shell pkg-config --exists mpi-c && echo mpi-c)
PKGS     := sqlite3 jansson zlib OpenCL lapacke isl gmp
# Where the C library has no argp (musl, macOS), argp-standalone has it.
ARGP     ?= $(shell echo 'int argp_parse(void); int main(void) {return argp_parse();}' | \
                $(CC) -xc - -o /dev/null 2>/dev/null || echo -largp)

# A row of a table (a rule, a strategy, a device kind) has functions with all parameters of their kind.
WARN     := -Wall -Wextra -Wno-missing-field-initializers -Wno-unused-parameter -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
            -Wwrite-strings -Wundef $(if $(WERROR),-Werror)
, := ,
# With its sanitizers gcc 12 takes vsnprintf(NULL, 0, ...) for a mistake.
SANITIZE := $(if $(SAN),-fsanitize=$(patsubst 1,address$(,)undefined,$(SAN)) -fno-omit-frame-pointer \
            -Wno-format-truncation)
# OpenCL's functions are named 3.0; only those of 1.2 are needed.
LANGUAGE := -std=c11 -D_GNU_SOURCE -DCL_TARGET_OPENCL_VERSION=300 \
            -DFW_VERSION='"$(VERSION)"' -fPIC -fvisibility=hidden -Isrc -Iinclude
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

# Whoever says nothing about it builds on all cores.
PARALLEL = $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell nproc 2>/dev/null || echo 2))

.PHONY: site python print-libs all lib tests check unit lint format deps demo bench benches install uninstall clean fuzz soak
.PHONY: force
.DELETE_ON_ERROR:
all: $(B)/forewarp

# Without its libraries nothing can be built: say so before the compiler does.
ifneq ($(filter-out deps demo format lint clean uninstall site,$(or $(MAKECMDGOALS),all)),)
ifneq ($(shell pkg-config --exists $(PKGS) 2>/dev/null && echo found),found)
MISSING  := $(foreach p,$(PKGS),$(shell pkg-config --exists $p 2>/dev/null || echo $p))
$(error pkg-config does not find $(MISSING): `make deps` installs what is missing)
endif
endif

lib: $(B)/lib/libforewarp.a $(B)/lib/libforewarp.so
tests: $(TESTS)

# Changes when the compiler or its options do, and everything is then built again.
FLAGS := $(COMPILE) $(LDFLAGS) $(LIBS) $(MPI)
$(B)/flags: force
	@mkdir -p $(@D)
	@echo '$(subst ','\'',$(FLAGS))' | cmp -s - $@ || echo '$(subst ','\'',$(FLAGS))' >$@

$(B)/%.o: %.c $(B)/flags
	@mkdir -p $(@D)
	$(if $(V),,@echo '  CC   $<')
	$(Q)$(COMPILE) $(EXTRA) -MMD -MP -c -o $@ $<

# The texts of host programs, kernels, the reference's arithmetic and reports, as C takes them in.
AS_STRINGS = @mkdir -p $(@D) && sed 's/[\\"]/\\&/g; s/.*/"&\\n",/' $< >$@
HOSTS := $(patsubst src/%.txt,$(B)/text/%.inc,$(wildcard src/api/host/*.txt src/emit/cuda/*.txt))
DOUBT := $(B)/text/emit/doubt.inc
$(B)/text/%.inc: src/%.txt Makefile
	$(AS_STRINGS)
PAGE := $(patsubst src/%,$(B)/text/%.inc,$(wildcard src/report/*.js src/report/*.css))
$(B)/text/%.inc: src/% Makefile
	$(AS_STRINGS)
$(B)/src/api/host_text.o $(B)/src/api/host_tables.o $(B)/src/emit/doubt.o $(B)/src/emit/head.o $(B)/src/report/page.o: \
	EXTRA := -I$(B)/text
$(B)/src/report/page.o: $(PAGE)
ifneq ($(MPI),)
MPI_PKG := $(if $(filter 1,$(MPI)),mpi-c,$(MPI))
$(B)/src/cli/mpi.o: EXTRA := -DFW_MPI $(shell pkg-config --cflags $(MPI_PKG))
MPI_LIBS := $(shell pkg-config --libs $(MPI_PKG))
endif
$(B)/src/api/host_text.o $(B)/src/api/host_tables.o $(B)/src/emit/head.o: $(HOSTS)
$(B)/src/emit/doubt.o: $(DOUBT)

# Their inner loops run along rows, a fraction of the time as vectors: nobody asks for errno
# or for exceptions of floating point there, which would keep them from it.
ifndef SAN
$(B)/src/model/gp.o $(B)/src/model/network.o $(B)/src/model/trees.o: EXTRA := -O3 -fno-math-errno -fno-trapping-math
endif

$(B)/libforewarp.a: $(LIBOBJ)
	@rm -f $@
	$(if $(V),,@echo '  AR   $@')
	$(Q)ar rcs $@ $^

# The libraries that are installed: what include/forewarp.h declares is all that others see.
# The number after .so changes when a program must be compiled again.
SONAME := libforewarp.so.0
SHIPPED := $(filter-out $(B)/src/cli/% $(B)/src/report/% $(B)/src/evaluate/%,$(LIBOBJ))
$(B)/lib/libforewarp.a: $(SHIPPED)
	@mkdir -p $(@D)
	$(if $(V),,@echo '  AR   $@')
	$(Q)$(LD) -r -o $(@D)/forewarp.o $^ && \
	    objcopy --wildcard --keep-global-symbol='fw_*' $(@D)/forewarp.o
	@rm -f $@
	$(Q)ar rcs $@ $(@D)/forewarp.o

$(B)/lib/libforewarp.so: $(SHIPPED)
	@mkdir -p $(@D)
	$(if $(V),,@echo '  LD   $@')
	@echo '{ global: fw_*; local: *; };' >$(@D)/forewarp.map
	$(Q)$(COMPILE) $(LDFLAGS) -shared -Wl,-soname,$(SONAME) \
	    -Wl,--version-script=$(@D)/forewarp.map -o $@ $^ $(LIBS)

$(B)/forewarp: $(B)/src/cli/main.o $(B)/libforewarp.a
	$(if $(V),,@echo '  LD   $@')
	$(Q)$(COMPILE) $(LDFLAGS) -o $@ $^ $(LIBS) $(ARGP) $(MPI_LIBS)

$(B)/test/%: test/%.c $(B)/libforewarp.a
	@mkdir -p $(@D)
	$(if $(V),,@echo '  LD   $@')
	$(Q)$(COMPILE) -MMD -MP $(LDFLAGS) -o $@ $< $(B)/libforewarp.a -lcmocka $(LIBS) $(ARGP) $(MPI_LIBS)

# The Python package, to be tried with PYTHONPATH=$(B)/python; `pip install .` does the same.
print-libs:
	@echo $(LIBS)

python: lib $(B)/forewarp
	@FOREWARP_BUILD=$(B) $(PYTHON) setup.py --quiet build --build-base $(B)/python-build --build-lib $(B)/python

# The pages as a site; `pip install mkdocs-material` provides what makes it.
site:
	tools/site $(B)/site

-include $(OBJ:.o=.d) $(TESTS:=.d) $(wildcard $(B)/bench/*.d)

# A test that does not build is a failed test, so the building goes on too.
check:
	@$(MAKE) $(PARALLEL) --no-print-directory -k all tests $(if $(SAN),,python) || true
	@FOREWARP=$(abspath $(B))/forewarp PYTHON=$(PYTHON) tools/check $(TESTS) $(SCRIPTS)

unit:
	@$(MAKE) $(PARALLEL) --no-print-directory -k $(B)/forewarp $(UNIT) || true
	@FOREWARP=$(abspath $(B))/forewarp tools/check $(UNIT)

lint:
	tools/depcheck
	tools/sizecheck
	@echo '$(FORMATTER) --dry-run -Werror: $(words $(FORMATTED)) files'
	@$(FORMATTER) --dry-run -Werror $(FORMATTED)

format:
	@$(FORMATTER) -i $(FORMATTED)

deps:
	@tools/deps $(if $(filter 1,$(MPI)),all mpi,all)

demo: deps
	@$(MAKE) $(PARALLEL) --no-print-directory all
	$(B)/forewarp tune examples/jacobi2d.fw -s N=2048,M=2048 --device opencl:0 \
	    --budget 30s --fresh --store $(B)/demo/trials.db --out $(B)/demo

BENCHES := $(patsubst %.c,$(B)/%,$(wildcard bench/*.c))
$(B)/bench/%: bench/%.c $(B)/libforewarp.a
	@mkdir -p $(@D)
	$(if $(V),,@echo '  LD   $@')
	$(Q)$(COMPILE) -O3 -march=native -fopenmp -MMD -MP $(LDFLAGS) -o $@ $< $(B)/libforewarp.a $(LIBS) $(ARGP) $(MPI_LIBS)

benches: $(BENCHES)

bench: $(B)/forewarp benches
	FOREWARP=$(abspath $(B))/forewarp B=$(B) bench/run

# A long search without growth, every fault of test/cli/faults.sh, and what `make check` tries
# only some of: points of the examples, covers and granularities of the scripts.
SOAK_TRIALS ?= 10000
SOAK_POINTS ?= 8
LONG := $(B)/test/problem/test_candidates $(B)/test/derive/test_derive
soak: $(B)/forewarp $(LONG)
	FOREWARP=$(abspath $(B))/forewarp PYTHON=$(PYTHON) test/soak.sh $(SOAK_TRIALS)
	FW_FAULTS=all FOREWARP=$(abspath $(B))/forewarp PYTHON=$(PYTHON) sh test/cli/faults.sh
	FW_POINTS=$(SOAK_POINTS) FUSE_ALL=1 FOREWARP=$(abspath $(B))/forewarp PYTHON=$(PYTHON) \
	    TEST_LIMIT=7200 tools/check $(LONG)

# Every reader under libFuzzer, FUZZ_SECONDS each; a crash leaves its input in build-fuzz/.
# Without clang the mutations of test_readers do: FW_FUZZ_SECONDS=n build-san/test/fuzz/test_readers.
READERS ?= $(shell sed -n 's/^    {"\([a-z0-9]*\)", read_.*/\1/p' test/fuzz/readers.h)
fuzz:
	@$(MAKE) --no-print-directory B=build-fuzz CC=clang \
	    CFLAGS="-O1 -g -fsanitize=fuzzer-no-link,address" build-fuzz/libforewarp.a
	clang $(LANGUAGE) $(WARN) -O1 -g -fsanitize=fuzzer,address -o build-fuzz/fuzz \
	    test/fuzz/fuzz.c build-fuzz/libforewarp.a $(LIBS) $(ARGP) $(MPI_LIBS)
	@set -e; for reader in $(READERS); do \
	    echo "== $$reader"; \
	    mkdir -p build-fuzz/corpus-$$reader build-fuzz/seeds-$$reader; \
	    cp $$(sed -n "s/^    {\"$$reader\", read_[a-z]*, *\"\(.*\)\"},/\1/p" test/fuzz/readers.h) \
	        build-fuzz/seeds-$$reader; \
	    FW_READER=$$reader build-fuzz/fuzz -max_total_time=$(FUZZ_SECONDS) -timeout=10 \
	        -rss_limit_mb=4096 -artifact_prefix=build-fuzz/$$reader- -print_final_stats=1 \
	        build-fuzz/corpus-$$reader build-fuzz/seeds-$$reader; \
	done

# One row an installed file: where it goes, and what it is.
BIN      := $(DESTDIR)$(PREFIX)/bin
LIB      := $(DESTDIR)$(LIBDIR)
INCLUDE  := $(DESTDIR)$(PREFIX)/include
SHARE    := $(DESTDIR)$(PREFIX)/share
HEADERS  := $(wildcard include/*.h)
EXAMPLES := $(wildcard examples/*.fw examples/performance/*.fw)
TEMPLATES := $(wildcard templates/*)
MODELS   := $(wildcard data/models/*)
HEURISTICS := $(wildcard heuristics/*.fwh)
STUDIES  := h200 pocl

$(B)/forewarp.pc: force
	@mkdir -p $(@D)
	@printf '%s\n' 'prefix=$(PREFIX)' 'libdir=$(LIBDIR:$(PREFIX)/%=$${prefix}/%)' \
	    'includedir=$${prefix}/include' '' 'Name: forewarp' \
	    'Description: compiler and auto-tuner for GPU kernels' 'Version: $(VERSION)' \
	    'Requires.private: $(PKGS)' 'Libs: -L$${libdir} -lforewarp' \
	    'Libs.private: -ldl -lm -lpthread' 'Cflags: -I$${includedir}' >$@

# find_package(forewarp) of CMake; paths are relative, so an installation can be moved.
UP       = $(shell realpath -m --relative-to=$(LIBDIR)/cmake/forewarp $1)
$(B)/cmake/forewarpConfig.cmake: force
	@mkdir -p $(@D)
	@printf '%s\n' '# forewarp $(VERSION): the target forewarp::forewarp' \
	    'if(NOT TARGET forewarp::forewarp)' '  add_library(forewarp::forewarp SHARED IMPORTED)' \
	    '  set_target_properties(forewarp::forewarp PROPERTIES' \
	    '    IMPORTED_LOCATION "$${CMAKE_CURRENT_LIST_DIR}/../../$(SONAME)"' \
	    '    IMPORTED_SONAME $(SONAME)' \
	    '    INTERFACE_INCLUDE_DIRECTORIES "$${CMAKE_CURRENT_LIST_DIR}/$(call UP,$(PREFIX)/include)")' \
	    'endif()' >$@
	@printf '%s\n' 'set(PACKAGE_VERSION $(VERSION))' \
	    'if(PACKAGE_FIND_VERSION VERSION_GREATER PACKAGE_VERSION)' '  set(PACKAGE_VERSION_COMPATIBLE FALSE)' \
	    'else()' '  set(PACKAGE_VERSION_COMPATIBLE TRUE)' \
	    '  string(COMPARE EQUAL "$${PACKAGE_FIND_VERSION}" "$(VERSION)" PACKAGE_VERSION_EXACT)' 'endif()' \
	    >$(@D)/forewarpConfigVersion.cmake

# Pages are installed with the links that lead somewhere there; of others the text stays.
SHOWN    := s,\]\(((\.\./)?)examples/embed\),](\1../../forewarp/embed),g; \
            s,\]\(((\.\./)?)(examples|templates)([^)]*)\),](\1../../forewarp/\3\4),g; \
            s,\[([^]]*)\]\((\.\./)?(bench|data|src|test|doc/forewarp\.1|ARCHITECTURE|HACKING|CONTRIBUTING)[^)]*\),\1,g

$(B)/completion.%: $(B)/forewarp
	$(B)/forewarp help --completion $* >$@

install: $(B)/forewarp lib $(B)/forewarp.pc $(B)/cmake/forewarpConfig.cmake $(B)/completion.bash $(B)/completion.zsh
	install -d $(SHARE)/bash-completion/completions $(SHARE)/zsh/site-functions
	install -m 644 $(B)/completion.bash $(SHARE)/bash-completion/completions/forewarp
	install -m 644 $(B)/completion.zsh $(SHARE)/zsh/site-functions/_forewarp
	install -d $(BIN) $(LIB)/pkgconfig $(LIB)/cmake/forewarp $(INCLUDE) $(SHARE)/man/man1 \
	    $(SHARE)/forewarp/examples/fusion $(SHARE)/forewarp/examples/an5d \
	    $(SHARE)/forewarp/embed $(SHARE)/forewarp/templates \
	    $(SHARE)/forewarp/models $(SHARE)/forewarp/heuristics $(SHARE)/doc/forewarp/doc
	install -m 755 $(B)/forewarp $(BIN)
	install -m 644 $(B)/lib/libforewarp.a $(LIB)
	install -m 755 $(B)/lib/libforewarp.so $(LIB)/$(SONAME)
	ln -sf $(SONAME) $(LIB)/libforewarp.so
	install -m 644 $(B)/forewarp.pc $(LIB)/pkgconfig
	install -m 644 $(B)/cmake/forewarpConfig.cmake $(B)/cmake/forewarpConfigVersion.cmake $(LIB)/cmake/forewarp
	$(if $(HEADERS),install -m 644 $(HEADERS) $(INCLUDE))
	install -m 644 doc/forewarp.1 $(SHARE)/man/man1
	install -m 644 $(EXAMPLES) $(SHARE)/forewarp/examples
	install -m 755 examples/stencils/generate $(SHARE)/forewarp/examples
	install -d $(SHARE)/forewarp/examples/python
	install -m 644 examples/python/jacobi2d.ipynb $(SHARE)/forewarp/examples/python
	install -m 644 $(wildcard examples/an5d/*.fw) $(SHARE)/forewarp/examples/an5d
	install -m 644 $(wildcard examples/embed/*.c examples/embed/*.fw) examples/embed/Makefile \
	    $(SHARE)/forewarp/embed
	install -m 644 $(wildcard examples/fusion/*.fws) $(SHARE)/forewarp/examples/fusion
	install -m 644 $(TEMPLATES) $(SHARE)/forewarp/templates
	install -m 644 $(MODELS) $(SHARE)/forewarp/models
	install -m 644 $(HEURISTICS) $(SHARE)/forewarp/heuristics
	set -e; for study in $(STUDIES); do \
	    install -d $(SHARE)/forewarp/stencils/$$study; \
	    install -m 644 data/stencils/$$study/loading.csv $(SHARE)/forewarp/stencils/$$study; \
	done
	install -m 644 LICENSE $(SHARE)/doc/forewarp
	set -e; for page in README.md CHANGELOG.md SECURITY.md $(wildcard doc/*.md); do \
	    sed -E '$(SHOWN)' $$page >$(SHARE)/doc/forewarp/$$page; \
	    chmod 644 $(SHARE)/doc/forewarp/$$page; \
	done

uninstall:
	rm -f $(BIN)/forewarp $(LIB)/libforewarp.a $(LIB)/libforewarp.so* $(LIB)/pkgconfig/forewarp.pc \
	    $(HEADERS:include/%=$(INCLUDE)/%) $(SHARE)/man/man1/forewarp.1 \
	    $(SHARE)/bash-completion/completions/forewarp $(SHARE)/zsh/site-functions/_forewarp
	rm -rf $(SHARE)/forewarp $(SHARE)/doc/forewarp $(LIB)/cmake/forewarp

clean:
	rm -rf $(B)
