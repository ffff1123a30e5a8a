# SPDX-License-Identifier: BSD-2-Clause
# make            build/sfbpf and its names          make V=1     show the commands
# make check      unit tests (no root)               make SAN=1   with ASan and UBSan: build-san/
#                                                    make STATIC=1  without shared libraries
# make bench      what it costs, in ratios (root; make bench-quick: in a minute)
# make install    PREFIX=/usr/local DESTDIR=         make OUTPUT=dir        make deb
# make ARCH=arm64 CROSS_COMPILE=aarch64-linux-gnu- STATIC=1
#                 for AArch64, in build-arm64/ (scripts/deps.sh arm64)

V ?= 0
SAN ?= 0
PREFIX ?= /usr/local
ARCH ?= $(shell uname -m | sed 's/x86_64/x86/; s/aarch64/arm64/')
OUTPUT ?= $(if $(filter 1,$(SAN)),build-san,$(if $(CROSS_COMPILE),build-$(ARCH),build))
O := $(OUTPUT)
# The BPF programs and what includes them may be in a folder of their own: the programs of another
# compiler, with all else as it is (tests/live/check_compilers.py).
BPF_OUTPUT ?= $(O)
B := $(BPF_OUTPUT)

CC ?= gcc
CSTD ?= gnu11
ifeq ($(origin CLANG),undefined)
CLANG := $(shell scripts/find-clang.sh)
endif
# Ubuntu's in the PATH only works where the running kernel's own is installed.
BPFTOOL ?= $(or $(shell for t in bpftool /usr/sbin/bpftool /usr/lib/linux-tools/*/bpftool; do \
	$$t version >/dev/null 2>&1 && echo $$t && break; done),bpftool)
PKG_CONFIG ?= pkg-config
ifneq ($(CROSS_COMPILE),)
# Libraries of the other architecture are below SYSROOT; the C library comes with the compiler.
SYSROOT ?= $(CURDIR)/build/sysroot-$(ARCH)
LIBDIR := $(SYSROOT)/usr/lib/$(CROSS_COMPILE:%-=%)
ifeq ($(origin CC),default)
CC := $(CROSS_COMPILE)gcc
endif
AR := $(CROSS_COMPILE)ar
PKG_CONFIG := PKG_CONFIG_LIBDIR=$(LIBDIR)/pkgconfig PKG_CONFIG_SYSROOT_DIR=$(SYSROOT) $(PKG_CONFIG)
CROSS_CFLAGS := -isystem $(SYSROOT)/usr/include
CROSS_LDFLAGS := -L$(LIBDIR) -Wl,-rpath-link,$(SYSROOT)/lib/$(CROSS_COMPILE:%-=%)
endif
# liblzma unpacks .gnu_debugdata; without it such files have the names that are left in them.
LZMA := $(shell $(PKG_CONFIG) --exists liblzma 2>/dev/null && echo liblzma)
# libdw reads inlined frames and lines (--inline, --lines), libdebuginfod fetches debug files
# (--debuginfod), libzstd unpacks sections.
DW := $(shell $(PKG_CONFIG) --exists libdw 2>/dev/null && echo libdw)
ZSTD := $(shell $(PKG_CONFIG) --exists libzstd 2>/dev/null && echo libzstd)
# Zydis decodes x86-64 for rows from machine code; without it x86-64 has none of them. Debian has no
# .pc file. The agent needs libcurl, nettle (SHA-256) and libmicrohttpd; `serve` is part of builds
# with the agent.
NCURSES := ncursesw
ifneq ($(STATIC),1)
DEBUGINFOD := $(shell $(PKG_CONFIG) --exists libdebuginfod 2>/dev/null && echo libdebuginfod)
ZYDIS := $(shell echo '\#include <Zydis/Zydis.h>' | \
	$(CC) $(CROSS_CFLAGS) -E - >/dev/null 2>&1 && echo -lZydis)
AGENT := libcurl nettle libmicrohttpd
AGENT := $(shell $(PKG_CONFIG) --exists $(AGENT) 2>/dev/null && echo $(AGENT))
else
# Debian has no static libraries of these, or none that can be linked: scripts/static-libs.sh builds
# them. Without them a static sfbpf has no agent and the like. The names are those of what they
# need.
STATIC_ROOT ?= build/static-$(ARCH)
STATIC_READY := $(wildcard $(STATIC_ROOT)/ready)
ifneq ($(STATIC_READY),)
STATIC_CFLAGS := -I$(STATIC_ROOT)/include -DZYDIS_STATIC_BUILD -DZYCORE_STATIC_BUILD
STATIC_LDFLAGS := -L$(STATIC_ROOT)/lib
STATIC_LIBS := -ldebuginfod -lcurl -lmicrohttpd -lncursesw -lZydis
NCURSES :=
ZYDIS := -lZydis
AGENT := nettle openssl libnghttp2
DEBUGINFOD := openssl
endif
endif
SYM_LIBS := $(DW) $(ZSTD) $(DEBUGINFOD) $(LZMA)
# libseccomp is required in every build: the processes that read foreign files have no other
# protection from them.
LIBS := libbpf libelf zlib libseccomp $(NCURSES) inih $(SYM_LIBS) $(AGENT)
VERSION := 0.1.0

WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla
CFLAGS ?= -O2 -g
# IDIR: all of our headers are named from userspace/ or bpf/ ("rows/row.h", "sfbpf_shared.h").
override CFLAGS += -std=$(CSTD) $(WARN) -D_GNU_SOURCE -DSFBPF_VERSION='"$(VERSION)"' \
	-Iuserspace -Ibpf -I$(O) $(STATIC_CFLAGS) $(CROSS_CFLAGS) \
	$(shell $(PKG_CONFIG) --cflags $(LIBS))
override LDFLAGS += $(STATIC_LDFLAGS) $(CROSS_LDFLAGS)
override CFLAGS += $(if $(LZMA),-DHAVE_LZMA) $(if $(DW),-DHAVE_LIBDW) $(if $(ZSTD),-DHAVE_ZSTD) \
	$(if $(DEBUGINFOD),-DHAVE_DEBUGINFOD) $(if $(ZYDIS),-DHAVE_ZYDIS)
SYM_LDLIBS := $(if $(SYM_LIBS),$(shell $(PKG_CONFIG) --libs $(SYM_LIBS)))
override CFLAGS += $(if $(AGENT),-DHAVE_AGENT)
AGENT_LDLIBS := $(if $(AGENT),$(shell $(PKG_CONFIG) --libs $(AGENT)))
# STATIC=1: one file that runs without libraries (build it in an OUTPUT of its own), position
# independent as others are. base/libc_static.h says what is wrapped and why.
ifeq ($(STATIC),1)
WRAPPED := setlocale nl_langinfo wcwidth iswprint btowc wctob mblen mbtowc mbrtowc \
	wcrtomb wcsrtombs X509_get_default_cert_file X509_get_default_cert_dir
override CFLAGS += -fPIE -DSFBPF_STATIC
override LDFLAGS += -static-pie $(WRAPPED:%=-Wl,--wrap=%)
LDLIBS := $(STATIC_LIBS) $(shell $(PKG_CONFIG) --static --libs $(LIBS)) -liberty -lm -lpthread
UNIT_LDLIBS = $(LDLIBS)
else
LDLIBS := $(shell $(PKG_CONFIG) --libs $(LIBS)) $(ZYDIS) -liberty -lm -lpthread
UNIT_LDLIBS = $(SYM_LDLIBS) $(AGENT_LDLIBS) -linih -lz $(ZYDIS) -liberty -lm -lelf -lseccomp \
	-lpthread
endif
ifeq ($(SAN),1)
override CFLAGS += -fsanitize=address,undefined -fno-sanitize-recover=undefined \
	-fno-omit-frame-pointer -O1
override LDFLAGS += -fsanitize=address,undefined
endif

BPF_CFLAGS := -O2 -g -target bpf -mcpu=v3 -D__TARGET_ARCH_$(ARCH) -Wall -Wextra \
	-Wno-unused-parameter -Wno-missing-declarations \
	-Wno-gnu-variable-sized-type-not-at-end -I. -Ibpf

# What compiles: everything that it made is made again when it changes.
version_of = $(shell $(1) 2>/dev/null | head -n 1 | tr -d '\042\047\134')
CC_VERSION := $(call version_of,$(CC) --version)
CLANG_VERSION := $(call version_of,$(CLANG) --version)
CC_STAMP := $(CC) | $(CC_VERSION) | $(CFLAGS) | $(LDFLAGS) | $(LDLIBS)
BPF_STAMP := $(CLANG) | $(CLANG_VERSION) | $(BPF_CFLAGS) | $(call version_of,$(BPFTOOL) version)
ifneq ($(file <$(O)/cc.stamp),$(CC_STAMP))
.PHONY: $(O)/cc.stamp
endif
ifneq ($(file <$(B)/bpf.stamp),$(BPF_STAMP))
.PHONY: $(B)/bpf.stamp
endif

ifeq ($(V),1)
Q :=
msg = @true
else
Q := @
# make -s says nothing.
msg = $(if $(findstring s,$(firstword -$(MAKEFLAGS))),@true,@printf '  %-7s %s\n' $(1) $(2))
endif

# core: readers, tables, symbols, profile, outputs, views, and parts of kern; no libbpf, no ncurses,
# so the unit tests need neither.
TERM_SRC := userspace/tui/term.c
KERN_CORE_SRC := $(patsubst %,userspace/kern/%.c,irq_code kernel_names ksymbols load_queue refusal \
	events event_filter event_regs perf_event tracepoint)
CORE_DIRS := base worker elf paths files languages rows codewalk readers tables symtab debuginfo \
	jit sym prof out
APP_DIRS := kern cli report inspect serve tools
CORE_SRC := $(sort $(wildcard $(CORE_DIRS:%=userspace/%/*.c))) \
	$(filter-out $(TERM_SRC),$(sort $(wildcard userspace/tui/*.c userspace/tui/views/*.c))) \
	$(KERN_CORE_SRC)
APP_SRC := $(TERM_SRC) $(filter-out $(KERN_CORE_SRC),\
	$(sort $(wildcard $(APP_DIRS:%=userspace/%/*.c))))
AGENT_SRC := $(sort $(wildcard userspace/agent/*.c))
ifeq ($(AGENT),)
APP_SRC := $(filter-out userspace/tools/agent%.c userspace/serve/%.c \
	userspace/report/read_clickhouse.c,$(APP_SRC))
AGENT_SRC :=
endif
BPF_SRC := $(sort $(wildcard bpf/*.bpf.c))
UNIT_SRC := $(sort $(wildcard tests/unit/test_*.c))
ifeq ($(AGENT),)
UNIT_SRC := $(filter-out tests/unit/test_agent%.c,$(UNIT_SRC))
endif
UNIT_HELP := $(sort $(filter-out tests/unit/test_%,$(wildcard tests/unit/*.c)))

CORE_OBJ := $(CORE_SRC:%.c=$(O)/%.o)
KERN_SRC := $(filter userspace/kern/%,$(APP_SRC))
KERN_OBJ := $(KERN_SRC:%.c=$(B)/%.o)
APP_OBJ := $(KERN_OBJ) $(patsubst %.c,$(O)/%.o,$(filter-out $(KERN_SRC),$(APP_SRC)))
VERSIONS_OBJ := $(B)/userspace/kern/versions.o
AGENT_OBJ := $(AGENT_SRC:%.c=$(O)/%.o)
AGENT_LIB := $(if $(AGENT),$(O)/libagent.a)
SKELS := $(BPF_SRC:bpf/%.bpf.c=$(B)/%.skel.h)
UNIT_BIN := $(UNIT_SRC:tests/unit/%.c=$(O)/unit/%)
UNIT_HELP_OBJ := $(UNIT_HELP:%.c=$(O)/%.o)
NAMES := top record offcpu agent inspect doctor

all: $(O)/sfbpf $(NAMES:%=$(O)/sfbpf-%)

$(B)/sfbpf: $(APP_OBJ) $(AGENT_LIB) $(O)/libcore.a
	$(call msg,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(NAMES:%=$(O)/sfbpf-%): $(O)/sfbpf
	$(Q)ln -sf sfbpf $@

$(O)/libcore.a: $(CORE_OBJ)
	$(call msg,AR,$@)
	$(Q)rm -f $@; $(AR) rcs $@ $^

$(O)/libagent.a: $(AGENT_OBJ)
	$(call msg,AR,$@)
	$(Q)rm -f $@; $(AR) rcs $@ $^

# Phony if what it should say differs, so a second make finds it up to date.
quoted = '$(subst ','\'',$(1))'

$(O)/cc.stamp:
	@mkdir -p $(@D); printf '%s\n' $(call quoted,$(CC_STAMP)) > $@

$(B)/bpf.stamp:
	@mkdir -p $(@D); printf '%s\n' $(call quoted,$(BPF_STAMP)) > $@

$(O)/%.o: %.c Makefile $(O)/cc.stamp $(STATIC_READY)
	$(call msg,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) -MMD -MP -c -o $@ $<

ifneq ($(B),$(O))
$(B)/%.o: %.c Makefile $(O)/cc.stamp $(STATIC_READY)
	$(call msg,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) -I$(B) $(CFLAGS) -MMD -MP -c -o $@ $<
endif

$(KERN_OBJ): | $(SKELS)

$(VERSIONS_OBJ): override CFLAGS += -DSFBPF_CC='"$(CC_VERSION)"' -DSFBPF_CLANG='"$(CLANG_VERSION)"'
$(VERSIONS_OBJ): $(B)/bpf.stamp

# The flame graph's page as a C string literal, a line each.
COLOURS := userspace/out/colours.css
PAGE := $(COLOURS) $(addprefix userspace/out/flame,.html .css _model.js _strip.js _view.js)

$(O)/flame.html.h: $(PAGE) Makefile
	$(call msg,PAGE,$@)
	@mkdir -p $(@D)
	$(Q)sed -e '/^@COLOURS@$$/{r $(COLOURS)' -e 'd}' \
		-e '/^@CSS@$$/{r userspace/out/flame.css' -e 'd}' \
		-e '/^@MODEL@$$/{r userspace/out/flame_model.js' -e 'd}' \
		-e '/^@STRIP@$$/{r userspace/out/flame_strip.js' -e 'd}' \
		-e '/^@VIEW@$$/{r userspace/out/flame_view.js' -e 'd}' userspace/out/flame.html | \
		sed 's/\\/\\\\/g; s/"/\\"/g; s/.*/"&\\n"/' > $@.tmp && mv $@.tmp $@

$(O)/userspace/out/out_html.o: | $(O)/flame.html.h

# The page of `serve`, likewise.
$(O)/serve.html.h: $(COLOURS) $(addprefix userspace/serve/serve,.html .css .js) Makefile
	$(call msg,PAGE,$@)
	@mkdir -p $(@D)
	$(Q)sed -e '/^@COLOURS@$$/{r $(COLOURS)' -e 'd}' \
		-e '/^@CSS@$$/{r userspace/serve/serve.css' -e 'd}' \
		-e '/^@JS@$$/{r userspace/serve/serve.js' -e 'd}' userspace/serve/serve.html | \
		sed 's/\\/\\\\/g; s/"/\\"/g; s/.*/"&\\n"/' > $@.tmp && mv $@.tmp $@

$(O)/userspace/serve/serve_pages.o: | $(O)/serve.html.h

$(B)/%.bpf.o: bpf/%.bpf.c Makefile $(B)/bpf.stamp
	$(call msg,BPF,$<)
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(BPF_CFLAGS) -MMD -MP -MF $(@:.o=.d) -MT $@ -c -o $(@:.o=.tmp.o) $<
	$(Q)$(BPFTOOL) gen object $@ $(@:.o=.tmp.o)

$(B)/%.skel.h: $(B)/%.bpf.o
	$(call msg,SKEL,$@)
	$(Q)$(BPFTOOL) gen skeleton $< name $(subst -,_,$*)_bpf > $@.tmp && mv $@.tmp $@

$(O)/unit/%: $(O)/tests/unit/%.o $(UNIT_HELP_OBJ) $(AGENT_LIB) $(O)/libcore.a
	$(call msg,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(UNIT_LDLIBS) $(UNIT_LIBS)

units: $(UNIT_BIN)

# scripts/fuzz.sh gives CC, CFLAGS and LDFLAGS.
$(O)/fuzz_%: $(O)/tests/fuzz/fuzz_%.o $(AGENT_LIB) $(O)/libcore.a
	$(call msg,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(UNIT_LDLIBS) $(UNIT_LIBS)

check: $(UNIT_BIN)
	@rc=0; for t in $(UNIT_BIN); do echo "# $$t"; $$t || rc=1; done; exit $$rc

# Other kernels, in QEMU: a few minutes, and it downloads Debian's kernel packages.
check-vm:
	scripts/vm-test.sh

# Debian's releases, with each of their compilers: as root; downloads trees of them.
check-distros:
	scripts/check-distros.sh

# Languages on the interpreters of other releases: as root; downloads their packages.
check-languages: all
	scripts/check-languages.sh

# The archive of release.sh in an empty root, an old Debian and a root of musl, and the one for
# AArch64 in QEMU: as root.
check-archive:
	scripts/check-archive.sh

include tests/bench/bench.mk
include tests/fault/fault.mk
# make oracle: .eh_frame rows against libdw's, where that is installed.
ifeq ($(shell $(PKG_CONFIG) --exists libdw && echo 1),1)
include tests/oracle/oracle.mk
endif

# Man pages and completions come from the option tables, by the binary itself; not in a cross build.
MAN_TOOLS := $(filter-out $(if $(AGENT),,agent),$(NAMES)) report diff list $(if $(AGENT),serve)
ifeq ($(CROSS_COMPILE),)
MAN := $(O)/man/sfbpf.1 $(MAN_TOOLS:%=$(O)/man/sfbpf-%.1)
COMPLETIONS := $(O)/completion/bash $(O)/completion/zsh
endif

man: $(MAN) $(COMPLETIONS)

$(O)/man/sfbpf.1: $(O)/sfbpf
	@mkdir -p $(@D)
	$(Q)$< help --man > $@

$(O)/man/sfbpf-%.1: $(O)/sfbpf
	@mkdir -p $(@D)
	$(Q)$< help --man $* > $@

$(O)/completion/%: $(O)/sfbpf
	@mkdir -p $(@D)
	$(Q)$< help --completion $* > $@

SHARE = $(DESTDIR)$(PREFIX)/share

install: all man
	install -d $(DESTDIR)$(PREFIX)/bin
	install -m 755 $(O)/sfbpf $(DESTDIR)$(PREFIX)/bin/sfbpf
	for n in $(NAMES); do ln -sf sfbpf $(DESTDIR)$(PREFIX)/bin/sfbpf-$$n; done
ifneq ($(MAN),)
	install -d $(SHARE)/man/man1 $(SHARE)/bash-completion/completions \
		$(SHARE)/zsh/site-functions
	install -m 644 $(MAN) $(SHARE)/man/man1
	install -m 644 $(O)/completion/bash $(SHARE)/bash-completion/completions/sfbpf
	for n in $(NAMES); do ln -sf sfbpf $(SHARE)/bash-completion/completions/sfbpf-$$n; done
	install -m 644 $(O)/completion/zsh $(SHARE)/zsh/site-functions/_sfbpf
endif

# What this build has of what not every build has, for release.sh.
features:
	@echo $(if $(AGENT),agent) $(if $(ZYDIS),code) $(if $(DW),inline) \
		$(if $(DEBUGINFOD),debuginfod) $(LZMA) $(ZSTD)

# A Debian package of this build, with the agent's systemd unit.
deb: all
	@scripts/make-deb.sh $(O) $(VERSION)

clean:
	rm -rf build build-san

-include $(CORE_OBJ:.o=.d) $(APP_OBJ:.o=.d) $(AGENT_OBJ:.o=.d)
-include $(BPF_SRC:bpf/%.bpf.c=$(B)/%.bpf.d) $(UNIT_SRC:%.c=$(O)/%.d) $(UNIT_HELP_OBJ:.o=.d)

.PHONY: all man units features check check-vm check-languages \
	check-archive bench bench-quick install deb clean
.DELETE_ON_ERROR:
.SECONDARY:
