package telematics

import (
	"slices"
	"time"
)

// PresenceStatus is the state of a unit's connection.
type PresenceStatus string

const (
	Online  PresenceStatus = "online"
	Standby PresenceStatus = "standby" // announced sleep
	Offline PresenceStatus = "offline" // the last will
	Absent  PresenceStatus = "unknown" // silent for long, or never seen
)

// PresenceStatuses lists every status that connectivity can have.
var PresenceStatuses = []PresenceStatus{Online, Standby, Offline, Absent}

// Presence is one message about a unit's connection.
type Presence struct {
	Status   PresenceStatus
	Session  string    // of the connection; its last will has the same
	At       time.Time // zero: missing, as in most last wills, or not plausible
	Firmware string    // empty: not sent
	Actions  []Action  // nil: not sent
	Keys     []string  // ids of the fleet's public keys that the unit holds [PRE-4]; nil: not sent
	// After is the message of the unit that this instance received before this one; zero: none, or
	// it bore no time.
	After PresenceMark
}

// PresenceMark identifies a presence message of a unit by its session and by when it was sent.
type PresenceMark struct {
	Session string
	SaidAt  time.Time
}

// Mark identifies a presence message with a time that arrived at received; zero: it is a last will,
// or bears no time that can be compared.
func (p Presence) Mark(received time.Time, retained bool) PresenceMark {
	if p.Status == Offline || retained && p.At.IsZero() {
		return PresenceMark{}
	}
	return PresenceMark{Session: p.Session, SaidAt: Contact{}.saidAt(p, received, retained)}
}

// Limits of the list of keys in a presence message.
const (
	MaxKeys  = 16
	MaxKeyID = 128 // bytes of one id
)

// Silence after which a unit counts as gone.
const (
	OnlineFor        = 10 * time.Minute // without a message, online reads as unknown [PRE-2]
	LiveWithin       = 5 * time.Minute  // an older time in a live message means a wrong clock
	UnreachableAfter = time.Minute      // without a message, Offline or Standby: no commands
)

// Contact is what the messages of a unit show about its connection.
type Contact struct {
	Status    PresenceStatus // of the last presence that counted; empty: none
	Session   string
	Former    []string  // sessions before it, the latest first; at most formerSessions
	SaidAt    time.Time // by the unit's clock
	ChangedAt time.Time // by our clock: arrival of the last change of status or session
	LastSeen  time.Time // by our clock: the last message
	Actions   []Action  // nil: the unit never sent any [PRE-3]
	Keys      []string  // nil: the unit never sent any [PRE-4]
	Firmware  string    // empty: the unit never sent it
	// Gap estimates the usual time between two reports of the unit. It depends on the order
	// of arrival, and is used only for Retry-After. Zero: not known.
	Gap time.Duration
}

const (
	gapWeight = 8 // a new gap has the weight 1/8
	maxGap    = time.Hour
)

// Reported returns the contact after a report.
func (c Contact) Reported(at time.Time) Contact { return c.ReportedTimes(1, at) }

// ReportedTimes returns the contact after n reports, the last of which arrived at the time at.
func (c Contact) ReportedTimes(n int, at time.Time) Contact {
	if n < 1 {
		return c.Heard(at)
	}
	gap := min(at.Sub(c.LastSeen)/time.Duration(n), maxGap)
	switch {
	case c.LastSeen.IsZero() || gap < time.Second: // the first; or a burst, as around a command
	case c.Gap == 0:
		c.Gap = gap
	default:
		c.Gap += (gap - c.Gap) / gapWeight
	}
	c.Gap = c.Gap.Truncate(time.Millisecond)
	return c.Heard(at)
}

// Bounds of the time after which a caller should retry a unit that is offline.
const (
	soonestLook = 5 * time.Second
	usualLook   = 30 * time.Second // of a unit whose gap is not known
	latestLook  = 10 * time.Minute
)

// RetryAfter estimates how long an offline unit will take to send its next message.
func (c Contact) RetryAfter(now time.Time) time.Duration {
	if c.Gap <= 0 {
		return usualLook
	}
	left := c.Gap - now.Sub(c.LastSeen)%c.Gap
	return min(max(left, soonestLook), latestLook)
}

// Heard returns the contact of a unit that was active at the time at. LastSeen never goes back.
func (c Contact) Heard(at time.Time) Contact {
	if at.After(c.LastSeen) {
		c.LastSeen = at
	}
	return c
}

// Apply returns the contact after a presence message, and whether the message
// counted. The MQTT broker, not the unit, sends a retained message or a last will: only its
// time, if any, shows when the unit sent something.
func (c Contact) Apply(p Presence, received time.Time, retained bool) (Contact, bool) {
	said := c.saidAt(p, received, retained)
	if c.refuses(p, said, received, retained) != "" {
		return c, false
	}
	if c.Status != p.Status || c.Session != p.Session {
		c.ChangedAt = received
	}
	spoken := received
	if p.Status == Offline || retained {
		spoken = p.At
		if spoken.After(c.ChangedAt) { // the unit's clock is ahead of ours
			spoken = c.ChangedAt
		}
	}
	c = c.Heard(spoken)
	c.Former = c.formerAfter(p.Session)
	c.Status, c.Session = p.Status, p.Session
	if p.Status != Offline {
		c.SaidAt = said
		if p.Actions != nil {
			c.Actions = p.Actions
		}
		if p.Keys != nil {
			c.Keys = p.Keys
		}
		if p.Firmware != "" {
			c.Firmware = p.Firmware
		}
	}
	return c, true
}

// formerSessions is how many sessions before the current one are recorded.
const formerSessions = 4

// formerAfter returns the former sessions after session has become the current one.
func (c Contact) formerAfter(session string) []string {
	if c.Session == "" || c.Session == session {
		return c.Former
	}
	former := []string{c.Session} // a new slice: others read the old one
	for _, s := range c.Former {
		if s != session { // stored late, it was taken for a former one
			former = append(former, s)
		}
	}
	return former[:min(len(former), formerSessions)]
}

// saidAt returns when a presence message was sent. A wrong clock must not make the
// unit's messages count as overtaken: none was sent after it arrived, and a live one not
// longer than LiveWithin before. A retained one without a time gets the recorded time.
func (c Contact) saidAt(p Presence, received time.Time, retained bool) time.Time {
	switch {
	case retained && p.At.IsZero():
		return c.SaidAt
	case p.At.After(received), !retained && received.Sub(p.At) > LiveWithin:
		return received.Truncate(time.Millisecond) // as a unit's time
	}
	return p.At
}

// At returns the connectivity at an instant. A unit that has sent a message after its last
// will is online, even if its new presence was lost.
func (c Contact) At(now time.Time) PresenceStatus {
	status := c.Status
	if status == "" || status == Offline && c.LastSeen.After(c.ChangedAt) {
		status = Online
	}
	if status == Online && now.Sub(c.LastSeen) > OnlineFor {
		return Absent
	}
	return status
}

// Unreachable reports whether the unit is offline or in standby, and has sent nothing for
// UnreachableAfter: a command would only cost the caller time.
func (c Contact) Unreachable(now time.Time) bool {
	status := c.At(now)
	return (status == Offline || status == Standby) && now.Sub(c.LastSeen) > UnreachableAfter
}

// SignalQuality returns the name for a cell's reference signal power in dBm, or
// nil if it was not reported.
func SignalQuality(rsrp *float64) *string {
	if rsrp == nil {
		return nil
	}
	quality := "none"
	switch {
	case *rsrp >= -95:
		quality = "strong"
	case *rsrp >= -105:
		quality = "moderate"
	case *rsrp >= LeastRSRP:
		quality = "weak"
	}
	return &quality
}

// LeastRSRP is the weakest usable signal, in dBm; below it the quality is none.
const LeastRSRP = -115

// Refusal is why a presence message does not count [PRE-1].
type Refusal string

const (
	Ghost     Refusal = "ghost"     // the last will of an older connection
	Overtaken Refusal = "overtaken" // older than what is recorded
)

// Reconnects reports whether a presence message that counts shows that the unit has lost its
// connection and connected again.
func (c Contact) Reconnects(p Presence) bool {
	return p.Status != Offline && c.Status != "" && (c.Session != p.Session || c.Status == Offline)
}

// Refuses returns why a presence message does not count; empty: it does.
func (c Contact) Refuses(p Presence, received time.Time, retained bool) Refusal {
	return c.refuses(p, c.saidAt(p, received, retained), received, retained)
}

// refuses returns why a presence message, sent at said, does not count; empty: it does.
//
// The MQTT broker delivers one topic in order. So a live message that this instance received after
// the recorded one is newer, whatever its time: the clock of the unit may have gone back meanwhile.
// Any other message may be one of the past, stored late by an instance that lags behind another
// one, and must be at least as new as the recorded presence, by its time. An online of the time of
// the recorded one is a copy of it, which does not undo a last will that came since; one without a
// time that arrived after the last will does.
func (c Contact) refuses(p Presence, said, received time.Time, retained bool) Refusal {
	switch {
	case c.Status == "":
		return ""
	case p.Status == Offline && p.Session != c.Session:
		return Ghost
	case p.Status == Offline:
		return ""
	case !retained && !p.After.SaidAt.IsZero() && p.After.Session == c.Session && p.After.SaidAt.Equal(c.SaidAt):
		return ""
	case !retained && p.At.IsZero() && p.Session == c.Session && c.Status == Offline && received.After(c.ChangedAt):
		return ""
	case p.Session != c.Session && slices.Contains(c.Former, p.Session), said.Before(c.SaidAt):
		return Overtaken
	case p.Session == c.Session && c.Status == Offline && said.Equal(c.SaidAt) && !p.At.IsZero():
		return Overtaken
	}
	return ""
}
