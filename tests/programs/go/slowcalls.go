// SPDX-License-Identifier: BSD-2-Clause
// slowcalls MODE CALLS GOROUTINES: each goroutine calls slowServe() again and again; each 100th
// call is slow for the cause that MODE names. Prints what it has measured, as slowcalls.c.
package main

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"
)

const every = 100

var (
	lock      sync.Mutex
	sink      int
	ask, have = make(chan int), make(chan int)
	mode      string
	calls     int
	slow      int
	slowTime  time.Duration
	sure      int
	sureTime  time.Duration
)

//go:noinline
func usualWork() {
	for i := 0; i < 20000; i++ {
		sink += i
	}
}

//go:noinline
func plantedLock() {
	lock.Lock()
	sink++
	lock.Unlock()
}

//go:noinline
func plantedSleep() {
	time.Sleep(15 * time.Millisecond)
	sink++
}

//go:noinline
func plantedChannel() {
	answer := make(chan int)
	go func() {
		time.Sleep(15 * time.Millisecond)
		answer <- 1
	}()
	sink += <-answer
}

//go:noinline
func plantedBranch() {
	for end := time.Now().Add(15 * time.Millisecond); time.Now().Before(end); {
		sink++
	}
}

// A frame that does not fit the stack of a new goroutine, which therefore moves.
//
//go:noinline
// slowServe returns its time, by the clock inside of it.
func slowServe(n int) time.Duration {
	began := time.Now()
	var big [1024]int
	big[n%1024] = n
	usualWork()
	if n%every == every-1 {
		switch mode {
		case "lock":
			plantedLock()
		case "sleep":
			plantedSleep()
		case "channel":
			plantedChannel()
		default:
			plantedBranch()
		}
	}
	sink += big[(n+1)%1024]
	return time.Since(began)
}

func hold() {
	for range ask {
		lock.Lock()
		have <- 1
		time.Sleep(15 * time.Millisecond)
		lock.Unlock()
	}
}

func main() {
	var all sync.WaitGroup
	var sums sync.Mutex

	mode = os.Args[1]
	n, _ := strconv.Atoi(os.Args[2])
	goroutines, _ := strconv.Atoi(os.Args[3])
	go hold()
	for g := 0; g < goroutines; g++ {
		all.Add(1)
		go func() {
			for i := 0; i < n; i++ {
				if mode == "lock" && i%every == every-1 {
					ask <- 1
					<-have
				}
				began := time.Now()
				inside := slowServe(i)
				took := time.Since(began)
				sums.Lock()
				calls++
				if took >= 4*time.Millisecond {
					slow++
					slowTime += took
				}
				if inside >= 4*time.Millisecond {
					sure++
					sureTime += inside
				}
				sums.Unlock()
			}
			all.Done()
		}()
	}
	all.Wait()
	fmt.Fprintln(os.Stderr, "calls", calls, "slow", slow, "slow_us", slowTime.Microseconds(),
		"left 0 sure", sure, "sure_us", sureTime.Microseconds())
}
