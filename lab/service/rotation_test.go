package service_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/internal/keyfile"
	"motorpool/simulator"
	"motorpool/telematics"
	"motorpool/telematics/signing"
)

// tap is a radio that records which key signed each received copy of a command.
type tap struct {
	simulator.Radio
	held     telematics.Unit // receives nothing before released is closed
	released chan struct{}

	mu     sync.Mutex          // guards the field below
	copies map[string][]string // key ids by command id
}

func (t *tap) Dial(ctx context.Context, login simulator.Login, deliver func(simulator.Message)) (simulator.Connection, error) {
	return t.Radio.Dial(ctx, login, func(m simulator.Message) {
		t.note(string(m.Payload))
		if login.Unit != t.held {
			deliver(m)
			return
		}
		go func() {
			<-t.released
			deliver(m)
		}()
	})
}

func (t *tap) note(message string) {
	var header struct {
		KID string `json:"kid"`
	}
	var claims struct {
		JTI string `json:"jti"`
	}
	parts := strings.Split(message, ".")
	for i, into := range []any{&header, &claims} {
		text, err := base64.RawURLEncoding.DecodeString(parts[i])
		if err != nil || json.Unmarshal(text, into) != nil {
			panic("not a JWS:  " + message)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.copies[claims.JTI] = append(t.copies[claims.JTI], header.KID)
}

// signers returns the keys that have signed the copies of a command.
func (t *tap) signers(command string) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.copies[command]
}

// signingKey returns the id of the key with which the instance signs.
func (i *instance) signingKey() string {
	i.Helper()
	return i.metrics().Label("motorpool_signing_key_info", "key")
}

// unitKeys returns the keys that the instance publishes for units.
func (i *instance) unitKeys() signing.Keyring {
	i.Helper()
	response, err := http.Get(i.internal + "/units.jwks")
	i.must(err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	i.must(err)
	if kind := response.Header.Get("Content-Type"); response.StatusCode != http.StatusOK || kind != "application/jwk-set+json" {
		i.Fatalf("units.jwks: %s, %s", response.Status, kind)
	}
	var set struct{ Keys []map[string]any }
	i.must(json.Unmarshal(text, &set))
	for _, key := range set.Keys {
		if _, private := key["d"]; private {
			i.Fatalf("the private key %v is published", key["kid"])
		}
	}
	ring, err := signing.ParseKeyring(text)
	i.must(err)
	return ring
}

func (s *stack) editKeys(change func(signing.Keychain) (signing.Keychain, error)) {
	s.Helper()
	s.must(keyfile.Edit(s.Context(), filepath.Join(s.dir, "signing.jwks"), change))
}

func (s *stack) addKey() (id string) {
	s.Helper()
	key, err := signing.NewKey()
	s.must(err)
	s.editKeys(func(c signing.Keychain) (signing.Keychain, error) { return c.Add(key, time.Now()) })
	return key.ID
}

func (s *stack) activateKey(id string) {
	s.Helper()
	s.editKeys(func(c signing.Keychain) (signing.Keychain, error) { return c.Activate(id, time.Now()) })
}

// traffic is a constant load: each vehicle gets one command after another, through the instances in
// turn.
type traffic struct {
	*stack
	instances []*instance
	done      []atomic.Int64 // executed commands of each vehicle
	starved   atomic.Int64   // number of repeated requests
	stopping  atomic.Bool
	callers   sync.WaitGroup

	mu      sync.Mutex // guards the field below
	replies map[*instance][]reply
}

func (s *stack) traffic(vehicles int, instances ...*instance) *traffic {
	t := &traffic{stack: s, instances: instances, done: make([]atomic.Int64, vehicles), replies: map[*instance][]reply{}}
	for v := range vehicles {
		t.callers.Go(func() {
			for n := v; !t.stopping.Load(); n++ {
				i := instances[n%len(instances)]
				r := i.controlOnce(v+1, []telematics.Action{telematics.Lock, telematics.Unlock}[n/2%2])
				if r.starved() {
					t.starved.Add(1)
					time.Sleep(repeatAfter)
					continue
				}
				t.mu.Lock()
				t.replies[i] = append(t.replies[i], r)
				t.mu.Unlock()
				t.done[v].Add(1)
			}
		})
	}
	s.Cleanup(t.stop)
	return t
}

// more waits until each vehicle has executed n more commands.
func (t *traffic) more(n int64) {
	t.Helper()
	until := make([]int64, len(t.done))
	for v := range t.done {
		until[v] = t.done[v].Load() + n
	}
	t.eventually(60*time.Second, "the load continues", func() bool {
		for v := range t.done {
			if t.done[v].Load() < until[v] {
				return false
			}
		}
		return true
	})
}

func (t *traffic) stop() {
	t.stopping.Store(true)
	t.callers.Wait()
}

func TestKeys_RotationUnderLoadRefusesNoCommand(t *testing.T) {
	const vehicles, slowOne = 6, 7
	s := startStack(t, slowOne)
	air := &tap{
		Radio: simulator.MQTT{
			Broker: s.units,
		},
		held: s.fleet.Vehicles[slowOne-1].Unit, released: make(chan struct{}), copies: map[string][]string{},
	}
	release := sync.OnceFunc(func() { close(air.released) })
	s.Cleanup(release)
	s.radio = air
	var recorder simulator.Recorder
	one, two := s.serve(), s.serve()
	fleet := s.drive(&recorder, healthy)
	everyInstance := func(what string, holds func(*instance) bool) {
		s.Helper()
		s.eventually(10*time.Second, what, func() bool { return holds(one) && holds(two) })
	}
	load := s.traffic(vehicles, one, two)
	load.more(6)

	old, next := s.signing.ID, s.addKey()
	everyInstance("the new key is published for units", func(i *instance) bool { return len(i.unitKeys()) == 2 })
	fleet.SetKeyring(one.unitKeys())
	load.more(6)
	if one.signingKey() != old {
		s.Fatal("a standby key signs")
	}

	// A command that is published again after the switch of keys.
	inFlight := make(chan reply, 1)
	go func() { inFlight <- one.control(slowOne, telematics.Lock) }()
	s.eventually(5*time.Second, "the slow vehicle's command was sent", func() bool { return one.latestSent(slowOne) != "" })
	s.activateKey(next)
	everyInstance("the new key signs", func(i *instance) bool { return i.signingKey() == next })
	id := one.latestSent(slowOne)
	before := len(air.signers(id))
	s.eventually(
		10*time.Second, "the slow vehicle's command is published again after the switch",
		func() bool { return len(air.signers(id)) > before },
	)
	release()
	load.more(6)

	slowest := <-inFlight
	// The second command began after the switch, so every command that the old key signed has
	// ended: the test need not wait a minute.
	load.more(2)
	s.editKeys(func(c signing.Keychain) (signing.Keychain, error) { return c.Remove(old) })
	everyInstance("the old key is not published for units any more", func(i *instance) bool { return len(i.unitKeys()) == 1 })
	fleet.SetKeyring(two.unitKeys())
	load.more(6)
	load.stop()

	evidence := s.evidence(air, &recorder)
	executed := map[string]int{} // commands by signing key
	for _, i := range load.instances {
		if n := len(load.replies[i]); n < 50 {
			s.Errorf("%d commands through an instance, want at least 50", n)
		}
		for _, r := range load.replies[i] {
			executed[evidence.executedBy(r)]++
		}
	}
	if executed[old] < 50 || executed[next] < 50 || len(executed) != 2 {
		s.Errorf("executed commands by signing key: %v", executed)
	}
	if got := evidence.executedBy(slowest); got != old {
		s.Errorf("the command in flight was signed by %s, want the old key", got)
	}
	var c command
	s.must(json.Unmarshal(slowest.Data, &c))
	if after := len(air.signers(c.ID)); after <= before {
		s.Errorf("the command in flight was sent %d times before the switch, %d in total, want some after", before, after)
	}
	s.Logf(
		"executed: %d signed by the first key, %d by the second, refused: %d, repeated on a starved machine: %d",
		executed[old], executed[next], executed[""], load.starved.Load(),
	)
}

// latestSent returns the id of the vehicle's latest command if it was sent, or "".
func (i *instance) latestSent(vehicle int) string {
	i.Helper()
	var commands []command
	i.get(fmt.Sprintf("/api/v1/admin/vehicles/%d/commands", vehicle), &commands)
	if len(commands) == 0 || commands[0].Attempts == 0 {
		return ""
	}
	return commands[0].ID
}

// evidence is what the radio and the cars have recorded, independent of the service.
type evidence struct {
	*stack
	air    *tap
	starts map[string]int // starts by command
}

func (s *stack) evidence(air *tap, recorder *simulator.Recorder) evidence {
	e := evidence{stack: s, air: air, starts: map[string]int{}}
	for _, event := range recorder.Events() {
		if event.Kind == simulator.CommandStarted {
			e.starts[event.Command.String()]++
		}
	}
	return e
}

// executedBy returns the key that signed all copies of a command which its car executed once.
func (e evidence) executedBy(r reply) string {
	e.Helper()
	var c command
	if r.status != http.StatusOK || json.Unmarshal(r.Data, &c) != nil || c.Outcome != "executed" {
		e.Errorf("refused or failed: %d %+v", r.status, r.Error)
		return ""
	}
	assert.Equal(e, e.starts[c.ID], 1, "executions of command %s", c.ID)
	signers := slices.Compact(slices.Clone(e.air.signers(c.ID)))
	if len(signers) != 1 {
		e.Errorf("command %s was signed by %v, want one key for all copies", c.ID, signers)
	}
	return strings.Join(signers, " ")
}
