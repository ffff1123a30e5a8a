// SPDX-License-Identifier: BSD-2-Clause

// Shapes of Go stacks that know their own chain; the argument says which.
package main

import (
	"fmt"
	"os"
	"runtime"
	"sort"
	"strings"
	"sync"
	"syscall"
	"time"
)

var sink int

//go:noinline
func leaf() {
	for i := 0; i < 20000; i++ {
		sink += i
	}
}

//go:noinline
func rec(n int) {
	if n == 0 {
		leaf()
		return
	}
	rec(n - 1)
	sink++
}

//go:noinline
func deep(n int) int {
	var room [256]byte
	if n == 0 {
		return sink
	}
	room[n%256] = byte(n)
	return deep(n-1) + int(room[(n+1)%256])
}

func channels() {
	work, done := make(chan int), make(chan int)
	go func() {
		for n := range work {
			done <- n + 1
		}
	}()
	for {
		work <- sink
		sink = <-done
	}
}

// Goroutines whose stacks grow: morestack, newstack, copystack.
func grow() {
	for {
		var wg sync.WaitGroup
		for i := 0; i < 8; i++ {
			wg.Add(1)
			go func() {
				defer wg.Done()
				deep(200)
			}()
		}
		wg.Wait()
	}
}

type node struct {
	left, right *node
	payload     [4]*string
}

func tree(depth int) *node {
	if depth == 0 {
		s := strings.Repeat("x", 16)
		return &node{payload: [4]*string{&s}}
	}
	return &node{left: tree(depth - 1), right: tree(depth - 1)}
}

// The collector runs on the threads' own stacks.
func collect() {
	kept := tree(16)
	for {
		tree(12)
		runtime.KeepAlive(kept)
	}
}

func maps() {
	m := map[string][]int{}
	for i := 0; ; i++ {
		k := fmt.Sprint(i % 1000)
		m[k] = append(m[k][:0], i, -i, i/2)
		sort.Ints(m[k])
	}
}

func syscalls() {
	f, err := os.Open("/dev/zero")
	if err != nil {
		panic(err)
	}
	buf := make([]byte, 4096)
	for {
		n, _ := f.Read(buf)
		sink += n
	}
}

/* The new process finds that it has nothing to run. */
func execs() {
	for {
		if _, err := syscall.ForkExec("/dev/null", nil, nil); err == nil {
			panic("/dev/null runs")
		}
	}
}

func clocks() {
	for {
		for t := time.Now(); time.Since(t) < time.Millisecond; {
			sink++
		}
		select {
		case <-time.After(100 * time.Microsecond):
		}
	}
}

func main() {
	shapes := map[string]func(){
		"rec": func() {
			for {
				rec(60)
			}
		},
		"goroutine": func() {
			go func() {
				for {
					rec(300)
				}
			}()
			select {}
		},
		"channels": channels,
		"grow":     grow,
		"collect":  collect,
		"maps":     maps,
		"syscalls": syscalls,
		"clocks":   clocks,
		"execs":    execs,
	}
	shapes[os.Args[1]]()
}
