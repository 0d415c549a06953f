// A client that sends one AdmissionReview again and again, as an API server's webhook client does: HTTP/1.1 over TLS, 25
// idle connections per host that stay for 90 seconds, no compression, a body that can be sent again.
//
//	-conns N   N workers, each sends its next review when the last is answered
//	-rate R    R reviews a second on average, at random times, whether the earlier ones are answered or not
//	-burst N   N reviews at once, each -every
//
// A latency counts from the time at which the review was due, so that a slow server does not slow the measure down.
package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// load is what is sent, and what came of it.
type load struct {
	url    string
	body   []byte
	client *http.Client

	mutex     sync.Mutex
	latencies []float64
	errors    map[string]int
}

func newClient(closing bool) *http.Client {
	dialer := &net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}
	// The certificate is one of the bench's own, on a loopback address.
	config := &tls.Config{InsecureSkipVerify: true, ServerName: "webhook.ns.svc", NextProtos: []string{"http/1.1"}}
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig: config, DialContext: dialer.DialContext, TLSHandshakeTimeout: 10 * time.Second,
		MaxIdleConnsPerHost: 25, IdleConnTimeout: 90 * time.Second, DisableKeepAlives: closing, DisableCompression: true,
		TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{},
	}}
}

func (l *load) send() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, l.url, bytes.NewReader(l.body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := l.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", response.StatusCode)
	}
	return nil
}

// review sends one review that was due at the given time, and records its latency or its error.
func (l *load) review(due time.Time) {
	err := l.send()
	latency := float64(time.Since(due).Microseconds())
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if err != nil {
		message := err.Error()
		l.errors[message[strings.LastIndex(message, ": ")+1:]]++
		return
	}
	l.latencies = append(l.latencies, latency)
}

func (l *load) open(rate float64, end time.Time) {
	var group sync.WaitGroup
	for due := time.Now(); due.Before(end); due = due.Add(time.Duration(rand.ExpFloat64() / rate * 1e9)) {
		time.Sleep(time.Until(due))
		group.Add(1)
		go func() { defer group.Done(); l.review(due) }()
	}
	group.Wait()
}

func (l *load) bursts(count int, every time.Duration, end time.Time) {
	var group sync.WaitGroup
	for time.Now().Before(end) {
		due := time.Now()
		for range count {
			group.Add(1)
			go func() { defer group.Done(); l.review(due) }()
		}
		time.Sleep(every)
	}
	group.Wait()
}

func (l *load) closed(workers int, end time.Time) {
	var group sync.WaitGroup
	for range workers {
		group.Add(1)
		go func() {
			defer group.Done()
			for time.Now().Before(end) {
				l.review(time.Now())
			}
		}()
	}
	group.Wait()
}

func (l *load) percentile(share float64) float64 {
	if len(l.latencies) == 0 {
		return -1
	}
	return l.latencies[int(share*float64(len(l.latencies)-1))]
}

func (l *load) report(seconds float64) {
	slices.Sort(l.latencies)
	failures := 0
	for _, count := range l.errors {
		failures += count
	}
	answered := len(l.latencies)
	fmt.Printf("RES n=%d rps=%.1f p50=%.0f p90=%.0f p99=%.0f max=%.0f err=%d\n", answered, float64(answered)/seconds,
		l.percentile(.5), l.percentile(.9), l.percentile(.99), l.percentile(1), failures)
	if failures > 0 {
		fmt.Println("ERRORS", l.errors)
	}
}

func main() {
	url := flag.String("url", "", "where the reviews go")
	file := flag.String("body", "", "the file with the review")
	rate := flag.Float64("rate", 0, "reviews a second")
	burst := flag.Int("burst", 0, "reviews at once")
	every := flag.Duration("every", time.Second, "the time between bursts")
	workers := flag.Int("conns", 0, "workers that wait for each answer")
	duration := flag.Duration("dur", 5*time.Second, "how long reviews are sent")
	closing := flag.Bool("close", false, "one connection for each review")
	flag.Parse()
	body, err := os.ReadFile(*file)
	if err != nil {
		log.Fatal(err)
	}
	l := &load{url: *url, body: body, client: newClient(*closing), errors: map[string]int{}}
	start := time.Now()
	end := start.Add(*duration)
	switch {
	case *rate > 0:
		l.open(*rate, end)
	case *burst > 0:
		l.bursts(*burst, *every, end)
	default:
		l.closed(*workers, end)
	}
	l.report(time.Since(start).Seconds())
}
