package brokertest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// Commands implements broker.Commands and broker.Unrecorded.
type Commands struct {
	*tables
	commands   map[telematics.CommandID]telematics.Command
	seq        int64
	made       map[callerKey]telematics.CommandID
	unrecorded map[unitCommand]delivery.Unrecorded
}

// Claim implements broker.Commands.
func (m *Commands) Claim(ctx context.Context, c *telematics.Command) (delivery.Claim, error) {
	claim, err := m.claim(ctx, *c)
	if err != nil || claim.Stale {
		m.uncache(c.Vehicle)
	}
	return claim, err
}

func (m *Commands) claim(ctx context.Context, c telematics.Command) (delivery.Claim, error) {
	if err := m.enter(ctx, "Claim"); err != nil {
		return delivery.Claim{}, err
	}
	defer m.mu.Unlock()
	twin, ok := m.twins[c.Vehicle]
	switch {
	case c.Version != 0 && (!ok || c.Version != version(twin)):
		return delivery.Claim{Stale: true}, nil
	case !ok:
		return delivery.Claim{}, telematics.NoSuchVehicle(c.Vehicle)
	}
	c.Version = 0
	if known, ok := m.commands[c.ID]; ok && (known.Vehicle != c.Vehicle || !known.State.IsOpen()) {
		return delivery.Claim{}, fmt.Errorf("claim: command %s exists already", c.ID)
	}
	for _, other := range m.commands {
		if other.Vehicle == c.Vehicle && other.Lane == c.Lane && other.State.IsOpen() ||
			c.Lane == telematics.UnitLane && other.Unit == c.Unit && awaitsAnswer(&other, time.Now().Add(m.ahead)) {
			return delivery.Claim{Occupant: &other}, nil
		}
	}
	if c.Key != nil && !m.keep(*c.Key, c.ID) {
		return delivery.Claim{KeyTaken: true}, nil
	}
	m.seq++
	c.Seq, c.State = m.seq, telematics.Accepted
	c.Requested, c.Deadline = storedTime(c.Requested), storedTime(c.Deadline)
	if !c.BestEffort.AnswerBy.IsZero() {
		c.BestEffort.AnswerBy = storedTime(c.BestEffort.AnswerBy)
	}
	m.commands[c.ID] = c
	return delivery.Claim{Seq: c.Seq, At: time.Now().Add(m.ahead)}, nil
}

// StoreProgress implements broker.Commands.
func (m *Commands) StoreProgress(ctx context.Context, notes []delivery.Note) error {
	if err := m.enter(ctx, "StoreProgress"); err != nil {
		return err
	}
	defer m.mu.Unlock()
	for _, n := range notes {
		c, ok := m.commands[n.Command]
		switch {
		case !ok:
			continue
		case !n.ReceivedAt.IsZero() && c.State.MayBecome(telematics.Received):
			c.State = telematics.Received
		case !n.SentAt.IsZero() && c.State == telematics.Accepted:
			c.State = telematics.Sent
		}
		m.commands[n.Command] = progressed(c, n.Progress)
	}
	return nil
}

// Settle implements broker.Commands.
func (m *Commands) Settle(ctx context.Context, s delivery.Settlement) (*telematics.Command, bool, error) {
	if err := m.enter(ctx, "Settle"); err != nil {
		return nil, false, err
	}
	defer m.mu.Unlock()
	c, ok := m.commands[s.Command]
	if !ok || s.Unit != "" && s.Unit != c.Unit {
		return nil, false, nil
	}
	if at := storedTime(s.At); c.State == s.State && (at.Equal(c.ReceivedAt) || at.Equal(c.Completed)) {
		return &c, true, nil // a driver retries it
	}
	if !c.State.MayBecome(s.State) {
		return nil, false, nil
	}
	// A sweeper does not know whether the owner has published it; an answer says that it has.
	if c.State == telematics.Unknown {
		c.Attempts = max(c.Attempts, 1)
	}
	c.Late, c.Overruled = !c.State.IsOpen(), c.Overruled || c.State == telematics.Rejected
	c.State, c.Reason, c.Detail = s.State, s.Reason, s.Detail
	if s.Reported != nil {
		c.Reported = s.Reported
	}
	if s.State == telematics.Received {
		s.ReceivedAt = s.At
	}
	c = progressed(c, s.Progress)
	if s.Unit != "" && !s.State.IsOpen() {
		c.BestEffort.AnswerBy = time.Time{}
	}
	if !s.State.IsOpen() {
		c.Completed = storedTime(s.At)
		m.add(c.Activity())
	}
	m.commands[c.ID] = c
	return &c, true, nil
}

// progressed adds progress to a command. It keeps the first of each time, the longer list of
// retransmissions and the higher number of attempts.
func progressed(c telematics.Command, p delivery.Progress) telematics.Command {
	if c.SentAt.IsZero() {
		c.SentAt = storedTime(p.SentAt)
	}
	if c.ReceivedAt.IsZero() {
		c.ReceivedAt = storedTime(p.ReceivedAt)
	}
	if len(p.Retransmitted) > len(c.Retransmitted) {
		c.Retransmitted = slices.Clone(p.Retransmitted)
	}
	c.Attempts = max(c.Attempts, p.Attempts)
	return c
}

// Updates implements broker.Commands.
func (m *Commands) Updates(ctx context.Context, unanswered, received []telematics.CommandID) ([]telematics.Command, error) {
	if err := m.enter(ctx, "Updates"); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	var updates []telematics.Command
	for id, c := range m.commands {
		isReceived := slices.Contains(received, id)
		if (isReceived || slices.Contains(unanswered, id)) && (!c.State.IsOpen() || c.State == telematics.Received && !isReceived) {
			updates = append(updates, c)
		}
	}
	return updates, nil
}

// Overdue implements broker.Commands.
func (m *Commands) Overdue(ctx context.Context, before time.Time, limit int) ([]telematics.Command, error) {
	if err := m.enter(ctx, "Overdue"); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	now := time.Now()
	if before.After(now) {
		before = now
	}
	var overdue []telematics.Command
	for _, c := range m.commands {
		if c.State.IsOpen() && (c.Deadline.Before(before) || c.Deadline.After(now) && c.IsOverdue(now)) {
			overdue = append(overdue, c)
		}
	}
	slices.SortFunc(overdue, func(a, b telematics.Command) int { return a.Deadline.Compare(b.Deadline) })
	return overdue[:min(limit, len(overdue))], nil
}

// Command returns a command as it is stored, or a *telematics.Error with CommandNotFound.
func (m *Commands) Command(ctx context.Context, id telematics.CommandID) (telematics.Command, error) {
	if err := m.enter(ctx, "Command"); err != nil {
		return telematics.Command{}, err
	}
	defer m.mu.Unlock()
	c, ok := m.commands[id]
	if !ok {
		return telematics.Command{}, telematics.NoSuchCommand(id)
	}
	return c, nil
}
