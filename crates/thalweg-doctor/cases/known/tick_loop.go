// SPIN-BURNS-CPU: the empty 'default' makes the select a busy loop; some 180 ticks and
// commands in a second are all the work. top shows: one core full with four players, 'the
// room computes'.
// check by hand: perf record -e cpu-clock: selectgo, sellock, unlock2 and clock_gettime > 85
// %, apply is not seen; strace -f -c: a few hundred calls in all, 19 sched_yield;
// /usr/bin/time: 0.97 s user, 0.00 s system; the players and the tick come from timers, they
// need no core for long.

package main

import (
	"fmt"
	"os"
	"strconv"
	"time"
)

// Room of a game server: the loop takes player commands and the tick from
// channels. The "default" was added so that the loop "never blocks".

type command struct{ player, dx, dy int }

type room struct {
	pos   map[int][2]int
	ticks int
}

func (r *room) apply(c command) {
	p := r.pos[c.player]
	r.pos[c.player] = [2]int{p[0] + c.dx, p[1] + c.dy}
}

func (r *room) run(cmds <-chan command, tick <-chan time.Time, done <-chan struct{}) {
	for {
		select {
		case c := <-cmds:
			r.apply(c)
		case <-tick:
			r.ticks++
		case <-done:
			return
		default:
		}
	}
}

// players sends a few commands in each 25 ms, as four clients do.
func players(cmds chan<- command, done <-chan struct{}) {
	t := time.NewTicker(25 * time.Millisecond)
	defer t.Stop()
	for n := 0; ; n++ {
		select {
		case <-t.C:
			for p := 0; p < 4; p++ {
				cmds <- command{p, n % 3, p % 2}
			}
		case <-done:
			return
		}
	}
}

func main() {
	seconds := 1.5
	if n := len(os.Args); n > 1 {
		if s, err := strconv.ParseFloat(os.Args[n-1], 64); err == nil {
			seconds = s
		}
	}
	done := make(chan struct{})
	finished := make(chan struct{})
	cmds := make(chan command, 64)
	tick := time.NewTicker(50 * time.Millisecond)
	r := &room{pos: map[int][2]int{}}
	go players(cmds, done)
	go func() { r.run(cmds, tick.C, done); close(finished) }()
	time.Sleep(time.Duration(seconds * float64(time.Second)))
	close(done)
	<-finished
	fmt.Println(r.ticks, "ticks,", len(r.pos), "players")
}
