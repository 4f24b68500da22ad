// SYSCALL-BOUND: reads a file byte by byte without a buffer, and each byte costs a system call.
//
// Checked on 2 cores of a virtual machine: `time`: 3,561,000 reads of a byte, 0.99 s system and
// 0.46 s user in 1.5 s; 3,138 voluntary switches, so it does not wait.
package main

import (
	"fmt"
	"os"
	"strconv"
	"time"
)

func main() {
	seconds := 1.5
	if len(os.Args) > 1 {
		seconds, _ = strconv.ParseFloat(os.Args[1], 64)
	}
	file, err := os.Open("/dev/zero")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	end := time.Now().Add(time.Duration(seconds * 1e9))
	bytes := 0
	one := make([]byte, 1)
	for time.Now().Before(end) {
		for i := 0; i < 1000; i++ {
			count, err := file.Read(one)
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			bytes += count
		}
	}
	fmt.Println(bytes, "bytes")
}
