/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/exitcode.h"
#include "tools/options.h"
#include "tools/tools.h"
int tool_doctor(int argc, char **argv) { (void)argc; (void)argv; return complain(EXIT_FAILED, "not yet"); }
