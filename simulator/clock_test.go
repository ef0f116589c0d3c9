package simulator

import (
	"math/rand/v2"
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/telematics"
)

// For five minutes after a prompt command no clock error and no delay in transit makes a command
// start late. [CMD-9]
func TestFloor_NoCommandStartsLateWithAnyClock(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	started := 0
	for range 50 {
		b := newBench(t)
		b.order(b.command(telematics.Lock))
		for end := epoch.Add(floorFor); ; {
			b.clock.Skew = uniform(rng, -2*time.Minute, 2*time.Minute)
			c := b.command(telematics.Lock)
			if b.now = b.now.Add(uniform(rng, 0, 30*time.Second)); !b.now.Before(end) {
				break
			}
			b.send(c)
			b.pass(uniform(rng, 0, 20*time.Second))
		}
		for _, e := range b.events {
			if e.Kind != CommandStarted {
				continue
			}
			started++
			if late := e.True.Sub(e.Expires); late > time.Second { // iat is rounded down
				t.Fatalf("started %v after its expiry, with the clock off by %v", late, e.Clock.Sub(e.True))
			}
		}
	}
	if started < 100 {
		t.Errorf("only %d commands started, want at least 100", started)
	}
}

// Setting the clock back while a command waits for its turn does not make the command fresh again.
// [CMD-8]
func TestFloor_AppliesToAWaitingCommand(t *testing.T) {
	b := newBench(t)
	b.body.Locked = false
	first, second := b.command(telematics.LockAndDisableDriving), b.command(telematics.Unlock)
	b.effort = 20 * time.Second
	b.send(first)
	b.send(second)
	b.clock.Skew = -time.Minute
	for _, a := range b.pass(time.Minute) {
		if a.Command == second.Command {
			says(t, a, telematics.Rejected, telematics.TooLate, "")
			return
		}
	}
	t.Fatal("the second command was not answered")
}

// Only a message that the fleet signed for this unit teaches the time, and only a possible time.
func TestFloor_TaughtOnlyByValidCommands(t *testing.T) {
	ahead := func(c telematics.Claims, d time.Duration) telematics.Claims {
		c.IssuedAt, c.Expires = c.IssuedAt.Add(d), c.Expires.Add(d)
		return c
	}
	for _, c := range []struct {
		name    string
		tell    func(*bench)
		teaches bool
	}{
		{"command", func(b *bench) { b.send(b.command(telematics.Lock)) }, true},
		{"refused command", func(b *bench) { b.send(b.command(telematics.Action("fly"))) }, true},
		{"repeated command", func(b *bench) {
			c := b.command(telematics.Lock)
			b.clock.Unset = true
			b.send(c)
			b.clock.Unset = false
			b.send(c)
		}, true},
		{"issued five seconds ahead", func(b *bench) { b.send(ahead(b.command(telematics.Lock), 5*time.Second)) }, true},
		{"issued further ahead", func(b *bench) { b.send(ahead(b.command(telematics.Lock), 6*time.Second)) }, false},
		{"before a restart", func(b *bench) {
			b.send(b.command(telematics.Lock))
			b.boot()
		}, false},
		{"while the clock is not set", func(b *bench) {
			b.clock.Unset = true
			b.send(b.command(telematics.Lock))
		}, false},
		{"for another unit", func(b *bench) {
			c := b.command(telematics.Lock)
			c.Unit = "another"
			b.send(c)
		}, false},
		{"forged", func(b *bench) { b.deliver(sign(t, newKey(t), b.command(telematics.Lock))) }, false},
		{"retained", func(b *bench) {
			b.take(b.Receive(b.clock.Read(b.now), sign(t, b.key, b.command(telematics.Lock)), true))
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			c.tell(b)
			assert.Equal(t, !b.floor.issued.IsZero(), c.teaches, "the time was taught")
		})
	}
}
