# SPDX-License-Identifier: BSD-2-Clause
# short.pl: 100 ms of CPU time in main::work.
use strict;
use warnings;

sub work {
	my $x = 1;
	$x = ($x * 11035 + 12345) % 1000003 while (times)[0] < 0.1;
	return $x;
}

sub middle { return work() + 1; }

middle();
