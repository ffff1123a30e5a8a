# SPDX-License-Identifier: BSD-2-Clause
# build-san/fault/sfbpf: sfbpf with tests/fault/inject.c between it and its libraries (make SAN=1
# fault). Included by the Makefile.

fault: $(O)/fault/sfbpf

# What inject.o names __wrap_NAME is a call NAME that can be made to fail.
$(O)/fault/sfbpf: $(APP_OBJ) $(AGENT_LIB) $(O)/tests/fault/inject.o $(O)/libcore.a
	@mkdir -p $(@D)
	$(call msg,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) \
		$$(nm $(O)/tests/fault/inject.o | sed -n 's/.* T __wrap_/-Wl,--wrap=/p') \
		-o $@ $^ $(LDLIBS)

-include $(O)/tests/fault/inject.d

.PHONY: fault
