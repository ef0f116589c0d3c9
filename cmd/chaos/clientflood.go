package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"motorpool/cmd/chaos/audit"
	"motorpool/cmd/internal/world"
	"motorpool/rental"
	"motorpool/telematics"
)

const (
	clientFloodRequests = 5000
	clientFloodWithin   = 10 * time.Second
	clientFloodCallers  = 24
	// Requests that open the connections, whose buffers take memory in Redis.
	clientFloodWarmUp = 300
	// Bytes: buffers of connections and events vary by some megabytes.
	clientFloodRoom   = 16 << 20
	clientFloodOrders = 100 * time.Millisecond // between two commands of others
	// clientFloodPath is a change without effect: no client has such a card.
	clientFloodPath = "/api/v1/client/payment-methods/4711/default"
)

// clientApp is the app of an agency, and clients who use it.
type clientApp struct {
	key              rental.AgencyKey
	flooder, another string // tokens
}

const flooder = "flooder"

// createApp creates a key for an agency's app, and tokens of clients.
func (r *round) createApp(ctx context.Context) (err error) {
	if r.app.key, err = r.AddAgencyKey(ctx, 1); err != nil {
		return err
	}
	for subject, token := range map[string]*string{flooder: &r.app.flooder, "another": &r.app.another} {
		if *token, err = r.Token(telematics.Actor{Subject: subject, Role: telematics.Client, Agency: 1}); err != nil {
			return err
		}
	}
	return nil
}

// clientFlood lets one client send far more signed changes than its limit allows, while Redis has
// little free memory and others order commands. There is no other fault, so that the flood is the
// reason of every refusal.
func (r *round) clientFlood(ctx context.Context) (f audit.ClientFlood, err error) {
	transport := &http.Transport{MaxIdleConnsPerHost: clientFloodCallers}
	defer transport.CloseIdleConnections()
	callers := &http.Client{Transport: transport, Timeout: callTimeout}

	once := r.signChange(r.app.another)
	if _, err := r.change(ctx, callers, r.app.another, once, 0); err != nil {
		return f, err
	}
	r.sendFlood(ctx, callers, clientFloodWarmUp)
	used, err := r.usedMemory(ctx)
	if err != nil {
		return f, err
	}
	if err := r.redis.ConfigResetStat(ctx).Err(); err != nil {
		return f, err
	}
	if err := r.redis.ConfigSet(ctx, "maxmemory", strconv.Itoa(used+clientFloodRoom)).Err(); err != nil {
		return f, err
	}
	f.From = time.Now()
	stop := r.orderConcurrently(ctx)
	f.Requests, f.Limited = r.sendFlood(ctx, callers, clientFloodRequests)
	stop()
	f.To = time.Now()
	if f.Full, err = r.fullErrors(ctx); err != nil {
		return f, err
	}
	if err := r.redis.ConfigSet(ctx, "maxmemory", "0").Err(); err != nil {
		return f, err
	}
	if f.Kept, err = r.keptSignatures(ctx); err != nil {
		return f, err
	}
	if err := r.redis.FlushAll(ctx).Err(); err != nil {
		return f, err
	}
	f.Replayed, err = r.change(ctx, callers, r.app.another, once, 1)
	return f, err
}

// sendFlood sends requests from many concurrent callers, to every instance, and returns how many
// were answered, and how many refused because of the client's rate.
func (r *round) sendFlood(ctx context.Context, callers *http.Client, requests int) (answered, limited int) {
	var next, got, refused atomic.Int64
	end := time.Now().Add(clientFloodWithin)
	var all sync.WaitGroup
	for range clientFloodCallers {
		all.Go(func() {
			for n := next.Add(1); n <= int64(requests) && time.Now().Before(end) && ctx.Err() == nil; n = next.Add(1) {
				code, err := r.change(ctx, callers, r.app.flooder, r.signChange(r.app.flooder), int(n)%len(r.Running))
				if err != nil {
					continue
				}
				got.Add(1)
				if code == "rate_limited" {
					refused.Add(1)
				}
			}
		})
	}
	all.Wait()
	return int(got.Load()), int(refused.Load())
}

// orderConcurrently sends orders of other callers until stop is called, which waits for their
// answers.
func (r *round) orderConcurrently(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	d := newDraw(r.Seed, 3*r.Callers, r.fleet, r.Instances)
	var orders sync.WaitGroup
	orders.Go(func() {
		for ; ctx.Err() == nil; world.Pause(ctx, clientFloodOrders) {
			o, id := order{car: d.rng.IntN(r.Vehicles) + 1, action: telematics.Lock, instance: d.rng.IntN(r.Instances)}, d.id()
			orders.Go(func() { r.load.record(r.call(context.WithoutCancel(ctx), o, id, o.instance, callTimeout)) })
		}
	})
	return func() { cancel(); orders.Wait() }
}

func (r *round) signChange(token string) string {
	signed := rental.SignedRequest{Method: http.MethodPost, Path: clientFloodPath, Token: token}
	return signed.Sign(r.app.key.ID, r.app.key.Secret, time.Now(), rand.Text()).String()
}

// change sends a signed request directly to an instance, without the network's faults, and returns
// the error code of the answer; empty: it was accepted.
func (r *round) change(ctx context.Context, callers *http.Client, token, signature string, instance int) (telematics.Code, error) {
	request, err := world.Post(ctx, r.Running[instance].Public+clientFloodPath, token, nil)
	if err != nil {
		return "", err
	}
	request.Header.Set(rental.SignatureHeader, signature)
	var body answer
	_, _, err = world.Call(callers, request, &body)
	return body.Error.Code, err
}

// keptSignatures counts the flooder's signatures that are stored in Redis and Postgres.
func (r *round) keptSignatures(ctx context.Context) (int, error) {
	kept := 0
	keys := r.redis.Scan(ctx, 0, "*nonce*", 1000).Iterator()
	for keys.Next(ctx) {
		kept++
	}
	if err := keys.Err(); err != nil {
		return 0, err
	}
	var rows int
	err := r.watcher.db.GetContext(ctx, &rows, `select count(*) from used_signatures where subject = $1`, flooder)
	return kept + rows, err
}

var (
	usedMemoryField = regexp.MustCompile(`used_memory:(\d+)`)
	fullField       = regexp.MustCompile(`errorstat_OOM:count=(\d+)`)
)

func (r *round) usedMemory(ctx context.Context) (int, error) {
	info, err := r.redis.Info(ctx, "memory").Result()
	if err != nil {
		return 0, err
	}
	found := usedMemoryField.FindStringSubmatch(info)
	if found == nil {
		return 0, fmt.Errorf("no used_memory in the answer of redis: %s", info)
	}
	return strconv.Atoi(found[1])
}

// fullErrors is how many writes Redis has refused because it is full, since its statistics were
// reset.
func (r *round) fullErrors(ctx context.Context) (int, error) {
	info, err := r.redis.Info(ctx, "errorstats").Result()
	if err != nil {
		return 0, err
	}
	if found := fullField.FindStringSubmatch(info); found != nil {
		return strconv.Atoi(found[1])
	}
	return 0, nil
}
