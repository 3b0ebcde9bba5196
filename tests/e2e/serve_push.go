// Pushes a profile as pyroscope-go and Grafana Alloy do, with what Go's own library writes on the wire.
//
//	push pyroscope|alloy -addr URL -name NAME -file FILE [-config JSON] [-bearer TOKEN] [-labels k=v,...]
//
// Prints the status and, if it is not 200, the body.
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"log"
	"mime/multipart"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

var (
	addr   = flag.String("addr", "", "address of the server")
	name   = flag.String("name", "", "name with labels, as app{k=v}")
	labels = flag.String("labels", "", "of Alloy: k=v,...")
	config = flag.String("config", "", "sample_type_config")
	file   = flag.String("file", "", "the profile")
	bearer = flag.String("bearer", "", "token")
)

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func send(req *http.Request) {
	if *bearer != "" {
		req.Header.Set("Authorization", "Bearer "+*bearer)
	}
	client := &http.Client{
		Timeout:       30 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	check(err)
	body, err := io.ReadAll(resp.Body)
	check(err)
	fmt.Println(resp.StatusCode)
	if resp.StatusCode != 200 || len(body) > 0 {
		fmt.Println(strings.TrimSpace(string(body)))
	}
}

// Two parts, each with a file name; times in nanoseconds.
func pyroscope(profile []byte) {
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	part, err := w.CreateFormFile("profile", "profile.pprof")
	check(err)
	_, err = part.Write(profile)
	check(err)
	if *config != "" {
		part, err = w.CreateFormFile("sample_type_config", "sample_type_config.json")
		check(err)
		_, err = part.Write([]byte(*config))
		check(err)
	}
	check(w.Close())
	u, err := url.Parse(*addr + "/ingest")
	check(err)
	until := time.Now()
	q := u.Query()
	q.Set("name", *name)
	q.Set("from", strconv.FormatInt(until.Add(-15*time.Second).UnixNano(), 10))
	q.Set("until", strconv.FormatInt(until.UnixNano(), 10))
	q.Set("spyName", "gospy")
	q.Set("sampleRate", "100")
	q.Set("units", "samples")
	q.Set("aggregationType", "sum")
	u.RawQuery = q.Encode()
	req, err := http.NewRequest("POST", u.String(), &body)
	check(err)
	req.Header.Set("Content-Type", w.FormDataContentType())
	req.Header.Set("X-Scope-OrgID", "somebody")
	send(req)
}

func field(number int, value []byte) []byte {
	out := binary.AppendUvarint(nil, uint64(number<<3|2))
	out = binary.AppendUvarint(out, uint64(len(value)))
	return append(out, value...)
}

// What connect-go sends: the message gzipped.
func alloy(profile []byte) {
	var series []byte
	for _, pair := range strings.Split(*labels, ",") {
		k, v, _ := strings.Cut(pair, "=")
		series = append(series, field(1, append(field(1, []byte(k)), field(2, []byte(v))...))...)
	}
	sample := append(field(1, profile), field(2, []byte("8d6f3d3e-0b0f-4a7e-9a8e-1c2d3e4f5a6b"))...)
	series = append(series, field(2, sample)...)
	var body bytes.Buffer
	z := gzip.NewWriter(&body)
	_, err := z.Write(field(1, series))
	check(err)
	check(z.Close())
	req, err := http.NewRequest("POST", *addr+"/push.v1.PusherService/Push", &body)
	check(err)
	req.Header.Set("Content-Type", "application/proto")
	req.Header.Set("Content-Encoding", "gzip")
	req.Header.Set("Connect-Protocol-Version", "1")
	req.Header.Set("Connect-Timeout-Ms", "9999")
	req.Header.Set("Accept-Encoding", "gzip")
	req.Header.Set("User-Agent", "Alloy/v1.11.0 (linux)")
	req.Header.Set("X-Alloy-Id", "5a0b1c2d-0000-4000-8000-000000000000")
	send(req)
}

func main() {
	command := os.Args[1]
	check(flag.CommandLine.Parse(os.Args[2:]))
	profile, err := os.ReadFile(*file)
	check(err)
	switch command {
	case "pyroscope":
		pyroscope(profile)
	case "alloy":
		alloy(profile)
	default:
		log.Fatal("which client?")
	}
}
