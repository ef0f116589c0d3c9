package rentals

import (
	"context"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"motorpool/rental"
)

// reviveCharges makes a client's unpaid charges due immediately, with this card, as if none had
// been declined: those that were declined, have failed or wait for a confirmation with another
// card, or with this one if the decline was not hard, and the card was renewed, or no other attempt
// is due: the client may have no other card. Charges that bar the card are left out, and those that
// only an operator can mend and that a later fee, or a capture from the deposit, replaces. A hard
// decline adds the previous card to the cards that the charge bars.
func reviveCharges(ctx context.Context, tx *sqlx.Tx, client rental.ClientID, method rental.MethodID, renewed bool) error {
	_, err := tx.ExecContext(ctx, `
		with card as (
			select id, brand, last_four, coalesce(fingerprint, token) as mark from payment_methods where id = $2
		), revived as materialized (
			select c.id, a.payment_wait, case when c.hard
			and c.payment_method_id <> card.id then coalesce(tried.fingerprint, tried.token) end as bars
			from card, charges c
				join bookings b on b.id = c.booking_id
				join agencies a on a.id = b.agency_id
				left join payment_methods tried on tried.id = c.payment_method_id
			where b.client_id = $1 and c.kind <> 'refund' and coalesce(c.goal, 'hold') = 'hold'
				and c.state in ('declined', 'failed', 'requires_action')
				and (c.payment_method_id is distinct from card.id or ($3 or c.state = 'failed') and not c.hard)
				and not card.mark = any (c.barred)
				and (c.decline_code <> all ($4) or not exists (`+Replacements+`))
			order by c.id
			for update of c
		)
		update charges c
		set payment_method_id = card.id, brand = card.brand, last_four = card.last_four,
			next_attempt_at = clock_timestamp(), woken_at = clock_timestamp(), mended_at = clock_timestamp(), declines = 0, hard = false,
			mend_by = case when c.mend_by is not null then clock_timestamp() + revived.payment_wait end,
			barred = case when revived.bars is null or revived.bars = any (c.barred) then c.barred
			else array_append(c.barred, revived.bars) end
		from revived, card
		where c.id = revived.id`,
		client, method, renewed, pq.Array(rental.CodesFor(rental.ByOperator)))
	if err != nil {
		return err
	}
	// Those that are tried again now, with the card before: the next attempt is with this one.
	_, err = tx.ExecContext(ctx, `
		update charges c
		set mended_at = clock_timestamp(), mend_by = case when c.mend_by is not null then clock_timestamp() + a.payment_wait end
		from bookings b, agencies a, payment_methods card
		where b.id = c.booking_id and a.id = b.agency_id and card.id = $2
			and b.client_id = $1 and c.kind <> 'refund' and coalesce(c.goal, 'hold') = 'hold' and c.state = 'unknown'
			and c.decline_code <> ''
			and c.payment_method_id is distinct from card.id and not coalesce(card.fingerprint, card.token) = any (c.barred)`,
		client, method)
	return err
}

// barCard stores, before a payment method is removed, which charges must not be tried with its card
// again: the card may be added again under another id.
func barCard(ctx context.Context, tx *sqlx.Tx, method rental.MethodID) error {
	_, err := tx.ExecContext(ctx, `
		with tried as materialized (
			select c.id, coalesce(m.fingerprint, m.token) as mark
			from charges c join payment_methods m on m.id = c.payment_method_id
			where m.id = $1 and c.hard
			order by c.id
			for update of c
		)
		update charges c set barred = array_append(c.barred, tried.mark)
		from tried
		where c.id = tried.id and not tried.mark = any (c.barred)`,
		method)
	return err
}
