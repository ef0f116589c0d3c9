package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"maps"
	"strings"
	"sync"
	"time"

	"motorpool/cmd/internal/service"
	"motorpool/telematics"
)

// fleetKeys is what is known of the keys that sign commands.
type fleetKeys struct {
	mu      sync.Mutex           // guards what follows
	all     telematics.Keyring   // that ever were: what is heard may be old
	active  string               // the id of the one that signs
	standby map[string]time.Time // by id, since when no instance signs with it
}

func newFleetKeys(first telematics.SigningKey) *fleetKeys {
	return &fleetKeys{all: first.Keyring(), active: first.ID, standby: map[string]time.Time{}}
}

// verify is Keyring.Verify with every key that there ever was.
func (k *fleetKeys) verify(message []byte) (telematics.Claims, error) {
	k.mu.Lock()
	ring := k.all
	k.mu.Unlock()
	return ring.Verify(message)
}

func (k *fleetKeys) learn(more telematics.Keyring) {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := maps.Clone(k.all) // verify may be reading the other one
	maps.Copy(all, more)
	k.all = all
}

func (k *fleetKeys) switched(to string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.standby[k.active] = time.Now()
	k.active = to
}

func (k *fleetKeys) signs() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.active
}

// idle returns, and forgets, the keys whose last commands are over.
func (k *fleetKeys) idle() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var ids []string
	for id, since := range k.standby {
		if time.Since(since) > telematics.RetireAfter {
			ids = append(ids, id)
			delete(k.standby, id)
		}
	}
	return ids
}

// switchWithin is a second of docs/operating.md, for instances that are killed, or frozen, or in the middle of a stop.
const switchWithin = time.Minute

// rotateKey has the operator rotate the signing key, in the order of docs/operating.md: every car knows a key before it
// signs, and until a minute after the last instance has switched to the next. In short rounds none gets so old.
func (w *world) rotateKey(ctx context.Context, _ fault) error {
	for _, id := range w.keys.idle() {
		if _, err := w.operate(ctx, nil, "keys", "retire", "--", id); err != nil {
			return err
		}
	}
	next, err := w.operate(ctx, nil, "keys", "add")
	if err != nil {
		return err
	}
	exported, err := w.operate(ctx, nil, "keys", "export")
	if err != nil {
		return err
	}
	ring, err := telematics.ParseKeyring([]byte(exported))
	if err != nil {
		return err
	}
	w.keys.learn(ring)
	w.provision(ring)
	if _, err := w.operate(ctx, nil, "keys", "activate", "--", next); err != nil {
		return err
	}
	for _, n := range w.instances {
		if err := service.Eventually(ctx, switchWithin, n.Name+" signs with the next key", func(ctx context.Context) bool {
			return n.signingKey(ctx) == next
		}); err != nil {
			return err
		}
	}
	w.keys.switched(next)
	return nil
}

// provision gives every car a keyring, at once: one that is busy holds up nobody else.
func (w *world) provision(ring telematics.Keyring) {
	var all sync.WaitGroup
	for _, c := range w.fleet.Cars() {
		all.Go(func() { c.SetKeyring(ring) })
	}
	all.Wait()
}

// signingKey returns the key with which an instance signs; empty: it does not answer.
func (n *instance) signingKey(ctx context.Context) string {
	values, _ := n.Metrics(ctx)
	return values.Label("motorpool_signing_key_info", "key")
}

// keyOf returns the id of the key that a message names.
func keyOf(message []byte) string {
	header, _, _ := strings.Cut(string(message), ".")
	text, err := base64.RawURLEncoding.DecodeString(header)
	var named struct {
		Key string `json:"kid"`
	}
	if err != nil || json.Unmarshal(text, &named) != nil {
		return ""
	}
	return named.Key
}
