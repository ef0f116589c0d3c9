package main

import (
	"bytes"
	"context"
	crand "crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"motorpool/cmd/chaos/audit"
	"motorpool/cmd/internal/app"
	"motorpool/rental"
	"motorpool/store"
	"motorpool/telematics"
)

const (
	clientFloodRequests = 5000
	clientFloodWithin   = 10 * time.Second
	clientFloodCallers  = 24
	clientFloodWarmUp   = 300                    // requests that open the connections, whose buffers take room in Redis
	clientFloodRoom     = 16 << 20               // bytes: buffers of connections and events come and go by some megabytes
	clientFloodOrders   = 100 * time.Millisecond // between two commands of others
	// clientFloodPath is a change that has nothing to do: no client has such a card.
	clientFloodPath = "/api/v1/client/payment-methods/4711/default"
)

// clientApp is the app of an agency, and clients who use it.
type clientApp struct {
	sealing          string // key that agency keys are sealed with
	key              rental.AgencyKey
	flooder, another string // tokens
}

const flooder = "flooder"

// provideApp puts an agency's key on record.
func (w *world) provideApp(ctx context.Context) error {
	postgres, err := store.New(store.Config{URL: w.postgres.URL()})
	if err != nil {
		return err
	}
	defer postgres.Close()
	sealer, err := store.NewSealer(w.app.sealing)
	if err != nil {
		return err
	}
	if w.app.key, _, err = postgres.AgencyKeys(sealer).Add(ctx, 1, telematics.OperatorAt("chaos")); err != nil {
		return err
	}
	for subject, token := range map[string]*string{flooder: &w.app.flooder, "another": &w.app.another} {
		*token, err = app.Grant{
			Issuer: tokenIssuer, Audience: tokenIssuer, Lifetime: 24 * time.Hour,
			Actor: telematics.Actor{Subject: subject, Role: telematics.Client, Agency: 1},
		}.Mint(w.tokens)
		if err != nil {
			return err
		}
	}
	return nil
}

func newSealing() string {
	key := make([]byte, rental.SecretSize)
	_, _ = crand.Read(key) // never fails
	return hex.EncodeToString(key)
}

// clientFlood has one client send far more signed changes than its limit lets through, while Redis has little room and others order
// commands. It strikes when everything else has been put right, so that whatever is refused then is refused for the flood.
func (w *world) clientFlood(ctx context.Context, l *load) (f audit.ClientFlood, err error) {
	options, err := redis.ParseURL(w.redis.URL())
	if err != nil {
		return f, err
	}
	client := redis.NewClient(options)
	defer client.Close()
	transport := &http.Transport{MaxIdleConnsPerHost: clientFloodCallers}
	defer transport.CloseIdleConnections()
	callers := &http.Client{Transport: transport, Timeout: callTimeout}

	once := w.signChange(w.app.another)
	if _, err := w.change(ctx, callers, w.app.another, once, 0); err != nil {
		return f, err
	}
	w.sendFlood(ctx, callers, clientFloodWarmUp)
	used, err := usedMemory(ctx, client)
	if err != nil {
		return f, err
	}
	if err := client.ConfigResetStat(ctx).Err(); err != nil {
		return f, err
	}
	if err := client.ConfigSet(ctx, "maxmemory", strconv.Itoa(used+clientFloodRoom)).Err(); err != nil {
		return f, err
	}
	f.From = time.Now()
	stop := l.orderBeside(ctx)
	f.Requests, f.Limited = w.sendFlood(ctx, callers, clientFloodRequests)
	stop()
	f.To = time.Now()
	if f.Full, err = fullErrors(ctx, client); err != nil {
		return f, err
	}
	if err := client.ConfigSet(ctx, "maxmemory", "0").Err(); err != nil {
		return f, err
	}
	if f.Kept, err = w.keptSignatures(ctx, client); err != nil {
		return f, err
	}
	if err := client.FlushAll(ctx).Err(); err != nil {
		return f, err
	}
	f.Replayed, err = w.change(ctx, callers, w.app.another, once, 1)
	return f, err
}

// sendFlood sends requests from many callers at a time, at every instance, and returns how many were answered, and refused for the
// client's rate.
func (w *world) sendFlood(ctx context.Context, callers *http.Client, requests int) (answered, limited int) {
	var next, got, refused atomic.Int64
	end := time.Now().Add(clientFloodWithin)
	var all sync.WaitGroup
	for range clientFloodCallers {
		all.Go(func() {
			for n := next.Add(1); n <= int64(requests) && time.Now().Before(end) && ctx.Err() == nil; n = next.Add(1) {
				code, err := w.change(ctx, callers, w.app.flooder, w.signChange(w.app.flooder), int(n)%len(w.instances))
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

// orderBeside has others order commands until stop is called, which waits for their answers.
func (l *load) orderBeside(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	d := newDraw(l.Seed, 3*l.Callers, l.Vehicles, l.Instances)
	var orders sync.WaitGroup
	orders.Go(func() {
		for ; ctx.Err() == nil; pause(ctx, clientFloodOrders) {
			o, id := order{car: d.rng.IntN(l.Vehicles) + 1, action: telematics.Lock, instance: d.rng.IntN(l.Instances)}, d.id()
			orders.Go(func() { l.note(l.call(context.WithoutCancel(ctx), o, id, o.instance, callTimeout)) })
		}
	})
	return func() { cancel(); orders.Wait() }
}

func (w *world) signChange(token string) string {
	signed := rental.SignedRequest{Method: http.MethodPost, Path: clientFloodPath, Token: token}
	return signed.Sign(w.app.key.ID, w.app.key.Secret, time.Now(), crand.Text()).String()
}

// change sends a signed change, past every line, and returns the code of the answer.
func (w *world) change(ctx context.Context, callers *http.Client, token, signature string, instance int) (telematics.Code, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.instances[instance].Public+clientFloodPath, bytes.NewReader(nil))
	if err != nil {
		return "", err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set(rental.SignatureHeader, signature)
	response, err := callers.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	var said struct {
		Error struct{ Code telematics.Code }
	}
	err = json.NewDecoder(response.Body).Decode(&said)
	_, _ = io.Copy(io.Discard, response.Body) // so that the connection is used again
	return said.Error.Code, err
}

// keptSignatures counts what is kept of the flooder's signatures, wherever that is.
func (w *world) keptSignatures(ctx context.Context, client *redis.Client) (int, error) {
	kept := 0
	keys := client.Scan(ctx, 0, "*nonce*", 1000).Iterator()
	for keys.Next(ctx) {
		kept++
	}
	if err := keys.Err(); err != nil {
		return 0, err
	}
	var rows int
	err := w.watch.db.QueryRowContext(ctx, `select count(*) from used_signatures where subject = $1`, flooder).Scan(&rows)
	return kept + rows, err
}

var (
	usedMemoryField = regexp.MustCompile(`used_memory:(\d+)`)
	fullField       = regexp.MustCompile(`errorstat_OOM:count=(\d+)`)
)

func usedMemory(ctx context.Context, client *redis.Client) (int, error) {
	info, err := client.Info(ctx, "memory").Result()
	if err != nil {
		return 0, err
	}
	found := usedMemoryField.FindStringSubmatch(info)
	if found == nil {
		return 0, fmt.Errorf("redis does not say how much memory it uses: %s", info)
	}
	return strconv.Atoi(found[1])
}

// fullErrors is how many writes Redis refused because it is full, since its statistics were reset.
func fullErrors(ctx context.Context, client *redis.Client) (int, error) {
	info, err := client.Info(ctx, "errorstats").Result()
	if err != nil {
		return 0, err
	}
	if found := fullField.FindStringSubmatch(info); found != nil {
		return strconv.Atoi(found[1])
	}
	return 0, nil
}
