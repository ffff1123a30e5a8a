# SPDX-License-Identifier: BSD-2-Clause
# hot.pl SECONDS: subs that call each other, and C that calls subs, all the time.
use strict;
use warnings;
use List::Util qw(first reduce);

sub fib { my $n = shift; return $n < 2 ? $n : fib($n - 1) + fib($n - 2); }
sub mix { my $x = shift; return ($x * 11035 + 12345) % 1000003; }
sub compare { return mix($a) <=> mix($b); }
sub numbers { my @x = sort compare 1 .. 100; return @x; }
sub blocks { my @x = sort { mix($a) <=> mix($b) } 1 .. 100; return @x; }
sub search { return first { mix($_) == -1 } 1 .. 200; }
sub folded { return reduce { mix($a) + $b } 1 .. 200; }
sub text { my $x = "abc" x 50; $x =~ s/(b)/mix(ord $1)/ge; return $x; }

sub code {
	my $x = "aab" x 50;
	my $n = 0;
	$x =~ /(?:aa(?{ $n = mix($n) })b)+c/;
	return $n;
}

{
	package Node;
	use overload '+' => \&plus;
	sub new { my ($class, $v) = @_; return bless { v => $v }, $class; }
	sub plus { my ($l, $r) = @_; return $l->get() + $r->get(); }
	sub get { return main::mix($_[0]{v}); }
	sub DESTROY { main::mix(1); }
}

sub objects { my $n = 0; $n = Node->new($_) + Node->new(2) for 1 .. 50; return $n; }

sub caught {
	for my $n (1 .. 50) {
		eval { mix($n); die "x\n" if $n % 2; };
	}
}

my $end = time + ($ARGV[0] // 60);
$| = 1;
print "CHAIN main (hot.pl)\n";
while (time < $end) {
	fib(12);
	numbers();
	blocks();
	search();
	folded();
	text();
	code();
	objects();
	caught();
}
