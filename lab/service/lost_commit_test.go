package service_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"motorpool/internal/app"
	"motorpool/internal/assert"
)

// rentalTables are what a lost commit forgets, in the order of their references.
var rentalTables = []string{"clients", "payment_methods", "bookings", "charges", "idempotency_keys"}

// remember copies the record of bookings and money, and returns a function that sets it back.
func (r *rentals) remember() (setBack func()) {
	r.Helper()
	do := func(statements ...string) {
		r.Helper()
		_, err := r.db.ExecContext(r.Context(), strings.Join(statements, ";"))
		r.must(err)
	}
	for _, table := range rentalTables {
		do("create table lost_" + table + " as table " + table)
	}
	return func() {
		r.Helper()
		// Triggers and foreign keys rest meanwhile, as in a restore.
		statements := []string{"begin", "set local session_replication_role = replica"}
		for _, table := range rentalTables {
			columns := ""
			r.must(r.db.QueryRowContext(r.Context(), `
				select string_agg(quote_ident(attname), ',') from pg_attribute
				where attrelid = $1::regclass and attnum > 0 and not attisdropped and attgenerated = ''`, table).Scan(&columns))
			statements = append(statements, "delete from "+table,
				"insert into "+table+" ("+columns+") overriding system value select "+columns+" from lost_"+table)
		}
		do(append(statements, "commit")...)
	}
}

// Whatever commits are lost: once the callers have repeated their requests, the processor has taken
// each payment once.
func TestLostCommit_RepeatedRequestsChargeEachClientOnce(t *testing.T) {
	t.Parallel()
	for _, when := range []string{
		"before the client was known", "after the card was added", "after the booking was made", "after the start",
	} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			r := embeddedStack(t, 1).rent()
			i := r.open()
			c := r.newCustomer()
			period := fromNow(time.Minute)
			var setBack func()
			at := func(moment string) {
				if moment == when && setBack == nil {
					setBack = r.remember()
				}
			}
			// Ids may be others after a lost commit: a request names the ids that it got.
			requests := func() (booking int64) {
				keyed := func(target, key, body string) answer {
					r.Helper()
					return i.asAdmin(http.MethodPost, target, body, "Idempotency-Key", key)
				}
				at("before the client was known")
				c.post(i, "/payment-methods", `{"payment_method_id":"pm_card_visa"}`)
				at("after the card was added")
				booking = keyed("/api/v1/admin/bookings", "book", c.draft(1, period, "")).wants(201, "").number("data.id")
				at("after the booking was made")
				keyed(adminOf(booking)+"/start", "start", "").wants(200, "")
				c.awaitPayment(i, booking, "paid")
				r.eventually(
					10*time.Second, "the deposit is held",
					func() bool { return i.charge(booking, "deposit")["state"] == "authorized" },
				)
				at("after the start")
				keyed(adminOf(booking)+"/fees", "fee", `{"kind":"cleaning","amount":30.00,"reason":"sand"}`).wants(200, "")
				r.eventually(10*time.Second, "the fee is paid", func() bool { return i.charge(booking, "fee")["state"] == "paid" })
				keyed(adminOf(booking)+"/refund", "refund", `{"amount":10.00,"reason":"no sand"}`).wants(200, "")
				r.eventually(
					10*time.Second, "the refund is paid",
					func() bool { return i.charge(booking, "refund")["state"] == "paid" },
				)
				return booking
			}
			requests()
			before := r.processor.Ledger()
			setBack()
			booking := requests()
			after := r.processor.Ledger()
			if fmt.Sprint(after) != fmt.Sprint(before) || len(after) != 3 {
				r.Errorf("the processor's ledger is\n%+v\nbefore the commits were lost it was\n%+v", after, before)
			}
			if moved := r.movements(booking); len(moved) != 3 {
				r.Errorf("the record has %+v of what the processor has: %+v", moved, after)
			}
		})
	}
}

// What was paid for a start that was lost does not pay for a longer booking: that is another
// payment, and the first one is listed, to be refunded.
func TestLostCommit_AShortRentalDoesNotPayForALongOne(t *testing.T) {
	t.Parallel()
	r := embeddedStack(t, 1).rent()
	i := r.open()
	c := r.newCustomer()
	c.post(i, "/payment-methods", `{"payment_method_id":"pm_card_visa"}`)
	period := fromNow(time.Minute)
	booking := c.book(i, 1, period, "")
	setBack := r.remember()
	i.start(booking)
	c.awaitPayment(i, booking, "paid")
	r.eventually(10*time.Second, "the deposit is held", func() bool { return i.charge(booking, "deposit")["state"] == "authorized" })
	short := r.movements(booking)["start 1"]
	i.stop()
	setBack()

	i = r.open(func(c *app.Config) { c.CompareAfter = 100 * time.Millisecond })
	c.post(i, ownOf(booking)+"/extend", fmt.Sprintf(`{"end_date":%q}`, period.to.Add(16*time.Hour).Format(time.RFC3339Nano))).
		wants(200, "")
	i.start(booking)
	c.awaitPayment(i, booking, "paid")
	long := r.movements(booking)["start 1"]
	if long.Intent == short.Intent || long.Captured <= short.Captured || long.Captured != long.Amount {
		r.Errorf("24 h are paid by %+v, 8 h were by %+v", long, short)
	}
	if r.rows(`select count(*) from charges where booking_id = $1 and kind = 'start' and settled = amount`, booking) != 1 {
		r.Error("the record has a start that is not paid in full")
	}
	r.eventually(10*time.Second, "the deposit is held", func() bool { return i.charge(booking, "deposit")["state"] == "authorized" })
	if all := r.processor.Ledger(); len(all) != 3 {
		r.Errorf("the processor has %+v, want two starts and one deposit", all)
	}
	r.eventually(10*time.Second, "the first payment alone is listed", func() bool {
		unrecorded := `select count(*) from unrecorded_payments u
				where not exists (select from charges c where c.payment_key = u.payment)`
		return r.rows(unrecorded) == 1 && r.rows(unrecorded+` and u.intent = $1`, short.Intent) == 1
	})
}

// A payment whose commit was lost, and whose request is not repeated, is listed until it is
// refunded at the processor.
func TestLostCommit_PaymentsThatAreNotRepeatedAreListed(t *testing.T) {
	t.Parallel()
	r := embeddedStack(t, 1).rent()
	var log logBuffer
	r.log = slog.New(slog.NewTextHandler(&log, nil))
	i := r.open()
	c := r.newCustomer()
	c.post(i, "/payment-methods", `{"payment_method_id":"pm_card_visa"}`)
	setBack := r.remember()
	booking := i.asAdmin(http.MethodPost, "/api/v1/admin/bookings", c.draft(1, fromNow(time.Minute), "")).
		wants(201, "").
		number("data.id")
	i.asAdmin(http.MethodPost, adminOf(booking)+"/start", "").wants(200, "")
	c.awaitPayment(i, booking, "paid")
	r.eventually(10*time.Second, "the deposit is held", func() bool { return i.charge(booking, "deposit")["state"] == "authorized" })
	i.stop()
	setBack()

	i = r.open(func(c *app.Config) { c.CompareAfter = 100 * time.Millisecond })
	r.eventually(10*time.Second, "start and deposit are listed", func() bool {
		return strings.Count(log.String(), "payment at the processor has no charge on record") == 2
	})
	var listed int
	r.must(r.db.QueryRowContext(r.Context(), `select count(*) from unrecorded_payments`).Scan(&listed))
	assert.Equal(r, listed, 2, "payments listed")
	for _, m := range r.processor.Ledger() {
		if !strings.Contains(log.String(), "intent="+m.Intent) || !strings.Contains(log.String(), "customer="+m.Customer) {
			r.Errorf("the log does not name the payment %+v", m)
		}
	}
	i.stop()
	// The metric is read at the start, then every 30 s.
	i = r.open()
	r.eventually(10*time.Second, "the metric says so", func() bool { return i.metric("motorpool_payments_unrecorded") == 2 })
}
