# SPDX-License-Identifier: BSD-2-Clause
# frozen_string_literal: true

# reuse.rb SECONDS: makes and drops code all the time, so that its memory is used again. Each
# outer_N calls the inner_N that was made with it.

stop = Time.now.to_f + ARGV[0].to_f
n = 0
while Time.now.to_f < stop
  n += 1
  more = 'x += 1; ' * (n % 5)
  made = Module.new
  made.module_eval(<<~CODE, 'reuse.rb', 1)
    def self.outer_#{n}(last); inner_#{n}(last) + 1; end
    def self.inner_#{n}(last)
      x = 0
      #{more}
      x += 1 while Process.clock_gettime(Process::CLOCK_MONOTONIC) < last
      x
    end
  CODE
  made.send("outer_#{n}", Process.clock_gettime(Process::CLOCK_MONOTONIC) + 0.004)
  GC.start if (n % 7).zero?
end
