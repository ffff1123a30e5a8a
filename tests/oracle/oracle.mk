# SPDX-License-Identifier: BSD-2-Clause
# Comparison of the readers with an independent evaluator (elfutils' libdw). Included by the
# Makefile when libdw is there:
#	ifeq ($(shell $(PKG_CONFIG) --exists libdw && echo 1),1)
#	include tests/oracle/oracle.mk
#	endif
# make oracle                     builds it and compares ORACLE_FILES, those of them that exist;
# fails on any difference
# make oracle ORACLE_FILES=...	compares these

ORACLE_LIB := /usr/lib/$(notdir $(patsubst %/,%,$(dir $(shell $(CC) -print-file-name=libc.so.6))))
ORACLE_LLVM := $(firstword $(wildcard $(ORACLE_LIB)/libLLVM*.so.*))
ORACLE_FILES ?= $(wildcard $(addprefix $(ORACLE_LIB)/,libc.so.6 ld-linux-x86-64.so.2 \
	libcrypto.so.3 libstdc++.so.6 libgcrypt.so.20) $(ORACLE_LLVM) \
	/usr/bin/python3 /usr/bin/gdb /usr/bin/node $(shell $(CC) -print-prog-name=cc1))

$(O)/eh_oracle: $(O)/tests/oracle/eh_oracle.o $(O)/libcore.a
	$(call msg,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(shell $(PKG_CONFIG) --libs libdw) $(SYM_LDLIBS) \
		-lelf -lz

oracle: $(O)/eh_oracle
	$< $(ORACLE_FILES)

-include $(O)/tests/oracle/eh_oracle.d

.PHONY: oracle
