package rentals

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/rental"
	"motorpool/rental/charging"
	"motorpool/rental/rentaltest"
	"motorpool/simulator/sandbox"
	"motorpool/store/storetest"
)

// Two instances share one database, and the response of each call of the bank may be lost the first
// time. Every charge is in the bank's ledger once, and equals our record. One instance stops in the
// middle of its work.
func TestCollectors_OverPostgresChargeOnce(t *testing.T) {
	t.Parallel()
	address := storetest.NewDatabase(t)
	here, there := open(t, address), open(t, address)
	m := newMarket(t, here)
	bank := rentaltest.NewBank(t)
	bank.FailWith(unluckyOnce())
	bank.Tell(func(n rental.Notice) {
		assert.NoError(t, here.Keep(context.Background(), n))
	})
	var charges []rental.Charge
	for range 4 {
		client := m.client()
		m.giveCard(client, bank.Issue(rentaltest.NewCard(), rentaltest.CustomerOf(client), sandbox.Behaviour{}))
		booking := m.booking(client)
		for _, kind := range []rental.ChargeKind{rental.StartCharge, rental.DepositCharge, rental.ExtensionCharge, rental.FeeCharge} {
			c := rental.Charge{
				Booking: booking, Kind: kind, Number: 1, State: rental.Pending, Currency: "EUR", Amount: 13_200,
				NextAttempt: time.Now(),
			}
			if kind == rental.DepositCharge {
				c.Goal = rental.Hold
			}
			charges = append(charges, m.add(client, c))
		}
	}
	run := func(p *fixture) (stop func()) {
		c := charging.NewCollector(charging.Config{
			Ledger: p, Notices: p, Processor: bank, Every: 50 * time.Millisecond, Lease: 1500 * time.Millisecond,
			Timeout: 200 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
		})
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- c.Run(ctx) }()
		return sync.OnceFunc(func() {
			cancel()
			assert.NoError(t, <-done)
		})
	}
	stopFirst, stopSecond := run(here), run(there)
	defer stopSecond()
	storetest.Eventually(t, "the work has begun", func() bool { return len(bank.Calls()) > 10 })
	stopFirst()
	defer run(here)()

	are := func(n int, s rental.ChargeState) func() bool {
		return func() bool {
			var found int
			m.get(&found, `select count(*) from charges where state = $1`, s)
			return found == n
		}
	}
	storetest.Eventually(t, "everything is paid", are(3*len(charges)/4, rental.Paid))
	storetest.Eventually(t, "every deposit is held", are(len(charges)/4, rental.Authorized))
	for _, c := range charges {
		if c.Kind == rental.DepositCharge {
			m.amend(c, rental.Capture, 5_000)
		}
	}
	storetest.Eventually(t, "every deposit is captured", are(len(charges)/4, rental.Captured))
	for _, c := range charges {
		if is, e := m.charge(c.ID), bank.Of(c.ID); e.Payments != 1 || e.Held != 0 || e.Taken != is.Settled || is.PaidAt.IsZero() {
			t.Errorf("the bank has %+v, our record %+v", e, is)
		}
	}
	var lines int
	m.get(&lines, `select count(*) from activity where action like 'charge.%' and outcome = 'executed'`)
	assert.Equal(t, lines, len(charges)+len(charges)/4, "audit entries of executed charges")
}

// unluckyOnce makes some calls fail the first time.
func unluckyOnce() func(rentaltest.Call) rentaltest.Fault {
	var mu sync.Mutex
	seen := map[rentaltest.Call]bool{}
	return func(c rentaltest.Call) rentaltest.Fault {
		mu.Lock()
		defer mu.Unlock()
		if seen[c] || strings.HasPrefix(c.Method, "Intent") || rand.IntN(3) > 0 {
			return rentaltest.Fault{}
		}
		seen[c] = true
		return rentaltest.Fault{Kind: rentaltest.FaultKinds[rand.IntN(5)], For: 300 * time.Millisecond}
	}
}
