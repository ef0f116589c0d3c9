package brokertest

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// AwaitingAnswer implements broker.Commands.
func (m *Commands) AwaitingAnswer(ctx context.Context, unit telematics.Unit) (telematics.Command, bool, error) {
	if err := m.enter(ctx, "AwaitingAnswer"); err != nil {
		return telematics.Command{}, false, err
	}
	defer m.mu.Unlock()
	for _, c := range m.commands {
		if c.Unit == unit && awaitsAnswer(&c, time.Now().Add(m.ahead)) {
			return c, true, nil
		}
	}
	return telematics.Command{}, false, nil
}

// AnsweredBefore implements broker.Commands.
func (m *Commands) AnsweredBefore(ctx context.Context, c telematics.Command, limit int) (earlier []telematics.Command, err error) {
	if err := m.enter(ctx, "AnsweredBefore"); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	for _, other := range m.commands {
		if other.Unit == c.Unit && other.Lane == telematics.UnitLane && other.Seq < c.Seq &&
			(!other.ReceivedAt.IsZero() || other.State.IsFinal()) {
			earlier = append(earlier, other)
		}
	}
	slices.SortFunc(earlier, func(a, b telematics.Command) int { return cmp.Compare(b.Seq, a.Seq) })
	return earlier[:min(len(earlier), limit)], nil
}

// awaitsAnswer reports whether an answer that names no command may belong to this one. Until that
// is ruled out, the unit gets no other command. An answer that may come later than any does by
// design is of a command that was accepted by a clock that had leapt ahead; it is not awaited.
func awaitsAnswer(c *telematics.Command, now time.Time) bool {
	return c.Lane == telematics.UnitLane && (c.State.IsOpen() || c.State != telematics.Expired && c.ReceivedAt.IsZero() &&
		now.Before(c.BestEffort.AnswerBy) && c.BestEffort.AnswerBy.Sub(now) < latestAnswer)
}

// latestAnswer is how far ahead AnswerBy of a stored command may lie: MaxBudget and AnswerWithin,
// and the difference of clocks. The schema has it, too: see command_awaiting_answer.
const latestAnswer = 5 * time.Minute

// Unconfirmed implements broker.Commands.
func (m *Commands) Unconfirmed(ctx context.Context, since time.Time, behind telematics.Command, limit int) ([]telematics.Command, error) {
	if err := m.enter(ctx, "Unconfirmed"); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	order := func(a, b telematics.Command) int {
		return cmp.Or(a.Deadline.Compare(b.Deadline), bytes.Compare(a.ID[:], b.ID[:]))
	}
	var found []telematics.Command
	for _, c := range m.commands {
		if m.isUnconfirmed(&c) && c.Deadline.After(since) && order(c, behind) > 0 {
			found = append(found, c)
		}
	}
	slices.SortFunc(found, order)
	return found[:min(limit, len(found))], nil
}

func (m *Commands) isUnconfirmed(c *telematics.Command) bool {
	if c.State != telematics.Unknown || !c.BestEffort.Confirmable() || c.BestEffort.Contradicted || c.SentAt.IsZero() {
		return false
	}
	for _, other := range m.commands {
		if other.Vehicle == c.Vehicle && other.Lane == c.Lane && other.Seq > c.Seq {
			return false
		}
	}
	return true
}

// Conclude implements broker.Commands.
func (m *Commands) Conclude(ctx context.Context, s delivery.Settlement) (*telematics.Command, bool, error) {
	if err := m.enter(ctx, "Conclude"); err != nil {
		return nil, false, err
	}
	c, ok := m.commands[s.Command]
	if !ok || !m.isUnconfirmed(&c) {
		m.mu.Unlock()
		return nil, false, nil
	}
	if s.State == telematics.Unknown {
		defer m.mu.Unlock()
		c.BestEffort.Contradicted = true
		m.commands[c.ID] = c
		return &c, true, nil
	}
	m.mu.Unlock()
	return m.Settle(ctx, s)
}
