// A settlement client that asks "is it done yet?" each 4 ms. The engine behind it finishes a
// batch in well under a millisecond, so nearly all of the time goes to sleeping past the answer.
// Cause: SLEEP-POLLING.
// check by hand: the program itself says that the result lay there 1.496 s of 1.504 s; time gave
// 0.05 s CPU; strace shows epoll_pwait with a timeout of 1 to 3 ms again and again (that is how
// Go sleeps).
package main

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"
)

type status int

const (
	pending status = iota
	settled
)

type job struct {
	state status
	proof [32]byte
	ended time.Time
}

type engine struct {
	mu   sync.Mutex
	jobs map[uint64]*job
	work chan uint64
	next uint64
}

func newEngine() *engine {
	e := &engine{jobs: map[uint64]*job{}, work: make(chan uint64, 64)}
	go e.run()
	return e
}

func (e *engine) run() {
	for id := range e.work {
		var buf [4096]byte
		binary.LittleEndian.PutUint64(buf[:], id)
		proof := sha256.Sum256(buf[:])
		e.mu.Lock()
		e.jobs[id].state, e.jobs[id].proof, e.jobs[id].ended = settled, proof, time.Now()
		e.mu.Unlock()
	}
}

func (e *engine) submit() uint64 {
	e.mu.Lock()
	e.next++
	id := e.next
	e.jobs[id] = &job{}
	e.mu.Unlock()
	e.work <- id
	return id
}

func (e *engine) take(id uint64) (job, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	j := e.jobs[id]
	if j.state != settled {
		return job{}, false
	}
	delete(e.jobs, id)
	return *j, true
}

func settle(e *engine) time.Duration {
	id := e.submit()
	for {
		if j, ok := e.take(id); ok {
			return time.Since(j.ended)
		}
		time.Sleep(4 * time.Millisecond)
	}
}

func main() {
	seconds := 1.5
	if s, err := strconv.ParseFloat(os.Args[len(os.Args)-1], 64); err == nil {
		seconds = s
	}
	e := newEngine()
	var late time.Duration
	batches := 0
	start := time.Now()
	for time.Since(start).Seconds() < seconds {
		late += settle(e)
		batches++
	}
	fmt.Printf("%d batches; the result lay there %v of %v\n", batches, late.Round(time.Millisecond), time.Since(start).Round(time.Millisecond))
}
