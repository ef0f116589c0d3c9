package rentals

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"motorpool/rental"
	"motorpool/store/activity"
	"motorpool/store/pg"
	"motorpool/store/unavailable"
	"motorpool/telematics"
)

// Charges stores the charges that workers carry out. It is safe for concurrent use.
type Charges struct{ DB *pg.DB }

// stuckAfter is the number of attempts in a row without a change after which a charge counts as
// stuck: they take about two minutes.
const stuckAfter = 5

// Stuck counts the charges whose result is still unknown after repeated queries of the processor.
// A refund that the processor has may take its bank days.
func (p Charges) Stuck(ctx context.Context) (n int, err error) {
	err = p.DB.Pool.GetContext(
		ctx, &n, `
		select count(*) from charges
		where due_at is not null and state = 'unknown' and tries >= $1 and (kind <> 'refund' or intent is null)`,
		stuckAfter,
	)
	return n, unavailable.Wrap("count stuck charges", err)
}

// ForOperator counts the charges of the last 30 days that were not made for a reason which only an
// operator can change, and that nothing of the booking replaces. Their clients can drive all the
// same.
func (p Charges) ForOperator(ctx context.Context) (n int, err error) {
	err = p.DB.Pool.GetContext(ctx, &n, `
		select count(*) from charges c
		where state = 'failed' and kind <> 'refund' and coalesce(goal, 'hold') = 'hold' and decline_code = any ($1)
			and created_at > now() - interval '30 days'
			and not exists (`+Replacements+` and f.paid_at is not null)`,
		pq.Array(rental.CodesFor(rental.ByOperator)))
	return n, unavailable.Wrap("count charges for the operator", err)
}

// Replacements selects the fees, and the captures by staff, that were made after a charge c, which
// only the operator can mend.
const Replacements = `
				select from charges f
				where f.booking_id = c.booking_id and (f.kind = 'fee' and f.created_at > c.created_at
					or f.goal = 'capture' and f.reason <> '' and coalesce(f.paid_at, now()) > c.created_at)`

// heldCharge holds the columns of a locked charge that may have changed since its worker leased it.
type heldCharge struct {
	state        rental.ChargeState
	goal         rental.Goal
	woken        bool
	tried        string
	triedDefault int64
}

// hold locks a charge that its worker still has leased; false: the lease was lost.
func hold(ctx context.Context, tx *sqlx.Tx, id, lease uuid.UUID) (h heldCharge, ok bool, err error) {
	ok, err = pg.One(ctx, tx, []any{&h.state, pg.OrZero(&h.goal), &h.woken, &h.tried, pg.OrZero(&h.triedDefault)}, `
		select state, goal, woken_at is not null as woken, tried, tried_default
		from charges where id = $1 and lease = $2 for update`, id, lease)
	return h, ok, err
}

func (h heldCharge) mayBecome(job rental.Job, next rental.ChargeState) error {
	if now := (rental.Charge{Kind: job.Kind, State: h.state}); !now.MayBecome(next) {
		return fmt.Errorf("charge %s is %s and cannot become %s", job.ID, now.State, next)
	}
	return nil
}

// changed reports whether the charge was changed since its worker leased it.
func (h heldCharge) changed(job rental.Job) bool {
	return h.woken || h.goal != job.Goal
}

// WriteCharge implements rental.Ledger.
func (p Charges) WriteCharge(ctx context.Context, job rental.Job, r rental.Result) (ok bool, err error) {
	err = pg.WithinLocks(ctx, p.DB, func(tx *sqlx.Tx) error {
		if r.Card != nil {
			// The client is locked before the charge: a change of a card locks its client, and then
			// charges and the card, in any order.
			if err := keepClient(ctx, tx, job.Client); err != nil {
				return err
			}
		}
		held, mine, err := hold(ctx, tx, job.ID, job.Lease)
		if err != nil || !mine {
			return err
		}
		if held.changed(job) {
			return dueAgain(ctx, tx, job.ID)
		}
		if err := held.mayBecome(job, r.State); err != nil {
			return err
		}
		ok = true
		if err := writeAttempt(ctx, tx, job, r); err != nil {
			return err
		}
		return writeEntry(ctx, tx, r)
	})
	return ok && err == nil, unavailable.Wrap("store what is about to be done about a charge", err)
}

// dueAgain releases the lease of a charge that was changed meanwhile.
func dueAgain(ctx context.Context, tx *sqlx.Tx, id rental.ChargeID) error {
	_, err := tx.ExecContext(ctx, `
		update charges set lease = null, lease_until = null, taken_at = null, next_attempt_at = clock_timestamp()
		where id = $1`, id)
	return err
}

func writeEntry(ctx context.Context, tx *sqlx.Tx, r rental.Result) error {
	if r.Activity == nil {
		return nil
	}
	return activity.Insert(ctx, tx, *r.Activity)
}

// writeAttempt stores that the charge is being carried out, and with which card: a later worker
// then knows the card of the outcome, and whether the client has chosen another default since.
func writeAttempt(ctx context.Context, tx *sqlx.Tx, job rental.Job, r rental.Result) error {
	card := pg.Deref(r.Card)
	_, err := tx.ExecContext(ctx, `
		update charges set
			state = $2, settled = $3, decline_code = $4,
			intent = coalesce(nullif($5, ''), intent), seen = coalesce(nullif($6, ''), seen),
			attempts = attempts + $7,
			payment_method_id = case when $8::bigint = 0 then payment_method_id else (select id from payment_methods where id = $8) end,
			brand = case when $8 = 0 then brand else $9 end,
			last_four = case when $8 = 0 then last_four else $10 end,
			tried = case when $8 = 0 then tried else $11 end,
			-- the same card again: what was the default when it was chosen
			tried_default = case when $8 = 0 or tried = $11 then tried_default else $12::bigint end,
			next_attempt_at = least(next_attempt_at, clock_timestamp()), -- the next worker after a crash reads it
			lease_until = clock_timestamp() + (lease_until - taken_at), taken_at = clock_timestamp()
		where id = $1`,
		job.ID, r.State, r.Settled, r.DeclineCode, r.Intent, r.AttemptID, oneIf(r.CountAttempt),
		int64(card.ID), card.Brand, card.LastFour, cmp.Or(card.Fingerprint, card.Token), pg.Nullable(int64(job.Default)))
	return err
}

func oneIf(b bool) int {
	if b {
		return 1
	}
	return 0
}

// SettleCharge implements rental.Ledger. It also stores what follows for the booking.
func (p Charges) SettleCharge(ctx context.Context, job rental.Job, r rental.Result) (ok bool, err error) {
	err = pg.WithinLocks(ctx, p.DB, func(tx *sqlx.Tx) error {
		// The client's row is locked first, in the order of all transactions: of this and a
		// concurrent change of the default, the later one sees the other. Then the booking's: so
		// does the later one of this and the end of the rental.
		standing, err := defaultOf(ctx, tx, job, r)
		if err != nil {
			return err
		}
		if job.Kind != rental.RefundCharge {
			if _, err := tx.ExecContext(ctx, `select from bookings where id = $1 for no key update`, job.Booking); err != nil {
				return err
			}
			if err := lockCharges(ctx, tx, job.Booking); err != nil {
				return err
			}
		}
		held, mine, err := hold(ctx, tx, job.ID, job.Lease)
		if err != nil || !mine {
			return err
		}
		takesBack := job.Kind == rental.ExtensionCharge && r.State == rental.Released
		if takesBack && job.Intent == "" && held.changed(job) { // nothing is cancelled yet
			return dueAgain(ctx, tx, job.ID)
		}
		if err := held.mayBecome(job, r.State); err != nil {
			return err
		}
		ok = true
		if err := writeOutcome(ctx, tx, job, r, held, standing); err != nil {
			return err
		}
		if job.Kind != rental.RefundCharge {
			if err := settleUp(ctx, tx, job, takesBack); err != nil {
				return err
			}
		}
		return writeEntry(ctx, tx, r)
	})
	return ok && err == nil, unavailable.Wrap("settle a charge", err)
}

// settleUp writes what follows from the result of a charge for the other ones of its booking. The
// caller has locked them.
func settleUp(ctx context.Context, tx *sqlx.Tx, job rental.Job, takesBack bool) error {
	r := rental.Request{Booking: job.Booking, Actor: rental.System(), Now: time.Now()}
	d, err := readDetails(ctx, tx, r.Booking, r.Now)
	if err == nil && takesBack {
		d.Booking, err = takeBack(ctx, tx, d, job.ID)
	}
	if err != nil {
		return err
	}
	return writeChange(ctx, tx, r, d, rental.SettleUp(d, r.Now))
}

// takeBack gives a booking the end and the price that it had before an extension, and returns it.
func takeBack(ctx context.Context, tx *sqlx.Tx, d rental.BookingDetails, extension rental.ChargeID) (rental.Booking, error) {
	c, err := d.TakeBack(extension)
	if err == nil {
		err = updateBooking(ctx, tx, c.Booking)
	}
	if err != nil {
		return rental.Booking{}, err
	}
	// An earlier extension that was refused, too, is the last one now.
	_, err = tx.ExecContext(ctx, `
		update charges set look_at = greatest(mend_by, clock_timestamp())
		where booking_id = $1 and kind = 'extension' and mend_by is not null
		and state in ('declined', 'failed', 'requires_action')`, d.ID)
	return c.Booking, err
}

// defaultMethod is a client's default payment method; zero: there is none.
type defaultMethod struct {
	ID    int64  `db:"id"`
	Token string `db:"token"`
	Card  string `db:"card"` // fingerprint, else token
}

// keepClient locks a client against changes of its cards until the transaction ends.
func keepClient(ctx context.Context, tx *sqlx.Tx, id rental.ClientID) error {
	_, err := tx.ExecContext(ctx, `select from clients where id = $1 for share`, id)
	return err
}

// defaultOf locks the client of a payment, and returns its default method where that is needed:
// after a refusal where another card may help.
func defaultOf(ctx context.Context, tx *sqlx.Tx, job rental.Job, r rental.Result) (defaultMethod, error) {
	if job.Kind == rental.RefundCharge {
		return defaultMethod{}, nil
	}
	if err := keepClient(ctx, tx, job.Client); err != nil || !refused(r.State) || r.NotRetryable {
		return defaultMethod{}, err
	}
	var s defaultMethod
	err := tx.GetContext(ctx, &s, `
		select m.id, m.token, coalesce(m.fingerprint, m.token) as card
		from clients c join payment_methods m on m.id = c.default_payment_method_id
		where c.id = $1`, job.Client)
	if errors.Is(err, sql.ErrNoRows) {
		return defaultMethod{}, nil
	}
	return s, err
}

// refused reports whether another card may help.
func refused(s rental.ChargeState) bool {
	return s == rental.Declined || s == rental.Failed || s == rental.RequiresAction
}

// writeOutcome writes the result of a job. The charge is due again immediately where it was changed
// meanwhile (its goal, or its card), or the client set another default since the card was tried.
func writeOutcome(ctx context.Context, tx *sqlx.Tx, job rental.Job, r rental.Result, held heldCharge, s defaultMethod) error {
	other := s.ID != 0 && s.ID != held.triedDefault && s.Card != held.tried
	_, err := tx.ExecContext(ctx, `
		with now as (
			select at, again, m.id, m.brand, m.last_four,
				case when again then at + $23 * interval '1 microsecond'
				else coalesce(c.mend_by, at + $23 * interval '1 microsecond') end as mend_by
			from charges c
				cross join lateral (
					select clock_timestamp() as at, $12::boolean or ($13::boolean and $15 <> all (c.barred)
					and $21 <> all (c.barred)) as again
				) as a
				-- the card that was tried is the one that paid, whatever was chosen meanwhile
				left join payment_methods m on $2 in ('paid', 'authorized') and m.client_id = $16
				and coalesce(m.fingerprint, m.token) = c.tried
			where c.id = $1
		)
		update charges set
			state = $2, settled = $3, decline_code = $4,
			intent = coalesce(nullif($5, ''), intent), seen = coalesce(nullif($6, ''), seen),
			attempts = attempts + $7, tries = case when $8 then tries + 1 else 0 end,
			declines = case when now.again and $17 then 0 when $9 then declines + 1 else declines end,
			hard = case when now.again and $17 then false when $9 or $10 then $10 else hard end,
			barred = barred
				|| case when $10 and tried <> all (barred) then array[tried] else '{}' end
				|| case when $22 <> '' and $22 <> all (barred) then array[$22] else '{}' end,
			payment_method_id = case when now.again and $17 and $14::bigint <> 0 then $14 else coalesce(now.id, payment_method_id) end,
			brand = coalesce(now.brand, charges.brand), last_four = coalesce(now.last_four, charges.last_four),
			mended_at = case when not $17 or $8 then mended_at when now.again then now.at end,
			mend_by = now.mend_by,
			next_attempt_at = case when $18 then null when now.again then now.at else $11::timestamptz end,
			look_at = case when $18 then null when look_at >= taken_at then look_at
				-- once the time is over, whatever is due then
				else least($19::timestamptz, case when $23::bigint is not null and now.mend_by >= now.at then now.mend_by end) end,
			paid_at = $20::timestamptz,
			lease = null, lease_until = null, taken_at = null
		from now
		where charges.id = $1`,
		job.ID, r.State, r.Settled, r.DeclineCode, r.Intent, r.AttemptID, oneIf(r.CountAttempt), r.NoChange, r.Declined, r.Hard,
		pg.Timestamp(r.NextAttempt), held.changed(job), other, s.ID, s.Card, int64(job.Client), refused(r.State), isOver(job.Kind, r.State),
		pg.Timestamp(r.QueryAt), pg.Timestamp(r.PaidAt), s.Token, r.RefusedCard, mendFor(job, r))
	return err
}

// mendFor returns how long the client has to mend a refused payment of an extension, in
// microseconds; nil: it is none.
func mendFor(job rental.Job, r rental.Result) *int64 {
	if job.MendFor == nil || !refused(r.State) || rental.RemedyOf(r.DeclineCode) != rental.ByClient {
		return nil
	}
	return new(job.MendFor.Microseconds())
}

// isOver reports whether no notice of the processor can change a charge any more. A refund may
// still be returned.
func isOver(k rental.ChargeKind, s rental.ChargeState) bool {
	return s.IsFinal() && k != rental.RefundCharge
}

// Dispute implements rental.Ledger.
func (p Charges) Dispute(ctx context.Context, object string, entry telematics.Activity) (known bool, err error) {
	err = p.DB.Within(ctx, func(tx *sqlx.Tx) error {
		var c rental.Charge
		var err error
		if known, err = pg.One(ctx, tx, []any{&c.Booking, &c.Kind, &c.Number, &c.Currency, &c.Amount, &entry.Agency, &entry.Vehicle}, `
			select c.booking_id, c.kind, c.number, c.currency, c.amount, b.agency_id, b.vehicle_id
			from charges c join bookings b on b.id = c.booking_id where c.intent = $1
			for no key update of c`, object); err != nil || !known {
			return err
		}
		var written bool
		if err := tx.GetContext(ctx, &written, `
			select exists (select from activity where booking_id = $1 and action = $2 and parameters->>'notice_id' = $3)`,
			c.Booking, entry.Action, entry.Details["notice_id"]); err != nil || written {
			return err
		}
		entry.Booking = int64(c.Booking)
		maps.Copy(entry.Details, map[string]any{
			"kind": string(c.Kind), "number": c.Number, "amount": c.Currency.Format(c.Amount), "currency": string(c.Currency),
		})
		return activity.Insert(ctx, tx, entry)
	})
	return known, unavailable.Wrap("write the dispute of a charge", err)
}

// WakeCharge implements rental.Ledger.
func (p Charges) WakeCharge(ctx context.Context, object string) (state rental.ChargeState, woken bool, err error) {
	if object == "" || !pg.Searchable(object) {
		return "", false, nil
	}
	var kind rental.ChargeKind
	found, err := pg.One(ctx, p.DB.Pool, []any{&state, &kind}, `
		update charges set look_at = case when state = any ($2) and kind <> 'refund' then look_at else clock_timestamp() end
		where intent = $1 returning state, kind`, object, pq.Array(rental.FinalChargeStates()))
	return state, found && !isOver(kind, state), unavailable.Wrap("wake a charge", err)
}
