package besteffort

import (
	"context"
	"time"

	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// FirstCheck returns when Confirm is due for a command that is published now; zero: never.
func FirstCheck(c *telematics.Command, now time.Time) time.Time {
	if !c.BestEffort.Confirmable() {
		return time.Time{}
	}
	return now.Add(confirmEvery)
}

// Confirm settles and returns a command whose execution its vehicle has reported; nil: it has not,
// or the command could not be settled. It also returns when it is due again. All instances share
// the reported state, so any of them may have received the report.
func (h *Handler) Confirm(ctx context.Context, c *telematics.Command, p delivery.Progress) (settled *telematics.Command, again time.Time) {
	again = time.Now().Add(confirmEvery)
	if !h.isConfirmed(ctx, c, p.SentAt) {
		return nil, again
	}
	ctx, cancel := h.step(ctx)
	defer cancel()
	settled, _, _ = h.Settle(ctx, delivery.Settlement{Command: c.ID, State: telematics.Succeeded, At: h.Now(), Known: c, Progress: p})
	return settled, again
}

// Outcome completes the settlement of a command that the unit may have, and has not answered by its
// deadline: as executed where a report confirms it, else as unknown.
func (h *Handler) Outcome(ctx context.Context, c *telematics.Command, s delivery.Settlement) delivery.Settlement {
	if h.isConfirmed(ctx, c, s.SentAt) { // the report may have come while it was read
		s.State, s.At = telematics.Succeeded, h.Now()
		return s
	}
	s.State, s.Detail = telematics.Unknown, UnknownDetail(c, s.ReceivedAt)
	return s
}

// UnknownDetail returns the detail of a command that ends with an unknown outcome: AcceptedByUnit
// if the unit has accepted it (received is not zero) without confirming its execution, else empty.
func UnknownDetail(c *telematics.Command, received time.Time) string {
	if received.IsZero() || c.Assurance.Confirmed && !c.BestEffort.ByReport {
		return ""
	}
	return telematics.AcceptedByUnit
}

// isConfirmed reports whether the vehicle has reported a command's effect after the command was
// sent; false where it is not known when that was.
func (h *Handler) isConfirmed(ctx context.Context, c *telematics.Command, sent time.Time) bool {
	if !c.BestEffort.Confirmable() || sent.IsZero() {
		return false
	}
	reported, confirmation := h.reported(ctx, c)
	return confirms(reported, confirmation, sent)
}

// reported returns the reported state of a command's vehicle, and the field values that confirm the
// command; none where the vehicle was not read, or has another unit now.
func (h *Handler) reported(ctx context.Context, c *telematics.Command) (telematics.Snapshot, map[telematics.Field]any) {
	ctx, cancel := h.step(ctx)
	defer cancel()
	twin, err := h.Vehicles.Twin(ctx, c.Vehicle)
	if err != nil {
		h.Logger.DebugContext(
			ctx, "reported state not read, the command may stay unconfirmed", "command", c.ID,
			"request_id", c.RequestID, "vehicle", c.Vehicle, "err", err,
		)
		return nil, nil
	}
	d, ok := h.Dialects.Find(twin.Protocol)
	if !ok || twin.Unit != c.Unit {
		return nil, nil
	}
	return twin.Snapshot, d.Confirmation(twin.Installation, c.Action)
}

// Inquire asks the unit for what confirms a command that was published some time ago, where it can
// be asked: a vehicle that was before as the command wants it reports no change. It returns when it
// is due again; zero: never.
func (h *Handler) Inquire(ctx context.Context, c *telematics.Command, ago time.Duration, received bool) (again time.Time) {
	d, _ := h.Dialects.Find(c.Protocol)
	inquirer, ok := d.(telematics.Inquirer)
	if !ok || !c.BestEffort.ByReport {
		return time.Time{}
	}
	now := time.Now()
	message, ok := inquirer.Inquire(c, ago)
	if !ok {
		return time.Time{}
	}
	message.Unit, again = c.Unit, now.Add(InquireEvery)
	if !received || !h.MayPublish(c.Agency) { // a unit without the command has nothing to confirm
		return again
	}
	if err := h.Publisher.Publish(message); err != nil {
		h.Logger.DebugContext(ctx, "inquiry not published", "command", c.ID, "request_id", c.RequestID, "vehicle", c.Vehicle, "err", err)
	}
	return again
}

// confirms reports whether every one of the values was reported with a time later than after.
func confirms(reported telematics.Snapshot, values map[telematics.Field]any, after time.Time) bool {
	return len(values) > 0 && every(reported, values, func(r telematics.Reading, same bool) bool { return same && r.At.After(after) })
}

// contradicts reports whether, for one of the fields, another value was reported with a time later
// than after. An undated reading contradicts nothing: it is new only if the value has changed, so
// the expected value may have held in between.
func contradicts(reported telematics.Snapshot, values map[telematics.Field]any, after time.Time) bool {
	return !every(reported, values, func(r telematics.Reading, same bool) bool {
		return r.Value == nil || same || r.Undated || !r.At.After(after)
	})
}

// differs reports whether, for every field, a value other than the given one is reported: only then
// can a report show the values as a change.
func differs(reported telematics.Snapshot, values map[telematics.Field]any) bool {
	return every(reported, values, func(r telematics.Reading, same bool) bool { return r.Value != nil && !same })
}

// every reports whether the reading of each field is as expected, given whether it is the value.
func every(reported telematics.Snapshot, values map[telematics.Field]any, expected func(r telematics.Reading, same bool) bool) bool {
	for field, value := range values {
		if r := reported.Of(field); !expected(r, field.Same(r.Value, value)) {
			return false
		}
	}
	return true
}
