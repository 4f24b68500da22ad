// FUTEX-PARKING: a matching engine whose goroutine is bound to a thread of its own
// (`runtime.LockOSThread`, as a library in C may want it). Each order goes to it through a channel,
// and back: Go must put one thread to sleep and wake another one for each.
//
// Checked on 2 cores of a virtual machine that others used too, in 1.5 s: `perf stat`: 84,359
// orders, 234,133 switches (2.8 for an order), 1.26 s system, 0.21 s user. `strace -f -c -w`: 80 %
// futex, 20 % nanosleep of Go's monitor. Another run: 129,151 orders, and 4,549,573 without
// LockOSThread.
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"time"
)

const sessions = 4

type order struct {
	price, size int
	filled      chan int
}

func match(orders <-chan order) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	open := 0
	for order := range orders {
		fill := min(open, order.size)
		open += order.size - fill
		order.filled <- fill
	}
}

func trade(orders chan<- order, end time.Time) (count int) {
	filled := make(chan int)
	for ; time.Now().Before(end); count++ {
		orders <- order{100 + count%7, count % 5, filled}
		<-filled
	}
	return count
}

func main() {
	seconds, err := strconv.ParseFloat(os.Args[1], 64)
	if err != nil {
		panic(err)
	}
	end := time.Now().Add(time.Duration(seconds * float64(time.Second)))
	orders := make(chan order)
	counts := make([]int, sessions)
	go match(orders)
	var done sync.WaitGroup
	for i := range counts {
		done.Go(func() { counts[i] = trade(orders, end) })
	}
	done.Wait()
	fmt.Println(counts, "orders")
}
