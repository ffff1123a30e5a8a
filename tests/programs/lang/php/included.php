<?php
// SPDX-License-Identifier: BSD-2-Clause
// Included by chains.php.

function included_function(): void
{
    enter("included_function", "included.php");
    spin();
}

enter("include", "included.php");
included_function();
