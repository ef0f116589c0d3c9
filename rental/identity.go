package rental

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"motorpool/telematics"
)

// Identities of bookings, payments and customers at the processor are derived from what causes
// them. So a request that is repeated after its record was lost (a failover to a standby that was
// behind, a restore) leads to the same payment, not to a second one.

// identities is the namespace of identities (UUID version 5).
var identities = uuid.MustParse("6d6f746f-7270-5f6f-8c69-64656e746974")

func identity(format string, args ...any) uuid.UUID {
	return uuid.NewSHA1(identities, fmt.Appendf(nil, format, args...))
}

// BookingIdentity returns the identity of the nth booking, counted from 1, that a client makes of a
// vehicle for one start.
func BookingIdentity(installation string, b Booking, subject string, nth int) uuid.UUID {
	return identity("booking %s %d %q %d %d %d", installation, b.Agency, subject, b.VehicleID, b.Start.UnixMilli(), nth)
}

// EarlierIdentity returns the identity of a booking that was made before bookings had one.
func EarlierIdentity(id BookingID, reference string, created time.Time) uuid.UUID {
	return identity("earlier booking %d %q %d", id, reference, created.UnixMicro())
}

// CustomerKey returns the idempotency key for creating a client's customer at the processor.
func CustomerKey(installation string, agency telematics.AgencyID, subject string) uuid.UUID {
	return identity("customer %s %d %q", installation, agency, subject)
}

// PaymentKey returns the identity of a charge of the booking at the processor. The same cause with
// the same amount is the same payment; another amount is another payment. So what was paid for a
// start that the record has lost does not pay for a longer booking, nor a lost fee for another.
func (b Booking) PaymentKey(c Charge, refunded uuid.UUID) uuid.UUID {
	return identity("payment %s %s %d %d %s %q %s", b.Identity, c.Kind, c.Number, c.Amount, c.Currency, c.Fee, refunded)
}

// PaymentID identifies the charge at the processor.
func (c Charge) PaymentID() uuid.UUID {
	if c.Key == uuid.Nil { // made before charges had keys
		return c.ID
	}
	return c.Key
}
