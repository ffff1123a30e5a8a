# SPDX-License-Identifier: BSD-2-Clause
# What `make bench` runs beside sfbpf itself; see docs/performance.md.
BENCH := $(O)/bench
BENCH_DW := $(shell $(PKG_CONFIG) --exists libdw 2>/dev/null && echo yes)
BENCH_TOOLS := $(addprefix $(BENCH)/,fp convert late thrash sleeper sleeper-fp)

bench-tools: $(O)/sfbpf $(BENCH_TOOLS)
	$(Q)tests/programs/build.sh $(O)/programs

$(BENCH)/fp.bpf.o: tests/bench/fp.bpf.c tests/bench/bench.mk $(O)/bpf.stamp
	$(call msg,BPF,$<)
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(BPF_CFLAGS) -c -o $(BENCH)/fp.tmp.o $<
	$(Q)$(BPFTOOL) gen object $@ $(BENCH)/fp.tmp.o

$(BENCH)/fp.skel.h: $(BENCH)/fp.bpf.o
	$(Q)$(BPFTOOL) gen skeleton $< name fp_bpf > $@.tmp && mv $@.tmp $@

$(BENCH)/fp: tests/bench/fp.c $(BENCH)/fp.skel.h $(O)/userspace/kern/perf_event.o
	$(call msg,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -I$(BENCH) -o $@ $< $(O)/userspace/kern/perf_event.o \
		$(LDLIBS)

$(BENCH)/convert: tests/bench/convert.c $(O)/libcore.a
	$(call msg,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) $(if $(BENCH_DW),-DHAVE_LIBDW) -o $@ $< $(O)/libcore.a \
		$(if $(BENCH_DW),-ldw) $(LDLIBS)

$(BENCH)/late $(BENCH)/thrash $(BENCH)/sleeper: $(BENCH)/%: tests/bench/%.c
	@mkdir -p $(@D)
	$(Q)$(CC) -O2 $(WARN) -fno-optimize-sibling-calls -fomit-frame-pointer -D_GNU_SOURCE \
		-o $@ $<

$(BENCH)/sleeper-fp: tests/bench/sleeper.c
	@mkdir -p $(@D)
	$(Q)$(CC) -O2 $(WARN) -fno-optimize-sibling-calls -fno-omit-frame-pointer -D_GNU_SOURCE \
		-o $@ $<

# Both need root, a quiet CPU if there is one, and no network. The second is for CI: a minute, the
# most robust figures only.
bench: bench-tools
	OUTPUT=$(O) /usr/bin/python3 -B tests/bench/bench.py

bench-quick: bench-tools
	OUTPUT=$(O) /usr/bin/python3 -B tests/bench/bench.py --quick $(BENCH_FLAGS)

.PHONY: bench-tools
