# SPDX-License-Identifier: BSD-2-Clause
# frozen_string_literal: true

# chains.rb CASE SECONDS [ROUNDS]: works under a chain that the program knows itself. Ruby 2.7 and
# later. ROUNDS: without work before, so that a JIT compiler has compiled the methods.
#
# At its leaf it prints its own backtrace once, root first, as sfbpf should show it: "CHAIN NAME
# (FILE:LINE);...", and then works there until the end.

$seconds = ARGV[1].to_f
$said = false

def say_once
  return if $said

  $said = true
  chain = caller_locations(1).reverse.map do |l|
    # A method in C that no code of Ruby called has no path.
    l.path ? "#{l.label} (#{File.basename(l.path)}:#{l.lineno})" : l.label
  end
  $stdout.puts("CHAIN #{chain.join(';')}")
  $stdout.flush
  $end = Time.now.to_f + $seconds
end

# Calls no method in C but one in a thousand rounds.
def spin
  say_once
  x = 0
  while Time.now.to_f < $end
    i = 0
    while i < 3000
      x += i * i % 7
      i += 1
    end
  end
end

# What YJIT compiles as a whole
def crunch(n)
  i = 0
  x = 0
  while i < n
    x = (x + i * i) & 0xffff
    i += 1
  end
  x
end

def nested(n, &leaf)
  return nested(n - 1, &leaf) if n > 0

  leaf ? leaf.call : spin
end

def twice
  yield
end

class Base
  def initialize(value)
    @value = value
  end

  def method_missing(name, *args)
    name == :unknown ? dynamic(*args) : super
  end

  def respond_to_missing?(*)
    true
  end

  define_method(:dynamic) { |*args| self.class.made(args) }

  def self.made(args)
    args.each { |a| instance_method(:to_proc).bind(new(a)).call.call }
  end

  def to_proc
    -> { nested(2) }
  end
end

class Derived < Base
  def dynamic(*args)
    super
  end
end

Pair = Struct.new(:left) do
  include Comparable
  def <=>(_other)
    spin
    0
  end
end

# A method with many entries in its table of lines
eval("def long\n#{"x = 1\n" * 450}spin\nend", TOPLEVEL_BINDING, 'long.rb', 1)

def warm_up(rounds)
  $said = true
  $end = 0
  rounds.times { CASES.fetch(ARGV[0]).call }
  $said = false
end

def raising
  raise ArgumentError, 'no'
end

# Yields a method in C that works for a second or so.
def sorting
  data = Array.new(3_000_000) { |i| i * 7_919 % 1_000_003 * 0.5 }
  $end = Time.now.to_f + $seconds
  $stdout.puts('CHAIN sort')
  $stdout.flush
  yield data.method(:sort) while Time.now.to_f < $end
end

CASES = {
  'plain' => -> { spin },
  'rec60' => -> { nested(60) },
  'rec300' => -> { nested(300) },
  'long' => -> { long },
  'blocks' => -> { twice { twice { nested(2) { twice { spin } } } } },
  'each' => -> { [1].each { |a| [a].map { 1.times { { a => 1 }.each_pair { nested(3) } } } } },
  'sortby' => -> { [2, 1].sort_by { |a| nested(2) || a } },
  'compare' => -> { [Pair.new(1), Pair.new(2)].sort },
  'inject' => -> { [1, 2].inject { nested(1) } },
  'missing' => -> { Derived.new(1).unknown(1) },
  'lambda' => -> { [1].each(&->(_) { %w[a].map(&:to_sym).each { nested(2) } }) },
  'send' => -> { Object.new.send(:instance_eval) { public_send(:then) { nested(1) } } },
  # No code of Ruby's is on these stacks.
  'cfiber' => -> { sorting { |sort| Fiber.new(&sort).resume } },
  'cthread' => -> { sorting { |sort| Thread.new(&sort).join } },
  'fiber' => -> { Fiber.new { nested(4) }.resume },
  'enumerator' => lambda {
    e = Enumerator.new do |y|
      y << 1
      nested(2)
      y << 2
    end
    e.next
    e.next
  },
  # Ten control frames of C between two of Ruby
  'lazy' => -> { (1..3).lazy.map { 1 }.select { nested(1) }.map { 2 }.first(1) },
  'rescue' => lambda {
    begin
      raising
    rescue ArgumentError
      begin
        raising rescue twice { nested(2) }
      ensure
        $ensured = true
      end
    end
  },
  'ensure' => lambda {
    begin
      begin
        raising
      ensure
        nested(1)
      end
    rescue ArgumentError
      nil
    end
  },
  'catch' => -> { catch(:done) { [1].each { throw(:done, nested(1)) } } },
  'thread' => -> { Thread.new { nested(5) }.join },
  'mnthread' => -> { Thread.new { nested(5) }.join },
  'eval' => -> { eval('nested(1)', binding, 'evaluated.rb', 7) },
  'gsub' => -> { 'a'.gsub(/a/) { nested(1) || 'b' } },
  'native' => lambda {
    require 'zlib'
    data = Random.bytes(1 << 16) * 8
    nested(4) do
      say_once
      Zlib.deflate(data, 6) while Time.now.to_f < $end
    end
  },
  'regexp' => lambda {
    text = 'a' * 24
    nested(2) do
      say_once
      (text =~ /(a|aa)+$b/) while Time.now.to_f < $end
    end
  },
  # A trivial block, whose frames come and go all the time
  'tight' => lambda {
    nested(2) do
      say_once
      x = 0
      1000.times { |i| x += i } while Time.now.to_f < $end
    end
  },
  'hot' => lambda {
    nested(2) do
      twice do
        say_once
        crunch(3000)
        crunch(3000) while Time.now.to_f < $end
      end
    end
  },
  'fork' => -> { Process.wait(fork { nested(3) }) },
  'sleep' => lambda {
    nested(2) do
      say_once
      sleep(0.002) while Time.now.to_f < $end
    end
  },
  'blocked' => lambda {
    Thread.new { loop { 1000.times { |i| i * i } } }
    nested(2) do
      say_once
      sleep(0.01) while Time.now.to_f < $end
    end
  }
}.freeze

warm_up(ARGV[2].to_i) if ARGV[2]
CASES.fetch(ARGV[0]).call
