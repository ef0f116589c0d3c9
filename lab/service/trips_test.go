package service_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"motorpool/internal/app"
	"motorpool/internal/require"
	"motorpool/telematics"
)

// tripCounter counts the round trips of an instance to Postgres and Redis by their purpose. It is
// safe for concurrent use.
type tripCounter struct {
	mu    sync.Mutex
	count map[string]int
}

func (c *tripCounter) add(trip string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count[trip]++
}

func (c *tripCounter) read() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.count)
}

// relay forwards connections to the server of an address, and returns its own address. What a
// client sends passes through forward, which counts the trips.
func (c *tripCounter) relay(t *testing.T, address string, forward func(*bufio.Reader, io.Writer, func(string)) error) string {
	t.Helper()
	server, err := url.Parse(address)
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	backend := server.Host
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return // the relay was closed
			}
			conn, err := net.Dial("tcp", backend)
			if err != nil {
				_ = client.Close()
				continue
			}
			go func() {
				_ = forward(bufio.NewReader(client), conn, c.add)
				_ = conn.Close()
			}()
			go func() {
				_, _ = io.Copy(client, conn)
				_ = client.Close()
			}()
		}
	}()
	server.Host = listener.Addr().String()
	return server.String()
}

// forwardPostgres counts each Sync and each simple query as a trip of its statement.
func forwardPostgres(client *bufio.Reader, server io.Writer, count func(string)) error {
	const startup = 3 << 16 // version 3.0 of the protocol; other codes request encryption first
	for code := 0; code != startup; {
		message, err := readMessage(client, 0)
		if err != nil {
			return err
		}
		code = int(binary.BigEndian.Uint32(message[4:]))
		if _, err := server.Write(message); err != nil {
			return err
		}
	}
	statements, current := map[string]string{}, ""
	for {
		message, err := readMessage(client, 1)
		if err != nil {
			return err
		}
		texts := bytes.Split(message[5:], []byte{0})
		switch message[0] {
		case 'P':
			statements[string(texts[0])], current = string(texts[1]), string(texts[1])
		case 'B':
			current = statements[string(texts[1])]
		case 'Q':
			count(string(texts[0]))
		case 'S':
			count(current)
		}
		if _, err := server.Write(message); err != nil {
			return err
		}
	}
}

// readMessage reads a message with its length after its type.
func readMessage(r *bufio.Reader, typeSize int) ([]byte, error) {
	head := make([]byte, typeSize+4)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	message := make([]byte, typeSize+int(binary.BigEndian.Uint32(head[typeSize:])))
	copy(message, head)
	_, err := io.ReadFull(r, message[len(head):])
	return message, err
}

// forwardRedis counts what a client writes together as one trip, named by its first command.
func forwardRedis(client *bufio.Reader, server io.Writer, count func(string)) error {
	for {
		if _, err := client.Peek(1); err != nil {
			return err
		}
		sent, err := client.Peek(client.Buffered())
		if err != nil {
			return err
		}
		if sent[0] == '*' { // otherwise it is the rest of a long command
			count(tripName(commandName(sent))) // without keys, which differ by request
		}
		if _, err := server.Write(sent); err != nil {
			return err
		}
		if _, err := client.Discard(len(sent)); err != nil {
			return err
		}
	}
}

// tripNames maps a part of the statement or command to the purpose of the trip. Trips that delay no
// request have an empty name.
var tripNames = []struct{ part, name string }{
	{"redis EVALSHA rate:", "redis limits"},
	{"redis HGETALL", "redis state"},
	{"redis SET motorpool:", "redis register"},
	{"redis EVALSHA motorpool:", ""}, // reported state, for other instances
	{"redis MULTI", ""},              // events
	{"redis DEL", ""},                // removal of registrations
	{"with claim as", "postgres claim"},
	{"with settlement as", "postgres settle"},
	{"from idempotency_keys", "postgres key"},
	{"insert into used_signatures", "postgres signature"},
	{"from bookings b", "postgres booking"},
	{"from vehicles v", "postgres vehicle"},
	{"insert into activity", "postgres entry"},
	{"update units set last_seen", "postgres write state"},
	{"select u.serial", "postgres write state"},
	{"select vehicle_id, s.updated_at", "postgres write state"},
	{"insert into snapshots", "postgres write state"},
	{"update units u set last_seen", "postgres write state"},
	{"BEGIN", "postgres write state"},
	{"COMMIT", "postgres write state"},
}

func tripName(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	for _, t := range tripNames {
		if strings.Contains(text, t.part) {
			return t.name
		}
	}
	return text
}

// commandName returns the name of the first command that a client wrote to Redis.
func commandName(sent []byte) string {
	lines := strings.Split(string(sent), "\r\n") // each argument follows its length
	if len(lines) < 3 {
		return "redis"
	}
	name, argument := strings.ToUpper(lines[2]), 4
	if name == "EVALSHA" {
		argument = 8 // the key after the script and the number of keys
	}
	key := ""
	if len(lines) > argument {
		key = lines[argument]
	}
	return "redis " + name + " " + key
}

// tripsOf lists the trips that delay a request.
var tripsOf = map[string]map[string]int{
	"order":            {"redis limits": 1, "redis register": 1, "postgres claim": 1, "postgres settle": 1},
	"order with a key": {"redis limits": 1, "postgres key": 1, "redis register": 1, "postgres claim": 1, "postgres settle": 1},
	"client's order": {
		"redis limits": 2, "postgres signature": 1, "postgres booking": 1, "redis register": 1, "postgres claim": 1, "postgres settle": 1,
	},
	"status": {"redis limits": 1, "redis state": 1, "postgres vehicle": 1, "postgres entry": 1},
	"refreshed status": {
		"redis limits": 1, "redis register": 1, "postgres claim": 1, "postgres settle": 1,
		"redis state": 1, "postgres vehicle": 1, "postgres write state": 1, "postgres entry": 1,
	},
}

// An administrator of an agency and a client send requests with limits on, one at a time. No other
// test of the package runs concurrently: on a busy machine trips are repeated.
func TestRequest_MakesNoMoreTripsThanListed(t *testing.T) {
	s := realStack(t, 1)
	r := s.rent()
	trips := &tripCounter{count: map[string]int{}}
	s.address = trips.relay(t, s.address, forwardPostgres)
	s.redisURL = trips.relay(t, s.redisURL, forwardRedis)
	const rate = 100_000
	i := r.open(func(c *app.Config) { c.VehicleRate, c.AdminRate, c.RefreshRate, c.ClientRate = rate, rate, rate, rate })
	s.interval = time.Hour
	s.drive(nil, healthy)
	c := r.newCustomer()
	c.add(i, "pm_card_visa", true)
	booking := c.book(i, 1, fromNow(time.Minute))
	i.start(booking)
	c.awaitPayment(i, booking, "paid")
	i.admin = s.token(telematics.Actor{Subject: "admin-1", Role: telematics.Admin, Agency: 1})
	requests := map[string]func(n int) int{
		"order":            func(int) int { return i.control(1, telematics.Lock).status },
		"order with a key": func(n int) int { return i.control(1, telematics.Lock, "Idempotency-Key", strconv.Itoa(n)).status },
		"status":           func(int) int { return i.get("/api/v1/admin/vehicles/1/status", nil).status },
		"refreshed status": func(int) int { return i.get("/api/v1/admin/vehicles/1/status?refresh=true", nil).status },
		"client's order":   func(int) int { return c.post(i, ownOf(booking)+"/control/lock", "").status },
	}
	const repetitions = 9
	sent := 0
	send := func(name string) {
		sent++
		for tries := 1; ; tries++ {
			status := requests[name](sent)
			if status == http.StatusOK {
				return
			}
			if status != http.StatusServiceUnavailable || tries == 3 {
				// On a busy machine servers may be slow.
				t.Fatalf("%s: status %d", name, status)
			}
		}
	}
	for name := range requests { // fills the caches
		send(name)
	}
	time.Sleep(writtenWithin)
	for name := range requests {
		for tries := 1; ; tries++ { // on a busy machine, other work makes trips meanwhile
			got, want := trips.each(repetitions, func() { send(name) }), tripsOf[name]
			if maps.Equal(got, want) {
				break
			}
			if tries == 6 {
				t.Errorf("%s makes the trips %v, want %v", name, got, want)
				break
			}
		}
	}
}

// each returns the trips that a request makes. Those that are made in the same time without
// requests are subtracted. What requests before it leave to write is written.
func (c *tripCounter) each(repetitions int, request func()) map[string]int {
	start := time.Now()
	got := c.median(repetitions, request)
	pause := time.Since(start) / time.Duration(repetitions)
	time.Sleep(writtenWithin)
	for name, idle := range c.median(repetitions, func() { time.Sleep(pause) }) {
		got[name] -= idle
	}
	maps.DeleteFunc(got, func(name string, each int) bool { return name == "" || each <= 0 })
	return got
}

// median returns the median of the trips of repetitions of an action, by purpose. Work that comes
// in bursts, as the rules of alerts do, does not change it.
func (c *tripCounter) median(repetitions int, action func()) map[string]int {
	each := map[string][]int{}
	for i := range repetitions {
		before := c.read()
		action()
		for trip, n := range c.read() {
			name := tripName(trip)
			if each[name] == nil {
				each[name] = make([]int, repetitions)
			}
			each[name][i] += n - before[trip]
		}
	}
	got := map[string]int{}
	for name, counts := range each {
		slices.Sort(counts)
		got[name] = counts[repetitions/2]
	}
	return got
}

// writtenWithin is the time within which an instance has written all that a request leaves to
// write.
const writtenWithin = 3 * time.Second
