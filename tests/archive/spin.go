// SPDX-License-Identifier: BSD-2-Clause
// main, outer, middle, leaf; for ever.
package main

var sink uint64

//go:noinline
func leaf() {
	for i := 0; i < 100000; i++ {
		sink = sink*6364136223846793005 + 1
	}
}

//go:noinline
func middle() {
	leaf()
	sink++
}

//go:noinline
func outer() {
	middle()
	sink++
}

func main() {
	for {
		outer()
	}
}
