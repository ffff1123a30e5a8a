// SPDX-License-Identifier: BSD-2-Clause
// A hot call through an interface, which `go build -pgo` devirtualizes if the profile has the line
// of the call and the line at which its function starts. It runs until it is killed.
package main

type shape interface{ area(n int) int }
type square struct{ k int }
type circle struct{ k int }

// This is inlined, also without a profile.
func mix(t, i int) int {
	t = t*31 + i ^ t>>3
	return t ^ t<<1
}

// This is too big for that.
func (s *square) area(n int) int {
	t := s.k
	for i := 0; i < n; i++ {
		t = mix(t, i)
		if t&0xff == 7 {
			t += 5
		}
	}
	for i := 0; i < n/2; i++ {
		t = mix(t*17, i)
		if t&0x7f == 9 {
			t -= 3
		}
	}
	return t
}

func (c *circle) area(n int) int { return c.k * n }

//go:noinline
func sum(shapes []shape, n int) int {
	t := 0
	for _, s := range shapes {
		t += s.area(n)
	}
	return t
}

var result int

func main() {
	shapes := []shape{&circle{1}}
	for i := 0; i < 50; i++ {
		shapes = append(shapes, &square{i})
	}
	for {
		result += sum(shapes, 20)
	}
}
