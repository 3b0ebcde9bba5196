// A Go program as pods run them: /debug/pprof at the address that is given, and something to do.
package main

import (
	"fmt"
	"net"
	"net/http"
	_ "net/http/pprof"
	"os"
	"runtime"
	"sync"
)

var kept [][]byte

//go:noinline
func busyInGo(n int) (sum int) {
	for i := 0; i < n; i++ {
		sum += i * i % 7
	}
	return sum
}

func main() {
	var lock sync.Mutex
	runtime.SetMutexProfileFraction(1)
	runtime.SetBlockProfileRate(1)
	listener, err := net.Listen("tcp", os.Args[1])
	if err != nil {
		panic(err)
	}
	for i := 0; i < 64; i++ {
		kept = append(kept, make([]byte, 1<<20))
	}
	for i := 0; i < 2; i++ {
		go func() {
			for {
				lock.Lock()
				busyInGo(1 << 22)
				lock.Unlock()
			}
		}()
	}
	fmt.Println("listens")
	panic(http.Serve(listener, nil))
}
