package rentaltest

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"motorpool/rental"
	"motorpool/telematics"
)

// Ledger stores charges in memory, with the cards of the clients that pay them. It implements
// rental.Ledger, and is safe for concurrent use.
type Ledger struct {
	mu      sync.Mutex
	charges map[rental.ChargeID]*entry
	clients map[rental.ClientID]*purse
	entries []telematics.Activity
	last    rental.MethodID
}

// purse holds the payment methods of a client.
type purse struct {
	methods []rental.Method
	standby rental.MethodID // the default
}

// entry is a charge with the data of its job.
type entry struct {
	rental.Charge
	client       rental.ClientID
	named        rental.MethodID // the booking's
	tries        int
	tried        string
	triedDefault rental.MethodID
	barred       []string
	woken        bool
	queryAt      time.Time
	mendBy       time.Time // of a refused extension
	notified     bool      // by the processor, since it was taken
	lease        uuid.UUID
	leaseUntil   time.Time
	takenAt      time.Time
}

// NewLedger returns a ledger without charges.
func NewLedger() *Ledger {
	return &Ledger{charges: map[rental.ChargeID]*entry{}, clients: map[rental.ClientID]*purse{}}
}

func (l *Ledger) purse(id rental.ClientID) *purse {
	if l.clients[id] == nil {
		l.clients[id] = &purse{}
	}
	return l.clients[id]
}

// GiveCard adds a card to a client. The first one is the default.
func (l *Ledger) GiveCard(client rental.ClientID, c rental.Card) rental.Method {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last++
	p := l.purse(client)
	m := rental.Method{ID: l.last, Client: client, Card: c}
	p.methods = append(p.methods, m)
	if p.standby == 0 {
		l.setDefault(client, m)
	}
	return m
}

// SetDefault makes a card the default, and refused charges due with it.
func (l *Ledger) SetDefault(client rental.ClientID, m rental.Method) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.setDefault(client, m)
}

func (l *Ledger) setDefault(client rental.ClientID, m rental.Method) {
	l.purse(client).standby = m.ID
	for _, e := range l.charges {
		owed := refused(e.State) && e.Kind != rental.RefundCharge && (e.Goal == "" || e.Goal == rental.Hold)
		if e.client == client && owed && e.Method != m.ID && !e.bars(m.Card) {
			e.Method, e.Brand, e.LastFour, e.Declines, e.woken, e.NextAttempt, e.Mended = m.ID, m.Brand, m.LastFour, 0, true, time.Now(),
				time.Now()
			if !e.mendBy.IsZero() {
				e.mendBy = time.Now().Add(rental.DefaultPaymentWait)
			}
		}
	}
}

// Add adds a charge of a client, as a change of a booking does.
func (l *Ledger) Add(client rental.ClientID, c rental.Charge) rental.Charge {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.ID, c.Created = uuid.New(), time.Now()
	l.charges[c.ID] = &entry{Charge: c, client: client}
	return c
}

// Amend gives a deposit another goal, and makes it due.
func (l *Ledger) Amend(id rental.ChargeID, g rental.Goal, capture rental.Minor) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.charges[id]
	e.Goal, e.CaptureAmount, e.woken = g, capture, true
	if !e.State.IsFinal() {
		e.NextAttempt = time.Now()
	}
}

// Snapshot returns a function that sets the charges back to what they are now, as a restore of the
// database does, and repeats all requests that were made since: a charge that was added is added
// again, and a deposit keeps its goal. Charges with refunds, and refunds, stay as they are.
func (l *Ledger) Snapshot() (setBack func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	then := map[rental.ChargeID]entry{}
	for id, e := range l.charges {
		then[id] = *e
	}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		stays := map[rental.ChargeID]bool{}
		for id, e := range l.charges {
			if e.Kind == rental.RefundCharge {
				stays[id], stays[e.Refunds] = true, true
			}
		}
		for id, e := range l.charges {
			if stays[id] {
				continue
			}
			was, there := then[id]
			if !there {
				was = entry{client: e.client, named: e.named, Charge: rental.Charge{
					ID: e.ID, Booking: e.Booking, Kind: e.Kind, Number: e.Number, State: rental.Pending,
					Currency: e.Currency, Amount: e.Amount, Created: e.Created,
				}}
			}
			was.barred = slices.Clone(was.barred)
			was.Goal, was.CaptureAmount, was.lease, was.leaseUntil = e.Goal, e.CaptureAmount, uuid.Nil, time.Time{}
			if !isOver(was.Charge) {
				was.NextAttempt = time.Now()
			}
			*e = was
		}
	}
}

// Charge returns the current state of a charge.
func (l *Ledger) Charge(id rental.ChargeID) rental.Charge {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.charges[id].Charge
}

// Entries returns the audit log entries, oldest first.
func (l *Ledger) Entries() []telematics.Activity {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.entries)
}

func mark(c rental.Card) string { return cmp.Or(c.Fingerprint, c.Token) }

func (e *entry) bars(c rental.Card) bool {
	return slices.Contains(e.barred, c.Token) || c.Fingerprint != "" && slices.Contains(e.barred, c.Fingerprint)
}

func (e *entry) isDue(now time.Time) bool {
	due := !e.NextAttempt.IsZero() && !e.NextAttempt.After(now) || !e.queryAt.IsZero() && !e.queryAt.After(now)
	return due && !e.leaseUntil.After(now)
}

// TakeCharges leases due charges.
func (l *Ledger) TakeCharges(_ context.Context, limit int, lease time.Duration) ([]rental.Job, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	var due []*entry
	for _, e := range l.charges {
		if e.isDue(now) {
			due = append(due, e)
		}
	}
	slices.SortFunc(due, func(a, b *entry) int {
		return cmp.Or(a.NextAttempt.Compare(b.NextAttempt), bytes.Compare(a.ID[:], b.ID[:]))
	})
	var jobs []rental.Job
	for _, e := range due[:min(limit, len(due))] {
		e.lease, e.leaseUntil, e.takenAt, e.woken, e.notified = uuid.New(), now.Add(lease), now, false, false
		jobs = append(jobs, l.job(e))
	}
	return jobs, nil
}

func (l *Ledger) job(e *entry) rental.Job {
	p := l.purse(e.client)
	j := rental.Job{
		Charge: e.Charge, Lease: e.lease, Tries: e.tries, Client: e.client, Customer: CustomerOf(e.client),
		Default: p.standby, QueryOnly: e.NextAttempt.IsZero() || e.NextAttempt.After(e.takenAt),
		Reference: fmt.Sprintf("BK-2026-%05d", e.Booking),
	}
	if of := l.charges[e.Refunds]; of != nil {
		j.Payment = of.Intent
	}
	if e.Added > 0 {
		wait := rental.DefaultPaymentWait
		j.MendFor, j.MendBy = &wait, e.mendBy
	}
	for _, id := range []rental.MethodID{e.Method, e.named, p.standby} {
		at := slices.IndexFunc(p.methods, func(m rental.Method) bool { return m.ID == id && !e.bars(m.Card) })
		if at >= 0 {
			m := p.methods[at]
			j.Card = &m
			break
		}
	}
	return j
}

// CustomerOf returns the processor's id of a client of a ledger.
func CustomerOf(client rental.ClientID) string { return fmt.Sprintf("cus_%d", client) }

func (l *Ledger) held(job rental.Job) *entry {
	if e := l.charges[job.ID]; e != nil && e.lease == job.Lease && e.lease != uuid.Nil {
		return e
	}
	return nil
}

func (e *entry) giveBack() { e.lease, e.leaseUntil, e.takenAt = uuid.Nil, time.Time{}, time.Time{} }

func (e *entry) check(next rental.ChargeState) error {
	if !e.MayBecome(next) {
		return fmt.Errorf("charge %s is %s and cannot become %s", e.ID, e.State, next)
	}
	return nil
}

// apply copies a result to the charge.
func (e *entry) apply(r rental.Result) {
	e.State, e.Settled, e.DeclineCode = r.State, r.Settled, r.DeclineCode
	e.Intent, e.AttemptID = cmp.Or(r.Intent, e.Intent), cmp.Or(r.AttemptID, e.AttemptID)
	if r.CountAttempt {
		e.Attempts++
	}
}

// WriteCharge stores an intermediate result.
func (l *Ledger) WriteCharge(_ context.Context, job rental.Job, r rental.Result) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.held(job)
	if e == nil {
		return false, nil
	}
	now := time.Now()
	if e.woken || e.Goal != job.Goal {
		e.NextAttempt = now
		e.giveBack()
		return false, nil
	}
	if err := e.check(r.State); err != nil {
		return false, err
	}
	e.apply(r)
	if r.Card != nil {
		e.Method, e.Brand, e.LastFour = r.Card.ID, r.Card.Brand, r.Card.LastFour
		if e.tried != mark(r.Card.Card) {
			e.tried, e.triedDefault = mark(r.Card.Card), job.Default
		}
	}
	if e.NextAttempt.IsZero() || e.NextAttempt.After(now) {
		e.NextAttempt = now
	}
	e.leaseUntil, e.takenAt = now.Add(e.leaseUntil.Sub(e.takenAt)), now
	l.addEntry(r)
	return true, nil
}

func (l *Ledger) addEntry(r rental.Result) {
	if r.Activity != nil {
		l.entries = append(l.entries, *r.Activity)
	}
}

func refused(s rental.ChargeState) bool {
	return s == rental.Declined || s == rental.Failed || s == rental.RequiresAction
}

// SettleCharge stores the result, and ends the lease.
func (l *Ledger) SettleCharge(_ context.Context, job rental.Job, r rental.Result) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.held(job)
	if e == nil {
		return false, nil
	}
	if err := e.check(r.State); err != nil {
		return false, err
	}
	standby, hasDefault := l.standby(e)
	again := e.woken || e.Goal != job.Goal || hasDefault && e.Kind != rental.RefundCharge && refused(r.State) && !r.NotRetryable &&
		standby.ID != e.triedDefault && mark(standby.Card) != e.tried && !e.bars(standby.Card)
	e.apply(r)
	e.tries++
	if !r.NoChange {
		e.tries = 0
	}
	if r.Declined {
		e.Declines++
	}
	if r.Hard {
		e.barred = append(e.barred, e.tried)
	}
	if r.RefusedCard != "" {
		e.barred = append(e.barred, r.RefusedCard)
	}
	e.NextAttempt, e.PaidAt = r.NextAttempt, r.PaidAt
	if refused(r.State) && !r.NoChange {
		e.Mended = time.Time{}
	}
	if again {
		e.NextAttempt = time.Now()
		if refused(r.State) {
			e.Declines, e.Mended = 0, time.Now()
			if hasDefault && e.Kind != rental.RefundCharge {
				e.Method = standby.ID
			}
		}
	}
	if r.State == rental.Paid || r.State == rental.Authorized {
		l.paidWith(e)
	}
	if !e.notified {
		e.queryAt = r.QueryAt
	}
	if now := time.Now(); job.MendFor != nil && refused(r.State) && rental.RemedyOf(r.DeclineCode) == rental.ByClient {
		if again || e.mendBy.IsZero() {
			e.mendBy = now.Add(*job.MendFor)
		}
		if !e.mendBy.Before(now) && (e.queryAt.IsZero() || e.queryAt.After(e.mendBy)) {
			e.queryAt = e.mendBy
		}
	}
	if isOver(e.Charge) {
		e.NextAttempt, e.queryAt = time.Time{}, time.Time{}
	}
	e.giveBack()
	l.addEntry(r)
	return true, nil
}

// paidWith records the card that paid, even if another one was chosen meanwhile.
func (l *Ledger) paidWith(e *entry) {
	for _, m := range l.purse(e.client).methods {
		if mark(m.Card) == e.tried {
			e.Method, e.Brand, e.LastFour = m.ID, m.Brand, m.LastFour
		}
	}
}

func (l *Ledger) standby(e *entry) (rental.Method, bool) {
	p := l.purse(e.client)
	at := slices.IndexFunc(p.methods, func(m rental.Method) bool { return m.ID == p.standby })
	if at < 0 {
		return rental.Method{}, false
	}
	return p.methods[at], true
}

func isOver(c rental.Charge) bool { return c.State.IsFinal() && c.Kind != rental.RefundCharge }

// Dispute adds an audit log entry about the charge of an object.
func (l *Ledger) Dispute(_ context.Context, object string, entry telematics.Activity) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.charges {
		if e.Intent == object {
			entry.Booking = int64(e.Booking)
			if !slices.ContainsFunc(l.entries, func(written telematics.Activity) bool {
				return written.Booking == entry.Booking && written.Action == entry.Action &&
					written.Details["notice_id"] == entry.Details["notice_id"]
			}) {
				l.entries = append(l.entries, entry)
			}
			return true, nil
		}
	}
	return false, nil
}

// WakeCharge makes the charge of an object due for a query.
func (l *Ledger) WakeCharge(_ context.Context, object string) (rental.ChargeState, bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.charges {
		if e.Intent != object || object == "" {
			continue
		}
		if isOver(e.Charge) {
			return e.State, false, nil
		}
		e.queryAt, e.notified = time.Now(), true
		return e.State, true, nil
	}
	return "", false, nil
}
