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

// keep stores the command of a key. It reports false where the key is in use.
func (m *Commands) keep(k telematics.IdempotencyKey, id telematics.CommandID) bool {
	if _, used := m.use(k); used {
		return false
	}
	m.made[scoped(k)] = id
	return true
}

// use returns the command that uses a key, if one does.
func (m *Commands) use(k telematics.IdempotencyKey) (telematics.Command, bool) {
	id, ok := m.made[scoped(k)]
	c := m.commands[id]
	if !ok || c.State.Outcome() == telematics.NotExecuted || time.Since(c.Requested) >= telematics.KeptFor {
		return telematics.Command{}, false
	}
	return c, true
}

// FindByKey implements broker.Commands.
func (m *Commands) FindByKey(ctx context.Context, k telematics.IdempotencyKey) (delivery.KeyResult, bool, error) {
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
