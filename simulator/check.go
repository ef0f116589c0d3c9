package simulator

import (
	"slices"
	"time"

	"motorpool/telematics"
)

const (
	maxAhead = 5 * time.Second  // of iat before our time
	maxTTL   = 35 * time.Second // from iat to exp
)

// objection returns the reason for which the unit must not execute a command that it has not seen
// before; empty: it may. The checks are in the protocol's order, since each relies on those before
// it [CMD-4].
func (t *turn) objection(c telematics.Claims) (reason, detail string) {
	last, accepted := t.log.Seq[c.Lane]
	switch {
	case !t.at.Valid || t.faults.Refuse.strikes(t.rng):
		return telematics.ClockUnset, ""
	case c.IssuedAt.After(t.now().Add(maxAhead)):
		return telematics.ClockBehind, ""
	case c.Expires.Sub(c.IssuedAt) > maxTTL:
		return telematics.TTLTooLong, ""
	case t.tooLate(c):
		return telematics.TooLate, ""
	case accepted && c.Seq <= last:
		return telematics.OutOfOrder, ""
	}
	if detail, able := t.able(c); !able {
		return telematics.Unsupported, detail
	}
	if detail := t.body.forbids(c.Action); detail != "" {
		return telematics.StateConflict, detail
	}
	return "", ""
}

// overtaken returns the reason for which an accepted command must not begin any more; empty: none.
func (t *turn) overtaken(c telematics.Claims) (reason, detail string) {
	switch detail := t.body.forbids(c.Action); {
	case !t.at.Valid:
		return telematics.ClockUnset, ""
	case t.tooLate(c):
		return telematics.TooLate, ""
	case detail != "":
		return telematics.StateConflict, detail
	}
	return "", ""
}

func (t *turn) tooLate(c telematics.Claims) bool { return !t.now().Before(c.Expires) }

// able reports whether the car supports the command, in the lane of its action: in another lane, a
// command would avoid the order of its lane.
func (t *turn) able(c telematics.Claims) (detail string, able bool) {
	switch {
	case c.Action != telematics.ReportState && !slices.Contains(t.actions, c.Action):
		return "", false
	case c.Lane != c.Action.Lane():
		return "lane", false
	case c.Action.Validate(c.Attention) != nil:
		return "params", false
	}
	return "", true
}
