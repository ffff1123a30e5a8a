# SPDX-License-Identifier: BSD-2-Clause
# chains.pl CASE SECONDS: makes one shape of stack, prints its subs ("CHAIN a;b;..."), and stays in
# it.
use strict;
use warnings;
use List::Util qw(first reduce);
use Time::HiRes qw(time usleep);

our @chain;
my $case = $ARGV[0];
my $seconds;

BEGIN {
	require Cwd;
	require File::Basename;
	unshift @INC, File::Basename::dirname(Cwd::abs_path(__FILE__));
	$seconds = $ARGV[1] // 60;
}

# All subs have entered their names. Returns when the leaf is to end.
sub ready {
	local $| = 1;
	print "CHAIN ", join(";", @chain), "\n";
	return time() + $seconds;
}

sub enter {
	my ($name, $file) = @_;
	push @chain, sprintf("%s (%s)", $name, $file // "chains.pl");
}

sub spin {
	enter("main::spin");
	my $end = ready();
	my $x = 1;
	do {
		for my $i (1 .. 20000) {
			$x = ($x * 11035 + 12345) % 1000003;
		}
	} while (CORE::time() < $end);
	return $x;
}

sub recurse {
	my $n = shift;
	enter("main::recurse");
	return spin() if $n <= 1;
	return recurse($n - 1) + 1;
}

sub outer {
	enter("main::outer");
	my $f = shift;
	return $f->(@_);
}

sub compare {
	enter("main::compare");
	recurse(3);
	return 0;
}

sub nap {
	enter("main::nap");
	my $end = ready();
	usleep(20000) while CORE::time() < $end;
}

# Calls whose statements have no op of their own, and from code in its sub.
sub branches {
	enter("main::branches");
	my $n = shift;
	if ($n > 2) {
		return branches($n - 1);
	} elsif ($n > 1) {
		my @x = sort {
			branches($n - 1);
			0;
		} 1, 2;
	} elsif ($n) {
		"a" =~ /a(?{
			1;
			spin();
		})/;
	}
}

# The time is spent in functions in C.
sub loop_native {
	my $name = shift;
	enter("main::loop_native");
	my $end = ready();
	my $text = "aaaaaaaaaaaaaaaaaaaaaaaab" x 200;
	my @list = map { $_ * 7919 % 10007 } 1 .. 5000;
	while (CORE::time() < $end) {
		if ($name eq "regex") {
			my $n = () = $text =~ /(?:a|a?)+c/;
		} elsif ($name eq "sort") {
			my @x = sort { $a <=> $b } @list;
		} else {
			Digest::MD5::md5($text x 100);
		}
	}
}

{
	package Base;
	our $AUTOLOAD;
	sub new { return bless {}, shift; }
	sub method { main::enter("Base::method"); $_[0]->helper(); }
	sub helper { main::enter("Base::helper"); main::spin(); }
	sub AUTOLOAD {
		return if $AUTOLOAD =~ /::DESTROY$/;
		main::enter("Base::AUTOLOAD");
		main::spin();
	}

	package Derived;
	our @ISA = ("Base");
	sub method { my $self = shift; main::enter("Derived::method"); $self->SUPER::method(); }

	package Ends;
	sub DESTROY { main::enter("Ends::DESTROY"); eval { main::spin() }; }

	package Tied;
	sub TIESCALAR { return bless [], shift; }
	sub FETCH { main::enter("Tied::FETCH"); main::spin(); }

	package Number;
	use overload '+' => sub { main::enter("Number::__ANON__"); main::spin() },
		'""' => \&text;
	sub text { main::enter("Number::text"); main::recurse(2); return ""; }

	package Frozen;
	sub STORABLE_freeze { main::enter("Frozen::STORABLE_freeze"); main::spin(); }
}

BEGIN {
	if (($ARGV[0] // "") eq "begin") {
		push @main::chain, "main::BEGIN (chains.pl)";
		my $end = CORE::time() + $seconds;
		local $| = 1;
		print "CHAIN ", join(";", @main::chain), "\n";
		my $x = 1;
		while (CORE::time() < $end) {
			$x = ($x * 11035 + 12345) % 1000003 for 1 .. 20000;
		}
	}
}

END {
	if (($case // "") eq "end") {
		@chain = ();
		enter("main::END");
		spin();
	}
}

my %cases = (
	plain => sub { spin() },
	rec60 => sub { recurse(60) },
	rec300 => sub { recurse(300) },
	closures => sub {
		my $n = 3;
		my $inner = sub { enter("main::__ANON__"); spin() + $n };
		my $middle = sub { enter("main::__ANON__"); outer($inner) };
		outer($middle);
	},
	sortblock => sub { my @x = sort { compare(); $a <=> $b } 3, 1, 2; },
	sortsub => sub { my @x = sort compare 3, 1, 2; },
	sortanon => sub {
		my $by = sub { enter("main::__ANON__"); compare() };
		my @x = sort $by 3, 1, 2;
	},
	map => sub { my @x = map { recurse(2) } grep { $_ > 1 } 1 .. 3; },
	first => sub { first { enter("main::__ANON__"); compare() } 1, 2; },
	reduce => sub { reduce { enter("main::__ANON__"); spin() } 1, 2, 3; },
	methods => sub { Derived->new->method(); },
	autoload => sub { Base->new->nothing(); },
	destroy => sub { my $x = bless {}, "Ends"; undef $x; },
	tie => sub { tie my $x, "Tied"; my $y = $x; },
	overload => sub { my $x = bless [], "Number"; my $y = $x + 1; },
	text => sub { my $x = bless [], "Number"; my $y = "a$x"; },
	evalblock => sub { eval { outer(sub { enter("main::__ANON__"); eval { spin() } }) }; },
	evaltext => sub {
		eval 'enter("eval", "eval"); sub made { enter("main::made", "eval"); '
			. 'main::recurse(2) } made(); 1' or die $@;
	},
	evalline => sub {
		eval qq{#line 7 "made/page.pm"\nenter("eval", "page.pm"); page();}
			. 'sub page { enter("main::page", "page.pm"); recurse(2) } 1' or die $@;
	},
	branches => sub { branches(3) },
	# On a stack that a library made. Its mapping grows by what lies above.
	coro => sub {
		require Coro;
		@chain = ();
		enter("Coro::_coro_run", "Coro.pm");
		&Coro::async(sub { enter("main::__ANON__"); recurse(2) })->join;
	},
	require => sub { require Included; },
	regex => sub { "aab" =~ /a+(?{ recurse(2) })b/; },
	subst => sub { (my $x = "aab") =~ s/a/compare()/e; },
	signal => sub {
		local $SIG{USR1} = sub { enter("main::__ANON__"); spin(); };
		kill USR1 => $$;
		usleep(1);
	},
	warn => sub {
		local $SIG{__WARN__} = sub { enter("main::__ANON__"); spin(); };
		warn "x";
	},
	die => sub {
		local $SIG{__DIE__} = sub { enter("main::__ANON__"); spin(); };
		eval { die "x" };
	},
	# The sub that the goto leaves is not in the stack any more.
	goto => sub {
		my $other = sub { goto &recurse; };
		$other->(2);
	},
	lexical => sub {
		my sub local_sub { enter("local_sub"); spin(); }
		local_sub();
	},
	renamed => sub {
		no warnings "once";
		*main::other = \&compare;
		main::other();
	},
	freeze => sub {
		require Storable;
		enter("Storable::freeze", "Storable.pm");
		enter("Storable::_freeze", "Storable.pm");
		Storable::freeze(bless [], "Frozen");
	},
	fork => sub {
		my $pid = fork();
		if (!$pid) {
			recurse(2);
			exit 0;
		}
		waitpid $pid, 0;
	},
	match => sub { loop_native("regex"); },
	numbers => sub { loop_native("sort"); },
	md5 => sub { require Digest::MD5; loop_native("md5"); },
	sleep => sub { nap() },
	rest => sub {
		eval q{
			enter("eval", "eval");
			outer(sub {
				enter("main::__ANON__", "eval");
				ready();
				CORE::sleep($seconds);
			});
		};
	},
	begin => sub { exit 0 },
	end => sub { exit 0 },
);

if ($case eq "thread") {
	require threads;
	@chain = ();
	threads->create(\&recurse, 3)->join();
	exit 0;
}
my $run = $cases{$case} or die "no case $case";
enter("main");
enter("main::__ANON__");
$run->();
