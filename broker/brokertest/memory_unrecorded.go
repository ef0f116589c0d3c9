package brokertest

import (
	"context"

	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// unitCommand names a command by the unit that it was sent to, and its id.
type unitCommand struct {
	unit    telematics.Unit
	command telematics.CommandID
}

// StoreUnrecorded implements broker.Unrecorded.
func (m *Commands) StoreUnrecorded(ctx context.Context, u delivery.Unrecorded) (delivery.UnrecordedResult, error) {
	if err := m.enter(ctx, "StoreUnrecorded"); err != nil {
		return delivery.UnrecordedResult{}, err
	}
	defer m.mu.Unlock()
	id := unitCommand{u.Unit, u.Answer.Command}
	_, recorded := m.commands[u.Answer.Command]
	_, noted := m.unrecorded[id]
	if recorded || noted {
		return delivery.UnrecordedResult{}, nil
	}
	for vehicle, twin := range m.twins {
		if twin.Unit == u.Unit {
			m.unrecorded[id] = u
			return delivery.UnrecordedResult{Unknown: true, Noted: true, Vehicle: vehicle}, nil
		}
	}
	return delivery.UnrecordedResult{}, nil
}

// Unrecorded returns the stored answers to commands that are missing.
func (m *Commands) Unrecorded() []delivery.Unrecorded {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []delivery.Unrecorded
	for _, u := range m.unrecorded {
		all = append(all, u)
	}
	return all
}

// Lose removes a command, as a failover to a standby that lagged does.
func (m *Commands) Lose(id telematics.CommandID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.commands, id)
}
