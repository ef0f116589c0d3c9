package charging

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"motorpool/guard"
	"motorpool/rental"
)

const (
	// Time from a start or a failover to the comparison: callers repeat meanwhile what was lost. A
	// choice. Half: more is reported that the callers would have repeated. Double: an operator
	// learns later of a client who has paid for nothing.
	compareAfter = 5 * time.Minute
	// How far back a payment may have been lost by a failover or a restore: longer than backups are
	// usually kept. Half: a restore from an old backup hides payments. Double: twice the pages.
	lostWithin = 35 * 24 * time.Hour
	// How far back each night's comparison goes: more than one night, since one may fail. Half: a
	// night that failed leaves a gap. Double: twice the pages each night.
	nightly = 2 * 24 * time.Hour
	// Time between two comparisons while payments are listed: a refund ends the alert. A choice.
	// Half: twice the pages. Double: the alert outlasts its cause for longer.
	compareAgain = 15 * time.Minute
	// Pause after a comparison that failed; a choice. Half: more calls while the processor is
	// unavailable. Double: the comparison ends later.
	compareRetry = 5 * time.Minute
	// The lease for a comparison, renewed with each page. Half: a slow page lets two instances
	// compare. Double: another instance takes over later where one died.
	CompareLease = 5 * time.Minute
	// The hour of the night, UTC; a choice: few bookings run in Europe. Another hour costs nothing.
	compareHour = 2
	// Pages of 100 payments in one comparison, against an endless list. Half: a large fleet is not
	// compared as a whole. Double: an endless list is noticed later.
	maxPages = 50_000
)

// ReconcilerConfig assembles a reconciler. Processor and Payments are required.
type ReconcilerConfig struct {
	Processor rental.Processor
	Payments  rental.PaymentRecord
	// TryLease takes or extends the lease for comparing, for CompareLease, and reports whether this
	// instance holds it. Defaults to true.
	TryLease func(context.Context) (bool, error)
	// After is the time from the start to the first comparison, and the longest between retries.
	// Defaults to 5 min.
	After   time.Duration
	Timeout time.Duration // of one call of the processor. Defaults to 20 s.
	Logger  *slog.Logger  // Defaults to slog.Default().
	// Guard recovers the panic of one comparison, which is retried. Nil: it is only logged.
	Guard *guard.Guard
}

// Reconciler finds payments that the processor has and the record does not: a commit was lost (by a
// failover to a standby that was behind, or a restore), and the caller has not repeated the
// request. Of refunds it finds how much more the processor has of a payment than the record. It
// compares some minutes after its start and after each failover, and each night. It moves no money.
// It is safe for concurrent use.
type Reconciler struct {
	ReconcilerConfig
	lost chan struct{}
	// What the processor had refunded of payments that were logged. Only Run uses it.
	logged map[uuid.UUID]rental.Minor
}

// NewReconciler assembles a reconciler. It does nothing before Run.
func NewReconciler(c ReconcilerConfig) *Reconciler {
	c.After, c.Timeout = cmp.Or(c.After, compareAfter), cmp.Or(c.Timeout, 20*time.Second)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	if c.TryLease == nil {
		c.TryLease = func(context.Context) (bool, error) { return true, nil }
	}
	return &Reconciler{ReconcilerConfig: c, lost: make(chan struct{}, 1), logged: map[uuid.UUID]rental.Minor{}}
}

// CommitsMayBeLost makes the reconciler compare again, after some minutes. It does not block.
func (r *Reconciler) CommitsMayBeLost() { wakeUp(r.lost) }

// Run compares until the context ends, and returns nil.
func (r *Reconciler) Run(ctx context.Context) error {
	next := time.NewTimer(r.After)
	defer next.Stop()
	var outage guard.Outage
	for back := lostWithin; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-r.lost:
			back = lostWithin
			next.Reset(r.After)
			continue
		case <-next.C:
		}
		var compared bool
		var wait time.Duration
		err := r.Guard.Try("compare payments", func() (err error) {
			compared, wait, err = r.compare(ctx, back)
			return err
		})
		outage.Note(ctx, r.Logger, "payments not compared with the processor's", err)
		switch {
		case err != nil:
			wait = min(compareRetry, r.After)
		case compared:
			back = nightly
		}
		next.Reset(wait)
	}
}

// compare compares the payments of the last time, and returns how long to wait for the next
// comparison. It compares nothing where another instance does so.
func (r *Reconciler) compare(ctx context.Context, back time.Duration) (compared bool, wait time.Duration, err error) {
	if mine, err := r.TryLease(ctx); err != nil || !mine {
		return false, untilNight(time.Now()), err
	}
	since := time.Now().Add(-back)
	oldest, err := r.Payments.OldestUnrecorded(ctx)
	if err != nil {
		return false, 0, err
	}
	if !oldest.IsZero() && oldest.Before(since) {
		since = oldest
	}
	found, err := r.find(ctx, since)
	if err != nil {
		return false, 0, err
	}
	added, err := r.Payments.ListUnrecorded(ctx, since, found)
	if err != nil {
		return false, 0, err
	}
	for _, p := range added {
		r.Logger.Error(
			"payment at the processor has no charge on record: a commit was lost", "intent", p.ID,
			"status", string(p.Status), "amount", int64(p.Remains()), "currency", string(p.Currency),
			"customer", p.Customer, "booking", p.Metadata[rental.MetaBooking], "kind", p.Metadata[rental.MetaKind],
			"payment", p.Payment,
		)
	}
	r.Logger.Info("payments compared with the processor's", "since", since.UTC(), "unrecorded", len(found))
	if len(found) > 0 {
		return true, compareAgain, nil
	}
	return true, untilNight(time.Now()), nil
}

// find returns the processor's payments since a time that this installation made, that hold or have
// taken money, and that no charge has. A charge is on record before its payment is created.
func (r *Reconciler) find(ctx context.Context, since time.Time) (found []rental.ListedIntent, err error) {
	installation, err := r.Payments.Installation(ctx)
	if err != nil {
		return nil, err
	}
	cursor := ""
	for range maxPages {
		page, next, err := r.page(ctx, since, cursor)
		if err != nil {
			return nil, err
		}
		ours := map[uuid.UUID][]rental.ListedIntent{} // several: see Processor.IntentOf
		var payments []uuid.UUID
		for _, p := range page {
			if p.Metadata[rental.MetaInstallation] == installation && p.Payment != uuid.Nil && p.Remains() > 0 {
				ours[p.Payment] = append(ours[p.Payment], p)
				payments = append(payments, p.Payment)
			}
		}
		if err := r.compareRefunds(ctx, installation, page); err != nil {
			return nil, err
		}
		without, err := r.Payments.WithoutCharge(ctx, payments)
		if err != nil {
			return nil, err
		}
		for _, payment := range without {
			found = append(found, ours[payment]...)
			delete(ours, payment) // its identity may occur more than once
		}
		if next == "" {
			return found, nil
		}
		cursor = next
		if _, err := r.TryLease(ctx); err != nil {
			return nil, err
		}
	}
	r.Logger.Error("more payments at the processor than are compared: older ones were left out", "pages", maxPages)
	return found, nil
}

// compareRefunds logs the payments of which the processor has refunded more than is on record: a
// commit was lost, or it was refunded in the processor's dashboard. A refund is on record before it
// is requested.
func (r *Reconciler) compareRefunds(ctx context.Context, installation string, page []rental.ListedIntent) error {
	refunded, of := map[uuid.UUID]rental.Minor{}, map[uuid.UUID]rental.ListedIntent{}
	for _, p := range page {
		if p.Metadata[rental.MetaInstallation] == installation && p.Payment != uuid.Nil && p.Refunded > 0 {
			refunded[p.Payment] += p.Refunded
			of[p.Payment] = p
		}
	}
	less, err := r.Payments.RefundedLess(ctx, refunded)
	for payment, recorded := range less {
		if r.logged[payment] == refunded[payment] {
			continue
		}
		p := of[payment]
		r.logged[payment] = refunded[payment]
		r.Logger.Error(
			"payment has more refunded at the processor than on record: a commit was lost, or it was refunded there",
			"intent", p.ID, "currency", string(p.Currency), "refunded", int64(refunded[payment]),
			"recorded", int64(recorded), "booking", p.Metadata[rental.MetaBooking], "kind", p.Metadata[rental.MetaKind],
			"payment", payment,
		)
	}
	return err
}

func (r *Reconciler) page(ctx context.Context, since time.Time, cursor string) ([]rental.ListedIntent, string, error) {
	ctx, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	return r.Processor.Intents(ctx, since, cursor)
}

// untilNight returns the time until the next nightly comparison.
func untilNight(now time.Time) time.Duration {
	now = now.UTC()
	night := time.Date(now.Year(), now.Month(), now.Day(), compareHour, 0, 0, 0, time.UTC)
	if !night.After(now) {
		night = night.AddDate(0, 0, 1)
	}
	return night.Sub(now)
}
