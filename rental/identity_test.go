package rental_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/rental"
)

func TestIdentity_SameCauseIsTheSamePayment(t *testing.T) {
	b := upcoming().Booking
	b.Identity = rental.BookingIdentity("one", b, "client-7", 1)
	other := func(change func(*rental.Booking), installation, subject string, nth int) rental.Booking {
		o := b
		change(&o)
		o.Identity = rental.BookingIdentity(installation, o, subject, nth)
		return o
	}
	same := func(*rental.Booking) {}
	if again := other(func(o *rental.Booking) {
		o.ID, o.Reference, o.End, o.Created = 99, "BK-2026-00099", o.End.Add(1), start
	}, "one", "client-7", 1); again.Identity != b.Identity {
		t.Error("a booking that is made again, under another id, is another one")
	}
	identities := map[uuid.UUID]string{b.Identity: "the booking"}
	for what, o := range map[string]rental.Booking{
		"another installation": other(same, "two", "client-7", 1),
		"another client":       other(same, "one", "client-8", 1),
		"the second one":       other(same, "one", "client-7", 2),
		"another agency":       other(func(o *rental.Booking) { o.Agency = 2 }, "one", "client-7", 1),
		"another vehicle":      other(func(o *rental.Booking) { o.VehicleID = 6 }, "one", "client-7", 1),
		"another start":        other(func(o *rental.Booking) { o.Start = start.Add(time.Millisecond) }, "one", "client-7", 1),
		"an earlier one":       {Identity: rental.EarlierIdentity(42, "BK-2026-00042", start)},
		"another earlier one":  {Identity: rental.EarlierIdentity(42, "BK-2026-00042", start.Add(time.Microsecond))},
	} {
		if is, taken := identities[o.Identity]; taken {
			t.Errorf("%s has the identity of %s", what, is)
		}
		identities[o.Identity] = what
	}

	charge := func(k rental.ChargeKind, number int, amount rental.Minor) rental.Charge {
		return rental.Charge{Kind: k, Number: number, Amount: amount, Currency: "EUR"}
	}
	rent := b.PaymentKey(charge(rental.StartCharge, 1, 100), uuid.Nil)
	keys := map[uuid.UUID]bool{rent: true}
	fee := charge(rental.FeeCharge, 1, 100)
	dollars := charge(rental.StartCharge, 1, 100)
	dollars.Currency = "USD"
	fee.Fee = "cleaning"
	for _, c := range []struct {
		charge   rental.Charge
		refunded uuid.UUID
	}{
		// A start of another amount: the booking was extended after its start was lost.
		{charge(rental.StartCharge, 1, 200), uuid.Nil}, {dollars, uuid.Nil},
		{charge(rental.DepositCharge, 1, 100), uuid.Nil}, {charge(rental.DepositCharge, 1, 200), uuid.Nil},
		{charge(rental.ExtensionCharge, 1, 100), uuid.Nil}, {charge(rental.ExtensionCharge, 1, 200), uuid.Nil},
		{charge(rental.ExtensionCharge, 2, 100), uuid.Nil}, {charge(rental.FeeCharge, 1, 100), uuid.Nil}, {fee, uuid.Nil},
		{charge(rental.RefundCharge, 1, 100), rent}, {charge(rental.RefundCharge, 1, 100), b.Identity},
	} {
		key := b.PaymentKey(c.charge, c.refunded)
		if keys[key] {
			t.Errorf("%+v of %s is another charge's payment", c.charge, c.refunded)
		}
		keys[key] = true
		if again := b.PaymentKey(c.charge, c.refunded); again != key {
			t.Errorf("%+v is another payment the second time", c.charge)
		}
	}
	key, again := rental.CustomerKey("one", 1, "a"), rental.CustomerKey("one", 1, "a")
	if key == rental.CustomerKey("two", 1, "a") || key != again {
		t.Error("the key of a customer does not follow from installation, agency and subject")
	}
}
