package brokertest

import (
	"context"
	"time"

	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// callerKey is an idempotency key in its scope.
type callerKey struct {
	agency  telematics.AgencyID
	subject string
	key     string
}

func scoped(k telematics.IdempotencyKey) callerKey { return callerKey{k.Agency, k.Subject, k.Key} }

// keep notes what is made under a key, and reports false where something was.
func (m *Memory) keep(k telematics.IdempotencyKey, id telematics.CommandID) bool {
	if _, used := m.use(k); used {
		return false
	}
	m.made[scoped(k)] = id
	return true
}

// use returns the command that holds a key.
func (m *Memory) use(k telematics.IdempotencyKey) (telematics.Command, bool) {
	id, ok := m.made[scoped(k)]
	c := m.commands[id]
	if !ok || c.State.Outcome() == telematics.NotExecuted || time.Since(c.Requested) >= telematics.KeptFor {
		return telematics.Command{}, false
	}
	return c, true
}

// FindByKey implements broker.Commands.
func (m *Memory) FindByKey(ctx context.Context, k telematics.IdempotencyKey) (delivery.KeyResult, bool, error) {
	if err := m.enter(ctx, "FindByKey"); err != nil {
		return delivery.KeyResult{}, false, err
	}
	defer m.mu.Unlock()
	c, used := m.use(k)
	if !used {
		return delivery.KeyResult{}, false, nil
	}
	return delivery.KeyResult{Fingerprint: c.Key.Fingerprint, Command: c}, true, nil
}

// Halt replaces the halts in force.
func (m *Memory) Halt(halts ...telematics.Halt) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.halts = halts
}

// Halts implements broker.Halts.
func (m *Memory) Halts(ctx context.Context) (telematics.Halts, error) {
	if err := m.enter(ctx, "Halts"); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	return m.halts, nil
}

// SetClock lets the clock of the store be ahead of the instances'.
func (m *Memory) SetClock(ahead time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ahead = ahead
}

// Time implements broker.Clock.
func (m *Memory) Time(ctx context.Context) (time.Time, error) {
	if err := m.enter(ctx, "Time"); err != nil {
		return time.Time{}, err
	}
	defer m.mu.Unlock()
	return time.Now().Add(m.ahead), nil
}
