# SPDX-License-Identifier: BSD-2-Clause
# frozen_string_literal: true

# Works for 100 ms of CPU time, and ends.

def work(until_then)
  x = 0
  x += 1 while Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) < until_then
  x
end

def middle(until_then)
  [1].each { work(until_then) }
end

middle(Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) + 0.1)
