# forewarp: build, test, install. `make` builds build/forewarp; see README.md.
#
#   make            the program and the library        make check    all tests (no GPU)
#   make deps       missing Debian packages            make lint     format, layers, sizes
#   make demo       deps, build, tune one example      make bench    the performance tables
#   make SAN=1 ...  address and undefined-behaviour sanitizers, in build-san/

B       ?= build$(if $(SAN),-san)
CC      ?= cc
PREFIX  ?= /usr/local
PYTHON  ?= $(if $(wildcard /usr/bin/python3),/usr/bin/python3,python3)
VERSION := 0.1.0

PKGS    := sqlite3 jansson zlib OpenCL
WARN    := -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
           -Wwrite-strings -Wundef
OPT     ?= -O2 -g
ifdef SAN
OPT     := -O1 -g -fsanitize=address,undefined -fno-omit-frame-pointer
endif
CFLAGS  += -std=c11 -D_GNU_SOURCE -DCL_TARGET_OPENCL_VERSION=300 -DFW_VERSION='"$(VERSION)"' \
           -Isrc -Iinclude $(OPT) $(WARN) $(shell pkg-config --cflags $(PKGS) 2>/dev/null)
LDLIBS  := $(shell pkg-config --libs $(PKGS) 2>/dev/null) -ldl -lm -lpthread

SRC     := $(sort $(wildcard src/*/*.c))
LIBSRC  := $(filter-out src/cli/main.c,$(SRC))
OBJ     := $(SRC:%.c=$(B)/%.o)
LIBOBJ  := $(LIBSRC:%.c=$(B)/%.o)
TESTSRC := $(sort $(wildcard test/*/test_*.c))
TESTS   := $(TESTSRC:%.c=$(B)/%)

.PHONY: all lib check lint format deps demo bench install clean unit fuzz
all: $(B)/forewarp

lib: $(B)/libforewarp.a

$(B)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -MMD -MP -c -o $@ $<

$(B)/libforewarp.a: $(LIBOBJ)
	@rm -f $@
	ar rcs $@ $^

$(B)/forewarp: $(B)/src/cli/main.o $(B)/libforewarp.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(B)/test/%: test/%.c $(B)/libforewarp.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -MMD -MP $(LDFLAGS) -o $@ $< $(B)/libforewarp.a -lcmocka $(LDLIBS)

-include $(OBJ:.o=.d) $(TESTS:=.d)
