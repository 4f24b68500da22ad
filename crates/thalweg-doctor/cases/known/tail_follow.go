// SLEEP-POLLING: follows a log file as `tail -f` does without inotify: it reads to the end, sleeps
// for 4 ms, and reads again. The program that writes a line every 10 ms runs beside it.
//
// Checked on 2 cores of a virtual machine, in 1.5 s: `perf stat`: 167 lines, 359 looks in vain,
// 0.02 s of processor time, 1,750 switches. `strace -f -c -w`: asleep in futex and epoll_pwait, 2.1
// ms a call.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"
)

func write(path string) {
	file, err := os.Create(path)
	if err != nil {
		panic(err)
	}
	fmt.Println("ready")
	for line := 0; ; line++ {
		fmt.Fprintf(file, "line %d of a log that somebody follows\n", line)
		time.Sleep(10 * time.Millisecond)
	}
}

func follow(path string, end time.Time) (lines, looks int) {
	file, err := os.Open(path)
	if err != nil {
		panic(err)
	}
	reader := bufio.NewReader(file)
	for time.Now().Before(end) {
		_, err := reader.ReadString('\n')
		if err == io.EOF {
			time.Sleep(4 * time.Millisecond)
			looks++
			continue
		}
		lines++
	}
	return lines, looks
}

func main() {
	if os.Args[1] == "writer" {
		write("followed.log")
		return
	}
	seconds, err := strconv.ParseFloat(os.Args[1], 64)
	if err != nil {
		panic(err)
	}
	end := time.Now().Add(time.Duration(seconds * float64(time.Second)))
	lines, looks := follow("followed.log", end)
	fmt.Println(lines, "lines,", looks, "looks in vain")
}
