package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// history is the ids that a reader was told, in order.
type history struct {
	mu  sync.Mutex // guards ids
	ids []string
}

func (h *history) add(kind, id string) {
	if kind != string(statusKind) {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ids = append(h.ids, id)
}

func (h *history) all() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.ids)
}

// quietFor is how long no event may come for those of before to be over.
const quietFor = time.Second

// lull reads until no more events come, and returns the id behind which all readers begin: so they are told the same.
func lull(ctx context.Context, client *http.Client, url, token string) (string, error) {
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	body, err := openStream(ctx, client, url, token, "")
	if err != nil {
		return "", err
	}
	defer body.Close()
	quiet := time.AfterFunc(quietFor, leave)
	s := scanner{each: func(string, string) { quiet.Reset(quietFor) }}
	s.read(body)
	if len(s.id) == 0 {
		return "", errors.New("follow events: the stream names no id to begin at")
	}
	return string(s.id), nil
}

// uncut reads without a break: it is what the others are held against.
func (h *history) uncut(ctx context.Context, client *http.Client, url, token, behind string) (*scanner, func(), error) {
	ctx, cancel := context.WithCancel(ctx)
	body, err := openStream(ctx, client, url, token, behind)
	if err != nil {
		cancel()
		return nil, nil, err
	}
	s := &scanner{each: h.add}
	done := make(chan struct{})
	go func() { defer close(done); s.read(body) }() // ends with the context
	return s, func() { cancel(); _ = body.Close(); <-done }, nil
}

// resumed is what became of a reader that was cut again and again.
type resumed struct {
	Cuts    int  `json:"cuts"`
	Events  int  `json:"events"`
	Resets  int  `json:"resets"`
	Gapless bool `json:"gapless"` // it has the ids of the uncut reader, in order
}

const (
	shortestRead = 100 * time.Millisecond
	longestRead  = 2 * time.Second
)

// cutAgainAndAgain reads for a random while, cuts its connection wherever it is, and comes back at the other instance
// behind the last event that was whole, until it is told to end; then it reads until it has as many events as there were.
func (h *history) cutAgainAndAgain(ctx context.Context, client *http.Client, urls []string, token, behind string, total <-chan int) (resumed, error) {
	var r resumed
	want := -1
	var giveUp time.Time
	for ; ; r.Cuts++ {
		life := shortestRead + rand.N(longestRead-shortestRead)
		reading, cut := context.WithTimeout(ctx, life)
		body, err := openStream(reading, client, urls[r.Cuts%len(urls)], token, behind)
		if err == nil {
			s := scanner{each: func(kind, id string) { behind = id; h.add(kind, id) }}
			s.read(body)
			err = body.Close()
			r.Resets += s.seen.Resets
		}
		cut()
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return r, err
		}
		select {
		case want = <-total:
			giveUp = time.Now().Add(catchUp)
		default:
		}
		if want >= 0 && (len(h.all()) >= want || time.Now().After(giveUp)) {
			r.Events = len(h.all())
			return r, ctx.Err()
		}
	}
}

// stalled is what became of a reader that has stopped reading.
type stalled struct {
	After  float64 `json:"cut_after_seconds"` // 0: it was not cut
	Events int64   `json:"events"`            // that it finds when it reads on
	End    string  `json:"end"`               // event that it finds last
}

// stall asks for the events, and reads none of them until the service has ended the connection, or the context ends.
func stall(ctx context.Context, address, token string) (stalled, error) {
	var r stalled
	u, err := url.Parse(address)
	if err != nil {
		return r, err
	}
	conn, err := net.DialTimeout("tcp", u.Host, dialTimeout)
	if err != nil {
		return r, err
	}
	defer conn.Close()
	if err := conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil { // or the kernel would read on for long
		return r, err
	}
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", eventsPath, u.Host, token); err != nil {
		return r, err
	}
	begin := time.Now()
	for established(conn) {
		select {
		case <-ctx.Done():
			return r, nil
		case <-time.After(100 * time.Millisecond):
		}
	}
	r.After = time.Since(begin).Seconds()
	if err := conn.SetReadDeadline(time.Now().Add(dialTimeout)); err != nil {
		return r, err
	}
	var s scanner
	s.read(conn)
	r.Events, r.End = s.seen.Events, s.seen.End
	return r, nil
}

// established reports whether the other side still has its end of a connection of this machine. Only the kernel
// knows: whoever does not read is not told of the end.
func established(conn net.Conn) bool {
	table, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		return false
	}
	here, there := conn.LocalAddr().(*net.TCPAddr).Port, conn.RemoteAddr().(*net.TCPAddr).Port
	for line := range strings.Lines(string(table)) {
		columns := strings.Fields(line) // number, local address, remote address, state; ports in hexadecimal
		if len(columns) > 3 && portIn(columns[1]) == there && portIn(columns[2]) == here {
			return columns[3] == "01"
		}
	}
	return false
}

func portIn(address string) int {
	_, text, _ := strings.Cut(address, ":")
	port, err := strconv.ParseInt(text, 16, 32)
	if err != nil {
		return -1
	}
	return int(port)
}
