/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The layout of a recording (docs/recording.md): RECORDING_MAGIC, then one member of gzip. It holds
 * a message of Protocol Buffers with the fields below. A part refers to earlier parts only. Strings
 * are named by their number: the first one is 1, and 0 is the empty string.
 *
 * Frame words, stop reasons, states and kinds have the numbers of the border headers. Lists of them
 * grow at their end only; a change of the layout of words or of a field is another magic.
 */
#ifndef SFBPF_OUT_RECORDING_FIELDS_H
#define SFBPF_OUT_RECORDING_FIELDS_H

/* No text begins with the first byte, which continues a character of UTF-8. */
#define RECORDING_MAGIC	    "\x93sfb1\n"
#define RECORDING_MAGIC_LEN 6

enum {
	REC_STRING = 1,
	REC_META = 2,
	REC_MODULE = 3,
	REC_SYMBOLS = 4, /* SYMBOL_NUMBERS for each */
	REC_FRAMES = 5,	 /* word and number of a symbol for each */
	REC_INLINED = 6, /* number of a frame, n, then n symbols, the innermost first */
	REC_WAKER = 7,	 /* a stack of the wakers */
	REC_STACK = 8,	 /* a stack of the profile */
	REC_PROCESS = 9, /* names that processes of the profile have */
	REC_CONTAINER = 10,
	REC_TIMELINE = 11,
	REC_SLICES = 12,
	REC_STATS = 13,
	REC_BLOCKS = 14,

	META_EVENT = 1,
	META_HZ = 2, /* bits of a double */
	META_HOST = 3,
	META_COMMAND = 4,
	META_COMMAND_LINE = 5,
	META_KERNEL = 6,
	META_TOOL = 7,
	META_START = 8,
	META_FLAGS = 9, /* enum recording_flag */
	META_BY = 10,	/* enum out_by */
	META_WALL = 11, /* enum out_wall */
	META_UNIT = 12,
	META_GROUPS = 13, /* the name of each of several events, or kinds of calls */

	MODULE_ID = 1,
	MODULE_PATH = 2,
	MODULE_SIZE = 3,
	MODULE_BUILD_ID = 4,
	MODULE_CODE = 5, /* offset, address, size of each segment */

	STACK_FRAMES = 1, /* numbers of frames: the user part, then the kernel part, leaf first */
	STACK_N_USER = 2,
	STACK_COMM = 3,
	STACK_PID = 4,
	STACK_TID = 5,
	STACK_CGROUP = 6,
	STACK_COUNT = 7,
	STACK_WEIGHT = 8,
	STACK_STOP = 9, /* enum sf_stop; the next ones likewise */
	STACK_FLAGS = 10,
	STACK_STATE = 11,
	STACK_LANG_STOP = 12,
	STACK_WAKER_AT = 13, /* number of a waker, from 1 */
	STACK_GROUP = 14,    /* number of a name in META_GROUPS, from 0 */

	PROCESS_PID = 1,
	PROCESS_NAME = 2,

	CONTAINER_PID = 1,
	CONTAINER_CGROUP = 2,
	CONTAINER_ID = 3,
	CONTAINER_NAMED = 4,
	CONTAINER_IS_GONE = 5,

	TIMES_START = 1, /* CLOCK_MONOTONIC */
	TIMES_SUSPENDED = 2,
	TIMES_DROPPED = 3,
	TIMES_MISSING = 4,
	TIMES_MIN_BLOCK = 5,
	TIMES_HAS_BLOCKS = 6,
	TIMES_SAMPLES = 7, /* time since the one before (zigzag), stack, CPU */
	/* BLOCK_NUMBERS: start since that of the one before (zigzag), times, stack, waker, tids */
	TIMES_BLOCKS = 8,

	SLICES_WIDTH = 1,
	SLICES_N = 2,
	SLICES_CELLS = 3, /* stack, slice, count */

	STATS_DURATION = 1, /* bits of a double */
	STATS_SAMPLES = 2,
	STATS_USER_TOTAL = 3,
	STATS_STOPS = 4,
	STATS_LOST = 5,
	STATS_OFFCPU = 6,
	STATS_OFF_NS = 7,
	STATS_OFF_SAMPLED = 8,
	STATS_OFF_LOST = 9,
	STATS_WITHOUT_USER = 10,

	BLOCKS_LONGEST = 1, /* one for each stack */
	BLOCKS_HIST = 2,    /* SF_OFF_HIST for each stack */
	BLOCKS_HAS_THREADS = 3,
	BLOCKS_THREAD = 4,

	THREAD_NS = 1, /* one for each state */
	THREAD_COUNT = 2,
	THREAD_MAX = 3,
	THREAD_PID = 4,
	THREAD_TID = 5,
	THREAD_COMM = 6,
};

#define SYMBOL_NUMBERS 6 /* name, module, function, file (strings), line, line of its start */
#define BLOCK_NUMBERS  7

enum recording_flag {
	RECORDING_USER_ONLY = 1,
	RECORDING_KERNEL_ONLY = 2,
	RECORDING_USEC = 4,
	RECORDING_APART = 8, /* threads keep names that differ in numbers only */
	RECORDING_WAKERS = 16,
	RECORDING_FLAGS = 31,
};

#endif
