package charging_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"motorpool/rental"
	"motorpool/rental/rentaltest"
	"motorpool/simulator/sandbox"
)

// A storyline is drawn first, and then played in virtual time.
type storyline struct {
	wallet  []int // indexes of conducts
	kinds   []rental.ChargeKind
	events  []event
	faults  int // per hundred calls
	seed    uint64
	workers int
}

type event struct {
	after time.Duration // since the event before
	what  string
	which int
	card  int
}

var (
	conducts   = []sandbox.Behaviour{pays, broke, stolen, asksFor, gone}
	kinds      = []rental.ChargeKind{rental.StartCharge, rental.FeeCharge, rental.ExtensionCharge, rental.DepositCharge}
	eventKinds = []string{
		"default", "default", "card changes", "owner confirms", "release", "capture", "refund", "crash", "crash",
		"notice", "hold lapses", "nudge", "snapshot", "set back",
	}
	waits = []time.Duration{
		0, time.Millisecond, 5 * time.Second, 20 * time.Second, time.Minute, 90 * time.Second, time.Hour,
		25 * time.Hour,
	}
)

func drawStory(t *rapid.T) storyline {
	return storyline{
		wallet: rapid.SliceOfN(rapid.IntRange(0, len(conducts)-1), 0, 3).Draw(t, "cards"),
		kinds:  rapid.SliceOfN(rapid.SampledFrom(kinds), 1, 4).Draw(t, "kinds"),
		events: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) event {
			return event{
				after: rapid.SampledFrom(waits).Draw(t, "after"), what: rapid.SampledFrom(eventKinds).Draw(t, "what"),
				which: rapid.IntRange(0, 7).Draw(t, "which"), card: rapid.IntRange(0, len(conducts)-1).Draw(t, "card"),
			}
		}), 0, 14).Draw(t, "events"),
		faults:  rapid.SampledFrom([]int{0, 5, 25, 60}).Draw(t, "faults"),
		seed:    rapid.Uint64().Draw(t, "seed"),
		workers: rapid.IntRange(1, 3).Draw(t, "workers"),
	}
}

// Whatever fails, crashes, is notified, chosen or forgotten, and in whatever order: no charge is
// ever in the processor's ledger twice. Once the faults stop and the client has a card that pays,
// each charge is final and equals the processor's record.
func TestLedgerProperty_EachChargeIsInTheProcessorsLedgerOnce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		line := drawStory(rt)
		var wrong []string
		inWorld(t, func(_ *testing.T, w *world) { wrong = (&playback{world: w, storyline: line}).play() })
		for _, s := range wrong {
			rt.Error(s)
		}
	})
}

// playback is the state of a storyline that is played.
type playback struct {
	*world
	storyline
	client    rental.ClientID
	owns      []rental.Method
	charges   []rental.Charge // with the refunds
	processes []*mortal
	setBack   func() // sets the record back
	wrong     []string
}

func (s *playback) play() []string {
	s.every = 30 * time.Second
	s.bank.FailWith(s.randomFaults())
	s.client, s.owns = s.world.client()
	for _, c := range s.wallet {
		s.owns = append(s.owns, s.card(s.client, conducts[c]))
	}
	for i, kind := range s.kinds {
		c := s.add(s.client, kind)
		c.Number = i + 1
		s.charges = append(s.charges, c)
	}
	s.setBack = s.ledger.Snapshot()
	for range s.workers {
		s.processes = append(s.processes, s.collectUntil(&mortal{}))
	}
	for _, e := range s.events {
		s.after(e.after)
		s.apply(e)
		s.check("after " + e.what)
	}
	s.bank.FailWith(nil)
	s.after(30 * time.Minute) // leases have expired, and unknown charges were queried
	good := s.card(s.client, pays)
	s.ledger.SetDefault(s.client, good)
	for _, c := range s.charges {
		if is := s.is(c); is.Goal == rental.Hold {
			s.ledger.Amend(c.ID, rental.Release, 0)
		}
	}
	s.after(30 * time.Minute)
	s.check("at the end")
	s.checkQueries()
	s.checkEnd()
	return s.wrong
}

// randomFaults makes calls fail at random.
func (s *playback) randomFaults() func(rentaltest.Call) rentaltest.Fault {
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(s.seed, 0))
	return func(rentaltest.Call) rentaltest.Fault {
		mu.Lock()
		defer mu.Unlock()
		if random.IntN(100) >= s.faults {
			return rentaltest.Fault{}
		}
		return rentaltest.Fault{
			Kind: rentaltest.FaultKinds[random.IntN(len(rentaltest.FaultKinds))],
			For:  time.Duration(1+random.IntN(180)) * time.Second,
		}
	}
}

func (s *playback) apply(e event) {
	c := s.charges[e.which%len(s.charges)]
	is := s.is(c)
	switch e.what {
	case "default":
		if e.which%2 == 0 || len(s.owns) == 0 {
			s.owns = append(s.owns, s.card(s.client, conducts[e.card]))
		}
		s.ledger.SetDefault(s.client, s.owns[(e.which*5+len(s.owns)-1)%len(s.owns)])
	case "card changes":
		if len(s.owns) > 0 {
			s.behaves(s.owns[e.which%len(s.owns)], conducts[e.card])
		}
	case "owner confirms":
		_ = s.bank.OwnerConfirms(is.Intent)
	case "release":
		if is.Goal == rental.Hold {
			s.ledger.Amend(c.ID, rental.Release, 0)
		}
	case "capture":
		if is.Goal == rental.Hold && is.State == rental.Authorized {
			s.ledger.Amend(c.ID, rental.Capture, rental.Minor(1+e.which))
		}
	case "refund":
		s.refund(is, rental.Minor(1+e.which)*1_000)
	case "crash":
		i := e.which % len(s.processes)
		s.processes[i].kill()
		s.processes[i] = s.collectUntil(&mortal{})
	case "notice":
		s.repeatNotice(is)
	case "hold lapses":
		_ = s.bank.Lapse(is.Intent)
	case "snapshot":
		s.setBack = s.ledger.Snapshot()
	case "set back":
		s.setBack()
	case "nudge":
		s.collect(nil).Nudge()
	}
}

// refund refunds a part of what remains of a charge.
func (s *playback) refund(paid rental.Charge, amount rental.Minor) {
	if paid.State != rental.Paid && paid.State != rental.Captured || paid.Kind == rental.RefundCharge {
		return
	}
	left := paid.Settled
	for _, c := range s.charges {
		if is := s.is(c); is.Refunds == paid.ID && is.State != rental.Failed {
			left -= is.Amount
		}
	}
	if amount <= left {
		s.charges = append(s.charges, s.refundOf(s.client, paid, amount))
	}
}

func (s *playback) repeatNotice(is rental.Charge) {
	kind := rental.AboutIntent
	if is.Kind == rental.RefundCharge {
		kind = rental.AboutRefund
	}
	_ = s.notices.Keep(s.t.Context(), rental.Notice{ID: fmt.Sprintf("again_%d", time.Now().UnixNano()), Object: is.Intent, Kind: kind})
}

func (s *playback) fail(format string, args ...any) {
	s.wrong = append(s.wrong, fmt.Sprintf(format, args...))
}

// check verifies what must be true at any time.
func (s *playback) check(when string) {
	for _, c := range s.charges {
		is, e := s.is(c), s.bank.Of(c.ID)
		if e.Payments > 1 || e.Refunds > 1 || e.Taken+e.Held > c.Amount {
			s.fail("%s: the bank's ledger has the %s charge as %+v, more than once or beyond its amount", when, c.Kind, e)
		}
		if (is.State == rental.Paid || is.State == rental.Captured) && e.Taken+e.Returned != is.Settled {
			s.fail("%s: the %s charge is %s with %d settled, the bank has %+v", when, c.Kind, is.State, is.Settled, e)
		}
		if is.State == rental.Released && e.Held+e.Taken != 0 {
			s.fail("%s: the deposit is released, the bank has %+v", when, e)
		}
	}
}

// checkQueries verifies that no worker confirmed a payment a second time without a query between
// [MON-3].
func (s *playback) checkQueries() {
	confirmed := map[string]bool{} // payments that were confirmed since their last query
	for _, call := range s.bank.Calls() {
		switch call.Method {
		case "Confirm":
			if confirmed[call.About] {
				s.fail("%s without a query since the last one; calls of the bank %v", call, s.bank.Calls())
			}
			confirmed[call.About] = true
		case "Intent":
			confirmed[call.About] = false
		}
	}
}

// checkEnd verifies what must be true after the faults have stopped.
func (s *playback) checkEnd() {
	if n := s.notices.Open(); n != 0 {
		s.fail("%d notices are not handled, want none", n)
	}
	for _, c := range s.charges {
		is, e := s.is(c), s.bank.Of(c.ID)
		good := is.State == rental.Paid && is.Settled == c.Amount && e.Taken+e.Returned == c.Amount
		if c.Kind == rental.DepositCharge {
			good = is.State.IsFinal() && is.State != rental.Paid && e.Held == 0 && e.Taken == is.Settled &&
				is.Settled == is.CaptureAmount*isCaptured(is)
		}
		if !good {
			s.fail("the %s charge ends as %+v, the bank has %+v; calls of the bank %v", c.Kind, is, e, s.bank.Calls())
		}
	}
}

func isCaptured(c rental.Charge) rental.Minor {
	if c.State == rental.Captured {
		return 1
	}
	return 0
}
