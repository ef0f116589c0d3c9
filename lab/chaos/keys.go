package main

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/lestrrat-go/jwx/v3/jws"

	"motorpool/cmd/dev/folder"
	"motorpool/internal/keyfile"
	"motorpool/lab/world"
	"motorpool/simulator"
	"motorpool/telematics"
	"motorpool/telematics/signing"
)

// fleetKeys is the keys that sign commands, safe for concurrent use.
type fleetKeys struct {
	mu      sync.Mutex           // guards what follows
	all     signing.Keyring      // including former ones: a message may be old
	active  string               // id of the one that signs
	standby map[string]time.Time // by id: since when no instance signs with it
}

func newFleetKeys(first signing.Key) *fleetKeys {
	return &fleetKeys{all: first.Keyring(), active: first.ID, standby: map[string]time.Time{}}
}

// verify is Keyring.Verify with all keys, including former ones.
func (k *fleetKeys) verify(message []byte) (telematics.Claims, error) {
	k.mu.Lock()
	ring := k.all
	k.mu.Unlock()
	return ring.Verify(message)
}

func (k *fleetKeys) add(more signing.Keyring) {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := maps.Clone(k.all) // verify may be reading the other one
	maps.Copy(all, more)
	k.all = all
}

func (k *fleetKeys) activate(to string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.standby[k.active] = time.Now()
	k.active = to
}

func (k *fleetKeys) signing() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.active
}

// idle removes and returns the keys whose last commands are over.
func (k *fleetKeys) idle() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var ids []string
	for id, since := range k.standby {
		if time.Since(since) > signing.RetireAfter {
			ids = append(ids, id)
			delete(k.standby, id)
		}
	}
	return ids
}

// switchWithin bounds how long instances take to use another key: a second in docs/keys.md,
// but these are killed, frozen and stopped.
const switchWithin = time.Minute

// rotateKey rotates the signing key as the operator, in the order of docs/keys.md: every car
// has a key before it signs, and until a minute after the last instance has switched to the next.
// Short rounds retire none.
func (r *round) rotateKey(ctx context.Context, _ Fault) error {
	for _, id := range r.keys.idle() {
		if _, err := r.operate(ctx, nil, "keys", "retire", "--", id); err != nil {
			return err
		}
	}
	next, err := r.operate(ctx, nil, "keys", "add")
	if err != nil {
		return err
	}
	chain, err := keyfile.Read(r.Path(folder.SigningFile))
	if err != nil {
		return err
	}
	r.AddSigningKeys(chain) // a key may be retired before the end
	if _, err := r.activateCounted(ctx, next); err == nil {
		return fmt.Errorf("key %s was activated, though no car has it", next)
	}
	exported, err := r.operate(ctx, nil, "keys", "export")
	if err != nil {
		return err
	}
	ring, err := signing.ParseKeyring([]byte(exported))
	if err != nil {
		return err
	}
	r.keys.add(ring)
	r.setKeyrings(ring)
	if err := world.Eventually(ctx, operatorTimeout, "key activated: every car says that it has it", func(ctx context.Context) bool {
		said, err := r.activateCounted(ctx, next)
		if err != nil {
			r.Log.Info("key not activated, retrying", "err", err, "said", said)
		}
		return retryLater(ctx, err == nil)
	}); err != nil {
		return err
	}
	for _, n := range r.Running {
		if err := world.Eventually(ctx, switchWithin, n.Name+" signs with the next key", func(ctx context.Context) bool {
			return signingKey(ctx, n) == next
		}); err != nil {
			return err
		}
	}
	r.keys.activate(next)
	return nil
}

// activateCounted activates a key, if every car that reports its keys has this one.
func (r *round) activateCounted(ctx context.Context, key string) (string, error) {
	return r.operate(ctx, nil, "keys", "activate", "--url", r.Running[0].Public, "--token", r.admin, "--", key)
}

// setKeyrings gives every car a keyring, concurrently, as a call may block while a car is busy.
func (r *round) setKeyrings(ring signing.Keyring) {
	var all sync.WaitGroup
	for _, c := range r.cars {
		if car, ok := c.(*simulator.Car); ok {
			all.Go(func() { car.SetKeyring(ring) })
		}
	}
	all.Wait()
}

// signingKey returns the key with which an instance signs; empty: it does not answer.
func signingKey(ctx context.Context, n *world.Instance) string {
	values, _ := n.Metrics(ctx)
	return values.Label("motorpool_signing_key_info", "key")
}

// keyOf returns the id of the key that a message names.
func keyOf(message []byte) string {
	parsed, err := jws.Parse(message, jws.WithCompact())
	if err != nil {
		return ""
	}
	id, _ := parsed.Signatures()[0].ProtectedHeaders().KeyID()
	return id
}
