package installation

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"
)

// place is what is known of a place. One goroutine uses it.
type place struct {
	Place
	name     string // for the log
	log      *slog.Logger
	instance string // this one, in claims
	own      claim  // the latest that was sent

	holds   bool
	tenure  string           // of this installation; none unless it holds the place
	kin     map[string]int64 // first beats of the other instances of this installation
	asked   time.Time        // first; the zero time: not yet
	failure error            // of the latest exchange
	refused error
	heard   []string // not judged yet
	askers  []string // likewise

	rival      claim     // the latest of another installation
	first      time.Time // when its present claims began
	last       time.Time // when it came
	alive      bool      // its beats grow: no remainder of an instance that has ended
	lastAsked  time.Time // when another installation asked last
	saidAsking bool
	hints      int // that this instance gives the place up, still to be sent: each may be lost
}

func (p *place) exchange(ctx context.Context, installation string, beat int64) {
	p.own = claim{short(installation, 8), p.tenure, p.instance, beat}
	heard, askers, err := p.Exchange(ctx, p.own.String(), !p.holds)
	if p.failure = err; err != nil {
		p.asked = time.Time{} // answers to an earlier question may be lost
		if !p.holds && p.refused == nil {
			p.Admit(fmt.Errorf("%w: %w", errUndecided, err))
		}
		return
	}
	if p.asked.IsZero() {
		p.asked = time.Now()
	}
	p.heard, p.askers = latest(append(p.heard, heard...)), latest(append(p.askers, askers...))
}

// latest returns the last maxUnjudged claims: nothing is judged while Postgres takes no beats.
func latest(claims []string) []string { return slices.Clone(claims[max(0, len(claims)-maxUnjudged):]) }

// none is the tenure of an instance that only asks; no other one is less.
const none = "0"

// judge decides by what was heard and by the beats of the database, which are at least as new.
func (p *place) judge(now time.Time, beats Beats) {
	kin := false
	for _, text := range p.heard {
		c, ok := parseClaim(text)
		switch {
		case !ok || c.instance == p.instance:
		case c.beat == withdrawn:
			if c.instance == p.rival.instance {
				p.last, p.alive = time.Time{}, false
			}
		case p.related(c, beats):
			kin = kin || !p.hears(now) || c.tenure < p.rival.tenure // else it will give up, too
			// A copy that was made a moment ago has the beat of the original, but no later ones.
			if first, ok := p.kin[c.instance]; !ok || c.beat < first {
				p.kin[c.instance] = c.beat
			} else if c.beat-first > lead && c.tenure < p.tenure {
				p.tenure = c.tenure
			}
			if c.instance == p.rival.instance { // it had shown a beat that a failover lost
				p.last, p.alive = time.Time{}, false
			}
		default:
			p.note(c, now)
		}
	}
	for _, text := range p.askers {
		if c, ok := parseClaim(text); ok && c.instance != p.instance && !p.related(c, beats) {
			p.noteAsking(c, now)
		}
	}
	p.heard, p.askers = nil, nil
	switch {
	case p.alive && p.rival.tenure < p.tenure && now.Sub(p.last) < provenBy && now.Sub(p.first) >= provenBy:
		p.refuse()
	case p.holds:
	case kin, !p.asked.IsZero() && now.Sub(p.asked) >= p.Patience() && !p.hears(now):
		p.take(now)
	case p.hears(now) && p.refused == nil:
		p.refuse()
	}
}

// related reports whether a claim is of an instance of this database.
func (p *place) related(c claim, beats Beats) bool {
	return c.installation == p.own.installation && beats[c.instance] >= c.beat
}

// note notes a claim of another installation.
func (p *place) note(c claim, now time.Time) {
	if now.Sub(p.last) > provenBy || c.installation != p.rival.installation {
		p.first = now
	}
	p.alive = p.alive || c.instance == p.rival.instance && c.beat != p.rival.beat
	p.rival, p.last = c, now
}

// hears reports whether another installation must be taken to have the place.
func (p *place) hears(now time.Time) bool {
	wait := expires
	if p.alive {
		wait = silence
	}
	return now.Sub(p.last) < wait
}

// sees reports whether another installation was heard a moment ago, as claimant or asking.
func (p *place) sees(now time.Time) bool {
	return now.Sub(p.last) < expires || now.Sub(p.lastAsked) < expires
}

func (p *place) take(now time.Time) {
	if p.refused != nil {
		p.log.Info("no other installation any more", "place", p.name)
	}
	p.holds, p.tenure, p.refused, p.alive, p.last = true, newTenure(now), nil, false, time.Time{}
	p.Admit(nil)
}

func (p *place) refuse() {
	p.holds, p.tenure = false, none
	p.refused = fmt.Errorf(
		"another installation uses it (%s): stop that one, or give this one other servers; see docs/install.md#two-installations",
		p.describe(p.rival),
	)
	p.log.Error("another installation is in the way", "place", p.name, "err", p.refused)
	p.Admit(p.refused)
}

// withdrawn is the beat in the claim of an instance that gives up a place.
const withdrawn = 0

// withdraw gives up the place for a reason, and says so to the other instances, which need not wait
// until this one has been silent for long. It may be called again.
func (p *place) withdraw(ctx context.Context, why error) {
	if p.holds {
		p.holds, p.tenure, p.asked, p.refused, p.hints = false, none, time.Time{}, why, withdrawals
		defer func() { // after the first hint: closing may end the connection
			p.log.Error("place given up", "place", p.name, "err", why)
			p.Admit(why)
		}()
	}
	if p.hints > 0 {
		if _, _, err := p.Exchange(ctx, claim{p.own.installation, p.own.tenure, p.instance, withdrawn}.String(), false); err == nil {
			p.hints--
		}
	}
}

// noteAsking notes that another installation asked for the place, and is refused there.
func (p *place) noteAsking(c claim, now time.Time) {
	if p.lastAsked = now; !p.saidAsking {
		p.saidAsking = true
		p.log.Error("another installation wants to use this place, and is refused", "place", p.name, "other", p.describe(c))
	}
}

func (p *place) describe(c claim) string {
	if c.installation == p.own.installation {
		return "a copy of this database, or another primary of it; instance " + c.instance
	}
	return "id " + c.installation + ", instance " + c.instance
}
