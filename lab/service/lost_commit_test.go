package service_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
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
		for _, table := range rentalTables {
			do("drop table lost_" + table)
		}
	}
}

// Whatever commits are lost: once the callers have repeated their requests, the processor has taken
// each payment once.
func TestLostCommit_RepeatedRequestsChargeEachClientOnce(t *testing.T) {
	t.Parallel()
	moments := []string{"before the client was known", "after the card was added", "after the booking was made", "after the start"}
	r := embeddedStack(t, 2*len(moments)).rent()
	i := r.open()
	for n, when := range moments {
		vehicle := 2*n + 1
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
				return i.asAdmin(http.MethodPost, target, body, "Idempotency-Key", fmt.Sprint(key, n))
			}
			settled := func(kind, state string) {
				r.Helper()
				what := fmt.Sprintf("%s: the %s is %s", when, kind, state)
				r.eventually(10*time.Second, what, func() bool { return i.charge(booking, kind)["state"] == state })
			}
			at("before the client was known")
			c.post(i, "/payment-methods", `{"payment_method_id":"pm_card_visa"}`)
			at("after the card was added")
			booking = keyed("/api/v1/admin/bookings", "book", c.draft(vehicle, period)).wants(201, "").number("data.id")
			at("after the booking was made")
			keyed(adminOf(booking)+"/start", "start", "").wants(200, "")
			c.awaitPayment(i, booking, "paid")
			settled("deposit", "authorized")
			at("after the start")
			keyed(adminOf(booking)+"/fees", "fee", `{"kind":"cleaning","amount":30.00,"reason":"sand"}`).wants(200, "")
			settled("fee", "paid")
			keyed(adminOf(booking)+"/refund", "refund", `{"amount":10.00,"reason":"no sand"}`).wants(200, "")
			settled("refund", "paid")
			return booking
		}
		requests()
		before := r.processor.Ledger()
		setBack()
		booking := requests()
		after := r.processor.Ledger()
		if fmt.Sprint(after) != fmt.Sprint(before) || len(after) != 3*(n+1) {
			r.Errorf("%s: the processor's ledger is\n%+v\nbefore the commits were lost it was\n%+v", when, after, before)
		}
		if moved := r.movements(booking); len(moved) != 3 {
			r.Errorf("%s: the record has %+v of what the processor has: %+v", when, moved, after)
		}
	}
}
