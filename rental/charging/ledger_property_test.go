package charging_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"motorpool/rental"
	"motorpool/rental/rentaltest"
)

// A story is drawn first, and then played in virtual time.
type storyline struct {
	wallet  []int // of conducts
	kinds   []rental.ChargeKind
	events  []event
	faults  int // of a hundred calls
	seed    uint64
	workers int
}

type event struct {
	after time.Duration // the one before
	what  string
	which int
	card  int
}

var (
	conducts = []rentaltest.Conduct{pays, broke, stolen, asksFor, gone}
	kinds    = []rental.ChargeKind{rental.StartCharge, rental.FeeCharge, rental.ExtensionCharge, rental.DepositCharge}
	happens  = []string{"default", "default", "card changes", "owner confirms", "release", "capture", "refund", "crash", "crash", "notice", "hold lapses", "nudge"}
	waits    = []time.Duration{0, time.Millisecond, 5 * time.Second, 20 * time.Second, time.Minute, 90 * time.Second, time.Hour, 25 * time.Hour}
)

func drawStory(t *rapid.T) storyline {
	return storyline{
		wallet: rapid.SliceOfN(rapid.IntRange(0, len(conducts)-1), 0, 3).Draw(t, "cards"),
		kinds:  rapid.SliceOfN(rapid.SampledFrom(kinds), 1, 4).Draw(t, "kinds"),
		events: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) event {
			return event{
				after: rapid.SampledFrom(waits).Draw(t, "after"), what: rapid.SampledFrom(happens).Draw(t, "what"),
				which: rapid.IntRange(0, 7).Draw(t, "which"), card: rapid.IntRange(0, len(conducts)-1).Draw(t, "card"),
			}
		}), 0, 14).Draw(t, "events"),
		faults:  rapid.SampledFrom([]int{0, 5, 25, 60}).Draw(t, "faults"),
		seed:    rapid.Uint64().Draw(t, "seed"),
		workers: rapid.IntRange(1, 3).Draw(t, "workers"),
	}
}

// Whatever fails, dies, is notified and is chosen, and in whatever order: no charge is in the
// processor's ledger twice, ever. And once all is well again and the client has a card that pays,
// each charge is final, and as the processor has it.
func TestEachChargeIsInTheProcessorsLedgerOnce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		line := drawStory(rt)
		var wrong []string
		inWorld(t, func(_ *testing.T, w *world) { wrong = (&telling{world: w, storyline: line}).tell() })
		for _, s := range wrong {
			rt.Error(s)
		}
	})
}

// telling is the state of a running story.
type telling struct {
	*world
	storyline
	client  rental.ClientID
	owns    []rental.Method
	charges []rental.Charge // refunds included
	lives   []*mortal
	wrong   []string
}

func (s *telling) tell() []string {
	s.every = 30 * time.Second
	s.bank.FailWith(s.dice())
	s.client, s.owns = s.world.client()
	for _, c := range s.wallet {
		s.owns = append(s.owns, s.card(s.client, conducts[c]))
	}
	for i, kind := range s.kinds {
		c := s.add(s.client, kind)
		c.Number = i + 1
		s.charges = append(s.charges, c)
	}
	for range s.workers {
		s.lives = append(s.lives, s.collectUntil(&mortal{}))
	}
	for _, e := range s.events {
		s.after(e.after)
		s.happen(e)
		s.check("after " + e.what)
	}
	s.bank.FailWith(nil)
	s.after(30 * time.Minute) // leases have run out, and what was unknown was looked at
	good := s.card(s.client, pays)
	s.ledger.SetDefault(s.client, good)
	for _, c := range s.charges {
		if is := s.is(c); is.Goal == rental.Hold {
			s.ledger.Amend(c.ID, rental.Release, 0)
		}
	}
	s.after(30 * time.Minute)
	s.check("at the end")
	s.checkLooks()
	s.checkEnd()
	return s.wrong
}

// dice has calls fail by chance.
func (s *telling) dice() func(rentaltest.Call) rentaltest.Fault {
	var mu sync.Mutex
	dice := rand.New(rand.NewPCG(s.seed, 0))
	return func(rentaltest.Call) rentaltest.Fault {
		mu.Lock()
		defer mu.Unlock()
		if dice.IntN(100) >= s.faults {
			return rentaltest.Fault{}
		}
		return rentaltest.Fault{
			Kind: rentaltest.FaultKinds[dice.IntN(len(rentaltest.FaultKinds))],
			Late: time.Duration(dice.IntN(180)) * time.Second,
		}
	}
}

func (s *telling) happen(e event) {
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
			s.bank.Behave(s.owns[e.which%len(s.owns)].Token, conducts[e.card])
		}
	case "owner confirms":
		s.bank.OwnerConfirms(is.Intent)
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
		i := e.which % len(s.lives)
		s.lives[i].kill()
		s.lives[i] = s.collectUntil(&mortal{})
	case "notice":
		s.tellAgain(is)
	case "hold lapses":
		s.bank.Lapse(is.Intent)
	case "nudge":
		s.collect(nil).Nudge()
	}
}

// refund gives a part back of what is left of a charge.
func (s *telling) refund(paid rental.Charge, amount rental.Minor) {
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

func (s *telling) tellAgain(is rental.Charge) {
	kind := rental.AboutIntent
	if is.Kind == rental.RefundCharge {
		kind = rental.AboutRefund
	}
	_ = s.notices.Keep(s.t.Context(), rental.Notice{ID: fmt.Sprintf("again_%d", time.Now().UnixNano()), Object: is.Intent, Kind: kind})
}

func (s *telling) fail(format string, args ...any) {
	s.wrong = append(s.wrong, fmt.Sprintf(format, args...))
}

// check holds at every moment.
func (s *telling) check(when string) {
	for _, c := range s.charges {
		is, e := s.is(c), s.bank.Of(c.ID)
		if e.Payments > 1 || e.Refunds > 1 || e.Taken+e.Held > c.Amount {
			s.fail("%s: the %s is in the bank's ledger as %+v", when, c.Kind, e)
		}
		if (is.State == rental.Paid || is.State == rental.Captured) && e.Taken+e.Returned != is.Settled {
			s.fail("%s: the %s is %s with %d, the bank says %+v", when, c.Kind, is.State, is.Settled, e)
		}
		if is.State == rental.Released && e.Held+e.Taken != 0 {
			s.fail("%s: the deposit is released, the bank says %+v", when, e)
		}
	}
}

// checkLooks holds of what the bank was asked for: no worker confirms a payment again without
// having queried it [MON-3].
func (s *telling) checkLooks() {
	asked := map[string]bool{} // payments that were confirmed since they were queried
	for _, call := range s.bank.Calls() {
		switch words := strings.Fields(call); words[0] {
		case "Confirm":
			if asked[words[1]] {
				s.fail("%s without a look; the bank was asked for %v", call, s.bank.Calls())
			}
			asked[words[1]] = true
		case "Intent":
			asked[words[1]] = false
		}
	}
}

// checkEnd holds once all is well.
func (s *telling) checkEnd() {
	if n := s.notices.Open(); n != 0 {
		s.fail("%d notices are not handled", n)
	}
	for _, c := range s.charges {
		is, e := s.is(c), s.bank.Of(c.ID)
		good := is.State == rental.Paid && is.Settled == c.Amount && e.Taken+e.Returned == c.Amount
		if c.Kind == rental.DepositCharge {
			good = is.State.IsFinal() && is.State != rental.Paid && e.Held == 0 && e.Taken == is.Settled && is.Settled == is.CaptureAmount*isCaptured(is)
		}
		if !good {
			s.fail("the %s ends as %+v, the bank says %+v; it was asked for %v", c.Kind, is, e, s.bank.Calls())
		}
	}
}

func isCaptured(c rental.Charge) rental.Minor {
	if c.State == rental.Captured {
		return 1
	}
	return 0
}
