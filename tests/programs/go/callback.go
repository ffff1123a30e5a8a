// SPDX-License-Identifier: BSD-2-Clause

// Go calls C, which calls Go, four times over. Each C function keeps a frame of its own.
package main

/*
int go_callback(int n);
static volatile int sink;
static void __attribute__((noinline)) c_leaf(void) { for (int i = 0; i < 20000; i++) sink += i; }
static int __attribute__((noinline)) c_call(int n)
{
	char room[n + 1];

	room[n] = 1;
	sink = go_callback(n) + room[n];
	return sink;
}
static void __attribute__((noinline)) c_spin(void) { c_leaf(); sink++; }
*/
import "C"

var sink int

//go:noinline
func leaf() {
	for i := 0; i < 20000; i++ {
		sink += i
	}
}

//go:noinline
func call(n C.int) C.int {
	return C.c_call(n) + 1
}

//export go_callback
func go_callback(n C.int) C.int {
	if n > 0 {
		return call(n - 1)
	}
	leaf()
	return 1
}

func main() {
	for {
		C.c_spin()
		call(3)
	}
}
