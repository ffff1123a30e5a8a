// SPDX-License-Identifier: BSD-2-Clause

// A library for C programs. While go_work waits for other goroutines, its thread, which C has made,
// is on its g0.
package main

import "C"

var sum int

//go:noinline
func spin(n int) int {
	s := 0
	for i := 0; i < n; i++ {
		s += i * s
	}
	return s
}

//export go_work
func go_work(n C.int) {
	done := make(chan int)
	for i := 0; i < 20; i++ {
		go func() { done <- spin(int(n)) }()
		sum += <-done
	}
	sum += spin(int(n))
}

func main() {}
