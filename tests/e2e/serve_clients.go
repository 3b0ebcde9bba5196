// Talks to a profefe server as profefe's agent and kprofefe do, with profiles of this very process.
//
//	clients agent|kprofefe|get -addr URL -service NAME ...
//
// agent and kprofefe keep what they push in files of -out, and print a line for each push:
// status, type, attempts, file and id, or in place of the id what the server said against it.
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand"
	"net"
	"net/http"
	_ "net/http/pprof"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"time"
)

var (
	addr    = flag.String("addr", "", "address of the server")
	service = flag.String("service", "", "service")
	labels  = flag.String("labels", "", "pairs k=v, one in a line")
	types   = flag.String("types", "cpu heap block mutex goroutine threadcreate", "what the agent sends, in this order")
	ticks   = flag.Int("ticks", 1, "rounds of the agent")
	cpuTime = flag.Duration("cpu", 300*time.Millisecond, "length of a CPU profile")
	delay   = flag.Duration("delay", 5*time.Second, "of the agent before it tries a second time")
	out     = flag.String("out", ".", "folder for what is pushed")
	idle    = flag.Bool("idle", false, "have nothing in the profiles of locks")
)

// ---- something to profile

var (
	lock    sync.Mutex
	garbage = make([][]byte, 64)
	channel = make(chan int)
)

//go:noinline
func burn(n int) (sum int) {
	for i := 0; i < n; i++ {
		sum += i * i % 7
	}
	return
}

//go:noinline
func allocate(n int) {
	lock.Lock()
	defer lock.Unlock()
	for i := range garbage {
		garbage[i] = bytes.Repeat([]byte{byte(i)}, n+rand.Intn(n))
	}
	burn(100000)
}

func work() {
	for {
		burn(300000)
		allocate(16384)
		select {
		case channel <- 1:
		case <-channel:
		case <-time.After(3 * time.Millisecond):
		}
	}
}

func startWork() {
	runtime.MemProfileRate = 4096
	if *idle {
		go func() {
			for {
				burn(1000)
			}
		}()
		return
	}
	runtime.SetBlockProfileRate(1)
	runtime.SetMutexProfileFraction(1)
	for i := 0; i < 3; i++ {
		go work()
	}
	go func() { // a thread of its own
		runtime.LockOSThread()
		select {}
	}()
}

// ---- what both clients do

type profileMeta struct {
	ID         string    `json:"id"`
	ExternalID string    `json:"external_id"`
	Type       string    `json:"type"`
	Service    string    `json:"service"`
	CreatedAt  time.Time `json:"created_at"`
	Labels     []struct {
		Key   string `json:"key"`
		Value string `json:"value"`
	} `json:"labels"`
}

func decode(resp *http.Response, body interface{}) error {
	var answer struct {
		Code  int             `json:"code"`
		Body  json.RawMessage `json:"body"`
		Error string          `json:"error"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return fmt.Errorf("status %d: %v", resp.StatusCode, err)
	}
	if answer.Code != resp.StatusCode {
		return fmt.Errorf("code %d with status %d", answer.Code, resp.StatusCode)
	}
	if answer.Code != http.StatusOK {
		return fmt.Errorf("%s", answer.Error)
	}
	return json.Unmarshal(answer.Body, body)
}

var printing sync.Mutex

func keep(body []byte) string {
	f, err := os.CreateTemp(*out, "pushed")
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(body); err != nil {
		log.Fatal(err)
	}
	return f.Name()
}

func report(status int, kind string, attempts int, file, what string) {
	printing.Lock()
	defer printing.Unlock()
	fmt.Printf("%d\t%s\t%d\t%s\t%s\n", status, kind, attempts, filepath.Base(file), what)
}

// ---- profefe's agent

func take(kind string) []byte {
	var buf bytes.Buffer
	if kind == "cpu" {
		if err := pprof.StartCPUProfile(&buf); err != nil {
			log.Fatal(err)
		}
		time.Sleep(*cpuTime)
		pprof.StopCPUProfile()
	} else if err := pprof.Lookup(kind).WriteTo(&buf, 0); err != nil {
		log.Fatal(err)
	}
	return buf.Bytes()
}

// Names and values are escaped here, and all of it once more as a part of the URL.
func encodeLabels(lines string) string {
	var pairs []string
	for _, line := range strings.Split(lines, "\n") {
		if k, v, ok := strings.Cut(line, "="); ok {
			pairs = append(pairs, url.QueryEscape(k)+"="+url.QueryEscape(v))
		}
	}
	return strings.Join(pairs, ",")
}

// Ten times at most; what the server does not like (4xx) is not sent again.
func agentSend(kind string, body []byte) {
	q := url.Values{}
	q.Set("service", *service)
	q.Set("labels", encodeLabels(*labels))
	q.Set("type", kind)
	file := keep(body)
	for attempt := 1; attempt <= 10; attempt++ {
		resp, err := http.Post(*addr+"/api/0/profiles?"+q.Encode(), "", bytes.NewReader(body))
		if err == nil && resp.StatusCode < 500 {
			var meta profileMeta
			what := ""
			if err := decode(resp, &meta); err != nil {
				what = err.Error()
			} else {
				what = meta.ID
			}
			resp.Body.Close()
			report(resp.StatusCode, kind, attempt, file, what)
			return
		}
		if err == nil {
			resp.Body.Close()
		}
		time.Sleep(time.Duration(attempt) * *delay)
	}
	report(0, kind, 10, file, "given up")
}

func agent() {
	startWork()
	for i := 0; i < *ticks; i++ {
		for _, kind := range strings.Fields(*types) {
			agentSend(kind, take(kind))
		}
	}
}

// ---- kprofefe

// The profile, which is packed, with comments of its own.
func addComments(packed []byte, comments ...string) []byte {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		log.Fatal(err)
	}
	profile, err := io.ReadAll(r)
	if err != nil {
		log.Fatal(err)
	}
	strings := uint64(0)
	for at := 0; at < len(profile); {
		tag, n := binary.Uvarint(profile[at:])
		value, m := binary.Uvarint(profile[at+n:])
		at += n + m
		if tag&7 == 2 {
			at += int(value)
		}
		if tag>>3 == 6 {
			strings++
		}
	}
	for _, comment := range comments {
		profile = append(profile, 6<<3|2)
		profile = binary.AppendUvarint(profile, uint64(len(comment)))
		profile = append(append(profile, comment...), 13<<3)
		profile = binary.AppendUvarint(profile, strings)
		strings++
	}
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	w.Write(profile)
	w.Close()
	return buf.Bytes()
}

func kprofefeSend(pod, path, kind string) {
	resp, err := http.Get(pod + path)
	if err != nil {
		log.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		log.Fatal(err)
	}
	body = addComments(body, "type="+kind, "url="+pod+path)
	file := keep(body)
	// As it comes, with a comma first.
	query := "service=" + url.QueryEscape(*service) + "&instance_id=10.0.0.1&type=" + kind + "&labels=," + strings.ReplaceAll(*labels, "\n", ",")
	req, err := http.NewRequest("POST", *addr+"/api/0/profiles?"+query, bytes.NewReader(body))
	if err != nil {
		log.Fatal(err)
	}
	req.Header.Set("UserAgent", "kubectl-profefe")
	req.Header.Set("Content-Type", "application/octet-stream")
	resp, err = http.DefaultClient.Do(req)
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	var meta profileMeta
	what := ""
	if err := decode(resp, &meta); err != nil {
		what = err.Error()
	} else {
		what = meta.ID
	}
	report(resp.StatusCode, kind, 1, file, what)
}

func kprofefe() {
	startWork()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go http.Serve(l, nil)
	time.Sleep(*cpuTime) // so that there is something in all of them
	var wait sync.WaitGroup
	for _, kind := range []string{"allocs", "block", "goroutine", "heap", "mutex", "threadcreate", "cpu"} {
		path := "/debug/pprof/" + kind
		if kind == "cpu" {
			path = "/debug/pprof/profile?seconds=1"
		}
		wait.Add(1)
		go func(path, kind string) {
			defer wait.Done()
			kprofefeSend("http://"+l.Addr().String(), path, kind)
		}(path, kind)
	}
	wait.Wait()
}

// ---- kubectl-profefe

func getInto(path string, body interface{}) {
	resp, err := http.Get(*addr + path)
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	if err := decode(resp, body); err != nil {
		log.Fatal(err)
	}
}

func get() {
	var services []string
	var profiles []profileMeta
	q := url.Values{}
	q.Set("service", *service)
	q.Set("from", time.Now().UTC().Add(-24*time.Hour).Format("2006-01-02T15:04:05"))
	q.Set("to", time.Now().UTC().Add(time.Hour).Format("2006-01-02T15:04:05"))
	getInto("/api/0/services", &services)
	getInto("/api/0/profiles?"+q.Encode(), &profiles)
	for _, name := range services {
		fmt.Println(name)
	}
	for _, p := range profiles {
		var pairs []string
		for _, l := range p.Labels {
			pairs = append(pairs, l.Key+"="+l.Value)
		}
		fmt.Printf("%s\t%s\t%s\t%d\t%s\n", p.ID, p.Type, p.Service, p.CreatedAt.Unix(), strings.Join(pairs, "|"))
	}
}

func main() {
	log.SetFlags(0)
	commands := map[string]func(){"agent": agent, "kprofefe": kprofefe, "get": get}
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		log.Fatal("usage: clients agent|kprofefe|get -addr URL -service NAME ...")
	}
	flag.CommandLine.Parse(os.Args[2:])
	commands[os.Args[1]]()
}
