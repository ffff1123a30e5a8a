# SPDX-License-Identifier: BSD-2-Clause
package Included;
use strict;
use warnings;

main::enter("require", "Included.pm");
inner();

sub inner {
	main::enter("Included::inner", "Included.pm");
	main::spin();
}

1;
