// OVERSUBSCRIBED: a gateway that checks signatures, with as many workers, and as many processors
// of Go's, as its host has: 16. Its container has two cores. The system cuts each request into
// pieces, and many are done only when their client has given up.
//
// Checked on 2 cores of a virtual machine, in 1.5 s: 1,506 requests in time and 731 too late; with
// two processors of Go's (`host_procs 2 1.5`) 2,168 and 144. `schedstat`: each of 16 threads has
// run for 0.14 to 0.17 of 1.2 s, and waited for a core for 1.0 s. `perf stat`: 2.86 s user, 0.04 s
// system. `perf record`: SHA-256, hardly anything in runtime.*.
package main

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"time"
)

const (
	hostCores = 16
	// A key is derived by so many rounds.
	rounds  = 12_000
	patient = 10 * time.Millisecond
)

func verify(number int) byte {
	var block [32]byte
	binary.LittleEndian.PutUint64(block[:], uint64(number))
	for range rounds {
		block = sha256.Sum256(block[:])
	}
	return block[0]
}

type tally struct {
	inTime, late int
	sum          byte
}

func serve(tally *tally, end time.Time) {
	for number := 0; time.Now().Before(end); number++ {
		began := time.Now()
		tally.sum += verify(number)
		if time.Since(began) < patient {
			tally.inTime++
		} else {
			tally.late++
		}
	}
}

func main() {
	procs := hostCores
	// As many as the container has are the check of it.
	if len(os.Args) > 2 {
		procs, _ = strconv.Atoi(os.Args[1])
	}
	seconds, err := strconv.ParseFloat(os.Args[len(os.Args)-1], 64)
	if err != nil {
		panic(err)
	}
	runtime.GOMAXPROCS(procs)
	end := time.Now().Add(time.Duration(seconds * float64(time.Second)))
	tallies := make([]tally, hostCores)
	var done sync.WaitGroup
	for i := range tallies {
		done.Go(func() { serve(&tallies[i], end) })
	}
	done.Wait()
	var all tally
	for _, tally := range tallies {
		all.inTime += tally.inTime
		all.late += tally.late
	}
	fmt.Println(all.inTime, "requests answered in time,", all.late, "too late")
}
